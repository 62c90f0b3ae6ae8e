//! `edgelect watch`: a line for each change of a group.

use std::convert::Infallible;

use edgelect::calendar;
use edgelect::driver::Host;
use edgelect::store::Fault;
use edgelect::{Config, Native};
use futures::future::try_join_all;
use serde_json::{Value, json};

use super::command::{Flags, code};
use super::place::{Failure, Place, groups, host, is_refusal, shown};
use super::status::{name, slot, text, time};
use super::tell;

const INTERVAL_MS: u64 = 5_000;
const SHORTEST_MS: u64 = 250;

/// Why nothing more is shown.
enum End {
    Failed(Fault),
    Unread,
}

/// Shows each change until a signal ends this process.
///
/// # Errors
/// The settings are wrong, or the store refuses the first read.
pub async fn watch(flags: &Flags) -> Result<i32, Failure> {
    let interval_ms = flags.number("interval").unwrap_or(INTERVAL_MS).max(SHORTEST_MS);
    let (groups, host) = (groups(flags)?, host()?);
    let follow = |group| follow(group, &host, interval_ms, flags.has("json"));
    match try_join_all(groups.iter().map(follow)).await {
        Err(End::Failed(fault)) => Err(Failure::Store(fault)),
        Err(End::Unread) | Ok(_) => Ok(code("done")),
    }
}

async fn follow(
    (config, store): &(Config, Place),
    host: &Native,
    interval_ms: u64,
    as_json: bool,
) -> Result<Infallible, End> {
    let mut told = None;
    loop {
        let look = match shown(config, store, host, None).await {
            Ok(look) => look,
            // What is refused at first is wrong, and not one change of many.
            Err(fault) if told.is_none() && is_refusal(&fault) => return Err(End::Failed(fault)),
            Err(fault) => json!({
                "group": config.lockfile_path,
                "state": "unknown",
                "error": tell::visible(&fault.message, 500),
            }),
        };
        let key = ["state", "leaderId", "term", "lastSlot", "paused", "error"]
            .map(|key| look[key].clone());
        if told.as_ref() != Some(&key) {
            let line = if as_json { object(look, host) } else { line(&look, host) };
            if !tell::print(&line) {
                return Err(End::Unread);
            }
        }
        told = Some(key);
        host.sleep(interval_ms).await;
    }
}

fn object(mut look: Value, host: &Native) -> String {
    look["at"] = calendar::rfc3339_with_ms(now_ms(host)).into();
    tell::json(&look)
}

fn line(look: &Value, host: &Native) -> String {
    let what = if look["state"] == "led" {
        let (leader, since) = (name(&look["leaderId"]), time(&look["since"]));
        let why = Some(text(&look["why"])).filter(|why| !why.is_empty());
        let why = why.map(|why| format!("; {why}")).unwrap_or_default();
        format!("{leader} leads since {since}, term {}{why}", look["term"])
    } else if look["error"].is_string() {
        text(&look["error"])
    } else {
        format!("nobody leads: {}", text(&look["why"]))
    };
    let slot = slot(look).map(|slot| format!("; slot {slot}")).unwrap_or_default();
    format!("{}  {}  {what}{slot}", time(&now_ms(host).into()), name(&look["group"]))
}

fn now_ms(host: &Native) -> i64 {
    i64::try_from(host.now().wall_ms).unwrap_or_default()
}
