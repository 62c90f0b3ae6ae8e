//! The lease item: its attributes, the version that three of them make, and what an item of another make says.

use std::collections::BTreeMap;

use percent_encoding::{percent_decode_str, utf8_percent_encode};
use sha2::{Digest, Sha256};

use crate::calendar::YEAR_9999_MS;
use crate::json::{self, Object};
use crate::lease::{Lease, Stamp};
use crate::sigv4::RESERVED;
use crate::store::Version;

/// The three attributes that tell one state of the item from every other, as JSON of the service; `None` where the
/// item has none of that name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    pub ttl: Option<String>,
    pub owner: Option<String>,
    pub revision: Option<String>,
}

impl Held {
    pub fn named(&self) -> [(&'static str, &Option<String>); 3] {
        [("ttl", &self.ttl), ("ownerId", &self.owner), ("revision", &self.revision)]
    }

    /// What differs from it in one of the three.
    pub fn near_misses(&self) -> [Self; 3] {
        let other = |kind, value| Some(attribute(kind, value));
        [
            Self { ttl: other("N", "1"), ..self.clone() },
            Self { owner: other("S", "nobody"), ..self.clone() },
            Self { revision: other("S", "none"), ..self.clone() },
        ]
    }

    /// The three, and with what else the state differs; of characters that any header takes.
    pub fn version(&self, besides: Option<&str>) -> Version {
        let mut parts = self.named().map(|(_, value)| encode(value.as_deref())).join("/");
        if let Some(besides) = besides {
            parts.push('/');
            parts.push_str(besides);
        }
        Version(parts)
    }

    /// What a version names. One that no item here ever had is taken for a revision that nothing has.
    pub fn of(version: &Version) -> Self {
        let mut parts = version.0.split('/');
        let mut next = || decode(parts.next()?);
        match (next(), next(), next()) {
            (Some(ttl), Some(owner), Some(revision)) => Self { ttl, owner, revision },
            _ => Self { revision: Some(attribute("S", &version.0)), ..Self::default() },
        }
    }

    /// The condition. Without the first part, one on attributes that are not there would hold of an absent item.
    pub fn expression(&self) -> String {
        let mut expression = "attribute_exists(pk)".to_owned();
        for ((_, value), [name, given]) in self.named().into_iter().zip(PLACEHOLDERS) {
            match value {
                Some(_) => expression.push_str(&format!(" AND {name} = {given}")),
                None => {
                    expression.push_str(&format!(" AND attribute_not_exists({name})"));
                }
            }
        }
        expression
    }

    pub fn values(&self) -> Option<Object> {
        let mut values = Object::new();
        for ((_, value), [_, given]) in self.named().into_iter().zip(PLACEHOLDERS) {
            if let Some(value) = value {
                values.set(given, value.as_str());
            }
        }
        Some(values).filter(|values| *values != Object::new())
    }
}

/// How expressions name the three; `ttl` is a reserved word.
const PLACEHOLDERS: [[&str; 2]; 3] = [["#t", ":t"], ["#o", ":o"], ["#r", ":r"]];

pub(super) const NAMES: [(&str, &str); 3] = [("#t", "ttl"), ("#o", "ownerId"), ("#r", "revision")];

/// A foreign item as a record: who, how long, and what our own attributes beside them still tell, so that tokens and
/// slots do not fall. `written_ms` is when it was written, as its `ttl` tells it: for people, and no rule reads it.
pub(super) fn foreign(
    kept: Option<Lease>,
    owner: String,
    lease_ms: Option<u64>,
    written_ms: u64,
) -> Lease {
    let kept = kept.as_ref();
    let written_ms = i64::try_from(written_ms).unwrap_or(i64::MAX).min(YEAR_9999_MS);
    let last_updated = match kept.map(|lease| lease.last_updated) {
        // A renewal of theirs moves `ttl` and leaves our record as it was.
        Some(Stamp::At(ms)) => Stamp::At(ms.max(written_ms)),
        _ => Stamp::At(written_ms),
    };
    Lease {
        term: kept.and_then(|lease| lease.term),
        // The session that wrote the record may lead until its own lease is over, whoever moved the item since.
        lease_ms: lease_ms.max(kept.and_then(|lease| lease.lease_ms)),
        transitions: kept.map_or(0, |lease| lease.transitions),
        slot: kept.and_then(|lease| lease.slot),
        slot_done: kept.and_then(|lease| lease.slot_done),
        slot_result: kept.and_then(|lease| lease.slot_result.clone()),
        slot_took_ms: kept.and_then(|lease| lease.slot_took_ms),
        slot_failures: kept.and_then(|lease| lease.slot_failures),
        slot_term: kept.and_then(|lease| lease.slot_term),
        history: kept.map(|lease| lease.history.clone()).unwrap_or_default(),
        extra: kept.map(|lease| lease.extra.clone()).unwrap_or_default(),
        ..Lease::bare(owner, last_updated)
    }
}

pub(super) fn revision(ttl_s: u64, owner: &str, text: &str) -> String {
    digest(&[&ttl_s.to_string(), &json::of(owner), text])
}

/// Thirty-two digits of a hash of the parts, none of which but the last may hold a line break.
pub(super) fn digest(parts: &[&str]) -> String {
    let mut hex = hex::encode(Sha256::digest(parts.join("\n")));
    hex.truncate(32);
    hex
}

/// A value with its type, as the service writes it.
pub(super) fn attribute(kind: &str, text: &str) -> String {
    json::of(&BTreeMap::from([(kind, text)]))
}

/// The text of a value of this type.
pub(super) fn scalar(kind: &str, json: &str) -> Option<String> {
    let value = Object::read(json.as_bytes())?;
    json::text(value.get(kind).filter(|_| value.iter().count() == 1)?)
}

/// A value as [`attribute`] writes it, so that other blanks and escapes make no other version.
pub(super) fn normal(json: &str) -> String {
    let text = |kind| scalar(kind, json).map(|text| attribute(kind, &text));
    text("S").or_else(|| text("N")).unwrap_or_else(|| json.to_owned())
}

/// A value as a part of a version: its type and text, or its JSON; a dash for none.
fn encode(value: Option<&str>) -> String {
    let Some(json) = value else { return "-".to_owned() };
    let text = |kind| scalar(kind, json).map(|text| (kind, text));
    let (kind, text) = text("S").or_else(|| text("N")).unwrap_or_else(|| ("J", json.to_owned()));
    format!("{kind}:{}", utf8_percent_encode(&text, RESERVED))
}

/// What [`encode`] wrote.
fn decode(part: &str) -> Option<Option<String>> {
    if part == "-" {
        return Some(None);
    }
    let (kind, text) = part.split_once(':')?;
    let text = percent_decode_str(text).decode_utf8().ok()?;
    match kind {
        "S" | "N" => Some(Some(attribute(kind, &text))),
        // What came as the service's JSON; never to be spliced in as anything else.
        "J" => Object::read(text.as_bytes()).map(|value| Some(value.to_json())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_names_what_it_was_made_of() {
        let held = |ttl: Option<&str>, owner: Option<&str>, revision: Option<&str>| Held {
            ttl: ttl.map(normal),
            owner: owner.map(normal),
            revision: revision.map(normal),
        };
        for held in [
            held(Some(r#"{"N":"17"}"#), Some(r#"{"S":"a/b:c-%2F ä\u0000"}"#), Some(r#"{"S":"-"}"#)),
            held(None, Some(r#"{"S":""}"#), None),
            held(Some(r#"{"M":{"x":{"S":"N:1"}}}"#), Some(r#"{"NULL":true}"#), Some(r#"{"L":[]}"#)),
        ] {
            for besides in [None, Some("large"), Some("none")] {
                let version = held.version(besides);
                assert!(version.0.bytes().all(|byte| byte.is_ascii_graphic()), "{version:?}");
                assert_eq!(Held::of(&version), held, "{version:?}");
            }
        }
    }

    #[test]
    fn what_is_no_version_of_ours_is_a_revision_that_nothing_has() {
        for text in [
            "",
            "*",
            "\"etag\"",
            "N:1",
            "N:1/S:a",
            "J:1/S:a/S:b",
            "J:{/S:a/S:b",
            "X:1/-/-",
            "S:%ff/-/-",
        ] {
            let held = Held::of(&Version(text.to_owned()));
            let revision = Some(attribute("S", text));
            assert_eq!(held, Held { revision, ..Held::default() }, "{text}");
        }
    }
}
