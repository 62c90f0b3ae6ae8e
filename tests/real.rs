//! The suites of stores and of the native host; two of them need real stores: `npm test -- --only stores`, `--only rust`.

mod conformance;
mod conformance_live;
#[path = "conformance/double.rs"]
mod double;
#[path = "conformance/histories.rs"]
mod histories;
mod native;
mod stores;

use worlds::sim::chance;
