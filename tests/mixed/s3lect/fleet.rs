//! Edgelect's electors and stand-ins for S3lect's members in one group, under one seed; and what the store has accepted.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use edgelect::lease::{self, Reading};
use edgelect::store::memory::Memory;
use edgelect::{
    Config, Follow, Handle, Host, Input, Missed, Policy, Schedule, ScheduleSettings, Settings,
    Term, new_election, new_schedule, run_scheduled,
};

use super::member::{Member, Rules, Seen};
use crate::mixed::bucket::{Bucket, Shared};
use crate::mixed::world::World;
use worlds::sim::chance::Chance;
use worlds::virtual_time::{EPOCH_MS, Virtual, config_of};

const MINUTE_MS: u64 = 60_000;

/// Of what a seed draws its course.
#[derive(Clone, Copy)]
pub struct Course {
    pub rules: Rules,
    /// How far a foreign wall clock may be from the store's.
    pub foreign_off_ms: u64,
    pub failing_per_mille: u64,
    pub minutes: u64,
    /// Whether the fleet must have a leader once nothing fails any more.
    pub lives: bool,
}

/// What happened, over one seed or many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub terms: u64,
    pub foreign: u64,
    pub resigned: u64,
    /// Terms that followed a foreign record, and foreign leaderships that followed one of ours.
    pub from_foreign: u64,
    pub to_foreign: u64,
}

/// Somebody who may be struck.
struct Candidate {
    name: String,
    cut_until_ms: Rc<Cell<u64>>,
    kind: Kind,
}

enum Kind {
    Ours(Handle),
    Theirs(Seen),
}

/// One object, and who asks for it.
pub struct Group {
    pub bucket: Bucket,
    course: Course,
    /// Whether the store names times.
    pub dated: bool,
    candidates: RefCell<Vec<Candidate>>,
    tally: RefCell<Tally>,
}

pub type Fleet = World<Group>;

pub fn fleet(seed: u64, course: Course) -> Fleet {
    let mut fleet = World::strict(250, |time| {
        let mut chance = Chance::new(seed);
        let dated = !chance.one_in(4);
        let clock = time.clone();
        let memory = match dated {
            true => Memory::new(move || clock.wall_ms()),
            false => Memory::default(),
        };
        let bucket = Bucket::new(time, memory, chance);
        Group { bucket, course, dated, candidates: RefCell::default(), tally: RefCell::default() }
    });
    fleet.seed = seed;
    let bucket = fleet.place.bucket.clone();
    fleet.each_step = Box::new(move || bucket.arrive());
    fleet
}

fn config(name: &str, follow: Follow) -> Config {
    let server_id = Some(name.to_owned());
    config_of(Settings { server_id, follow: Some(follow), ..Settings::default() })
}

impl Fleet {
    fn chance<T>(&self, draw: impl FnOnce(&mut Chance) -> T) -> T {
        draw(&mut self.place.bucket.chance.borrow_mut())
    }

    fn off_ms(&self, most_ms: u64) -> i64 {
        self.chance(|chance| chance.between(0, 2 * most_ms)) as i64 - most_ms as i64
    }

    /// A host whose clock is far from the store's. Without `Date` tokens stand on the own wall clock (S2).
    fn host(&self) -> Virtual {
        let ahead_ms = if self.place.dated { self.off_ms(3_600_000) } else { 0 };
        self.time.ahead(ahead_ms).drawing(&self.place.bucket.chance)
    }

    /// Starts an elector of ours, which knows nothing of what was before.
    pub fn start_ours(&self) -> Handle {
        let name = format!("ours-{}", self.next_number());
        let host = self.host();
        let follow = [Follow::Tight, Follow::Balanced, Follow::Frugal];
        let follow = self.chance(|chance| chance.pick(&follow));
        let election = new_election(&host, config(&name, follow)).expect("it has chance");
        let handle = Handle::new(election);
        let bucket = self.place.bucket.another_way();
        let way = Rc::clone(&bucket.cut_until_ms);
        self.elect(&name, handle.clone(), bucket, host, ());
        self.note(name, way, Kind::Ours(handle.clone()));
        handle
    }

    /// Starts a member of S3lect's make.
    pub fn start_theirs(&self) -> Seen {
        let (id, seen) = (format!("s3lect-{}", self.next_number()), Seen::default());
        let (rules, time) = (self.place.course.rules, self.time.clone());
        let bucket = self.place.bucket.another_way();
        let way = Rc::clone(&bucket.cut_until_ms);
        let (observer, clock) = (Rc::clone(&self.observer), time.clone());
        let member = Member {
            id: id.clone(),
            rules,
            bucket,
            time: time.ahead(self.off_ms(self.place.course.foreign_off_ms)),
            offset_minutes: self.chance(|chance| chance.pick(&[0, 120, -570])),
            seen: seen.clone(),
            begins: Rc::new(move || _ = observer.look(clock.now_ms.get())),
        };
        let acts = seen.clone();
        let leads = move || acts.acts(&rules, time.now_ms.get());
        self.admit(&id, false, leads, async move { member.run().await });
        self.note(id, way, Kind::Theirs(seen.clone()));
        seen
    }

    fn note(&self, name: String, cut_until_ms: Rc<Cell<u64>>, kind: Kind) {
        self.place.candidates.borrow_mut().push(Candidate { name, cut_until_ms, kind });
    }

    /// One thing that happens to somebody; then another of the same make takes its place.
    fn strike(&self) {
        let leader = self.leaders().into_iter().next();
        let mut candidates = self.place.candidates.borrow_mut();
        let leader = candidates.iter().position(|one| Some(&one.name) == leader.as_ref());
        let any = self.chance(|chance| chance.below(candidates.len() as u64)) as usize;
        let at = if self.chance(|chance| chance.one_in(2)) { leader.unwrap_or(any) } else { any };
        let foreign = matches!(candidates[at].kind, Kind::Theirs(_));
        match (self.chance(|chance| chance.below(4)), &candidates[at].kind) {
            (0, _) => {
                let gone = candidates.swap_remove(at);
                self.kill(&gone.name);
                self.count(&gone.kind);
            }
            (1, Kind::Ours(handle)) => return handle.tell(Input::Resign),
            (3, _) => {
                let ms = self.chance(|chance| chance.between(1_000, 40_000));
                return candidates[at].cut_until_ms.set(self.now_ms() + ms);
            }
            (_, Kind::Ours(handle)) => handle.tell(Input::Stop { park: false }),
            (_, Kind::Theirs(seen)) => seen.stop.set(true),
        }
        drop(candidates);
        if foreign {
            self.start_theirs();
        } else {
            self.start_ours();
        }
    }

    fn count(&self, kind: &Kind) {
        if let Kind::Theirs(seen) = kind {
            let mut tally = self.place.tally.borrow_mut();
            tally.foreign += seen.taken.get();
            tally.resigned += seen.resigned.get();
        }
    }

    /// Two of each make, minutes of blows and failures, then peace. What went wrong, and how often each make led.
    pub fn play(mut self) -> (Vec<String>, Tally) {
        for _ in 0..2 {
            self.start_ours();
            self.start_theirs();
        }
        let course = self.place.course;
        self.place.bucket.failing_per_mille.set(course.failing_per_mille);
        for _ in 0..course.minutes * 60 {
            self.run(1_000);
            if self.chance(|chance| chance.one_in(25)) {
                self.strike();
            }
        }
        self.place.bucket.failing_per_mille.set(0);
        self.run(180_000);
        let mut broken = self.observer.broken();
        if course.lives && self.ours_leads().is_none() {
            broken.push("nobody leads in the end".to_owned());
        }
        self.place.candidates.borrow().iter().for_each(|one| self.count(&one.kind));
        let mut tally = self.place.tally.take();
        tally.terms = self.observer.tokens.borrow().len() as u64;
        broken.extend(stored(&self.place.bucket, &mut tally));
        (broken, tally)
    }

    /// One trigger for a slot. Every job that begins is noted.
    fn trigger(&self, slot_ms: u64, policy: Policy, begun: &Shared<Vec<u64>>) {
        let name = format!("cron-{}", self.next_number());
        let host = self.host().ahead(self.off_ms(3_600_000));
        let config = config("cron", Follow::Balanced);
        let settings = ScheduleSettings {
            slot_ms: Some(slot_ms),
            period_ms: Some(MINUTE_MS),
            policy: Some(policy),
            missed: Some(Missed::Skip),
            ..ScheduleSettings::default()
        };
        let schedule = Schedule::new(&settings, &config).expect("it is fine");
        let handle = Handle::new(new_schedule(&host, config, schedule).expect("it has chance"));
        let bucket = self.place.bucket.another_way();
        let work = {
            let (handle, host, observer) =
                (handle.clone(), host.clone(), Rc::clone(&self.observer));
            let begun = Rc::clone(begun);
            async move {
                let job = async |term: Term<'_, Virtual>| {
                    observer.hand_out(term.token, host.now_ms.get());
                    observer.look(host.now_ms.get());
                    begun.borrow_mut().push(term.slot_ms.expect("a slot is run"));
                    host.sleep(7_000).await;
                    Ok::<(), &'static str>(())
                };
                let _ = run_scheduled(&handle, &bucket, &host, job).await;
            }
        };
        self.admit(&name, true, move || handle.authority(host.now()).is_some(), work);
    }

    /// Doubled and late triggers for every minute, whose runners die at times, while a member of theirs comes and goes.
    /// What went wrong, and which slots were begun.
    pub fn play_slots(mut self, policy: Policy, minutes: u64) -> (Vec<String>, Vec<u64>) {
        let begun: Shared<Vec<u64>> = Shared::default();
        self.place.bucket.failing_per_mille.set(self.place.course.failing_per_mille);
        let mut theirs = Some(self.start_theirs());
        for minute in 1..=minutes {
            let slot_ms = EPOCH_MS / MINUTE_MS * MINUTE_MS + minute * MINUTE_MS;
            let end_ms = slot_ms + MINUTE_MS - EPOCH_MS;
            while self.now_ms() + 1_000 <= end_ms {
                self.run(1_000);
                let due = EPOCH_MS + self.now_ms() >= slot_ms;
                if self.chance(|chance| chance.one_in(12)) && due {
                    self.trigger(slot_ms, policy, &begun);
                }
                if self.chance(|chance| chance.one_in(40)) && self.ours_leads() == Some(true) {
                    self.leaders().first().into_iter().for_each(|runner| self.kill(runner));
                }
                if self.chance(|chance| chance.one_in(45)) {
                    theirs = match theirs.take() {
                        Some(seen) => {
                            seen.stop.set(true);
                            None
                        }
                        None => Some(self.start_theirs()),
                    };
                }
            }
        }
        (self.observer.broken(), begun.take())
    }
}

/// What is wrong with what the store has accepted, in its order: terms grow over every foreign record between.
fn stored(bucket: &Bucket, tally: &mut Tally) -> Vec<String> {
    let (mut before, mut was_foreign) = (None::<(String, u64)>, None);
    let mut broken = Vec::new();
    for written in bucket.written.borrow().iter() {
        let Reading::Lease(lease) = lease::read(&written.body) else {
            broken.push(format!("{}: unreadable", written.at_ms));
            continue;
        };
        let foreign = lease.session.is_none();
        match was_foreign {
            Some(true) if !foreign => tally.from_foreign += 1,
            Some(false) if foreign => tally.to_foreign += 1,
            _ => {}
        }
        was_foreign = Some(foreign);
        let (Some(session), Some(term)) = (lease.session, lease.term) else { continue };
        let falls = before
            .as_ref()
            .is_some_and(|(of, last)| term < *last || (term == *last && *of != session));
        if falls {
            broken.push(format!("{}: stored term {term} after {before:?}", written.at_ms));
        }
        before = Some((session, term));
    }
    broken
}
