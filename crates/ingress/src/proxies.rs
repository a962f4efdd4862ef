//! Whose address a request comes from, when there are proxies in between.

use http::HeaderMap;
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};

/// What proxies write the addresses into that they took a request from, each at the end.
const FORWARDED_FOR: &str = "x-forwarded-for";
/// Proxies passed on the way from the connection to the sender: more are in no chain that anybody runs,
/// and the header is as long as a stranger likes.
const HOPS_MAX: usize = 16;

/// Networks of proxies whose `X-Forwarded-For` is believed. The default believes nobody.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Networks in the notation of CIDR, or single addresses.
    ///
    /// # Errors
    /// The text that is neither.
    pub fn parse(networks: &[String]) -> Result<Self, String> {
        let network = |text: &String| {
            let text = text.trim();
            let parsed = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
            parsed.map_err(|_| {
                format!("{text:?} is no network such as 10.2.0.0/16 and no address: correct it")
            })
        };
        Ok(Self(networks.iter().map(network).collect::<Result<_, _>>()?))
    }

    /// Whether this is one of them.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The address of the sender: that of the connection, and behind trusted proxies the last one in
    /// their header that is none of them. What stands before that was written by strangers.
    pub(crate) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer;
        if self.0.is_empty() || !self.has(peer) {
            return client;
        }
        let lines: Vec<_> = headers.get_all(FORWARDED_FOR).iter().collect();
        let hops = lines.iter().rev().flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
        for hop in hops.take(HOPS_MAX) {
            // Something unreadable was not written by a proxy of ours: the last one that was counts.
            let Some(address) = std::str::from_utf8(hop).ok().and_then(address) else { break };
            client = address;
            if !self.has(address) {
                break;
            }
        }
        client
    }
}

/// An address, which some proxies write with a port.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let plain = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = plain.parse().ok();
    address.or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: &str, lines: &[&str]) -> String {
        let trusted = ["10.0.0.0/8", "192.0.2.7", "fd00::/8"].map(str::to_owned);
        let proxies = TrustedProxies::parse(&trusted).unwrap();
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED_FOR, line.parse().unwrap());
        }
        proxies.client(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn the_last_address_that_is_no_proxy_of_ours_counts() {
        for (peer, lines, expected) in [
            ("10.1.1.1", vec!["203.0.113.9"], "203.0.113.9"),
            ("10.1.1.1", vec!["198.51.100.1, 203.0.113.9"], "203.0.113.9"),
            ("10.1.1.1", vec!["198.51.100.1, 203.0.113.9, 10.2.2.2,192.0.2.7"], "203.0.113.9"),
            ("10.1.1.1", vec!["198.51.100.1", "203.0.113.9, 10.2.2.2"], "203.0.113.9"),
            ("::ffff:10.1.1.1", vec!["203.0.113.9:4711"], "203.0.113.9"),
            ("fd00::1", vec!["[2001:db8::9]:443"], "2001:db8::9"),
            ("fd00::1", vec!["[2001:db8::9]"], "2001:db8::9"),
            // Nothing, or nonsense: the proxy itself, and never what a stranger wrote before it.
            ("10.1.1.1", vec![], "10.1.1.1"),
            ("10.1.1.1", vec!["203.0.113.9, unknown"], "10.1.1.1"),
            ("10.1.1.1", vec!["203.0.113.9, nonsense, 10.2.2.2"], "10.2.2.2"),
            // A stranger's word is not believed.
            ("203.0.113.9", vec!["10.1.1.1, 198.51.100.1"], "203.0.113.9"),
        ] {
            assert_eq!(client(peer, &lines), expected, "{peer} {lines:?}");
        }
    }

    #[test]
    fn nobody_is_believed_unless_named() {
        let mut headers = HeaderMap::new();
        headers.append(FORWARDED_FOR, "203.0.113.9".parse().unwrap());
        let peer = "127.0.0.1".parse().unwrap();
        assert_eq!(TrustedProxies::default().client(peer, &headers), peer);
        assert!(TrustedProxies::parse(&["10.0.0.0/33".to_owned()]).is_err());
    }
}
