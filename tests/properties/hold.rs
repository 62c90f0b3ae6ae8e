//! Holds a rule against drawn cases, and tells the shortest case that breaks it once instead of at
//! every step to it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use proptest::strategy::Strategy;
use proptest::test_runner::{
    Config, FileFailurePersistence, RngSeed, TestCaseError, TestError, TestRunner,
};

thread_local! {
    static SEEN: RefCell<BTreeMap<String, u32>> = RefCell::default();
    static QUIET: Cell<bool> = const { Cell::new(false) };
    static TOLD: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Draws so many cases and lets the rule panic on them. `regressions` is the file of those that
/// ever failed.
pub fn hold<S: Strategy>(regressions: &'static str, cases: u32, drawn: S, rule: impl Fn(S::Value)) {
    let asked = Config::default();
    let config = Config {
        cases: if given("PROPTEST_CASES") { asked.cases } else { cases },
        rng_seed: if given("PROPTEST_RNG_SEED") { asked.rng_seed } else { RngSeed::Fixed(1) },
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(regressions))),
        ..asked
    };
    let seed = config.rng_seed;
    SEEN.take();
    match TestRunner::new(config).run(&drawn, |case| quietly(|| rule(case))) {
        Ok(()) => {}
        Err(TestError::Fail(reason, case)) => panic!(
            "{reason}\nbroken by {case:?}\n(found with PROPTEST_RNG_SEED={seed}; {regressions} has \
             the case now and it is tried first: keep it)"
        ),
        Err(TestError::Abort(reason)) => panic!("the cases cannot be drawn: {reason}"),
    }
}

fn given(name: &str) -> bool {
    std::env::var_os(name).is_some()
}

/// Counts a case of this kind, if it really is one.
pub fn saw(kind: &str, really: bool) {
    SEEN.with_borrow_mut(|seen| *seen.entry(kind.to_owned()).or_default() += u32::from(really));
}

/// Holds that a property drew enough of each kind that it is about, in the run that draws the same
/// cases each time.
pub fn drew<const N: usize>(kinds: [&str; N], least: u32) {
    let usual = !given("PROPTEST_CASES") && !given("PROPTEST_RNG_SEED");
    let seen = SEEN.with_borrow(BTreeMap::clone);
    let enough = kinds.iter().all(|kind| seen.get(*kind).is_some_and(|number| *number >= least));
    assert!(!usual || enough, "too few of a kind, {least} are needed of {kinds:?}: {seen:?}");
}

fn quietly(work: impl FnOnce()) -> Result<(), TestCaseError> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |info| {
            if QUIET.get() {
                TOLD.set(info.to_string());
            } else {
                usual(info);
            }
        }));
    });
    QUIET.set(true);
    let ended = catch_unwind(AssertUnwindSafe(work));
    QUIET.set(false);
    ended.map_err(|_| TestCaseError::fail(TOLD.take()))
}
