//! What each answer of Route 53 means, and a fleet beside a Route 53 that answers late, old, or not at all.
#![cfg(feature = "route53")]

#[path = "route53/answers.rs"]
mod answers;
#[path = "route53/fleet.rs"]
mod fleet;
#[allow(dead_code, reason = "its store is of other tests")]
mod virtual_time;
#[path = "route53/zone.rs"]
mod zone;
