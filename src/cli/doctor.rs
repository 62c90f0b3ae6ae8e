//! `edgelect doctor`, which judges a store, and `edgelect init`, which starts a group in it.

use std::future::pending;

use edgelect::driver::{InitError, init as start};
use edgelect::probe::{self, Effort, Finding, Judged, Progress, Report, Step, probe_until};
use edgelect::store::Store;
use serde_json::{Value, json};

use super::command::{Flags, code};
use super::place::{Failure, Variables, host, named_group};
use super::tell;

const RACES: u64 = 20;
/// An account has five requests a second of Route 53, for all its zones.
const ZONE_RACES: u64 = 1;
const MOST_RACES: u64 = 1_000;
const AGE_S: u64 = 5;

/// Judges a store step by step; gives the exit code.
///
/// # Errors
/// The settings are wrong.
pub async fn doctor(flags: &Flags) -> Result<i32, Failure> {
    // 1 condemns the store.
    tell::unwritten_ends_with(code("nobody"));
    match judge(flags).await {
        Err(Failure::Machine(text)) => {
            tell::error(&text);
            Ok(code("nobody"))
        }
        ended => ended,
    }
}

async fn judge(flags: &Flags) -> Result<i32, Failure> {
    let variables = Variables::new(flags, &[])?;
    let (lease, host) = (variables.config()?, host()?);
    let key = probe::key(&lease.lockfile_path, &host).map_err(Failure::Machine)?;
    let variables = variables.with_group(&key);
    let config = variables.config()?;
    let object = variables.store(&config, host.clone())?;
    let is_zone = matches!(object, edgelect::choice::AnyStore::Route53(_));
    let races = flags.number("races").unwrap_or(if is_zone { ZONE_RACES } else { RACES });
    if !(1..=MOST_RACES).contains(&races) {
        let text = format!("--races = {races}: must be a whole number from 1 to {MOST_RACES}");
        return Err(Failure::Settings(text));
    }
    let age_s = flags.number("age").unwrap_or(AGE_S);
    let effort = Effort { age_ms: age_s * 1_000, ..Effort::thorough(races as u32) };
    let as_json = flags.has("json");
    let waits = [Step::LaterCreate, Step::LaterUpdate];
    let mut waited = as_json || age_s <= 1;
    let tell = |progress: Progress<'_>| match progress {
        // The first of the two waits; not every store has both.
        Progress::Begins(step)
            if waits.contains(&step) && !std::mem::replace(&mut waited, true) =>
        {
            tell::print(&format!("  {:10}{}", "…", line(step, races, age_s)));
        }
        Progress::Done(one) if !as_json => {
            tell::print(&format!("  {:10}{}", one.finding.name(), line(one.step, races, age_s)));
            if let Some(why) = one.finding.why() {
                tell::print(&format!("            {}", tell::visible(why, 1_000)));
            }
        }
        _ => {}
    };
    let report = probe_until(&object, &host, &config, effort, tell, pending()).await;
    let report = report.map_err(Failure::Machine)?;
    if as_json {
        tell::print(&format!("{:#}", diagnosis(&report, object.describe())));
    } else {
        conclude(&report, &object.describe());
    }
    Ok(match (report.refusal(), report.finding()) {
        (Some(_), _) => code("settings"),
        (None, Finding::Holds) => code("done"),
        (None, Finding::Violated(_)) => code("failed"),
        (None, Finding::Unclear(_) | Finding::Refused(_)) => code("nobody"),
    })
}

fn conclude(report: &Report, store: &str) {
    if report.refusal().is_some() {
        let text = "The settings are wrong, so nothing was judged; see the step above";
        tell::print(&format!("{text}: {store}"));
        return;
    }
    if let Some(offset) = report.offset {
        let side = if offset.ms < 0 { "behind" } else { "ahead of" };
        let (far, error) = (offset.ms.unsigned_abs(), offset.error_ms);
        tell::print(&format!(
            "The store's clock is {far} ms {side} this machine's, give or take {error} ms. edgelect does not compare the two; members of other software may."
        ));
    }
    let text = match report.finding() {
        Finding::Holds => "The store keeps its conditions",
        Finding::Violated(_) => "Do not use this store for leases",
        Finding::Unclear(_) | Finding::Refused(_) => {
            "It cannot be told; see the step above, and try again"
        }
    };
    tell::print(&format!("{text}: {store}"));
}

/// The diagnosis, as `Elector.doctor` of the npm package gives it.
fn diagnosis(report: &Report, store: String) -> Value {
    let step = |one: &Judged| json!({ "step": one.step.name(), "finding": one.finding.name(), "why": one.finding.why() });
    json!({
        "store": store,
        "finding": report.finding().name(),
        "steps": report.judged.iter().map(step).collect::<Vec<_>>(),
        "refusal": report.refusal().map(|fault| json!({ "status": fault.status, "storeCode": fault.code })),
        "clockOffset": report.offset.map(|offset| offset.ms),
        "clockError": report.offset.map(|offset| offset.error_ms),
    })
}

fn line(step: Step, races: u64, age_s: u64) -> String {
    let what = match step {
        Step::Create => "must be taken, and seen at once",
        Step::Update => "must be taken",
        Step::Race => "five at once: one may land",
        Step::StaleRead => "must show the new one",
        Step::Clocks => "must agree within storeSkew",
        _ => "must be refused",
    };
    let name = match step {
        Step::Race => format!("race, {races} time{}", if races == 1 { "" } else { "s" }),
        _ => step.name().to_owned(),
    };
    let later = matches!(step, Step::LaterCreate | Step::LaterUpdate);
    let after = if later { format!(" after {age_s} s") } else { String::new() };
    format!("{name:36}{what}{after}")
}

/// Starts a new group; gives the exit code.
///
/// # Errors
/// The settings are wrong, or the store failed.
pub async fn init(flags: &Flags) -> Result<i32, Failure> {
    let (config, store, host) = named_group(flags)?;
    match start(&store, &host, &config).await {
        Ok(()) => {
            let path = &config.lockfile_path;
            tell::print(&format!("The group {path} is started: its first member leads at once."));
            Ok(code("done"))
        }
        Err(InitError::Store(fault)) => Err(Failure::Store(fault)),
        Err(error) => {
            tell::error(error.message());
            Ok(code("nobody"))
        }
    }
}
