//! A judged URL, taken apart once per endpoint.

use super::{
    EgressGuard, Refusal,
    name::{self, NameKind},
};
use http::{HeaderValue, Uri};
use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
};
use tokio_rustls::rustls::pki_types::ServerName;
use url::{Host, Url};

/// Longest URL looked at: an endpoint's longest, with every character escaped or of four bytes.
const MAX_URL_BYTES: usize = 8 * 1024;

/// Below this, only the two web ports.
const FIRST_FREE_PORT: u16 = 1024;

/// Ports whose owners might take an HTTP request for one of their own commands, or answer it
/// without asking who we are: databases, caches, queues, container and cluster agents, mail,
/// remote shells.
const REFUSED_PORTS: [u16; 44] = [
    1080, 1433, 1521, 1719, 1720, 1723, 1883, 2049, 2181, 2375, 2376, 2377, 2379, 2380, 3306, 3389,
    4045, 4190, 4222, 5060, 5061, 5432, 5433, 5672, 5900, 5984, 6000, 6379, 6380, 6443, 6665, 6666,
    6667, 6668, 6669, 6697, 8500, 9042, 9092, 9200, 9300, 10250, 11211, 27017,
];

/// How to talk to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Plain.
    Http,
    /// TLS.
    Https,
}

/// Where the addresses come from.
#[derive(Clone)]
pub(super) enum Destination {
    /// The URL names it.
    Address(IpAddr),
    /// This machine, as far as the allow list covers it.
    Loopback,
    /// Ask the resolver, for exactly this.
    Name(Box<str>),
}

/// Everything a sender needs of a URL. `Debug` shows neither path nor query: both may carry
/// credentials.
#[derive(Clone)]
pub struct Target {
    pub(super) destination: Destination,
    pub(super) server_name: Option<ServerName<'static>>,
    scheme: Scheme,
    port: u16,
    origin: Arc<str>,
    uri: Uri,
    host_header: HeaderValue,
}

impl Target {
    /// How to talk to it.
    #[must_use]
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Its port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// `https://host:port`. Targets with the same origin may share connections.
    #[must_use]
    pub const fn origin(&self) -> &Arc<str> {
        &self.origin
    }

    /// Path and query, as they stand in the request line.
    #[must_use]
    pub const fn uri(&self) -> &Uri {
        &self.uri
    }

    /// The value of the `Host` header.
    #[must_use]
    pub const fn host_header(&self) -> &HeaderValue {
        &self.host_header
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Target").field(&self.origin).finish()
    }
}

/// A host with its verdict.
struct JudgedHost {
    destination: Destination,
    /// The operator opened it: any port and plain http are fine.
    is_opened: bool,
    /// As in the `Host` header, without port.
    text: String,
    server_name: Option<ServerName<'static>>,
}

/// Only the parsed host is judged, never the text: the parser turns numeric, octal, full-width and
/// escaped spellings into what they mean.
pub(super) fn parse(guard: &EgressGuard, text: &str) -> Result<Target, Refusal> {
    if text.len() > MAX_URL_BYTES {
        return Err(Refusal::Malformed);
    }
    let url = Url::parse(text).map_err(|_| Refusal::Malformed)?;
    let scheme = match url.scheme() {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        _ => return Err(Refusal::Scheme),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Refusal::UserInfo);
    }
    let host = judge_host(guard, url.host().ok_or(Refusal::Malformed)?)?;
    let port = url.port_or_known_default().ok_or(Refusal::Port)?;
    if port == 0 || !(host.is_opened || is_web_port(port)) {
        return Err(Refusal::Port);
    }
    if scheme == Scheme::Http && !(host.is_opened || guard.allow_plain_http) {
        return Err(Refusal::PlainHttp);
    }
    assemble(&url, scheme, host, port)
}

fn assemble(url: &Url, scheme: Scheme, host: JudgedHost, port: u16) -> Result<Target, Refusal> {
    let server_name = match scheme {
        Scheme::Http => None,
        Scheme::Https => Some(host.server_name.ok_or(Refusal::Malformed)?),
    };
    let authority = match url.port() {
        Some(port) => format!("{}:{port}", host.text),
        None => host.text.clone(),
    };
    let request_line = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    Ok(Target {
        destination: host.destination,
        server_name,
        scheme,
        port,
        origin: format!("{}://{}:{port}", url.scheme(), host.text).into(),
        uri: request_line.parse().map_err(|_| Refusal::Malformed)?,
        host_header: authority.parse().map_err(|_| Refusal::Malformed)?,
    })
}

fn judge_host(guard: &EgressGuard, host: Host<&str>) -> Result<JudgedHost, Refusal> {
    match host {
        Host::Domain(name) => judge_name(guard, name.strip_suffix('.').unwrap_or(name)),
        Host::Ipv4(address) => judge_address(guard, address.into(), address.to_string()),
        Host::Ipv6(address) => judge_address(guard, address.into(), format!("[{address}]")),
    }
}

fn judge_address(
    guard: &EgressGuard,
    address: IpAddr,
    text: String,
) -> Result<JudgedHost, Refusal> {
    let dialled = guard.addresses.judge(address).ok_or(Refusal::Address)?;
    Ok(JudgedHost {
        destination: Destination::Address(dialled),
        is_opened: guard.addresses.is_allow_listed(dialled),
        text,
        server_name: Some(ServerName::IpAddress(address.into())),
    })
}

fn judge_name(guard: &EgressGuard, name: &str) -> Result<JudgedHost, Refusal> {
    if !name::is_well_formed(name) {
        return Err(Refusal::Malformed);
    }
    let is_named = guard.names.iter().any(|allowed| allowed.covers(name));
    let destination = match name::kind(name) {
        NameKind::Localhost if guard.loopback_addresses().next().is_some() => Destination::Loopback,
        // What the operator named may live in a search list: ask for it as written.
        NameKind::Special | NameKind::Public if is_named => Destination::Name(name.into()),
        // Absolute, or the resolver would try its search list first.
        NameKind::Public => Destination::Name(format!("{name}.").into()),
        NameKind::Localhost | NameKind::Special => return Err(Refusal::Name),
    };
    Ok(JudgedHost {
        is_opened: is_named || matches!(destination, Destination::Loopback),
        destination,
        text: name.to_owned(),
        server_name: ServerName::try_from(name.to_owned()).ok(),
    })
}

impl EgressGuard {
    /// What `localhost` means here: the loopback addresses that the allow list covers.
    pub(super) fn loopback_addresses(&self) -> impl Iterator<Item = IpAddr> {
        [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)]
            .into_iter()
            .filter(|address| self.addresses.judge(*address).is_some())
    }
}

fn is_web_port(port: u16) -> bool {
    matches!(port, 80 | 443) || (port >= FIRST_FREE_PORT && !REFUSED_PORTS.contains(&port))
}
