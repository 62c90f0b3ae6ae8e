//! Properties of everything that reads what others wrote: drawn inputs against the rules in
//! `properties/rules`, which the fuzz targets hold too. Every run draws the same cases;
//! `PROPTEST_RNG_SEED=7` draws others, `PROPTEST_CASES=100000` more. What ever failed stands in
//! `properties/regressions` and is tried first.

mod addresses;
mod answers;
mod draw;
mod hold;
mod kubernetes;
mod peers;
mod records;
mod rules;
mod settings;
