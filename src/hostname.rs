//! Host names that are put into URLs: only such as every URL parser leaves as they are, and what kind of place
//! they name. Addresses of peers come out of a bucket, so this is the gate before any request.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where clouds keep their metadata beside the link-local address: Alibaba's, Oracle's, Azure's.
const METADATA_V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(168, 63, 129, 16),
];

/// The same over IPv6: Google's, Scaleway's, Oracle's, Linode's.
const METADATA_V6: [Ipv6Addr; 4] = [
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42),
    Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
    Ipv6Addr::new(0xfd00, 0xa9fe, 0xa9fe, 0, 0, 0, 0, 1),
];

/// What AWS keeps for its own services beside a machine: metadata, the credentials of a pod, DNS, time.
const AWS_V6: [u16; 2] = [0xfd00, 0xec2];

/// Names of this very machine: in the hosts files of Debian, Fedora, SUSE and AIX, and those that systemd answers. Others below
/// `.localdomain` may be other machines: routers give that domain to whole networks.
const HERE: [&str; 13] = [
    "localhost",
    "localhost.localdomain",
    "localhost4",
    "localhost4.localdomain4",
    "localhost6",
    "localhost6.localdomain6",
    "ip6-localhost",
    "ip6-loopback",
    "ipv6-localhost",
    "ipv6-loopback",
    "loopback",
    "_localdnsstub",
    "_localdnsproxy",
];

/// What names of this very machine end in.
const HERE_BELOW: [&str; 2] = [".localhost", ".localhost.localdomain"];

/// The names of metadata: Google's, AWS's, Azure's, Tencent's, IBM's, Exoscale's.
const METADATA_NAMES: [&str; 9] = [
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "instance-data",
    "instance-data.ec2.internal",
    "metadata.azure.internal",
    "metadata.tencentyun.com",
    "api.metadata.cloud.ibm.com",
    "metadata.exoscale.com",
];

/// A host without port, as it stands in a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hostname(String);

impl Hostname {
    /// Takes letters, digits, dashes, underscores and dots, or an IP address (IPv6 in brackets), in the one
    /// spelling that a URL parser does not rewrite.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let ip: Ipv6Addr = inner.parse().ok()?;
            return Some(Self(in_brackets(ip)));
        }
        let host = text.to_ascii_lowercase();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        let labels_ok = host.split('.').all(|label| !label.is_empty() && label.bytes().all(plain));
        // A URL parser takes such a host for an IPv4 address: 127.1 and 0x7f000001 are 127.0.0.1.
        let last = host.rsplit('.').next().unwrap_or_default();
        let numeric = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
        let readable = labels_ok && host.len() <= 253;
        (readable && (!numeric || host.parse::<Ipv4Addr>().is_ok())).then_some(Self(host))
    }

    /// Splits `host` or `host:port`.
    pub fn parse_with_port(text: &str) -> Option<(Self, Option<u16>)> {
        let after_brackets = text.rfind(']').map_or(0, |end| end + 1);
        let (host, port) = match text[after_brackets..].split_once(':') {
            Some((rest, port)) => (&text[..after_brackets + rest.len()], Some(port)),
            None => (text, None),
        };
        let port = match port {
            None => None,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(digits.parse().ok().filter(|number| *number > 0)?)
            }
            Some(_) => return None,
        };
        Some((Self::parse(host)?, port))
    }

    /// The text for a URL.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The address, if the host is one; an IPv4 address that is written as IPv6 counts as what it is.
    pub fn ip(&self) -> Option<IpAddr> {
        let ip: IpAddr = self.0.trim_matches(['[', ']']).parse().ok()?;
        Some(ip.to_canonical())
    }

    /// Whether the host is this very machine.
    pub fn is_loopback(&self) -> bool {
        let named = HERE.contains(&self.as_str())
            || HERE_BELOW.into_iter().any(|domain| self.0.ends_with(domain));
        named || self.ip().is_some_and(|ip| ip.is_loopback())
    }

    /// Whether no member can be there: unspecified, link-local, multicast and broadcast addresses, and where clouds keep
    /// their metadata.
    pub fn is_no_member(&self) -> bool {
        match self.ip() {
            Some(IpAddr::V4(ip)) => is_nowhere_v4(ip),
            Some(IpAddr::V6(ip)) => is_nowhere_v6(ip),
            None => METADATA_NAMES.contains(&self.as_str()),
        }
    }
}

fn is_nowhere_v4(ip: Ipv4Addr) -> bool {
    ip.is_unspecified()
        || ip.is_link_local()
        || ip.is_multicast()
        || ip.is_broadcast()
        || METADATA_V4.contains(&ip)
}

fn is_nowhere_v6(ip: Ipv6Addr) -> bool {
    ip.is_unspecified()
        || ip.is_unicast_link_local()
        || ip.is_multicast()
        || METADATA_V6.contains(&ip)
        || ip.segments()[..2] == AWS_V6
        || is_translated(ip)
        || tunnelled(ip).is_some_and(|ip| is_nowhere_v4(ip) || ip.is_loopback())
}

/// Whether a translator makes an IPv4 address of it, so that it is another way to write that one and no machine's own:
/// IPv4-compatible (::/96), SIIT's ::ffff:0:0:0/96, NAT64's 64:ff9b::/96 and, for networks of one's own, 64:ff9b:1::/48, in which
/// the IPv4 address may stand at many places. A network's own prefix elsewhere can't be known here.
fn is_translated(ip: Ipv6Addr) -> bool {
    match ip.segments() {
        [0, 0, 0, 0, 0, 0, ..] => !ip.is_loopback(),
        [0, 0, 0, 0, 0xffff, 0, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => true,
        [0x64, 0xff9b, 1, ..] => true,
        _ => false,
    }
}

/// The IPv4 address to which a tunnel carries what is sent to this one: 6to4, Teredo (written inverted), ISATAP.
fn tunnelled(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let (high, low) = match ip.segments() {
        [0x2002, high, low, ..] => (high, low),
        [0x2001, 0, .., high, low] => (!high, !low),
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => (high, low),
        _ => return None,
    };
    Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
}

/// An IPv6 address as URL parsers write it: the longest run of zeros left out, the first of equals, and never a part
/// of it as IPv4, which is what `Display` does.
fn in_brackets(ip: Ipv6Addr) -> String {
    let segments = ip.segments();
    let zeros_from = |start: usize| segments[start..].iter().take_while(|part| **part == 0).count();
    let (length, start) = (0..8)
        .rev()
        .map(|start| (zeros_from(start), start))
        .max_by_key(|run| run.0)
        .unwrap_or((0, 0));
    let left_out = if length > 1 { start..start + length } else { 8..8 };
    let mut text = "[".to_owned();
    for (place, segment) in segments.into_iter().enumerate() {
        if left_out.contains(&place) {
            if place == left_out.start {
                text.push_str("::");
            }
            continue;
        }
        if !text.ends_with(['[', ':']) {
            text.push(':');
        }
        let digits = (segment.checked_ilog(16).unwrap_or(0) + 1) as u16;
        for digit in (0..digits).rev() {
            let nibble = u32::from(segment >> (4 * digit) & 15);
            text.extend(char::from_digit(nibble, 16));
        }
    }
    text.push(']');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_spellings_that_url_parsers_leave_alone_are_hosts() {
        for good in ["a", "a.b-c.example", "x_y", "10.0.1.42", "[::1]", "[fd00::1]", "127.0.0.1"] {
            assert_eq!(Hostname::parse(good).as_ref().map(Hostname::as_str), Some(good));
        }
        // What `new URL` makes of them.
        for (text, written) in [
            ("[::]", "[::]"),
            ("[1::]", "[1::]"),
            ("[2001:DB8:0::01]", "[2001:db8::1]"),
            ("[1:0:0:2:0:0:0:3]", "[1:0:0:2::3]"),
            ("[1:0:0:2:0:0:3:4]", "[1::2:0:0:3:4]"),
            ("[1:0:2:3:4:5:6:7]", "[1:0:2:3:4:5:6:7]"),
            ("[::ffff:10.0.1.42]", "[::ffff:a00:12a]"),
        ] {
            assert_eq!(Hostname::parse(text).as_ref().map(Hostname::as_str), Some(written));
        }
        for bad in [
            "",
            ".",
            "a..b",
            "a.",
            "localhost.",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "127.0.0.1.",
            "a/b",
            "u@a",
            "ä.example",
            "[::1",
            "::1",
            "a b",
            "a\\b",
            "[::1]x",
        ] {
            assert_eq!(Hostname::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn ports_are_numbers_from_one_on() {
        let port = |text| Hostname::parse_with_port(text).map(|(_, port)| port);
        assert_eq!(port("a:8443"), Some(Some(8_443)));
        assert_eq!(port("[::1]:80"), Some(Some(80)));
        assert_eq!((port("a"), port("[::1]")), (Some(None), Some(None)));
        for bad in ["a:", "a:0", "a:65536", "a:+80", "a:80:90", ":80", "[::1]x:80", "a:80/x"] {
            assert_eq!(port(bad), None, "{bad}");
        }
    }

    #[test]
    fn c68_every_spelling_of_this_machine_is_known_and_nobody_is_asked_nowhere() {
        let host = |text| Hostname::parse(text).expect("a host");
        for here in [
            "localhost",
            "ip6-localhost",
            "a.localhost",
            "127.8.9.1",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "localhost4",
            "localhost6",
            "localhost.localdomain",
            "localhost4.localdomain4",
            "localhost6.localdomain6",
            "a.localhost.localdomain",
            "ipv6-localhost",
            "loopback",
            "_localdnsstub",
        ] {
            assert!(host(here).is_loopback(), "{here}");
        }
        for nowhere in
            ["0.0.0.0", "[::]", "169.254.169.254", "[fe80::1]", "224.0.0.1", "255.255.255.255"]
                .into_iter()
                .chain([
                    "100.100.100.200",
                    "[fd00:ec2::254]",
                    "[fd00:ec2::23]",
                    "[fd20:ce::254]",
                    "[fd00:42::42]",
                    "metadata.google.internal",
                    "metadata.goog",
                    "[64:ff9b::a9fe:a9fe]",
                ])
        {
            assert!(host(nowhere).is_no_member() && !host(nowhere).is_loopback(), "{nowhere}");
        }
        for member in [
            "10.0.1.42",
            "[fd00:ec3::23]",
            "[fd20:ce::255]",
            "[fd00:42::43]",
            "a.localdomain",
            "metadata.example",
        ] {
            assert!(!host(member).is_loopback() && !host(member).is_no_member(), "{member}");
        }
    }

    #[test]
    fn c68_no_spelling_of_an_ipv4_address_and_no_name_of_metadata_is_a_member() {
        let host = |text| Hostname::parse(text).expect("a host");
        for nowhere in [
            "[::7f00:1]",
            "[::a9fe:a9fe]",
            "[::ffff:0:a9fe:a9fe]",
            "[64:ff9b:1::a9fe:a9fe]",
            "[64:ff9b:1:a9fe:a9:fe00::]",
            "[2002:a9fe:a9fe::1]",
            "[2002:7f00:1::1]",
            "[2002:a83f:8110::1]",
            "[2001::5601:5601]",
            "[2001:db8::5efe:a9fe:a9fe]",
            "[2001:db8::200:5efe:a9fe:a9fe]",
            "[fd00:c1::a9fe:a9fe]",
            "[fd00:a9fe:a9fe::1]",
            "metadata.azure.internal",
            "metadata.tencentyun.com",
            "api.metadata.cloud.ibm.com",
            "metadata.exoscale.com",
        ] {
            assert!(host(nowhere).is_no_member() && !host(nowhere).is_loopback(), "{nowhere}");
        }
        for member in [
            "[::1]",
            "[2002:a00:12a::1]",
            "[2001::f5ff:fed5]",
            "[2001:1::5601:5601]",
            "[2001:db8::5efe:a00:12a]",
            "[64:ff9c:1::1]",
        ] {
            assert!(!host(member).is_no_member(), "{member}");
        }
    }
}
