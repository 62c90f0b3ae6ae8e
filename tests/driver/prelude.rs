//! What nearly every suite on virtual time uses.

pub use std::cell::{Cell, RefCell};
pub use std::rc::Rc;

pub use edgelect::election::{Election, Event, LostReason};
pub use edgelect::lease::{self, Format, Lease, Reading, Stamp};
pub use edgelect::request::{self, Request, Response};
pub use edgelect::store::memory::Memory;
pub use edgelect::store::{
    Answer, Condition, Fault, FaultKind, Operation, Outcome, Store, Version,
};
pub use edgelect::{Config, Follow, Handle, Host, Input, Settings, new_election};
pub use futures::executor::block_on;

pub use worlds::sim::chance::Chance;
pub use worlds::virtual_time::{
    EPOCH_MS, Hanging, Machine, Through, Virtual, config, config_of, undated,
};
pub use worlds::{bucket_with, credentials};

/// An empty store in memory by this host's wall clock.
pub fn memory(host: &Virtual) -> Memory {
    let host = host.clone();
    Memory::new(move || host.wall_ms())
}

/// What an elector says is wrong; empty where nothing is.
pub fn problem(handle: &Handle) -> String {
    handle.with(|election| election.problem().map(ToString::to_string)).unwrap_or_default()
}
