//! Members of shardcoordinator and of edgelect share one item.

#[path = "dynamodb/table.rs"]
mod table;

use std::future::pending;
use std::ops::Range;

use edgelect::{DynamoDbConfig, DynamoDbStore};
use futures::FutureExt;
use serde_json::Value;

use self::table::Table;
use crate::driver::prelude::*;
use crate::mixed::coordinator::{Coordinator, Lock};
use crate::mixed::world::{Group, Member, Ours, World, played};
use worlds::item;

/// What becomes of a request.
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

/// As requests of ours travel, unless said otherwise.
const NEAR: Travel = Travel { there_ms: 7, back_ms: 7, lost: None };

/// The way of a member of either make to the table.
#[derive(Clone)]
struct Way {
    time: Virtual,
    table: Table,
    /// Draws what becomes of the next request.
    travels: Rc<RefCell<Box<dyn FnMut() -> Travel>>>,
    /// When the client of a member of theirs gives a request up.
    timeout_ms: u64,
    cut_until_ms: Rc<Cell<u64>>,
}

impl Way {
    fn new(fleet: &Fleet, usual: Travel) -> Self {
        let travels: Box<dyn FnMut() -> Travel> = Box::new(move || usual);
        Self {
            time: fleet.time.clone(),
            table: fleet.place.clone(),
            travels: Rc::new(RefCell::new(travels)),
            timeout_ms: 5_000,
            cut_until_ms: Rc::default(),
        }
    }

    fn travels(&self, travels: impl FnMut() -> Travel + 'static) {
        *self.travels.borrow_mut() = Box::new(travels);
    }

    /// What the table answers, if that is heard.
    async fn ask<T>(&self, act: impl FnOnce(&Table) -> T) -> T {
        let Travel { there_ms, back_ms, lost } = (self.travels.borrow_mut())();
        let cut = self.time.now_ms.get() < self.cut_until_ms.get();
        self.time.sleep(there_ms).await;
        if cut || lost == Some(Lost::Request) {
            return pending().await;
        }
        let answer = act(&self.table);
        if lost.is_some() {
            return pending().await;
        }
        self.time.sleep(back_ms).await;
        answer
    }
}

impl Lock for Way {
    async fn take(&self, id: &str, leads: bool, lease_ms: u64, clock: &Virtual) -> Option<u64> {
        let (now_s, ttl_s) = (clock.wall_ms() / 1_000, (clock.wall_ms() + lease_ms) / 1_000);
        let asked = self.ask(|table| match leads {
            true => table.renew(id, now_s, ttl_s),
            false => table.try_acquire(id, now_s, ttl_s),
        });
        let held = self.time.within(self.timeout_ms, asked).await?;
        // Its clock rules bear the whole second that the `ttl` names.
        held.then_some((ttl_s + 1) * 1_000)
    }

    /// DeleteItem with `ownerId = :me`.
    async fn release(&self, id: &str) {
        if self.table.text("ownerId").as_deref() == Some(id) {
            *self.table.item.borrow_mut() = None;
        }
    }
}

type Fleet = World<Table>;
type Elector = Ours<Way>;

fn fleet() -> Fleet {
    seeded(0)
}

fn seeded(seed: u64) -> Fleet {
    World::new(20, seed, |time, _| Table::new(time))
}

/// A fleet over a table whose TTL process is swift.
fn expiring(seed: u64) -> Fleet {
    let mut fleet = seeded(seed);
    let table = fleet.place.clone();
    fleet.each_step = Box::new(move || table.expire());
    fleet
}

impl Fleet {
    /// A new session of a server; the first of a fleet is called `session-1`.
    fn join(&self, server_id: &str, settings: &Settings) -> Elector {
        self.join_ahead(server_id, settings, 0)
    }

    /// One whose wall clock is so far ahead.
    fn join_ahead(&self, server_id: &str, settings: &Settings, ahead_ms: i64) -> Elector {
        let config = config(server_id, settings);
        let number = self.next_number();
        let way = Way::new(self, NEAR);
        let asked = way.clone();
        let host = self.time.ahead(ahead_ms).asking(move |request| {
            let way = asked.clone();
            async move { Ok(way.ask(|table| table.answer(&request)).await) }
        });
        let dynamo = DynamoDbConfig { lease_ms: config.leader_timeout_ms, ..item() };
        let store = DynamoDbStore::new(dynamo, credentials(), host.clone()).expect("a fine item");
        let session = format!("session-{number}");
        let handle = Handle::new(Election::new(config, session.clone(), number));
        self.elect(&session, handle, store, host, way)
    }

    /// One of theirs that is not there yet, whose clock is so far ahead.
    fn worker(&self, id: &str, lease_ms: u64, renew_ms: u64, ahead_ms: i64) -> Coordinator<Way> {
        let way = Way::new(self, Travel::default());
        Coordinator::new(id, way, self.time.ahead(ahead_ms), lease_ms, renew_ms)
    }

    /// A member of the other make with these settings, from now on.
    fn foreign(&self, id: &str, lease_ms: u64, renew_ms: u64) -> Coordinator<Way> {
        self.coordinate(self.worker(id, lease_ms, renew_ms, 0))
    }
}

impl Coordinator<Way> {
    /// One that acts by `IsLeader()` alone, over a network, with a client that gives up after so long.
    fn by_state(mut self, timeout_ms: u64, travels: impl FnMut() -> Travel + 'static) -> Self {
        self.lock.travels(travels);
        (self.lock.timeout_ms, self.by_state) = (timeout_ms, true);
        self
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

/// The one before it has led with a token that whoever comes then has not seen.
#[test]
fn a_foreign_leader_is_left_alone_and_succeeded_when_it_crashed_released_or_was_deleted() {
    type End = fn(&Coordinator<Way>);
    // A lease, what its clock may differ by, and a look; a deletion is waited out like any other: the grace, and looks.
    let rows: [(&str, Fleet, End, Range<u64>); 3] = [
        ("crashed", fleet(), Coordinator::crash, 10_000..25_000),
        ("released", fleet(), Coordinator::stop, 15_000..40_000),
        ("deleted", expiring(0), Coordinator::crash, 15_000..60_000),
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
        assert_eq!(problem(&member.handle), "");
        fleet.pass(60_000);
        foreign.stands_still.set(false);
        fleet.pass(60_000);
        assert_eq!((fleet.leaders(), foreign.acquired.get()), (vec!["session-2".to_owned()], 1));
        assert_eq!(fleet.observer.tokens.borrow().len(), 2);
    }
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
        member.way.cut_until_ms.set(u64::MAX);
        assert!(fleet.led_by("worker-1", 20_000), "{phase_ms}");
        assert_eq!(member.told.reasons(), [LostReason::Expired], "{phase_ms}");
    }
}

#[test]
fn a_foreign_lease_longer_than_ours_is_waited_out_to_its_last_second_whatever_the_clocks_say() {
    // At any part of a second, their clock is slow.
    let slow = (0..1_000).step_by(143).map(|phase_ms| (phase_ms, -999, 40, 0, 0, 0));
    let others = [
        // A proxy sets `Date` ahead.
        (0, 0, 15, 30_000, 0, 0),
        // The first answers have none, and the own clock is fast.
        (0, 0, 15, 0, 1, 60_000),
        (0, 0, 15, 0, 5, 60_000),
    ];
    for (phase_ms, ahead_ms, lease_s, date_ahead_ms, undated, own_ahead_ms) in slow.chain(others) {
        let mut fleet = fleet();
        fleet.place.date_ahead_ms.set(date_ahead_ms);
        // It renews more seldom than our whole lease lasts.
        let foreign = fleet.coordinate(fleet.worker("worker-1", 40_000, 25_000, ahead_ms));
        fleet.pass(1_000 + phase_ms);
        fleet.place.undated.set(undated);
        let tight = Settings { follow: Some(Follow::Tight), ..beside(lease_s) };
        fleet.join_ahead("server-1", &tight, own_ahead_ms);
        fleet.pass(100_000);
        assert_eq!((fleet.leaders(), foreign.acquired.get()), (vec!["worker-1".to_owned()], 1));
        foreign.stands_still.set(true);
        assert!(fleet.led_by("session-1", 50_000), "{phase_ms} {date_ahead_ms} {undated}");
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
    // At another pace than ours: a renewal to the very second that is there already changes nothing.
    let foreign = fleet.foreign("worker-1", 15_000, 4_000);
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
    assert_eq!(member.told.reasons(), [LostReason::Overtaken]);
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
    let mut lost = Some(Lost::Answer);
    member.way.travels(move || Travel { lost: lost.take(), ..NEAR });
    assert!(fleet.pass_until(10_000, |fleet| fleet.place.puts.get() > puts));
    tick();
    fleet.pass(3_000);
    assert_eq!(member.told.reasons(), [LostReason::Overtaken]);
}

#[test]
fn a_renewal_costs_one_write_unit() {
    let (fleet, _) = leading_in(fleet());
    let item = fleet.place.item.borrow().clone().expect("an item");
    let text = |value: &Value| value["S"].as_str().or(value["N"].as_str()).unwrap_or("").len();
    let bytes: usize = item.iter().map(|(name, value)| name.len() + text(value)).sum();
    assert!(bytes <= 1_024, "{bytes} bytes");
}

/// Each way takes up to so long, and of so many requests one is lost, or its answer.
fn on_a_bad_way(seed: u64, way_ms: u64, one_in: u64) -> impl FnMut() -> Travel {
    let mut chance = Chance::new(seed);
    move || Travel {
        there_ms: chance.below(way_ms),
        back_ms: chance.below(way_ms),
        lost: match chance.below(2 * one_in) {
            0 => Some(Lost::Request),
            1 => Some(Lost::Answer),
            _ => None,
        },
    }
}

/// Some of theirs act by `IsLeader()` alone on a bad way: the longest that a leader does after its last renewal left is a
/// tick, and a call that is given up, which is within its lease.
impl Group for Table {
    fn ours(fleet: &Fleet) -> Member {
        let elector = fleet.join("server", &beside(30));
        elector.way.travels(on_a_bad_way(fleet.below(u64::MAX), 15, 20));
        let session = elector.handle.with(|election| election.session().to_owned());
        Member::ours(session, elector.handle, Rc::clone(&elector.way.cut_until_ms))
    }

    fn theirs(fleet: &Fleet) -> Option<Member> {
        let by_state = fleet.below(2) == 0;
        let paces = [(15_000, 5_000), (10_000, 3_000), (30_000, 10_000)];
        let (lease_ms, renew_ms) = if by_state { paces[0] } else { fleet.pick(&paces) };
        let id = format!("worker-{}", fleet.next_number());
        let mut worker = fleet.worker(&id, lease_ms, renew_ms, fleet.below(1_999) as i64 - 999);
        if by_state {
            worker = worker.by_state(9_000, on_a_bad_way(fleet.below(u64::MAX), 300, 6));
        }
        let worker = fleet.coordinate(worker);
        Some(Member::theirs(id, worker.stops, worker.lock.cut_until_ms))
    }
}

#[test]
fn a_mixed_fleet_has_one_leader_whatever_happens_to_its_members() {
    let fleet = |seed| if seed % 2 == 0 { expiring(seed) } else { seeded(seed) };
    played(80, 12, 15_000, 100, fleet);
}

/// The row "slow response" of their document's failures: a call longer than `LeaseDuration - RenewPeriod`.
#[test]
fn s2_who_acts_by_is_leader_alone_does_so_beside_ours_while_its_call_is_slow_and_tokens_grow() {
    for lost in [None, Some(Lost::Request)] {
        let (mut fleet, first) = leading_in(fleet());
        first.handle.tell(Input::Stop { park: false });
        fleet.pass(1_000);
        let slow = Rc::new(Cell::new(0));
        let ms = Rc::clone(&slow);
        let travels = move || Travel {
            there_ms: ms.get(),
            back_ms: ms.get(),
            lost: lost.filter(|_| ms.get() > 0),
        };
        let worker = fleet.worker("worker-1", 15_000, 5_000, 0);
        fleet.coordinate(worker.by_state(40_000, travels));
        fleet.pass(2_000);
        fleet.join("server-1", &beside(15));
        fleet.pass(30_000);
        assert_eq!(fleet.leaders(), ["worker-1"]);
        slow.set(14_000);
        fleet.watch(60_000);
        let beside_ms = fleet.observer.beside_ms.get();
        println!("{lost:?}: beside ours for {beside_ms} ms");
        assert!(beside_ms > 3_000, "{beside_ms} ms");
        slow.set(0);
        fleet.watch(60_000);
        assert_eq!(fleet.leaders(), ["session-2"]);
        assert_eq!(fleet.observer.tokens.borrow().len(), 2);
    }
}
