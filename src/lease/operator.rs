//! An operator's request in a record: step down, pause, resume.
//!
//! It is written over the record by compare-and-swap, and every other field stays as it was, so that nobody's authority
//! or wait becomes longer or shorter by it. Only the version is new. The holder's next write is refused, and its read-back
//! shows the request. What cannot be read as a request counts as none, and the next write of a member drops it.

use serde::Serialize;

use super::Lease;
use crate::calendar;
use crate::json::{self, Object};
use crate::planted::planted;
use crate::text::{first, quoted};

/// The longest `by` and `why`, in characters.
pub const MAX_TEXT: usize = 200;

/// The longest id, in characters.
const MAX_ID: usize = 64;

/// The longest request as JSON, in bytes; a longer one counts as none.
const MAX_BYTES: usize = 8 * 1024;

/// The name of the field.
pub(super) const FIELD: &str = "operator";

/// What an operator asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// The term of the record ends, and its holder leaves the next one to others.
    StepDown,
    /// The term of the record ends, and nobody claims the lease until it is resumed.
    Pause,
    /// Members may claim again.
    Resume,
}

impl Ask {
    /// The word in the record, for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::StepDown => "stepDown",
            Self::Pause => "pause",
            Self::Resume => "resume",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Self::StepDown, Self::Pause, Self::Resume].into_iter().find(|ask| ask.name() == name)
    }
}

/// An operator's request, as the record carries it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OperatorRequest {
    /// What is asked for.
    pub ask: Ask,
    /// Random, so that no two bodies are equal (S4) and the request is known again.
    pub id: String,
    /// Who asks, for people.
    pub by: String,
    /// Why, for people.
    pub why: String,
    /// When, in milliseconds since the Unix epoch. For people.
    pub at_ms: Option<u64>,
    /// When a pause ends by itself, in milliseconds since the Unix epoch, by storage time.
    pub until_ms: Option<u64>,
    /// The term that is to end by [`Ask::StepDown`]; a later one does not obey.
    pub term: Option<u64>,
    /// The session that holds that term.
    pub session: Option<String>,
}

#[derive(Serialize)]
struct Written<'a> {
    ask: &'static str,
    id: &'a str,
    by: &'a str,
    why: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    term: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
}

impl OperatorRequest {
    /// Reads the field of a record. Foreign texts are cut to what a request may have.
    pub fn read(json: &str) -> Option<Self> {
        let fields = Object::read(json.as_bytes()).filter(|_| json.len() <= MAX_BYTES)?;
        let given = |name| fields.get(name).filter(|json| !json::is_null(json));
        let text = |name, most| given(name).and_then(json::text).map(|text| plain(&text, most));
        // A pause whose end nobody can read would last for good.
        let until = given("until").map(|json| read_time(json).ok_or(())).transpose().ok()?;
        Some(Self {
            ask: Ask::named(&given("ask").and_then(json::text)?)?,
            id: text("id", MAX_ID).filter(|id| !id.is_empty())?,
            by: text("by", MAX_TEXT).unwrap_or_default(),
            why: text("why", MAX_TEXT).unwrap_or_default(),
            at_ms: given("at").and_then(read_time),
            until_ms: until,
            term: given("term").and_then(json::whole),
            session: text("session", super::MAX_NAME_BYTES),
        })
    }

    pub(super) fn to_json(&self) -> String {
        let time =
            |ms: Option<u64>| ms.and_then(|ms| i64::try_from(ms).ok()).map(calendar::rfc3339);
        json::of(&Written {
            ask: self.ask.name(),
            id: &self.id,
            by: &self.by,
            why: &self.why,
            at: time(self.at_ms),
            until: time(self.until_ms),
            term: self.term,
            session: self.session.as_deref(),
        })
    }

    /// The record with this request and nothing else changed.
    pub fn over(self, lease: &Lease) -> Lease {
        let mut asked = Lease { operator: Some(self), ..lease.clone() };
        if planted!(RequestCountsAsWrite) {
            asked.sequence += 1;
        }
        asked
    }

    /// Whether nobody may claim because of it, at this storage time in milliseconds since the Unix epoch.
    pub fn pauses(&self, storage_ms: u64) -> bool {
        self.ask == Ask::Pause && self.until_ms.is_none_or(|until_ms| storage_ms < until_ms)
    }

    /// Whether it asks this session to end this term.
    pub fn ends(&self, term: u64, session: &str) -> bool {
        let meant = (self.term, self.session.as_deref()) == (Some(term), Some(session));
        self.ask == Ask::StepDown && meant
    }

    /// Who asked and why, for people.
    pub fn told(&self) -> String {
        let by = if self.by.is_empty() { "an operator".to_owned() } else { quoted(&self.by) };
        let why =
            if self.why.is_empty() { "no reason given".to_owned() } else { quoted(&self.why) };
        let end = match self.until_ms.and_then(|ms| i64::try_from(ms).ok()) {
            Some(until_ms) => format!("until {}", calendar::rfc3339(until_ms)),
            None => "until somebody resumes it".to_owned(),
        };
        match self.ask {
            Ask::Pause => format!("{by} has paused the group {end}: {why}"),
            Ask::StepDown => format!("{by} has asked the leader to step down: {why}"),
            Ask::Resume => format!("{by} has resumed the group: {why}"),
        }
    }
}

/// A text without control characters and without those that change the direction of what follows, cut.
fn plain(text: &str, most: usize) -> String {
    let turns = |character| matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let shown = text.chars().filter(|character| !character.is_control() && !turns(*character));
    let shown: String = shown.collect();
    first(&shown, most).to_owned()
}

fn read_time(json: &str) -> Option<u64> {
    let instant = calendar::read_rfc3339(&json::text(json)?)?;
    u64::try_from(instant.unix_ms).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_request_is_cut_or_counts_as_none() {
        let long = "x".repeat(300);
        let json = format!(r#"{{"ask":"pause","id":"1","by":"{long}","why":"a\u0007b","at":7}}"#);
        let request = OperatorRequest::read(&json).unwrap();
        assert_eq!((request.by.len(), request.why.as_str(), request.at_ms), (200, "ab", None));
        for json in [
            "true",
            r#"{"ask":"drain","id":"1"}"#,
            r#"{"ask":"pause"}"#,
            r#"{"ask":"pause","id":7}"#,
            r#"{"ask":"pause","id":"1","until":"soon"}"#,
            &format!(r#"{{"ask":"pause","id":"1","more":"{}"}}"#, "x".repeat(MAX_BYTES)),
        ] {
            assert_eq!(OperatorRequest::read(json), None, "{json}");
        }
    }

    #[test]
    fn a_request_changes_nothing_else_of_a_record_and_reads_back_in_both_formats() {
        let request = OperatorRequest {
            ask: Ask::StepDown,
            id: "1".to_owned(),
            by: "ada".to_owned(),
            why: "\"maintenance\"".to_owned(),
            at_ms: Some(1_795_244_292_345),
            until_ms: None,
            term: Some(7),
            session: Some("s".to_owned()),
        };
        let mut lease = Lease::bare("a", super::super::Stamp::At(1_795_244_292_345));
        (lease.session, lease.term, lease.lease_ms) = (Some("s".to_owned()), Some(7), Some(15_000));
        (lease.sequence, lease.acquired) = (3, Some(1_795_244_292_000));
        let asked = request.clone().over(&lease);
        assert_eq!(Lease { operator: None, ..asked.clone() }, lease);
        for format in [super::super::Format::Native, super::super::Format::Kubernetes] {
            let read = format.read(format.write(&asked).as_bytes());
            assert_eq!(read, super::super::Reading::Lease(Box::new(asked.clone())), "{format:?}");
        }
        assert!(request.ends(7, "s") && !request.ends(8, "s") && !request.ends(7, "t"));
    }
}
