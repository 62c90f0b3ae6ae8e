//! One election, told answer by answer on virtual time: one rule at its edge, to the millisecond.

mod foreign;
mod in_step;
mod refused;
mod revival;
mod seen;
mod shared_name;
mod single_clock;
mod slots;
pub mod told;
