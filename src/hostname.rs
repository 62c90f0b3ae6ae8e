//! Host names that are put into URLs: only such as every URL parser leaves as they are, and what kind of place
//! they name. Addresses of peers come out of a bucket, so this is the gate before any request.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where clouds keep their metadata beside the link-local address: Alibaba's, Oracle's, Azure's.
const METADATA_V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(168, 63, 129, 16),
];

/// The same over IPv6: Google's, Scaleway's.
const METADATA_V6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42),
];

/// What AWS keeps for its own services beside a machine: metadata, the credentials of a pod, DNS, time.
const AWS_V6: [u16; 2] = [0xfd00, 0xec2];

/// Names of this very machine.
const HERE: [&str; 3] = ["localhost", "ip6-localhost", "ip6-loopback"];

/// What NAT64 puts before an IPv4 address: another way to write each of them.
const NAT64: [u16; 6] = [0x64, 0xff9b, 0, 0, 0, 0];

/// The names of Google's and of AWS's metadata.
const METADATA_NAMES: [&str; 5] = [
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "instance-data",
    "instance-data.ec2.internal",
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
        let named = HERE.contains(&self.0.as_str()) || self.0.ends_with(".localhost");
        named || self.ip().is_some_and(|ip| ip.is_loopback())
    }

    /// Whether no member can be there: unspecified, link-local, multicast and broadcast addresses, and where clouds keep
    /// their metadata.
    pub fn is_no_member(&self) -> bool {
        match self.ip() {
            Some(IpAddr::V4(ip)) => {
                ip.is_unspecified()
                    || ip.is_link_local()
                    || ip.is_multicast()
                    || ip.is_broadcast()
                    || METADATA_V4.contains(&ip)
            }
            Some(IpAddr::V6(ip)) => {
                ip.is_unspecified()
                    || ip.is_unicast_link_local()
                    || ip.is_multicast()
                    || METADATA_V6.contains(&ip)
                    || ip.segments()[..2] == AWS_V6
                    || ip.segments()[..6] == NAT64
            }
            None => METADATA_NAMES.contains(&self.0.as_str()),
        }
    }
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
        for member in ["10.0.1.42", "[fd00:ec3::23]", "[fd20:ce::255]", "[fd00:42::43]"] {
            assert!(!host(member).is_loopback() && !host(member).is_no_member(), "{member}");
        }
    }
}
