//! JSON objects of others, whose values stay the text that they were: what nobody here understands is passed on to the byte.
//! Neither the numbers nor the order of names in a job's own state change on the way.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use serde::de::DeserializeOwned;
use serde::de::value::MapDeserializer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

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

    /// Reads one JSON object and nothing after it.
    pub fn read(text: &[u8]) -> Option<Self> {
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
