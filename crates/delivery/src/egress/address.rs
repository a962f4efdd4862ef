//! Which addresses may be dialled.

use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Not globally reachable, or not a receiver: the IANA special-purpose registry plus multicast.
const REFUSED_V4: [(Ipv4Addr, u32); 18] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 31, 196, 0), 24),
    (Ipv4Addr::new(192, 52, 193, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(192, 175, 48, 0), 24),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// The only part of IPv6 that is routed globally.
const GLOBAL_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Parts of it that are not: protocol assignments (Teredo, ORCHID, benchmarks), documentation,
/// 6to4, documentation again, AS112.
const REFUSED_V6: [(Ipv6Addr, u32); 5] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
    (Ipv6Addr::new(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0), 48),
];

/// Where clouds answer with credentials. A range in the allow list must not open these by
/// accident: only an entry for the single address does. All of link-local counts, because every
/// cloud picks its own addresses in there.
const EXACT_ONLY_V4: [(Ipv4Addr, u32); 4] = [
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(100, 100, 100, 200), 32),
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    (Ipv4Addr::new(192, 0, 0, 192), 32),
];

/// The same for IPv6, and all forms that carry an IPv4 address inside, which a range such as
/// `::/0` would open together with whatever they carry.
const EXACT_ONLY_V6: [(Ipv6Addr, u32); 8] = [
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0, 0, 0), 96),
    (Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0), 96),
    (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
];

/// The well-known prefix of NAT64: an IPv4 address in the last 32 bits.
const NAT64: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// The operator's lists on top of the rules above.
pub(super) struct AddressRules {
    allow: Vec<IpNet>,
    deny: Vec<IpNet>,
    nat64: bool,
}

impl AddressRules {
    pub(super) const fn new(allow: Vec<IpNet>, deny: Vec<IpNet>, nat64: bool) -> Self {
        Self { allow, deny, nat64 }
    }

    /// The address to dial, in its plain form, or none when it is refused.
    pub(super) fn judge(&self, address: IpAddr) -> Option<IpAddr> {
        // `::ffff:a.b.c.d` reaches a.b.c.d: judged as that and dialled as that.
        let address = address.to_canonical();
        if self.deny.iter().any(|network| network.contains(&address)) {
            return None;
        }
        if let Some(inside) = nat64_inside(address) {
            return (self.nat64 && self.judge(inside).is_some()).then_some(address);
        }
        (self.is_allow_listed(address) || is_public(address)).then_some(address)
    }

    /// Whether the operator opened this address.
    pub(super) fn is_allow_listed(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let exact_only = is_exact_only(address);
        self.allow.iter().any(|network| {
            let is_single = network.prefix_len() == network.max_prefix_len();
            network.contains(&address) && (is_single || !exact_only)
        })
    }
}

fn nat64_inside(address: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(address) = address else {
        return None;
    };
    let [.., a, b, c, d] = address.octets();
    within_v6(address, NAT64).then(|| Ipv4Addr::new(a, b, c, d).into())
}

fn is_public(address: IpAddr) -> bool {
    if is_exact_only(address) {
        return false;
    }
    match address {
        IpAddr::V4(address) => !REFUSED_V4.iter().any(|net| within_v4(address, *net)),
        IpAddr::V6(address) => {
            within_v6(address, GLOBAL_V6) && !REFUSED_V6.iter().any(|net| within_v6(address, *net))
        }
    }
}

fn is_exact_only(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => EXACT_ONLY_V4.iter().any(|net| within_v4(address, *net)),
        IpAddr::V6(Ipv6Addr::LOCALHOST) => false,
        IpAddr::V6(address) => EXACT_ONLY_V6.iter().any(|net| within_v6(address, *net)),
    }
}

const fn within_v4(address: Ipv4Addr, (network, bits): (Ipv4Addr, u32)) -> bool {
    (address.to_bits() ^ network.to_bits()).leading_zeros() >= bits
}

const fn within_v6(address: Ipv6Addr, (network, bits): (Ipv6Addr, u32)) -> bool {
    (address.to_bits() ^ network.to_bits()).leading_zeros() >= bits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allow: &[&str], deny: &[&str]) -> AddressRules {
        let parse = |list: &[&str]| list.iter().map(|net| net.parse().unwrap()).collect();
        AddressRules::new(parse(allow), parse(deny), false)
    }

    fn opens(rules: &AddressRules, address: &str) -> bool {
        rules.judge(address.parse().unwrap()).is_some()
    }

    #[test]
    fn refused_ranges_end_where_they_should() {
        let none = rules(&[], &[]);
        for public in ["9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "172.15.0.1"] {
            assert!(opens(&none, public), "{public}");
        }
        for public in ["172.32.0.0", "198.20.0.0", "223.255.255.255", "2001:200::1", "2606::1"] {
            assert!(opens(&none, public), "{public}");
        }
        for refused in ["100.127.255.255", "198.19.255.255", "239.1.1.1", "4000::1", "1fff::1"] {
            assert!(!opens(&none, refused), "{refused}");
        }
    }

    #[test]
    fn a_range_opens_no_metadata_address_but_its_exact_name_does() {
        let everything = rules(&["0.0.0.0/0", "::/0"], &[]);
        for metadata in [
            "169.254.169.254",
            "169.254.170.2",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "fd00:ec2::254",
            "fd20:ce::254",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::",
            "::169.254.169.254",
            "::ffff:0:169.254.169.254",
        ] {
            assert!(!opens(&everything, metadata), "{metadata}");
        }
        assert!(opens(&everything, "10.0.0.1") && opens(&everything, "::1"));
        assert!(opens(&rules(&["169.254.169.254/32"], &[]), "::ffff:169.254.169.254"));
        assert!(opens(&rules(&["fd00:ec2::254/128"], &[]), "fd00:ec2::254"));
    }

    #[test]
    fn the_deny_list_wins_over_the_allow_list_and_public_addresses() {
        let rules = rules(&["10.0.0.0/8"], &["10.1.0.0/16", "8.8.8.8/32"]);
        assert!(opens(&rules, "10.0.0.1"));
        assert!(!opens(&rules, "10.1.0.1"));
        assert!(!opens(&rules, "::ffff:8.8.8.8"));
    }

    #[test]
    fn nat64_is_judged_by_the_address_inside_when_the_network_has_it() {
        let mut rules = rules(&[], &[]);
        assert!(!opens(&rules, "64:ff9b::808:808"));
        rules.nat64 = true;
        assert!(opens(&rules, "64:ff9b::808:808"));
        assert!(!opens(&rules, "64:ff9b::a00:1"));
        assert!(!opens(&rules, "64:ff9b:1::808:808"));
    }
}
