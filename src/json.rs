//! JSON objects of others, whose values stay the text that they were: what nobody here understands is passed on to the byte.
//! Neither the numbers nor the order of names in a job's own state change on the way.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use serde::de::DeserializeOwned;
use serde::de::value::MapDeserializer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// How deep values may be nested, as crate `serde_json` has it for those that it takes apart.
const MAX_NESTING: usize = 127;

/// An object: names, and the JSON text of each value. Of a name that comes twice the last value counts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Object(BTreeMap<String, Box<RawValue>>);

impl Object {
    /// An object without fields.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// The object that a structure is as JSON.
    pub fn of(structure: &impl Serialize) -> Self {
        Self::read(of(structure).as_bytes()).expect("a structure is an object")
    }

    /// Reads one JSON object and nothing after it, nested no deeper than most readers of JSON go.
    pub fn read(text: &[u8]) -> Option<Self> {
        if nesting(text) > MAX_NESTING {
            return None;
        }
        serde_json::from_slice(text).ok()
    }

    /// The JSON text of a field.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|json| json.get())
    }

    /// Takes a field out.
    pub fn remove(&mut self, name: &str) -> Option<String> {
        self.0.remove(name).map(|json| json.get().to_owned())
    }

    /// Sets a field to a value that is JSON already.
    pub fn set(&mut self, name: &str, json: impl Into<String>) {
        let json = RawValue::from_string(json.into()).expect("it is JSON already");
        self.0.insert(name.to_owned(), json);
    }

    /// The fields of these names as a structure that has them; `None` if one is of another type. They are taken out.
    pub fn take<T: DeserializeOwned>(&mut self, names: &[&str]) -> Option<T> {
        let fields = self.0.iter().map(|(name, json)| (name.as_str(), &**json));
        let taken = T::deserialize(MapDeserializer::new(fields)).ok();
        self.retain(|name| !names.contains(&name));
        taken
    }

    /// Keeps the fields whose names are wanted.
    pub fn retain(&mut self, wanted: impl Fn(&str) -> bool) {
        self.0.retain(|name, _| wanted(name));
    }

    /// Adds the fields of another object, which count if both have one.
    pub fn extend(&mut self, other: &Self) {
        self.0.extend(other.0.clone());
    }

    /// The fields: names, and the JSON text of the values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, json)| (name.as_str(), json.get()))
    }

    /// The object as JSON.
    pub fn to_json(&self) -> String {
        of(self)
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Object {}

impl Hash for Object {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.iter().for_each(|field| field.hash(state));
    }
}

/// How deep the brackets of a text are nested, outside its strings. A `RawValue` is passed over without a limit, and other
/// readers would take what they cannot read for damage.
fn nesting(text: &[u8]) -> usize {
    let (mut depth, mut deepest, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => depth += 1,
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// The first number of a JSON text that no 64-bit float holds, which is what JavaScript has for numbers: written back, it would
/// be another one. Of a fraction only the last digits would change, which every reader of floats leaves out.
pub fn unheld_number(json: &str) -> Option<&str> {
    let bytes = json.as_bytes();
    let (mut at, mut quoted) = (0, false);
    while at < bytes.len() {
        let begin = at;
        match bytes[at] {
            b'\\' if quoted => at += 1,
            b'"' => quoted = !quoted,
            b'-' | b'0'..=b'9' if !quoted => {
                let goes_on = |byte: &u8| byte.is_ascii_digit() || b".eE+-".contains(byte);
                at += bytes[at..].iter().take_while(|byte| goes_on(byte)).count();
                let number = &json[begin..at];
                if !is_held(number) {
                    return Some(number);
                }
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Whether a float, written as short as it can be, is this number again, or the nearest to this fraction.
fn is_held(number: &str) -> bool {
    let Ok(float) = number.parse::<f64>() else { return false };
    let (_, _, power) = decimal(number);
    let nearest = power < 0 && float.is_normal();
    float.is_finite() && (nearest || decimal(&of(&float)) == decimal(number))
}

/// A number as its sign, its digits without zeros at either end, and the power of ten of the last one.
fn decimal(number: &str) -> (bool, String, i64) {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let unsigned = mantissa.trim_start_matches('-');
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = [whole, fraction].concat();
    let significant = digits.trim_end_matches('0');
    // Beyond this it is zero or no float.
    let exponent = exponent.parse().unwrap_or(i64::MAX);
    let zeros = digits.len() - significant.len();
    let power = exponent.saturating_sub(fraction.len() as i64).saturating_add(zeros as i64);
    match significant.trim_start_matches('0') {
        "" => (false, String::new(), 0),
        significant => (mantissa.starts_with('-'), significant.to_owned(), power),
    }
}

/// A value as JSON.
///
/// # Panics
/// Not for what is passed here: texts, numbers, flags, and structures of them with texts as names.
pub fn of(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).expect("it has nothing that JSON has not")
}

/// The value, if it is one of this type.
fn read<T: DeserializeOwned>(json: &str) -> Option<T> {
    serde_json::from_str(json).ok()
}

/// Whether a value is `null`.
pub fn is_null(json: &str) -> bool {
    json == "null"
}

/// Whether a value is a number.
pub fn is_number(json: &str) -> bool {
    json.starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

/// The value, if it is a text; `None` too for half a surrogate pair, which no text can have.
pub fn text(json: &str) -> Option<String> {
    read(json)
}

/// The value, if it is a flag.
pub fn flag(json: &str) -> Option<bool> {
    read(json)
}

/// The value, if it is a whole number from 0 on without point and exponent.
pub fn whole(json: &str) -> Option<u64> {
    read(json)
}

/// The values, if they are a list of two such numbers.
pub fn two_wholes(json: &str) -> Option<[u64; 2]> {
    read(json)
}

/// The values, if they are a list of texts.
pub fn texts(json: &str) -> Option<Vec<String>> {
    read(json)
}

/// The objects of a list; nothing of a value that is no list.
pub fn objects(json: &str) -> Vec<Object> {
    let values: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
    values.into_iter().filter_map(|value| Object::read(value.get().as_bytes())).collect()
}

/// The value, if it is a number from 0 on, rounded up; also one that somebody has written as a text.
pub fn rounded_up(json: &str) -> Option<u64> {
    let text = text(json);
    let number = text.as_deref().unwrap_or(json);
    // Not `inf` and `nan`, which are numbers to Rust alone.
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    let given = number.parse::<f64>().ok().filter(|_| plain && !number.starts_with(['-', '+']))?;
    Some(number.parse().unwrap_or(given.ceil() as u64))
}

/// Whether a value is a number of at least this, also one beyond every number of Rust.
pub fn is_at_least(json: &str, least: u64) -> bool {
    json.parse::<f64>().is_ok_and(|number| number >= least as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_kept_to_the_byte_and_of_a_name_the_last_counts() {
        let object = Object::read(br#" {"b":1e999,"a":{"z":1,"y":[ ]},"b":"\ud800"} "#).unwrap();
        let fields: Vec<_> = object.iter().collect();
        assert_eq!(fields, [("a", r#"{"z":1,"y":[ ]}"#), ("b", r#""\ud800""#)]);
        for none in ["[]", "{", r#"{"a":}"#, r#"{"a":1}x"#, ""] {
            assert_eq!(Object::read(none.as_bytes()), None, "{none}");
        }
    }

    #[test]
    fn a_number_that_a_float_would_change_is_found_outside_of_texts() {
        for held in [
            "0",
            "-0",
            "-0.0",
            "0e999999999999999999999",
            "1.50",
            "1e3",
            "1E+3",
            "-12.5e-2",
            "0.1",
            "0.1234567890123456789",
            "0.10000000000000001",
            "1e21",
            "5e-324",
            "1.7976931348623157e308",
            "9007199254740992",
            "-9007199254740994",
            "123456789012345680000",
            "72057594037927940",
            r#""9007199254740993""#,
            r#""\"9007199254740993""#,
            r#"{"9007199254740993":[1,"\\"]}"#,
            "1795244292345",
        ] {
            assert_eq!(unheld_number(held), None, "{held}");
        }
        for unheld in [
            "9007199254740993",
            "-9007199254740993",
            "9007199254740993.0",
            "9.007199254740993e15",
            "1e400",
            "-1e400",
            "1e-400",
            "18446744073709551615",
            "72057594037927936",
            "1e99999999999999999999",
            "2e-99999999999999999999",
        ] {
            for json in [unheld.to_owned(), format!(r#"{{"a":["\"",1,{{"b":{unheld}}},2]}}"#)] {
                assert_eq!(unheld_number(&json), Some(unheld), "{json}");
            }
        }
    }

    #[test]
    fn nesting_is_bounded_where_serde_json_bounds_it() {
        for (depth, readable) in [(126, true), (127, false), (30_000, false)] {
            let text = format!(r#"{{"[":{}1{}}}"#, "[".repeat(depth), "]".repeat(depth));
            assert_eq!(Object::read(text.as_bytes()).is_some(), readable, "{depth}");
            let theirs = serde_json::from_str::<serde_json::Value>(&text);
            assert_eq!(theirs.is_ok(), readable, "{depth}");
        }
    }
}
