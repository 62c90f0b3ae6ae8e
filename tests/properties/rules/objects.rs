//! JSON objects read as crate `serde_json` reads them, and to the byte.

use edgelect::json::{self, Object};
use serde::de::IgnoredAny;
use serde_json::Value;

/// Any bytes are an object, or none, as `serde_json` says; and an object is written so that it
/// reads back.
pub fn bytes(text: &[u8]) {
    let ours = Object::read(text);
    if let Ok(Value::Object(theirs)) = serde_json::from_slice::<Value>(text) {
        let ours = ours.as_ref().expect("serde_json reads an object");
        for (name, value) in &theirs {
            let json = ours.get(name).expect("serde_json knows the field");
            assert_eq!(serde_json::from_str::<Value>(json).ok().as_ref(), Some(value), "{name}");
            is_read_alike(json, value);
        }
        assert!(ours.iter().all(|(name, _)| theirs.contains_key(name)));
    }
    if serde_json::from_slice::<IgnoredAny>(text).is_err() {
        assert_eq!(ours, None, "this is no JSON");
    }
    let Some(ours) = ours else { return };
    let kept: usize = ours.iter().map(|(name, json)| name.len() + json.len()).sum();
    assert!(kept <= text.len(), "{kept} bytes out of {}", text.len());
    let written = ours.to_json();
    assert_eq!(Object::read(written.as_bytes()).as_ref(), Some(&ours), "{written}");
    for (name, json) in ours.iter() {
        assert!(serde_json::from_str::<IgnoredAny>(json).is_ok(), "{name}: {json}");
        if json::is_number(json) {
            for least in [1, 100, 1 << 52, (1 << 52) + 1, u64::MAX] {
                assert_eq!(json::is_at_least(json, least), is_at_least(json, least), "{json}");
            }
        }
    }
}

fn is_read_alike(json: &str, value: &Value) {
    assert_eq!(json::text(json).as_deref(), value.as_str(), "{json}");
    assert_eq!((json::whole(json), json::flag(json)), (value.as_u64(), value.as_bool()), "{json}");
    assert_eq!(
        (json::is_null(json), json::is_number(json)),
        (value.is_null(), value.is_number()),
        "{json}"
    );
    let two = value.as_array().filter(|list| list.len() == 2).and_then(|list| {
        let [first, second] = list.as_slice() else { return None };
        Some([first.as_u64()?, second.as_u64()?])
    });
    assert_eq!(json::two_wholes(json), two, "{json}");
}

/// Whether a JSON number is at least `least` (from 1 on), compared digit by digit.
pub fn is_at_least(json: &str, least: u64) -> bool {
    if json.starts_with('-') {
        return false;
    }
    let (mantissa, exponent) = json.split_once(['e', 'E']).unwrap_or((json, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let beyond = if exponent.starts_with('-') { i128::MIN / 2 } else { i128::MAX / 2 };
    let exponent = exponent.parse::<i128>().unwrap_or(beyond);
    let digits = [whole, fraction].concat();
    let significant = digits.trim_start_matches('0');
    let zeros = (digits.len() - significant.len()) as i128;
    let places = whole.len() as i128 - zeros + exponent;
    let least = least.to_string();
    if significant.is_empty() || places != least.len() as i128 {
        return !significant.is_empty() && places > least.len() as i128;
    }
    let padded = format!("{significant:0<width$}", width = least.len());
    padded.as_str() >= least.as_str()
}
