//! Members of shardcoordinator and of edgelect share one item.

#[path = "dynamodb/table.rs"]
mod table;

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use edgelect::election::{Election, Event, Input, LostReason, Problem};
use edgelect::request::{self, Request, Response};
use edgelect::store::FaultKind;
use edgelect::{Config, DynamoDbConfig, DynamoDbStore, Follow, Handle, Host, Settings};
use futures::FutureExt;
use serde_json::Value;

use self::table::Table;
use crate::mixed::coordinator::{Coordinator, Lock};
use crate::mixed::world::{Group, Member, Ours, World, played};
use worlds::sim::chance::Chance;
use worlds::virtual_time::{Virtual, config_of};
use worlds::{credentials, item};

/// One way of a request, or of its answer.
const WAY_MS: u64 = 7;

/// How the way of one member to the table is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Way {
    #[default]
    Open,
    /// Nothing arrives.
    Cut,
    /// The next write takes effect, and its answer is lost.
    LosesAnswer,
    /// The service does nothing and answers with this code.
    Says(&'static str),
}

/// The way of a member of ours.
#[derive(Default)]
struct Path {
    way: Cell<Way>,
    cut_until_ms: Rc<Cell<u64>>,
    /// Of so many requests one is lost, or its answer; 0 for none.
    one_in_lost: Cell<u64>,
}

impl Path {
    fn set(&self, way: Way) {
        self.way.set(way);
    }
}

/// What a member of ours hears.
async fn answer(
    (time, table, path): (Virtual, Table, Rc<Path>),
    request: Request,
) -> Result<Response, String> {
    time.sleep(WAY_MS).await;
    if time.now_ms.get() < path.cut_until_ms.get() {
        return std::future::pending().await;
    }
    let reset = || Err("the connection was reset".to_owned());
    let target = request::text(request.headers(), "x-amz-target");
    let writes = target.is_some_and(|target| target.ends_with(".PutItem"));
    let drawn = match path.one_in_lost.get() {
        0 => u64::MAX,
        one_in => table.chance.borrow_mut().below(2 * one_in),
    };
    let answer = match path.way.get() {
        Way::Cut => return std::future::pending().await,
        Way::Says(code) => table.error(code),
        Way::LosesAnswer if writes => {
            table.answer(&request);
            path.set(Way::Open);
            return reset();
        }
        _ if drawn == 0 => return reset(),
        _ => table.answer(&request),
    };
    if drawn == 1 {
        return reset();
    }
    time.sleep(WAY_MS).await;
    Ok(answer)
}

/// What becomes of a request of theirs: at once, unless said otherwise.
#[derive(Clone, Copy, Default)]
struct Travel {
    there_ms: u64,
    back_ms: u64,
    /// It does not arrive, or its answer does not.
    lost: Option<Lost>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    Request,
    Answer,
}

/// The way of a member of theirs to the table.
#[derive(Clone)]
struct Reach {
    table: Table,
    /// Draws what becomes of the next request.
    travels: Rc<RefCell<dyn FnMut() -> Travel>>,
    /// When its client gives a request up.
    timeout_ms: u64,
    cut_until_ms: Rc<Cell<u64>>,
}

impl Lock for Reach {
    async fn take(&self, id: &str, leads: bool, lease_ms: u64, clock: &Virtual) -> Option<u64> {
        let (now_s, ttl_s) = (clock.wall_ms() / 1_000, (clock.wall_ms() + lease_ms) / 1_000);
        let Travel { there_ms, back_ms, lost } = (self.travels.borrow_mut())();
        let cut = clock.now_ms.get() < self.cut_until_ms.get();
        let lost = if cut { Some(Lost::Request) } else { lost };
        let until_ms = clock.now_ms.get() + self.timeout_ms;
        let left_ms = || until_ms - clock.now_ms.get();
        clock.sleep(there_ms.min(left_ms())).await;
        if lost == Some(Lost::Request) || left_ms() == 0 {
            clock.sleep(left_ms()).await;
            return None;
        }
        let held = match leads {
            true => self.table.renew(id, now_s, ttl_s),
            false => self.table.try_acquire(id, now_s, ttl_s),
        };
        let heard = lost.is_none() && back_ms < left_ms();
        clock.sleep(if heard { back_ms } else { left_ms() }).await;
        // Its clock rules bear the whole second that the `ttl` names.
        (held && heard).then_some((ttl_s + 1) * 1_000)
    }

    /// DeleteItem with `ownerId = :me`.
    async fn release(&self, id: &str) {
        if self.table.text("ownerId").as_deref() == Some(id) {
            *self.table.item.borrow_mut() = None;
        }
    }
}

type Fleet = World<Table>;
type Elector = Ours<Rc<Path>>;

fn fleet() -> Fleet {
    World::new(20, Table::new)
}

/// A fleet over a table whose TTL process is swift.
fn expiring() -> Fleet {
    let mut fleet = fleet();
    let table = fleet.place.clone();
    fleet.each_step = Box::new(move || table.expire());
    fleet
}

impl Fleet {
    /// A new session of a server; the first of a fleet is called `session-1`.
    fn join(&self, server_id: &str, settings: &Settings) -> Elector {
        let config = config(server_id, settings);
        let number = self.next_number();
        let way: Rc<Path> = Rc::default();
        let reach = (self.time.clone(), self.place.clone(), Rc::clone(&way));
        let host = self.time.asking(move |request| answer(reach.clone(), request));
        let dynamo = DynamoDbConfig { lease_ms: config.leader_timeout_ms, ..item() };
        let store = DynamoDbStore::new(dynamo, credentials(), host.clone()).expect("a fine item");
        let session = format!("session-{number}");
        let handle = Handle::new(Election::new(config, session.clone(), number));
        self.elect(&session, handle, store, host, way)
    }

    /// One of theirs that is not there yet, whose clock is so far ahead.
    fn worker(&self, id: &str, lease_ms: u64, renew_ms: u64, ahead_ms: i64) -> Coordinator<Reach> {
        let travels = Rc::new(RefCell::new(Travel::default));
        let (table, cut_until_ms) = (self.place.clone(), Rc::default());
        let reach = Reach { table, travels, timeout_ms: 5_000, cut_until_ms };
        Coordinator::new(id, reach, self.time.ahead(ahead_ms), lease_ms, renew_ms)
    }

    /// A member of the other make with these settings, from now on.
    fn foreign(&self, id: &str, lease_ms: u64, renew_ms: u64) -> Coordinator<Reach> {
        self.coordinate(self.worker(id, lease_ms, renew_ms, 0))
    }

    fn led_by(&mut self, name: &str, within_ms: u64) -> bool {
        self.pass_until(within_ms, |fleet| fleet.leaders() == [name])
    }
}

impl Coordinator<Reach> {
    /// One that acts by `IsLeader()` alone, over a network, with a client that gives up after so long.
    fn by_state(self, timeout_ms: u64, travels: impl FnMut() -> Travel + 'static) -> Self {
        let travels = Rc::new(RefCell::new(travels));
        let lock = Reach { timeout_ms, travels, ..self.lock };
        Self { by_state: true, lock, ..self }
    }
}

fn config(server_id: &str, settings: &Settings) -> Config {
    config_of(Settings { server_id: Some(server_id.to_owned()), ..settings.clone() })
}

/// Our members' settings beside foreign ones of 15 s and 5 s: what their leases last at most is said.
fn beside(lease_s: u64) -> Settings {
    Settings { max_lease_ms: Some(lease_s * 1_000 + 3_000), ..Settings::default() }
}

/// A member that leads alone, after a while.
fn leading_in(mut fleet: Fleet) -> (Fleet, Elector) {
    let member = fleet.join("server-1", &beside(15));
    assert!(fleet.led_by("session-1", 60_000));
    (fleet, member)
}

fn leading() -> (Fleet, Elector) {
    leading_in(fleet())
}

/// The one before it has led with a token that whoever comes then has not seen.
#[test]
fn a_foreign_leader_is_left_alone_and_succeeded_when_it_crashed_released_or_was_deleted() {
    type End = fn(&Coordinator<Reach>);
    // A lease, what its clock may differ by, and a look; a deletion is waited out like any other: the grace, and looks.
    let rows: [(&str, Fleet, End, Range<u64>); 3] = [
        ("crashed", fleet(), Coordinator::crash, 10_000..25_000),
        ("released", fleet(), Coordinator::stop, 15_000..40_000),
        ("deleted", expiring(), Coordinator::crash, 15_000..60_000),
    ];
    for (name, fleet, end, within) in rows {
        let (mut fleet, first) = leading_in(fleet);
        first.handle.tell(Input::Stop { park: false });
        fleet.pass(1_000);
        let foreign = fleet.foreign("worker-1", 15_000, 5_000);
        fleet.pass(1_000);
        assert_eq!(fleet.place.text("lease"), None, "it dropped our attributes");
        let member = fleet.join("server-2", &beside(15));
        fleet.pass(60_000);
        assert_eq!(fleet.leaders(), ["worker-1"]);
        let now = fleet.time.now();
        let known = member.handle.with(|election| election.leader_id(now).map(str::to_owned));
        assert_eq!(known.as_deref(), Some("worker-1"));
        end(&foreign);
        if name == "deleted" {
            assert!(fleet.pass_until(17_000, |fleet| fleet.place.item.borrow().is_none()));
        }
        let gone_ms = fleet.now_ms();
        assert!(fleet.led_by("session-2", 60_000), "{name}");
        let waited_ms = fleet.now_ms() - gone_ms;
        assert!(within.contains(&waited_ms), "{name}: {waited_ms} ms");
        assert_eq!(member.handle.with(|election| election.problem().cloned()), None);
        fleet.pass(60_000);
        foreign.stands_still.set(false);
        fleet.pass(60_000);
        assert_eq!((fleet.leaders(), foreign.acquired.get()), (vec!["session-2".to_owned()], 1));
        assert_eq!(fleet.observer.tokens.borrow().len(), 2);
    }
}

#[test]
fn a_resignation_of_ours_lets_a_foreign_member_in_at_its_next_tick() {
    let (mut fleet, member) = leading_in(expiring());
    let foreign = fleet.foreign("worker-1", 15_000, 5_000);
    fleet.pass(12_000);
    member.handle.tell(Input::Stop { park: false });
    fleet.pass(1_000);
    assert_eq!(fleet.place.ttl_s(), Some(0), "and the TTL process left it alone");
    assert!(fleet.led_by("worker-1", 5_000), "it waits a tick");
    assert_eq!(foreign.acquired.get(), 1);
}

/// By the very last of our authority, with next to no margin and a foreign clock as far ahead as its document bears.
#[test]
fn no_foreign_member_takes_a_living_lease_at_any_part_of_a_second() {
    for phase_ms in (0..1_000).step_by(77) {
        let mut fleet = fleet();
        fleet.pass(phase_ms);
        let close =
            Settings { margin_ms: Some(10), frequent_interval_ms: Some(3_333), ..beside(15) };
        let member = fleet.join("server-1", &close);
        assert!(fleet.led_by("session-1", 60_000));
        let foreign = fleet.coordinate(fleet.worker("worker-1", 15_000, 20, 999));
        fleet.pass(10_000 + phase_ms);
        assert_eq!(foreign.acquired.get(), 0, "a living lease was taken");
        member.way.set(Way::Cut);
        assert!(fleet.led_by("worker-1", 20_000), "{phase_ms}");
        assert_eq!(member.lost(), [LostReason::Expired], "{phase_ms}");
    }
}

#[test]
fn a_foreign_lease_longer_than_ours_is_waited_out_to_the_last_second_of_a_slow_foreign_clock() {
    let slow = (0..1_000).step_by(143).map(|phase_ms| (phase_ms, -999, 0, 40));
    // And where a proxy sets `Date` ahead.
    for (phase_ms, ahead_ms, date_ahead_ms, lease_s) in slow.chain([(0, 0, 30_000, 15)]) {
        let mut fleet = fleet();
        fleet.place.date_ahead_ms.set(date_ahead_ms);
        // It renews more seldom than our whole lease lasts.
        let foreign = fleet.coordinate(fleet.worker("worker-1", 40_000, 25_000, ahead_ms));
        fleet.pass(1_000 + phase_ms);
        fleet.join("server-1", &Settings { follow: Some(Follow::Tight), ..beside(lease_s) });
        fleet.pass(100_000);
        assert_eq!((fleet.leaders(), foreign.acquired.get()), (vec!["worker-1".to_owned()], 1));
        foreign.stands_still.set(true);
        assert!(fleet.led_by("session-1", 50_000), "{phase_ms} {date_ahead_ms}");
    }
}

/// The store was made for 15 s, and the foreign lease is shorter than that and longer than the new one.
#[test]
fn a_foreign_lease_is_waited_out_also_after_the_own_one_was_shortened() {
    let mut fleet = fleet();
    let foreign = fleet.foreign("worker-1", 12_000, 9_000);
    fleet.pass(1_000);
    let member = fleet.join("server-1", &beside(15));
    fleet.pass(10_000);
    let (leader_timeout_ms, frequent_interval_ms) = (Some(5_000), Some(1_000));
    let shorter = Settings { leader_timeout_ms, frequent_interval_ms, ..beside(15) };
    member.handle.tell(Input::Configure(Box::new(config("server-1", &shorter))));
    fleet.pass(120_000);
    assert_eq!((fleet.leaders(), foreign.acquired.get()), (vec!["worker-1".to_owned()], 1));
}

#[test]
fn a_foreign_process_of_our_name_that_renews_our_item_ends_our_term_and_is_not_taken_for_us() {
    let mut fleet = fleet();
    let foreign = fleet.foreign("worker-1", 15_000, 5_000);
    fleet.pass(1_000);
    foreign.stands_still.set(true);
    let member = fleet.join("worker-1", &beside(15));
    assert!(fleet.led_by("session-1", 40_000));
    fleet.pass(6_000);
    let token = fleet.observer.tokens.borrow()[0];
    // Its owner id is not unique, so its own condition does not hold it back.
    foreign.stands_still.set(false);
    fleet.ignore("worker-1");
    fleet.pass(20_000);
    assert_eq!(member.lost(), [LostReason::Overtaken]);
    assert!(fleet.place.text("lease").is_some(), "it moved ttl alone");
    foreign.stands_still.set(true);
    assert!(fleet.led_by("session-1", 40_000));
    assert!(fleet.observer.tokens.borrow()[1] > token);
}

#[test]
fn a_renewal_whose_answer_was_lost_is_not_adopted_once_a_foreign_hand_has_moved_its_ttl() {
    let mut fleet = fleet();
    let foreign = fleet.worker("worker-1", 15_000, 20, 0);
    let tick = || foreign.tick().now_or_never().expect("its way takes no time");
    fleet.pass(500);
    tick();
    let member = fleet.join("worker-1", &beside(15));
    assert!(fleet.led_by("session-1", 40_000));
    let puts = fleet.place.puts.get();
    member.way.set(Way::LosesAnswer);
    assert!(fleet.pass_until(10_000, |fleet| fleet.place.puts.get() > puts));
    tick();
    fleet.pass(3_000);
    assert_eq!(member.lost(), [LostReason::Overtaken]);
}

#[test]
fn s8_throttled_renewals_cost_no_term_while_an_attempt_gets_through_before_the_fence() {
    for code in ["ProvisionedThroughputExceededException", "InternalServerError"] {
        let (mut fleet, member) = leading();
        fleet.pass(4_500);
        member.way.set(Way::Says(code));
        fleet.pass(5_000);
        member.way.set(Way::Open);
        fleet.pass(60_000);
        assert_eq!((fleet.observer.tokens.borrow().len(), member.lost()), (1, vec![]), "{code}");
    }
}

#[test]
fn s12_a_stop_over_a_table_that_does_not_answer_ends_all_the_same() {
    let (mut fleet, member) = leading();
    member.way.set(Way::Cut);
    member.handle.tell(Input::Stop { park: false });
    fleet.pass(20);
    assert_eq!(fleet.leaders().len(), 0, "authority ends first");
    fleet.pass(9_000);
    assert_eq!(member.told.borrow().last(), Some(&Event::GivenUp));
    assert_ne!(fleet.place.ttl_s(), Some(0), "nothing was released, so the lease runs out");
}

#[test]
fn a_table_that_refuses_ends_the_term_at_its_fence_and_is_tried_again() {
    for (code, kind) in [
        ("AccessDeniedException", FaultKind::Denied),
        ("ResourceNotFoundException", FaultKind::Misconfigured),
        ("ValidationException", FaultKind::Misconfigured),
        ("SerializationException", FaultKind::Misconfigured),
    ] {
        let (mut fleet, member) = leading();
        member.way.set(Way::Says(code));
        fleet.pass(30_000);
        assert_eq!(member.lost(), [LostReason::Expired], "{code}");
        let problem = member.handle.with(|election| election.problem().cloned());
        let said = matches!(&problem, Some(Problem::Store(fault)) if fault.kind == kind);
        assert!(said, "{code}: {problem:?}");
        member.way.set(Way::Open);
        assert!(fleet.pass_until(90_000, |fleet| fleet.ours_leads() == Some(true)), "{code}");
        assert_eq!(fleet.observer.tokens.borrow().len(), 2);
    }
}

#[test]
fn a_table_that_was_never_there_ends_the_elector_with_an_error_that_names_it() {
    let mut fleet = fleet();
    let member = fleet.join("server-1", &beside(15));
    member.way.set(Way::Says("ResourceNotFoundException"));
    fleet.run(30_000);
    let failed = fleet.observer.violations.take();
    assert!(failed.len() == 1 && failed[0].contains("no such table"), "{failed:?}");
}

#[test]
fn a_stable_group_costs_one_put_and_each_follower_one_get_for_each_interval() {
    let (mut fleet, leader) = leading();
    let follower = fleet.join("server-2", &beside(15));
    fleet.pass(60_000);
    let before = (leader.handle.requests(), follower.handle.requests());
    fleet.pass(600_000);
    let after = (leader.handle.requests(), follower.handle.requests());
    let puts = after.0.write - before.0.write;
    let gets = after.1.read - before.1.read;
    let others = (after.0.read - before.0.read, after.1.write - before.1.write);
    assert_eq!((puts, others), (120, (0, 0)));
    assert!((120..=132).contains(&gets), "{gets} GETs");
    let item = fleet.place.item.borrow().clone().expect("an item");
    let length = |value: &Value| {
        let texts = value.as_object().into_iter().flat_map(serde_json::Map::values);
        texts.filter_map(Value::as_str).map(str::len).sum::<usize>()
    };
    let bytes: usize = item.iter().map(|(name, value)| name.len() + length(value)).sum();
    assert!(bytes <= 1_024, "{bytes} bytes are more than one write unit");
    println!("{gets} GETs, {bytes} bytes");
}

/// Its calls take up to 300 ms each way, and one of six gets no answer.
fn on_a_bad_way(seed: u64) -> impl FnMut() -> Travel {
    let mut chance = Chance::new(seed);
    move || Travel {
        there_ms: chance.below(300),
        back_ms: chance.below(300),
        lost: match chance.below(12) {
            0 => Some(Lost::Request),
            1 => Some(Lost::Answer),
            _ => None,
        },
    }
}

/// Some of theirs act by `IsLeader()` alone on a bad way: the longest that a leader does after its last renewal left is a
/// tick, and a call that is given up, which is within its lease.
impl Group for Table {
    fn chance(&self) -> &Rc<RefCell<Chance>> {
        &self.chance
    }

    fn ours(fleet: &Fleet) -> Member {
        let elector = fleet.join("server", &beside(30));
        elector.way.one_in_lost.set(20);
        let session = elector.handle.with(|election| election.session().to_owned());
        Member::ours(session, elector.handle, Rc::clone(&elector.way.cut_until_ms))
    }

    fn theirs(fleet: &Fleet) -> Option<Member> {
        let by_state = fleet.below(2) == 0;
        let paces = [(15_000, 5_000), (10_000, 3_000), (30_000, 10_000)];
        let (lease_ms, renew_ms) = paces[if by_state { 0 } else { fleet.below(3) as usize }];
        let id = format!("worker-{}", fleet.next_number());
        let mut worker = fleet.worker(&id, lease_ms, renew_ms, fleet.below(1_999) as i64 - 999);
        if by_state {
            worker = worker.by_state(9_000, on_a_bad_way(fleet.below(u64::MAX)));
        }
        let worker = fleet.coordinate(worker);
        Some(Member::theirs(id, worker.stops, worker.lock.cut_until_ms))
    }
}

#[test]
fn a_mixed_fleet_has_one_leader_whatever_happens_to_its_members() {
    let followed = played(80, 12, 15_000, |seed| {
        let fleet = if seed % 2 == 0 { expiring() } else { fleet() };
        *fleet.place.chance.borrow_mut() = Chance::new(seed);
        fleet
    });
    assert!(followed.iter().all(|times| *times > 100), "{followed:?}");
}

/// The row "slow response" of their document's failures: a call longer than `LeaseDuration - RenewPeriod`.
#[test]
fn s2_who_acts_by_is_leader_alone_does_so_beside_ours_while_its_call_is_slow_and_tokens_grow() {
    for lost in [None, Some(Lost::Request)] {
        let (mut fleet, first) = leading();
        first.handle.tell(Input::Stop { park: false });
        fleet.pass(1_000);
        let slow = Rc::new(Cell::new(false));
        let travels = {
            let slow = Rc::clone(&slow);
            move || match slow.get() {
                true => Travel { there_ms: 14_000, back_ms: 14_000, lost },
                false => Travel::default(),
            }
        };
        let worker = fleet.worker("worker-1", 15_000, 5_000, 0);
        fleet.coordinate(worker.by_state(40_000, travels));
        fleet.pass(2_000);
        fleet.join("server-1", &beside(15));
        fleet.pass(30_000);
        assert_eq!(fleet.leaders(), ["worker-1"]);
        slow.set(true);
        fleet.watch(60_000);
        let beside_ms = fleet.observer.beside_ms.get();
        println!("{lost:?}: beside ours for {beside_ms} ms");
        assert!(beside_ms > 3_000, "{beside_ms} ms");
        slow.set(false);
        fleet.watch(60_000);
        assert_eq!(fleet.leaders(), ["session-2"]);
        assert_eq!(fleet.observer.tokens.borrow().len(), 2);
    }
}
