//! What somebody asked for, as it is read from options or variables.

use super::{ConfigError, Follow, HostClock, PeerSettings, PeerTrust, refuse};
use crate::json::{self, Object};
use crate::lease::MAX_LEASE_MS;
use crate::proof::Hidden;
use crate::text::{first, nearest, quoted, unknown, visible};

/// What somebody asked for; everything but the key has a default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// `lockfilePath`: the key of the lease record; it names the group.
    pub lockfile_path: Option<String>,
    /// `serverId`: the name of this participant; without one the session's id serves.
    pub server_id: Option<String>,
    /// `serverAddr`: `host` or `host:port` under which peers reach this participant.
    pub server_addr: Option<String>,
    /// `frequentInterval`: how often a leader renews and an unstable follower looks. Default 5 s.
    pub frequent_interval_ms: Option<u64>,
    /// `infrequentInterval`: how often a `frugal` follower looks. Default 30 s. Set without `follow`, it makes `frugal` the
    /// default, as the dual interval of S3lect is meant.
    pub infrequent_interval_ms: Option<u64>,
    /// `leaderTimeout`: the lease. Default 15 s.
    pub leader_timeout_ms: Option<u64>,
    /// `peerMode`: ask the leader before the store. Default off.
    pub peer_mode: Option<bool>,
    /// `peerTimeout`: how long the leader may take to answer. Default 3 s.
    pub peer_timeout_ms: Option<u64>,
    /// The other options of peers.
    pub peers: PeerSettings,
    /// `follow`: how closely a stable leader is watched. Default tight; frugal where `infrequentInterval` is set.
    pub follow: Option<Follow>,
    /// `margin`: what authority ends before the lease does. Default a tenth of the lease.
    pub margin_ms: Option<u64>,
    /// `storeSkew`: how far the store's own clocks may be apart. Default 2 s.
    pub store_skew_ms: Option<u64>,
    /// `maxLease`: the longest lease of any member of the group. Default the own lease.
    pub max_lease_ms: Option<u64>,
    /// `requestTimeout`: how long one request may take. Default 1.8 s, or what fits.
    pub request_timeout_ms: Option<u64>,
    /// `retryDelays`: the pauses before the second and the third attempt of a write. Default 0.1 s and 1 s,
    /// scaled down with leases under 15 s.
    pub retry_delays_ms: Option<[u64; 2]>,
    /// `termFloor`: no new term is lower than this. Default 0.
    pub term_floor: Option<u64>,
    /// `failFast`: whether a store that refuses for good before it ever worked, as with an unknown key, ends the elector.
    /// Default true; otherwise it tries again and again.
    pub fail_fast: Option<bool>,
    /// `sustain`: how long one cron tick may take, counted from its scheduled time.
    pub sustain_ms: Option<u64>,
    /// Which clocks the host has; the host says so, not the user.
    pub clock: HostClock,
}

impl Settings {
    /// Reads the options of JavaScript's `new Elector({ … })`, or the same names from variables; `null` counts
    /// as not given.
    ///
    /// # Errors
    /// An option of the wrong type, or one that nobody knows.
    pub fn from_json(options: &Object) -> Result<Self, ConfigError> {
        Self::of_many(options, &[])
    }

    /// As [`Settings::from_json`], for options that are given beside others of these names: one that nobody knows may be a
    /// misspelt one of those.
    ///
    /// # Errors
    /// As those of [`Settings::from_json`].
    pub fn of_many(options: &Object, others: &[&str]) -> Result<Self, ConfigError> {
        let mut settings = Self::default();
        for (name, value) in options.iter().filter(|(_, value)| !json::is_null(value)) {
            settings.set(name, value, others)?;
        }
        Ok(settings)
    }

    fn set(&mut self, name: &str, value: &str, others: &[&str]) -> Result<(), ConfigError> {
        let number = match name {
            "lockfilePath" => return put(&mut self.lockfile_path, name, value, TEXT),
            "serverId" => return put(&mut self.server_id, name, value, TEXT),
            "serverAddr" => return put(&mut self.server_addr, name, value, TEXT),
            "peerMode" => return put(&mut self.peer_mode, name, value, FLAG),
            "failFast" => return put(&mut self.fail_fast, name, value, FLAG),
            "peerSecret" => return put_secrets(&mut self.peers.secret, value),
            "insecurePeers" => return put(&mut self.peers.insecure, name, value, FLAG),
            "peerHosts" => return put(&mut self.peers.hosts, name, value, TEXTS),
            "peerTrust" => return put(&mut self.peers.trust, name, value, TRUST),
            "maxPeers" => return put(&mut self.peers.most, name, value, NUMBER),
            "follow" => return put(&mut self.follow, name, value, FOLLOW),
            "retryDelays" => return put(&mut self.retry_delays_ms, name, value, DELAYS),
            "termFloor" => return put(&mut self.term_floor, name, value, NUMBER),
            "frequentInterval" => &mut self.frequent_interval_ms,
            "infrequentInterval" => &mut self.infrequent_interval_ms,
            "leaderTimeout" => &mut self.leader_timeout_ms,
            "peerTimeout" => &mut self.peer_timeout_ms,
            "peerWait" => &mut self.peers.wait_ms,
            "heartbeat" => &mut self.peers.heartbeat_ms,
            "suspectAfter" => &mut self.peers.suspect_after_ms,
            "margin" => &mut self.margin_ms,
            "storeSkew" => &mut self.store_skew_ms,
            "maxLease" => &mut self.max_lease_ms,
            "requestTimeout" => &mut self.request_timeout_ms,
            "sustain" => &mut self.sustain_ms,
            // Its value is not shown: it may be a secret that was put into the wrong place.
            _ => {
                let known = OPTIONS.into_iter().chain(JS_OPTIONS);
                let meant = nearest(name, known.chain(others.iter().copied()));
                let rule = unknown("option", meant, "docs/options.md lists them");
                return refuse(&visible(first(name, 60)), "(not shown)", rule);
            }
        };
        put(number, name, value, MILLISECONDS)
    }
}

/// What a `Coordinator` of shardcoordinator is made with, except its `Locker`, which is the store here. It needs all of them, and
/// [`Config::new`](super::Config::new) holds them to the rules of an elector's options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coordinator {
    /// `ShardID`: `lockfilePath`, one elector for each.
    pub shard_id: String,
    /// `OwnerID`: `serverId`. Beside members of shardcoordinator, not the same value as one of theirs.
    pub owner_id: String,
    /// `LeaseDuration`: `leaderTimeout`.
    pub lease_duration_ms: u64,
    /// `RenewPeriod`: `frequentInterval`.
    pub renew_period_ms: u64,
}

impl From<Coordinator> for Settings {
    fn from(options: Coordinator) -> Self {
        Self {
            lockfile_path: Some(options.shard_id),
            server_id: Some(options.owner_id),
            leader_timeout_ms: Some(options.lease_duration_ms),
            frequent_interval_ms: Some(options.renew_period_ms),
            ..Self::default()
        }
    }
}

/// The options that [`Settings::from_json`] knows.
const OPTIONS: [&str; 25] = [
    "lockfilePath",
    "serverId",
    "serverAddr",
    "peerMode",
    "peerSecret",
    "insecurePeers",
    "peerHosts",
    "peerTrust",
    "peerWait",
    "maxPeers",
    "heartbeat",
    "suspectAfter",
    "failFast",
    "follow",
    "retryDelays",
    "termFloor",
    "frequentInterval",
    "infrequentInterval",
    "leaderTimeout",
    "peerTimeout",
    "margin",
    "storeSkew",
    "maxLease",
    "requestTimeout",
    "sustain",
];

/// What `js/elector.js` takes out of the options before they come here; a misspelt one comes here.
const JS_OPTIONS: [&str; 16] = [
    "peerTls",
    "storage",
    "probe",
    "unref",
    "releaseOnStop",
    "warn",
    "log",
    "logLevel",
    "page",
    "onAcquireLeadership",
    "onLoseLeadership",
    "onNewLeader",
    "onError",
    "onStatus",
    "onSuspect",
    "onRecover",
];

/// How the JSON of an option is read, and what it must be.
type Kind<T> = (fn(&str) -> Option<T>, &'static str);

const TEXT: Kind<String> = (json::text, "must be a text");
const FLAG: Kind<bool> = (json::flag, "must be true or false");
const NUMBER: Kind<u64> = (exact, "must be a whole number, 0 or more");
const MILLISECONDS: Kind<u64> = (exact, "must be a whole number of milliseconds, 0 or more");
const FOLLOW: Kind<Follow> = (
    |value| Follow::from_name(&json::text(value)?),
    "must be \"tight\", \"balanced\" or \"frugal\"",
);
const TEXTS: Kind<Vec<String>> = (json::texts, "must be a list of texts");
const TRUST: Kind<PeerTrust> =
    (|value| PeerTrust::named(&json::text(value)?), "must be \"edgelect\" or \"s3lect\"");
const DELAYS: Kind<[u64; 2]> = (
    |value| json::two_wholes(value).filter(|delays| delays.iter().all(|ms| *ms <= MAX_LEASE_MS)),
    "must be two whole numbers of milliseconds, the pauses before attempts two and three",
);

fn put<T>(
    place: &mut Option<T>,
    name: &str,
    value: &str,
    (read, rule): Kind<T>,
) -> Result<(), ConfigError> {
    *place = read(value);
    if place.is_some() { Ok(()) } else { refuse(name, &shown(value), rule) }
}

/// A secret or a list of them; an error shows nothing of it.
fn put_secrets(place: &mut Option<Hidden<Vec<String>>>, value: &str) -> Result<(), ConfigError> {
    *place = json::texts(value).or_else(|| Some(vec![json::text(value)?])).map(Hidden);
    match place {
        Some(_) => Ok(()),
        None => refuse("peerSecret", "(not shown)", "must be a text, or a list of two"),
    }
}

/// A number that JavaScript knows exactly.
pub(crate) fn exact(value: &str) -> Option<u64> {
    json::whole(value).filter(|number| *number < 1 << 53)
}

/// A value for an error: what it is, and no more of it than helps.
pub(crate) fn shown(value: &str) -> String {
    if let Some(found) = json::text(value) {
        return quoted(first(&found, 60));
    }
    match Object::read(value.as_bytes()) {
        Some(fields) => match fields.get(NOT_JSON).and_then(json::text) {
            Some(found) => visible(first(&found, 60)),
            None => "(an object)".to_owned(),
        },
        None => visible(first(value, 60)),
    }
}

/// The field under which JavaScript hands over a value that JSON would change (NaN, a function).
const NOT_JSON: &str = "not JSON";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn the_options_of_a_coordinator_are_an_electors_by_other_names() {
        let of = |lease_duration_ms| Coordinator {
            shard_id: "shard-1".to_owned(),
            owner_id: "owner-1".to_owned(),
            lease_duration_ms,
            renew_period_ms: 4_000,
        };
        let meant = r#"{"lockfilePath":"shard-1","serverId":"owner-1","leaderTimeout":20000,"frequentInterval":4000}"#;
        let meant = Settings::from_json(&Object::read(meant.as_bytes()).unwrap());
        assert_eq!(Ok(Settings::from(of(20_000))), meant);
        assert!(Config::new(&of(20_000).into()).is_ok());
        assert_eq!(Config::new(&of(500).into()).unwrap_err().field, "leaderTimeout");
    }

    #[test]
    fn each_option_that_may_be_meant_is_one() {
        for option in OPTIONS {
            let refused = Settings::default().set(option, "{}", &[]).expect_err(option);
            assert!(!refused.rule.contains("no such option"), "{refused}");
        }
        for option in JS_OPTIONS {
            let refused = Settings::default().set(option, "{}", &[]).expect_err(option);
            assert!(refused.rule.contains(&format!("did you mean {option}?")), "{refused}");
        }
    }
}
