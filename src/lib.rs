//! skeleton
pub mod age;
pub mod clock;
pub mod config;
pub mod lease;
pub mod store;
pub mod election;
#[cfg(planted)]
pub mod planted;
