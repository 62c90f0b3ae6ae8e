//! One job per cron slot, on virtual time: triggers that fire twice, late, out of order or over one another, runners
//! that die, jobs that fail or take too long, stores that lose answers or tell no time.

mod ends;
mod missed;
mod once;
mod settings;
mod untimed;
pub mod world;
