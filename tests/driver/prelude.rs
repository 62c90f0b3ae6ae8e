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

use edgelect::status::status;

/// An empty store in memory by this host's wall clock.
pub fn memory(host: &Virtual) -> Memory {
    let host = host.clone();
    Memory::new(move || host.wall_ms())
}

/// What an elector says is wrong; empty where nothing is.
pub fn problem(handle: &Handle) -> String {
    handle.with(|election| election.problem().map(ToString::to_string)).unwrap_or_default()
}

/// What an elector shows of itself to its own program.
pub fn status_of(handle: &Handle, host: &Virtual) -> serde_json::Value {
    let text = handle.with(|election| status(election, host.now(), handle.requests()));
    serde_json::from_str(&text).expect("a status is JSON")
}

/// The record in these bytes.
pub fn lease_of(body: &[u8]) -> Lease {
    match lease::read(body) {
        Reading::Lease(lease) => *lease,
        other => panic!("unreadable: {other:?}"),
    }
}
