//! The guard against hostile URLs and answers.

use super::*;
use async_trait::async_trait;
use std::{
    collections::{HashMap, VecDeque},
    io,
    net::SocketAddr,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{net::TcpListener, time::Instant};
use turnbuckle_domain::{AttemptOutcome, Phase, Unreachable};

/// Long enough for a loopback connection on a busy machine.
const SOON: Duration = Duration::from_secs(5);

/// Answers by script: the next list of addresses each time, the last one again and again. It never
/// answers for a name with an empty script.
#[derive(Default)]
pub(crate) struct ScriptedResolver {
    answers: Mutex<HashMap<String, VecDeque<Vec<IpAddr>>>>,
    pub(crate) asked: AtomicUsize,
}

impl ScriptedResolver {
    pub(crate) fn with(self, name: &str, answers: &[&[&str]]) -> Self {
        let parse = |list: &&[&str]| list.iter().map(|text| text.parse().unwrap()).collect();
        let script = answers.iter().map(parse).collect();
        self.answers.lock().unwrap().insert(name.to_owned(), script);
        self
    }
}

#[async_trait]
impl Resolver for ScriptedResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let answer = match self.answers.lock().unwrap().get_mut(name) {
            None => return Err(io::Error::other("no such name")),
            Some(script) if script.len() > 1 => script.pop_front(),
            Some(script) => script.front().cloned(),
        };
        match answer {
            Some(answer) => Ok(answer),
            None => std::future::pending().await,
        }
    }
}

/// A guard that allows these networks.
pub(crate) fn guard_allowing(networks: &[&str], resolver: ScriptedResolver) -> EgressGuard {
    let allow = EgressPolicy::networks(networks).unwrap();
    EgressGuard::new(EgressPolicy { allow, ..EgressPolicy::default() }, Arc::new(resolver)).unwrap()
}

fn strict() -> EgressGuard {
    guard_allowing(&[], ScriptedResolver::default())
}

const REFUSED: &[(&str, &[&str])] = &[
    (
        "loopback",
        &[
            "http://127.0.0.1/",
            "http://127.1/",
            "http://127.0.1/",
            "http://127.255.255.254/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7f.0.0.1/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://017700000001/",
            "http://0000177.0.0.01/",
            "http://127.0.0.1./",
        ],
    ),
    (
        "unspecified",
        &["http://0/", "http://0.0.0.0/", "http://0.1.2.3/", "http://00000000/", "http://[::]/"],
    ),
    (
        "broadcast",
        &[
            "http://4294967295/",
            "http://255.255.255.255/",
            "http://224.0.0.1/",
            "http://240.0.0.1/",
        ],
    ),
    (
        "unicode",
        &[
            "http://127\u{3002}0\u{3002}0\u{3002}1/",
            "http://\u{2460}\u{2461}\u{2466}.\u{24ea}.\u{24ea}.\u{2460}/",
            "http://\u{ff11}\u{ff12}\u{ff17}.\u{ff10}.\u{ff10}.\u{ff11}/",
            "http://\u{24db}ocalhost/",
            "http://%31%32%37.0.0.1/",
            "http://127%2e0%2e0%2e1/",
        ],
    ),
    (
        "v6-local",
        &[
            "http://[::1]/",
            "http://[0:0:0:0:0:0:0:1]/",
            "http://[fe80::1]/",
            "http://[fe80::1%25eth0]/",
            "http://[fec0::1]/",
            "http://[fc00::1]/",
            "http://[fd12:3456::1]/",
            "http://[ff02::1]/",
            "http://[100::1]/",
            "http://[2001:db8::1]/",
            "http://[3fff::1]/",
        ],
    ),
    (
        "v4-in-v6",
        &[
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[0:0:0:0:0:ffff:a9fe:a9fe]/",
            "http://[::127.0.0.1]/",
            "http://[::ffff:0:127.0.0.1]/",
            "http://[64:ff9b::169.254.169.254]/",
            "http://[64:ff9b:1::a9fe:a9fe]/",
            "http://[2002:7f00:1::]/",
            "http://[2002:a9fe:a9fe::]/",
            "http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",
        ],
    ),
    (
        "private",
        &[
            "http://10.0.0.1/",
            "http://172.16.0.1/",
            "http://172.31.255.255/",
            "http://192.168.1.1/",
            "http://100.64.0.1/",
            "http://198.18.0.1/",
            "http://192.0.0.1/",
            "http://192.0.2.1/",
            "http://198.51.100.1/",
            "http://203.0.113.1/",
        ],
    ),
    (
        "metadata",
        &[
            "http://169.254.169.254/",
            "http://169.254.170.2/",
            "http://100.100.100.200/",
            "http://168.63.129.16/",
            "http://192.0.0.192/",
            "http://[fd00:ec2::254]/",
            "http://[fd20:ce::254]/",
        ],
    ),
    (
        "confusion",
        &[
            "http://user:pass@127.0.0.1/",
            "http://example.com@127.0.0.1/",
            "http:\\\\127.0.0.1\\",
            "http:127.0.0.1/",
            "http:/127.0.0.1/",
            "http:///127.0.0.1/",
            "http://127.0.0.1\n/",
            "http://[::1]:6379/",
        ],
    ),
    (
        "userinfo",
        &[
            "https://user:pass@example.com/",
            "https://token@example.com/",
            "https://127.0.0.1@example.com/",
            "https://example.com%40127.0.0.1/",
        ],
    ),
    (
        "names",
        &[
            "http://localhost/",
            "http://LOCALHOST/",
            "http://localhost./",
            "http://foo.localhost/",
            "http://postgres:5432/",
            "http://kubernetes.default.svc/",
            "http://metadata.google.internal/",
            "http://printer.local/",
            "http://./",
        ],
    ),
    (
        "scheme",
        &[
            "ftp://example.com/",
            "file:///x",
            "gopher://127.0.0.1:6379/_x",
            "javascript:alert(1)",
            "data:text/plain,hi",
            "ws://example.com/",
            "unix:/x.sock",
            "//example.com/",
            "example.com/hook",
        ],
    ),
    (
        "port",
        &[
            "http://example.com:0/",
            "http://example.com:22/",
            "http://example.com:25/",
            "http://example.com:6379/",
            "http://example.com:65536/",
            "http://example.com:80a/",
        ],
    ),
    (
        "malformed",
        &[
            "http://4294967296/",
            "http://256.0.0.1/",
            "http://1.2.3.4.5/",
            "http://127.0.0.08/",
            "http://example.com\0.x/",
            "http://ex ample.com/",
            "http://example..com/",
            "http://.example.com/",
            "http://xn--/",
            "http:///",
        ],
    ),
];

const ALLOWED: &[&str] = &[
    "https://example.com/hook",
    "https://example.com:8443/hook",
    "https://example.com./hook",
    "https://EXAMPLE.com/hook",
    "https://xn--bcher-kva.example/",
    "https://b\u{fc}cher.example/",
    "https://ex_ample.com/",
    "https://1.1.1.1/",
    "https://[2606:4700:4700::1111]/",
    "https://example.com/a%20b?x=%0d%0a#frag",
    "https://example.com/\u{8def}\u{5f84}?q=\u{e9}",
    "http://example.com/hook",
    "https://[::ffff:8.8.8.8]/",
];

/// Names whose answers decide, with what the resolver says each time.
const BY_ANSWER: &[(&str, &[&[&str]])] = &[
    ("127.0.0.1.nip.io", &[&["127.0.0.1"]]),
    ("192.168.1.10.sslip.io", &[&["192.168.1.10"]]),
    ("localtest.me", &[&["127.0.0.1", "::1"]]),
    ("rebind.test", &[&["93.184.216.34"], &["127.0.0.1"]]),
    ("mixed.test", &[&["93.184.216.34", "10.0.0.1"]]),
    ("cname-to-internal.test", &[&["10.1.2.3"]]),
];

#[test]
fn the_tables_hold_every_known_input() {
    let refused: usize = REFUSED.iter().map(|(_, urls)| urls.len()).sum();
    // One allowed by policy only stands in its own test.
    assert_eq!(refused + ALLOWED.len() + BY_ANSWER.len() + 1, 131);
}

#[test]
fn hostile_urls_are_refused_without_the_network() {
    let guard = strict();
    for (group, urls) in REFUSED {
        for url in *urls {
            assert!(guard.check_url(url).is_err(), "{group}: {url:?}");
        }
    }
}

#[test]
fn honest_urls_pass() {
    let guard = strict();
    for url in ALLOWED {
        assert!(guard.check_url(url).is_ok(), "{url:?}: {:?}", guard.check_url(url));
    }
}

#[tokio::test]
async fn hostile_answers_are_refused_after_resolution() {
    for (name, script) in BY_ANSWER {
        let resolver = ScriptedResolver::default().with(&format!("{name}."), script);
        let guard = guard_allowing(&[], resolver);
        let target = guard.check_url(&format!("http://{name}/")).unwrap();
        let mut verdicts = Vec::new();
        for _ in 0..script.len() {
            let answers = guard.resolver.resolve(&format!("{name}.")).await.unwrap();
            verdicts.push(guard.judge_answers(&answers));
        }
        assert_eq!(verdicts.last(), Some(&Err(Refusal::Address)), "{name}");
        let refused = guard.connect(&target, Instant::now() + SOON).await.unwrap_err();
        assert_eq!(refused, ConnectError::Blocked(Refusal::Address), "{name}");
    }
}

#[test]
fn allowed_networks_open_their_addresses_on_any_port_and_nothing_else() {
    let guard = guard_allowing(&["10.0.0.0/8", "127.0.0.0/8"], ScriptedResolver::default());
    for url in [
        "http://10.0.0.1/",
        "http://10.0.0.1:22/",
        "http://[::ffff:10.0.0.1]/",
        "http://localhost:3000/",
        "https://hooks.localhost/",
        "http://127.1:6379/",
    ] {
        assert!(guard.check_url(url).is_ok(), "{url}");
    }
    for url in ["http://192.168.1.1/", "http://[::1]/", "http://10.0.0.1:0/", "http://db/"] {
        assert!(guard.check_url(url).is_err(), "{url}");
    }
    let v6_only = guard_allowing(&["::1"], ScriptedResolver::default());
    assert!(v6_only.check_url("http://localhost/").is_ok());
    assert!(v6_only.check_url("http://127.0.0.1/").is_err());
}

#[test]
fn plain_http_can_be_switched_off_except_for_what_the_operator_opened() {
    let policy = EgressPolicy {
        allow: EgressPolicy::networks(&["10.0.0.0/8"]).unwrap(),
        allow_plain_http: false,
        ..EgressPolicy::default()
    };
    let guard = EgressGuard::new(policy, Arc::new(ScriptedResolver::default())).unwrap();
    assert_eq!(guard.check_url("http://example.com/").unwrap_err(), Refusal::PlainHttp);
    assert!(guard.check_url("https://example.com/").is_ok());
    assert!(guard.check_url("http://10.0.0.1/").is_ok());
}

#[tokio::test]
async fn a_named_local_host_is_asked_as_written_and_its_addresses_are_judged() {
    let policy = EgressPolicy {
        allow_names: vec![AllowedName::parse("receiver").unwrap()],
        ..EgressPolicy::default()
    };
    let resolver = ScriptedResolver::default().with("receiver", &[&["10.0.0.9"]]);
    let guard = EgressGuard::new(policy, Arc::new(resolver)).unwrap();
    assert_eq!(guard.check_url("http://other/").unwrap_err(), Refusal::Name);
    let target = guard.check_url("http://receiver:5432/").unwrap();
    let refused = guard.connect(&target, Instant::now() + SOON).await.unwrap_err();
    assert_eq!(refused, ConnectError::Blocked(Refusal::Address));
}

#[test]
fn extreme_urls_are_refused_or_kept_without_harm() {
    let guard = strict();
    assert!(guard.check_url(&format!("https://{}/", "a".repeat(2_000))).is_err());
    assert!(guard.check_url(&format!("https://example.com/{}", "a".repeat(8 * 1024))).is_err());
    assert!(guard.check_url(&format!("https://example.com/{}", "a".repeat(2_000))).is_ok());
    assert!(guard.check_url(&format!("https://{}.com/", ["a"; 62].join("."))).is_ok());
    let many: Vec<IpAddr> = (0..500).map(|n| IpAddr::from([8, 8, (n / 250) as u8, 1])).collect();
    assert_eq!(guard.judge_answers(&many).unwrap().len(), 500);
}

#[test]
fn a_target_carries_the_request_line_and_host_header() {
    let guard = strict();
    for (url, host, line, origin) in [
        ("https://EXAMPLE.com", "example.com", "/", "https://example.com:443"),
        ("https://example.com./a?b#c", "example.com", "/a?b", "https://example.com:443"),
        ("http://example.com:8080/?", "example.com:8080", "/?", "http://example.com:8080"),
        ("https://example.com:443/x", "example.com", "/x", "https://example.com:443"),
        ("https://[2606::1]:8443/", "[2606::1]:8443", "/", "https://[2606::1]:8443"),
        (
            "https://example.com/\u{8def}?q=\u{e9}|^",
            "example.com",
            "/%E8%B7%AF?q=%C3%A9|^",
            "https://example.com:443",
        ),
    ] {
        let target = guard.check_url(url).unwrap();
        assert_eq!(target.host_header(), host, "{url}");
        assert_eq!(target.uri().to_string(), line, "{url}");
        assert_eq!(&**target.origin(), origin, "{url}");
    }
}

#[test]
fn neither_debug_nor_the_refusal_repeats_the_url() {
    let guard = strict();
    let target = guard.check_url("https://example.com/marker?marker=marker").unwrap();
    assert!(!format!("{target:?}").contains("marker"));
    for url in ["https://marker:marker@example.com/", "https://marker/", "http://10.0.0.77/marker"]
    {
        let policy: &dyn TargetPolicy = &guard;
        let sentence = policy.check_url(url).unwrap_err();
        assert!(!sentence.contains("marker") && !sentence.contains("10.0"), "{sentence}");
    }
}

#[tokio::test]
async fn failures_of_resolution_are_of_the_dns_phase() {
    let resolver =
        ScriptedResolver::default().with("empty.test.", &[&[]]).with("silent.test.", &[]);
    let guard = guard_allowing(&[], resolver);
    let soon = Duration::from_millis(50);
    for (name, expected) in [
        ("nxdomain.test", ConnectError::Failed(Unreachable::Dns)),
        ("empty.test", ConnectError::Failed(Unreachable::Dns)),
        ("silent.test", ConnectError::TimedOut(Phase::Dns)),
    ] {
        let target = guard.check_url(&format!("https://{name}/")).unwrap();
        let error = guard.connect(&target, Instant::now() + soon).await.unwrap_err();
        assert_eq!(error, expected, "{name}");
    }
}

#[tokio::test]
async fn a_target_made_before_a_rule_is_refused_under_it() {
    let before = guard_allowing(&["127.0.0.0/8"], ScriptedResolver::default());
    let target = before.check_url("http://127.0.0.1:9/").unwrap();
    let error = strict().connect(&target, Instant::now() + SOON).await.unwrap_err();
    assert_eq!(AttemptOutcome::from(error), AttemptOutcome::Blocked);
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_refuses() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    // Nothing listens on 127.0.0.2; an IPv6 address without a listener fails the same way.
    let answers: &[&str] = &["::1", "127.0.0.2", "127.0.0.1"];
    let resolver = ScriptedResolver::default().with("hooks.test.", &[answers]);
    let guard = guard_allowing(&["127.0.0.0/8", "::1"], resolver);
    let target = guard.check_url(&format!("http://hooks.test:{port}/")).unwrap();
    let Stream::Plain(stream) = guard.connect(&target, Instant::now() + SOON).await.unwrap() else {
        panic!("http is plain");
    };
    assert_eq!(stream.peer_addr().unwrap(), SocketAddr::from(([127, 0, 0, 1], port)));
    assert!(stream.nodelay().unwrap());
}
