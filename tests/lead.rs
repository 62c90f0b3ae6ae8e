//! Work that runs while its process leads, on virtual time: when it runs, and that it never runs without authority.

#[allow(dead_code)] // Each suite uses a part of it.
mod virtual_time;

use std::cell::{Cell, RefCell};
use std::future::ready;
use std::pin::pin;
use std::rc::Rc;

use edgelect::clock::Now;
use edgelect::config::HostClock;
use edgelect::driver;
use edgelect::request::{Request, Response};
use edgelect::store::{Answer, Facts, Fault, FaultKind, Operation, Outcome, Store, is_probe};
use edgelect::{Config, Handle, Host, Input, Settings, Term, lead, new_election};
use futures::executor::{LocalPool, block_on};
use futures::future::select;
use futures::task::LocalSpawnExt;
use virtual_time::{Hanging, Virtual, config};

/// What the work has seen: when it was polled, with which token and with how much authority.
type Seen = Rc<RefCell<Vec<(u64, u64, u64)>>>;

/// What `lead` gave back, once it has.
type Ended = Rc<RefCell<Option<Result<Option<u64>, Fault>>>>;

struct World {
    host: Virtual,
    store: Hanging,
    handle: Handle,
    seen: Seen,
    dropped_ms: Rc<RefCell<Vec<u64>>>,
    ended: Ended,
    pool: LocalPool,
}

/// Notes when the work is dropped, and that its lease has not been released by then.
struct Guard(Virtual, Hanging, Rc<RefCell<Vec<u64>>>);

impl Drop for Guard {
    fn drop(&mut self) {
        assert!(!self.1.text().contains("0001-01-01"), "released before the work had stopped");
        self.2.borrow_mut().push(self.0.now_ms.get());
    }
}

/// A member of a new group whose work looks at its term every 100 ms, and ends after `turns` of these.
fn world(turns: u64) -> World {
    world_of(turns, config())
}

fn world_of(turns: u64, config: Config) -> World {
    let host = Virtual::default();
    let store = Hanging::new(&host);
    block_on(driver::init(&store, &host, &config)).expect("a new group");
    let handle = Handle::new(new_election(&host, config).expect("it has randomness"));
    let (seen, dropped_ms, ended) = (Seen::default(), Rc::default(), Ended::default());
    let pool = LocalPool::new();
    let task = {
        let (host, store, handle) = (host.clone(), store.clone(), handle.clone());
        let (seen, dropped_ms, ended) =
            (Rc::clone(&seen), Rc::clone(&dropped_ms), Rc::clone(&ended));
        async move {
            let value = lead(&handle, &store, &host, async |term: Term<'_, Virtual>| {
                let _guard = Guard(host.clone(), store.clone(), Rc::clone(&dropped_ms));
                for _ in 0..turns {
                    let look = (host.now_ms.get(), term.token, term.remaining_ms());
                    seen.borrow_mut().push(look);
                    host.sleep(100).await;
                }
                term.token
            })
            .await;
            *ended.borrow_mut() = Some(value);
        }
    };
    pool.spawner().spawn_local(task).expect("the pool is alive");
    World { host, store, handle, seen, dropped_ms, ended, pool }
}

impl World {
    fn pass(&mut self, ms: u64) {
        self.host.pass(&mut self.pool, ms);
    }

    fn tokens(&self) -> Vec<u64> {
        let mut tokens: Vec<u64> = self.seen.borrow().iter().map(|(_, token, _)| *token).collect();
        tokens.dedup();
        tokens
    }

    fn never_ran_without_authority(&self) -> bool {
        self.seen.borrow().iter().all(|(_, _, remaining_ms)| *remaining_ms > 0)
    }
}

#[test]
fn work_that_ends_releases_the_lease_and_its_value_comes_back() {
    let mut world = world(50);
    world.pass(4_000);
    assert_eq!(world.seen.borrow().len(), 41, "it runs at once and goes on");
    world.pass(2_000);
    assert_eq!(*world.ended.borrow(), Some(Ok(Some(world.tokens()[0]))));
    assert!(world.store.text().contains("0001-01-01T00:00:00Z"));
}

#[test]
fn s10_work_is_dropped_at_the_fence_and_the_next_term_runs_it_again_with_a_higher_token() {
    let mut world = world(u64::MAX);
    world.pass(7_000);
    world.store.hangs.set(true);
    world.pass(20_000);
    // The renewal at 5 s was the last that landed: 5 s + 15 s lease - 1.5 s margin.
    assert_eq!(*world.dropped_ms.borrow(), [18_500]);
    world.store.hangs.set(false);
    world.pass(60_000);
    let tokens = world.tokens();
    assert!(tokens.len() == 2 && tokens[1] > tokens[0], "{tokens:?}");
    assert!(world.never_ran_without_authority());
    assert_eq!(world.dropped_ms.borrow().len(), 1);
}

#[test]
fn s12_a_stop_drops_the_work_before_the_tombstone_leaves() {
    let mut world = world(u64::MAX);
    world.pass(6_050);
    world.handle.tell(Input::Stop { park: false });
    world.pass(1);
    assert_eq!(*world.dropped_ms.borrow(), [6_050]);
    assert_eq!(*world.ended.borrow(), Some(Ok(None)));
    assert!(world.store.text().contains("0001-01-01T00:00:00Z"), "it does not wait for a timer");
}

#[test]
fn a_resignation_drops_the_work_and_releases_and_it_competes_again() {
    let mut world = world(u64::MAX);
    world.pass(6_050);
    world.handle.tell(Input::Resign);
    world.pass(1);
    assert_eq!(*world.dropped_ms.borrow(), [6_050]);
    assert!(world.store.text().contains("0001-01-01T00:00:00Z"));
    world.pass(60_000);
    assert_eq!(world.tokens().len(), 2);
}

#[test]
fn s11_after_a_suspend_work_is_dropped_without_being_polled_once_more() {
    let mut world = world(u64::MAX);
    world.pass(7_050);
    // The monotonic clock stood still, so no timer knows of it: the work's own fires first.
    world.host.stepped_ms.set(3_600_000);
    world.pass(100);
    assert_eq!(*world.dropped_ms.borrow(), [7_100]);
    assert!(world.never_ran_without_authority());
    let tokens = world.tokens();
    let last = |token| world.seen.borrow().iter().rfind(|seen| seen.1 == token).map(|seen| seen.0);
    assert_eq!(last(tokens[0]), Some(7_000));
    assert!(tokens.len() == 2 && tokens[1] > tokens[0], "its own record needs no wait: {tokens:?}");
    assert!(world.never_ran_without_authority());
}

#[test]
fn work_that_returns_only_after_its_authority_is_over_runs_again_in_the_next_term() {
    let host = Virtual::default();
    let store = Hanging::new(&host);
    block_on(driver::init(&store, &host, &config())).expect("a new group");
    let handle = Handle::new(new_election(&host, config()).expect("it has randomness"));
    let (tokens, ended): (Rc<RefCell<Vec<u64>>>, Ended) = (Rc::default(), Rc::default());
    let mut pool = LocalPool::new();
    let task = {
        let (host, tokens, ended) = (host.clone(), Rc::clone(&tokens), Rc::clone(&ended));
        async move {
            let value = lead(&handle, &store, &host, async |term: Term<'_, Virtual>| {
                tokens.borrow_mut().push(term.token);
                if tokens.borrow().len() == 1 {
                    // Its thread is busy for longer than the lease.
                    host.now_ms.set(host.now_ms.get() + 20_000);
                }
                term.token
            });
            *ended.borrow_mut() = Some(value.await);
        }
    };
    pool.spawner().spawn_local(task).expect("the pool is alive");
    host.pass(&mut pool, 60_000);
    let tokens = tokens.borrow();
    assert!(tokens.len() == 2 && tokens[1] > tokens[0], "{tokens:?}");
    assert_eq!(*ended.borrow(), Some(Ok(Some(tokens[1]))));
}

/// A member on a host with one clock.
fn world_of_one_clock() -> World {
    world_of(u64::MAX, one_clock())
}

fn one_clock() -> Config {
    let lockfile_path = Some("leader/test.json".to_owned());
    let settings = Settings { lockfile_path, clock: HostClock::One, ..Settings::default() };
    Config::new(&settings).expect("the defaults are fine")
}

#[test]
fn c41_a_reading_of_a_single_clock_that_says_nothing_ends_no_term_and_drops_no_work() {
    let mut world = world_of_one_clock();
    world.pass(7_050);
    let looked = world.seen.borrow().len();
    world.host.held.set(true);
    world.pass(200);
    assert_eq!(world.seen.borrow().len(), looked, "no work is polled without authority");
    world.host.held.set(false);
    world.pass(100);
    assert!(world.seen.borrow().len() > looked, "it goes on before the driver's next timer");
    world.pass(30_000);
    assert_eq!((world.dropped_ms.borrow().len(), world.tokens().len()), (0, 1));
    assert!(world.never_ran_without_authority());
}

#[test]
fn c41_a_driver_that_met_a_held_clock_lets_the_work_wait_for_the_next_answer_and_ends_no_term() {
    let mut world = world_of_one_clock();
    world.pass(7_050);
    world.host.held.set(true);
    world.handle.tell(Input::Tick);
    world.pass(10);
    world.host.held.set(false);
    let looked = world.seen.borrow().len();
    world.pass(2_900);
    assert_eq!(
        world.seen.borrow().len(),
        looked,
        "until another answer came there is no authority"
    );
    world.pass(200);
    assert!(world.seen.borrow().len() > looked, "the renewal at 10 s was answered");
    assert_eq!((world.tokens().len(), world.dropped_ms.borrow().len()), (1, 0));
}

#[test]
fn c41_what_a_term_has_left_at_a_held_reading_is_what_that_reading_leaves_of_it() {
    let host = Virtual::default();
    let store = Hanging::new(&host);
    block_on(driver::init(&store, &host, &config())).expect("a new group");
    let handle = Handle::new(new_election(&host, one_clock()).expect("it has randomness"));
    let work = async |term: Term<'_, Virtual>| {
        let looked = |held: bool, ms: u64| {
            host.held.set(held);
            host.now_ms.set(ms);
            term.remaining_ms()
        };
        [(false, 0), (true, 100), (false, 101), (true, 13_500), (false, 101)]
            .map(|(held, ms)| looked(held, ms))
    };
    let led = async {
        let left = RefCell::new(None);
        let noted = async |term| *left.borrow_mut() = Some(work(term).await);
        let _ = select(pin!(lead(&handle, &store, &host, noted)), pin!(ready(()))).await;
        left.into_inner().expect("it led")
    };
    // What is past the fence has ended, whatever the clock proves, and does not come back (S9).
    assert_eq!(block_on(led), [13_500, 13_400, 13_399, 0, 0]);
}

#[test]
fn a_term_that_was_kept_says_that_it_has_ended() {
    let host = Virtual::default();
    let store = Hanging::new(&host);
    block_on(driver::init(&store, &host, &config())).expect("a new group");
    let handle = Handle::new(new_election(&host, config()).expect("it has randomness"));
    let kept = Cell::new(None);
    let work = async |term| kept.set(Some(term));
    assert_eq!(block_on(lead(&handle, &store, &host, work)), Ok(Some(())));
    assert_eq!(kept.take().map(|term| term.remaining_ms()), Some(0));
}

/// A host whose clock steps 20 s ahead at one of its readings.
#[derive(Clone)]
struct Jumpy {
    host: Virtual,
    readings: Rc<Cell<u32>>,
}

impl Host for Jumpy {
    fn now(&self) -> Now {
        let left = self.readings.get();
        self.readings.set(left.saturating_sub(1));
        if left == 1 {
            self.host.stepped_ms.set(self.host.stepped_ms.get() + 20_000);
        }
        self.host.now()
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

#[test]
fn s11_work_is_not_even_called_without_authority_whenever_the_clock_steps() {
    for reading in 1..120 {
        let virtual_host = Virtual::default();
        let store = Hanging::new(&virtual_host);
        block_on(driver::init(&store, &virtual_host, &config())).expect("a new group");
        let host = Jumpy { host: virtual_host.clone(), readings: Rc::new(Cell::new(reading)) };
        let handle = Handle::new(new_election(&host, config()).expect("it has randomness"));
        let called: Rc<RefCell<Vec<u64>>> = Rc::default();
        let seen = Rc::clone(&called);
        let task = async move {
            let sleeper = host.clone();
            // A closure whose first part runs in the call, unlike that of an async closure.
            let work = |term: Term<'_, Jumpy>| {
                // A step between the check and this very reading is the contract's own limit.
                let steps_here = sleeper.readings.get() == 1;
                let left_ms = term.remaining_ms();
                seen.borrow_mut().push(if steps_here { 1 } else { left_ms });
                let sleeper = sleeper.clone();
                async move { sleeper.sleep(3_000).await }
            };
            let _ = lead(&handle, &store, &host, work).await;
        };
        let mut pool = LocalPool::new();
        pool.spawner().spawn_local(task).expect("the pool is alive");
        virtual_host.pass(&mut pool, 40_000);
        assert!(!called.borrow().is_empty(), "reading {reading}: it led");
        assert!(called.borrow().iter().all(|left_ms| *left_ms > 0), "reading {reading}");
    }
}

struct NoBucket;

impl Store for NoBucket {
    async fn perform(&self, _operation: Operation) -> Answer {
        let outcome = Outcome::Rejected(Fault::new(FaultKind::Misconfigured, "no such bucket"));
        Answer { outcome, facts: Facts::default() }
    }

    fn condition_covers_version(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        "a store without a bucket".to_owned()
    }
}

#[test]
fn a_store_that_cannot_be_used_is_an_error() {
    let host = Virtual::default();
    let handle = Handle::new(new_election(&host, config()).expect("it has randomness"));
    let led = block_on(lead(&handle, &NoBucket, &host, async |_| unreachable!("nobody leads")));
    assert_eq!(led, Err(Fault::new(FaultKind::Misconfigured, "no such bucket")));
}

/// A record and an object beside it for probes, each a store of its own.
struct Bucket {
    record: Hanging,
    object: Hanging,
    /// Whether the object takes writes on any condition.
    lies: bool,
    asked: Cell<u32>,
}

struct Object<'a>(&'a Bucket);

impl Store for Object<'_> {
    async fn perform(&self, operation: Operation) -> Answer {
        let object = &self.0.object;
        let Operation::Write { body, .. } = &operation else {
            return object.perform(operation).await;
        };
        if !self.0.lies {
            return object.perform(operation).await;
        }
        object.memory.overwrite(Some(body.clone()));
        let version = match object.perform(Operation::Read { unless: None }).await.outcome {
            Outcome::Found { version, .. } => Some(version),
            _ => None,
        };
        Answer { outcome: Outcome::Written { version }, facts: Facts::default() }
    }

    fn condition_covers_version(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        "the bucket".to_owned()
    }
}

impl Store for Bucket {
    async fn perform(&self, operation: Operation) -> Answer {
        self.asked.set(self.asked.get() + 1);
        self.record.perform(operation).await
    }

    fn beside(&self, key: &str) -> Option<impl Store> {
        assert!(is_probe(key) && key.starts_with("leader/test.json"), "{key}");
        Some(Object(self))
    }

    fn condition_covers_version(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        self.record.describe()
    }
}

impl Bucket {
    fn new(host: &Virtual) -> Self {
        let (record, object) = (Hanging::new(host), Hanging::new(host));
        block_on(driver::init(&record, host, &config())).expect("a new group");
        Self { record, object, lies: false, asked: Cell::default() }
    }
}

/// When `lead` gave something back, and what.
type Led = (u64, Result<Option<u64>, Fault>);

/// What `lead` gives back within 40 s, and how often the lease was asked for; `tell` is told to it 100 ms after its start.
fn led(bucket: Bucket, host: &Virtual, config: Config, tell: Option<Input>) -> (Option<Led>, u32) {
    let handle = Handle::new(new_election(host, config).expect("it has randomness"));
    let (ended, bucket, mut pool) = (Rc::new(Cell::new(None)), Rc::new(bucket), LocalPool::new());
    let task = {
        let (handle, host, ended) = (handle.clone(), host.clone(), Rc::clone(&ended));
        let bucket = Rc::clone(&bucket);
        async move {
            let value = lead(&handle, &*bucket, &host, async |term| term.token).await;
            ended.set(Some((host.now_ms.get(), value)));
        }
    };
    pool.spawner().spawn_local(task).expect("the pool is alive");
    host.pass(&mut pool, 100);
    if let Some(input) = tell {
        handle.tell(input);
    }
    host.pass(&mut pool, 40_000);
    (ended.take(), bucket.asked.get())
}

#[test]
fn c09_lead_judges_a_bucket_first_and_a_violation_is_an_error_that_names_the_step() {
    let host = Virtual::default();
    let (ended, asked) = led(Bucket { lies: true, ..Bucket::new(&host) }, &host, config(), None);
    let (_, value) = ended.expect("it has ended");
    let message = value.expect_err("it lets two lead").message;
    let named = "the bucket: probe step \"update of an absent object\": it took a write";
    assert!(message.starts_with(named), "{message}");
    assert_eq!(asked, 0, "nothing is asked of the lease");
}

#[test]
fn what_cannot_be_told_of_a_bucket_keeps_nobody_from_leading_and_a_good_one_even_less() {
    for hangs in [false, true] {
        let host = Virtual::default();
        let bucket = Bucket::new(&host);
        bucket.object.hangs.set(hangs);
        let config = config();
        let waits_ms = if hangs { 2 * config.request_timeout_ms } else { 0 };
        let (ended, _) = led(bucket, &host, config, None);
        let (at_ms, value) = ended.expect("it has ended");
        assert!(value.expect("no error").is_some_and(|token| token > 0));
        assert!((waits_ms..=waits_ms + 1_000).contains(&at_ms), "hangs {hangs}: {at_ms}");
    }
}

#[test]
fn s12_a_stop_ends_a_probe_that_gets_no_answer() {
    let host = Virtual::default();
    let bucket = Bucket::new(&host);
    bucket.object.hangs.set(true);
    let (ended, asked) = led(bucket, &host, config(), Some(Input::Stop { park: false }));
    assert_eq!(ended, Some((100, Ok(None))));
    assert_eq!(asked, 0);
}

#[test]
fn neither_a_tick_nor_a_host_with_one_clock_judges() {
    let tick = Settings { sustain_ms: Some(57_000), ..Settings::default() };
    let worker = Settings { clock: HostClock::One, ..Settings::default() };
    for settings in [tick, worker] {
        let lockfile_path = Some("leader/test.json".to_owned());
        let config = Config::new(&Settings { lockfile_path, ..settings }).expect("fine");
        let host = Virtual::default();
        let bucket = Bucket { lies: true, ..Bucket::new(&host) };
        let (ended, _) = led(bucket, &host, config, None);
        assert!(ended.is_none_or(|(_, value)| value.is_ok()));
    }
}
