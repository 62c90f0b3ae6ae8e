//! `edgelect status`: who leads, and why nobody does.

use edgelect::calendar;
use edgelect::look::Due;
use futures::future::try_join_all;
use serde_json::Value;

use super::command::{Flags, code};
use super::place::{Failure, groups, host, shown};
use super::tell;

const LATE_MS: u64 = 60_000;
const HEAD: [&str; 6] = ["GROUP", "LEADER", "SINCE", "TERM", "LEFT", "LAST-SLOT"];
const LONGEST_NAME: usize = 60;

/// Shows each group once; gives the exit code.
///
/// # Errors
/// The settings are wrong, or the store failed.
pub async fn status(flags: &Flags) -> Result<i32, Failure> {
    let late_ms = flags.number("late").unwrap_or(LATE_MS);
    if flags.number("period") == Some(0) {
        let text = "--period = 0: it is the time between two slots, such as 1h";
        return Err(Failure::Settings(text.to_owned()));
    }
    let due = flags.number("period").map(|period_ms| Due { period_ms, late_ms });
    let (groups, host) = (groups(flags)?, host()?);
    let looks = try_join_all(groups.iter().map(|(config, store)| shown(config, store, &host, due)));
    let looks = looks.await.map_err(Failure::Store)?;
    let lines = if flags.has("json") {
        looks.iter().map(tell::json).collect()
    } else {
        let columns = terminal_size::terminal_size_of(std::io::stdout())
            .map(|(width, _)| usize::from(width.0));
        page(&looks, columns.unwrap_or(usize::MAX))
    };
    tell::print(&lines.join("\n"));
    Ok(looks.iter().map(verdict).max().unwrap_or_default())
}

fn verdict(look: &Value) -> i32 {
    match look["slotOverdue"].as_bool() {
        Some(true) => code("overdue"),
        overdue if overdue == Some(false) || look["state"] == "led" => code("done"),
        _ => code("nobody"),
    }
}

/// The table, or where it does not fit a list for each group; then why nobody leads, and the last terms.
fn page(looks: &[Value], columns: usize) -> Vec<String> {
    let rows: Vec<[String; 6]> = looks.iter().map(row).collect();
    let long = |text: &str| text.chars().count();
    let width = |at: usize| rows.iter().map(|row| long(&row[at])).fold(HEAD[at].len(), usize::max);
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    let line = |cells: &[&str]| {
        let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let cells = |row: &[String; 6]| line(&row.each_ref().map(String::as_str));
    let list = |row: &[String; 6]| {
        let lines = HEAD.iter().zip(row).map(|(head, cell)| format!("{head:9}  {cell}"));
        lines.collect::<Vec<_>>().join("\n")
    };
    let mut lines = if widths.iter().sum::<usize>() + 2 * (HEAD.len() - 1) <= columns {
        [line(&HEAD)].into_iter().chain(rows.iter().map(cells)).collect()
    } else {
        vec![rows.iter().map(list).collect::<Vec<_>>().join("\n\n")]
    };
    lines.extend(looks.iter().flat_map(notes));
    lines
}

fn row(look: &Value) -> [String; 6] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    [
        name(&look["group"]),
        or_dash(Some(name(&look["leaderId"])).filter(|_| look["state"] == "led")),
        or_dash(Some(time(&look["since"])).filter(|_| !look["since"].is_null())),
        or_dash(look["term"].as_u64().map(|term| term.to_string())),
        or_dash(look["leftMs"].as_u64().map(|ms| format!("{}s", ms.div_ceil(1_000)))),
        or_dash(slot(look)),
    ]
}

/// The last slot and how it has ended.
pub fn slot(look: &Value) -> Option<String> {
    let last = Some(&look["lastSlot"]).filter(|last| !last.is_null())?;
    Some(format!("{} {}", time(&last["slot"]), name(&last["outcome"])))
}

fn notes(look: &Value) -> Vec<String> {
    let group = name(&look["group"]);
    let mut notes = Vec::new();
    if look["why"].is_string() {
        let state = if look["state"] == "led" { "" } else { "nobody leads: " };
        notes.push(format!("{group}: {state}{}", text(&look["why"])));
    }
    if look["slotOverdue"] == true {
        let last = Some(time(&look["lastSlot"]["slot"])).filter(|_| !look["lastSlot"].is_null());
        let last = last.map(|at| format!("the last one was that of {at}"));
        let last = last.unwrap_or_else(|| "none has run".to_owned());
        notes.push(format!("{group}: the next slot is overdue; {last}"));
    }
    let past = look["history"].as_array().map(Vec::as_slice).unwrap_or_default();
    let terms: Vec<&Value> = past.iter().filter(|one| one["term"].as_u64() > Some(0)).collect();
    if !terms.is_empty() {
        notes.push(format!("{group}: terms before:"));
    }
    for one in terms.into_iter().rev() {
        let (term, by, how) = (&one["term"], name(&one["by"]), name(&one["how"]));
        let (from, to) = (time(&one["from"]), time(&one["to"]));
        notes.push(format!("  {term}  {by}  {from} to {to}  {how}"));
    }
    notes
}

/// A name out of a record, which anybody may have written.
pub fn name(value: &Value) -> String {
    tell::visible(value.as_str().unwrap_or_default(), LONGEST_NAME)
}

/// A sentence.
pub fn text(value: &Value) -> String {
    tell::visible(value.as_str().unwrap_or_default(), 500)
}

/// A time to the second, in UTC.
pub fn time(value: &Value) -> String {
    match value.as_i64().filter(|ms| (calendar::YEAR_1_MS..=calendar::YEAR_9999_MS).contains(ms)) {
        Some(ms) => calendar::rfc3339(ms - ms.rem_euclid(1_000)),
        None => "?".to_owned(),
    }
}
