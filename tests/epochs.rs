//! The epoch layout: what leaves and what its answers mean, and its elections against an adversary in virtual time.

#[path = "epochs/adversary.rs"]
mod adversary;
#[path = "epochs/bucket.rs"]
mod bucket;

#[test]
fn i1_i2_no_schedule_of_epochs_has_two_leaders_or_a_token_that_falls() {
    let first: u64 =
        std::env::var("EDGELECT_FIRST_SEED").map_or(0, |text| text.parse().expect("a number"));
    let count: u64 =
        std::env::var("EDGELECT_SCHEDULES").map_or(3_000, |text| text.parse().expect("a number"));
    let mut sum = adversary::Tally::default();
    for seed in first..first + count {
        let world = adversary::run(seed, false);
        if let Some(violation) = &world.violation {
            let told = adversary::run(seed, true).lines;
            let from = told.len().saturating_sub(120);
            panic!("{}\nseed {seed}: {violation}", told[from..].join("\n"));
        }
        sum.terms += world.tally.terms;
        sum.cleaned += world.tally.cleaned;
        sum.duplicates += world.tally.duplicates;
        sum.refused_late += world.tally.refused_late;
    }
    println!("{count} schedules: {sum:?}");
    assert!(sum.terms > 2 * count && sum.cleaned > count && sum.duplicates > count, "{sum:?}");
}
