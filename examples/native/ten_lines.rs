//! Work that runs while this process leads: the `main.rs` of a program, beside the host that it copies (`host.rs`).
//!
//! ```text
//! EDGELECT_BUCKET=jobs EDGELECT_REGION=eu-central-1 EDGELECT_LOCKFILE_PATH=leader/report.json \
//! AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… cargo run --bin ten_lines
//! ```

mod host;
use edgelect::{Handle, S3Store, lead, new_election, vars};
use host::Native;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let env = |name: &str| std::env::var(name).ok();
    let host = Native::new()?;
    let config = vars::config(&vars::settings(env)?)?;
    let store = S3Store::from_vars(env, &config.lockfile_path, host.clone())?;
    let elector = Handle::new(new_election(&host, config)?);
    lead(&elector, &store, &host, async |term| println!("wrote as term {}", term.token)).await?;
    Ok(())
}
