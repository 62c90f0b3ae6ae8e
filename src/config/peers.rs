//! The options of peers: who may be asked, what an answer has to prove, how long a question waits.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::Serialize;

use super::{ConfigError, check, refuse};
use crate::hostname::Hostname;
use crate::lease::MAX_LEASE_MS;
use crate::proof::{Hidden, Secrets};
use crate::text::{first, quoted};

/// The longest time for which a question is held, in milliseconds. Proxies end connections that stay silent for a minute.
pub const MAX_WAIT_MS: u64 = 55_000;

/// The shortest time between two heartbeats, in milliseconds.
const MIN_HEARTBEAT_MS: u64 = 100;

/// How many places `peerHosts` may name.
const MOST_HOSTS: usize = 64;

/// Whose answers are believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PeerTrust {
    /// Answers that name the group and whose `sequence` grows.
    #[default]
    Edgelect,
    /// Those of S3lect's leaders too, which name no group and have `lastUpdated` alone: whoever answers at the address by the
    /// leader's name keeps followers from the store, for up to ten leases.
    S3lect,
}

impl PeerTrust {
    /// The value of that name: `edgelect` or `s3lect`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "edgelect" => Some(Self::Edgelect),
            "s3lect" => Some(Self::S3lect),
            _ => None,
        }
    }
}

/// What somebody asked for, of peers; everything has a default. Its `Debug` shows no secret.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PeerSettings {
    /// `peerSecret`: what the members share, to prove their answers to one another; the new and the old one while it changes.
    pub secret: Option<Hidden<Vec<String>>>,
    /// `insecurePeers`: whether peers are asked over plain HTTP. By default only on loopback; `false` means not even there.
    pub insecure: Option<bool>,
    /// `peerHosts`: the only places where peers are asked: host names, `.example.com` for all below it, IP addresses, and
    /// networks such as `10.0.0.0/8`. Default: wherever a record says.
    pub hosts: Option<Vec<String>>,
    /// `peerTrust`: whose answers are believed. Default `edgelect`.
    pub trust: Option<PeerTrust>,
    /// `peerWait`: for how many milliseconds a peer may hold a question until something changes; 0 for no wait. Default
    /// 25 s, or what fits into a lease.
    pub wait_ms: Option<u64>,
    /// `maxPeers`: how many questions this member holds at once. Default 1,000.
    pub most: Option<u64>,
    /// `heartbeat`: how often a follower lets the leader hear of it, in milliseconds. Default: not at all.
    pub heartbeat_ms: Option<u64>,
    /// `suspectAfter`: after how many milliseconds without a heartbeat the other side is suspected. Default three heartbeats.
    pub suspect_after_ms: Option<u64>,
}

/// Checked options of peers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Peers {
    /// What proves answers; none without `peerSecret`.
    #[serde(skip)]
    pub secrets: Secrets,
    /// Whether peers are asked over plain HTTP; only on loopback where nobody says.
    #[serde(rename = "insecurePeers")]
    pub insecure: Option<bool>,
    /// The only places where peers are asked; empty where every place is.
    #[serde(rename = "peerHosts")]
    pub hosts: Vec<String>,
    /// Whose answers are believed.
    #[serde(rename = "peerTrust")]
    pub trust: PeerTrust,
    /// For how many milliseconds a peer may hold a question.
    #[serde(rename = "peerWait")]
    pub wait_ms: u64,
    /// How many questions this member holds at once.
    #[serde(rename = "maxPeers")]
    pub most: u64,
    /// How often a follower lets the leader hear of it, in milliseconds.
    #[serde(rename = "heartbeat")]
    pub heartbeat_ms: Option<u64>,
    /// After how many milliseconds without a heartbeat the other side is suspected.
    #[serde(rename = "suspectAfter")]
    pub suspect_after_ms: u64,
}

impl Peers {
    pub(super) fn new(settings: &PeerSettings) -> Result<Self, ConfigError> {
        let secrets = match &settings.secret {
            None => Secrets::default(),
            Some(Hidden(texts)) => Secrets::new(texts.clone()).ok_or_else(|| {
                let rule = "must be one secret, or the new and the old one while it changes, each of 16 to 256 letters, digits \
                            and signs without spaces and commas, such as `openssl rand -hex 16` prints";
                ConfigError::new("peerSecret", "(not shown)", rule)
            })?,
        };
        let hosts = settings.hosts.clone().unwrap_or_default();
        check("peerHosts", hosts.len() as u64, 0..=MOST_HOSTS as u64, "may name 64 places")?;
        if let Some(bad) = hosts.iter().find(|host| Place::of(host).is_none()) {
            let rule = "must be host names, .example.com for all below it, IP addresses, or networks such as 10.0.0.0/8, \
                        without scheme, port or path";
            // A password may stand before an @.
            let shown = if bad.contains('@') { "(not shown)" } else { &quoted(first(bad, 60)) };
            return refuse("peerHosts", shown, rule);
        }
        let trust = settings.trust.unwrap_or_default();
        if trust == PeerTrust::S3lect && secrets.is_set() {
            let rule = "S3lect's leaders prove nothing, so that peerSecret would refuse every answer of theirs: set one of \
                        the two";
            return refuse("peerTrust", "\"s3lect\"", rule);
        }
        let wait_ms = settings.wait_ms.unwrap_or(25_000);
        let rule = "must be 0, for no wait, or up to 55000 ms: proxies end connections that stay silent for a minute";
        check("peerWait", wait_ms, 0..=MAX_WAIT_MS, rule)?;
        let most = settings.most.unwrap_or(1_000);
        check("maxPeers", most, 0..=1_000_000, "must be at most 1000000")?;
        let heartbeat_ms = settings.heartbeat_ms;
        let rule = "must be from 100 ms to a minute";
        let shown_ms = heartbeat_ms.unwrap_or(MIN_HEARTBEAT_MS);
        check("heartbeat", shown_ms, MIN_HEARTBEAT_MS..=60_000, rule)?;
        let suspect_after_ms = settings.suspect_after_ms.unwrap_or(3 * heartbeat_ms.unwrap_or(500));
        let least_ms = 2 * shown_ms;
        let rule = format!("must be from two heartbeats ({least_ms} ms) to an hour");
        check("suspectAfter", suspect_after_ms, least_ms..=MAX_LEASE_MS, rule)?;
        let insecure = settings.insecure;
        Ok(Self { secrets, insecure, hosts, trust, wait_ms, most, heartbeat_ms, suspect_after_ms })
    }

    /// Whether `peerHosts` lets this host be asked.
    pub fn allow(&self, host: &Hostname) -> bool {
        let named = |place: &String| Place::of(place).is_some_and(|place| place.has(host));
        self.hosts.is_empty() || self.hosts.iter().any(named)
    }

    /// For how long a peer is asked to hold a question, in milliseconds: a peer that vanished meanwhile must not cost more
    /// than the lease that the record promises.
    pub fn wait_within_ms(&self, lease_ms: u64, timeout_ms: u64) -> u64 {
        self.wait_ms.min(lease_ms.min(MAX_LEASE_MS).saturating_sub(timeout_ms))
    }
}

/// One entry of `peerHosts`.
enum Place {
    Host(Hostname),
    Below(Hostname),
    Network(IpNet),
}

impl Place {
    fn of(text: &str) -> Option<Self> {
        if text.contains('/') {
            return text.parse().ok().map(Self::Network);
        }
        match text.strip_prefix('.') {
            Some(domain) => Hostname::parse(domain).map(Self::Below),
            None => Hostname::parse(text).map(Self::Host),
        }
    }

    fn has(&self, host: &Hostname) -> bool {
        match self {
            // An address has more than one spelling.
            Self::Host(place) => place == host || (place.ip().is_some() && place.ip() == host.ip()),
            Self::Below(domain) => {
                let rest = host.as_str().strip_suffix(domain.as_str());
                host.ip().is_none() && rest.is_some_and(|rest| rest.ends_with('.'))
            }
            Self::Network(network) => host.ip().is_some_and(|ip: IpAddr| network.contains(&ip)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(places: &[&str]) -> Result<Peers, ConfigError> {
        let hosts = Some(places.iter().map(|place| (*place).to_owned()).collect());
        Peers::new(&PeerSettings { hosts, ..PeerSettings::default() })
    }

    #[test]
    fn c68_only_the_places_that_are_named_are_asked() {
        let peers = hosts(&["a.example", ".members.example", "10.0.0.0/8", "[fd00::1]"]).unwrap();
        for (host, asked) in [
            ("a.example", true),
            ("b.example", false),
            ("xa.example", false),
            ("one.members.example", true),
            ("members.example", false),
            ("evilmembers.example", false),
            ("10.1.2.3", true),
            ("[::ffff:10.1.2.3]", true),
            ("11.1.2.3", false),
            ("[fd00::1]", true),
            ("[fd00::2]", false),
        ] {
            assert_eq!(peers.allow(&Hostname::parse(host).unwrap()), asked, "{host}");
        }
        let anywhere = hosts(&[]).unwrap();
        assert!(anywhere.allow(&Hostname::parse("10.1.2.3").unwrap()));
        for bad in ["https://a", "a:80", "10.0.0.0/33", "", ".", "a/b"] {
            assert_eq!(hosts(&[bad]).unwrap_err().field, "peerHosts", "{bad}");
        }
        let error = hosts(&["user:hidden@a"]).unwrap_err().to_string();
        assert!(!error.contains("hidden"), "{error}");
    }

    #[test]
    fn a_secret_is_in_no_error_and_no_configuration() {
        let with = |secret: &str, trust| {
            let secret = Some(Hidden(vec![secret.to_owned()]));
            Peers::new(&PeerSettings { secret, trust, ..PeerSettings::default() })
        };
        let error = with("hunter2", None).unwrap_err().message();
        assert!(error.contains("peerSecret = (not shown)") && !error.contains("hunter2"));
        let secret = Some(vec!["hunter2hunter2hunter2".to_owned()]);
        let settings =
            format!("{:?}", PeerSettings { secret: secret.map(Hidden), ..PeerSettings::default() });
        assert!(!settings.contains("hunter2") && settings.contains("not shown"), "{settings}");
        let peers = with("hunter2hunter2hunter2", None).unwrap();
        let shown = format!("{peers:?} {}", crate::json::of(&peers));
        assert!(!shown.contains("hunter2") && peers.secrets.is_set(), "{shown}");
        let both = with("hunter2hunter2hunter2", Some(PeerTrust::S3lect)).unwrap_err();
        assert_eq!(both.field, "peerTrust");
    }

    #[test]
    fn a_question_is_held_no_longer_than_a_lease_lasts() {
        let peers = hosts(&[]).unwrap();
        assert_eq!(peers.wait_within_ms(15_000, 3_000), 12_000);
        assert_eq!(peers.wait_within_ms(60_000, 3_000), 25_000);
        assert_eq!(peers.wait_within_ms(2_000, 3_000), 0);
    }
}
