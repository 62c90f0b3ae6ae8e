//! One job per cron slot, on virtual time: triggers that fire twice, late, out of order or over one another, runners
//! that die, jobs that fail or take too long, stores that lose answers or tell no time.

#[path = "slots/ends.rs"]
mod ends;
#[path = "slots/missed.rs"]
mod missed;
#[path = "slots/once.rs"]
mod once;
#[path = "slots/past.rs"]
mod past;
#[path = "slots/settings.rs"]
mod settings;
#[path = "slots/untimed.rs"]
mod untimed;
#[allow(dead_code)] // Each suite uses a part of it.
mod virtual_time;
#[path = "slots/world.rs"]
mod world;
