//! What the properties draw from: plausible pieces, edges, and nonsense.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use edgelect::json::{self, Object};
use edgelect::lease::{
    History, Lease, MAX_LEASE_MS, MAX_TERM, MIN_LEASE_MS, OperatorRequest, Stamp,
};

use super::rules::records::OWN_FIELDS;

const SPECIAL: [char; 10] =
    ['\0', '\n', '"', '\\', '\u{7f}', '\u{202e}', '\u{feff}', 'ä', '漢', '😀'];

/// One of these texts.
pub fn one_of<const N: usize>(texts: [&'static str; N]) -> impl Strategy<Value = String> {
    select(texts.to_vec()).prop_map(str::to_owned)
}

/// One of these words, which blanks separate.
pub fn word(words: &'static str) -> impl Strategy<Value = String> {
    select(words.split_whitespace().collect::<Vec<_>>()).prop_map(str::to_owned)
}

/// A text of any characters, most of them plain, some that hide or turn the reading order around.
pub fn text(longest: usize) -> impl Strategy<Value = String> {
    let character = prop_oneof![
        8 => prop::char::range(' ', '~'),
        1 => any::<char>(),
        1 => select(SPECIAL.to_vec()),
    ];
    vec(character, 0..=longest).prop_map(|characters| characters.into_iter().collect())
}

/// A JSON number in any spelling, many of them close to a bound of ours.
pub fn number() -> impl Strategy<Value = String> {
    let bounds = [0, 1, 999, 1_000, 15_000, MAX_LEASE_MS, MAX_TERM, 1 << 53, 1 << 63, u64::MAX];
    let near = (select(bounds.to_vec()), -1..=1_i128)
        .prop_map(|(bound, off)| (i128::from(bound) + off).to_string());
    let not_zero =
        near.clone().prop_map(|digits| if digits == "0" { "7".to_owned() } else { digits });
    // The same number with the point elsewhere.
    let spelled =
        (near.clone(), "0{1,4}").prop_map(|(digits, zeros)| format!("{digits}.{zeros}e{zeros}"));
    let shifted = (not_zero, 1..=20_usize)
        .prop_map(|(digits, places)| format!("{digits}{}e-{places}", "0".repeat(places)));
    prop_oneof![
        4 => near,
        1 => spelled,
        1 => shifted,
        3 => "-?(0|[1-9][0-9]{0,22})(\\.[0-9]{1,8})?([eE][+-]?[0-9]{1,5})?",
        1 => any::<u64>().prop_map(|number| number.to_string()),
    ]
}

/// A time, or nearly one: many around the first instant of the year 1, with which S3lect releases.
pub fn time() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => word("0001-01-01T00:00:00Z 0001-01-01T00:00:00.000000000Z 0001-01-01T01:00:00+01:00 \
                   0000-12-31T23:00:00-01:00 0001-01-01T00:00:00.0009Z 0000-12-31T23:59:59.9999Z \
                   0001-01-01T00:00:00.000000001Z 2026-11-21T06:58:12.345678901Z \
                   9999-12-31T23:59:60Z 2262-04-11T23:47:16.854775808Z"),
        3 => concat!(
            "000[01]-(01|12)-(01|31)[Tt ](00|01|23):(00|59):(00|59|60)",
            "(\\.0{0,10}[0-9]{0,3})?(Z|z|[+-]0[01]:(00|59))",
        ),
        3 => concat!(
            "[0-9]{4}-(0[1-9]|1[0-2])-([0-2][0-9]|3[01])",
            "T([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)",
            "(\\.[0-9]{1,12})?(Z|[+-][0-2][0-9]:[0-5][0-9])",
        ),
        1 => text(30),
    ]
}

/// The text of any JSON value, nested a little.
pub fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => number(),
        2 => time().prop_map(|time| json::of(&time)),
        2 => text(12).prop_map(|text| json::of(&text)),
        2 => word("null true false [] {} \"\" \"\\ud800\" \"\\u0061\" 1e999"),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(|values| format!("[{}]", values.join(" , "))),
            vec((text(6), inner), 0..4).prop_map(object),
        ]
    })
}

/// An object of fields whose values are JSON already.
pub fn object(fields: Vec<(String, String)>) -> String {
    let fields = fields.iter().map(|(name, json)| [&json::of(name), ": ", json].concat());
    format!("{{ {} }}", fields.collect::<Vec<_>>().join(",\n"))
}

/// Bytes that a failure shows as text.
#[derive(Clone, PartialEq)]
pub struct Bytes(pub Vec<u8>);

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

/// The body of a record, or nearly one: fields that are good, fields that are not, fields twice,
/// fields of others.
pub fn body() -> impl Strategy<Value = Bytes> {
    let good = || {
        prop_oneof![
            (word("leaderID"), text(8)).prop_map(|(name, text)| (name, json::of(&text))),
            (word("lastUpdated"), time()).prop_map(|(name, time)| (name, json::of(&time))),
            (word("acquired parkAt"), time()).prop_map(|(name, time)| (name, json::of(&time))),
            (word("leaseMs term sequence transitions slot format"), number()),
            (word("history"), past()),
            (word("operator"), request()),
            (word("session leaderAddr"), text(20)).prop_map(|(name, text)| (name, json::of(&text))),
            (word("parked reserved slotDone"), word("true false")),
        ]
    };
    let any_field = (one_of(OWN_FIELDS), value());
    let other_case =
        (one_of(OWN_FIELDS), value()).prop_map(|(name, json)| (name.to_ascii_uppercase(), json));
    let others = (text(8), value());
    let field = prop_oneof![12 => good(), 1 => any_field, 1 => other_case, 1 => others];
    let record = (text(8), vec(field, 0..7))
        .prop_map(|(name, mut fields)| {
            fields.insert(0, ("leaderID".to_owned(), json::of(&["a", &name].concat())));
            object(fields).into_bytes()
        })
        .boxed();
    let hits = vec((any::<prop::sample::Index>(), any::<u8>()), 1..4);
    prop_oneof![
        12 => record.clone(),
        2 => (record, hits).prop_map(|(body, hits)| damaged(body, &hits)),
        1 => vec(any::<u8>(), 0..200),
    ]
    .prop_map(Bytes)
}

/// Bytes with some of them changed.
pub fn damaged(mut bytes: Vec<u8>, hits: &[(prop::sample::Index, u8)]) -> Vec<u8> {
    for (place, byte) in hits {
        if !bytes.is_empty() {
            let place = place.index(bytes.len());
            bytes[place] = *byte;
        }
    }
    bytes
}

/// The past of a record, or nearly one.
pub fn past() -> impl Strategy<Value = String> {
    let names = word("term slot from to by how outcome more");
    let value = || prop_oneof![3 => value(), 2 => word("7 \"a\"")];
    let entry = vec((names, value()), 0..7).prop_map(object);
    let by = || text(80).prop_map(|text| json::of(&["a", &text].concat()));
    let term = (0..=MAX_TERM, by(), prop::option::of(any::<u32>())).prop_map(|(term, by, from)| {
        let from = from.map_or_else(String::new, |ms| format!(r#","from":{ms}"#));
        format!(r#"{{"term":{term},"by":{by},"how":"expired"{from}}}"#)
    });
    let slot = (0..=MAX_TERM, by())
        .prop_map(|(slot, by)| format!(r#"{{"slot":{slot},"by":{by},"outcome":"died"}}"#));
    let list = vec(prop_oneof![2 => entry, 3 => term, 3 => slot, 1 => value()], 0..14);
    list.prop_map(|entries| format!("[{}]", entries.join(",")))
}

/// An operator's request, or nearly one.
pub fn request() -> impl Strategy<Value = String> {
    let ask = word("stepDown pause resume drain").prop_map(|ask| json::of(&ask));
    let words = (text(3), text(260), text(260)).prop_map(|(id, by, why)| [id, by, why]);
    let end = prop_oneof![3 => time().prop_map(|time| json::of(&time)), 1 => value()];
    (ask, words, prop::option::of(end), prop::option::of(0..=MAX_TERM)).prop_map(
        |(ask, words, end, term)| {
            let mut fields = vec![("ask".to_owned(), ask)];
            let names = ["id", "by", "why"].into_iter().zip(words);
            fields.extend(names.map(|(name, text)| (name.to_owned(), json::of(&text))));
            fields.extend(end.map(|end| ("until".to_owned(), end)));
            fields.extend(term.map(|term| ("term".to_owned(), term.to_string())));
            object(fields)
        },
    )
}

/// A record that an elector could hold.
pub fn lease() -> impl Strategy<Value = Lease> {
    let flags = (any::<bool>(), any::<Option<bool>>(), any::<bool>(), any::<bool>());
    let numbers = (any::<u64>(), any::<u64>(), any::<Option<u64>>());
    let times = (any::<i64>(), prop::option::of(-70_000_000_000_000..260_000_000_000_000_i64));
    let names = (text(20), text(20), prop::option::of(text(20)));
    let terms = (prop::option::of(0..=MAX_TERM), prop::option::of(MIN_LEASE_MS..=MAX_LEASE_MS));
    let extra = vec((text(6), value()), 0..4);
    (flags, numbers, times, names, terms, extra, past(), request()).prop_map(
        |(flags, numbers, times, names, terms, extra, past, request)| {
            let (parked, slot_done, released, reserved) = flags;
            let (sequence, transitions, slot) = numbers;
            let mut kept = Object::new();
            for (name, json) in extra {
                kept.set(&name, json);
            }
            Lease {
                leader_id: ["a", &names.0].concat(),
                leader_addr: names.1,
                last_updated: if released { Stamp::Released } else { Stamp::At(times.0) },
                term: terms.0,
                session: names.2,
                sequence,
                lease_ms: terms.1,
                acquired: times.1,
                reserved,
                transitions,
                parked,
                park_at: times.1.filter(|_| !parked),
                slot,
                slot_done,
                slot_result: slot.map(|slot_ms| ["ran ", &slot_ms.to_string()].concat()),
                slot_took_ms: slot,
                slot_failures: slot_done.map(u64::from),
                slot_term: terms.0.filter(|_| parked),
                history: History::read(&past),
                operator: OperatorRequest::read(&request),
                extra: kept,
            }
        },
    )
}
