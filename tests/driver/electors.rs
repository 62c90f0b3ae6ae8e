//! Many groups of one process: what they share, and that they fail one by one.

use edgelect::electors::budget::Urgency;
use edgelect::electors::queue::{Budgeted, Queue};
use edgelect::{Electors, Limits, Shards, driver, run};

use crate::driver::prelude::*;

/// A store whose every answer takes this long, and what it has seen of all groups.
#[derive(Clone)]
struct Slow {
    memory: Memory,
    host: Virtual,
    takes_ms: u64,
    seen: Seen,
    wrong: bool,
}

#[derive(Clone, Default)]
struct Seen {
    under_way: Rc<Cell<usize>>,
    most: Rc<Cell<usize>>,
    left_ms: Rc<RefCell<Vec<u64>>>,
    writes: Rc<Cell<usize>>,
    judgements: Rc<Cell<usize>>,
}

struct UnderWay(Seen);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.set(self.0.under_way.get() - 1);
    }
}

impl Store for Slow {
    async fn perform(&self, operation: Operation) -> Answer {
        let seen = &self.seen;
        seen.under_way.set(seen.under_way.get() + 1);
        seen.most.set(seen.most.get().max(seen.under_way.get()));
        seen.left_ms.borrow_mut().push(self.host.now_ms.get());
        if matches!(operation, Operation::Write { .. }) {
            seen.writes.set(seen.writes.get() + 1);
        }
        let _under_way = UnderWay(seen.clone());
        if self.wrong {
            return Answer::rejected(Fault::new(FaultKind::Misconfigured, "no such bucket"));
        }
        if self.takes_ms > 0 {
            self.host.sleep(self.takes_ms).await;
        }
        self.memory.perform(operation).await
    }

    fn beside(&self, _key: &str) -> Option<impl Store> {
        self.seen.judgements.set(self.seen.judgements.get() + 1);
        Some(Self { memory: memory(&self.host), ..self.clone() })
    }

    fn condition_covers_version(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        "a slow store".to_owned()
    }
}

/// The settings of a group; the lease of `HASTY` is short, so that its renewals cannot wait.
fn group(index: usize) -> Config {
    let hasty = |ms| (index == HASTY).then_some(ms);
    let settings = Settings {
        server_id: Some("a".to_owned()),
        leader_timeout_ms: hasty(3_000),
        frequent_interval_ms: hasty(1_000),
        ..Settings::default()
    };
    Config { lockfile_path: format!("group-{index}"), ..config_of(settings) }
}

const HASTY: usize = 9_999;

struct World {
    machine: Machine,
    electors: Electors<Virtual>,
    seen: Seen,
    /// The groups that led, by the start of each term, and those whose `lead` has failed.
    led: Rc<RefCell<Vec<usize>>>,
    failed: Rc<RefCell<Vec<String>>>,
}

impl World {
    fn new(limits: Limits) -> Self {
        let machine = Machine::default();
        let electors = Electors::new(machine.host.clone(), limits).expect("limits");
        let (led, failed) = (Rc::default(), Rc::default());
        Self { machine, electors, seen: Seen::default(), led, failed }
    }

    fn led(&self) -> Vec<usize> {
        let mut led = self.led.borrow().clone();
        led.sort_unstable();
        led
    }

    /// The status of the answer to a peer's question.
    fn health(&self, group: &str) -> u16 {
        block_on(self.electors.answer_peer(&format!("group={group}"))).status
    }

    /// The store of a group that was just made.
    fn store(&self, index: usize, takes_ms: u64) -> Slow {
        let (host, seen) = (self.machine.host.clone(), self.seen.clone());
        let memory = memory(&host);
        block_on(driver::init(&memory, &host, &group(index))).expect("a new group");
        Slow { memory, host, takes_ms, seen, wrong: false }
    }

    /// A new group alone, whose requests wait for the turns of this queue.
    fn run_behind<Q: Queue + 'static>(&self, queue: impl FnOnce(&Handle) -> Q) -> Handle {
        let (host, inner) = (self.machine.host.clone(), self.store(0, 5));
        let handle = Handle::new(Election::new(group(0), "a".repeat(32), 1));
        let store = Budgeted::new(inner, queue(&handle), handle.clone(), host.clone());
        let driven = handle.clone();
        self.machine.run(async move { run(&driven, &store, &host, |_| {}).await });
        handle
    }

    /// A group that was just made, or whose lease another holds for ever, on a store like this.
    fn lead(&self, index: usize, takes_ms: u64, wrong: bool, held: bool) {
        self.lead_by(group(index), index, takes_ms, wrong, held);
    }

    fn lead_by(&self, config: Config, index: usize, takes_ms: u64, wrong: bool, held: bool) {
        let store = Slow { wrong, ..self.store(index, takes_ms) };
        if held {
            let (memory, host) = (store.memory.clone(), store.host.clone());
            let config = Config { server_id: "other".to_owned(), ..config.clone() };
            let mut election = Election::new(config, format!("other-{index}"), 1);
            election.store_held();
            let handle = Handle::new(election);
            self.machine.run(async move { run(&handle, &memory, &host, |_| {}).await });
        }
        let member = self.electors.add(config, store).expect("it is added");
        let (led, failed) = (Rc::clone(&self.led), Rc::clone(&self.failed));
        self.machine.run(async move {
            let work = async |_term| {
                led.borrow_mut().push(index);
                std::future::pending::<()>().await;
            };
            if let Err(fault) = member.lead(work).await {
                failed.borrow_mut().push(fault.message);
            }
        });
    }
}

#[test]
fn followers_whose_reads_hang_cost_no_leader_of_the_same_process_its_term() {
    let mut world = World::new(Limits { max_connections: 4, ..Limits::default() });
    world.lead(HASTY, 0, false, false);
    world.machine.pass(1_000);
    (1..200).for_each(|index| world.lead(index, 60_000, false, true));
    world.machine.pass(600_000);
    assert_eq!(*world.led.borrow(), [HASTY], "one term, and nobody else's");
    assert_eq!(world.health(&group(HASTY).lockfile_path), 200);
    assert!(world.seen.most.get() <= 4);
}

#[test]
fn all_groups_together_hold_a_thousand_questions_and_answer_the_next_at_once() {
    let mut world = World::new(Limits::default());
    (0..2).for_each(|index| world.lead(index, 0, false, false));
    world.machine.pass(10_000);
    let statuses = Rc::<RefCell<Vec<u16>>>::default();
    let ask = |index: usize, term: u64| {
        let (electors, statuses) = (world.electors.clone(), Rc::clone(&statuses));
        let query = format!("group=group-{index}&term={term}&wait=25000");
        world.machine.run(async move {
            let status = electors.answer_peer(&query).await.status;
            statuses.borrow_mut().push(status);
        })
    };
    let terms: Vec<u64> = world
        .electors
        .handles()
        .iter()
        .map(|(_, handle)| handle.steady_term(world.machine.host.now()).expect("it leads"))
        .collect();
    let mut asked: Vec<_> =
        (0..600).flat_map(|_| [0, 1].map(|index| ask(index, terms[index]))).collect();
    ask(1, terms[1] - 1);
    world.machine.pass(1);
    assert_eq!(world.electors.questions_held(), 1_000);
    let mut expected = vec![503; 200];
    expected.push(200);
    assert_eq!(*statuses.borrow(), expected, "the next are sent to the store, and news are told");
    asked.remove(0).abort();
    world.machine.pass(1);
    assert_eq!(world.electors.questions_held(), 999, "who goes makes room");
}

#[test]
fn a_rate_that_is_too_low_for_all_at_once_delays_reads_and_holds_every_lease() {
    let rate = Limits { max_requests_per_second: Some(30), ..Limits::default() };
    let mut world = World::new(rate);
    (0..100).for_each(|index| world.lead(index, 5, false, index >= 50));
    world.machine.pass(300_000);
    assert!(world.led().into_iter().eq(0..50), "each of them in one term");
    for second in 0..295 {
        let left_ms = world.seen.left_ms.borrow();
        let count = left_ms.iter().filter(|ms| **ms / 1_000 == second).count();
        // The judgement of the store comes before the groups and is not counted against them.
        assert!(count <= 33 || second == 0, "{count} in second {second}");
    }
}

/// A tick has no time to judge a store: a group that is one judges it for nobody.
#[test]
fn the_first_group_that_can_judges_the_store_for_all() {
    let mut world = World::new(Limits::default());
    let tick = Config { sustain_ms: Some(60_000), ..group(0) };
    world.lead_by(tick, 0, 0, false, false);
    world.machine.pass(30_000);
    assert_eq!((world.led(), world.seen.judgements.get()), (vec![0], 0));
    (1..3).for_each(|index| world.lead(index, 0, false, false));
    world.machine.pass(30_000);
    assert_eq!((world.led(), world.seen.judgements.get()), (vec![0, 1, 2], 1));
}

#[test]
fn a_group_that_fails_ends_alone_and_one_that_stops_makes_room() {
    let mut world = World::new(Limits::default());
    (0..10).for_each(|index| world.lead(index, 5, index == 7, false));
    world.machine.pass(60_000);
    assert_eq!(world.failed.borrow().len(), 1);
    assert_eq!((world.led.borrow().len(), world.electors.handles().len()), (9, 9));
    assert_eq!(world.health("group-3"), 200);
    assert_eq!(world.health("group-7"), 404, "it is gone");
    assert_eq!(world.electors.status().matches(r#""role":"leader""#).count(), 9);
    let electors = world.electors.clone();
    world.machine.run(async move { electors.stop().await });
    world.machine.pass(5_000);
    assert_eq!(world.electors.handles().len(), 0);
    assert_eq!(world.electors.load().under_way, 0);
}

/// The process stands still while a renewal waits for its turn, until just after the term that it was to lengthen.
#[derive(Clone, Default)]
struct Stopped {
    host: Virtual,
    times: Rc<Cell<usize>>,
}

impl Queue for Stopped {
    type Turn = ();

    async fn turn(&self, urgency: Urgency) {
        if let Urgency::Term { fence_ms } = urgency {
            self.host.now_ms.set(fence_ms + 1);
            self.times.set(self.times.get() + 1);
        }
    }
}

#[test]
fn a_renewal_that_waited_for_its_turn_is_not_sent_after_its_term() {
    let mut world = World::new(Limits::default());
    let queue = Stopped { host: world.machine.host.clone(), ..Stopped::default() };
    world.run_behind(|_| queue.clone());
    world.machine.pass(10_000);
    assert_eq!(queue.times.get(), 1, "a term is renewed after a third of its lease");
    assert_eq!(world.seen.writes.get(), 1, "the claim alone was written");
}

/// Its group resigns while the first claim waits for its turn.
#[derive(Clone)]
struct Resigning(Handle, Virtual);

impl Queue for Resigning {
    type Turn = ();

    async fn turn(&self, urgency: Urgency) {
        if urgency == Urgency::Change && self.1.now_ms.get() < 1_000 {
            self.0.tell(Input::Resign);
            self.1.sleep(10).await;
        }
    }
}

#[test]
fn a_claim_that_waited_for_its_turn_is_not_sent_after_a_resignation() {
    let mut world = World::new(Limits::default());
    let host = world.machine.host.clone();
    let handle = world.run_behind(|handle| Resigning(handle.clone(), host));
    world.machine.pass(15_000);
    assert_eq!(world.seen.writes.get(), 0, "it sits out for a lease");
    assert_eq!(problem(&handle), "");
    world.machine.pass(30_000);
    assert!(handle.authority(world.machine.host.now()).is_some(), "and competes again");
}

#[test]
fn shards_whose_store_failed_are_led_again_by_another_call_and_not_after_a_stop() {
    let mut world = World::new(Limits::default());
    let settings = Settings { server_id: Some("a".to_owned()), ..Settings::default() };
    let host = world.machine.host.clone();
    let made = Shards::new(&world.electors, host.clone(), &settings, "jobs", 2).expect("shards");
    let shards = Rc::new(made);
    let (leading, seen) = (Rc::clone(&shards), world.seen.clone());
    let ends = Rc::<RefCell<Vec<_>>>::default();
    let told = Rc::clone(&ends);
    world.machine.run(async move {
        for wrong in [true, false, false] {
            let open = |_: &Config| {
                let memory = memory(&host);
                Ok(Slow { memory, host: host.clone(), takes_ms: 5, seen: seen.clone(), wrong })
            };
            let ended = leading.lead(open, async |_, _| std::future::pending().await).await;
            told.borrow_mut().push(ended.is_ok());
        }
    });
    world.machine.pass(120_000);
    assert_eq!(*ends.borrow(), [false]);
    assert_eq!(shards.led(), [0, 1]);
    shards.stop();
    world.machine.pass(10_000);
    assert_eq!(*ends.borrow(), [false, true, true], "no call leads after a stop");
}
