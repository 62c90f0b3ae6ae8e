//! `edgelect step-down`, `pause`, `resume`: what an operator asks of a group.

use edgelect::driver::Host;
use edgelect::operator::{OperatorError, Words, pause, resume, step_down};
use edgelect::{ConfigError, calendar};
use nix::unistd::{User, getuid};
use serde_json::json;

use super::command::{Flags, code};
use super::place::{Failure, named_group};
use super::tell;

/// Writes the request of this name; gives the exit code.
///
/// # Errors
/// The settings are wrong, or the store failed.
pub async fn ask(name: &str, flags: &Flags) -> Result<i32, Failure> {
    let (config, store, host) = named_group(flags)?;
    let user = || User::from_uid(getuid()).ok().flatten().map(|user| user.name);
    let by = flags.get("by").map(str::to_owned).or_else(user).unwrap_or_default();
    let words = Words { by, why: flags.get("why").unwrap_or_default().to_owned() };
    let until_ms = flags.number("until");
    let until_ms = until_ms.or(flags.number("for").map(|ms| host.now().wall_ms + ms));
    let asked = match name {
        "step-down" => step_down(&store, &host, &config, &words).await,
        "pause" => pause(&store, &host, &config, &words, until_ms).await,
        _ => resume(&store, &host, &config, &words).await,
    };
    let receipt = match asked {
        Ok(receipt) => receipt,
        Err(error) => return failed(error),
    };
    let leader = receipt.leader_id.as_deref().unwrap_or_default();
    let term = receipt.term.unwrap_or_default();
    if flags.has("json") {
        let (leader_id, term) = (&receipt.leader_id, receipt.term);
        let told = json!({ "written": receipt.written, "leaderId": leader_id, "term": term });
        tell::print(&tell::json(&told));
        return Ok(code("done"));
    }
    let text = match name {
        "step-down" => {
            format!("{leader} is asked to end term {term}: it does so at its next renewal.")
        }
        "pause" => {
            let end = until_ms.and_then(|ms| i64::try_from(ms).ok());
            let end = end.map(calendar::rfc3339_with_ms);
            let end = end.unwrap_or_else(|| "`edgelect resume`".to_owned());
            let ends = format!(" {leader} ends term {term} at its next renewal.");
            let ends = if receipt.leader_id.is_some() { ends.as_str() } else { "" };
            format!("The group is paused until {end}.{ends}")
        }
        _ if receipt.written => "The group is resumed.".to_owned(),
        _ => "The group is not paused: nothing was written.".to_owned(),
    };
    tell::print(&tell::visible(&text, 500));
    Ok(code("done"))
}

fn failed(error: OperatorError) -> Result<i32, Failure> {
    match error {
        OperatorError::Config(error) => {
            let field = format!("--{}", error.field);
            Err(Failure::Settings(ConfigError { field, ..error }.message()))
        }
        OperatorError::Store(fault) => Err(Failure::Store(fault)),
        OperatorError::NobodyLeads(text) => {
            tell::error(&text);
            Ok(code("nobody"))
        }
        error => Err(Failure::Machine(error.to_string())),
    }
}
