//! The settings of one elector and the rules that refuse them.
//!
//! [`Settings`] is what somebody wrote, everything optional; [`Config`] is what the election runs on, checked
//! and complete. The names and defaults are S3lect's. All durations are milliseconds.

mod peers;
mod settings;

use serde::Serialize;

use crate::hostname::Hostname;
use crate::json;
use crate::lease::{MAX_LEASE_MS, MAX_NAME_BYTES, MAX_TERM, is_name};
use crate::planted::planted;
use crate::text::quoted;

pub use self::peers::{MAX_WAIT_MS, PeerSettings, PeerTrust, Peers};
pub use settings::{Coordinator, Settings};
pub(crate) use settings::{exact, shown};

/// The widest window over which claimants of one lease spread, in milliseconds.
pub const SPREAD_MS: u64 = 500;

/// How closely a follower watches a stable leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Follow {
    /// Looks just after each renewal that it expects: one GET per `frequentInterval`.
    #[default]
    Tight,
    /// Looks when the lease it knows would run out: one GET per lease.
    Balanced,
    /// Looks once per `infrequentInterval`.
    Frugal,
}

/// What clocks the host has (S11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub enum HostClock {
    /// A monotonic and a wall clock, each on its own.
    #[default]
    Two,
    /// One clock that is both and that may stand still between I/O, as on Cloudflare Workers.
    One,
}

/// Checked settings.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// The key of the lease record.
    pub lockfile_path: String,
    /// The name of this participant; empty where the session's id serves.
    pub server_id: String,
    /// `host` or `host:port` for peers; empty without one.
    pub server_addr: String,
    /// How often a leader renews and an unstable follower looks.
    #[serde(rename = "frequentInterval")]
    pub frequent_interval_ms: u64,
    /// How often a frugal follower looks.
    #[serde(rename = "infrequentInterval")]
    pub infrequent_interval_ms: u64,
    /// The lease.
    #[serde(rename = "leaderTimeout")]
    pub leader_timeout_ms: u64,
    /// Whether followers ask the leader before the store.
    pub peer_mode: bool,
    /// How long a peer may take to answer.
    #[serde(rename = "peerTimeout")]
    pub peer_timeout_ms: u64,
    /// The other options of peers.
    #[serde(flatten)]
    pub peers: Peers,
    /// How closely a stable leader is watched.
    pub follow: Follow,
    /// What authority ends before the lease does.
    #[serde(rename = "margin")]
    pub margin_ms: u64,
    /// How far the store's own clocks may be apart.
    #[serde(rename = "storeSkew")]
    pub store_skew_ms: u64,
    /// The longest lease of any member.
    #[serde(rename = "maxLease")]
    pub max_lease_ms: u64,
    /// How long one request may take.
    #[serde(rename = "requestTimeout")]
    pub request_timeout_ms: u64,
    /// The pauses before the second and third attempt of a write.
    #[serde(rename = "retryDelays")]
    pub retry_delays_ms: [u64; 2],
    /// No new term is lower than this.
    pub term_floor: u64,
    /// Whether a store that refuses for good before it ever worked ends the elector.
    pub fail_fast: bool,
    /// How long one cron tick may take.
    #[serde(rename = "sustain")]
    pub sustain_ms: Option<u64>,
    /// Which clocks the host has.
    #[serde(skip)]
    pub clock: HostClock,
}

/// A setting that cannot be used: which, what it was, and the rule that it broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The option's name as the user wrote it, such as `leaderTimeout`.
    pub field: String,
    /// The value, as text.
    pub value: String,
    /// The rule that it broke and what to do.
    pub rule: String,
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message())
    }
}

impl ConfigError {
    /// A value that `field` can't have.
    pub fn new(field: &str, value: impl Into<String>, rule: impl Into<String>) -> Self {
        Self { field: field.to_owned(), value: value.into(), rule: rule.into() }
    }

    /// What to tell people.
    pub fn message(&self) -> String {
        format!("{} = {}: {}", self.field, self.value, self.rule)
    }
}

impl std::error::Error for ConfigError {}

fn refuse<T>(field: &str, value: &str, rule: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError::new(field, value, rule))
}

/// Up to here a duration that is too short by itself and not as seconds is taken for seconds.
const MOST_SECONDS: u64 = 300;

/// Refuses a number outside a range; the rule says which range, and why.
fn check(
    field: &str,
    number: u64,
    range: std::ops::RangeInclusive<u64>,
    rule: impl Into<String>,
) -> Result<(), ConfigError> {
    if range.contains(&number) {
        return Ok(());
    }
    let mut rule = rule.into();
    let as_ms = number.saturating_mul(1_000);
    if (1..=MOST_SECONDS).contains(&number) && range.contains(&as_ms) {
        rule.push_str("; is it in seconds? In milliseconds it is ");
        rule.push_str(&as_ms.to_string());
    }
    refuse(field, &number.to_string(), rule)
}

impl Config {
    /// Checks settings and fills in the defaults.
    ///
    /// # Errors
    /// The first setting that breaks a rule, with the rule.
    pub fn new(settings: &Settings) -> Result<Self, ConfigError> {
        let lease_ms = settings.leader_timeout_ms.unwrap_or(15_000);
        let rule = "a lease lasts from 1000 ms to one hour";
        check("leaderTimeout", lease_ms, 1_000..=MAX_LEASE_MS, rule)?;
        let frequent_ms = settings.frequent_interval_ms.unwrap_or(5_000.min(lease_ms / 3));
        let infrequent_ms = settings.infrequent_interval_ms.unwrap_or(30_000.max(frequent_ms));
        check(
            "infrequentInterval",
            infrequent_ms,
            frequent_ms..=24 * MAX_LEASE_MS,
            format!("must be from frequentInterval ({frequent_ms} ms) to a day"),
        )?;
        let config = Self {
            lockfile_path: check_path(settings.lockfile_path.as_deref())?,
            server_id: check_name("serverId", settings.server_id.as_deref())?,
            server_addr: check_addr(settings.server_addr.as_deref())?,
            frequent_interval_ms: frequent_ms,
            infrequent_interval_ms: infrequent_ms,
            leader_timeout_ms: lease_ms,
            peer_mode: settings.peer_mode.unwrap_or(false),
            peer_timeout_ms: settings.peer_timeout_ms.unwrap_or(3_000),
            peers: Peers::new(&settings.peers)?,
            follow: settings.follow.unwrap_or(match settings.infrequent_interval_ms {
                Some(_) => Follow::Frugal,
                None => Follow::Tight,
            }),
            margin_ms: settings.margin_ms.unwrap_or(lease_ms / 10),
            store_skew_ms: settings.store_skew_ms.unwrap_or(2_000),
            max_lease_ms: settings.max_lease_ms.unwrap_or(lease_ms),
            request_timeout_ms: 0,
            retry_delays_ms: settings.retry_delays_ms.unwrap_or_else(|| default_delays(lease_ms)),
            term_floor: settings.term_floor.unwrap_or(0),
            fail_fast: settings.fail_fast.unwrap_or(true),
            sustain_ms: settings.sustain_ms,
            clock: settings.clock,
        };
        if config.peers.heartbeat_ms.is_some() && !config.peer_mode {
            let value = config.peers.heartbeat_ms.unwrap_or(0).to_string();
            return refuse("heartbeat", &value, "is sent to peers: set peerMode too");
        }
        config.check_ranges()?;
        config.with_request_timeout(settings.request_timeout_ms)
    }

    fn check_ranges(&self) -> Result<(), ConfigError> {
        let lease_ms = self.leader_timeout_ms;
        let lease = lease_ms.to_string();
        check(
            "frequentInterval",
            self.frequent_interval_ms,
            50..=lease_ms - 1,
            format!("must be from 50 ms to less than leaderTimeout ({lease} ms)"),
        )?;
        // Two readings in whole milliseconds may be wrong by two of them.
        check(
            "margin",
            self.margin_ms,
            10..=lease_ms / 2,
            format!("must be from 10 ms to half of leaderTimeout ({lease} ms)"),
        )?;
        check(
            "maxLease",
            self.max_lease_ms,
            lease_ms..=MAX_LEASE_MS,
            format!(
                "is the longest lease of the whole group, so from the own leaderTimeout \
                 ({lease} ms) to one hour"
            ),
        )?;
        let rule = "must be from 50 ms to 10 minutes";
        check("peerTimeout", self.peer_timeout_ms, 50..=600_000, rule)?;
        check("storeSkew", self.store_skew_ms, 0..=600_000, "must be at most 10 minutes")?;
        let [first_ms, second_ms] = self.retry_delays_ms;
        if first_ms.min(second_ms) == 0 || first_ms.max(second_ms) > lease_ms {
            let value = format!("[{first_ms}, {second_ms}]");
            return refuse("retryDelays", &value, "each pause lasts from 1 ms to the lease");
        }
        let rule = "must be at most 2^51: terms end at 2^52 (S2) and need room to grow";
        check("termFloor", self.term_floor, 0..=MAX_TERM / 2, rule)
    }

    fn with_request_timeout(mut self, asked_ms: Option<u64>) -> Result<Self, ConfigError> {
        const SHORTEST_MS: u64 = 50;
        let delays_ms: u64 = self.retry_delays_ms.iter().sum();
        let fixed_ms = self.frequent_interval_ms + delays_ms;
        let budget_ms = (self.leader_timeout_ms - self.margin_ms).saturating_sub(fixed_ms);
        let fits_ms = budget_ms / 4;
        // By default every one of the four requests may be some milliseconds late besides, where there is room.
        let roomy_ms = fits_ms.saturating_sub(10).max(fits_ms.min(SHORTEST_MS));
        self.request_timeout_ms = asked_ms.unwrap_or(roomy_ms.min(1_800));
        let rule = format!(
            "S8: frequentInterval ({}) + 4 * requestTimeout + retryDelays ({delays_ms}) must \
             not exceed leaderTimeout - margin ({}), so that three attempts and a read-back fit \
             before the fence; lower frequentInterval or raise leaderTimeout",
            self.frequent_interval_ms,
            (self.leader_timeout_ms - self.margin_ms)
        );
        match asked_ms {
            Some(ms) => {
                let least = "must be at least 50 ms";
                check("requestTimeout", ms, SHORTEST_MS..=u64::MAX, least)?;
                check("requestTimeout", ms, 0..=fits_ms, rule)?;
            }
            None if self.request_timeout_ms < SHORTEST_MS => {
                return refuse("frequentInterval", &self.frequent_interval_ms.to_string(), rule);
            }
            None => {}
        }
        if let Some(sustain_ms) = self.sustain_ms {
            let grace_ms = self.grace_ms(0);
            let least_ms = self.take_over_ms();
            let rule = format!(
                "a tick must outlast the grace ({grace_ms} ms: leaderTimeout, maxLease or \
                 storeSkew + 2 s) + storeSkew + 4 * requestTimeout + 1.5 s, {least_ms} ms in \
                 all, or it could never take over a dead leader's lease"
            );
            check("sustain", sustain_ms, least_ms..=u64::MAX, rule)?;
            let rule = "a cron tick ends after 15 minutes at most";
            check("sustain", sustain_ms, 0..=900_000, rule)?;
        }
        Ok(self)
    }

    /// Whether a peer may be asked at this address, which came out of a bucket or from another peer.
    pub fn asks(&self, addr: &str) -> bool {
        let host = |addr| Hostname::parse_with_port(addr).map(|(host, _)| host);
        let Some(peer) = host(addr).filter(|peer| !peer.is_no_member()) else { return false };
        // A bucket must not send anybody to a service of its own machine.
        let reachable =
            !peer.is_loopback() || host(&self.server_addr).is_some_and(|own| own.is_loopback());
        reachable && self.peers.allow(&peer)
    }

    /// The least time in which a session that knows nothing surely takes over a dead leader's lease.
    pub fn take_over_ms(&self) -> u64 {
        self.grace_ms(0) + self.store_skew_ms + 4 * self.request_timeout_ms + SPREAD_MS + 1_000
    }

    /// How long three attempts of one write and a read-back may take.
    pub fn attempts_ms(&self) -> u64 {
        4 * self.request_timeout_ms + self.retry_delays_ms.iter().sum::<u64>()
    }

    /// The grace of S7, given the longest lease that the session has seen.
    pub fn grace_ms(&self, longest_seen_ms: u64) -> u64 {
        if planted!(GraceIsOwnLease) {
            return self.leader_timeout_ms;
        }
        self.leader_timeout_ms
            .max(longest_seen_ms)
            .max(self.max_lease_ms)
            .max(self.store_skew_ms + 2_000)
    }

    /// The configuration as the JSON object that `Elector.config` shows.
    pub fn to_json(&self) -> String {
        json::of(self)
    }
}

impl Follow {
    /// The option's value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tight => "tight",
            Self::Balanced => "balanced",
            Self::Frugal => "frugal",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::Tight, Self::Balanced, Self::Frugal].into_iter().find(|follow| follow.name() == name)
    }
}

fn default_delays(lease_ms: u64) -> [u64; 2] {
    let scale_ms = lease_ms.min(15_000);
    [(100 * scale_ms / 15_000).max(1), (1_000 * scale_ms / 15_000).max(1)]
}

pub(crate) fn check_path(path: Option<&str>) -> Result<String, ConfigError> {
    let rule = "is the key of the lease object: 1 to 1024 bytes, without a leading slash, empty or dot \
                segments, or control characters, such as \"leader/my-group.json\"";
    let Some(path) = path else {
        return refuse("lockfilePath", "(not set)", rule);
    };
    if is_key(path) {
        return Ok(path.to_owned());
    }
    refuse("lockfilePath", &quoted(path), rule)
}

/// Whether every store takes a text for the key of an object.
pub fn is_key(path: &str) -> bool {
    let segments_ok =
        path.split('/').all(|segment| !segment.is_empty() && segment != "." && segment != "..");
    path.len() <= MAX_NAME_BYTES && segments_ok && !path.chars().any(char::is_control)
}

fn check_name(field: &str, name: Option<&str>) -> Result<String, ConfigError> {
    match name {
        None => Ok(String::new()),
        Some(name) if !is_name(name) => {
            let rule = "must be 1 to 1024 bytes without control characters";
            refuse(field, &quoted(name), rule)
        }
        Some(name) => Ok(name.to_owned()),
    }
}

fn check_addr(addr: Option<&str>) -> Result<String, ConfigError> {
    match addr {
        None | Some("") => Ok(String::new()),
        Some(addr) if is_peer_addr(addr) => Ok(addr.to_owned()),
        Some(addr) => {
            // Before an @ stands a user and maybe a password.
            let shown = if addr.contains('@') { "(not shown)".to_owned() } else { quoted(addr) };
            let rule = "must be a host or host:port, without scheme, path or user";
            refuse("serverAddr", &shown, rule)
        }
    }
}

/// Whether a text is `host` or `host:port` and nothing more, of a place where a member can be.
pub fn is_peer_addr(addr: &str) -> bool {
    Hostname::parse_with_port(addr).is_some_and(|(host, _)| !host.is_no_member())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Object;
    use serde_json::{Value, json};

    fn config_of(options: Value) -> Result<Config, ConfigError> {
        let mut options = options.as_object().expect("tests give objects").clone();
        options.entry("lockfilePath").or_insert_with(|| "leader/jobs.json".into());
        let options = Value::Object(options).to_string();
        let options = Object::read(options.as_bytes()).expect("tests give objects");
        Config::new(&Settings::from_json(&options)?)
    }

    #[test]
    fn the_defaults_are_s3lects() {
        let config = config_of(json!({})).unwrap();
        assert_eq!(config.frequent_interval_ms, 5_000);
        assert_eq!(config.infrequent_interval_ms, 30_000);
        assert_eq!(config.leader_timeout_ms, 15_000);
        assert_eq!(config.peer_timeout_ms, 3_000);
        assert_eq!((config.margin_ms, config.store_skew_ms), (1_500, 2_000));
        assert_eq!((config.request_timeout_ms, config.retry_delays_ms), (1_800, [100, 1_000]));
        assert_eq!((config.follow, config.peer_mode), (Follow::Tight, false));
    }

    #[test]
    fn who_sets_the_infrequent_interval_and_no_follow_means_both_intervals() {
        let follow = |options| config_of(options).unwrap().follow;
        assert_eq!(follow(json!({ "infrequentInterval": 30_000 })), Follow::Frugal);
        let both = json!({ "infrequentInterval": 30_000, "follow": "balanced" });
        assert_eq!(follow(both), Follow::Balanced);
    }

    #[test]
    fn the_settings_of_every_seed_start_with_room_for_three_attempts_and_a_read_back() {
        for (lease_ms, frequent_ms) in [
            (15_000, 5_000),
            (30_000, 10_000),
            (10_000, 3_000),
            (45_000, 15_000),
            (1_500, 500),
            (1_000, 600),
        ] {
            let options = json!({ "leaderTimeout": lease_ms, "frequentInterval": frequent_ms });
            let config = config_of(options).unwrap();
            let delays_ms: u64 = config.retry_delays_ms.iter().sum();
            let worst_ms = frequent_ms + 4 * config.request_timeout_ms + delays_ms;
            assert!(worst_ms <= lease_ms - config.margin_ms, "{lease_ms}/{frequent_ms}");
            assert!(config.request_timeout_ms >= 50);
        }
    }

    #[test]
    fn each_wrong_option_is_refused_by_name_with_its_value_and_the_rule() {
        for (options, field, rule) in [
            (json!({ "leaderTimeout": 999 }), "leaderTimeout", "from 1000 ms"),
            (json!({ "leaderTimeout": 3_600_001 }), "leaderTimeout", "one hour"),
            (json!({ "leaderTimeout": "15s" }), "leaderTimeout", "whole number of milliseconds"),
            (json!({ "leaderTimeout": -1 }), "leaderTimeout", "whole number of milliseconds"),
            (json!({ "leaderTimeout": 1.5 }), "leaderTimeout", "whole number of milliseconds"),
            (json!({ "leaderTimeout": "NaN" }), "leaderTimeout", "whole number of milliseconds"),
            (json!({ "frequentInterval": 15_000 }), "frequentInterval", "less than leaderTimeout"),
            (json!({ "frequentInterval": 13_000 }), "frequentInterval", "S8"),
            (json!({ "infrequentInterval": 100 }), "infrequentInterval", "frequentInterval"),
            (json!({ "requestTimeout": 1_900 }), "requestTimeout", "S8"),
            (json!({ "requestTimeout": 10 }), "requestTimeout", "at least 50 ms"),
            (json!({ "retryDelays": [100] }), "retryDelays", "two whole numbers"),
            (json!({ "retryDelays": [0, 5] }), "retryDelays", "from 1 ms"),
            (json!({ "retryDelays": [100, 15_000] }), "frequentInterval", "S8"),
            (json!({ "margin": 9 }), "margin", "from 10 ms"),
            (json!({ "margin": 8_000 }), "margin", "half of leaderTimeout"),
            (json!({ "maxLease": 14_999 }), "maxLease", "longest lease of the whole group"),
            (json!({ "storeSkew": 600_001 }), "storeSkew", "10 minutes"),
            (json!({ "peerTimeout": 1 }), "peerTimeout", "50 ms"),
            (json!({ "peerMode": "yes" }), "peerMode", "true or false"),
            (json!({ "follow": "loose" }), "follow", "balanced"),
            (json!({ "termFloor": 4_503_599_627_370_496_u64 }), "termFloor", "2^52"),
            (json!({ "sustain": 20_600 }), "sustain", "storeSkew + 4 * requestTimeout"),
            (json!({ "sustain": 57_000, "maxLease": 120_000 }), "sustain", "the grace (120000 ms"),
            (json!({ "sustain": 900_001 }), "sustain", "15 minutes"),
            (json!({ "serverId": "" }), "serverId", "1 to 1024 bytes"),
            (json!({ "serverId": "a\u{0}b" }), "serverId", "control characters"),
            (json!({ "serverAddr": "https://a/b" }), "serverAddr", "without scheme"),
            (json!({ "lockfilePath": "/leader" }), "lockfilePath", "leading slash"),
            (json!({ "lockfilePath": "a/../b" }), "lockfilePath", "dot"),
            (json!({ "lockfilePath": "" }), "lockfilePath", "1 to 1024 bytes"),
            (
                json!({ "lockFilePath": "a" }),
                "lockFilePath",
                "no such option: did you mean lockfilePath? docs/options.md lists them",
            ),
            (json!({ "onAquireLeadership": 1 }), "onAquireLeadership", "onAcquireLeadership?"),
            (
                json!({ "secretAccessKey": "a" }),
                "secretAccessKey",
                "no such option; docs/options.md lists them",
            ),
            (
                json!({ "leaderTimeout": 15 }),
                "leaderTimeout",
                "a lease lasts from 1000 ms to one hour; is it in seconds? In milliseconds it is 15000",
            ),
            (json!({ "frequentInterval": 5 }), "frequentInterval", "milliseconds it is 5000"),
            (json!({ "sustain": 57 }), "sustain", "In milliseconds it is 57000"),
        ] {
            let error = config_of(options.clone()).expect_err(&options.to_string());
            assert_eq!(error.field, field, "{options}: {error}");
            assert!(error.rule.contains(rule), "{options}: {error}");
            assert!(error.to_string().starts_with(field), "{error}");
        }
    }

    #[test]
    fn a_time_that_is_long_enough_or_short_either_way_is_not_taken_for_seconds() {
        for options in [
            json!({ "leaderTimeout": 999 }),
            json!({ "leaderTimeout": 0 }),
            json!({ "leaderTimeout": 3_600_001 }),
            json!({ "margin": 9, "leaderTimeout": 10_000 }),
        ] {
            let error = config_of(options.clone()).expect_err(&options.to_string());
            assert!(!error.rule.contains("seconds?"), "{error}");
        }
    }

    #[test]
    fn every_accepted_timing_keeps_the_budget_of_s8() {
        let mut accepted = 0;
        for lease_ms in (1_000..60_000).step_by(731) {
            for frequent_ms in (50..lease_ms).step_by(617) {
                for margin_ms in [10, lease_ms / 10, lease_ms / 2] {
                    let options = json!({
                        "leaderTimeout": lease_ms, "frequentInterval": frequent_ms,
                        "infrequentInterval": 60_000, "margin": margin_ms,
                    });
                    let Ok(config) = config_of(options) else { continue };
                    accepted += 1;
                    let delays_ms: u64 = config.retry_delays_ms.iter().sum();
                    let worst_ms = frequent_ms + 4 * config.request_timeout_ms + delays_ms;
                    assert!(worst_ms <= lease_ms - margin_ms);
                }
            }
        }
        assert!(accepted > 1_000, "only {accepted} settings were accepted");
    }

    #[test]
    fn c68_only_a_host_and_a_port_are_an_address() {
        for good in ["a", "a.b-c.example:8443", "10.0.1.42:8443", "[::1]:80", "[fd00::1]"] {
            assert!(is_peer_addr(good), "{good}");
        }
        for bad in [
            "",
            ":80",
            "a:",
            "a:0",
            "a:65536",
            "a:+80",
            "a/b",
            "a:80/b",
            "u@a",
            "a?b",
            "a#b",
            "a b",
            "[::1",
            "[::1]x",
            "[nonsense]:80",
            "::1",
            "http://a",
            "a\\b",
            "a\r\nb",
            "ä.example",
            "a:80:90",
        ] {
            assert!(!is_peer_addr(bad), "{bad}");
        }
    }
}
