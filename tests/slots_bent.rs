//! What went wrong with one job per cron slot before anybody used it, one test each: stores whose answers are bent, records
//! that come back, stops in the wrong moment.

#[allow(dead_code)] // The driver needs more of it.
mod virtual_time;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use edgelect::clock::Now;
use edgelect::election::SlotsOver;
use edgelect::lease::{self, Lease, Reading};
use edgelect::request::{Request, Response};
use edgelect::slots::{OwnSlots, StorageTimes, Verdict};
use edgelect::store::memory::Memory;
use edgelect::store::{Answer, Condition, Facts, Fault, FaultKind, Operation, Outcome, Store};
use edgelect::{
    Config, Election, Handle, Host, Input, Missed, Policy, Report, Schedule, ScheduleSettings,
    SlotOutcome, Term, driver, run_scheduled,
};
use futures::channel::oneshot;
use futures::executor::{LocalPool, block_on};
use futures::future::{AbortHandle, Abortable};
use futures::task::LocalSpawnExt;
use virtual_time::{Virtual, config};

/// A session that has run nothing yet.
fn nobody(session: &str) -> OwnSlots<'_> {
    OwnSlots { session, begun: &[], done: &[] }
}

const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 86_400_000;
const EPOCH_MS: u64 = 1_795_000_000_000;
const FIRST_MS: u64 = EPOCH_MS / MINUTE_MS * MINUTE_MS + MINUTE_MS;

#[derive(Clone, Copy, PartialEq)]
enum Dates {
    Right,
    /// No `Date`, but `Last-Modified`.
    NoDate,
    /// `Date`, but no `Last-Modified`.
    NoLastModified,
    /// Neither.
    None,
    /// A cache answers with its own `Date` of an hour ago.
    CachedHourAgo,
}

/// A store whose answers can be bent.
#[derive(Clone)]
struct Odd {
    memory: Memory,
    dates: Rc<Cell<Dates>>,
    /// Writes say that they landed, without a version.
    unnamed: Rc<Cell<bool>>,
    /// The answer of the next write is lost.
    lose: Rc<Cell<u32>>,
    hangs: Rc<Cell<bool>>,
    /// The store can't be used from here on.
    misconfigured: Rc<Cell<bool>>,
    /// The answer of the first write that claims this slot is lost.
    lose_slot: Rc<Cell<Option<u64>>>,
    /// The answer of the next write waits for this.
    gate: Rc<RefCell<Option<oneshot::Receiver<()>>>>,
    writes: Rc<Cell<u32>>,
    reads: Rc<Cell<u32>>,
}

impl Store for Odd {
    async fn perform(&self, operation: Operation) -> Answer {
        if self.hangs.get() {
            return std::future::pending().await;
        }
        if self.misconfigured.get() {
            let fault = Fault::new(FaultKind::Misconfigured, "no such bucket");
            return Answer { outcome: Outcome::Rejected(fault), facts: Facts::default() };
        }
        let is_write = matches!(operation, Operation::Write { .. });
        let count = if is_write { &self.writes } else { &self.reads };
        count.set(count.get() + 1);
        let claims = match (&operation, self.lose_slot.get()) {
            (Operation::Write { body, .. }, Some(slot_ms)) => {
                String::from_utf8_lossy(body).contains(&format!("\"slot\":{slot_ms}"))
            }
            _ => false,
        };
        let mut answer = self.memory.perform(operation).await;
        if claims {
            self.lose_slot.set(None);
            let cause = Fault::new(FaultKind::Network, "reset");
            answer.outcome = Outcome::Unknown { retry_after_ms: None, cause };
        }
        match self.dates.get() {
            Dates::Right => {}
            Dates::NoDate => answer.facts.date_ms = None,
            Dates::NoLastModified => answer.facts.last_modified_ms = None,
            Dates::None => (answer.facts.date_ms, answer.facts.last_modified_ms) = (None, None),
            Dates::CachedHourAgo => {
                answer.facts.date_ms = answer.facts.date_ms.map(|ms| ms - 3_600_000);
                (answer.facts.cached, answer.facts.relayed) = (true, true);
            }
        }
        if is_write {
            if self.unnamed.get() && matches!(answer.outcome, Outcome::Written { .. }) {
                answer.outcome = Outcome::Written { version: None };
            }
            if self.lose.get() > 0 {
                self.lose.set(self.lose.get() - 1);
                let cause = Fault::new(FaultKind::Network, "reset");
                answer.outcome = Outcome::Unknown { retry_after_ms: None, cause };
            }
            let gate = self.gate.borrow_mut().take();
            if let Some(gate) = gate {
                let _ = gate.await;
            }
        }
        answer
    }

    fn condition_covers_version(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        "odd".to_owned()
    }
}

#[derive(Clone, Copy)]
enum Job {
    Takes(u64),
    Hangs,
}

struct Trigger {
    handle: Handle,
    report: Rc<RefCell<Option<Report<u64, &'static str>>>>,
    kill: AbortHandle,
}

impl Trigger {
    fn report(&self) -> Report<u64, &'static str> {
        self.report.borrow().clone().expect("it has ended")
    }
}

struct World {
    host: Virtual,
    store: Odd,
    pool: LocalPool,
    begun: Rc<RefCell<Vec<u64>>>,
    sessions: Cell<u64>,
}

fn settings(policy: Policy, missed: Missed) -> ScheduleSettings {
    ScheduleSettings {
        period_ms: Some(MINUTE_MS),
        policy: Some(policy),
        missed: Some(missed),
        ..ScheduleSettings::default()
    }
}

impl World {
    fn behind(store_behind_ms: u64) -> Self {
        let host = Virtual::default();
        let clock = host.clone();
        let memory = Memory::new(move || EPOCH_MS + clock.now_ms.get() - store_behind_ms);
        let store = Odd {
            memory,
            dates: Rc::new(Cell::new(Dates::Right)),
            unnamed: Rc::default(),
            lose: Rc::default(),
            hangs: Rc::default(),
            misconfigured: Rc::default(),
            lose_slot: Rc::default(),
            gate: Rc::default(),
            writes: Rc::default(),
            reads: Rc::default(),
        };
        Self { host, store, pool: LocalPool::new(), begun: Rc::default(), sessions: Cell::new(0) }
    }

    fn new() -> Self {
        Self::behind(0)
    }

    fn with_init() -> Self {
        Self::with_init_as(Dates::Right)
    }

    fn with_init_as(dates: Dates) -> Self {
        let mut world = Self::new();
        world.store.dates.set(dates);
        block_on(driver::init(&world.store, &world.host, &config())).expect("a new group");
        world.at(FIRST_MS);
        world
    }

    fn pass(&mut self, ms: u64) {
        self.host.pass(&mut self.pool, ms);
    }

    fn at(&mut self, wall_ms: u64) {
        let ms = wall_ms.checked_sub(EPOCH_MS + self.host.now_ms.get()).expect("time goes on");
        self.pass(ms);
    }

    fn trigger(&self, slot_ms: u64, settings: ScheduleSettings, job: Job) -> Trigger {
        let settings = ScheduleSettings { slot_ms: Some(slot_ms), ..settings };
        self.run(&self.host, settings, job)
    }

    fn run<H: Host + Clone + 'static>(
        &self,
        host: &H,
        settings: ScheduleSettings,
        job: Job,
    ) -> Trigger {
        let schedule = Schedule::new(&settings, &config()).expect("it is fine");
        self.sessions.set(self.sessions.get() + 1);
        let seed = self.sessions.get();
        let config = Config { server_id: "m".to_owned(), ..config() };
        let election = Election::for_schedule(config, format!("s{seed}"), seed, schedule);
        let handle = Handle::new(election);
        let report = Rc::new(RefCell::new(None));
        let (kill, registration) = AbortHandle::new_pair();
        let (host, store, begun) = (host.clone(), self.store.clone(), Rc::clone(&self.begun));
        let task = {
            let (handle, report) = (handle.clone(), Rc::clone(&report));
            async move {
                let ran = run_scheduled(&handle, &store, &host, async |term: Term<'_, H>| {
                    let slot_ms = term.slot_ms.expect("a slot is run");
                    begun.borrow_mut().push(slot_ms);
                    match job {
                        Job::Takes(ms) => host.sleep(ms).await,
                        Job::Hangs => std::future::pending().await,
                    }
                    Ok(slot_ms)
                });
                *report.borrow_mut() = Some(ran.await.expect("the store can be used"));
            }
        };
        let task = Abortable::new(task, registration);
        let run = async move {
            let _ = task.await;
        };
        self.pool.spawner().spawn_local(run).expect("the pool is alive");
        Trigger { handle, report, kill }
    }

    fn slots(&self) -> Vec<u64> {
        self.begun.borrow().clone()
    }

    fn lease(&self) -> Lease {
        match lease::read(&self.store.memory.body().expect("a record")) {
            Reading::Lease(lease) => *lease,
            other => panic!("{other:?}"),
        }
    }

    fn put(&self, body: Vec<u8>) {
        let write = Operation::Write { body, condition: Condition::Absent };
        let answer = block_on(self.store.memory.perform(write));
        assert!(matches!(answer.outcome, Outcome::Written { .. }));
    }
}

const ONCE: (Policy, Missed) = (Policy::AtMostOnce, Missed::Skip);
const LEAST: (Policy, Missed) = (Policy::AtLeastOnce, Missed::All);

fn once() -> ScheduleSettings {
    settings(ONCE.0, ONCE.1)
}

fn least() -> ScheduleSettings {
    settings(LEAST.0, LEAST.1)
}

fn lead_once(world: &mut World, ms: u64) {
    let handle = Handle::new(Election::new(
        Config { server_id: "L".to_owned(), ..config() },
        "lead".to_owned(),
        3,
    ));
    let (store, host, h) = (world.store.clone(), world.host.clone(), handle.clone());
    world
        .pool
        .spawner()
        .spawn_local(async move {
            let t = h.clone();
            driver::run(&h, &store, &host, |event| {
                if let edgelect::election::Event::Lost { term, .. } = event {
                    t.tell(Input::WorkEnded { term });
                }
            })
            .await;
        })
        .unwrap();
    world.pass(ms);
    handle.tell(Input::Stop { park: false });
    world.pass(5_000);
}

fn stop_under_claim(world: &mut World, trigger: impl FnOnce(&World) -> Trigger) -> SlotOutcome {
    let (open, gate) = oneshot::channel();
    *world.store.gate.borrow_mut() = Some(gate);
    let t = trigger(world);
    world.pass(100);
    t.handle.tell(Input::Stop { park: false });
    world.pass(100);
    open.send(()).unwrap();
    world.pass(8_000);
    t.report().outcome
}

/// A held-up copy of a creation lands after a deletion: its slot is of long ago.
#[test]
fn a_creation_that_comes_back_after_a_deletion_frees_no_slot() {
    for dates in [Dates::Right, Dates::NoLastModified, Dates::None] {
        creation_comes_back(dates);
    }
}

fn creation_comes_back(dates: Dates) {
    let mut world = World::new();
    world.store.dates.set(dates);
    world.trigger(FIRST_MS - MINUTE_MS / 2, once(), Job::Takes(10));
    world.pass(1_000);
    let held_up = world.store.memory.body().expect("the creation");
    let slot_ms = FIRST_MS + 10 * MINUTE_MS;
    world.at(slot_ms);
    world.trigger(slot_ms, once(), Job::Takes(10));
    world.pass(5_000);
    assert_eq!(world.slots(), [slot_ms]);
    world.store.memory.overwrite(None);
    world.put(held_up);
    world.pass(20_000);
    world.trigger(slot_ms, once(), Job::Takes(10));
    world.pass(20_000);
    assert_eq!(world.slots(), [slot_ms], "at most once");
}

/// The same for the tombstone of `init`.
#[test]
fn a_tombstone_of_init_that_comes_back_frees_no_slot() {
    for dates in [Dates::Right, Dates::NoLastModified, Dates::None] {
        tombstone_comes_back(dates);
    }
}

fn tombstone_comes_back(dates: Dates) {
    let mut world = World::with_init();
    let held_up = world.store.memory.body().expect("the tombstone");
    world.store.dates.set(dates);
    world.trigger(FIRST_MS, once(), Job::Takes(10));
    world.pass(1_000);
    world.begun.borrow_mut().clear();
    let slot_ms = FIRST_MS + 10 * MINUTE_MS;
    world.at(slot_ms);
    world.trigger(slot_ms, once(), Job::Takes(10));
    world.pass(5_000);
    world.store.memory.overwrite(None);
    world.put(held_up);
    world.trigger(slot_ms, once(), Job::Takes(10));
    world.pass(20_000);
    assert_eq!(world.slots(), [slot_ms], "at most once");
}

/// A creation whose absence was told by a cache with an old `Date`.
#[test]
fn a_creation_after_a_cached_date_frees_no_slot() {
    let mut world = World::with_init();
    world.trigger(FIRST_MS, once(), Job::Takes(10));
    world.pass(5_000);
    world.store.memory.overwrite(None);
    world.store.dates.set(Dates::CachedHourAgo);
    world.trigger(FIRST_MS, once(), Job::Takes(10));
    world.pass(1_000);
    world.store.dates.set(Dates::Right);
    world.pass(20_000);
    world.trigger(FIRST_MS, once(), Job::Takes(10));
    world.pass(20_000);
    assert_eq!(world.slots(), [FIRST_MS], "at most once; created with {:?}", world.lease().slot);
}

/// The same without a `Date`, by a host whose wall clock is ten minutes slow.
#[test]
fn a_creation_by_a_slow_wall_clock_frees_no_slot() {
    let mut world = World::with_init();
    world.at(FIRST_MS + 20 * MINUTE_MS);
    let slot_ms = FIRST_MS + 20 * MINUTE_MS;
    world.trigger(slot_ms, once(), Job::Takes(10));
    world.pass(5_000);
    assert_eq!(world.slots(), [slot_ms]);
    world.store.memory.overwrite(None);
    world.store.dates.set(Dates::NoDate);
    let body = {
        // The slow host, as `creation` writes it: `slot` by its own wall clock.
        let mut slow = Election::for_schedule(
            Config { server_id: "m".to_owned(), ..config() },
            "slow".to_owned(),
            1,
            Schedule::new(&ScheduleSettings { slot_ms: Some(slot_ms), ..once() }, &config())
                .unwrap(),
        );
        let wall_ms = slot_ms - 10 * MINUTE_MS;
        let now = edgelect::clock::Now::new(1, wall_ms);
        slow.poll(now);
        let missing = Answer { outcome: Outcome::Missing, facts: Default::default() };
        slow.handle(now, Input::Answer(missing));
        match slow.poll(now) {
            edgelect::election::Step::Claim { lease, .. } => lease::write(&lease),
            other => panic!("{other:?}"),
        }
    };
    world.put(body);
    world.pass(20_000);
    world.trigger(slot_ms, once(), Job::Takes(10));
    world.pass(40_000);
    assert_eq!(world.slots(), [slot_ms], "at most once");
}

const UNSAID: [&str; 4] = [
    r#"{"leaderID":"a","lastUpdated":"0001-01-01T00:00:00Z","term":1795000000000,"format":1}"#,
    r#"{"leaderID":"a","lastUpdated":"2026-11-21T06:58:12.345Z","term":1795000000000,"format":1}"#,
    "garbage",
    r#"{"leaderID":"a","lastUpdated":"0001-01-01T00:00:00Z","term":1795000000000,"slot":4503599627370496,"slotDone":true,"format":1}"#,
];

/// As DynamoDB and Route 53 answer: nobody can ever know which slots were claimed before a record that names none, and every
/// trigger was skipped for ever. Now the first says that all up to then count as claimed, and the next one runs.
#[test]
fn a_record_that_can_never_be_judged_costs_one_slot() {
    for (body, dates) in UNSAID.iter().flat_map(|b| [(b, Dates::NoLastModified), (b, Dates::None)])
    {
        let mut world = World::new();
        world.store.dates.set(dates);
        world.put(body.as_bytes().to_vec());
        world.at(FIRST_MS);
        let first = world.trigger(FIRST_MS, least(), Job::Takes(10));
        let doubled = world.trigger(FIRST_MS, least(), Job::Takes(10));
        world.pass(50_000);
        let mut outcomes = [first.report().outcome, doubled.report().outcome];
        outcomes.sort_by_key(|outcome| outcome.name());
        let expected = [SlotOutcome::Skipped(SlotsOver::NewGroup), SlotOutcome::Taken];
        assert_eq!(outcomes, expected, "{body}");
        let covered = world.lease();
        assert!(covered.released() && covered.slot_done == Some(true), "{covered:?}");
        assert!(covered.slot >= Some(FIRST_MS) && covered.term > Some(EPOCH_MS), "{covered:?}");
        world.at(FIRST_MS + MINUTE_MS);
        let late = world.trigger(FIRST_MS, least(), Job::Takes(10));
        let next = world.trigger(FIRST_MS + MINUTE_MS, least(), Job::Takes(10));
        world.pass(10_000);
        let outcomes = [late.report().outcome, next.report().outcome];
        assert_eq!(outcomes, [SlotOutcome::Taken, SlotOutcome::Done], "{body}");
        assert_eq!(world.slots(), [FIRST_MS + MINUTE_MS]);
        assert!(world.lease().term > covered.term, "tokens grow");
    }
}

/// A member of another make that drops the slot just after it was run.
#[test]
fn a_record_that_lost_its_slot_runs_none_twice_where_the_store_names_no_last_modified() {
    for settings in [once(), least()] {
        let mut world = World::with_init_as(Dates::NoLastModified);
        world.trigger(FIRST_MS, settings.clone(), Job::Takes(10));
        world.pass(1_000);
        let term = world.lease().term;
        let body = UNSAID[0].replace("1795000000000", &term.unwrap_or(0).to_string());
        world.store.memory.overwrite(Some(body.clone().into_bytes()));
        for again in 0..3 {
            world.trigger(FIRST_MS, settings.clone(), Job::Takes(10));
            world.at(FIRST_MS + 1_000 + (again + 1) * 5_000);
        }
        world.at(FIRST_MS + MINUTE_MS);
        world.trigger(FIRST_MS + MINUTE_MS, settings, Job::Takes(10));
        world.pass(10_000);
        assert_eq!(world.slots(), [FIRST_MS, FIRST_MS + MINUTE_MS], "each once");
    }
}

/// Somebody's lease lives: nothing is written over it, and the trigger waits for its budget.
#[test]
fn a_living_lease_without_a_slot_is_waited_for_where_the_store_names_no_last_modified() {
    let mut world = World::new();
    world.store.dates.set(Dates::NoLastModified);
    world.put(UNSAID[1].as_bytes().to_vec());
    world.at(FIRST_MS);
    let trigger = world.trigger(FIRST_MS, once(), Job::Takes(10));
    for renewal in 0..12 {
        world.pass(5_000);
        let body = UNSAID[1].replace("\"format\"", &format!("\"n\":{renewal},\"format\""));
        world.store.memory.overwrite(Some(body.clone().into_bytes()));
    }
    assert_eq!(trigger.report().outcome, SlotOutcome::Skipped(SlotsOver::Budget));
    assert_eq!(world.store.writes.get(), 0);
}

/// Its answer is lost, and the read-back too: the slot may count as claimed, and was not run (S8).
#[test]
fn a_lost_answer_to_what_counts_slots_as_claimed_is_told_as_unknown() {
    let mut world = World::new();
    world.store.dates.set(Dates::NoLastModified);
    world.put(UNSAID[0].as_bytes().to_vec());
    world.at(FIRST_MS);
    let (open, gate) = oneshot::channel();
    *world.store.gate.borrow_mut() = Some(gate);
    world.store.lose.set(9);
    let trigger = world.trigger(FIRST_MS, once(), Job::Takes(10));
    world.pass(100);
    world.store.hangs.set(true);
    open.send(()).unwrap();
    world.pass(80_000);
    assert!(world.lease().slot >= Some(FIRST_MS), "it landed");
    assert_eq!(trigger.report().outcome, SlotOutcome::Unknown);
    assert!(world.slots().is_empty());
}

/// The same, read back: it is known to have landed.
#[test]
fn a_lost_answer_to_what_counts_slots_as_claimed_is_read_back() {
    let mut world = World::new();
    world.store.dates.set(Dates::NoLastModified);
    world.put(UNSAID[0].as_bytes().to_vec());
    world.at(FIRST_MS);
    world.store.lose.set(1);
    let trigger = world.trigger(FIRST_MS, once(), Job::Takes(10));
    world.pass(10_000);
    assert_eq!(trigger.report().outcome, SlotOutcome::Skipped(SlotsOver::NewGroup));
    assert!(world.lease().released());
}

/// A foreign resignation may come back byte for byte, and with it what is under way on it: it is taken by a write without a
/// term first, as by a leader (S2, S4).
#[test]
fn a_tombstone_without_a_term_is_covered_by_two_writes() {
    let mut world = World::new();
    world.store.dates.set(Dates::NoLastModified);
    world.put(br#"{"leaderID":"a","lastUpdated":"0001-01-01T00:00:00Z"}"#.to_vec());
    world.at(FIRST_MS);
    let trigger = world.trigger(FIRST_MS, once(), Job::Takes(10));
    world.pass(1_000);
    assert_eq!((world.lease().term, world.lease().released()), (None, false));
    world.pass(9_000);
    assert_eq!(trigger.report().outcome, SlotOutcome::Skipped(SlotsOver::NewGroup));
    assert!(world.lease().released() && world.lease().term > Some(EPOCH_MS));
    assert_eq!(world.store.writes.get(), 2);
}

/// The creation of a group is written over by the trigger that made it, once its grace is over: the group costs one slot.
#[test]
fn a_group_without_init_costs_one_slot_where_the_store_names_no_last_modified() {
    for dates in [Dates::NoLastModified, Dates::None] {
        let mut world = World::new();
        world.store.dates.set(dates);
        world.at(FIRST_MS);
        let first = world.trigger(FIRST_MS, least(), Job::Takes(10));
        world.pass(5_000);
        assert!(world.lease().in_grace() && first.report.borrow().is_none());
        world.pass(20_000);
        assert_eq!(first.report().outcome, SlotOutcome::Skipped(SlotsOver::NewGroup));
        world.at(FIRST_MS + MINUTE_MS);
        world.trigger(FIRST_MS + MINUTE_MS, least(), Job::Takes(10));
        world.pass(5_000);
        assert_eq!(world.slots(), [FIRST_MS + MINUTE_MS]);
    }
}

/// `init` writes over its own creation where nothing says when it was made.
#[test]
fn the_first_slot_after_init_is_run_whatever_the_store_says_of_time() {
    for dates in [Dates::Right, Dates::NoDate, Dates::NoLastModified, Dates::None] {
        let mut world = World::with_init_as(dates);
        assert_eq!(world.lease().acquired.is_some(), world.lease().sequence == 2);
        let trigger = world.trigger(FIRST_MS, once(), Job::Takes(10));
        world.pass(1_000);
        assert_eq!(trigger.report().outcome, SlotOutcome::Done, "{}", dates as u8);
    }
}

/// As DynamoDB and Route 53 answer. What `init` covers reaches a little ahead of the store's clock, and a trigger within that
/// time was told that nobody could ever know, and to delete the group.
#[test]
fn a_slot_just_after_init_is_taken_where_the_store_names_no_last_modified() {
    let mut world = World::with_init();
    world.store.dates.set(Dates::NoLastModified);
    world.store.memory.overwrite(None);
    block_on(driver::init(&world.store, &world.host, &config())).expect("a new group");
    for after_ms in [0, 1_500, 4_000] {
        world.at(FIRST_MS + after_ms);
        let trigger = world.trigger(FIRST_MS, least(), Job::Takes(10));
        world.pass(500);
        assert_eq!(trigger.report().outcome, SlotOutcome::Taken, "{after_ms}");
    }
    world.at(FIRST_MS + MINUTE_MS);
    world.trigger(FIRST_MS + MINUTE_MS, least(), Job::Takes(10));
    world.pass(5_000);
    assert_eq!(world.slots(), [FIRST_MS + MINUTE_MS]);
}

/// Work on an earlier slot uses the budget up; then a claim that surely landed is given up unread.
#[test]
fn a_claim_that_landed_after_the_budget_is_run() {
    let mut world = World::with_init();
    world.store.unnamed.set(true);
    let all = || settings(Policy::AtMostOnce, Missed::All);
    world.trigger(FIRST_MS, all(), Job::Takes(10));
    world.at(FIRST_MS + 2 * MINUTE_MS);
    let own_ms = FIRST_MS + 2 * MINUTE_MS;
    let trigger = world.trigger(own_ms, all(), Job::Takes(55_000));
    world.pass(3 * MINUTE_MS);
    let slot = world.lease().slot;
    assert!(
        world.slots().contains(&own_ms) || slot != Some(own_ms),
        "claimed in the record, never run, told as {:?}",
        trigger.report().outcome
    );
}

/// The same with one lost answer: no second attempt, no read-back.
#[test]
fn one_lost_answer_after_the_budget_is_read_back() {
    let mut world = World::with_init();
    let all = || settings(Policy::AtMostOnce, Missed::All);
    world.trigger(FIRST_MS, all(), Job::Takes(10));
    world.at(FIRST_MS + 2 * MINUTE_MS);
    let own_ms = FIRST_MS + 2 * MINUTE_MS;
    world.store.lose_slot.set(Some(own_ms));
    let trigger = world.trigger(own_ms, all(), Job::Takes(60_000));
    world.pass(3 * MINUTE_MS);
    assert_eq!(world.store.lose_slot.get(), None, "one answer was lost");
    assert!(
        world.slots().contains(&own_ms),
        "the store is well, the claim landed, told {:?}",
        trigger.report().outcome
    );
}

/// Stop while the claim is under way: its slot is claimed, and told as not claimed.
#[test]
fn a_stop_under_a_claim_does_not_lose_the_slot_in_silence() {
    let mut world = World::with_init();
    let (open, gate) = oneshot::channel();
    *world.store.gate.borrow_mut() = Some(gate);
    let trigger = world.trigger(FIRST_MS, once(), Job::Takes(10));
    world.pass(100);
    trigger.handle.tell(Input::Stop { park: false });
    world.pass(100);
    open.send(()).unwrap();
    world.pass(30_000);
    let outcome = trigger.report().outcome;
    let again = world.trigger(FIRST_MS, once(), Job::Takes(10));
    world.pass(30_000);
    assert!(
        !matches!(outcome, SlotOutcome::Skipped(_)) || world.slots() == [FIRST_MS],
        "told {outcome:?}, but the slot is claimed: {:?}",
        again.report().outcome
    );
}

/// Stop while nobody knows whether the claim landed.
#[test]
fn a_stop_under_an_unknown_claim_is_told_as_unknown() {
    let mut world = World::with_init();
    world.store.lose.set(9);
    let trigger = world.trigger(FIRST_MS, once(), Job::Takes(10));
    world.pass(10);
    world.store.hangs.set(true);
    trigger.handle.tell(Input::Stop { park: false });
    world.pass(60_000);
    assert_eq!(world.lease().slot, Some(FIRST_MS), "it landed");
    assert_eq!(trigger.report().outcome, SlotOutcome::Unknown);
}

/// Stop in the very turn in which the claim's answer comes: nobody says that the work has ended.
#[test]
fn a_stop_in_the_turn_of_the_answer_is_released_at_once() {
    let mut world = World::with_init();
    let (open, gate) = oneshot::channel();
    *world.store.gate.borrow_mut() = Some(gate);
    let trigger = world.trigger(FIRST_MS, once(), Job::Takes(10));
    world.pass(100);
    open.send(()).unwrap();
    trigger.handle.tell(Input::Stop { park: false });
    world.pass(2_000);
    let ended = trigger.report.borrow().is_some();
    world.pass(30_000);
    let outcome = trigger.report().outcome;
    assert!(ended && world.lease().released(), "ended {ended}, told {outcome:?}");
}

/// Stop under a missed slot: the trigger's own is told as waited for.
#[test]
fn a_stop_under_an_earlier_slot_is_not_told_as_a_budget() {
    let mut world = World::with_init();
    world.trigger(FIRST_MS, least(), Job::Takes(10));
    world.at(FIRST_MS + 2 * MINUTE_MS);
    let trigger = world.trigger(FIRST_MS + 2 * MINUTE_MS, least(), Job::Hangs);
    world.pass(1_000);
    trigger.handle.tell(Input::Stop { park: false });
    world.pass(5_000);
    assert_ne!(trigger.report().outcome, SlotOutcome::Skipped(SlotsOver::Budget));
}

/// After a rerun the slots that are left out are not counted.
#[test]
fn slots_left_out_after_a_rerun_are_counted() {
    let mut world = World::with_init();
    let dead = world.trigger(FIRST_MS, least(), Job::Hangs);
    world.pass(1_000);
    dead.kill.abort();
    world.at(FIRST_MS + 150 * MINUTE_MS);
    let trigger = world.trigger(FIRST_MS + 150 * MINUTE_MS, least(), Job::Takes(10));
    world.pass(40_000);
    assert_eq!(world.slots().len(), 103);
    assert_eq!(trigger.report().left_out, 49);
}

/// A death is no failure: the slot that kills its runner keeps its turn.
#[test]
fn a_slot_that_kills_its_runner_is_run_again_however_often() {
    let mut world = World::with_init();
    for minute in 0..20 {
        world.at(FIRST_MS + minute * MINUTE_MS);
        let trigger = world.trigger(FIRST_MS + minute * MINUTE_MS, least(), Job::Hangs);
        world.pass(55_000);
        trigger.kill.abort();
    }
    assert_eq!(world.slots(), [FIRST_MS; 20]);
}

/// `Last-Modified` rounds down and the ceiling rounds up: two seconds, not one.
#[test]
fn a_slot_claimed_at_the_edge_is_covered_by_the_change_that_followed() {
    let skew_ms = 500;
    let schedule =
        Schedule::new(&ScheduleSettings { slot_ms: Some(12_000_000), ..once() }, &config())
            .unwrap();
    // The node that A reads says 11_999.000 s.
    let claimed = StorageTimes {
        now_ms: 11_999_000,
        ceiling_ms: 11_999_999,
        dated: true,
        changed_ms: Some(11_000_000),
        skew_ms,
    };
    let slot_ms = 12_000_499;
    let first = schedule.judge(slot_ms, None, &nobody("a"), &claimed);
    assert!(matches!(first, Verdict::Claim { .. }));
    // A node 500 ms behind stamps the claim at 11_998.5 s; then somebody drops the slot at once.
    let dropped = StorageTimes {
        now_ms: 12_005_000,
        ceiling_ms: 12_005_999,
        dated: true,
        changed_ms: Some(11_998_000),
        skew_ms,
    };
    let second = schedule.judge(slot_ms, None, &nobody("b"), &dropped);
    assert_eq!(second, Verdict::Taken);
}

/// As 3, for each kind of record; with times the group goes on, so only the stores without are stuck.
#[test]
fn no_record_is_the_end_of_a_group_without_times() {
    let mut stuck = Vec::new();
    for (name, body) in [
        (
            "slotless",
            r#"{"leaderID":"a","lastUpdated":"0001-01-01T00:00:00Z","term":1,"format":1}"#,
        ),
        ("garbage", "garbage"),
        (
            "ahead",
            r#"{"leaderID":"a","lastUpdated":"0001-01-01T00:00:00Z","term":1,"slot":4503599627370496,"slotDone":true,"format":1}"#,
        ),
    ] {
        for dates in [Dates::NoDate, Dates::Right, Dates::NoLastModified, Dates::None] {
            let mut world = World::new();
            world.store.dates.set(dates);
            world.put(body.as_bytes().to_vec());
            for minute in 0..10 {
                world.at(FIRST_MS + minute * MINUTE_MS);
                world.trigger(FIRST_MS + minute * MINUTE_MS, least(), Job::Takes(10));
                world.pass(55_000);
            }
            if world.slots().is_empty() {
                stuck.push((name, dates as u8));
            }
        }
    }
    assert!(stuck.is_empty(), "{stuck:?}");
}

/// A host whose wall clock is slow, or fast by a negative number.
#[derive(Clone)]
struct Slow {
    host: Virtual,
    behind_ms: i64,
}

impl Host for Slow {
    fn now(&self) -> Now {
        let now = self.host.now();
        Now::new(now.mono_ms, now.wall_ms.saturating_add_signed(-self.behind_ms))
    }

    async fn sleep(&self, ms: u64) {
        self.host.sleep(ms).await;
    }

    fn random(&self) -> Result<[u8; 16], String> {
        self.host.random()
    }

    async fn fetch(&self, request: Request, limit: usize) -> Result<Response, String> {
        self.host.fetch(request, limit).await
    }
}

/// Members whose clocks are apart, and a store that tells no time at all: the slow one takes the newest slot for one that
/// nobody can have claimed yet, and must not free it.
#[test]
fn a_member_with_a_slow_clock_frees_no_slot_where_the_store_tells_no_time() {
    let again = || settings(Policy::AtLeastOnce, Missed::Skip);
    for (behind_ms, settings) in [(15_000, once()), (15_000, again()), (14 * 3_600_000, once())] {
        let mut world = World::with_init_as(Dates::None);
        let slot_ms = FIRST_MS + 1_200 * MINUTE_MS;
        world.at(slot_ms);
        world.trigger(slot_ms, settings.clone(), Job::Takes(10));
        world.pass(1_000);
        assert_eq!(world.slots(), [slot_ms]);
        let slow = Slow { host: world.host.clone(), behind_ms };
        let theirs = slot_ms.saturating_add_signed(-behind_ms) / MINUTE_MS * MINUTE_MS;
        world.run(
            &slow,
            ScheduleSettings { slot_ms: Some(theirs), ..settings.clone() },
            Job::Takes(10),
        );
        world.pass(1_000);
        let late = world.trigger(slot_ms, settings, Job::Takes(10));
        world.pass(5_000);
        assert_eq!(late.report().outcome, SlotOutcome::Taken);
        assert_eq!(world.slots(), [slot_ms], "at most once");
    }
}

/// Without a `Date` a slot is due by the own clock alone, also where the store names `Last-Modified`, as R2's binding does:
/// one that a fast clock has claimed is no damage to a right one.
#[test]
fn a_slot_that_a_fast_clock_has_claimed_is_not_run_again_where_the_store_names_no_date() {
    let again = || settings(Policy::AtLeastOnce, Missed::Skip);
    for (dates, ahead_ms, settings) in [
        (Dates::NoDate, 20_000, once()),
        (Dates::NoDate, 20_000, again()),
        (Dates::NoDate, 600_000, once()),
        (Dates::None, 20_000, once()),
    ] {
        let mut world = World::with_init_as(dates);
        let slot_ms = FIRST_MS + 120 * MINUTE_MS;
        world.at(slot_ms - ahead_ms);
        let fast = Slow { host: world.host.clone(), behind_ms: -(ahead_ms as i64) };
        let own = ScheduleSettings { slot_ms: Some(slot_ms), ..settings.clone() };
        let first = world.run(&fast, own, Job::Takes(10));
        world.pass(5_000);
        assert_eq!(first.report().outcome, SlotOutcome::Done);
        // By a right clock comes the trigger of a slot before it, and then that of the slot itself.
        world.at(slot_ms - ahead_ms / 2);
        let before = world.trigger(slot_ms - ahead_ms / 2, settings.clone(), Job::Takes(10));
        world.at(slot_ms);
        let second = world.trigger(slot_ms, settings, Job::Takes(10));
        world.pass(20_000);
        assert_eq!(world.slots(), [slot_ms], "{ahead_ms} ms fast: at most once");
        let outcomes = [before.report().outcome, second.report().outcome];
        assert_eq!(outcomes, [SlotOutcome::Taken; 2]);
    }
}

/// The same after a member of another make has dropped the slot: the last change is then before the slot is due.
#[test]
fn a_slot_that_a_fast_clock_has_claimed_is_not_run_again_after_its_record_lost_it() {
    for (body, settings) in [(UNSAID[0], once()), (UNSAID[0], least()), ("garbage", once())] {
        let mut world = World::with_init_as(Dates::NoDate);
        let slot_ms = FIRST_MS + 10 * MINUTE_MS;
        world.at(slot_ms - 20_000);
        let fast = Slow { host: world.host.clone(), behind_ms: -20_000 };
        let own = ScheduleSettings { slot_ms: Some(slot_ms), missed: Some(Missed::Skip), ..once() };
        world.run(&fast, own, Job::Takes(10));
        world.pass(1_000);
        assert_eq!(world.slots(), [slot_ms]);
        let term = world.lease().term.unwrap_or(0).to_string();
        let body = body.replace("1795000000000", &term).into_bytes();
        world.store.memory.overwrite(Some(body));
        world.at(slot_ms);
        let second = world.trigger(slot_ms, settings.clone(), Job::Takes(10));
        world.at(slot_ms + MINUTE_MS);
        world.trigger(slot_ms + MINUTE_MS, settings, Job::Takes(10));
        world.pass(10_000);
        assert_eq!(world.slots(), [slot_ms, slot_ms + MINUTE_MS], "each once");
        assert_eq!(second.report().outcome, SlotOutcome::Skipped(SlotsOver::NewGroup));
    }
}

/// What counts as claimed without a `Date` is not before the last change, whatever a slow clock says.
#[test]
fn a_slow_clock_covers_every_slot_up_to_the_last_change_where_the_store_names_no_date() {
    let mut world = World::with_init_as(Dates::NoDate);
    let slot_ms = FIRST_MS + 60 * MINUTE_MS;
    world.at(slot_ms);
    world.trigger(slot_ms, once(), Job::Takes(10));
    world.pass(1_000);
    let term = world.lease().term.unwrap_or(0).to_string();
    let body = UNSAID[0].replace("1795000000000", &term).into_bytes();
    world.store.memory.overwrite(Some(body));
    let slow = Slow { host: world.host.clone(), behind_ms: 10 * MINUTE_MS as i64 };
    let theirs = ScheduleSettings { slot_ms: Some(slot_ms - 10 * MINUTE_MS), ..once() };
    world.run(&slow, theirs, Job::Takes(10));
    world.pass(5_000);
    let again = world.trigger(slot_ms, once(), Job::Takes(10));
    world.pass(20_000);
    assert_eq!(world.slots(), [slot_ms], "at most once");
    assert_eq!(again.report().outcome, SlotOutcome::Taken);
}

/// A lease made by hand, without `acquired` and `slotDone`: what it counts as claimed is no slot that anybody scheduled.
#[test]
fn a_record_that_nobody_has_led_with_makes_no_slot_up() {
    let body =
        r#"{"leaderID":"a","lastUpdated":"0001-01-01T00:00:00Z","term":1,"slot":SLOT,"format":1}"#;
    for (dates, settings) in [Dates::Right, Dates::NoDate, Dates::NoLastModified, Dates::None]
        .into_iter()
        .flat_map(|dates| [(dates, once()), (dates, least())])
    {
        let mut world = World::new();
        world.store.dates.set(dates);
        world.at(FIRST_MS - 20_000);
        world.put(body.replace("SLOT", &(FIRST_MS - MINUTE_MS).to_string()).into_bytes());
        for minute in 0..3 {
            world.at(FIRST_MS + minute * MINUTE_MS);
            world.trigger(FIRST_MS + minute * MINUTE_MS, settings.clone(), Job::Takes(10));
            world.pass(30_000);
        }
        let slots = world.slots();
        assert!(slots.iter().all(|slot_ms| slot_ms % MINUTE_MS == 0), "{slots:?}");
        assert!(slots.ends_with(&[FIRST_MS + MINUTE_MS, FIRST_MS + 2 * MINUTE_MS]), "{slots:?}");
    }
}

/// A lease that the budget does not outlast could never be taken over where the store names no times.
#[test]
fn a_budget_shorter_than_the_lease_is_refused() {
    let short = ScheduleSettings { budget_ms: Some(10_000), slot_ms: Some(FIRST_MS), ..least() };
    let error = Schedule::new(&short, &config()).expect_err("it is refused");
    assert_eq!((&*error.field, &*error.value), ("budget", "10000"));
}

/// The same with the default budget: a lease of a minute.
#[test]
fn the_default_budget_outlasts_the_lease() {
    let settings = edgelect::Settings {
        lockfile_path: Some("leader/test.json".to_owned()),
        leader_timeout_ms: Some(60_000),
        ..edgelect::Settings::default()
    };
    let config = Config::new(&settings).expect("it is fine");
    let schedule = Schedule::new(&ScheduleSettings { slot_ms: Some(FIRST_MS), ..least() }, &config);
    let waits_ms = config.grace_ms(0) + config.store_skew_ms;
    assert!(schedule.is_err() || schedule.unwrap().budget_ms > waits_ms);
}

#[test]
fn a_claim_over_a_revived_tombstone_and_a_stop_free_no_old_slot() {
    let mut world = World::with_init();
    let held_up = world.store.memory.body().expect("the tombstone");
    let slot_ms = FIRST_MS + 10 * MINUTE_MS;
    world.at(slot_ms);
    world.trigger(slot_ms, once(), Job::Takes(10));
    world.pass(5_000);
    world.store.memory.overwrite(None);
    world.put(held_up);
    world.at(slot_ms + MINUTE_MS);
    let told =
        stop_under_claim(&mut world, |w| w.trigger(slot_ms + MINUTE_MS, once(), Job::Takes(10)));
    println!("told {told:?} {:?}", world.lease());
    world.trigger(slot_ms, once(), Job::Takes(10));
    world.pass(30_000);
    assert_eq!(world.slots(), [slot_ms], "at most once");
}

#[test]
fn a_leader_over_a_revived_creation_frees_no_old_slot() {
    for dates in [Dates::Right, Dates::NoLastModified] {
        leader_over_revived(dates);
    }
}

fn leader_over_revived(dates: Dates) {
    let mut world = World::with_init();
    let held_up = world.store.memory.body().expect("the tombstone");
    let slot_ms = FIRST_MS + 10 * MINUTE_MS;
    world.at(slot_ms);
    world.trigger(slot_ms, once(), Job::Takes(10));
    world.pass(5_000);
    world.store.memory.overwrite(None);
    world.put(held_up);
    world.store.dates.set(dates);
    lead_once(&mut world, 3_000);
    println!("{:?}", world.lease());
    world.trigger(slot_ms, once(), Job::Takes(10));
    world.pass(30_000);
    assert_eq!(world.slots(), [slot_ms], "at most once");
}

#[test]
fn a_stop_under_a_claim_over_a_slotless_record_loses_no_slot_at_least_once() {
    let mut world = World::new();
    world.put(
        br#"{"leaderID":"a","lastUpdated":"0001-01-01T00:00:00Z","term":1,"format":1}"#.to_vec(),
    );
    world.at(FIRST_MS);
    let told = stop_under_claim(&mut world, |w| w.trigger(FIRST_MS, least(), Job::Takes(10)));
    println!("told {told:?} {:?}", world.lease());
    for minute in 1..4 {
        world.at(FIRST_MS + minute * MINUTE_MS);
        world.trigger(FIRST_MS + minute * MINUTE_MS, least(), Job::Takes(10));
        world.pass(30_000);
    }
    assert!(
        world.slots().contains(&FIRST_MS),
        "{:?}",
        world.slots().iter().map(|s| (s - FIRST_MS) / MINUTE_MS).collect::<Vec<_>>()
    );
}

#[test]
fn slots_that_somebody_else_runs_meanwhile_are_not_left_out() {
    let mut world = World::with_init();
    world.trigger(FIRST_MS, once(), Job::Takes(10));
    world.at(FIRST_MS + 4 * MINUTE_MS);
    // Makes up for 1..=4 while another waits.
    world.trigger(
        FIRST_MS + 4 * MINUTE_MS,
        settings(Policy::AtMostOnce, Missed::All),
        Job::Takes(9_000),
    );
    world.pass(1_000);
    let waits = world.trigger(FIRST_MS + 4 * MINUTE_MS, once(), Job::Takes(10));
    world.pass(3 * MINUTE_MS);
    println!(
        "{:?} left out {} slots {:?}",
        waits.report().outcome,
        waits.report().left_out,
        world.slots().len()
    );
    assert_eq!(waits.report().left_out, 0);
}

/// A store that can't be used any more, after an earlier slot was run: told as a stop, the fault is swallowed.
#[test]
fn a_fault_after_a_missed_slot_is_not_told_as_a_stop() {
    let mut world = World::with_init();
    world.trigger(FIRST_MS, least(), Job::Takes(10));
    world.at(FIRST_MS + 2 * MINUTE_MS);
    let t = world.trigger(FIRST_MS + 2 * MINUTE_MS, least(), Job::Takes(3_000));
    world.pass(2_000);
    world.store.misconfigured.set(true);
    world.pass(60_000);
    println!("{:?}", t.report());
    assert_ne!(t.report().outcome, SlotOutcome::Skipped(SlotsOver::Stopped));
}

/// The answer of a claim that landed is lost, and then the store can't be used any more: an error would say that nothing was
/// claimed.
#[test]
fn a_store_that_fails_under_a_claim_in_doubt_is_reported_and_no_error() {
    let mut world = World::with_init();
    world.store.lose_slot.set(Some(FIRST_MS));
    let trigger = world.trigger(FIRST_MS, once(), Job::Takes(10));
    world.pass(50);
    assert_eq!(world.lease().slot, Some(FIRST_MS), "it landed");
    world.store.misconfigured.set(true);
    world.pass(60_000);
    let report = trigger.report();
    assert_eq!(report.outcome, SlotOutcome::Unknown);
    assert!(report.runs.is_empty() && world.slots().is_empty());
}

/// A job whose one turn outlasts the lease: the record never says that it is done.
#[test]
fn a_job_that_ends_after_its_authority_is_lost_and_not_done() {
    let mut world = World::with_init();
    let schedule =
        Schedule::new(&ScheduleSettings { slot_ms: Some(FIRST_MS), ..once() }, &config()).unwrap();
    let election = Election::for_schedule(config(), "busy".to_owned(), 3, schedule);
    let handle = Handle::new(election);
    let report = Rc::new(RefCell::new(None));
    let (store, host, told) = (world.store.clone(), world.host.clone(), Rc::clone(&report));
    let run = async move {
        let ran = run_scheduled(&handle, &store, &host, async |_: Term<'_, Virtual>| {
            host.now_ms.set(host.now_ms.get() + 20_000);
            Ok::<_, &'static str>(0)
        });
        *told.borrow_mut() = Some(ran.await.expect("the store can be used"));
    };
    world.pool.spawner().spawn_local(run).expect("the pool is alive");
    world.pass(60_000);
    let report = report.take().expect("it has ended");
    assert_eq!(report.outcome, SlotOutcome::Lost, "{report:?}");
    assert_eq!((report.runs.len(), report.runs[0].recorded), (1, false));
    assert_eq!(world.lease().slot_done, Some(false));
}

mod direct {
    use super::*;
    use edgelect::clock::Now;
    use edgelect::config::HostClock;
    use edgelect::election::{Event, Step};
    use edgelect::store::{Facts, Version};

    const TOMBSTONE: &str = r#"{"leaderID":"a","lastUpdated":"0001-01-01T00:00:00Z","term":1,"slot":5000,"slotDone":true,"acquired":"2026-11-21T06:00:00Z","session":"o","format":1}"#;

    pub fn at(ms: u64) -> Now {
        Now::new(1_000_000 + ms, EPOCH_MS + ms)
    }

    pub fn unknown() -> Outcome {
        let cause = Fault::new(FaultKind::Timeout, "no answer");
        Outcome::Unknown { retry_after_ms: None, cause }
    }

    pub fn answer(outcome: Outcome) -> Input {
        Input::Answer(Answer { outcome, facts: Facts::default() })
    }

    fn election(clock: HostClock) -> Election {
        let slot_ms = Some(EPOCH_MS);
        let schedule =
            Schedule::new(&ScheduleSettings { slot_ms, ..once() }, &config()).expect("fine");
        Election::for_schedule(Config { clock, ..config() }, "me".to_owned(), 7, schedule)
    }

    /// Up to the claim, and its record.
    fn claiming(election: &mut Election) -> Lease {
        assert!(matches!(election.poll(at(0)), Step::Read { .. }));
        let found = Outcome::Found {
            version: Version("\"t\"".to_owned()),
            reading: lease::read(TOMBSTONE.as_bytes()),
        };
        election.handle(at(10), answer(found));
        match election.poll(at(10)) {
            Step::Claim { lease, .. } => *lease,
            other => panic!("{other:?}"),
        }
    }

    /// Every request from here on is lost; why the schedule ended.
    fn lost(election: &mut Election, mut ms: u64) -> SlotsOver {
        loop {
            match election.poll(at(ms)) {
                Step::Wait { until_ms } => ms = (until_ms - 1_000_000).max(ms + 1),
                Step::Finished => break,
                _ => {
                    ms += 1_800;
                    election.handle(at(ms), answer(unknown()));
                }
            }
        }
        loop {
            if let Event::SlotsOver(why) = election.next_event().expect("it was told") {
                return why;
            }
        }
    }

    fn drive(
        election: &mut Election,
        mut ms: u64,
        mut read: impl FnMut(u64) -> Outcome,
        mut write: impl FnMut(u64) -> Outcome,
    ) -> (SlotsOver, u64, u64) {
        let mut n = 0;
        loop {
            match election.poll(at(ms)) {
                Step::Wait { until_ms } => ms = (until_ms - 1_000_000).max(ms + 1),
                Step::Finished => break,
                Step::Read { .. } => {
                    n += 1;
                    let o = read(ms);
                    if matches!(o, Outcome::Unknown { .. }) {
                        ms += 1_800
                    } else {
                        ms += 10
                    };
                    election.handle(at(ms), answer(o));
                }
                _ => {
                    n += 1;
                    let o = write(ms);
                    if matches!(o, Outcome::Unknown { .. }) {
                        ms += 1_800
                    } else {
                        ms += 10
                    };
                    election.handle(at(ms), answer(o));
                }
            }
            assert!(ms < 10_000_000, "never ends");
        }
        loop {
            if let Event::SlotsOver(why) = election.next_event().expect("told") {
                return (why, ms, n);
            }
        }
    }

    fn found(version: &str, body: &str) -> Outcome {
        Outcome::Found {
            version: Version(version.to_owned()),
            reading: lease::read(body.as_bytes()),
        }
    }

    /// Without a `Date` a clock that is a day fast covers slots a day ahead; its read-back names a `Date`, by which that is
    /// no slot at all. The trigger knows that its own write landed, whatever it is told meanwhile.
    #[test]
    fn a_cover_that_landed_is_told_after_a_stop_and_a_date_that_contradicts_it() {
        let slotless = TOMBSTONE.replace("\"slot\":5000,\"slotDone\":true,", "");
        assert_ne!(slotless, TOMBSTONE);
        for stop in [Input::Resign, Input::Stop { park: false }] {
            let slot_ms = Some(EPOCH_MS - DAY_MS - 30_000);
            let settings = ScheduleSettings { slot_ms, ..once() };
            let schedule = Schedule::new(&settings, &config()).expect("fine");
            let mut election = Election::for_schedule(config(), "me".to_owned(), 7, schedule);
            assert!(matches!(election.poll(at(0)), Step::Read { .. }));
            election.handle(at(10), answer(found("\"t\"", &slotless)));
            let Step::Claim { lease, .. } = election.poll(at(10)) else { panic!("it covers") };
            assert!(lease.released() && lease.slot_done == Some(true), "{lease:?}");
            let body = String::from_utf8(lease::write(&lease)).expect("text");
            election.handle(at(20), answer(Outcome::Refused));
            assert!(matches!(election.poll(at(20)), Step::Read { .. }));
            election.handle(at(30), stop);
            let facts = Facts { date_ms: Some(EPOCH_MS - DAY_MS), ..Facts::default() };
            let outcome = found("\"mine\"", &body);
            election.handle(at(40), Input::Answer(Answer { outcome, facts }));
            assert!(matches!(election.poll(at(40)), Step::Finished));
            let told = core::iter::from_fn(|| election.next_event()).collect::<Vec<_>>();
            assert!(told.contains(&Event::SlotsOver(SlotsOver::NewGroup)), "{told:?}");
        }
    }

    /// The slots between belong to whoever's claim landed.
    #[test]
    fn slots_that_a_refused_claim_would_have_left_out_are_not_counted() {
        let slot_ms = EPOCH_MS;
        let settings = ScheduleSettings { slot_ms: Some(slot_ms), ..once() };
        let schedule = || Schedule::new(&settings, &config()).expect("fine");
        let before =
            TOMBSTONE.replace("\"slot\":5000", &format!("\"slot\":{}", slot_ms - 4 * MINUTE_MS));
        assert_ne!(before, TOMBSTONE);
        let claims = |session: &str| {
            let mut election = Election::for_schedule(config(), session.to_owned(), 7, schedule());
            election.poll(at(0));
            election.handle(at(10), answer(found("\"t\"", &before)));
            let Step::Claim { lease, .. } = election.poll(at(10)) else { panic!("it claims") };
            (election, String::from_utf8(lease::write(&lease)).expect("text"))
        };
        let ((mut first, theirs), (mut second, _)) = (claims("first"), claims("second"));
        let version = Some(Version("\"1\"".to_owned()));
        first.handle(at(20), answer(Outcome::Written { version }));
        assert_eq!(first.own_slot_ms(), Some((slot_ms, 3)));
        second.handle(at(20), answer(Outcome::Refused));
        let (why, ..) = drive(
            &mut second,
            20,
            |_| found("\"1\"", &theirs),
            |_| panic!("there is nothing to claim"),
        );
        assert_eq!((why, second.own_slot_ms()), (SlotsOver::Taken, Some((slot_ms, 0))));
        let (mut third, _) = claims("third");
        third.handle(at(1_800), answer(unknown()));
        assert_eq!(lost(&mut third, 1_800), SlotsOver::Unknown);
        assert_eq!(third.own_slot_ms(), Some((slot_ms, 3)), "if it landed, nobody else says so");
        // It landed, and is known to only when its own fence is over: the slot is claimed once more.
        let (mut fourth, mine) = claims("fourth");
        let mut ms = 1_800;
        fourth.handle(at(ms), answer(unknown()));
        loop {
            let outcome = match fourth.poll(at(ms)) {
                Step::Wait { until_ms } => {
                    ms = (until_ms - 1_000_000).max(ms + 1);
                    continue;
                }
                Step::Read { .. } if ms > 20_000 => found("\"1\"", &mine),
                Step::Claim { seen: Condition::Match(Version(seen)), .. } if seen == "\"1\"" => {
                    break;
                }
                _ => unknown(),
            };
            ms += 1_800;
            fourth.handle(at(ms), answer(outcome));
        }
        let version = Some(Version("\"2\"".to_owned()));
        fourth.handle(at(ms + 10), answer(Outcome::Written { version }));
        let told = core::iter::from_fn(|| fourth.next_event()).collect::<Vec<_>>();
        assert!(matches!(told[..], [.., Event::Acquired { .. }]), "{told:?}");
        assert_eq!(fourth.own_slot_ms(), Some((slot_ms, 3)));
    }

    /// A claim that landed without a version, its read-back lost: the store itself said that it landed.
    #[test]
    fn a_claim_that_landed_unnamed_is_not_told_as_never_claimed() {
        let mut election = election(HostClock::Two);
        claiming(&mut election);
        election.handle(at(20), answer(Outcome::Written { version: None }));
        assert_eq!(lost(&mut election, 20), SlotsOver::Unknown);
    }

    /// A 412 is not believed without the read-back (S8).
    #[test]
    fn a_refused_claim_without_its_read_back_is_unknown() {
        let mut election = election(HostClock::Two);
        claiming(&mut election);
        election.handle(at(20), answer(Outcome::Refused));
        assert_eq!(lost(&mut election, 20), SlotsOver::Unknown);
    }

    /// A single clock steps back while the claim is under way, whose answer is lost.
    #[test]
    fn a_claim_under_way_over_a_step_back_is_unknown() {
        let mut election = election(HostClock::One);
        claiming(&mut election);
        election.poll(at(5));
        election.handle(at(1_800), answer(unknown()));
        assert_eq!(lost(&mut election, 1_800), SlotsOver::Unknown);
    }

    /// It has landed too late to begin, was read as our own, and the next claim is refused.
    #[test]
    fn an_own_record_with_the_slot_is_not_told_as_never_claimed() {
        let mut election = election(HostClock::Two);
        let claimed = claiming(&mut election);
        // Fifteen seconds late: no authority, so it is claimed again.
        let version = Some(Version("\"mine\"".to_owned()));
        election.handle(at(15_000), answer(Outcome::Written { version }));
        assert_eq!(claimed.slot, Some(EPOCH_MS));
        let Step::Claim { .. } = election.poll(at(15_000)) else { panic!() };
        let fault = Fault::new(FaultKind::Denied, "403");
        election.handle(at(15_010), answer(Outcome::Rejected(fault)));
        let mut ms = 15_010;
        let why = loop {
            match election.poll(at(ms)) {
                Step::Wait { until_ms } => ms = (until_ms - 1_000_000).max(ms + 1),
                Step::Finished => {
                    break loop {
                        if let Event::SlotsOver(why) = election.next_event().expect("told") {
                            break why;
                        }
                    };
                }
                _ => {
                    ms += 10;
                    let fault = Fault::new(FaultKind::Denied, "403");
                    election.handle(at(ms), answer(Outcome::Rejected(fault)));
                }
            }
        };
        assert_eq!(why, SlotsOver::Unknown);
    }

    /// A claim that landed unheard, then another member's later one: nobody ran the slot, told as "taken".
    #[test]
    fn an_unheard_claim_under_a_later_record_is_unknown() {
        let mut election = election(HostClock::Two);
        claiming(&mut election);
        election.handle(at(1_800), answer(unknown()));
        let mut ms = 1_800;
        let why = loop {
            match election.poll(at(ms)) {
                Step::Wait { until_ms } => ms = (until_ms - 1_000_000).max(ms + 1),
                Step::Finished => {
                    break loop {
                        if let Event::SlotsOver(why) = election.next_event().expect("told") {
                            break why;
                        }
                    };
                }
                Step::Read { .. } => {
                    // Of a member of another make, which may write over a lease that lives.
                    let later = TOMBSTONE.replace("5000", &(EPOCH_MS + 1).to_string());
                    let later = later.replace(r#""session":"o","#, "");
                    let version = Version("\"later\"".to_owned());
                    let reading = lease::read(later.as_bytes());
                    election.handle(at(ms + 10), answer(Outcome::Found { version, reading }));
                }
                _ => {
                    ms += 10;
                    election.handle(at(ms), answer(Outcome::Refused));
                }
            }
        };
        assert_eq!(why, SlotsOver::Unknown);
    }

    /// Authority that ends in the turn in which it began: claimed, never run, told as not claimed.
    #[test]
    fn events_in_one_turn() {
        let mut election = election(HostClock::Two);
        claiming(&mut election);
        let version = Some(Version("\"mine\"".to_owned()));
        election.handle(at(20), answer(Outcome::Written { version }));
        election.poll(at(20_000));
        let events: Vec<Event> = core::iter::from_fn(|| election.next_event()).collect();
        assert!(matches!(events.last(), Some(Event::SlotsOver(SlotsOver::Lost))), "{events:?}");
    }

    #[test]
    fn a_leader_that_carries_our_unheard_slot_has_not_taken_it() {
        let mut election = election(HostClock::Two);
        let mine = claiming(&mut election);
        election.handle(at(1_800), answer(unknown()));
        // Landed; the store is silent for a lease; a leader-mode member takes over, keeps the slot, releases.
        let carried = String::from_utf8(lease::write(&Lease {
            session: Some("leader".to_owned()),
            leader_id: "L".to_owned(),
            last_updated: lease::Stamp::Released,
            ..mine
        }))
        .unwrap();
        let (why, ms, _) = drive(
            &mut election,
            1_800,
            |ms| if ms < 18_000 { unknown() } else { found("\"L\"", &carried) },
            |ms| if ms < 18_000 { unknown() } else { Outcome::Refused },
        );
        assert_eq!(why, SlotsOver::Unknown, "{ms}");
    }

    #[test]
    fn a_claim_that_landed_unnamed_under_a_later_record_is_unknown() {
        for (name, first) in
            [("unnamed", Outcome::Written { version: None }), ("refused", Outcome::Refused)]
        {
            let mut election = election(HostClock::Two);
            claiming(&mut election);
            election.handle(at(20), answer(first));
            let later = TOMBSTONE.replace("5000", &(EPOCH_MS + 1).to_string());
            let (why, ms, _) = drive(
                &mut election,
                20,
                |ms| if ms < 18_000 { unknown() } else { found("\"later\"", &later) },
                |ms| if ms < 18_000 { unknown() } else { Outcome::Refused },
            );
            println!("{name} {why:?} {ms}");
            if name == "unnamed" {
                assert_eq!(why, SlotsOver::Unknown, "{ms}");
            }
        }
    }

    #[test]
    fn claims_that_are_refused_over_and_over_end() {
        let mut election = election(HostClock::Two);
        let count = Cell::new(0);
        let (why, ms, n) = drive(
            &mut election,
            0,
            |_| {
                count.set(count.get() + 1);
                found(&format!("\"t{}\"", count.get()), TOMBSTONE)
            },
            |_| Outcome::Refused,
        );
        println!("{why:?} {ms} {n}");
        assert!(ms < 70_000, "{why:?} {ms} {n}");
    }

    /// A single clock steps back by 10 s after the claim left; its answer is lost; the record is never shown again.
    #[test]
    fn a_claim_in_doubt_under_a_clock_that_fell_is_unknown() {
        let mut election = election(HostClock::One);
        assert!(matches!(election.poll(at(100_000)), Step::Read { .. }));
        election.handle(at(100_010), answer(found("\"t\"", TOMBSTONE)));
        let Step::Claim { lease, .. } = election.poll(at(100_010)) else { panic!() };
        let mine = String::from_utf8(lease::write(&lease)).unwrap();
        // It lands; the clock falls by 200 s before the answer.
        election.poll(Now::new(1_000_000 - 100_000, EPOCH_MS - 100_000));
        let back = Now::new(1_000_000 - 99_000, EPOCH_MS - 99_000);
        election.handle(back, answer(unknown()));
        let mut ms = 901_000;
        let why = loop {
            let now = Now::new(ms, EPOCH_MS - 1_000_000 + ms);
            match election.poll(now) {
                Step::Wait { until_ms } => ms = until_ms.max(ms + 1),
                Step::Finished => {
                    break loop {
                        if let Event::SlotsOver(why) = election.next_event().unwrap() {
                            break why;
                        }
                    };
                }
                Step::Read { .. } => election.handle(now, answer(found("\"mine\"", &mine))),
                _ => election.handle(now, answer(Outcome::Refused)),
            }
        };
        assert_eq!(why, SlotsOver::Unknown);
    }
}

/// A single clock that is held for a moment: the job is dropped, its end told as "done".
#[test]
fn a_job_that_a_held_clock_has_ended_is_not_lost_because_done() {
    use edgelect::RunEnd;
    use edgelect::config::HostClock;
    use edgelect::election::LostReason;

    #[derive(Clone)]
    struct One(Virtual, Rc<Cell<bool>>);
    impl Host for One {
        fn now(&self) -> Now {
            Now { held: self.1.get(), ..self.0.now() }
        }
        async fn sleep(&self, ms: u64) {
            self.0.sleep(ms).await;
        }
        fn random(&self) -> Result<[u8; 16], String> {
            self.0.random()
        }
        async fn fetch(&self, request: Request, limit: usize) -> Result<Response, String> {
            self.0.fetch(request, limit).await
        }
    }

    let mut world = World::with_init();
    let held = Rc::new(Cell::new(false));
    let host = One(world.host.clone(), Rc::clone(&held));
    let schedule =
        Schedule::new(&ScheduleSettings { slot_ms: Some(FIRST_MS), ..once() }, &config()).unwrap();
    let config = Config { clock: HostClock::One, ..config() };
    let handle = Handle::new(Election::for_schedule(config, "one".to_owned(), 3, schedule));
    let report = Rc::new(RefCell::new(None));
    let (store, told, asked) = (world.store.clone(), Rc::clone(&report), handle.clone());
    let run = async move {
        let ran = run_scheduled(&handle, &store, &host, async |_: Term<'_, One>| {
            host.sleep(3_000).await;
            Ok::<_, &'static str>(0)
        });
        *told.borrow_mut() = Some(ran.await.unwrap());
    };
    world.pool.spawner().spawn_local(run).unwrap();
    world.pass(1_000);
    held.set(true);
    asked.tell(Input::Tick);
    world.pass(0);
    held.set(false);
    world.pass(20_000);
    let report = report.borrow().clone().expect("it has ended");
    assert!(
        !matches!(report.runs[0].end, RunEnd::Lost(LostReason::Done)),
        "{report:?}, record {:?}",
        world.lease().slot_result
    );
}

/// `lead` has the same hole as 6c: a stop in the turn of the answer waits for the fence, and releases nothing.
#[test]
fn a_stop_in_the_turn_of_the_answer_releases_under_lead() {
    let mut world = World::with_init();
    let (open, gate) = oneshot::channel();
    *world.store.gate.borrow_mut() = Some(gate);
    let handle = Handle::new(Election::new(config(), "l".to_owned(), 3));
    let ended = Rc::new(Cell::new(false));
    let (store, host, asked, told) =
        (world.store.clone(), world.host.clone(), handle.clone(), Rc::clone(&ended));
    let run = async move {
        let _ =
            edgelect::lead(&handle, &store, &host, async |_| std::future::pending::<()>().await)
                .await;
        told.set(true);
    };
    world.pool.spawner().spawn_local(run).unwrap();
    world.pass(100);
    open.send(()).unwrap();
    asked.tell(Input::Stop { park: false });
    world.pass(2_000);
    assert!(ended.get() && world.lease().released(), "ended {}", ended.get());
}

/// A resignation under the job: its end is told by `SlotClosed`, and nobody hears `GivenUp` or `SlotsOver`.
#[test]
fn a_stop_under_a_job_tells_slots_over() {
    use edgelect::clock::Now;
    use edgelect::election::{Event, Step};
    use edgelect::slots::SlotEnd;
    use edgelect::store::Version;
    let at = |ms: u64| Now::new(1_000_000 + ms, EPOCH_MS + ms);
    let answer = |outcome| Input::Answer(Answer { outcome, facts: Default::default() });
    let schedule =
        Schedule::new(&ScheduleSettings { slot_ms: Some(EPOCH_MS), ..once() }, &config()).unwrap();
    let mut election = Election::for_schedule(config(), "me".to_owned(), 7, schedule);
    election.poll(at(0));
    let body = br#"{"leaderID":"a","lastUpdated":"0001-01-01T00:00:00Z","term":1,"slot":5000,"slotDone":true,"acquired":"2026-11-21T06:00:00Z","format":1}"#;
    let found = Outcome::Found { version: Version("\"t\"".to_owned()), reading: lease::read(body) };
    election.handle(at(10), answer(found));
    let Step::Claim { lease, .. } = election.poll(at(10)) else { panic!() };
    let term = lease.term.unwrap();
    election
        .handle(at(20), answer(Outcome::Written { version: Some(Version("\"1\"".to_owned())) }));
    election.handle(at(30), Input::Resign);
    let (done, failed, result, took_ms) = (false, false, "stopped".to_owned(), 10);
    election
        .handle(at(40), Input::SlotEnded { term, end: SlotEnd { done, failed, result, took_ms } });
    let Step::Renew { .. } = election.poll(at(40)) else { panic!() };
    election
        .handle(at(50), answer(Outcome::Written { version: Some(Version("\"2\"".to_owned())) }));
    assert_eq!(election.poll(at(50)), Step::Finished);
    let events: Vec<Event> = core::iter::from_fn(|| election.next_event()).collect();
    assert!(
        events.contains(&Event::GivenUp) && events.iter().any(|e| matches!(e, Event::SlotsOver(_))),
        "{events:?}"
    );
}
