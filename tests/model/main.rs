//! Every course of events within bounds: the election itself under a model checker.
//!
//! Two or three sessions, one object with compare-and-swap versions, and time in ticks of a quarter of a
//! lease. Whatever is under way may take any time or be lost; misfortunes beyond that have a budget in each
//! variant. Within its ticks a variant is exhaustive: its counts are exact, and asserted.
//!
//! `EDGELECT_MODEL=long` gives each variant more ticks; there the rules are asserted and the counts printed.

mod bounds;
mod check;
mod rules;
mod session;
mod store;
mod world;

use edgelect::planted::Bug;

use bounds::{Begin, Bounds, Budget, TICK_MS};
use check::{Explored, HANDED_OVER, LED, explore};

/// For how many ticks a calm group may be without a leader after a loss and a crash: a follower may have seen
/// a renewal just before it, sees the next one a lease later, and waits that one out; and one look is lost.
const SOON: u64 = 9;

const ONE_AUTHORITY: &str = "S1 one authority";
/// The second of two leaders at one tick got no higher token than the first.
const TOKENS_GROW: &str = "S2 tokens only grow";

/// Explores a variant; `counts` are states, unique states and depth.
#[track_caller]
fn holds(mut bounds: Bounds, long_ticks: u64, counts: (usize, usize, usize)) {
    let long = match std::env::var("EDGELECT_MODEL").as_deref() {
        Err(_) => false,
        Ok("long") => true,
        Ok(other) => panic!("EDGELECT_MODEL = {other}: the only word it knows is `long`"),
    };
    if long {
        bounds.last_tick = long_ticks;
    }
    let unseen = bounds.unseen();
    let Explored { states, unique, depth, broken, mut missing } = explore(bounds, long);
    if let Some((rule, acts)) = broken {
        let told: Vec<String> = acts.iter().map(|act| format!("    {act:?}")).collect();
        panic!("{rule} is broken by {} acts:\n{}", acts.len(), told.join("\n"));
    }
    missing.retain(|name| !unseen.contains(name));
    assert!(missing.is_empty(), "never seen: {missing:?}");
    if !long {
        assert_eq!((states, unique, depth), counts, "states, unique states, depth");
    }
}

impl Bounds {
    /// What cannot happen yet by the last tick: nobody leads within the grace of a first record, and nothing
    /// is handed over before the first lease has run out.
    fn unseen(&self) -> &'static [&'static str] {
        match (self.begin, self.last_tick) {
            (Begin::Absent, ..8) => &[LED, HANDED_OVER],
            (Begin::Absent, ..12) | (Begin::Released, ..5) => &[HANDED_OVER],
            _ => &[],
        }
    }
}

/// A leader and its followers.
fn led(name: &'static str, sessions: usize, last_tick: u64) -> Bounds {
    Bounds { begin: Begin::Led, ..Bounds::new(name, sessions, last_tick) }
}

/// A leader and a follower, and a misfortune.
fn meets(budget: Budget, name: &'static str, last_tick: u64) -> Bounds {
    Bounds { budget, ..led(name, 2, last_tick) }
}

#[test]
fn two_sessions_over_two_leases() {
    holds(led("two sessions", 2, 8), 9, (1_750_564, 1_015_225, 42));
}

#[test]
fn three_sessions() {
    holds(led("three sessions", 3, 5), 6, (787_647, 356_018, 30));
}

#[test]
fn two_sessions_begin_at_a_tombstone() {
    holds(Bounds::new("two at a tombstone", 2, 3), 4, (93_284, 54_152, 22));
}

#[test]
fn two_sessions_begin_at_nothing() {
    let absent = Bounds { begin: Begin::Absent, ..Bounds::new("two at nothing", 2, 3) };
    holds(absent, 4, (234_117, 145_205, 22));
}

#[test]
fn two_sessions_and_a_copied_write() {
    let budget = Budget { copies: 1, ..Budget::default() };
    holds(meets(budget, "two, a copied write", 7), 8, (946_178, 517_042, 31));
}

#[test]
fn two_sessions_and_a_pause() {
    let budget = Budget { pauses: 1, ..Budget::default() };
    holds(meets(budget, "two, a pause", 6), 7, (395_091, 222_731, 27));
}

#[test]
fn two_sessions_and_a_crash() {
    let budget = Budget { crashes: 1, ..Budget::default() };
    holds(meets(budget, "two, a crash", 6), 7, (994_406, 501_981, 31));
}

#[test]
fn two_sessions_and_a_deletion() {
    let budget = Budget { deletions: 1, ..Budget::default() };
    holds(meets(budget, "two, a deletion", 6).with_one_wall(), 7, (2_263_062, 1_248_251, 43));
}

#[test]
fn two_sessions_and_a_farewell() {
    let budget = Budget { farewells: 1, ..Budget::default() };
    holds(meets(budget, "two, a farewell", 5), 6, (660_761, 364_222, 38));
}

#[test]
fn two_sessions_and_a_store_that_tells_the_time() {
    holds(Bounds { dated: true, ..led("two, dated", 2, 7) }, 8, (604_123, 369_577, 31));
}

#[test]
fn two_sessions_with_clock_rates_within_the_margin() {
    holds(led("two, clocks apart", 2, 7).with_rates(&[240, 260], 100), 8, (441_340, 259_813, 31));
}

/// The promise ends where S1 says so; and the model would see it.
#[test]
fn clock_rates_beyond_the_margin_give_two_leaders() {
    let bounds = led("two, clocks too far apart", 2, 7).with_rates(&[240, 260], 10);
    let (rule, acts) = explore(bounds, false).broken.expect("the margin is too small");
    println!("    {rule} is broken by {} acts", acts.len());
    assert_eq!(rule, ONE_AUTHORITY);
}

#[test]
fn somebody_leads_again_soon_after_a_loss_and_a_crash() {
    let budget = Budget { losses: 1, crashes: 1, ..Budget::default() };
    let bounds = Bounds { budget, ..Bounds::new("two, calm", 2, 13) };
    holds(bounds.calm(SOON), 14, (507_719, 346_693, 63));
}

#[test]
fn somebody_leads_after_the_grace_of_a_first_record() {
    let budget = Budget { losses: 1, ..Budget::default() };
    let bounds =
        Bounds { begin: Begin::Absent, budget, ..Bounds::new("two, calm, at nothing", 2, 16) };
    holds(bounds.calm(SOON), 18, (11_913, 9_040, 59));
}

/// What makes one draw of jitter stand for all.
#[test]
fn whatever_jitter_a_pause_draws_it_ends_at_the_same_tick() {
    let bounds = Bounds::new("jitter", 2, 1);
    let config = &bounds.configs[0];
    let [first_ms, _] = config.retry_delays_ms;
    let spread_ms = config.leader_timeout_ms / 30 + config.leader_timeout_ms / 30 / 14 + 1;
    let mut pauses_ms = vec![
        (config.frequent_interval_ms, config.frequent_interval_ms / 10),
        (config.infrequent_interval_ms, config.frequent_interval_ms / 10),
        (config.leader_timeout_ms, spread_ms),
        (config.grace_ms(0), spread_ms),
    ];
    // A record that stays what it is, is looked at again after pauses that double.
    pauses_ms.extend((0..7).map(|times| (first_ms << times, (first_ms << times) / 2)));
    for (least_ms, more_ms) in pauses_ms {
        for tick_ms in [TICK_MS, 240] {
            let ticks = |ms: u64| ms.div_ceil(tick_ms);
            assert_eq!(ticks(least_ms), ticks(least_ms + more_ms), "{least_ms} at {tick_ms}");
        }
    }
}

/// Known bugs, planted one at a time: the model must see each that its bounds can show.
#[test]
fn each_bug_that_the_bounds_can_show_breaks_its_rule() {
    let two = || led("two sessions", 2, 8);
    let at_a_tombstone = || Bounds::new("two at a tombstone", 2, 3);
    let deletion =
        meets(Budget { deletions: 1, ..Budget::default() }, "two, a deletion", 6).with_one_wall();
    let farewell = meets(Budget { farewells: 1, ..Budget::default() }, "two, a farewell", 5);
    for (bug, bounds, rule) in [
        (Bug::AnchorAfterAnswer, two(), ONE_AUTHORITY),
        (Bug::ClaimAbsenceWithoutGrace, deletion, ONE_AUTHORITY),
        (Bug::RefusedIsSuccess, two(), TOKENS_GROW),
        (Bug::AuthorityIsAFlag, two(), ONE_AUTHORITY),
        (Bug::AgeFromSending, two(), ONE_AUTHORITY),
        (Bug::ReleaseRereadVersion, farewell, TOKENS_GROW),
        (Bug::NoSequence, at_a_tombstone(), "S4 every body is new"),
        (Bug::WallClocksCompared, at_a_tombstone(), TOKENS_GROW),
    ] {
        let explored = explore(Bounds { bug: Some(bug), ..bounds }, false);
        let (broken, acts) = explored.broken.unwrap_or_else(|| panic!("{bug:?} is not seen"));
        println!("    {bug:?}: {broken} is broken by {} acts", acts.len());
        assert_eq!(broken, rule, "{bug:?}: {acts:#?}");
    }
}
