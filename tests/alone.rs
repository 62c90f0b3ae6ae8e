//! One election, told answer by answer on virtual time: one rule at its edge, to the millisecond.

mod edges;
mod foreign;
mod instant;
mod on_the_way;
mod seen;
mod settings;
mod slots;
pub mod told;
