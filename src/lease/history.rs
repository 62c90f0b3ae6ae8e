//! The past in a record: the last terms and slots before the one that it is about, newest last.
//!
//! For people and monitors only: it is shown, and never believed. No rule of the election reads it, so a wrong history,
//! or none, changes neither who leads nor which slot runs. Whoever replaces a record that it has read adds how that
//! record's term and slot ended, as far as the record itself proves it, in the write that replaces it. A record that
//! nobody can read, that is deleted, or that a member of another make writes without this field ends its history.

use std::sync::Arc;

use serde::Serialize;

use super::{Ask, Lease, MAX_TERM, Stamp};
use crate::calendar::YEAR_9999_MS;
use crate::json::{self, Object};
use crate::planted::planted;

/// The most terms and slots that a history has; the oldest are left out.
pub const MAX_ENTRIES: usize = 8;

/// The longest history as JSON, in bytes; the oldest entries are left out.
pub const MAX_HISTORY_BYTES: usize = 1024;

/// The longest history as another JSON writer may have stored it, in bytes; of a longer one nothing is read.
const MAX_READ_BYTES: usize = 4 * MAX_HISTORY_BYTES;

/// The longest name in a history, in bytes; a longer one is cut at a character.
const MAX_BY_BYTES: usize = 64;

/// The longest `how` and `outcome` that are read, in bytes.
const MAX_WORD_BYTES: usize = 16;

/// What a record tells of the terms and slots before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct History(Arc<[Past]>);

/// One entry of a history.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum Past {
    /// A term that has ended.
    Term(PastTerm),
    /// A slot that was claimed in the term before it in the list.
    Slot(PastSlot),
}

/// A term that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct PastTerm {
    /// The fencing token.
    pub term: u64,
    /// The `serverId` that held it.
    pub by: String,
    /// When it began, in milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// When its last record was written, in milliseconds since the Unix epoch. A tombstone does not say; there it is the
    /// store's `Last-Modified`, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// `released`, `parked`, `steppedDown` or `paused` at an operator's request, or `expired`: its last record was none of
    /// these.
    pub how: String,
}

/// A slot that was claimed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct PastSlot {
    /// The slot, in milliseconds since the Unix epoch.
    pub slot: u64,
    /// `ok`, `failed` or `stopped` by the record's closing write; `died` if the record was claimed without one; `open` if
    /// it was not claimed yet, so that its job may still run; `unknown` where the record does not say.
    pub outcome: String,
    /// The `serverId` that claimed it; `None` where nothing says which.
    pub by: Option<String>,
}

impl PastSlot {
    /// Whether a record is known to say how its job ended.
    pub fn finished(&self) -> bool {
        matches!(self.outcome.as_str(), "ok" | "failed" | "stopped")
    }

    /// The same, whose `by` is what `name` makes of it.
    pub(crate) fn with_name(self, name: impl Fn(&str) -> String) -> Self {
        Self { by: self.by.as_deref().map(name), ..self }
    }
}

impl History {
    /// The history of the record that replaces this one. `changed_ms` is when the store says that it was written, in
    /// milliseconds since the Unix epoch.
    pub fn after(before: &Lease, changed_ms: Option<u64>) -> Self {
        // Of what a member of another make has held, and of what nobody has led with, the record names no term.
        let (Some(_), Some(term), Some(acquired_ms)) =
            (&before.session, before.term, before.acquired.filter(|_| before.was_led()))
        else {
            return before.history.clone();
        };
        let mut entries = before.history.0.to_vec();
        let asked = before.operator.as_ref().filter(|asked| asked.term == Some(term));
        let (how, ended_ms) = match before.last_updated {
            Stamp::Released if asked.is_some_and(|asked| asked.ask == Ask::Pause) => {
                ("paused", changed_ms)
            }
            Stamp::Released if asked.is_some_and(|asked| asked.ask == Ask::StepDown) => {
                ("steppedDown", changed_ms)
            }
            Stamp::Released => ("released", changed_ms),
            Stamp::At(ms) if before.parked => ("parked", u64::try_from(ms).ok()),
            Stamp::At(ms) => ("expired", u64::try_from(ms).ok()),
        };
        let in_calendar = |ms: &u64| i64::try_from(*ms).is_ok_and(|ms| ms <= YEAR_9999_MS);
        entries.push(Past::Term(PastTerm {
            term,
            by: cut(&before.leader_id),
            from: u64::try_from(acquired_ms).ok().filter(in_calendar),
            to: ended_ms.filter(in_calendar),
            how: how.to_owned(),
        }));
        if claims_slot(before) {
            entries.extend(replaced_slot(before).map(Past::Slot));
        }
        Self::bounded(entries)
    }

    /// Reads the field of a record: what is no entry is left out, and nothing of it makes the record unusable.
    pub fn read(json: &str) -> Self {
        if json.len() > MAX_READ_BYTES {
            return Self::default();
        }
        Self::bounded(json::objects(json).iter().filter_map(read_entry).collect())
    }

    /// The entries, newest last.
    pub fn entries(&self) -> &[Past] {
        &self.0
    }

    /// The same, whose every `by` is what `name` makes of it.
    pub(crate) fn with_names(&self, name: impl Fn(&str) -> String) -> Self {
        let renamed = |past: &Past| match past.clone() {
            Past::Term(past) => Past::Term(PastTerm { by: name(&past.by), ..past }),
            Past::Slot(past) => Past::Slot(past.with_name(&name)),
        };
        Self(self.0.iter().map(renamed).collect())
    }

    /// The newest slot in it.
    pub fn last_slot(&self) -> Option<&PastSlot> {
        self.0.iter().rev().find_map(|past| match past {
            Past::Slot(past) => Some(past),
            Past::Term(_) => None,
        })
    }

    /// The list as JSON.
    pub fn to_json(&self) -> String {
        json::of(&*self.0)
    }

    fn bounded(mut entries: Vec<Past>) -> Self {
        let surplus = |entries: &[Past]| {
            entries.len() > MAX_ENTRIES || json::of(entries).len() > MAX_HISTORY_BYTES
        };
        while surplus(&entries) {
            let oldest = if planted!(HistoryLosesNewest) { entries.len() - 1 } else { 0 };
            entries.remove(oldest);
        }
        Self(entries.into())
    }
}

impl Serialize for History {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// The slot that a record shows, with its outcome so far; `None` where the record counts slots as claimed that nobody has
/// claimed, or names none.
pub fn shown_slot(lease: &Lease) -> Option<PastSlot> {
    let slot = lease.slot.filter(|slot| *slot <= MAX_TERM)?;
    let claimed = lease.slot_term?;
    if claims_slot(lease) {
        let by = Some(cut(&lease.leader_id));
        return Some(PastSlot { slot, outcome: outcome(lease, "open"), by });
    }
    // A term that runs no slots has kept it, and has said in the history what became of it.
    let told = lease.history.entries().iter().rev().find_map(|past| match past {
        Past::Slot(past) if past.slot == slot => Some(past.clone()),
        _ => None,
    });
    let by = lease.history.entries().iter().find_map(|past| match past {
        Past::Term(past) if past.term == claimed => Some(past.by.clone()),
        _ => None,
    });
    told.or_else(|| Some(PastSlot { slot, outcome: outcome(lease, "unknown"), by }))
}

/// The slot of a record that a claim replaces: one whose job was not closed by then has died.
fn replaced_slot(lease: &Lease) -> Option<PastSlot> {
    let mut past = shown_slot(lease)?;
    if past.outcome == "open" {
        past.outcome = if planted!(DeadSlotToldOk) { "ok" } else { "died" }.to_owned();
    }
    Some(past)
}

/// Whether the term that a record is about is the one that claimed its slot.
fn claims_slot(lease: &Lease) -> bool {
    lease.session.is_some() && lease.slot_term.is_some() && lease.slot_term == lease.term
}

fn outcome(lease: &Lease, otherwise: &str) -> String {
    let closed = lease.slot_took_ms.is_some();
    match (lease.slot_done, lease.slot_result.as_deref()) {
        (Some(true), _) if closed => "ok",
        (Some(false), Some("stopped")) if closed => "stopped",
        // A job that was called and gave no answer.
        (Some(false), Some(word)) if closed && word.starts_with("unknown") => "unknown",
        (Some(false), _) if closed => "failed",
        (Some(false), _) => otherwise,
        _ => "unknown",
    }
    .to_owned()
}

fn read_entry(object: &Object) -> Option<Past> {
    let whole = |name, most| object.get(name).and_then(json::whole).filter(|ms| *ms <= most);
    let time = |name| whole(name, YEAR_9999_MS.unsigned_abs());
    let word = |name| object.get(name).and_then(json::text).filter(|word| is_word(word));
    let by = cut(&object.get("by").and_then(json::text).filter(|by| !by.is_empty())?);
    if let Some(term) = whole("term", MAX_TERM) {
        let (from, to) = (time("from"), time("to"));
        return Some(Past::Term(PastTerm { term, by, from, to, how: word("how")? }));
    }
    let slot = whole("slot", MAX_TERM)?;
    Some(Past::Slot(PastSlot { slot, outcome: word("outcome")?, by: Some(by) }))
}

fn is_word(text: &str) -> bool {
    (1..=MAX_WORD_BYTES).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphabetic())
}

/// The beginning of a name that a history has room for.
fn cut(name: &str) -> String {
    let end = (0..=name.len().min(MAX_BY_BYTES)).rev().find(|end| name.is_char_boundary(*end));
    name[..end.unwrap_or(0)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::{Reading, read, write};

    fn lease_of(fields: &str) -> Lease {
        let text = format!(r#"{{"leaderID":"a","session":"s",{fields}}}"#);
        match read(text.as_bytes()) {
            Reading::Lease(lease) => *lease,
            other => panic!("{text} reads as {other:?}"),
        }
    }

    const LED: &str = r#""term":7,"acquired":"2026-11-21T06:58:00Z","slotTerm":7,"slot":60000"#;
    const RENEWED: &str = r#""lastUpdated":"2026-11-21T06:58:12Z""#;
    const RELEASED: &str = r#""lastUpdated":"0001-01-01T00:00:00Z""#;

    fn after(fields: &str, changed_ms: Option<u64>) -> String {
        History::after(&lease_of(fields), changed_ms).to_json()
    }

    #[test]
    fn a_replaced_record_leaves_how_its_term_and_its_slot_ended() {
        for (fields, how, to, outcome) in [
            (format!(r#"{RENEWED},"slotDone":false"#), "expired", 1_795_244_292_000_u64, "died"),
            (
                format!(r#"{RENEWED},"parked":true,"slotDone":true,"slotTookMs":5"#),
                "parked",
                1_795_244_292_000,
                "ok",
            ),
            (
                format!(r#"{RELEASED},"slotDone":false,"slotTookMs":5,"slotResult":"failed 500""#),
                "released",
                1_795_244_299_000,
                "failed",
            ),
            (
                format!(r#"{RELEASED},"slotDone":false,"slotTookMs":5,"slotResult":"stopped""#),
                "released",
                1_795_244_299_000,
                "stopped",
            ),
            (
                format!(r#"{RELEASED},"slotDone":false,"slotTookMs":5,"slotResult":"unknown: no""#),
                "released",
                1_795_244_299_000,
                "unknown",
            ),
            (RELEASED.to_owned(), "released", 1_795_244_299_000, "unknown"),
        ] {
            let term =
                format!(r#"{{"term":7,"by":"a","from":1795244280000,"to":{to},"how":"{how}"}}"#);
            let slot = format!(r#"{{"slot":60000,"outcome":"{outcome}","by":"a"}}"#);
            let told = after(&format!("{LED},{fields}"), Some(1_795_244_299_000));
            assert_eq!(told, format!("[{term},{slot}]"));
        }
        let unnamed = after(&format!("{LED},{RELEASED}"), None);
        assert!(!unnamed.contains("\"to\""), "{unnamed}");
    }

    #[test]
    fn what_names_no_term_that_was_held_adds_nothing() {
        for fields in [
            r#""term":7"#,
            r#""acquired":"2026-11-21T06:58:00Z""#,
            r#""session":null,"term":7,"acquired":"2026-11-21T06:58:00Z""#,
        ] {
            assert_eq!(after(fields, None), "[]", "{fields}");
        }
    }

    #[test]
    fn a_slot_that_another_term_has_kept_is_told_once() {
        let died = Lease { term: Some(8), leader_id: "b".to_owned(), ..lease_of(LED) };
        let told = History::read(r#"[{"slot":60000,"by":"a","outcome":"died"}]"#);
        let kept = Lease { history: told, slot_done: Some(false), ..died.clone() };
        let shown = shown_slot(&kept).unwrap();
        assert_eq!((shown.outcome.as_str(), shown.by.as_deref()), ("died", Some("a")));
        assert_eq!(History::after(&kept, None).to_json().matches("slot").count(), 1);
        // Where nothing says who claimed it, nobody is named.
        let lost = Lease { history: History::default(), ..kept };
        let shown = shown_slot(&lost).unwrap();
        assert_eq!((shown.outcome.as_str(), shown.by), ("unknown", None));
        // One that only counts as claimed is no slot that anybody had.
        assert_eq!(shown_slot(&Lease { slot_term: None, slot_done: Some(true), ..died }), None);
    }

    #[test]
    fn at_most_eight_entries_and_a_kilobyte_are_kept_and_the_oldest_go() {
        let mut lease = lease_of(&format!("{LED},{RENEWED},\"slotTerm\":null"));
        lease.leader_id = "9b2f8c1e-7a35-4d0e-9d4c-1f2e3a4b5c6d".to_owned();
        for term in 1..=20 {
            lease.term = Some(1_795_244_292_000 + term);
            lease.history = History::after(&lease, None);
        }
        assert_eq!(lease.history.entries().len(), MAX_ENTRIES, "UUIDs fit");
        assert!(lease.history.to_json().len() <= MAX_HISTORY_BYTES);
        let Past::Term(newest) = lease.history.entries().last().unwrap() else { panic!() };
        assert_eq!(newest.term, 1_795_244_292_020);
        lease.leader_id = "\u{1}".repeat(1_000);
        for _ in 0..9 {
            lease.history = History::after(&lease, None);
        }
        let told = lease.history.to_json();
        assert!(told.len() <= MAX_HISTORY_BYTES && !lease.history.entries().is_empty(), "{told}");
        lease.leader_id = "é".repeat(500);
        let Past::Term(cut) = History::after(&lease, None).entries().last().unwrap().clone() else {
            panic!()
        };
        assert_eq!(cut.by, "é".repeat(32));
    }

    #[test]
    fn whatever_stands_in_the_field_the_record_reads_and_its_history_is_bounded() {
        let entry = |n: u64| format!(r#"{{"term":{n},"by":"a","how":"expired"}}"#);
        let many = (1..=30).map(entry).collect::<Vec<_>>().join(" , ");
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        let long = format!(r#"[{{"term":1,"by":"{}","how":"expired"}}]"#, "x".repeat(3_000));
        let far = r#"[{"term":4503599627370497,"by":"a","how":"x"},{"slot":-1,"by":"a","outcome":"ok"},
            {"term":1,"by":"a","how":"expired","from":1e999,"to":"x"}]"#;
        for (json, entries) in [
            ("null", 0),
            ("7", 0),
            ("{}", 0),
            (r#""[]""#, 0),
            (r#"[1,null,[],"x",{},{"term":1},{"by":"a"},{"term":"1","by":"a","how":"x"}]"#, 0),
            (r#"[{"term":1,"by":"\ud800","how":"x"},{"term":1,"by":"","how":"x"}]"#, 0),
            (r#"[{"term":1,"by":"a","how":"<b>"},{"slot":1,"by":"a","outcome":""}]"#, 0),
            (r#"[{"term":1,"by":"a","how":"x","more":[1]},{"slot":1,"by":"a","outcome":"ok"}]"#, 2),
            (far, 1),
            (&deep, 0),
            (&long, 1),
            (&format!("[{many}]"), 8),
            (&format!("[{}{many}]", " ".repeat(5_000)), 0),
        ] {
            let lease = lease_of(&format!(r#""term":7,"history":{json},"slotTerm":{json}"#));
            assert_eq!(lease.history.entries().len(), entries, "{json}");
            assert!(lease.history.to_json().len() <= MAX_HISTORY_BYTES);
            assert_eq!(lease.extra.get("history"), None, "it is ours");
            let Reading::Lease(again) = read(&write(&lease)) else { panic!("{json}") };
            assert_eq!(*again, lease, "{json}");
        }
    }
}
