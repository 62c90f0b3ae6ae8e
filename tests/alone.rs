//! One election, told answer by answer on virtual time: one rule at its edge, to the millisecond.

#[path = "alone/foreign.rs"]
mod foreign;
#[path = "alone/in_step.rs"]
mod in_step;
#[path = "alone/refused.rs"]
mod refused;
#[path = "alone/revival.rs"]
mod revival;
#[path = "alone/seen.rs"]
mod seen;
#[path = "alone/shared_name.rs"]
mod shared_name;
#[path = "alone/single_clock.rs"]
mod single_clock;
#[path = "alone/slots.rs"]
mod slots;
#[path = "alone/told.rs"]
mod told;
