//! Work that runs while this process leads, until SIGTERM or Ctrl-C: the `main.rs` of a program.
//!
//! ```text
//! EDGELECT_BUCKET=jobs EDGELECT_REGION=eu-central-1 EDGELECT_LOCKFILE_PATH=leader/report.json \
//! AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… cargo run --bin ten_lines
//! ```

use edgelect::{Handle, Native, lead, native, new_election};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let host = Native::new()?;
    let config = native::config()?;
    let store = native::store(&config, &host)?;
    let elector = Handle::new(new_election(&host, config)?);
    let leading = lead(&elector, &store, &host, async |term| {
        println!("wrote as term {}", term.token);
    });
    native::stop_on_signals(&elector, leading)?.await?;
    Ok(())
}
