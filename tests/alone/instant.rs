//! Members of a store that takes no time, as one within the isolate does: no timer fires before it has answered, so that nobody may ask
//! it over and over at one instant.

use edgelect::clock::Now;
use edgelect::config::HostClock;
use edgelect::election::{Election, Event, Input, PeerAnswer, Step};
use edgelect::lease::{Lease, Reading};
use edgelect::slots::SlotEnd;
use edgelect::store::{Answer, Condition, Facts, Outcome, Version};
use edgelect::{Policy, Schedule, ScheduleSettings, Settings};

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

const PERIOD_MS: u64 = 60_000;

struct Member {
    election: Election,
    runs_slots: bool,
    working: Option<u64>,
}

impl Member {
    /// One that joins now: a leader or a trigger, on one clock or two.
    fn joining(random: &mut Chance, now_ms: u64, covers: bool) -> Self {
        let clock = random.pick(&[HostClock::One, HostClock::One, HostClock::Two]);
        let server_id = Some(format!("m{}", random.below(3)));
        let config = config(&Settings { clock, server_id, ..settings() });
        let (session, seed) = (random.next().to_string(), random.next());
        let runs_slots = random.one_in(3);
        let mut election = if runs_slots {
            let schedule = ScheduleSettings {
                slot_ms: Some(now_ms / PERIOD_MS * PERIOD_MS),
                period_ms: Some(PERIOD_MS),
                policy: Some(random.pick(&[Policy::AtMostOnce, Policy::AtLeastOnce])),
                ..ScheduleSettings::default()
            };
            let schedule = Schedule::new(&schedule, &config).expect("it keeps every rule");
            Election::for_schedule(config, session, seed, schedule)
        } else {
            Election::new(config, session, seed)
        };
        election.condition_covers_version(covers);
        Self { election, runs_slots, working: None }
    }

    fn hears_events(&mut self, random: &mut Chance, now: Now) {
        while let Some(event) = self.election.next_event() {
            match event {
                Event::Acquired { term } => self.working = Some(term),
                Event::Lost { term, .. } if !self.runs_slots => {
                    self.election.handle(now, Input::WorkEnded { term });
                }
                _ => {}
            }
        }
        if let Some(term) = self.working.take_if(|_| self.runs_slots && random.one_in(3)) {
            let (done, result) = (random.one_in(2), String::new());
            let end = SlotEnd { done, failed: !done, result, took_ms: 0 };
            self.election.handle(now, Input::SlotEnded { term, end });
        }
    }

    /// Goes on until it waits, and until when; `None` once it has finished.
    fn goes_on(&mut self, random: &mut Chance, now: Now, store: &mut Honest) -> Option<u64> {
        for _ in 0..=MOST_AT_ONE_INSTANT {
            self.hears_events(random, now);
            match self.election.poll(now) {
                Step::Wait { until_ms } => return Some(until_ms),
                Step::Finished => return None,
                step => self.election.handle(now, store.answer(now.mono_ms, step)),
            }
        }
        panic!("at {} ms it still asks", now.mono_ms - AT_MS);
    }
}

#[test]
fn nobody_asks_a_store_that_takes_no_time_over_and_over() {
    for seed in 0..2_000 {
        let mut random = Chance::new(seed);
        let covers = !random.one_in(4);
        let mut store = Honest { dated: random.one_in(2), ..Honest::default() };
        let mut now_ms = AT_MS;
        let mut members: Vec<Member> =
            (0..3).map(|_| Member::joining(&mut random, now_ms, covers)).collect();
        for _ in 0..200 {
            let now = Now { held: random.one_in(3), ..Now::new(now_ms, now_ms) };
            let mut next_ms = now_ms + 15_000;
            for member in &mut members {
                if random.one_in(40) {
                    member.election.handle(now, an_input(&mut random, now_ms));
                }
                match member.goes_on(&mut random, now, &mut store) {
                    Some(until_ms) => next_ms = next_ms.min(until_ms),
                    None => *member = Member::joining(&mut random, now_ms, covers),
                }
            }
            now_ms = match random.below(20) {
                0 => now_ms - random.below(30_000),
                1 => now_ms + random.below(30_000),
                _ => next_ms,
            };
        }
    }
}
