//! Members that share shards out, whole: the real code on virtual time, over a store in memory.

use edgelect::planted::plant;
use edgelect::shards::plan::{Plan, View};
use worlds::play::{self, Fails, How, LEASE_MS, World, play};

/// After the last event: a dead member's leases run out, its shards are claimed, and what is uneven is given back in two rounds.
const SETTLED_MS: u64 = play::SETTLED_MS;

#[test]
fn members_that_start_together_share_out_without_giving_much_back() {
    let mut world = World::new(16, 2);
    (0..4).for_each(|_| world.join());
    world.pass(SETTLED_MS);
    assert_eq!(world.shares(), [4, 4, 4, 4]);
    // The first four terms come before anybody knows of the others.
    assert!(world.moves() <= 16 + 4, "{} terms", world.moves());
    world.check();
}

#[test]
fn the_shards_of_a_new_group_are_led_after_one_grace_without_init() {
    for writes_apart_ms in [0, 1_000] {
        let how = How { new: true, writes_apart_ms, ..How::default() };
        let mut alone = World::with(6, 8, how);
        alone.join();
        // Its first shard, the grace of that, two intervals, and the grace of the others.
        alone.pass(2 * LEASE_MS + 15_000);
        assert_eq!(alone.shares(), [6], "{writes_apart_ms}");
        let mut world = World::with(8, 9, how);
        (0..2).for_each(|_| world.join());
        world.pass(SETTLED_MS);
        assert_eq!(world.shares(), [4, 4], "{writes_apart_ms}");
    }
}

#[test]
fn the_shards_of_whoever_dies_or_stops_go_to_the_others_in_time_and_no_other_moves() {
    // Within a lease and a look, and at their next look.
    type End = fn(&mut World, usize);
    for (seed, end, within_ms) in
        [(3, World::crash as End, LEASE_MS + 7_000), (4, World::stop, 7_500)]
    {
        let mut world = World::new(12, seed);
        (0..3).for_each(|_| world.join());
        world.pass(SETTLED_MS);
        assert_eq!(world.shares(), [4, 4, 4]);
        let moved = world.moves();
        end(&mut world, 0);
        world.pass(within_ms);
        assert_eq!((world.shares(), world.moves() - moved), (vec![6, 6], 4));
        world.check();
    }
}

#[test]
fn more_members_than_shards_leave_one_shard_each_and_the_rest_stand_by() {
    let mut world = World::new(3, 5);
    (0..5).for_each(|_| world.join());
    world.pass(2 * SETTLED_MS);
    let mut shares = world.shares();
    shares.sort_unstable();
    assert_eq!(shares, [0, 0, 1, 1, 1]);
    let (moved, leader) = (world.moves(), world.shares().iter().position(|share| *share == 1));
    world.pass(600_000);
    assert_eq!(world.moves(), moved, "nothing moves");
    world.crash(leader.expect("three lead"));
    world.pass(SETTLED_MS);
    assert_eq!(world.shares().iter().sum::<usize>(), 3);
    world.check();
}

#[test]
fn shards_whose_work_ends_soon_are_all_led_again_and_again() {
    for (shards, members, work_ms) in
        [(8, 1, 200), (8, 1, 2_000), (8, 2, 2_000), (16, 3, 2_000), (16, 1, 30_000)]
    {
        let mut world = World::with(shards, 2, How { work_ms, ..How::default() });
        (0..members).for_each(|_| world.join());
        world.pass(SETTLED_MS);
        let rests = world.watch_rests(1_800_000, play::REST_MS);
        assert_eq!(rests, Ok(()), "{shards} shards, {members} members, work of {work_ms} ms");
    }
}

#[test]
fn after_a_time_without_writes_all_shards_are_soon_led_again() {
    for outage_ms in [40_000, 45_000, 60_000, 300_000] {
        for members in [1, 2] {
            let mut world = World::new(6, 3);
            (0..members).for_each(|_| world.join());
            world.pass(100_000);
            world.fail(0..6, Fails::Unknown);
            world.pass(outage_ms);
            world.fail(0..6, Fails::No);
            world.pass(SETTLED_MS);
            assert_eq!(world.shares().iter().sum::<usize>(), 6, "{members}, {outage_ms} ms");
        }
    }
}

#[test]
fn a_shard_that_nobody_can_write_keeps_no_other_from_its_member() {
    for bad in 0..4 {
        let mut world = World::new(4, 3);
        (0..2).for_each(|_| world.join());
        world.pass(200_000);
        world.fail([bad], Fails::Unknown);
        world.crash(0);
        world.pass(2 * SETTLED_MS);
        assert_eq!(world.shares(), [3], "{bad}");
    }
}

const FAILS: [Fails; 3] = [Fails::Unknown, Fails::Denied, Fails::Refused];

#[test]
fn a_shard_that_could_not_be_written_for_a_time_is_soon_led_again() {
    for fails in FAILS {
        for (members, outage_ms) in [(1, 120_000), (1, 300_000), (2, 180_000), (3, 600_000)] {
            let mut world = World::new(6, 3);
            (0..members).for_each(|_| world.join());
            world.pass(200_000);
            world.fail([2], fails);
            world.pass(outage_ms);
            world.fail([2], Fails::No);
            world.pass(40_000);
            let led = world.shares().iter().sum::<usize>();
            assert_eq!(led, 6, "{fails:?}, {members} members, {outage_ms} ms");
        }
    }
}

#[test]
fn beside_a_shard_that_nobody_can_write_a_newcomer_gets_its_share_and_a_death_is_made_good() {
    for fails in FAILS {
        let mut world = World::new(16, 3);
        (0..2).for_each(|_| world.join());
        world.pass(200_000);
        world.fail([0], fails);
        world.pass(100_000);
        world.join();
        world.pass(300_000);
        let mut shares = world.shares();
        shares.sort_unstable();
        assert!(shares[0] >= 4, "{fails:?}: {shares:?}");
        world.crash(2);
        world.pass(100_000);
        assert_eq!(world.shares().iter().sum::<usize>(), 15, "{fails:?}");
    }
}

/// What nobody can write counts for nobody, as often as the newcomer has let it lie.
#[test]
fn where_few_shards_can_be_written_a_newcomer_gets_its_share_of_those_and_keeps_it() {
    for (fails, (shards, bad)) in FAILS.into_iter().flat_map(|f| [(f, (3, 1)), (f, (8, 4))]) {
        let mut world = World::new(shards, 3);
        world.join();
        world.pass(200_000);
        world.fail(0..bad, fails);
        world.pass(100_000);
        world.join();
        world.pass(300_000);
        let shares = world.shares();
        let least = (shards - bad) / 2;
        assert!(shares.iter().all(|share| *share >= least), "{fails:?} {shards}: {shares:?}");
        for _ in 0..20 {
            world.pass(50_000);
            assert_eq!(world.shares(), shares, "{fails:?} {shards}");
        }
    }
}

#[test]
fn a_shard_that_nobody_can_read_keeps_the_others_free_for_a_patience_and_no_longer() {
    let mut plan = Plan::new("me", 2, 1_000, LEASE_MS);
    let views = [View::Unknown, View::Free];
    let claims = |now_ms: &u64| plan.decide(*now_ms, &views, &View::Free).competes[1];
    let claimed_ms = (0..400_000).step_by(500).find(claims);
    assert_eq!(claimed_ms, Some(2 * (LEASE_MS + 1_000)));
}

#[test]
fn a_shard_that_a_member_lets_lie_is_anothers_though_that_member_holds_others() {
    let mut plan = Plan::new("b", 4, 1_000, LEASE_MS);
    let views = [View::Mine, View::Free, View::Other("a".to_owned()), View::Mine];
    let claims = |now_ms: &u64| plan.decide(*now_ms, &views, &View::Free).competes[1];
    let claimed_ms = (0..400_000).step_by(500).find(claims);
    let patience_ms = 2 * (LEASE_MS + 1_000);
    assert!(claimed_ms.is_some_and(|at_ms| at_ms <= patience_ms + 500), "{claimed_ms:?}");
}

/// What bars it for one member bars it for none for ever.
#[test]
fn a_shard_that_all_let_lie_is_claimed_by_each_again_and_again() {
    let mut plan = Plan::new("b", 4, 1_000, LEASE_MS);
    let views = [View::Mine, View::Free, View::Other("a".to_owned()), View::Mine];
    let patience_ms = 2 * (LEASE_MS + 1_000);
    let mut claimed_ms = 0;
    for now_ms in (0..60 * patience_ms).step_by(500) {
        if plan.decide(now_ms, &views, &View::Free).competes[1] {
            claimed_ms = now_ms;
        }
        assert!(now_ms - claimed_ms <= 12 * patience_ms, "not after {claimed_ms}");
    }
}

#[test]
fn that_a_shard_was_broken_keeps_nobody_from_its_share_once_it_is_led() {
    let mut plan = Plan::new("b", 5, 1_000, LEASE_MS);
    let a = || View::Other("a".to_owned());
    let patience_ms = 2 * (LEASE_MS + 1_000);
    let broken = [View::Free, View::Mine, a(), View::Mine, a()];
    let healed = [a(), a(), a(), a(), a()];
    for now_ms in (0..30 * patience_ms).step_by(500) {
        plan.decide(now_ms, &broken, &View::Free);
    }
    let takes_seat = |now_ms: &u64| plan.decide(*now_ms, &healed, &View::Free).takes_seat;
    let healed_ms = 30 * patience_ms;
    let taken_ms = (healed_ms..60 * patience_ms).step_by(500).find(takes_seat);
    assert!(taken_ms.is_some_and(|ms| ms <= healed_ms + patience_ms), "{taken_ms:?}");
}

#[test]
fn many_members_find_out_that_a_shard_is_broken_and_a_newcomer_gets_its_share() {
    let mut world = World::new(37, 3);
    (0..12).for_each(|_| world.join());
    world.pass(200_000);
    world.fail([0], Fails::Refused);
    world.pass(700_000);
    world.join();
    world.pass(300_000);
    let shares = world.shares();
    let [least, most] = [shares.iter().min(), shares.iter().max()].map(Option::unwrap);
    assert!(most - least <= 1, "{shares:?}");
}

#[test]
fn how_long_a_shard_lay_for_a_member_that_died_does_not_count_against_who_takes_it_now() {
    let mut plan = Plan::new("a", 4, 1_000, LEASE_MS);
    let b = || View::Other("b".to_owned());
    let before = [View::Mine, View::Mine, View::Free, b()];
    let after = [View::Mine, View::Mine, View::Free, View::Free];
    let patience_ms = 2 * (LEASE_MS + 1_000);
    let steps = |from_ms: u64, to_ms| (from_ms..to_ms).step_by(500);
    for now_ms in steps(0, patience_ms - 1_000) {
        assert!(!plan.decide(now_ms, &before, &View::Free).competes[2], "it is for b");
    }
    for now_ms in steps(patience_ms - 1_000, 2 * patience_ms - 2_000) {
        assert!(plan.decide(now_ms, &after, &View::Free).competes[2], "{now_ms}");
    }
}

#[test]
fn whatever_happens_one_leads_each_shard_shares_even_out_and_then_nothing_moves() {
    let schedules = std::env::var("EDGELECT_SHARD_SCHEDULES").ok();
    let schedules = schedules.and_then(|text| text.parse().ok()).unwrap_or(150);
    let found = play(0, schedules, || plant(None)).err();
    assert!(found.is_none(), "{found:?}");
}
