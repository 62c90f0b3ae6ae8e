//! A group of thousands of members, as `fleet/` simulates it.

use edgelect::config::Follow;
use worlds::fleet::count::{Cause, Failover, Requests, percentile};
use worlds::fleet::prices::{Price, STORES, number, row};
use worlds::fleet::run::Fleet;
use worlds::fleet::{INTERVAL_MS, LEASE_MS, Peers, Setup};

const MINUTES: u64 = 1;

fn stable(setup: Setup) -> Requests {
    let mut fleet = Fleet::new(setup);
    fleet.settle();
    fleet.stable(MINUTES)
}

#[test]
fn c70_ten_thousand_followers_do_not_grow_the_leaders_requests() {
    for peers in [Peers::Off, Peers::On, Peers::Relay] {
        let [few, many] = [10, 10_000].map(|size| stable(Setup { peers, ..Setup::of(size) }));
        let of_leader = |requests: &Requests| (requests.renewals, requests.leader_gets);
        assert_eq!(of_leader(&many), of_leader(&few), "{peers:?}");
        assert_eq!(of_leader(&many), (MINUTES * 12, 0), "one PUT in each interval");
        let each = |count: u64| count as f64 / 10_000.0 / (MINUTES * 12) as f64;
        let (gets, questions) = (each(many.gets()), each(many.questions));
        let most = match peers {
            Peers::Off => (1.1, 0.0),
            // The leader has room for a thousand questions: the others read.
            Peers::On => (1.1, 0.3),
            Peers::Relay => (0.05, 0.6),
        };
        let within = gets <= most.0 && questions <= most.1;
        assert!(within, "{peers:?}: {gets} GETs, {questions} questions in each interval");
    }
}

fn failovers(setup: Setup, cause: Cause, rounds: usize) -> Vec<Failover> {
    let mut fleet = Fleet::new(setup);
    fleet.settle();
    (0..rounds).map(|_| fleet.fail(cause)).collect()
}

fn median_claims(setup: Setup, cause: Cause) -> u64 {
    percentile(failovers(setup, cause, 9).iter().map(|failover| failover.claims), 50)
}

/// Of thousands that see one expiry, one tombstone or that the record is gone, a handful writes; without turns all do.
#[test]
fn of_thousands_of_followers_a_handful_writes_in_a_failover() {
    let causes = [Cause::Crash, Cause::Resign, Cause::Delete];
    // Peers tell all of them at once, while the store still refuses the write after the release.
    let told = Setup { limited: true, peers: Peers::On, ..Setup::of(1_000) };
    for (setup, causes, most) in [
        (Setup::of(10_000), &causes[..1], 5),
        (Setup::of(2_000), &causes[1..], 5),
        (Setup { store_ms: 200, ..Setup::of(2_000) }, &causes[..2], 5),
        (told, &causes[1..2], 10),
    ] {
        for cause in causes {
            let claims = median_claims(setup, *cause);
            assert!(claims <= most, "{setup:?} {cause:?}: {claims} PUTs, median");
        }
    }
    for cause in causes {
        let setup = Setup { store_ms: 200, hasty: true, ..Setup::of(1_000) };
        let claims = median_claims(setup, cause);
        assert!(claims > 30, "{cause:?}: {claims} PUTs, median");
    }
}

/// Half of them look within a moment, when the lease that they know would have run out, and it may have been released just then.
#[test]
fn who_looks_as_a_lease_runs_out_and_finds_a_release_has_no_turn_yet() {
    let balanced = |followers| Setup { follow: Follow::Balanced, ..Setup::of(followers) };
    for setup in [balanced(2_000), Setup { limited: true, ..balanced(1_000) }] {
        let claims = failovers(setup, Cause::Resign, 20).into_iter().map(|one| one.claims);
        let most = claims.max();
        assert!(most <= Some(12), "{setup:?}: {most:?} PUTs");
    }
}

#[test]
fn c13_a_new_leader_renews_where_the_store_takes_one_write_a_second_and_twenty_want_to_write() {
    let limited = Setup { limited: true, ..Setup::of(20) };
    for setup in [limited, Setup { hasty: true, ..limited }] {
        let mut fleet = Fleet::new(setup);
        fleet.settle();
        let mut throttled = 0;
        for _ in 0..5 {
            let failover = fleet.fail(Cause::Crash);
            throttled += failover.throttled;
            let in_time = failover.leads_on && (3..=5).contains(&failover.renewals);
            assert!(in_time, "while others want to write: {failover:?}");
            let Requests { renewals, leader_gets, .. } = fleet.stable(1);
            assert_eq!((renewals, leader_gets), (12, 0), "{setup:?}");
        }
        assert!(throttled > 0 || !setup.hasty, "some of them are turned away");
    }
}

#[test]
fn a_tight_follower_takes_over_within_a_lease_half_a_second_and_round_trips() {
    for (followers, store_ms, rounds) in [(1, 20, 100), (1, 200, 100), (100, 20, 20)] {
        let setup = Setup { store_ms, ..Setup::of(followers) };
        let failovers = failovers(setup, Cause::Crash, rounds);
        let most_ms = LEASE_MS + 500 + 12 * store_ms;
        let slow: Vec<u64> =
            failovers.iter().map(|one| one.took_ms).filter(|ms| *ms > most_ms).collect();
        assert!(slow.len() <= rounds / 100, "{followers} over {store_ms} ms: {slow:?}");
        assert!(slow.iter().all(|ms| *ms <= most_ms + 500), "{slow:?}");
    }
}

/// The bounds that the pages promise, each beside its cause, with round trips: of peers and the store's own time.
#[test]
fn each_way_of_following_takes_over_within_what_the_pages_say() {
    let (skew_ms, spread_ms) = (2_000, 500);
    let (tight, balanced) = (Follow::Tight, Follow::Balanced);
    for (follow, peers, cause, most_ms) in [
        (tight, Peers::Off, Cause::Resign, INTERVAL_MS + spread_ms),
        (balanced, Peers::Off, Cause::Resign, LEASE_MS + spread_ms),
        (balanced, Peers::Off, Cause::Crash, LEASE_MS + skew_ms + 2_500),
        (tight, Peers::On, Cause::Resign, 300),
        (tight, Peers::On, Cause::Crash, LEASE_MS + skew_ms + 2_500),
        (balanced, Peers::On, Cause::Crash, LEASE_MS + skew_ms + 2_500),
    ] {
        let setup = Setup { follow, peers, ..Setup::of(2) };
        let took_ms = failovers(setup, cause, 200).iter().map(|one| one.took_ms).max();
        println!("{follow:?} {peers:?} {cause:?}: {took_ms:?} of {most_ms} ms");
        assert!(took_ms <= Some(most_ms + 12 * setup.store_ms), "{setup:?} {cause:?}: {took_ms:?}");
    }
}

/// A month's writes of a leader and reads of a `tight` follower.
const A_MONTH: f64 = 518_400.0;

#[test]
fn the_costs_of_a_month_follow_from_the_prices() {
    for store in STORES {
        let price = Price::of(store);
        let (leader, follower) = (price.dollars(A_MONTH, 0.0), price.dollars(0.0, A_MONTH));
        let expected = [leader, follower, leader + 2.0 * follower];
        for (cell, expected) in row(store)[1..].iter().zip(expected) {
            assert!((number(cell) - expected).abs() < 0.006, "{store}: {cell}, not {expected}");
        }
    }
}
