//! A group of thousands of members, as `fleet/` simulates it.

mod fleet;

use fleet::Setup;
use fleet::count::Requests;
use fleet::prices::{Price, STORES, number, row};
use fleet::run::Fleet;

const MINUTES: u64 = 2;

fn stable(setup: Setup) -> Requests {
    let mut fleet = Fleet::new(setup);
    fleet.settle();
    fleet.stable(MINUTES)
}

#[test]
fn c70_ten_thousand_followers_do_not_grow_the_leaders_requests() {
    for peers in [false, true] {
        let [few, many] = [10, 10_000].map(|size| stable(Setup { peers, ..Setup::of(size) }));
        let of_leader = |requests: &Requests| (requests.renewals, requests.leader_gets);
        assert_eq!(of_leader(&many), of_leader(&few), "peers: {peers}");
        assert_eq!(of_leader(&many), (MINUTES * 12, 0), "one PUT in each interval");
        let each = |count: u64| count as f64 / 10_000.0 / (MINUTES * 12) as f64;
        let (gets, questions) = (each(many.gets()), each(many.questions));
        if peers {
            assert!(gets < 0.05 && questions < 1.05, "{gets} {questions} in each interval");
        } else {
            assert!(gets < 1.1 && questions == 0.0, "{gets} {questions} in each interval");
        }
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
