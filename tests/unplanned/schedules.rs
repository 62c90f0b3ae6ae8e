//! So many schedules, and those that failed once, until one fails. An example of a copy that `node tests/unplanned/run.mjs` has made.

use worlds::sim::run::{Seed, failed_before, run};
use worlds::sim::world::Depth;

fn main() {
    let count = |at: usize| std::env::args().nth(at).and_then(|text| text.parse().ok()).unwrap_or(0);
    let of = |depth, numbers: std::ops::Range<u64>| numbers.map(move |number| Seed { depth, number });
    // Most are found by the first few.
    let soon = of(Depth::Core, 0..100).chain(of(Depth::Store, 0..30)).chain(failed_before());
    let later = of(Depth::Core, 100..count(1)).chain(of(Depth::Store, 30..count(2)));
    for seed in soon.chain(later) {
        if let Some(violation) = run(seed, false).violation {
            println!("found by {seed}: {}", violation.check);
            std::process::exit(3);
        }
    }
}
