use super::*;
use bytes::Bytes;
use http::{
    Request,
    header::{AUTHORIZATION, CACHE_CONTROL},
};
use http_body_util::Full;
use hyper::{Response, server::conn::http1 as server, service::service_fn};
use hyper_util::rt::TokioIo;
use std::{convert::Infallible, net::SocketAddr};
use tokio::net::TcpListener;
use turnbuckle_delivery::egress::{EgressPolicy, SystemResolver};

/// An issuer's web server, for one path each.
async fn issuer() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(
                server::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)),
            );
        }
    });
    address
}

async fn answer(
    request: Request<hyper::body::Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let authorization = request.headers().get(AUTHORIZATION).cloned();
    let (status, body) = match request.uri().path() {
        "/jwks?x" | "/jwks" => (200, b"{\"keys\":[]}".to_vec()),
        "/who" => (200, authorization.map(|value| value.as_bytes().to_vec()).unwrap_or_default()),
        "/largest" => (200, vec![b' '; JWKS_SIZE_MAX]),
        "/too-large" => (200, vec![b' '; JWKS_SIZE_MAX + 1]),
        "/moved" => (302, Vec::new()),
        _ => (500, Vec::new()),
    };
    let response = Response::builder()
        .status(status)
        .header(CACHE_CONTROL, "max-age=600")
        .header("location", "/jwks");
    Ok(response.body(Full::new(body.into())).unwrap())
}

fn fetcher(allow: &[&str]) -> GuardedFetch {
    let policy =
        EgressPolicy { allow: EgressPolicy::networks(allow).unwrap(), ..EgressPolicy::default() };
    GuardedFetch(Arc::new(EgressGuard::new(policy, Arc::new(SystemResolver)).unwrap()))
}

async fn fetch(
    fetcher: &GuardedFetch,
    address: SocketAddr,
    path: &str,
) -> Result<JwksAnswer, JwksFetchError> {
    let authorization = Some(HeaderValue::from_static("Bearer mine"));
    fetcher
        .fetch(JwksRequest { url: format!("http://{address}{path}").into(), authorization })
        .await
}

#[tokio::test]
async fn keys_are_fetched_with_their_age_and_the_token() {
    let (address, fetcher) = (issuer().await, fetcher(&["127.0.0.1/32"]));
    let answer = fetch(&fetcher, address, "/jwks").await.unwrap();
    assert_eq!(answer.body, b"{\"keys\":[]}");
    assert_eq!(answer.cache_control.as_deref(), Some("max-age=600"));
    assert_eq!(fetch(&fetcher, address, "/who").await.unwrap().body, b"Bearer mine");
}

#[tokio::test]
async fn failures_redirects_and_large_answers_do_not_count() {
    let (address, fetcher) = (issuer().await, fetcher(&["127.0.0.1/32"]));
    assert!(fetch(&fetcher, address, "/largest").await.is_ok());
    for (path, expected) in [("/moved", "302"), ("/broken", "500"), ("/too-large", "body")] {
        let error = fetch(&fetcher, address, path).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[tokio::test]
async fn the_guard_decides_where_keys_may_be() {
    let address = issuer().await;
    let error = fetch(&fetcher(&[]), address, "/jwks").await.unwrap_err();
    assert!(error.to_string().contains("not at a public address"), "{error}");
}

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    args: ServeArgs,
}

/// Opens with a configuration that names this address of keys.
fn opened(url: &str, options: &[&str]) -> (anyhow::Result<()>, bool) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("auth.toml");
    let text = format!(
        "[[issuers]]\nissuer = \"https://one\"\naudiences = [\"a\"]\nalgorithm = \"ES256\"\n\
         jwks_url = \"{url}\"\n"
    );
    std::fs::write(&file, text).unwrap();
    let fixed = ["serve", "--data-dir", directory.path().to_str().unwrap(), "--auth-config"];
    let line = fixed.into_iter().chain([file.to_str().unwrap()]).chain(options.iter().copied());
    let args = <Line as clap::Parser>::try_parse_from(line).unwrap().args;
    let secrets = crate::secrets::Secrets::load(&args, true).unwrap();
    let takes_own = secrets.token_key.is_some();
    let guard = Arc::new(super::super::egress_guard(&args).unwrap());
    let clock: Arc<dyn Clock> = Arc::new(turnbuckle_runtime::SystemClock);
    (open(&args, secrets.token_key, &guard, &clock).map(drop), takes_own)
}

#[test]
fn configured_issuers_replace_the_token_key_unless_it_is_named() {
    let (outcome, takes_own) = opened("https://issuer.example.com/jwks", &[]);
    outcome.unwrap();
    assert!(!takes_own);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token.key");
    TokenKey::create(&path).unwrap();
    let named = ["--token-key-file", path.to_str().unwrap()];
    let (outcome, takes_own) = opened("https://issuer.example.com/jwks", &named);
    outcome.unwrap();
    assert!(takes_own);
}

#[test]
fn an_address_that_the_guard_refuses_stops_the_start_and_names_the_remedy() {
    let (outcome, _) = opened("https://kubernetes.default.svc/openid/v1/jwks", &[]);
    let said = format!("{:#}", outcome.unwrap_err());
    assert!(said.contains("--allow-egress-host") && said.contains("local name"), "{said}");
    let opens = ["--allow-egress-host", "kubernetes.default.svc"];
    opened("https://kubernetes.default.svc/openid/v1/jwks", &opens).0.unwrap();
}
