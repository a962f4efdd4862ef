//! Keys that come, go and cannot be had.

use super::{issuers::*, *};
use jsonwebtoken::Algorithm;
use std::{path::Path, time::Duration};
use tokio::time::sleep;

const ED: Algorithm = Algorithm::EdDSA;

/// A little more than the time in which unknown keys cause one request.
const COOLED_DOWN: Duration = Duration::from_secs(31);

async fn passes(authenticator: &Authenticator, signer: &Signer) -> bool {
    authenticator.authenticate(&bearer(&signer.sign(&claims()))).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn a_new_key_is_taken_as_soon_as_the_issuer_may_be_asked() {
    let (old, new) = (Signer::new(ED, "old"), Signer::new(ED, "new"));
    let published = Published::new(&[old.public()]);
    let running = running(at_address(ED), &published);
    assert!(passes(&running, &old).await, "the first caller waits for the first read");
    published.publish(&[old.public(), new.public()]);
    assert!(!passes(&running, &new).await);
    assert_eq!(published.calls(), 1);
    sleep(COOLED_DOWN).await;
    assert!(passes(&running, &new).await, "the first caller with a new key does not notice");
    assert!(passes(&running, &old).await);
    assert_eq!(published.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_last_good_keys_stay_while_the_issuer_fails() {
    let (old, new) = (Signer::new(ED, "old"), Signer::new(ED, "new"));
    let published = Published::new(&[old.public()]);
    let running = running(at_address(ED), &published);
    assert!(passes(&running, &old).await);
    published.fail();
    sleep(Duration::from_secs(3600)).await;
    assert!(passes(&running, &old).await);
    assert!((5..30).contains(&published.calls()), "{}", published.calls());
    published.publish(&[new.public()]);
    sleep(Duration::from_secs(301)).await;
    assert!(passes(&running, &new).await);
    assert!(!passes(&running, &old).await, "a key that is gone is refused");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_set_of_keys_changes_nothing_but_an_empty_set_does() {
    let old = Signer::new(ED, "old");
    let published = Published::new(&[old.public()]);
    let running = running(at_address(ED), &published);
    assert!(passes(&running, &old).await);
    let too_many = vec![old.public(); 257];
    published.publish(&too_many);
    sleep(Duration::from_secs(301)).await;
    assert!(passes(&running, &old).await);
    published.publish(&[]);
    sleep(Duration::from_secs(301)).await;
    assert!(!passes(&running, &old).await);
}

#[tokio::test(start_paused = true)]
async fn an_issuer_that_is_down_at_the_start_is_asked_again() {
    let signer = Signer::new(ED, "one");
    let published = Published::new(&[signer.public()]);
    published.fail();
    let running = running(at_address(ED), &published);
    assert!(!passes(&running, &signer).await);
    published.publish(&[signer.public()]);
    sleep(Duration::from_secs(2)).await;
    assert!(passes(&running, &signer).await);
}

#[tokio::test(start_paused = true)]
async fn an_issuer_that_never_answers_is_given_up() {
    let signer = Signer::new(ED, "one");
    let published = Published::new(&[signer.public()]);
    published.gate.forget_permits(1000);
    let running = running(at_address(ED), &published);
    assert!(!passes(&running, &signer).await);
    published.gate.add_permits(1000);
    sleep(Duration::from_secs(2)).await;
    assert!(passes(&running, &signer).await);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_unknown_keys_asks_the_issuer_once() {
    let (old, new) = (Signer::new(ED, "old"), Signer::new(ED, "new"));
    let published = Published::new(&[old.public()]);
    let running = running(at_address(ED), &published);
    assert!(passes(&running, &old).await);
    sleep(COOLED_DOWN).await;
    published.publish(&[new.public()]);
    published.gate.forget_permits(1000);
    let token = bearer(&new.sign(&claims()));
    let callers: Vec<_> = (0..100)
        .map(|_| {
            let (running, token) = (running.clone(), token.clone());
            tokio::spawn(async move { running.authenticate(&token).await.is_ok() })
        })
        .collect();
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(published.calls(), 2);
    published.gate.add_permits(1000);
    for caller in callers {
        assert!(caller.await.unwrap());
    }
    let stranger = Signer::new(ED, "stranger");
    for _ in 0..100 {
        assert!(!passes(&running, &stranger).await);
    }
    assert_eq!(published.calls(), 2);
    for _ in 0..60 {
        sleep(Duration::from_secs(1)).await;
        assert!(!passes(&running, &stranger).await);
    }
    assert!(published.calls() <= 4, "{}", published.calls());
}

fn write(path: &Path, content: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, content).unwrap();
    std::fs::rename(new, path).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_key_file_is_followed_and_its_last_good_content_stays() {
    let (old, new) = (Signer::new(ED, "old"), Signer::new(ED, "new"));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys.json");
    write(&path, &set(&[old.public()]));
    let text = table(ISSUER_URL, ED, "jwks_file = \"keys.json\"");
    let config = AuthConfig::parse(&text, directory.path()).unwrap();
    let running = running(config, &Published::new(&[]));
    assert!(passes(&running, &old).await);
    for broken in ["", "{", "{}", "[]", r#"{"keys":7}"#, &" ".repeat(JWKS_SIZE_MAX + 1)] {
        write(&path, broken);
        sleep(Duration::from_secs(400)).await;
        assert!(passes(&running, &old).await, "{}", broken.len());
    }
    std::fs::remove_file(&path).unwrap();
    sleep(Duration::from_secs(400)).await;
    assert!(passes(&running, &old).await);
    write(&path, &set(&[new.public()]));
    sleep(Duration::from_secs(400)).await;
    assert!(passes(&running, &new).await);
    assert!(!passes(&running, &old).await);
    write(&path, &set(&[old.public()]));
    sleep(Duration::from_secs(6)).await;
    assert!(passes(&running, &old).await);
}

#[test]
fn a_key_file_must_be_good_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let other = Signer::new(Algorithm::ES256, "one");
    let text = table(ISSUER_URL, ED, "jwks_file = \"keys.json\"");
    let start = || {
        let config = AuthConfig::parse(&text, directory.path()).unwrap();
        let fetch: Arc<dyn JwksFetch> = Published::new(&[]);
        let clock = Arc::new(Fixed(at(NOW)));
        Authenticator::with_issuers(config, None, &fetch, clock).err().unwrap()
    };
    assert!(matches!(start(), JwksError::File { .. }));
    for (content, expected) in [
        ("nonsense".to_owned(), "no JSON Web Key Set"),
        (set(&[]), "no EdDSA key"),
        (set(&[other.public()]), "no EdDSA key"),
    ] {
        write(&directory.path().join("keys.json"), &content);
        let error = start().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
