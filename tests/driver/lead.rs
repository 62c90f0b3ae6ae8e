//! Work that runs while its process leads: when it runs, and that it never runs without authority.

use std::future::ready;
use std::pin::pin;

use edgelect::config::HostClock;
use edgelect::store::is_probe;
use edgelect::{Term, lead};
use futures::future::select;

use crate::driver::prelude::*;

/// When `lead` gave something back, and what.
pub type Led = (u64, Result<Option<u64>, Fault>);
pub type Ended = Rc<RefCell<Option<Led>>>;

/// Begins to lead with this work.
pub fn begin(
    machine: &Machine,
    store: impl Store + 'static,
    config: Config,
    work: impl AsyncFnMut(Term<'_, Virtual>) -> u64 + 'static,
) -> (Handle, Ended) {
    let host = machine.host.clone();
    let handle = Handle::new(new_election(&host, config).expect("it has randomness"));
    let ended = Ended::default();
    let (running, told) = (handle.clone(), Rc::clone(&ended));
    machine.run(async move {
        let value = lead(&running, &store, &host, work).await;
        *told.borrow_mut() = Some((host.now_ms.get(), value));
    });
    (handle, ended)
}

/// The store of a new group, and an elector of it.
fn group_of(host: &Virtual, config: Config) -> (Hanging, Handle) {
    let elector = Handle::new(new_election(host, config).expect("it has randomness"));
    (Hanging::with_group(host), elector)
}

/// A member of a new group whose work looks at its term every 100 ms.
struct World {
    machine: Machine,
    store: Hanging,
    handle: Handle,
    ended: Ended,
    /// What the work has seen: when it was polled, with which token and with how much authority.
    seen: Rc<RefCell<Vec<(u64, u64, u64)>>>,
    dropped_ms: Rc<RefCell<Vec<u64>>>,
}

/// Notes when the work is dropped, and that its lease has not been released by then.
struct Guard(Virtual, Hanging, Rc<RefCell<Vec<u64>>>);

impl Drop for Guard {
    fn drop(&mut self) {
        assert!(!self.1.released(), "released before the work had stopped");
        self.2.borrow_mut().push(self.0.now_ms.get());
    }
}

/// Its work ends after so many looks.
fn world(turns: u64, config: Config) -> World {
    let machine = Machine::default();
    let store = Hanging::with_group(&machine.host);
    let (seen, dropped_ms) = (Rc::<RefCell<Vec<_>>>::default(), Rc::default());
    let (host, wire) = (machine.host.clone(), store.clone());
    let (looks, drops) = (Rc::clone(&seen), Rc::clone(&dropped_ms));
    let work = async move |term: Term<'_, Virtual>| {
        let _guard = Guard(host.clone(), wire.clone(), Rc::clone(&drops));
        for _ in 0..turns {
            looks.borrow_mut().push((host.now_ms.get(), term.token, term.remaining_ms()));
            host.sleep(100).await;
        }
        term.token
    };
    let (handle, ended) = begin(&machine, store.clone(), config, work);
    World { machine, store, handle, ended, seen, dropped_ms }
}

/// Its work ends with its authority only.
fn endless() -> World {
    world(u64::MAX, config())
}

impl World {
    fn pass(&mut self, ms: u64) {
        self.machine.pass(ms);
        let ran = self.seen.borrow();
        assert!(ran.iter().all(|(.., left_ms)| *left_ms > 0), "never without authority: {ran:?}");
    }

    fn looks(&self) -> usize {
        self.seen.borrow().len()
    }

    fn drops(&self) -> Vec<u64> {
        self.dropped_ms.borrow().clone()
    }

    fn tokens(&self) -> Vec<u64> {
        let mut tokens: Vec<u64> = self.seen.borrow().iter().map(|(_, token, _)| *token).collect();
        tokens.dedup();
        tokens
    }

    /// A second term has begun, under a higher token.
    fn led_again(&self) -> bool {
        matches!(self.tokens()[..], [first, second] if second > first)
    }
}

#[test]
fn work_that_ends_releases_the_lease_and_its_value_comes_back() {
    let mut world = world(50, config());
    world.pass(4_000);
    assert_eq!(world.looks(), 41, "it runs at once and goes on");
    world.pass(2_000);
    let ended = world.ended.take().map(|(_, value)| value);
    assert_eq!(ended, Some(Ok(Some(world.tokens()[0]))));
    assert!(world.store.released());
}

#[test]
fn s10_work_is_dropped_at_the_fence_and_the_next_term_runs_it_again_with_a_higher_token() {
    let mut world = endless();
    world.pass(7_000);
    world.store.hangs.set(true);
    world.pass(20_000);
    // The renewal at 5 s was the last that landed: 5 s + 15 s lease - 1.5 s margin.
    assert_eq!(world.drops(), [18_500]);
    world.store.hangs.set(false);
    world.pass(60_000);
    assert!(world.led_again(), "{:?}", world.tokens());
    assert_eq!(world.drops().len(), 1);
}

#[test]
fn s12_a_stop_drops_the_work_before_the_tombstone_leaves() {
    let mut world = endless();
    world.pass(6_050);
    world.handle.tell(Input::Stop { park: false });
    world.pass(1);
    assert_eq!(world.drops(), [6_050]);
    assert_eq!(world.ended.take(), Some((6_050, Ok(None))));
    assert!(world.store.released(), "it does not wait for a timer");
    let mut world = endless();
    world.pass(6_050);
    world.handle.tell(Input::Resign);
    world.pass(1);
    assert_eq!((world.drops(), world.store.released()), (vec![6_050], true), "so a resignation");
    world.pass(60_000);
    assert_eq!(world.tokens().len(), 2, "and it competes again");
}

#[test]
fn s11_after_a_suspend_work_is_dropped_without_being_polled_once_more() {
    let mut world = endless();
    world.pass(7_050);
    // The monotonic clock stood still, so no timer knows of it: the work's own fires first.
    world.machine.host.stepped_ms.set(3_600_000);
    world.pass(100);
    assert_eq!(world.drops(), [7_100]);
    let first = world.tokens()[0];
    let last = world.seen.borrow().iter().rfind(|seen| seen.1 == first).map(|seen| seen.0);
    assert_eq!(last, Some(7_000));
    assert!(world.led_again(), "its own record needs no wait: {:?}", world.tokens());
}

#[test]
fn work_that_returns_only_after_its_authority_is_over_runs_again_in_the_next_term() {
    let mut machine = Machine::default();
    let store = Hanging::with_group(&machine.host);
    let tokens = Rc::<RefCell<Vec<u64>>>::default();
    let (host, seen) = (machine.host.clone(), Rc::clone(&tokens));
    let (_, ended) = begin(&machine, store, config(), async move |term| {
        seen.borrow_mut().push(term.token);
        if seen.borrow().len() == 1 {
            // Its thread is busy for longer than the lease.
            host.now_ms.set(host.now_ms.get() + 20_000);
        }
        term.token
    });
    machine.pass(60_000);
    let tokens = tokens.borrow();
    assert!(tokens.len() == 2 && tokens[1] > tokens[0], "{tokens:?}");
    assert_eq!(ended.take().map(|(_, value)| value), Some(Ok(Some(tokens[1]))));
}

fn one_clock() -> Config {
    config_of(Settings { clock: HostClock::One, ..Settings::default() })
}

#[test]
fn c41_a_reading_of_a_single_clock_that_says_nothing_ends_no_term_and_drops_no_work() {
    let mut world = world(u64::MAX, one_clock());
    world.pass(7_050);
    let looked = world.looks();
    world.machine.host.held.set(true);
    world.pass(200);
    assert_eq!(world.looks(), looked, "no work is polled without authority");
    world.machine.host.held.set(false);
    world.pass(100);
    assert!(world.looks() > looked, "it goes on before the driver's next timer");
    world.pass(30_000);
    assert_eq!((world.drops().len(), world.tokens().len()), (0, 1));
}

#[test]
fn c41_a_driver_that_met_a_held_clock_lets_the_work_wait_for_the_next_answer_and_ends_no_term() {
    let mut world = world(u64::MAX, one_clock());
    world.pass(7_050);
    world.machine.host.held.set(true);
    world.handle.tell(Input::Tick);
    world.pass(10);
    world.machine.host.held.set(false);
    let looked = world.looks();
    world.pass(2_900);
    assert_eq!(world.looks(), looked, "until another answer came there is no authority");
    world.pass(200);
    assert!(world.looks() > looked, "the renewal at 10 s was answered");
    assert_eq!((world.tokens().len(), world.drops().len()), (1, 0));
}

#[test]
fn c41_what_a_term_has_left_at_a_held_reading_is_what_that_reading_leaves_of_it() {
    let host = Virtual::default();
    let (store, handle) = group_of(&host, one_clock());
    let left = RefCell::new(None);
    let work = async |term: Term<'_, Virtual>| {
        let looks = [(false, 0), (true, 100), (false, 101), (true, 13_500), (false, 101)];
        *left.borrow_mut() = Some(looks.map(|(held, ms)| {
            host.held.set(held);
            host.now_ms.set(ms);
            term.remaining_ms()
        }));
    };
    block_on(select(pin!(lead(&handle, &store, &host, work)), pin!(ready(()))));
    // What is past the fence has ended, whatever the clock proves, and does not come back (S9).
    assert_eq!(left.take(), Some([13_500, 13_400, 13_399, 0, 0]));
}

#[test]
fn a_term_that_was_kept_says_that_it_has_ended() {
    let host = Virtual::default();
    let (store, handle) = group_of(&host, config());
    let kept = Cell::new(None);
    let work = async |term| kept.set(Some(term));
    assert_eq!(block_on(lead(&handle, &store, &host, work)), Ok(Some(())));
    assert_eq!(kept.take().map(|term| term.remaining_ms()), Some(0));
}

#[test]
fn s11_work_is_not_even_called_without_authority_whenever_the_clock_steps() {
    for reading in 1..120 {
        let mut machine = Machine::default();
        let store = Hanging::with_group(&machine.host);
        let (host, called) = (machine.host.clone(), Rc::<RefCell<Vec<u64>>>::default());
        host.steps_at.set(reading);
        let seen = Rc::clone(&called);
        // A closure whose first part runs in the call, unlike that of an async closure.
        let work = move |term: Term<'_, Virtual>| {
            // A step between the check and this very reading is the contract's own limit.
            let steps_here = host.steps_at.get() == 1;
            let left_ms = term.remaining_ms();
            seen.borrow_mut().push(if steps_here { 1 } else { left_ms });
            let host = host.clone();
            async move {
                host.sleep(3_000).await;
                0
            }
        };
        begin(&machine, store, config(), work);
        machine.pass(40_000);
        assert!(!called.borrow().is_empty(), "reading {reading}: it led");
        assert!(called.borrow().iter().all(|left_ms| *left_ms > 0), "reading {reading}");
    }
}

#[test]
fn a_store_that_cannot_be_used_is_an_error() {
    let mut machine = Machine::default();
    let fault = Fault::new(FaultKind::Misconfigured, "no such bucket");
    let rejected = Outcome::Rejected(fault.clone());
    let store = Through(async move |_| undated(rejected.clone()));
    let (_, ended) = begin(&machine, store, config(), async |_| unreachable!("nobody leads"));
    machine.pass(1_000);
    assert_eq!(ended.take(), Some((0, Err(fault))));
}

/// A record, and an object beside it for probes.
struct Bucket {
    record: Hanging,
    object: Hanging,
    /// Whether the object takes writes on any condition.
    lies: bool,
    /// How often the record was asked for.
    asked: Rc<Cell<u32>>,
}

impl Store for Bucket {
    async fn perform(&self, operation: Operation) -> Answer {
        self.asked.set(self.asked.get() + 1);
        self.record.perform(operation).await
    }

    fn beside(&self, key: &str) -> Option<impl Store> {
        assert!(is_probe(key) && key.starts_with("leader/test.json"), "{key}");
        Some(Through(async |operation: Operation| match operation {
            Operation::Write { record, .. } if self.lies => {
                self.object.memory.overwrite(None);
                let condition = Condition::Absent;
                self.object.perform(Operation::Write { record, condition }).await
            }
            other => self.object.perform(other).await,
        }))
    }

    fn condition_covers_version(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        self.record.describe()
    }
}

/// What becomes of a probe.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Probe {
    Passes,
    Fails,
    Hangs,
}

/// What `lead` over a bucket gave back within 40 s, and how often the lease was asked for. `tell` is told it after 100 ms.
fn led(probe: Probe, config: Config, tell: Option<Input>) -> (Option<Led>, u32) {
    let mut machine = Machine::default();
    let (record, object) = (Hanging::with_group(&machine.host), Hanging::new(&machine.host));
    object.hangs.set(probe == Probe::Hangs);
    let (lies, asked) = (probe == Probe::Fails, Rc::default());
    let bucket = Bucket { record, object, lies, asked: Rc::clone(&asked) };
    let (handle, ended) = begin(&machine, bucket, config, async |term| term.token);
    machine.pass(100);
    tell.into_iter().for_each(|input| handle.tell(input));
    machine.pass(40_000);
    (ended.take(), asked.get())
}

#[test]
fn c09_lead_judges_a_bucket_first_and_a_violation_is_an_error_that_names_the_step() {
    let (Some((_, Err(fault))), 0) = led(Probe::Fails, config(), None) else {
        panic!("it lets two lead, or the lease was asked for")
    };
    let named = "the store: probe step \"update of an absent object\": it took a write";
    assert!(fault.message.starts_with(named), "{fault}");
}

#[test]
fn what_cannot_be_told_of_a_bucket_keeps_nobody_from_leading_and_a_good_one_even_less() {
    for (probe, waits_ms) in [(Probe::Passes, 0), (Probe::Hangs, 2 * config().request_timeout_ms)] {
        let (ended, _) = led(probe, config(), None);
        let (at_ms, value) = ended.expect("it has ended");
        assert!(value.expect("no error").is_some_and(|token| token > 0), "{probe:?}");
        assert!((waits_ms..=waits_ms + 1_000).contains(&at_ms), "{probe:?}: {at_ms}");
    }
}

#[test]
fn s12_a_stop_ends_a_probe_that_gets_no_answer() {
    let ended = led(Probe::Hangs, config(), Some(Input::Stop { park: false }));
    assert_eq!(ended, (Some((100, Ok(None))), 0));
}

#[test]
fn neither_a_tick_nor_a_host_with_one_clock_judges() {
    let tick = config_of(Settings { sustain_ms: Some(57_000), ..Settings::default() });
    for config in [tick, one_clock()] {
        let clock = config.clock;
        let (ended, _) = led(Probe::Fails, config, None);
        assert!(!matches!(ended, Some((_, Err(_)))), "{clock:?}: {ended:?}");
    }
}

#[test]
fn an_election_whose_lead_was_dropped_is_not_led_again() {
    let mut machine = Machine::default();
    let (store, handle) = group_of(&machine.host, config());
    let told = Rc::new(RefCell::new(None));
    let (running, host, ended) = (handle.clone(), machine.host.clone(), Rc::clone(&told));
    machine.run(async move {
        let endless = async |_: Term<'_, Virtual>| std::future::pending::<()>().await;
        drop(host.within(3_000, lead(&running, &store, &host, endless)).await);
        assert!(running.authority(host.now()).is_some());
        ended.replace(Some(lead(&running, &store, &host, endless).await));
    });
    machine.pass(60_000);
    let value = told.take().expect("it does not wait for ever");
    assert!(value.expect_err("nobody runs its work").message.contains("is driven already, or was"));
    assert!(handle.authority(machine.host.now()).is_none(), "its lease ran out");
}

/// No timer of the machine counts the time for which it was suspended.
#[test]
fn s10_work_that_does_nothing_is_dropped_soon_after_the_machine_slept_through_its_lease() {
    let machine = Machine::default();
    let store = Hanging::with_group(&machine.host);
    let dropped_ms = Rc::<RefCell<Vec<u64>>>::default();
    let (host, drops) = (machine.host.clone(), Rc::clone(&dropped_ms));
    let wire = store.clone();
    let work = async move |_: Term<'_, Virtual>| {
        let _guard = Guard(host.clone(), wire.clone(), Rc::clone(&drops));
        std::future::pending().await
    };
    let (handle, _ended) = begin(&machine, store, config(), work);
    let mut machine = machine;
    machine.pass(3_000);
    assert!(handle.authority(machine.host.now()).is_some());
    machine.host.stepped_ms.set(600_000);
    let woken_ms = machine.host.now_ms.get();
    machine.pass(2_000);
    let dropped_ms = dropped_ms.borrow();
    assert!(dropped_ms.first().is_some_and(|ms| *ms <= woken_ms + 1_000), "{dropped_ms:?}");
}

/// By the record that is there others wait for an hour.
#[test]
fn a_leader_that_is_told_of_a_shorter_lease_writes_it_soon() {
    let mut machine = Machine::default();
    let long = Settings {
        leader_timeout_ms: Some(3_600_000),
        frequent_interval_ms: Some(1_200_000),
        max_lease_ms: Some(3_600_000),
        ..Settings::default()
    };
    let (store, handle) = group_of(&machine.host, config_of(long));
    let _end = machine.elect(&handle, store, &machine.host.clone(), |_| {});
    machine.pass(10_000);
    assert!(handle.authority(machine.host.now()).is_some());
    let before = handle.requests();
    handle.tell(Input::Configure(Box::new(config())));
    machine.pass(5_600);
    assert_eq!(handle.requests().write, before.write + 1);
    assert!(handle.with(|election| {
        election.record().is_some_and(|(_, lease)| lease.lease_ms == Some(15_000))
    }));
}
