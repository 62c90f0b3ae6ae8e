//! One job per cron slot, on virtual time: triggers that fire twice, late, out of order or over one another, runners
//! that die, jobs that fail or take too long.

mod virtual_time;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use edgelect::election::{LostReason, SlotsOver};
use edgelect::lease::{self, Lease, Reading, Stamp};
use edgelect::slots::Cron;
use edgelect::store::Operation;
use edgelect::store::{Condition, Store, Version};
use edgelect::{
    Config, Election, Handle, Host, Input, Missed, Policy, Report, RunEnd, Schedule,
    ScheduleSettings, SlotOutcome, Term, driver, run_scheduled,
};
use futures::executor::{LocalPool, block_on};
use futures::future::{AbortHandle, Abortable};
use futures::task::LocalSpawnExt;
use virtual_time::{Hanging, Virtual, config};

const MINUTE_MS: u64 = 60_000;
const EPOCH_MS: u64 = 1_795_000_000_000;
/// The first whole minute after the hosts' clocks begin.
const FIRST_MS: u64 = EPOCH_MS / MINUTE_MS * MINUTE_MS + MINUTE_MS;

type Reported = Rc<RefCell<Option<Report<u64, &'static str>>>>;

/// What a job does.
#[derive(Clone, Copy)]
enum Job {
    Takes(u64),
    Fails,
    Hangs,
}

/// One trigger under way.
struct Trigger {
    handle: Handle,
    report: Reported,
    kill: AbortHandle,
}

impl Trigger {
    fn report(&self) -> Report<u64, &'static str> {
        self.report.borrow().clone().expect("it has ended")
    }

    fn outcome(&self) -> SlotOutcome {
        self.report().outcome
    }

    fn ended(&self) -> bool {
        self.report.borrow().is_some()
    }
}

struct World {
    host: Virtual,
    store: Hanging,
    pool: LocalPool,
    /// Every job that began: its slot and its token.
    begun: Rc<RefCell<Vec<(u64, u64)>>>,
    sessions: Cell<u64>,
}

fn settings(policy: Policy) -> ScheduleSettings {
    ScheduleSettings {
        period_ms: Some(MINUTE_MS),
        policy: Some(policy),
        missed: Some(Missed::Skip),
        ..ScheduleSettings::default()
    }
}

impl World {
    /// A group without a record.
    fn new() -> Self {
        let host = Virtual::default();
        let store = Hanging::new(&host);
        let (begun, sessions) = (Rc::default(), Cell::new(0));
        Self { host, store, pool: LocalPool::new(), begun, sessions }
    }

    /// A group whose operator has run `init`, just before its first slot is due.
    fn with_init() -> Self {
        let mut world = Self::new();
        block_on(driver::init(&world.store, &world.host, &config())).expect("a new group");
        world.at(FIRST_MS);
        world
    }

    fn now_ms(&self) -> u64 {
        self.host.now().wall_ms
    }

    fn pass(&mut self, ms: u64) {
        self.host.pass(&mut self.pool, ms);
    }

    /// Lets time pass until the wall clock shows this.
    fn at(&mut self, wall_ms: u64) {
        let ms = wall_ms.checked_sub(self.now_ms()).expect("time does not go back");
        self.pass(ms);
    }

    fn trigger(&self, slot_ms: u64, settings: ScheduleSettings, job: Job) -> Trigger {
        let settings = ScheduleSettings { slot_ms: Some(slot_ms), ..settings };
        self.trigger_as(Schedule::new(&settings, &config()).expect("it is fine"), job)
    }

    fn trigger_as(&self, schedule: Schedule, job: Job) -> Trigger {
        self.sessions.set(self.sessions.get() + 1);
        let session = format!("s{}", self.sessions.get());
        let config = Config { server_id: "m".to_owned(), ..config() };
        let seed = self.sessions.get();
        let handle = Handle::new(Election::for_schedule(config, session, seed, schedule));
        let report = Reported::default();
        let (kill, registration) = AbortHandle::new_pair();
        let (host, store, begun) = (self.host.clone(), self.store.clone(), Rc::clone(&self.begun));
        let task = {
            let (handle, report) = (handle.clone(), Rc::clone(&report));
            async move {
                let ran = run_scheduled(&handle, &store, &host, async |term: Term<'_, Virtual>| {
                    let slot_ms = term.slot_ms.expect("a slot is run");
                    begun.borrow_mut().push((slot_ms, term.token));
                    match job {
                        Job::Takes(ms) => host.sleep(ms).await,
                        Job::Fails => return Err("it failed"),
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
        self.begun.borrow().iter().map(|(slot_ms, _)| *slot_ms).collect()
    }

    fn lease(&self) -> Lease {
        match lease::read(self.store.text().as_bytes()) {
            Reading::Lease(lease) => *lease,
            other => panic!("{other:?}"),
        }
    }

    /// Writes a record as somebody else would.
    fn write(&self, change: impl FnOnce(&mut Lease)) {
        let (version, mut lease) =
            block_on(driver::read_back(&self.store, &self.host, 1_000)).expect("a record");
        change(&mut lease);
        self.put(lease::write(&lease), Condition::Match(version));
    }

    fn put(&self, body: Vec<u8>, condition: Condition) -> Option<Version> {
        let answer = block_on(self.store.perform(Operation::Write { body, condition }));
        match answer.outcome {
            edgelect::store::Outcome::Written { version } => version,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn c54_of_triggers_for_one_slot_one_runs_whether_doubled_late_or_again() {
    let mut world = World::with_init();
    let at_once: Vec<Trigger> = (0..5)
        .map(|_| world.trigger(FIRST_MS, settings(Policy::AtMostOnce), Job::Takes(3_000)))
        .collect();
    world.pass(1_000);
    let overlapping = world.trigger(FIRST_MS, settings(Policy::AtMostOnce), Job::Takes(3_000));
    world.pass(10_000);
    let late = world.trigger(FIRST_MS, settings(Policy::AtLeastOnce), Job::Takes(3_000));
    world.pass(1_000);
    assert_eq!(world.slots(), [FIRST_MS]);
    let outcomes: Vec<SlotOutcome> = at_once.iter().map(Trigger::outcome).collect();
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == SlotOutcome::Done).count(), 1);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == SlotOutcome::Taken).count(), 4);
    assert_eq!((overlapping.outcome(), late.outcome()), (SlotOutcome::Taken, SlotOutcome::Taken));
}

#[test]
fn c54_a_trigger_that_comes_after_a_later_slots_is_taken() {
    let mut world = World::with_init();
    world.at(FIRST_MS + MINUTE_MS);
    let second = world.trigger(FIRST_MS + MINUTE_MS, settings(Policy::AtMostOnce), Job::Takes(10));
    world.pass(5_000);
    let first = world.trigger(FIRST_MS, settings(Policy::AtMostOnce), Job::Takes(10));
    world.pass(5_000);
    assert_eq!((second.outcome(), first.outcome()), (SlotOutcome::Done, SlotOutcome::Taken));
    assert_eq!(world.slots(), [FIRST_MS + MINUTE_MS]);
}

#[test]
fn c54_minutes_of_doubled_and_late_triggers_run_each_slot_once_and_tokens_grow() {
    let mut world = World::with_init();
    let mut triggers = Vec::new();
    for minute in 0..30 {
        let slot_ms = FIRST_MS + minute * MINUTE_MS;
        world.at(slot_ms + minute * 137 % 9_000);
        for _ in 0..=minute % 3 {
            triggers.push(world.trigger(slot_ms, settings(Policy::AtMostOnce), Job::Takes(700)));
        }
    }
    world.pass(MINUTE_MS);
    assert_eq!(world.slots(), (0..30).map(|n| FIRST_MS + n * MINUTE_MS).collect::<Vec<_>>());
    let tokens: Vec<u64> = world.begun.borrow().iter().map(|(_, token)| *token).collect();
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
    assert!(triggers.iter().all(|t| matches!(t.outcome(), SlotOutcome::Done | SlotOutcome::Taken)));
}

#[test]
fn the_closing_write_says_how_the_job_ended_and_gives_the_lease_up() {
    let mut world = World::with_init();
    let trigger = world.trigger(FIRST_MS, settings(Policy::AtMostOnce), Job::Takes(20_000));
    world.pass(12_000);
    let lease = world.lease();
    assert_eq!(
        (lease.slot, lease.slot_done, lease.released()),
        (Some(FIRST_MS), Some(false), false)
    );
    assert!(lease.sequence >= 3, "it is renewed while the job runs: {}", lease.sequence);
    world.pass(12_000);
    let lease = world.lease();
    assert_eq!((lease.slot, lease.slot_done, lease.released()), (Some(FIRST_MS), Some(true), true));
    assert_eq!((lease.slot_result.as_deref(), lease.slot_failures), (Some("ok"), None));
    let took_ms = lease.slot_took_ms.expect("it is told");
    assert!((20_000..20_500).contains(&took_ms), "{took_ms}");
    let report = trigger.report();
    assert!(report.runs[0].recorded);
    assert_eq!((report.slot_ms, report.runs[0].term), (Some(FIRST_MS), lease.term.unwrap()));
}

#[test]
fn the_first_slot_of_a_group_without_init_is_skipped_and_the_next_one_runs() {
    let mut world = World::new();
    world.at(FIRST_MS);
    let first = world.trigger(FIRST_MS, settings(Policy::AtLeastOnce), Job::Takes(10));
    world.pass(5_000);
    assert_eq!(first.outcome(), SlotOutcome::Skipped(SlotsOver::NewGroup));
    world.at(FIRST_MS + MINUTE_MS);
    let second = world.trigger(FIRST_MS + MINUTE_MS, settings(Policy::AtLeastOnce), Job::Takes(10));
    world.pass(5_000);
    assert_eq!(second.outcome(), SlotOutcome::Done);
    assert_eq!(world.slots(), [FIRST_MS + MINUTE_MS]);
}

#[test]
fn c56_a_dead_runners_slot_is_not_run_again_at_most_once() {
    let mut world = World::with_init();
    let dead = world.trigger(FIRST_MS, settings(Policy::AtMostOnce), Job::Hangs);
    world.pass(2_000);
    dead.kill.abort();
    world.pass(20_000);
    let again = world.trigger(FIRST_MS, settings(Policy::AtMostOnce), Job::Takes(10));
    world.at(FIRST_MS + MINUTE_MS);
    let next = world.trigger(FIRST_MS + MINUTE_MS, settings(Policy::AtMostOnce), Job::Takes(10));
    world.pass(10_000);
    assert_eq!((again.outcome(), next.outcome()), (SlotOutcome::Taken, SlotOutcome::Done));
    assert_eq!(world.slots(), [FIRST_MS, FIRST_MS + MINUTE_MS]);
}

#[test]
fn c56_a_dead_runners_slot_is_run_again_before_any_later_one_at_least_once() {
    let mut world = World::with_init();
    let dead = world.trigger(FIRST_MS, settings(Policy::AtLeastOnce), Job::Hangs);
    world.pass(50_000);
    dead.kill.abort();
    world.at(FIRST_MS + MINUTE_MS);
    let next = world.trigger(FIRST_MS + MINUTE_MS, settings(Policy::AtLeastOnce), Job::Takes(10));
    let doubled =
        world.trigger(FIRST_MS + MINUTE_MS, settings(Policy::AtLeastOnce), Job::Takes(10));
    world.pass(3_000);
    assert!(!next.ended() && !doubled.ended(), "the lease of the dead runner is waited out");
    world.pass(30_000);
    assert_eq!(world.slots(), [FIRST_MS, FIRST_MS, FIRST_MS + MINUTE_MS]);
    let mut outcomes = [next.outcome().name(), doubled.outcome().name()];
    outcomes.sort_unstable();
    assert_eq!(outcomes, ["done", "taken"]);
    let tokens: Vec<u64> = world.begun.borrow().iter().map(|(_, token)| *token).collect();
    assert!(tokens.is_sorted_by(|a, b| a < b), "each run has a token of its own: {tokens:?}");
}

#[test]
fn c56_a_deleted_record_runs_nothing_twice() {
    for policy in [Policy::AtMostOnce, Policy::AtLeastOnce] {
        let mut world = World::with_init();
        let done = world.trigger(FIRST_MS, settings(policy), Job::Takes(10));
        world.pass(2_000);
        assert_eq!(done.outcome(), SlotOutcome::Done);
        world.store.memory.overwrite(None);
        let doubled = world.trigger(FIRST_MS, settings(policy), Job::Takes(10));
        world.pass(40_000);
        assert_eq!(doubled.outcome(), SlotOutcome::Skipped(SlotsOver::NewGroup));
        let late = world.trigger(FIRST_MS, settings(policy), Job::Takes(10));
        world.pass(10_000);
        assert_eq!(late.outcome().name(), "skipped");
        world.at(FIRST_MS + 2 * MINUTE_MS);
        let next = world.trigger(FIRST_MS + 2 * MINUTE_MS, settings(policy), Job::Takes(10));
        world.pass(10_000);
        assert_eq!(next.outcome(), SlotOutcome::Done);
        assert_eq!(world.slots(), [FIRST_MS, FIRST_MS + 2 * MINUTE_MS]);
    }
}

#[test]
fn c56_a_member_that_drops_the_slot_lets_nothing_run_twice() {
    for policy in [Policy::AtMostOnce, Policy::AtLeastOnce] {
        let mut world = World::with_init();
        world.trigger(FIRST_MS, settings(policy), Job::Takes(10));
        world.pass(2_000);
        world.write(|lease| {
            lease.slot = None;
            lease.slot_done = None;
            lease.last_updated = Stamp::Released;
        });
        let doubled = world.trigger(FIRST_MS, settings(policy), Job::Takes(10));
        world.at(FIRST_MS + MINUTE_MS);
        let next = world.trigger(FIRST_MS + MINUTE_MS, settings(policy), Job::Takes(10));
        world.pass(5_000);
        assert_eq!((doubled.outcome(), next.outcome()), (SlotOutcome::Taken, SlotOutcome::Done));
        assert_eq!(world.slots(), [FIRST_MS, FIRST_MS + MINUTE_MS]);
    }
}

#[test]
fn c56_a_slot_over_a_tombstone_without_a_term_is_run_once() {
    for policy in [Policy::AtMostOnce, Policy::AtLeastOnce] {
        let mut world = World::with_init();
        world.write(|lease| {
            (lease.term, lease.session, lease.slot, lease.slot_done) = (None, None, None, None);
            lease.last_updated = Stamp::Released;
        });
        world.at(FIRST_MS + MINUTE_MS);
        let run = world.trigger(FIRST_MS + MINUTE_MS, settings(policy), Job::Takes(10));
        world.pass(12_000);
        let again = world.trigger(FIRST_MS + MINUTE_MS, settings(policy), Job::Takes(10));
        world.pass(12_000);
        assert_eq!((run.outcome(), again.outcome()), (SlotOutcome::Done, SlotOutcome::Taken));
        assert_eq!(world.slots(), [FIRST_MS + MINUTE_MS]);
    }
}

#[test]
fn a_members_slot_ahead_of_storage_time_is_no_damage() {
    let mut world = World::with_init();
    world.write(|lease| {
        lease.acquired = Some(1);
        lease.slot = Some(FIRST_MS + 3 * MINUTE_MS);
        lease.slot_done = Some(true);
    });
    for minute in 1..=4 {
        world.at(FIRST_MS + minute * MINUTE_MS);
        let due = FIRST_MS + minute * MINUTE_MS;
        world.trigger(due, settings(Policy::AtMostOnce), Job::Takes(10));
        world.pass(5_000);
    }
    assert_eq!(world.slots(), [FIRST_MS + 4 * MINUTE_MS]);
}

#[test]
fn a_stored_slot_ahead_of_storage_time_of_no_member_counts_as_missing_and_an_own_one_is_refused() {
    let mut world = World::with_init();
    world.write(|lease| {
        lease.session = None;
        lease.slot = Some(FIRST_MS + 400 * MINUTE_MS);
        lease.slot_done = Some(true);
    });
    world.at(FIRST_MS + MINUTE_MS);
    let next = world.trigger(FIRST_MS + MINUTE_MS, settings(Policy::AtMostOnce), Job::Takes(10));
    let ahead =
        world.trigger(FIRST_MS + 2 * MINUTE_MS, settings(Policy::AtMostOnce), Job::Takes(10));
    world.pass(5_000);
    assert_eq!(next.outcome(), SlotOutcome::Done);
    let SlotOutcome::Skipped(SlotsOver::Ahead { by_ms }) = ahead.outcome() else {
        panic!("{:?}", ahead.outcome())
    };
    assert!((58_000..=60_000).contains(&by_ms), "{by_ms}");
    assert_eq!(world.slots(), [FIRST_MS + MINUTE_MS]);
}

/// A trigger of the deployed Worker, whose period is the step of its cron.
fn of_cron(slot_ms: u64, text: &str, period_ms: Option<u64>, named: bool) -> Schedule {
    let settings = ScheduleSettings {
        slot_ms: Some(slot_ms),
        period_ms,
        policy: Some(Policy::AtLeastOnce),
        ..ScheduleSettings::default()
    };
    let schedule = Schedule::new(&settings, &config()).expect("it is fine");
    let cron = Cron { text: text.to_owned(), named, periodic: period_ms.is_some() };
    Schedule { cron: Some(cron), ..schedule }
}

#[test]
fn a_second_cron_on_one_group_is_refused_before_it_hides_what_the_first_one_missed() {
    const HOUR_MS: u64 = 60 * MINUTE_MS;
    let (fives, hours) = ("*/5 * * * *", "0 * * * *");
    let mut world = World::with_init();
    let five = |slot_ms| of_cron(slot_ms, fives, Some(5 * MINUTE_MS), false);
    let first_ms = FIRST_MS.next_multiple_of(HOUR_MS);
    world.at(first_ms - 5 * MINUTE_MS);
    world.trigger_as(five(first_ms - 5 * MINUTE_MS), Job::Takes(10));
    // No trigger comes for an hour; then both do, the hourly one first.
    world.at(first_ms + HOUR_MS);
    let other = of_cron(first_ms + HOUR_MS, hours, Some(HOUR_MS), false);
    let hourly = world.trigger_as(other, Job::Takes(10));
    world.pass(5_000);
    assert_eq!(hourly.outcome(), SlotOutcome::Skipped(SlotsOver::OtherCron));
    let uneven = of_cron(first_ms + HOUR_MS, "0 9-17 * * *", None, false);
    let uneven = world.trigger_as(uneven, Job::Takes(10));
    world.pass(5_000);
    assert_eq!(uneven.outcome(), SlotOutcome::Skipped(SlotsOver::OtherCron));
    let all = world.trigger_as(five(first_ms + HOUR_MS), Job::Takes(10));
    world.pass(30_000);
    assert_eq!(all.outcome(), SlotOutcome::Done);
    let expected: Vec<u64> = (0..=12).map(|n| first_ms + 5 * n * MINUTE_MS).collect();
    let ran: Vec<u64> = world.slots().into_iter().filter(|ms| *ms >= first_ms).collect();
    assert_eq!(ran, expected, "none is lost");
}

#[test]
fn a_cron_that_the_operator_names_takes_the_place_of_the_recorded_one() {
    let mut world = World::with_init();
    let minute = |at: u64| FIRST_MS + at * MINUTE_MS;
    world.trigger_as(of_cron(FIRST_MS, "* * * * *", Some(MINUTE_MS), false), Job::Takes(10));
    world.at(minute(2));
    let renamed = |slot_ms, named| of_cron(slot_ms, "*/2 * * * *", Some(2 * MINUTE_MS), named);
    let refused = world.trigger_as(renamed(minute(2), false), Job::Takes(10));
    world.pass(5_000);
    assert_eq!(refused.outcome(), SlotOutcome::Skipped(SlotsOver::OtherCron));
    let named = world.trigger_as(renamed(minute(2), true), Job::Takes(10));
    world.at(minute(4));
    let unnamed = world.trigger_as(renamed(minute(4), false), Job::Takes(10));
    world.pass(5_000);
    assert_eq!([named.outcome(), unnamed.outcome()], [SlotOutcome::Done; 2]);
    assert_eq!(world.lease().extra.get("slotCron"), Some("\"*/2 * * * *\""));
    world.at(minute(6));
    let uneven = world.trigger_as(of_cron(minute(6), "0 9-17 * * *", None, true), Job::Takes(10));
    world.pass(5_000);
    assert_eq!(uneven.outcome(), SlotOutcome::Done);
    assert_eq!(world.lease().extra.get("slotCron"), None, "nothing is made up for any more");
}

#[test]
fn triggers_whose_missed_slots_nobody_makes_up_for_may_share_a_group() {
    let mut world = World::with_init();
    for (at, cron) in ["0 9 * * MON-FRI", "30 12 * * SAT", "0 9 * * MON-FRI"].iter().enumerate() {
        let slot_ms = FIRST_MS + at as u64 * MINUTE_MS;
        world.at(slot_ms);
        let trigger = world.trigger_as(of_cron(slot_ms, cron, None, false), Job::Takes(10));
        world.pass(5_000);
        assert_eq!(trigger.outcome(), SlotOutcome::Done);
    }
}

#[test]
fn a_failed_job_is_counted_and_run_again_only_at_least_once_and_only_so_often() {
    for (policy, runs) in [(Policy::AtMostOnce, 1), (Policy::AtLeastOnce, 3)] {
        let mut world = World::with_init();
        for minute in 0..5 {
            world.at(FIRST_MS + minute * MINUTE_MS);
            let trigger = world.trigger(FIRST_MS, settings(policy), Job::Fails);
            world.pass(10_000);
            if minute == 0 {
                assert_eq!(trigger.outcome(), SlotOutcome::Failed);
                assert_eq!(trigger.report().runs[0].end, RunEnd::Failed("it failed"));
                let lease = world.lease();
                assert_eq!((lease.slot_done, lease.slot_failures), (Some(false), Some(1)));
                assert_eq!(lease.slot_result.as_deref(), Some("failed"));
            }
        }
        assert_eq!(world.slots().len(), runs, "{policy:?}");
        world.at(FIRST_MS + 6 * MINUTE_MS);
        let next = world.trigger(FIRST_MS + 6 * MINUTE_MS, settings(policy), Job::Takes(10));
        world.pass(10_000);
        assert_eq!(next.outcome(), SlotOutcome::Done, "a slot that is given up is in nobody's way");
        assert_eq!(world.lease().slot_failures, None);
    }
}

#[test]
fn a_failing_rerun_keeps_the_later_slot_for_the_next_trigger() {
    let mut world = World::with_init();
    let all = ScheduleSettings { missed: None, ..settings(Policy::AtLeastOnce) };
    world.trigger(FIRST_MS, all.clone(), Job::Fails);
    world.at(FIRST_MS + MINUTE_MS);
    let blocked = world.trigger(FIRST_MS + MINUTE_MS, all.clone(), Job::Fails);
    world.pass(10_000);
    assert_eq!(blocked.outcome(), SlotOutcome::Skipped(SlotsOver::Blocked));
    world.at(FIRST_MS + 2 * MINUTE_MS);
    let last = world.trigger(FIRST_MS + 2 * MINUTE_MS, all, Job::Takes(10));
    world.pass(10_000);
    assert_eq!(last.outcome(), SlotOutcome::Done);
    let expected = [0, 0, 0, 1, 2].map(|minute| FIRST_MS + minute * MINUTE_MS);
    assert_eq!(world.slots(), expected);
}

#[test]
fn a_late_trigger_that_reruns_a_later_slot_in_vain_says_that_its_own_was_taken() {
    for (job, end) in
        [(Job::Fails, RunEnd::Failed("it failed")), (Job::Hangs, RunEnd::Lost(LostReason::Expired))]
    {
        let mut world = World::with_init();
        world.at(FIRST_MS + MINUTE_MS);
        world.trigger(FIRST_MS, settings(Policy::AtLeastOnce), Job::Takes(10));
        world.pass(10_000);
        world.trigger(FIRST_MS + MINUTE_MS, settings(Policy::AtLeastOnce), Job::Fails);
        world.pass(10_000);
        let late = world.trigger(FIRST_MS, settings(Policy::AtLeastOnce), job);
        world.pass(1_000);
        world.store.hangs.set(true);
        world.pass(100_000);
        let report = late.report();
        assert_eq!((report.runs[0].slot_ms, &report.runs[0].end), (FIRST_MS + MINUTE_MS, &end));
        assert_eq!(report.outcome, SlotOutcome::Taken);
    }
}

#[test]
fn missed_slots_are_skipped_or_the_latest_or_all_of_them_are_run_first() {
    for (missed, minutes, left_out) in [
        (Missed::Skip, vec![0, 150], 149),
        (Missed::Latest, vec![0, 149, 150], 148),
        (Missed::All, [0].into_iter().chain(50..=150).collect(), 49),
    ] {
        let mut world = World::with_init();
        let settings = ScheduleSettings { missed: Some(missed), ..settings(Policy::AtMostOnce) };
        world.trigger(FIRST_MS, settings.clone(), Job::Takes(10));
        world.at(FIRST_MS + 150 * MINUTE_MS);
        let trigger = world.trigger(FIRST_MS + 150 * MINUTE_MS, settings, Job::Takes(10));
        world.pass(30_000);
        let expected: Vec<u64> =
            minutes.iter().map(|minute| FIRST_MS + minute * MINUTE_MS).collect();
        assert_eq!(world.slots(), expected, "{missed:?}");
        assert_eq!((trigger.outcome(), trigger.report().left_out), (SlotOutcome::Done, left_out));
    }
}

#[test]
fn a_job_longer_than_the_period_keeps_the_next_trigger_waiting_within_its_budget() {
    let mut world = World::with_init();
    let first = world.trigger(FIRST_MS, settings(Policy::AtMostOnce), Job::Takes(80_000));
    world.at(FIRST_MS + MINUTE_MS);
    let second = world.trigger(FIRST_MS + MINUTE_MS, settings(Policy::AtMostOnce), Job::Takes(10));
    world.pass(30_000);
    assert_eq!((first.outcome(), second.outcome()), (SlotOutcome::Done, SlotOutcome::Done));
    let long =
        world.trigger(FIRST_MS + MINUTE_MS + 1, settings(Policy::AtMostOnce), Job::Takes(300_000));
    world.pass(2_000);
    let short = ScheduleSettings { budget_ms: Some(26_000), ..settings(Policy::AtMostOnce) };
    let began_ms = world.now_ms();
    let waiting = world.trigger(world.now_ms(), short, Job::Takes(10));
    world.pass(25_000);
    assert!(!waiting.ended());
    world.pass(2_500);
    assert_eq!(waiting.outcome(), SlotOutcome::Skipped(SlotsOver::Budget));
    assert!(world.now_ms() - began_ms < 28_000 && !long.ended());
}

#[test]
fn a_lost_authority_ends_the_job_and_its_late_end_changes_nothing() {
    let mut world = World::with_init();
    let first = world.trigger(FIRST_MS, settings(Policy::AtLeastOnce), Job::Takes(40_000));
    world.pass(2_000);
    world.store.hangs.set(true);
    world.pass(20_000);
    assert_eq!(first.outcome(), SlotOutcome::Lost);
    assert!(
        matches!(first.report().runs[0].end, RunEnd::Lost(_)) && !first.report().runs[0].recorded
    );
    world.store.hangs.set(false);
    assert_eq!(world.lease().slot_done, Some(false));
    world.at(FIRST_MS + MINUTE_MS);
    let next = world.trigger(FIRST_MS + MINUTE_MS, settings(Policy::AtLeastOnce), Job::Takes(10));
    world.pass(30_000);
    assert_eq!(next.outcome(), SlotOutcome::Done);
    assert_eq!(world.slots(), [FIRST_MS, FIRST_MS, FIRST_MS + MINUTE_MS]);
}

#[test]
fn a_stop_under_the_job_closes_the_slot_undone() {
    let mut world = World::with_init();
    let trigger = world.trigger(FIRST_MS, settings(Policy::AtLeastOnce), Job::Hangs);
    world.pass(2_000);
    trigger.handle.tell(Input::Stop { park: false });
    world.pass(2_000);
    assert_eq!(trigger.outcome(), SlotOutcome::Lost);
    let lease = world.lease();
    assert_eq!((lease.slot_done, lease.released()), (Some(false), true));
    assert_eq!((lease.slot_result.as_deref(), lease.slot_failures), (Some("stopped"), None));
}

#[test]
fn a_store_that_does_not_answer_costs_the_budget_and_claims_nothing() {
    let mut world = World::with_init();
    world.store.hangs.set(true);
    let trigger = world.trigger(FIRST_MS, settings(Policy::AtMostOnce), Job::Takes(10));
    world.pass(49_000);
    assert!(!trigger.ended());
    world.pass(5_000);
    assert_eq!(trigger.outcome(), SlotOutcome::Skipped(SlotsOver::Budget));
    assert_eq!(trigger.report().slot_ms, Some(FIRST_MS));
}

#[test]
fn a_store_that_is_back_within_the_budget_is_soon_asked() {
    for hung_ms in [10_000, 20_000, 30_000, 40_000] {
        let mut world = World::with_init();
        world.store.hangs.set(true);
        let trigger = world.trigger(FIRST_MS, settings(Policy::AtMostOnce), Job::Takes(10));
        world.pass(hung_ms);
        assert!(!trigger.ended());
        world.store.hangs.set(false);
        world.pass(8_000);
        assert!(trigger.ended(), "the store was away for {hung_ms} ms");
        assert_eq!(trigger.outcome(), SlotOutcome::Done);
    }
}

#[test]
fn a_timers_slot_is_the_nearest_multiple_of_its_period_unless_that_lies_ahead() {
    for (after_ms, minute) in [(0, 0), (200, 0), (29_000, 0), (40_000, 0), (58_500, 1), (60_000, 1)]
    {
        let mut world = World::with_init();
        world.at(FIRST_MS + after_ms);
        let schedule =
            Schedule::new(&settings(Policy::AtMostOnce), &config()).expect("it has a period");
        let trigger = world.trigger_as(schedule, Job::Takes(10));
        world.pass(3_000);
        assert_eq!(trigger.report().slot_ms, Some(FIRST_MS + minute * MINUTE_MS), "{after_ms}");
        assert_eq!(trigger.outcome(), SlotOutcome::Done);
    }
}

#[test]
fn a_schedule_that_breaks_a_rule_is_refused_by_name() {
    let at = |change: fn(&mut ScheduleSettings)| {
        let mut settings =
            ScheduleSettings { slot_ms: Some(FIRST_MS), ..settings(Policy::AtMostOnce) };
        change(&mut settings);
        Schedule::new(&settings, &config()).expect_err("it is refused").field
    };
    assert_eq!(at(|s| s.period_ms = Some(14_999)), "period");
    assert_eq!(at(|s| s.period_ms = Some(u64::MAX)), "period");
    assert_eq!(at(|s| s.slot_ms = Some(0)), "slot");
    assert_eq!(at(|s| s.slot_ms = Some(u64::MAX)), "slot");
    assert_eq!(at(|s| (s.slot_ms, s.period_ms) = (None, None)), "slot");
    assert_eq!(at(|s| (s.missed, s.period_ms) = (Some(Missed::All), None)), "missed");
    assert_eq!(at(|s| s.attempts = Some(0)), "attempts");
    assert_eq!(at(|s| s.budget_ms = Some(25_000)), "budget");
    assert_eq!(at(|s| s.budget_ms = Some(3_600_000)), "budget");
}

#[test]
fn a_trigger_that_may_make_only_so_many_requests_leaves_slots_to_the_next_and_loses_none() {
    let mut world = World::with_init();
    let few = || ScheduleSettings {
        missed: Some(Missed::All),
        subrequests: Some(20),
        ..settings(Policy::AtMostOnce)
    };
    world.trigger(FIRST_MS, few(), Job::Takes(10));
    for minute in [30, 31, 32, 33, 34, 35, 36, 37] {
        world.at(FIRST_MS + minute * MINUTE_MS);
        let before = world.slots().len();
        let trigger = world.trigger(FIRST_MS + minute * MINUTE_MS, few(), Job::Takes(10));
        world.pass(30_000);
        let ran = world.slots().len() - before;
        let requests = trigger.handle.requests();
        let made = requests.read + requests.write + ran as u64;
        assert!(made <= 20, "{made} requests for {ran} slots");
        let lease = world.lease();
        assert_eq!(lease.slot_done, Some(true), "none is claimed that is not run");
        if trigger.outcome() != SlotOutcome::Done {
            assert_eq!(trigger.outcome(), SlotOutcome::Skipped(SlotsOver::Full));
        }
    }
    let all: Vec<u64> = (0..=37).map(|minute| FIRST_MS + minute * MINUTE_MS).collect();
    assert_eq!(world.slots(), all);
}
