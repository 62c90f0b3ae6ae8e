//! Prints what the events of some schedules come to, as the tests do that can plant bugs.

// It uses a part of it.
#[allow(dead_code)]
#[path = "../../sim/mod.rs"]
mod sim;

fn main() {
    println!("trace of 400 schedules: {:x}", sim::run::trace(200));
}
