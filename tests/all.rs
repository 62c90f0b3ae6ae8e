//! Every suite that needs neither a server nor a real clock: `cargo test --workspace --test all`, one of them by its name behind it.

mod alone;
mod answers;
mod checkpoint;
mod driver;
mod epochs;
mod mixed;
mod operator;
mod pages;
mod planted;
mod properties;
mod scale;
mod scenarios;
mod shards;
mod sigv4_vectors;
mod slots;

/// A file of the repository.
fn in_root(file: &str) -> String {
    [env!("CARGO_MANIFEST_DIR"), "/../../", file].concat()
}
