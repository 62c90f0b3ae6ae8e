//! Members of a store that takes no time, as one within the isolate does: no timer fires before it has answered, so that nobody may ask
//! it over and over at one instant.

use edgelect::Settings;
use edgelect::clock::Now;
use edgelect::config::HostClock;
use edgelect::election::{Election, Event, Input, PeerAnswer, Step};
use edgelect::lease::{Lease, Reading};
use edgelect::store::{Answer, Condition, Facts, Outcome, Version};

use crate::alone::told::{AT_MS, config, settings};
use worlds::sim::chance::Chance;

const MOST_AT_ONE_INSTANT: u32 = 8;

#[derive(Default)]
struct Honest {
    writes: u64,
    record: Option<Lease>,
    modified_ms: u64,
    dated: bool,
}

impl Honest {
    fn version(&self) -> Version {
        Version(format!("\"{}\"", self.writes))
    }

    fn write(&mut self, now_ms: u64, lease: Lease, seen: &Condition) -> Outcome {
        let holds = match seen {
            Condition::Absent => self.record.is_none(),
            Condition::Match(version) => self.record.is_some() && *version == self.version(),
        };
        if !holds {
            return Outcome::Refused;
        }
        self.writes += 1;
        (self.record, self.modified_ms) = (Some(lease), now_ms / 1_000 * 1_000);
        Outcome::Written { version: Some(self.version()) }
    }

    fn answer(&mut self, now_ms: u64, step: Step) -> Input {
        let outcome = match step {
            Step::Read { unless, .. }
                if self.record.is_some() && unless == Some(self.version()) =>
            {
                Outcome::Unchanged
            }
            Step::Read { .. } => self.record.clone().map_or(Outcome::Missing, |lease| {
                Outcome::Found { version: self.version(), reading: Reading::Lease(Box::new(lease)) }
            }),
            Step::Claim { lease, seen, .. } => self.write(now_ms, *lease, &seen),
            Step::Renew { lease, held, .. } => self.write(now_ms, *lease, &Condition::Match(held)),
            Step::AskPeer { .. } => return Input::Peer(PeerAnswer::Silent),
            Step::Wait { .. } | Step::Finished => unreachable!("these ask for nothing"),
        };
        let date_ms = self.dated.then_some(now_ms / 1_000 * 1_000);
        let last_modified_ms = date_ms.and(Some(self.modified_ms));
        Input::Answer(Answer {
            outcome,
            facts: Facts { date_ms, last_modified_ms, ..Facts::default() },
        })
    }
}

fn an_input(random: &mut Chance, now_ms: u64) -> Input {
    let lease_ms = [4_000, 15_000, 60_000][random.below(3) as usize];
    match random.below(6) {
        0 => Input::Resign,
        1 => Input::Stop { park: random.below(2) == 0 },
        2 => Input::Compete(random.below(2) == 0),
        3 => Input::ParkAt { mono_ms: now_ms + 5_000 },
        4 => Input::Configure(Box::new(config(&Settings {
            leader_timeout_ms: Some(lease_ms),
            ..settings()
        }))),
        _ => Input::Tick,
    }
}

#[test]
fn nobody_asks_a_store_that_takes_no_time_over_and_over() {
    for seed in 0..2_000 {
        let mut random = Chance::new(seed);
        let mut store = Honest { dated: random.below(2) == 0, ..Honest::default() };
        let mut members: Vec<Election> = (0..3)
            .map(|number| {
                let clock = if random.below(3) == 0 { HostClock::Two } else { HostClock::One };
                let settings =
                    Settings { clock, server_id: Some(format!("m{number}")), ..settings() };
                Election::new(config(&settings), format!("s{number}"), random.next())
            })
            .collect();
        let mut now_ms = AT_MS;
        for _ in 0..200 {
            let held = random.below(3) == 0;
            let now = Now { held, ..Now::new(now_ms, now_ms) };
            let mut next_ms = u64::MAX;
            for member in &mut members {
                if random.below(40) == 0 {
                    member.handle(now, an_input(&mut random, now_ms));
                }
                let mut asked = 0;
                loop {
                    while let Some(event) = member.next_event() {
                        if let Event::Lost { term, .. } = event {
                            member.handle(now, Input::WorkEnded { term });
                        }
                    }
                    match member.poll(now) {
                        Step::Wait { until_ms } => break next_ms = next_ms.min(until_ms),
                        Step::Finished => break,
                        step => member.handle(now, store.answer(now_ms, step)),
                    }
                    asked += 1;
                    assert!(asked <= MOST_AT_ONE_INSTANT, "seed {seed}, at {} ms", now_ms - AT_MS);
                }
            }
            now_ms = match random.below(20) {
                0 => now_ms - random.below(30_000),
                1 => now_ms + random.below(30_000),
                _ => next_ms.min(now_ms + 15_000),
            };
        }
    }
}
