//! Which of the addresses that a name resolves to may be connected to: public ones, and those that
//! were granted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// Why no address of a name may be connected to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AddressError {
    /// The name has no address at all.
    #[error(
        "the name {name:?} resolved to no address; check its spelling and that the host's DNS \
         knows it"
    )]
    None {
        /// The name that was asked for.
        name: String,
    },
    /// The name leads to an address that is neither public nor granted, and to none that could be
    /// used.
    #[error(
        "the name {name:?} resolves to {address}, which is {reason}, and the grant allows public \
         addresses only; if this is meant, an operator types `memhost binding grant NAME --http \
         ORIGIN --private-range {grant}`"
    )]
    Special {
        /// The name that was asked for.
        name: String,
        /// The first address that is refused.
        address: IpAddr,
        /// Why it is not a public address.
        reason: &'static str,
        /// The smallest range that would allow it.
        grant: IpNet,
    },
    /// Usable addresses and refused ones come from the same name, as in a DNS rebinding attempt.
    #[error(
        "the name {name:?} resolves to {usable} and also to {address}, which is {reason}; such an \
         answer looks like DNS \
         rebinding, so all of it is refused; correct the DNS records, or grant the address range \
         `{grant}` if this is meant"
    )]
    Mixed {
        /// The name that was asked for.
        name: String,
        /// The first address that could have been used.
        usable: IpAddr,
        /// The first address that is refused.
        address: IpAddr,
        /// Why it is not a public address.
        reason: &'static str,
        /// The smallest range that would allow it.
        grant: IpNet,
    },
}

/// The reason why an address is not a public one, or `None` for a public one. An IPv6 address that
/// carries an IPv4 address is judged by that one, except where the carrier (6to4, Teredo, local
/// NAT64) is never public itself.
pub(super) fn special(ip: IpAddr) -> Option<&'static str> {
    match ip {
        IpAddr::V4(ip) => special_v4(ip),
        IpAddr::V6(ip) => special_v6(ip),
    }
}

/// The first address, if every one of them is public or lies within an allowed range. An IPv4
/// address that is mapped into IPv6 is compared in both forms. Connect to exactly this address:
/// resolving again may answer another one.
///
/// # Errors
/// Where there is no address, or where any of them is neither public nor allowed.
pub(super) fn choose(
    name: &str,
    resolved: &[IpAddr],
    allowed_ranges: &[IpNet],
) -> Result<IpAddr, AddressError> {
    let allowed = |ip: IpAddr| {
        let canonical = ip.to_canonical();
        allowed_ranges.iter().any(|range| range.contains(&ip) || range.contains(&canonical))
    };
    let refused = |ip: IpAddr| special(ip).filter(|_| !allowed(ip));
    let usable = resolved.iter().copied().find(|&ip| refused(ip).is_none());
    let bad = resolved.iter().copied().find_map(|ip| refused(ip).map(|reason| (ip, reason)));
    let name = || name.to_owned();
    match (usable, bad) {
        (Some(ip), None) => Ok(ip),
        (None, None) => Err(AddressError::None { name: name() }),
        (None, Some((address, reason))) => Err(AddressError::Special {
            name: name(),
            address,
            reason,
            grant: address.to_canonical().into(),
        }),
        (Some(usable), Some((address, reason))) => Err(AddressError::Mixed {
            name: name(),
            usable,
            address,
            reason,
            grant: address.to_canonical().into(),
        }),
    }
}

fn special_v4(ip: Ipv4Addr) -> Option<&'static str> {
    Some(match ip.octets() {
        [0, 0, 0, 0] => "unspecified",
        [0, ..] => "this network (0.0.0.0/8)",
        [127, ..] => "loopback",
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => "private",
        [100, 64..=127, ..] => "shared (carrier-grade NAT)",
        [169, 254, 169, 254] => "link-local (cloud metadata)",
        [169, 254, ..] => "link-local",
        // The only metadata service with an address out of a public range: every Azure machine sees
        // its host here.
        [168, 63, 129, 16] => "the Azure platform's own (cloud metadata)",
        [192, 0, 0, _] => "reserved for protocol assignments",
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => "documentation",
        [192, 88, 99, _] => "6to4 relay",
        [198, 18..=19, ..] => "benchmarking",
        [255, 255, 255, 255] => "broadcast",
        [224..=239, ..] => "multicast",
        [240..=255, ..] => "reserved (240.0.0.0/4)",
        _ => return None,
    })
}

fn special_v6(ip: Ipv6Addr) -> Option<&'static str> {
    Some(match ip.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => "unspecified",
        [0, 0, 0, 0, 0, 0, 0, 1] => "loopback",
        // Mapped and NAT64 addresses: the IPv4 address is in the last 32 bits.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            return special_v4(Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low)));
        }
        // Each network chooses for itself where in this prefix the IPv4 address is, so no reading
        // of it is safe.
        [0x64, 0xff9b, 1, ..] => "local NAT64",
        [0x100, 0, 0, 0 | 1, ..] => "discard",
        [0x2001, 0, ..] => "Teredo",
        [0x2001, 2, 0, ..] => "benchmarking",
        [0x2001, 0..=0x1ff, ..] => "reserved for protocol assignments",
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => "documentation",
        [0x2002, ..] => "6to4",
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] => "unique local (cloud metadata)",
        [0xfc00..=0xfdff, ..] => "unique local",
        [0xfe80..=0xfebf, ..] => "link-local",
        [0xfec0..=0xfeff, ..] => "site-local",
        [0xff00..=0xffff, ..] => "multicast",
        [0x2000..=0x3fff, ..] => return None,
        _ => "outside of global unicast (2000::/3)",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ips(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn nets(texts: &[&str]) -> Vec<IpNet> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn special_addresses_have_a_reason() {
        for (reason, addresses) in [
            ("unspecified", "0.0.0.0 :: ::ffff:0.0.0.0"),
            ("this network", "0.1.2.3 0.255.255.255"),
            ("loopback", "127.0.0.1 127.255.255.255 ::1 ::ffff:127.0.0.1 64:ff9b::7f00:1"),
            (
                "private",
                "10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.1 64:ff9b::10.0.0.1 \
                 ::ffff:10.1.2.3",
            ),
            ("shared", "100.64.0.0 100.127.255.255"),
            (
                "link-local (cloud metadata)",
                "169.254.169.254 ::ffff:169.254.169.254 64:ff9b::a9fe:a9fe",
            ),
            ("link-local", "169.254.0.1 fe80::1 febf::1"),
            ("Azure", "168.63.129.16"),
            ("multicast", "224.0.0.1 239.255.255.255 ff02::1"),
            ("broadcast", "255.255.255.255"),
            (
                "documentation",
                "192.0.2.1 198.51.100.1 203.0.113.1 2001:db8::1 3fff::1 3fff:fff:ffff::1",
            ),
            ("benchmarking", "198.18.0.0 198.19.255.255 2001:2::1"),
            ("protocol assignments", "192.0.0.1 192.0.0.255 2001:1::1 2001:1ff::1"),
            ("reserved (240.0.0.0/4)", "240.0.0.1 255.255.255.254"),
            ("6to4", "2002:808:808::1 192.88.99.1"),
            ("Teredo", "2001:0:808:808::1"),
            ("local NAT64", "64:ff9b:1::1 64:ff9b:1:808:8:800::"),
            ("discard", "100::1 100::ffff:ffff:ffff:ffff"),
            ("unique local (cloud metadata)", "fd00:ec2::254"),
            ("unique local", "fc00::1 fd12:3456::1"),
            ("site-local", "fec0::1 feff::1"),
            (
                "outside of global unicast",
                "::5 ::127.0.0.1 ::1.1.1.1 ::ffff:0:127.0.0.1 4000::1 5f00::1 64:ff9b:2::1 ::1:0:0 \
                 100:0:0:2::1",
            ),
        ] {
            for ip in ips(&addresses.split(' ').collect::<Vec<_>>()) {
                assert!(
                    special(ip).is_some_and(|found| found.contains(reason)),
                    "{ip}: {:?}, not {reason}",
                    special(ip)
                );
            }
        }
    }

    #[test]
    fn public_addresses_have_none() {
        for ip in ips(&[
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.0.1",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.0.1",
            "198.17.0.1",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:200::1",
            "2003::1",
            "3fff:1000::1",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
        ]) {
            assert_eq!(special(ip), None, "{ip}");
        }
    }

    #[test]
    fn the_first_address_is_chosen_where_all_are_allowed() {
        let public = ips(&["1.1.1.1", "2606:4700::1111"]);
        assert_eq!(choose("a.example", &public, &[]), Ok(public[0]));
        let private = ips(&["10.0.0.5", "1.1.1.1"]);
        assert_eq!(choose("a.example", &private, &nets(&["10.0.0.0/8"])), Ok(private[0]));
        let mapped = ips(&["::ffff:10.0.0.5"]);
        assert_eq!(choose("a.example", &mapped, &nets(&["10.0.0.0/8"])), Ok(mapped[0]));
        assert_eq!(choose("a.example", &mapped, &nets(&["::ffff:10.0.0.0/104"])), Ok(mapped[0]));
        assert!(choose("a.example", &ips(&["64:ff9b::10.0.0.5"]), &nets(&["10.0.0.0/8"])).is_err());
    }

    #[test]
    fn refusals_say_what_to_do() {
        for (resolved, allowed, parts) in [
            (vec![], vec![], vec!["\"a.example\"", "no address"]),
            (
                vec!["10.0.0.5"],
                vec!["10.0.0.0/30"],
                vec!["\"a.example\"", "10.0.0.5", "private", " 10.0.0.5/32`"],
            ),
            (
                vec!["::ffff:127.0.0.1"],
                vec![],
                vec!["::ffff:127.0.0.1", "loopback", " 127.0.0.1/32`"],
            ),
            (vec!["fd00:ec2::254"], vec![], vec!["cloud metadata", " fd00:ec2::254/128`"]),
            (
                vec!["1.1.1.1", "127.0.0.1", "::1"],
                vec![],
                vec!["1.1.1.1", "127.0.0.1, which", "rebinding"],
            ),
            (
                vec!["10.0.0.5", "127.0.0.1"],
                vec!["10.0.0.0/8"],
                vec!["rebinding", "`127.0.0.1/32`"],
            ),
        ] {
            let error =
                choose("a.example", &ips(&resolved), &nets(&allowed)).unwrap_err().to_string();
            for part in parts {
                assert!(error.contains(part), "{error} does not hold {part}");
            }
        }
    }

    proptest! {
        #[test]
        fn nothing_special_is_chosen_without_a_grant(v4: Vec<u32>, v6: Vec<u128>) {
            let mut resolved: Vec<IpAddr> =
                v4.into_iter().map(|bits| Ipv4Addr::from_bits(bits).into()).collect();
            resolved.extend(v6.into_iter().map(|bits| IpAddr::from(Ipv6Addr::from_bits(bits))));
            let all_public = !resolved.is_empty() && resolved.iter().all(
                |&ip| special(ip).is_none()
            );
            prop_assert_eq!(choose("a.example", &resolved, &[]).is_ok(), all_public);
        }

        #[test]
        fn a_mapped_address_is_judged_as_itself(bits: u32) {
            let ip = Ipv4Addr::from_bits(bits);
            prop_assert_eq!(special(ip.to_ipv6_mapped().into()), special(ip.into()));
        }
    }
}
