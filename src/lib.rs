//! Leader election for work that must run on exactly one of many machines and has no server to ask.
//!
//! The members of a group share one small object in S3-compatible storage and change it by conditional
//! writes. Whoever wrote it last holds the lease; a lease that has not changed for its whole length may be
//! taken.
//!
//! # What is promised
//!
//! At any real instant at most one session of a group has *authority*, as long as clock rates differ by less
//! than the margin and the store's own clocks agree within `storeSkew + margin`. No member ever compares its
//! wall clock with another's. Each term has a fencing token that is higher than that of every term before it.
//!
//! # What is not
//!
//! Authority is a matter of time: it can end while a request of yours is on its way. Hand the term's token to
//! whatever you change and let it refuse lower ones. On hosts whose clock stands still between I/O what is
//! left of an authority is advice; the token protects. Members of other makes in the group (S3lect) bring
//! their own clock rules with them. A store that ignores conditions breaks all of this.
//!
//! # Layers
//!
//! Imports point down only: [`lease`], [`host`], [`clock`] and [`config`] know next to nobody; [`age`] and [`election`] know
//! them; [`store`] knows [`lease`]; [`driver`] joins an election, a store and a host, and is the only module
//! that knows all three; the faces (`js`, `worker`) come last. `tests/layers.rs` holds this.

pub mod age;
pub mod clock;
pub mod config;
pub mod driver;
pub mod election;
#[cfg(all(target_arch = "wasm32", feature = "figures"))]
pub mod figures;
pub mod host;
pub mod lease;
pub mod peer;
#[cfg(planted)]
pub mod planted;
pub mod sigv4;
pub mod status;
pub mod store;
pub mod vars;

#[cfg(all(target_arch = "wasm32", any(feature = "npm", feature = "worker")))]
pub mod bucket;
#[cfg(all(target_arch = "wasm32", feature = "npm"))]
pub mod js;
#[cfg(target_arch = "wasm32")]
pub mod web;
#[cfg(all(target_arch = "wasm32", feature = "worker"))]
pub mod worker;

pub use config::{Config, ConfigError, Follow, Settings};
pub use driver::{Handle, Host, run};
pub use election::{Authority, Election, Event};
pub use store::Store;
