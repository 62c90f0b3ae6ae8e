//! After how many schedules the simulator finds each planted bug, as the page docs/generated/mutants.md.

use edgelect::planted::Bug;
use indicatif::{ProgressBar, ProgressStyle};

use worlds::table::{SCHEDULES, SURVIVORS, found_after};

/// Within how many schedules a bug has to be found from each base seed: of fifteen one may have no luck.
const MOST: u64 = 4 * SCHEDULES;

/// From how many base seeds each bug is looked for.
const BASE_SEEDS: u64 = 15;

/// How far apart the base seeds are, so that no schedule is run for two of them.
const APART: u64 = 1_000_000;

/// What stands before the table.
const HEAD: &str = "# Planted bugs

Printed by `npm run --silent prove -- mutants`. Each bug is planted alone, and schedules run until one breaks a rule.
The columns *median* and *worst* count these schedules from 15 base seeds; *over 20000* means that so many were not
enough from that seed. `npm test` looks from one seed, from which each bug is found. Depth `core` is the election over
a model of a store, `store` adds the real S3 code, and `epochs` is the layout of one object per epoch. A bug whose
last column says why it survives is looked for from one seed.
";

/// Prints the page, or the rows of these bugs alone; whether each bug was found from every base seed, but for those that survive.
pub fn table(only: &[Bug]) -> bool {
    let bugs = if only.is_empty() { Bug::ALL } else { only };
    let form = "{wide_bar} {pos} of {len} {msg}";
    let style = ProgressStyle::with_template(form).expect("a form that indicatif knows");
    let bar = ProgressBar::new(bugs.len() as u64 * BASE_SEEDS).with_style(style);
    if only.is_empty() {
        println!("{HEAD}");
        println!("| planted bug | what goes wrong | rule | depth | median | worst | found by |");
        println!("| --- | --- | --- | --- | ---: | ---: | --- |");
    }
    let mut complete = true;
    for bug in bugs.iter().copied() {
        bar.set_message(format!("{bug:?}"));
        let (mut after, mut check) = (Vec::new(), "");
        let survives = SURVIVORS.contains(&bug);
        // What is not expected to be found is looked for once.
        let (bases, most) = if survives { (1, SCHEDULES) } else { (BASE_SEEDS, MOST) };
        for base in 0..bases {
            match found_after(bug, base * APART, most) {
                Some((schedules, violation)) => {
                    after.push(schedules);
                    check = violation.check;
                }
                None => after.push(u64::MAX),
            }
            bar.inc(1);
        }
        bar.inc(BASE_SEEDS - bases);
        after.sort_unstable();
        complete &= survives || after.iter().all(|schedules| *schedules <= most);
        let (median, worst) = (after[after.len() / 2], after[after.len() - 1]);
        let found_by = if survives { bug.survives() } else { check };
        let depth = bug.depth().name();
        bar.suspend(|| {
            let (what, rule) = (bug.what(), bug.rule());
            let shown = |schedules| match schedules {
                u64::MAX => format!("over {most}"),
                found => found.to_string(),
            };
            let (median, worst) = (shown(median), shown(worst));
            println!("| {bug:?} | {what} | {rule} | {depth} | {median} | {worst} | {found_by} |");
        });
    }
    bar.finish_and_clear();
    complete
}
