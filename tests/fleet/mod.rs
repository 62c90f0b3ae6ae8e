//! A fleet: one group of 10 to 100,000 members over one modelled store, on virtual time. Each member is an election as it
//! ships. Nothing fails but leaders: how many requests a group makes and how long a failover takes is counted here, and the
//! rules are held in `sim/`.

pub mod count;
pub mod prices;
pub mod run;
pub mod store;

use edgelect::config::{Config, Follow, PeerSettings, Settings};
use edgelect::proof::Hidden;

/// The lease of every member, in milliseconds.
pub const LEASE_MS: u64 = 15_000;

/// How often a leader renews, in milliseconds.
pub const INTERVAL_MS: u64 = 5_000;

/// The `peerSecret` of a fleet that has one.
const SECRET: &str = "a-secret-of-a-simulated-fleet";

/// A question to a peer and its answer take so many milliseconds on average.
pub const PEER_MS: u64 = 20;

/// Whether followers ask the leader before the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peers {
    Off,
    /// The leader holds as many questions as it has room for.
    On,
    /// With `peerSecret`, so that members answer in a busy leader's place.
    Relay,
}

/// What a group is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// How many members follow; one more leads.
    pub followers: usize,
    pub follow: Follow,
    /// A request to the store and its answer take so many milliseconds on average.
    pub store_ms: u64,
    /// Whether the store takes one write a second and answers 429 to more.
    pub limited: bool,
    pub peers: Peers,
    /// Whether every follower claims as soon as it may, without a turn.
    pub hasty: bool,
    pub seed: u64,
}

impl Setup {
    /// So many `tight` followers over a store without a limit that answers in 20 ms.
    pub fn of(followers: usize) -> Self {
        Self {
            followers,
            follow: Follow::Tight,
            store_ms: 20,
            limited: false,
            peers: Peers::Off,
            hasty: false,
            seed: 1,
        }
    }

    fn config(&self, member: usize) -> Config {
        let secret = (self.peers == Peers::Relay).then(|| Hidden(vec![SECRET.to_owned()]));
        let settings = Settings {
            lockfile_path: Some("leader/fleet.json".to_owned()),
            server_addr: (self.peers != Peers::Off).then(|| address(member)),
            peer_mode: Some(self.peers != Peers::Off),
            peers: PeerSettings { secret, ..PeerSettings::default() },
            follow: Some(self.follow),
            leader_timeout_ms: Some(LEASE_MS),
            frequent_interval_ms: Some(INTERVAL_MS),
            ..Settings::default()
        };
        Config::new(&settings).expect("the settings of a fleet are valid")
    }
}

fn address(member: usize) -> String {
    format!("m{member}.fleet.example:8443")
}

fn member_at(address: &str) -> Option<usize> {
    address.strip_prefix('m')?.split_once('.')?.0.parse().ok()
}
