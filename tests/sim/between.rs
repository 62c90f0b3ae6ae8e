//! What stands between the members and the store, or in a peer's place, and answers by itself.

use edgelect::config::PeerSettings;
use edgelect::proof::Hidden;

use super::chance::Chance;
use super::network::Weather;
use super::report::Kind;

/// One seed in so many has each of these.
const ONE_IN: u64 = 8;

/// Chosen so that no seed that ever broke a rule means another schedule than it did.
const UNCHANGED_SALT: u64 = 4_012 << 40;
const MOVING_SALT: u64 = 4_979 << 40;
const GATEWAY_SALT: u64 = 6_943 << 40;
const REPEAT_SALT: u64 = 12_644 << 40;
const EARLY_SALT: u64 = 19_001 << 40;
const ECHO_SALT: u64 = 262_142 << 40;
const APART_SALT: u64 = 23_017 << 40;
const PEER_SALT: u64 = 17_017 << 40;

/// Which of them a schedule has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Between {
    /// A cache answers "unchanged" to every question about a version that once was.
    pub unchanged: bool,
    /// A proxy gives each body the time of the answer for its `Last-Modified`.
    pub moving: bool,
    /// A gateway answers some requests in the store's place, without the store's error document.
    pub gateway: bool,
    /// A gateway, or a store that is late, answers some writes with the version that they were to replace, carried out or not.
    pub echoes: bool,
    /// Something at a peer's address repeats the first answer that it gave.
    pub repeats: bool,
}

impl Between {
    pub fn draw(seed: u64) -> Self {
        let drawn = |salt: u64| Chance::new(seed ^ salt).one_in(ONE_IN);
        Self {
            unchanged: drawn(UNCHANGED_SALT),
            moving: drawn(MOVING_SALT),
            gateway: drawn(GATEWAY_SALT),
            echoes: Chance::new(seed ^ ECHO_SALT).one_in(2 * ONE_IN),
            repeats: drawn(REPEAT_SALT),
        }
    }

    /// What of it befalls single requests.
    pub fn join(self, weather: &mut Weather) {
        if self.gateway {
            weather.add(Kind::Gateway, 30);
        }
        if self.echoes {
            weather.add(Kind::WriteEchoed, 60);
        }
    }
}

/// Whether the claims of a schedule come as early as they may. Members that take turns hide what is wrong with such claims.
pub fn claims_early(seed: u64) -> bool {
    Chance::new(seed ^ EARLY_SALT).one_in(2)
}

/// How far apart the members of a schedule believe that the store takes writes, in milliseconds.
pub fn writes_apart_ms(seed: u64) -> u64 {
    if Chance::new(seed ^ APART_SALT).one_in(ONE_IN) { 1_000 } else { 0 }
}

/// What the members of a schedule have set of peers, where they ask them.
pub fn peer_settings(seed: u64) -> PeerSettings {
    let mut chance = Chance::new(seed ^ PEER_SALT);
    let secret = chance.one_in(2).then(|| Hidden(vec!["a-secret-of-the-group".to_owned()]));
    PeerSettings {
        secret,
        wait_ms: chance.pick(&[None, None, None, Some(0)]),
        most: chance.pick(&[None, None, Some(1), Some(0)]),
        ..PeerSettings::default()
    }
}
