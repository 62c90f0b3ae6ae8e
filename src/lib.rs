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
//! # Use
//!
//! A program brings a [`Host`]: its clocks, timers, randomness and HTTP client. Feature `native` has one on tokio and reqwest,
//! `Native`, with settings and store out of the program's variables: `edgelect::native` shows the whole program. On any host:
//!
//! ```
//! use edgelect::{Handle, Host, S3Store, lead, new_election, vars};
//!
//! async fn report(host: impl Host + Clone) -> Result<(), Box<dyn std::error::Error>> {
//!     let env = |name: &str| std::env::var(name).ok();
//!     let config = vars::config(&vars::settings(env)?)?;
//!     let store = S3Store::from_vars(env, &config.lockfile_path, host.clone())?;
//!     let elector = Handle::new(new_election(&host, config)?);
//!     lead(&elector, &store, &host, async |term| {
//!         while term.remaining_ms() > 0 {
//!             write_report(term.token).await;
//!         }
//!     })
//!     .await?;
//!     Ok(())
//! }
//! # async fn write_report(_token: u64) {}
//! ```
//!
//! [`lead()`] judges the bucket before it trusts it, and is an error where that breaks its conditions; it drops the work as
//! soon as its authority ends. Who wants the events instead calls [`probe::judge`], then [`run`]; who has
//! another store implements [`Store`]. Nothing here is [`Send`]: one thread does it all. [`init`] starts a new
//! group without waiting, and belongs into no start script.
//!
//! On Cloudflare's Workers, beside crate `worker`, feature `workerd` brings a host made of a Worker's globals, R2 bindings
//! as a store, and the Worker's variables; `examples/rust-worker` in the repository is a whole Worker.
//!
//! # Features
//!
//! None is on by default; each is empty on the other kind of target.
//!
//! | feature | for | brings |
//! |---|---|---|
//! | `native` | programs | a host on tokio and reqwest, its variables, an end by signals, answers to peers: `edgelect::native` |
//! | `cli` | the program `edgelect` | `cargo install edgelect --features cli`, nothing in the library |
//! | `workerd` | Rust Workers | a host made of a Worker's globals, R2 bindings as a store: `edgelect::workerd` |
//! | `js`, `worker`, `figures`, `planted` | this repository | the npm package, its Worker, what is measured, what the tests plant |
//!
//! # Layers
//!
//! Imports point down only: [`lease`], [`hostname`], [`request`], [`clock`] and [`config`] know next to nobody; [`age`] and
//! [`election`] know them; [`store`] knows [`lease`]; [`driver`] joins an election, a store and a host, and is the only
//! module that knows all three; [`lead`](mod@lead), [`checkpoint`] and [`remote`] stand on it; the faces (`js`, `worker`) come last.
//! `tests/layers.rs` holds this.

pub mod age;
pub mod calendar;
pub mod checkpoint;
pub mod choice;
pub mod clock;
pub mod config;
pub mod cron;
pub mod driver;
pub mod election;
pub mod electors;
#[cfg(all(target_arch = "wasm32", feature = "figures"))]
pub mod figures;
pub mod groups;
pub mod heartbeat;
pub mod hostname;
pub mod isolate;
pub mod job;
pub mod json;
pub mod lead;
pub mod lease;
pub mod locker;
pub mod look;
pub mod metrics;
pub mod object_store_lock;
pub mod operator;
pub mod page;
pub mod peer;
#[cfg(not(feature = "planted"))]
mod planted;
#[cfg(feature = "planted")]
pub mod planted;
pub mod probe;
pub mod proof;
pub mod protocol;
#[cfg(any(test, all(target_arch = "wasm32", feature = "workerd")))]
mod rehearsal;
pub mod remote;
pub mod request;
pub mod scheduled;
pub mod shards;
pub mod sigv4;
pub mod slots;
pub mod status;
pub mod store;
pub mod tally;
mod text;
pub mod tick;
pub mod timers;
pub mod trouble;
pub mod vars;

#[cfg(all(target_arch = "wasm32", feature = "js"))]
pub mod bucket;
#[cfg(all(target_arch = "wasm32", feature = "js"))]
pub mod custom;
#[cfg(all(target_arch = "wasm32", feature = "js"))]
pub mod js;
#[cfg(all(not(target_arch = "wasm32"), feature = "native"))]
pub mod native;
#[cfg(all(target_arch = "wasm32", feature = "js"))]
pub mod task;
#[cfg(all(target_arch = "wasm32", feature = "js"))]
pub mod web;
#[cfg(all(target_arch = "wasm32", feature = "worker"))]
pub mod worker;
#[cfg(all(target_arch = "wasm32", feature = "workerd"))]
pub mod workerd;

pub use checkpoint::{Checkpoint, CheckpointError, Owner, Refusal};
pub use config::{Config, ConfigError, Follow, Settings};
pub use driver::{Handle, Host, init, new_election, new_schedule, run};
pub use election::{Authority, Election, Event, Input, Problem, Standing, Waiting};
pub use electors::budget::Limits;
pub use electors::{Electors, Member};
pub use lead::{Term, UnfencedTerm, lead, lead_unfenced};
pub use locker::{Locker, LockerStore};
#[cfg(all(not(target_arch = "wasm32"), feature = "native"))]
pub use native::Native;
pub use remote::DynamoDbStore;
pub use remote::EpochStore;
pub use remote::Route53Store;
pub use remote::{Provide, Remote, S3Store};
pub use scheduled::{Report, Run, RunEnd, SlotOutcome, run_scheduled};
pub use shards::Shards;
pub use sigv4::Credentials;
pub use slots::{Missed, Policy, Schedule, ScheduleSettings};
pub use store::Store;
pub use store::dynamodb::DynamoDbConfig;
pub use store::route53::Route53Config;
pub use store::s3::S3Config;
