use super::*;
use async_trait::async_trait;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use turnbuckle_domain::{FetchedDocument, SourceId, Timestamp};
use turnbuckle_signing::scheme::preset;

const URL: &str = "https://www.googleapis.com/oauth2/v3/certs";

struct Now;

impl Clock for Now {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_700_000_000_000_000)
    }
}

/// Answers what it is told to, after a while.
struct Web {
    answer: Mutex<Result<FetchedDocument, FetchFault>>,
    asked: AtomicUsize,
    takes: Duration,
}

impl Web {
    fn new(answer: Result<FetchedDocument, FetchFault>, takes: Duration) -> Arc<Self> {
        Arc::new(Self { answer: Mutex::new(answer), asked: AtomicUsize::new(0), takes })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn says(&self, answer: Result<FetchedDocument, FetchFault>) {
        *self.answer.lock().unwrap() = answer;
    }
}

#[async_trait]
impl DocumentFetch for Web {
    async fn fetch(
        &self,
        _url: &str,
        _max_bytes: usize,
        _timeout: Duration,
    ) -> Result<FetchedDocument, FetchFault> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(self.takes).await;
        self.answer.lock().unwrap().clone()
    }
}

/// A modulus of 2048 bits; nobody signs with it here.
fn set(kids: &[&str]) -> Result<FetchedDocument, FetchFault> {
    let modulus = data_encoding::BASE64URL_NOPAD.encode(&[0xc3; 256]);
    let key = |kid: &&str| {
        format!(r#"{{"kid":"{kid}","kty":"RSA","alg":"RS256","n":"{modulus}","e":"AQAB"}}"#)
    };
    let keys: Vec<String> = kids.iter().map(key).collect();
    let body = format!(r#"{{"keys":[{}]}}"#, keys.join(",")).into_bytes();
    Ok(FetchedDocument { body, max_age: None })
}

fn wanted(kid: &str) -> WantedKey {
    WantedKey::KeySet { url: URL.to_owned(), key_id: kid.to_owned() }
}

fn verifier() -> Verifier {
    Verifier::new(preset("google-pubsub").unwrap().scheme.clone()).unwrap()
}

fn keys(web: &Arc<Web>) -> Arc<FetchedKeys> {
    let fetch: Arc<dyn DocumentFetch> = Arc::<Web>::clone(web);
    Arc::new(FetchedKeys::new(fetch, Vec::new(), Arc::new(Now)))
}

fn source(number: u128) -> SourceId {
    SourceId::from_uuid(uuid::Uuid::from_u128(number))
}

async fn ask(keys: &FetchedKeys, kid: &str) -> Result<Arc<SchemeKey>, NoKey> {
    keys.key(source(1), &verifier(), &wanted(kid)).await
}

#[tokio::test(start_paused = true)]
async fn a_hundred_requests_at_once_cost_one_fetch_and_later_ones_none() {
    let web = Web::new(set(&["a"]), Duration::from_millis(200));
    let keys = keys(&web);
    let asking: Vec<_> = (0..100)
        .map(|_| {
            let keys = Arc::clone(&keys);
            tokio::spawn(async move { ask(&keys, "a").await.is_ok() })
        })
        .collect();
    for asked in asking {
        assert!(asked.await.unwrap());
    }
    assert!(ask(&keys, "a").await.is_ok());
    assert_eq!(web.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_name_is_asked_for_once_in_a_while_and_a_new_one_is_found() {
    let web = Web::new(set(&["a"]), Duration::from_millis(1));
    let keys = keys(&web);
    assert!(ask(&keys, "a").await.is_ok());
    let unknown = Err(NoKey::Refused(Refusal::UnknownKey));
    for _ in 0..50 {
        assert_eq!(ask(&keys, "b").await.map(drop), unknown);
    }
    assert_eq!(web.asked(), 1);
    web.says(set(&["a", "b"]));
    tokio::time::advance(Duration::from_secs(31)).await;
    assert!(ask(&keys, "b").await.is_ok());
    assert_eq!(web.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_last_good_document_is_used_while_its_owner_is_away() {
    let web = Web::new(set(&["a"]), Duration::from_millis(1));
    let keys = keys(&web);
    assert!(ask(&keys, "a").await.is_ok());
    web.says(Err(FetchFault::Unreachable("no route".to_owned())));
    tokio::time::advance(Duration::from_secs(2 * 3600)).await;
    assert!(ask(&keys, "a").await.is_ok());
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(web.asked(), 2);
    assert!(ask(&keys, "a").await.is_ok());
    // Not for ever: a withdrawn key must go.
    tokio::time::advance(Duration::from_secs(48 * 3600)).await;
    assert!(matches!(ask(&keys, "a").await, Err(NoKey::Unavailable(_))));
}

#[tokio::test(start_paused = true)]
async fn what_failed_is_not_asked_for_again_at_once() {
    let web = Web::new(Err(FetchFault::Answer("the answer is 404".to_owned())), Duration::ZERO);
    let keys = keys(&web);
    for _ in 0..20 {
        assert_eq!(ask(&keys, "a").await.map(drop), Err(NoKey::Refused(Refusal::UnknownKey)));
    }
    assert_eq!(web.asked(), 1);
    tokio::time::advance(Duration::from_secs(31)).await;
    assert!(ask(&keys, "a").await.is_err());
    assert_eq!(web.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_slow_fetch_goes_on_after_its_request_was_told_to_come_again() {
    let web = Web::new(set(&["a"]), Duration::from_secs(3));
    let keys = keys(&web);
    let began = Instant::now();
    assert!(matches!(ask(&keys, "a").await, Err(NoKey::Unavailable(_))));
    assert!(began.elapsed() < Duration::from_millis(700));
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(ask(&keys, "a").await.is_ok());
    assert_eq!(web.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_source_cannot_have_any_number_of_addresses_fetched() {
    let web = Web::new(Err(FetchFault::Answer("the answer is 404".to_owned())), Duration::ZERO);
    let keys = keys(&web);
    let named = |number: usize| WantedKey::KeySet {
        url: format!("https://www.googleapis.com/{number}"),
        key_id: "a".to_owned(),
    };
    let mut told_to_wait = 0;
    for number in 0..100 {
        let answer = keys.key(source(1), &verifier(), &named(number)).await;
        told_to_wait += usize::from(matches!(answer, Err(NoKey::Unavailable(_))));
    }
    assert_eq!((web.asked(), told_to_wait), (20, 80));
    // Another source goes on.
    web.says(set(&["a"]));
    assert!(keys.key(source(2), &verifier(), &named(1000)).await.is_ok());
}
