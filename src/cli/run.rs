//! `edgelect run`: a command that runs only while this machine leads.

use std::future::pending;

use edgelect::driver::Host;
use edgelect::{lead, new_election};

use super::command::{Flags, code};
use super::place::Failure;
use super::runner::Runner;

const PAUSE_MS: u64 = 1_000;
const LONGEST_PAUSE_MS: u64 = 30_000;

/// Leads, and runs the command meanwhile; gives the exit code.
///
/// # Errors
/// The settings are wrong, or the store failed.
pub async fn run(flags: &Flags) -> Result<i32, Failure> {
    let elect = |host: &_, config| new_election(host, config).map_err(Failure::Machine);
    let runner = Runner::open(flags, elect)?;
    let campaign = async {
        runner.judge().await?;
        let work = async |term| {
            let mut pause_ms = PAUSE_MS;
            loop {
                let Some(ended) = runner.run(&term, None).await else { return pending().await };
                let again = flags.has("restart") && ended.started && ended.code != 0;
                if !again || runner.is_over() {
                    // Here: what comes once the authority is over counts for nothing to `lead`, which would go on.
                    runner.end(ended.code);
                    return ended.code;
                }
                runner.host.sleep(pause_ms).await;
                pause_ms = (2 * pause_ms).min(LONGEST_PAUSE_MS);
            }
        };
        let ended = lead(&runner.handle, &runner.store, &runner.host, work).await;
        ended.map(|code_of_it| code_of_it.unwrap_or(code("failed"))).map_err(Failure::Store)
    };
    runner.attend(campaign).await
}
