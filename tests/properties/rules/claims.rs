//! Nothing that lies in the bucket makes an election claim earlier than the record's writer, or the
//! grace, allows (S2, S3, S6, S7).

use edgelect::clock::Now;
use edgelect::election::{Election, Input, Step};
use edgelect::json::Object;
use edgelect::lease::{self, MAX_TERM, Reading};
use edgelect::store::{Answer, Condition, Facts, Outcome, Version};
use edgelect::{Config, Settings};

use super::records::{believed_lease_ms, is_tombstone};

/// The `serverId` of the member that watches.
pub const SERVER_ID: &str = "me";

/// The random id of its session; no record can know it.
const SESSION: &str = "6cf1c0a8-own-session";

/// Any epoch will do: the rules know differences only.
const START_MS: u64 = 1_795_000_000_000;

const ROUND_TRIP_MS: u64 = 20;

/// One body after the other lies in the bucket, each for so many milliseconds, the last for ever; a
/// member with a lease of `leader_timeout_ms` watches. Its first claim is judged.
pub fn bodies(bodies: &[(u64, Vec<u8>)], leader_timeout_ms: u64) {
    let Ok(config) = Config::new(&Settings {
        lockfile_path: Some("leader/group.json".to_owned()),
        server_id: Some(SERVER_ID.to_owned()),
        leader_timeout_ms: Some(leader_timeout_ms),
        ..Settings::default()
    }) else {
        return;
    };
    let mut election = Election::new(config.clone(), SESSION.to_owned(), leader_timeout_ms);
    let mut watched = Watched::default();
    let end_ms = bodies.iter().map(|(for_ms, _)| for_ms).sum::<u64>() + 5 * 3_600_000;
    let mut ms = 0;
    while ms < end_ms {
        match election.poll(at(ms)) {
            Step::Wait { until_ms } => ms = until_ms.saturating_sub(START_MS).max(ms + 1),
            Step::Read { unless, .. } => {
                let index = lying_at(bodies, ms);
                ms += ROUND_TRIP_MS;
                let version = Version(format!("\"v{index}\""));
                let known = unless.as_ref() == Some(&version);
                let reading = lease::read(&bodies[index].1);
                watched.answered(index, &reading, ms);
                let outcome =
                    if known { Outcome::Unchanged } else { Outcome::Found { version, reading } };
                let answer = Answer { outcome, facts: Facts::default() };
                election.handle(at(ms), Input::Answer(answer));
            }
            Step::Claim { lease, seen, .. } => {
                let body = &bodies[watched.index].1;
                assert_eq!(seen, Condition::Match(Version(format!("\"v{}\"", watched.index))));
                if lease.in_grace() {
                    // It grants nothing, over what may be put again to the byte.
                    let told = match lease::read(body) {
                        Reading::Lease(before) => {
                            assert!(before.released() && before.term.is_none());
                            None
                        }
                        Reading::Unreadable(_, told) => told.term,
                        Reading::Closed(_) => panic!("a closed record is never taken"),
                    };
                    assert_eq!(lease.term, told);
                } else {
                    let term = lease.term.expect("a claim has a term");
                    assert!(
                        term <= MAX_TERM && Some(term) > watched.highest_term,
                        "term {term} (S2)"
                    );
                }
                let waited_ms = ms - watched.since_ms;
                let needed_ms = watched.needed_ms(body, &config);
                let needed_ms = needed_ms.expect("a closed record is never claimed");
                assert!(waited_ms >= needed_ms, "claimed after {waited_ms} of {needed_ms} ms");
                assert!(!is_paused(body, ms), "claimed while it was paused");
                return;
            }
            step => panic!("{step:?} by a member that leads nothing and asks nobody"),
        }
    }
    let last = &bodies[bodies.len() - 1].1;
    let used_up = watched.highest_term >= Some(MAX_TERM);
    let closed = watched.needed_ms(last, &config).is_none() || is_paused(last, end_ms - 60_000);
    assert!(closed || used_up, "nobody ever claimed what anybody may claim");
}

fn is_paused(body: &[u8], ms: u64) -> bool {
    let Reading::Lease(lease) = lease::read(body) else { return false };
    lease.pause(START_MS + ms).is_some()
}

/// What the member has been told.
#[derive(Default)]
struct Watched {
    index: usize,
    since_ms: u64,
    begun: bool,
    highest_term: Option<u64>,
    longest_ms: u64,
}

impl Watched {
    fn answered(&mut self, index: usize, reading: &Reading, ms: u64) {
        if !self.begun || index != self.index {
            (self.begun, self.index, self.since_ms) = (true, index, ms);
        }
        if let Reading::Lease(lease) = reading {
            self.highest_term = self.highest_term.max(lease.term);
            self.longest_ms = self.longest_ms.max(lease.lease_ms.unwrap_or(0));
        }
        if let Reading::Unreadable(_, told) = reading {
            self.highest_term = self.highest_term.max(told.term);
        }
    }

    /// How long the body that lies there must have been watched; `None` if for ever.
    fn needed_ms(&self, body: &[u8], config: &Config) -> Option<u64> {
        match lease::read(body) {
            Reading::Closed(_) => None,
            Reading::Unreadable(..) => {
                let fields = Object::read(body);
                let told = fields.as_ref().and_then(|fields| fields.get("leaseMs"));
                let told_ms = told.and_then(believed_lease_ms).unwrap_or(0);
                Some(config.leader_timeout_ms.max(self.longest_ms).max(told_ms))
            }
            Reading::Lease(lease) => {
                let released = Object::read(body).is_some_and(|fields| is_tombstone(&fields));
                let ours = lease.parked && lease.leader_id == SERVER_ID;
                let lease_ms = lease.lease_ms.unwrap_or(config.leader_timeout_ms);
                Some(if released || ours { 0 } else { lease_ms })
            }
        }
    }
}

fn lying_at(bodies: &[(u64, Vec<u8>)], ms: u64) -> usize {
    let mut end_ms = 0;
    let ended = bodies.iter().take_while(|(for_ms, _)| {
        end_ms += for_ms;
        end_ms <= ms
    });
    ended.count().min(bodies.len() - 1)
}

fn at(ms: u64) -> Now {
    Now::new(START_MS + ms, START_MS + ms)
}
