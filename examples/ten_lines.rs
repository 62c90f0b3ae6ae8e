//! Work that runs while this process leads: all that a program says, besides the host that it copies.
//!
//! ```text
//! EDGELECT_BUCKET=jobs EDGELECT_REGION=eu-central-1 EDGELECT_LOCKFILE_PATH=leader/report.json \
//! EDGELECT_ACCESS_KEY_ID=… EDGELECT_SECRET_ACCESS_KEY=… cargo run --example ten_lines
//! ```

#[path = "native/host.rs"]
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
    lead(&elector, &store, &host, async |term| write_report(term.token).await).await?;
    Ok(())
}

async fn write_report(token: u64) {
    println!("wrote as term {token}");
}
