//! Real elections on a zone that shows old states, throttles, and loses what it is sent; alone, and beside
//! members that act by shardcoordinator's document.

#[path = "route53/zone.rs"]
mod zone;

use edgelect::probe::Finding;
use edgelect::{Route53Store, probe};

use self::zone::{Batch, Faults, Net, Set, Zone};
use crate::driver::prelude::*;
use crate::mixed::coordinator::{Coordinator, Lock};
use crate::mixed::world::{Group, Member, Ours, World};
use worlds::record_set;

const LEASE_MS: u64 = 15_000;
const RENEW_MS: u64 = 5_000;

fn store(host: &Virtual) -> Route53Store<Virtual> {
    Route53Store::new(record_set(), credentials(), host.clone()).expect("the names are fine")
}

fn config(id: &str) -> Config {
    config_of(Settings { server_id: Some(id.to_owned()), ..Settings::default() })
}

impl Lock for Net {
    /// List, parse, compare the epoch with the own clock, and replace.
    async fn take(&self, id: &str, leads: bool, lease_ms: u64, clock: &Virtual) -> Option<u64> {
        let epoch = (clock.wall_ms() + lease_ms) / 1_000;
        let existing = self.list().await.ok()?;
        let now_s = clock.wall_ms() / 1_000;
        match (existing.as_ref().map(parse), leads) {
            (None, true) => return None,
            (Some((owner, until)), true) if owner != id || now_s > until => return None,
            (Some((_, until)), false) if now_s < until => return None,
            _ => {}
        }
        let create = Set { ttl: "60".to_owned(), values: vec![format!("\"{id} {epoch}\"")] };
        // It deletes with a TTL of 60, whatever there is.
        let delete = existing.map(|set| Set { ttl: "60".to_owned(), ..set });
        self.change(Batch { delete, create: Some(create) }).await.ok()?;
        Some(epoch * 1_000)
    }

    async fn release(&self, id: &str) {
        if let Some(set) = self.list().await.ok().flatten().filter(|set| parse(set).0 == id) {
            let _ = self.change(Batch { delete: Some(set), create: None }).await;
        }
    }
}

/// As shardcoordinator reads a record.
fn parse(set: &Set) -> (String, u64) {
    let value = set.values[0].trim_matches('"');
    let parsed = value.split_once(' ').and_then(|(owner, epoch)| {
        Some((owner.to_owned(), epoch.parse::<i64>().ok()?.max(0).unsigned_abs()))
    });
    parsed
        .unwrap_or_else(|| panic!("shardcoordinator can read every record of edgelect's: {set:?}"))
}

type Fleet = World<Place>;
type Elector = Ours<Net>;

struct Place {
    zone: Rc<RefCell<Zone>>,
    beside: bool,
}

/// What was held up arrives in time.
fn fleet(seed: u64, faults: Faults) -> Fleet {
    let place = Place { zone: Zone::new(seed, faults), beside: true };
    let mut fleet = World::new(20, seed, |_, _| place);
    let (zone, time) = (Rc::clone(&fleet.place.zone), fleet.time.clone());
    fleet.each_step = Box::new(move || zone.borrow_mut().catch_up(time.now_ms.get()));
    fleet
}

impl Group for Place {
    fn ours(fleet: &Fleet) -> Member {
        let name = format!("ours-{}", fleet.next_number());
        let Elector { handle, way, .. } = fleet.join(&name);
        Member::ours(name, handle, way.cut_until_ms)
    }

    fn theirs(fleet: &Fleet) -> Option<Member> {
        let name = format!("theirs-{}", fleet.next_number());
        let lease_ms = fleet.pick(&[LEASE_MS, 3 * LEASE_MS]);
        // The page's bound: `margin` and a second ahead, two seconds behind.
        let ahead_ms = fleet.below(4_400) as i64 - 1_900;
        fleet.place.beside.then(|| {
            let theirs = fleet.join_coordinator(&name, lease_ms, ahead_ms);
            Member::theirs(name, theirs.stops, theirs.lock.cut_until_ms)
        })
    }
}

impl Fleet {
    fn join(&self, id: &str) -> Elector {
        let net = Net::new(&self.time, &self.place.zone);
        let host = net.host();
        let election = new_election(&host, config(id)).expect("it has randomness");
        self.elect(id, Handle::new(election), store(&host), host, net)
    }

    /// One of theirs, whose clock is so far ahead of Route 53's.
    fn join_coordinator(&self, id: &str, lease_ms: u64, ahead_ms: i64) -> Coordinator<Net> {
        let (net, host) = (Net::new(&self.time, &self.place.zone), self.time.ahead(ahead_ms));
        self.coordinate(Coordinator::new(id, net, host, lease_ms, RENEW_MS))
    }

    fn is_led_by(&self, member: &Elector) -> bool {
        member.handle.authority(self.time.now()).is_some()
    }
}

/// Seconds to minutes of old answers, five requests a second, one of seven without an answer.
const BAD: Faults = Faults { stale_ms: 180_000, lost_percent: 14, throttles: true };

#[test]
fn old_reads_lost_answers_and_throttling_never_make_two_leaders_and_tokens_grow() {
    for (beside, stale_ms) in [(false, &[4_000, 30_000, 180_000][..]), (true, &[4_000, 30_000])] {
        let (mut terms, mut followed, mut seen) = (0, 0, [0; 3]);
        for seed in 0..24 {
            let stale_ms = stale_ms[seed as usize % stale_ms.len()];
            let mut fleet = fleet(seed, Faults { stale_ms, ..BAD });
            fleet.place.beside = beside;
            fleet.play(20, LEASE_MS);
            assert_eq!(fleet.observer.broken(), [""; 0], "seed {seed}");
            terms += fleet.observer.tokens.borrow().len();
            followed += fleet.observer.followed.get().iter().sum::<u64>();
            let counts = fleet.place.zone.borrow().seen;
            seen = std::array::from_fn(|index| seen[index] + counts[index]);
        }
        assert!(terms > 48 && (followed > 48) == beside, "{terms} terms, {followed} successions");
        assert!(seen.iter().all(|count| *count >= 10), "throttled, old, late: {seen:?}");
    }
}

/// For how long one of theirs led beside ours that were cut off, its clock being so far ahead.
fn beside_ms(ahead_ms: i64) -> u64 {
    let mut beside_ms = 0;
    for seed in 0..40 {
        let mut fleet = fleet(seed, Faults::default());
        let member = fleet.join("a");
        let phase_ms = fleet.below(RENEW_MS);
        fleet.watch(40_000 + phase_ms);
        let x = fleet.join_coordinator("x", LEASE_MS, ahead_ms);
        fleet.watch(20_000);
        member.way.cut_until_ms.set(u64::MAX);
        fleet.watch(LEASE_MS + 2 * RENEW_MS);
        assert!(x.leads() && !fleet.is_led_by(&member), "seed {seed}");
        beside_ms += fleet.observer.beside_ms.get();
    }
    beside_ms
}

#[test]
fn a_clock_of_theirs_within_margin_and_a_second_takes_no_living_lease_and_one_beyond_is_seen_to() {
    assert_eq!(beside_ms(2_499), 0);
    assert!(beside_ms(5_000) > 0, "nobody has seen it");
}

#[test]
fn a_foreign_leader_that_dies_is_waited_out_through_the_second_of_its_epoch() {
    for (name, lease_ms, ahead_ms, date_ahead_ms) in [
        ("of our lease", LEASE_MS, 0, 0),
        ("of a longer one", 3 * LEASE_MS, 0, 0),
        ("by a slow clock", 3 * LEASE_MS, -999, 0),
        ("and a proxy sets Date ahead", 3 * LEASE_MS, 0, 30_000),
    ] {
        let mut fleet = fleet(3, Faults::default());
        fleet.place.zone.borrow_mut().date_ahead_ms = date_ahead_ms;
        let x = fleet.join_coordinator("x", lease_ms, ahead_ms);
        fleet.pass(1_000);
        assert!(x.leads(), "{name}");
        let member = fleet.join("a");
        fleet.pass(21_000);
        x.lock.cut_until_ms.set(u64::MAX);
        // It renews while its clock shows no later second than that.
        let until_ms = x.until_ms.get().expect("it leads") + 1_000;
        while x.host.wall_ms() < until_ms {
            fleet.pass(20);
            assert!(!fleet.is_led_by(&member), "{name}");
        }
        fleet.pass(20_000);
        assert!(fleet.is_led_by(&member), "{name}");
    }
}

fn probed(seed: u64, faults: Faults) -> Vec<probe::Judged> {
    let mut fleet = fleet(seed, faults);
    let host = Net::new(&fleet.time, &fleet.place.zone).host();
    let judged: Rc<RefCell<Vec<probe::Judged>>> = Rc::default();
    let told = Rc::clone(&judged);
    fleet.spawn(async move {
        let config = config("a");
        let effort = probe::Effort::at_start(&config);
        let found = probe::probe(&store(&host), &host, &config, effort, |_| {}).await;
        told.replace(found.expect("randomness").judged);
    });
    fleet.pass(60_000);
    judged.take()
}

#[test]
fn c26_the_probe_accepts_a_zone_and_does_not_accuse_one_that_is_busy_or_shows_old_states() {
    let judged = probed(6, Faults::default());
    let holds = judged.iter().filter(|one| one.finding == Finding::Holds).count();
    assert_eq!((judged.len(), holds), (8, 7), "a record set has no Last-Modified: {judged:?}");
    for seed in 0..100 {
        let judged = probed(seed, BAD);
        let accused = judged.iter().any(|one| matches!(one.finding, Finding::Violated(_)));
        assert!(!accused && !judged.is_empty(), "seed {seed}: {judged:?}");
    }
}
