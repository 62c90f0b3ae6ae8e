//! Edgelect's electors and stand-ins for S3lect's members in one group, in virtual time, under one seed; and what
//! must hold of them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use edgelect::clock::Now;
use edgelect::election::Event;
use edgelect::lease::{self, Reading};
use edgelect::request::{Request, Response};
use edgelect::store::memory::Memory;
use edgelect::{
    Config, Follow, Handle, Host, Input, Missed, Policy, Schedule, ScheduleSettings, Settings,
    Term, new_election, new_schedule, run, run_scheduled,
};
use futures::executor::LocalPool;
use futures::future::{AbortHandle, FutureExt, abortable};
use futures::task::LocalSpawnExt;

use super::bucket::{Bucket, Shared};
use super::member::{Member, Rules, Seen};
use crate::chance::Chance;
use crate::virtual_time::Virtual;

pub const EPOCH_MS: u64 = 1_795_000_000_000;
const STEP_MS: u64 = 250;
const MINUTE_MS: u64 = 60_000;

/// A host whose wall clock is off by some seconds.
#[derive(Clone)]
pub struct Place {
    time: Virtual,
    ahead_ms: i64,
    chance: Shared<Chance>,
}

impl Host for Place {
    fn now(&self) -> Now {
        let now = self.time.now();
        Now::new(now.mono_ms, now.wall_ms.saturating_add_signed(self.ahead_ms))
    }

    async fn sleep(&self, ms: u64) {
        self.time.sleep(ms).await;
    }

    fn random(&self) -> Result<[u8; 16], String> {
        let mut chance = self.chance.borrow_mut();
        Ok((u128::from(chance.next()) << 64 | u128::from(chance.next())).to_le_bytes())
    }

    async fn fetch(&self, _request: Request, _limit: usize) -> Result<Response, String> {
        Err("there is no network here".to_owned())
    }
}

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
    pub restarts: u64,
    /// Terms that followed a foreign record, and foreign leaderships that followed one of ours.
    pub from_foreign: u64,
    pub to_foreign: u64,
}

/// Whatever can have authority, and whether it has.
struct Candidate {
    name: String,
    foreign: bool,
    leads: Box<dyn Fn() -> bool>,
    end: AbortHandle,
    cut_until_ms: Rc<Cell<u64>>,
    kind: Kind,
}

enum Kind {
    Ours(Handle),
    Theirs(Seen),
}

/// What is known to have gone wrong, and what tokens were handed out.
#[derive(Default)]
pub struct Ledger {
    pub violations: RefCell<Vec<String>>,
    tokens: RefCell<Vec<u64>>,
}

pub struct Fleet {
    pub time: Virtual,
    pub bucket: Bucket,
    pub ledger: Rc<Ledger>,
    pool: LocalPool,
    chance: Shared<Chance>,
    candidates: Shared<Vec<Candidate>>,
    course: Course,
    /// Whether the store names times.
    pub dated: bool,
    tally: Rc<RefCell<Tally>>,
    made: Cell<u64>,
}

fn config(name: &str, follow: Follow) -> Config {
    let settings = Settings {
        lockfile_path: Some("leader/fleet.json".to_owned()),
        server_id: Some(name.to_owned()),
        follow: Some(follow),
        ..Settings::default()
    };
    Config::new(&settings).expect("the defaults are fine")
}

/// At every beginning of an authority nobody else has one: of two that overlap, one begins second.
fn look(candidates: &Shared<Vec<Candidate>>, ledger: &Ledger, now_ms: u64) {
    let candidates = candidates.borrow();
    let leaders: Vec<&str> =
        candidates.iter().filter(|one| (one.leads)()).map(|one| one.name.as_str()).collect();
    if leaders.len() > 1 {
        ledger.violations.borrow_mut().push(format!("{now_ms}: {leaders:?} at once"));
    }
}

impl Fleet {
    pub fn new(seed: u64, course: Course) -> Self {
        let time = Virtual::default();
        let chance = Rc::new(RefCell::new(Chance::new(seed)));
        let dated = !chance.borrow_mut().one_in(4);
        let clock = time.clone();
        let memory = match dated {
            true => Memory::new(move || EPOCH_MS + clock.now_ms.get()),
            false => Memory::default(),
        };
        let bucket = Bucket::new(&time, memory, &chance);
        Self {
            time,
            bucket,
            ledger: Rc::default(),
            pool: LocalPool::new(),
            chance,
            candidates: Rc::default(),
            course,
            dated,
            tally: Rc::default(),
            made: Cell::new(0),
        }
    }

    fn off_ms(&self, most_ms: u64) -> i64 {
        let ms = self.chance.borrow_mut().between(0, 2 * most_ms);
        i64::try_from(ms).expect("short") - i64::try_from(most_ms).expect("short")
    }

    fn name(&self, make: &str) -> String {
        self.made.set(self.made.get() + 1);
        format!("{make}-{}", self.made.get())
    }

    /// Starts an elector of ours, which knows nothing of what was before.
    pub fn start_ours(&mut self) -> Handle {
        let name = self.name("ours");
        // Without `Date` tokens stand on the own wall clock (S2).
        let ahead_ms = if self.dated { self.off_ms(3_600_000) } else { 0 };
        let (time, chance) = (self.time.clone(), Rc::clone(&self.chance));
        let place = Place { time, ahead_ms, chance };
        let follow =
            self.chance.borrow_mut().pick(&[Follow::Tight, Follow::Balanced, Follow::Frugal]);
        let election = new_election(&place, config(&name, follow)).expect("it has chance");
        let handle = Handle::new(election);
        let bucket = self.bucket.another_way();
        let cut_until_ms = Rc::clone(&bucket.cut_until_ms);
        let work = {
            let (handle, place) = (handle.clone(), place.clone());
            let (candidates, ledger) = (Rc::clone(&self.candidates), Rc::clone(&self.ledger));
            let tally = Rc::clone(&self.tally);
            async move {
                run(&handle, &bucket, &place, |event| match event {
                    Event::Acquired { term } => {
                        tally.borrow_mut().terms += 1;
                        ledger.hand_out(term, place.time.now_ms.get());
                        look(&candidates, &ledger, place.time.now_ms.get());
                    }
                    Event::Lost { term, .. } => handle.tell(Input::WorkEnded { term }),
                    _ => {}
                })
                .await;
            }
        };
        let leads = {
            let (handle, place) = (handle.clone(), place);
            Box::new(move || handle.authority(place.now()).is_some())
        };
        self.admit(name, leads, Kind::Ours(handle.clone()), cut_until_ms, work);
        handle
    }

    /// Starts a member of S3lect's make.
    pub fn start_theirs(&mut self) -> Seen {
        let id = self.name("s3lect");
        let seen = Seen::default();
        let (rules, time) = (self.course.rules, self.time.clone());
        let begins: Rc<dyn Fn()> = {
            let (candidates, ledger) = (Rc::clone(&self.candidates), Rc::clone(&self.ledger));
            let time = time.clone();
            Rc::new(move || look(&candidates, &ledger, time.now_ms.get()))
        };
        let bucket = self.bucket.another_way();
        let cut_until_ms = Rc::clone(&bucket.cut_until_ms);
        let member = Member {
            id: id.clone(),
            rules,
            bucket,
            time: time.clone(),
            ahead_ms: self.off_ms(self.course.foreign_off_ms),
            offset_minutes: self.chance.borrow_mut().pick(&[0, 120, -570]),
            seen: seen.clone(),
            begins,
        };
        let leads = {
            let seen = seen.clone();
            Box::new(move || seen.acts(&rules, time.now_ms.get()))
        };
        let work = async move { member.run().await };
        self.admit(id, leads, Kind::Theirs(seen.clone()), cut_until_ms, work);
        seen
    }

    fn admit(
        &mut self,
        name: String,
        leads: Box<dyn Fn() -> bool>,
        kind: Kind,
        cut_until_ms: Rc<Cell<u64>>,
        work: impl Future<Output = ()> + 'static,
    ) {
        let (work, end) = abortable(work);
        self.pool.spawner().spawn_local(work.map(|_| ())).expect("the pool is alive");
        let foreign = matches!(kind, Kind::Theirs(_));
        self.candidates.borrow_mut().push(Candidate {
            name,
            foreign,
            leads,
            end,
            cut_until_ms,
            kind,
        });
    }

    pub fn pass(&mut self, ms: u64) {
        let mut left_ms = ms;
        while left_ms > 0 {
            let step_ms = left_ms.min(STEP_MS);
            self.bucket.arrive();
            self.time.pass(&mut self.pool, step_ms);
            look(&self.candidates, &self.ledger, self.time.now_ms.get());
            left_ms -= step_ms;
        }
    }

    /// Whether one of ours leads, or one of theirs; `None` without a leader.
    pub fn foreign_leads(&self) -> Option<bool> {
        let candidates = self.candidates.borrow();
        candidates.iter().find(|one| (one.leads)()).map(|one| one.foreign)
    }

    /// One thing that happens to somebody; then another of the same make takes its place.
    fn strike(&mut self) {
        let (at, blow) = {
            let mut chance = self.chance.borrow_mut();
            let candidates = self.candidates.borrow();
            let leader = candidates.iter().position(|one| (one.leads)());
            let any = chance.below(candidates.len() as u64) as usize;
            let at = if chance.one_in(2) { leader.unwrap_or(any) } else { any };
            (at, chance.below(4))
        };
        if blow == 3 {
            let until_ms = self.time.now_ms.get() + self.chance.borrow_mut().between(1_000, 40_000);
            return self.candidates.borrow()[at].cut_until_ms.set(until_ms);
        }
        let foreign = {
            let candidates = self.candidates.borrow();
            match (&candidates[at].kind, blow) {
                (_, 0) => candidates[at].end.abort(),
                (Kind::Ours(handle), 1) => return handle.tell(Input::Resign),
                (Kind::Ours(handle), _) => handle.tell(Input::Stop { park: false }),
                (Kind::Theirs(seen), _) => seen.stop.set(true),
            }
            candidates[at].foreign
        };
        self.tally.borrow_mut().restarts += 1;
        if blow == 0 {
            // Without a process there is no leader, whatever it last believed.
            let gone = self.candidates.borrow_mut().swap_remove(at);
            if let Kind::Theirs(seen) = gone.kind {
                self.note(&seen);
            }
        }
        if foreign {
            self.start_theirs();
        } else {
            self.start_ours();
        }
    }

    fn note(&self, seen: &Seen) {
        let mut tally = self.tally.borrow_mut();
        tally.foreign += seen.taken.get();
        tally.resigned += seen.resigned.get();
    }

    /// Two of each make, minutes of blows and failures, then peace.
    pub fn play(mut self) -> (Vec<String>, Tally) {
        for _ in 0..2 {
            self.start_ours();
            self.start_theirs();
        }
        self.bucket.failing_per_mille.set(self.course.failing_per_mille);
        for _ in 0..self.course.minutes * 60 {
            self.pass(1_000);
            if self.chance.borrow_mut().one_in(25) {
                self.strike();
            }
        }
        self.bucket.failing_per_mille.set(0);
        self.pass(180_000);
        if self.course.lives && self.foreign_leads().is_none() {
            self.ledger.violations.borrow_mut().push("nobody leads in the end".to_owned());
        }
        for one in self.candidates.borrow().iter() {
            if let Kind::Theirs(seen) = &one.kind {
                self.note(seen);
            }
        }
        self.ledger.stored(&self.bucket, &mut self.tally.borrow_mut());
        let violations = self.ledger.violations.take();
        (violations, self.tally.take())
    }
}

/// Cron slots of ours beside members of theirs.
impl Fleet {
    /// One trigger for a slot. Every job that begins is noted.
    fn trigger(&mut self, slot_ms: u64, policy: Policy, begun: &Shared<Vec<u64>>) {
        let name = self.name("cron");
        let place = Place {
            time: self.time.clone(),
            ahead_ms: self.off_ms(3_600_000),
            chance: Rc::clone(&self.chance),
        };
        let config = config("cron", Follow::Balanced);
        let settings = ScheduleSettings {
            slot_ms: Some(slot_ms),
            period_ms: Some(MINUTE_MS),
            policy: Some(policy),
            missed: Some(Missed::Skip),
            ..ScheduleSettings::default()
        };
        let schedule = Schedule::new(&settings, &config).expect("it is fine");
        let election = new_schedule(&place, config, schedule).expect("it has chance");
        let handle = Handle::new(election);
        let bucket = self.bucket.another_way();
        let cut_until_ms = Rc::clone(&bucket.cut_until_ms);
        let work = {
            let (handle, place) = (handle.clone(), place.clone());
            let (candidates, ledger) = (Rc::clone(&self.candidates), Rc::clone(&self.ledger));
            let begun = Rc::clone(begun);
            async move {
                let job = async |term: Term<'_, Place>| {
                    ledger.hand_out(term.token, place.time.now_ms.get());
                    look(&candidates, &ledger, place.time.now_ms.get());
                    begun.borrow_mut().push(term.slot_ms.expect("a slot is run"));
                    place.sleep(7_000).await;
                    Ok::<(), &'static str>(())
                };
                let _ = run_scheduled(&handle, &bucket, &place, job).await;
            }
        };
        let leads = {
            let (handle, place) = (handle.clone(), place);
            Box::new(move || handle.authority(place.now()).is_some())
        };
        self.admit(name, leads, Kind::Ours(handle), cut_until_ms, work);
    }

    /// Doubled and late triggers for every minute, whose runners die at times, while a member of theirs comes and goes.
    /// What went wrong, and which slots were begun.
    pub fn play_slots(mut self, policy: Policy, minutes: u64) -> (Vec<String>, Vec<u64>) {
        let begun: Shared<Vec<u64>> = Shared::default();
        self.bucket.failing_per_mille.set(self.course.failing_per_mille);
        let mut theirs = Some(self.start_theirs());
        for minute in 1..=minutes {
            let slot_ms = EPOCH_MS / MINUTE_MS * MINUTE_MS + minute * MINUTE_MS;
            let mut left_ms =
                (slot_ms + MINUTE_MS).saturating_sub(EPOCH_MS + self.time.now_ms.get());
            while left_ms >= 1_000 {
                self.pass(1_000);
                left_ms -= 1_000;
                let due = EPOCH_MS + self.time.now_ms.get() >= slot_ms;
                let (fires, dies, goes) = {
                    let mut chance = self.chance.borrow_mut();
                    (chance.one_in(12), chance.one_in(40), chance.one_in(45))
                };
                if due && fires {
                    self.trigger(slot_ms, policy, &begun);
                }
                if dies {
                    self.crash_a_runner();
                }
                if goes {
                    theirs = match theirs.take() {
                        Some(seen) => {
                            seen.stop.set(true);
                            None
                        }
                        None => Some(self.start_theirs()),
                    };
                }
            }
            self.candidates.borrow_mut().retain(|one| !one.end.is_aborted());
        }
        (self.ledger.violations.take(), begun.take())
    }

    fn crash_a_runner(&mut self) {
        let mut candidates = self.candidates.borrow_mut();
        let Some(at) = candidates.iter().position(|one| !one.foreign && (one.leads)()) else {
            return;
        };
        candidates.swap_remove(at).end.abort();
    }
}

impl Ledger {
    fn hand_out(&self, term: u64, now_ms: u64) {
        let mut tokens = self.tokens.borrow_mut();
        if let Some(before) = tokens.last().filter(|before| **before >= term) {
            self.violations.borrow_mut().push(format!("{now_ms}: token {term} after {before}"));
        }
        tokens.push(term);
    }

    /// What the store accepted, in its order: terms grow over every foreign record between.
    fn stored(&self, bucket: &Bucket, tally: &mut Tally) {
        let (mut before, mut was_foreign) = (None::<(String, u64)>, None);
        for written in bucket.written.borrow().iter() {
            let Reading::Lease(lease) = lease::read(&written.body) else {
                self.violations.borrow_mut().push(format!("{}: unreadable", written.at_ms));
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
                let text = format!("{}: stored term {term} after {before:?}", written.at_ms);
                self.violations.borrow_mut().push(text);
            }
            before = Some((session, term));
        }
    }
}
