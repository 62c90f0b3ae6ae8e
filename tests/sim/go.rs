//! S3lect's record as Go's `encoding/json` writes and reads it; tests/golden/s3lect holds this against Go itself.

use std::fmt;

use edgelect::calendar::{self, Instant, YEAR_1_MS};
use edgelect::json;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Go's struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub leader_id: String,
    pub leader_addr: String,
    pub last_updated: Time,
}

/// Go's `time.Time`, as far as a record shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    pub unix_ms: i64,
    /// Nanoseconds beyond the millisecond.
    pub nanoseconds: u32,
    /// Minutes east of Greenwich.
    pub offset_minutes: i64,
}

impl Time {
    /// What `IsZero` knows: a resignation.
    pub const ZERO: Self = Self { unix_ms: YEAR_1_MS, nanoseconds: 0, offset_minutes: 0 };

    pub fn at(unix_ms: i64) -> Self {
        Self { unix_ms, nanoseconds: 0, offset_minutes: 0 }
    }

    pub fn is_zero(self) -> bool {
        (self.unix_ms, self.nanoseconds) == (YEAR_1_MS, 0)
    }

    /// `time.RFC3339Nano`: zeros at the end of the fraction are left out.
    fn text(self) -> String {
        let local_ms = self.unix_ms + self.offset_minutes * 60_000;
        let seconds = calendar::rfc3339(local_ms - local_ms.rem_euclid(1_000));
        let nanoseconds = local_ms.rem_euclid(1_000) * 1_000_000 + i64::from(self.nanoseconds);
        let fraction = match nanoseconds {
            0 => String::new(),
            some => format!(".{some:09}").trim_end_matches('0').to_owned(),
        };
        let minutes = self.offset_minutes.abs();
        let zone = match self.offset_minutes {
            0 => "Z".to_owned(),
            east => format!(
                "{}{:02}:{:02}",
                if east > 0 { '+' } else { '-' },
                minutes / 60,
                minutes % 60
            ),
        };
        format!("{}{fraction}{zone}", seconds.trim_end_matches('Z'))
    }

    /// Go reads RFC 3339 to the letter: a `T`, and a `Z` of that size.
    fn read(text: &str) -> Option<Self> {
        if text.as_bytes().get(10) != Some(&b'T') || text.ends_with('z') {
            return None;
        }
        let Instant { unix_ms, exact } = calendar::read_rfc3339(text)?;
        Some(Self { unix_ms, nanoseconds: u32::from(!exact), offset_minutes: 0 })
    }
}

/// `json.Marshal`.
pub fn marshal(record: &Record) -> Vec<u8> {
    let address = match record.leader_addr.as_str() {
        "" => String::new(),
        address => format!(r#","leaderAddr":{}"#, quoted(address)),
    };
    let updated = record.last_updated.text();
    let id = quoted(&record.leader_id);
    format!(r#"{{"leaderID":{id}{address},"lastUpdated":"{updated}"}}"#).into_bytes()
}

/// A text as Go quotes it: what HTML would take for its own is escaped.
fn quoted(text: &str) -> String {
    let html = ['<', '>', '&', '\u{2028}', '\u{2029}'];
    let escape = |one: char| format!("\\u{:04x}", u32::from(one));
    html.into_iter().fold(json::of(text), |text, one| text.replace(one, &escape(one)))
}

/// `json.Unmarshal`: a name counts whatever its case, by Unicode's folding, and of several the last; `null`
/// changes nothing; what has the wrong type is an error.
pub fn unmarshal(body: &[u8]) -> Option<Record> {
    let mut record =
        Record { leader_id: String::new(), leader_addr: String::new(), last_updated: Time::ZERO };
    let Fields(fields) = serde_json::from_slice(body).ok()?;
    let fields = fields.iter().map(|(name, value)| (name, value.get()));
    for (name, value) in fields.filter(|(_, value)| !json::is_null(value)) {
        match folded(name).as_str() {
            "leaderid" => record.leader_id = json::text(value)?,
            "leaderaddr" => record.leader_addr = json::text(value)?,
            "lastupdated" => record.last_updated = Time::read(&json::text(value)?)?,
            _ => {}
        }
    }
    Some(record)
}

/// An object's fields in the order in which they come, each as often as it does.
struct Fields(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// The two characters that fold to ASCII letters count as these.
fn folded(name: &str) -> String {
    let plain = |character| match character {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    };
    name.chars().map(plain).collect()
}
