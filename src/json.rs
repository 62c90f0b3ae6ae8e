//! JSON as far as an elector needs it: objects whose values stay the text that they were.
//!
//! Crate `serde_json` checks a text, and what it found good is taken apart here. Its `Value` is not used, because
//! map and the floating-point numbers that come with it make the wasm 10.8 KB larger after gzip -9. What nobody here
//! understands is therefore kept to the byte.

use serde::de::IgnoredAny;

/// How deep values may be nested.
const MAX_DEPTH: usize = 127;

/// An object: names, and the JSON text of each value. Of a name that comes twice the last value counts; both are
/// kept, because to look for doubles would take a hostile record's thousands of fields squared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Object(Vec<(String, String)>);

impl Object {
    /// An object without fields.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Reads one JSON object and nothing after it.
    pub fn read(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        if depth(text) > MAX_DEPTH || serde_json::from_str::<IgnoredAny>(text).is_err() {
            return None;
        }
        let mut object = Self::new();
        let mut rest = text.trim_ascii_start().strip_prefix('{')?.trim_ascii_start();
        while !rest.starts_with('}') {
            let (name, after) = split_value(rest)?;
            let after = after.trim_ascii_start().strip_prefix(':')?.trim_ascii_start();
            let (value, after) = split_value(after)?;
            object.0.push((self::text(name)?, value.to_owned()));
            let after = after.trim_ascii_start();
            rest = after.strip_prefix(',').unwrap_or(after).trim_ascii_start();
        }
        Some(object)
    }

    /// The JSON text of a field.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(found, _)| found == name).map(|(_, json)| json.as_str())
    }

    /// Takes a field out.
    pub fn remove(&mut self, name: &str) -> Option<String> {
        let mut taken = None;
        self.0.retain_mut(|(found, json)| {
            let kept = found != name;
            if !kept {
                taken = Some(std::mem::take(json));
            }
            kept
        });
        taken
    }

    /// Sets a field to a value that is JSON already.
    pub fn set(&mut self, name: &str, json: impl Into<String>) {
        self.remove(name);
        self.0.push((name.to_owned(), json.into()));
    }

    /// The fields in their order: names, and the JSON text of the values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, json)| (name.as_str(), json.as_str()))
    }
}

impl Object {
    /// The object as JSON.
    pub fn to_json(&self) -> String {
        let mut writer = Writer::new();
        for (name, json) in self.iter() {
            writer.raw(name, json);
        }
        writer.end()
    }
}

/// Splits valid JSON after the value at its start.
fn split_value(json: &str) -> Option<(&str, &str)> {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    let mut end = 0;
    for (place, byte) in json.bytes().enumerate() {
        let ends = !quoted && depth == 0 && place > 0;
        if ends && (json.starts_with(['"', '[', '{']) || b",:]} \t\r\n".contains(&byte)) {
            break;
        }
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => depth += 1,
            b']' | b'}' if !quoted => depth = depth.checked_sub(1)?,
            _ => {}
        }
        end = place + 1;
    }
    json.split_at_checked(end)
}

/// How deep the brackets of a text are nested, outside its strings.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut quoted, mut escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
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
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            text.push(character);
            continue;
        }
        let plain = match characters.next()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let high = four_digits(&mut characters)?;
                match char::from_u32(high) {
                    Some(character) => character,
                    None => {
                        let low = characters.as_str().strip_prefix("\\u")?.chars();
                        characters = low;
                        let low = four_digits(&mut characters)?.checked_sub(0xdc00)?;
                        let high =
                            high.checked_sub(0xd800).filter(|high| *high < 0x400 && low < 0x400)?;
                        char::from_u32(0x1_0000 + (high << 10) + low)?
                    }
                }
            }
            other => other,
        };
        text.push(plain);
    }
    Some(text)
}

fn four_digits(characters: &mut std::str::Chars<'_>) -> Option<u32> {
    (0..4).try_fold(0, |number, _| Some(number << 4 | characters.next()?.to_digit(16)?))
}

/// The value, if it is a flag.
pub fn flag(json: &str) -> Option<bool> {
    match json {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// The value, if it is a whole number from 0 on without point and exponent.
pub fn whole(json: &str) -> Option<u64> {
    json.parse().ok()
}

/// The value, if it is a number from 0 on, rounded up; also one that somebody has written as a text.
pub fn rounded_up(json: &str) -> Option<u64> {
    let text = text(json);
    let number = text.as_deref().unwrap_or(json);
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    let given = number.parse::<f64>().ok().filter(|_| plain && !number.starts_with(['-', '+']))?;
    let whole = given as u64;
    Some(number.parse().unwrap_or(whole.saturating_add(u64::from((whole as f64) < given))))
}

/// The values, if they are a list of two such numbers.
pub fn two_wholes(json: &str) -> Option<[u64; 2]> {
    let inner = json.strip_prefix('[')?.strip_suffix(']')?;
    let (first, second) = inner.split_once(',')?;
    Some([whole(first.trim())?, whole(second.trim())?])
}

/// Whether a value is a number of at least this, of which no digit is dropped or rounded.
pub fn is_at_least(json: &str, least: u64) -> bool {
    if !is_number(json) || json.starts_with('-') {
        return false;
    }
    let (mantissa, exponent) = json.split_once(['e', 'E']).unwrap_or((json, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let (shrinks, digits) = match exponent.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, exponent.trim_start_matches('+')),
    };
    // An exponent beyond this is beyond every text that is read, too.
    let shift = digits.parse::<usize>().unwrap_or(usize::MAX).min(1 << 20) as isize;
    let point = whole.len() as isize + if shrinks { -shift } else { shift };
    let mut reached = 0_u64;
    for (place, digit) in whole.bytes().chain(fraction.bytes()).enumerate() {
        if place as isize >= point {
            break;
        }
        reached = reached.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    }
    let missing = point - (whole.len() + fraction.len()) as isize;
    for _ in 0..missing.clamp(0, 20) {
        reached = reached.saturating_mul(10);
    }
    reached >= least
}

/// A text as JSON. Also what could hide in a terminal or turn the reading order around is escaped, so that errors may
/// show it.
pub fn quoted(text: &str) -> String {
    ["\"", &escaped(text, &['"', '\\']), "\""].concat()
}

/// A text that is shown as it is, but for what could hide in a terminal or turn the reading order around.
pub fn visible(text: &str) -> String {
    escaped(text, &[])
}

fn escaped(text: &str, special: &[char]) -> String {
    let mut shown = String::with_capacity(text.len() + 2);
    for character in text.chars() {
        if special.contains(&character) {
            shown.push('\\');
        }
        if !is_hidden(character) {
            shown.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            shown.push_str("\\u");
            for digit in (0..4).rev() {
                shown.extend(char::from_digit(u32::from(*unit) >> (4 * digit) & 15, 16));
            }
        }
    }
    shown
}

fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

/// The first characters of a text.
pub fn first(text: &str, characters: usize) -> &str {
    text.char_indices().nth(characters).map_or(text, |(end, _)| &text[..end])
}

/// Writes an object, field by field.
pub struct Writer(String);

impl Default for Writer {
    fn default() -> Self {
        Self::new()
    }
}

impl Writer {
    /// Begins.
    pub fn new() -> Self {
        Self("{".to_owned())
    }

    /// A field whose value is JSON already.
    pub fn raw(&mut self, name: &str, json: &str) -> &mut Self {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(&quoted(name));
        self.0.push(':');
        self.0.push_str(json);
        self
    }

    /// A text.
    pub fn text(&mut self, name: &str, text: &str) -> &mut Self {
        self.raw(name, &quoted(text))
    }

    /// A text, or `null`.
    pub fn maybe_text(&mut self, name: &str, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.text(name, text),
            None => self.raw(name, "null"),
        }
    }

    /// A whole number.
    pub fn number(&mut self, name: &str, number: u64) -> &mut Self {
        self.raw(name, &number.to_string())
    }

    /// A whole number, or no field.
    pub fn given_number(&mut self, name: &str, number: Option<u64>) -> &mut Self {
        match number {
            Some(number) => self.number(name, number),
            None => self,
        }
    }

    /// A whole number, or `null`.
    pub fn maybe_number(&mut self, name: &str, number: Option<u64>) -> &mut Self {
        match number {
            Some(number) => self.number(name, number),
            None => self.raw(name, "null"),
        }
    }

    /// A flag.
    pub fn flag(&mut self, name: &str, flag: bool) -> &mut Self {
        self.raw(name, if flag { "true" } else { "false" })
    }

    /// A flag, or `null`.
    pub fn maybe_flag(&mut self, name: &str, flag: Option<bool>) -> &mut Self {
        match flag {
            Some(flag) => self.flag(name, flag),
            None => self.raw(name, "null"),
        }
    }

    /// How many bytes were written.
    #[allow(clippy::len_without_is_empty)] // It is never empty.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes back what was written after this many bytes.
    pub fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// Ends, and gives the text.
    pub fn end(&mut self) -> String {
        let mut text = std::mem::take(&mut self.0);
        text.push('}');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn what_is_read_is_what_serde_json_reads_to_the_byte() {
        let pieces = [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "\\",
            "a",
            "\"a\":",
            "\"b\":1",
            "\"\\u0061\":2",
            "null",
            "true",
            "-1.5e3",
            "0",
            "\"x\\\"}\"",
            "\"\\ud83d\\ude00\"",
            " ",
            "\n",
            "[1,{\"c\":[]}]",
            "\"ä\"",
        ];
        let mut state = 1_u64;
        let mut roll = |sides: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % sides
        };
        let (mut objects, mut refused) = (0, 0);
        for _ in 0..300_000 {
            let inner: String = (0..roll(9)).map(|_| pieces[roll(pieces.len())]).collect();
            let text = if roll(4) == 0 { inner } else { format!("{{{inner}}}") };
            let theirs = serde_json::from_str::<Value>(&text).ok();
            let theirs = theirs.and_then(|value| value.as_object().cloned());
            let ours = Object::read(text.as_bytes());
            match (&ours, &theirs) {
                (Some(ours), Some(theirs)) => {
                    objects += 1;
                    assert!(ours.iter().all(|(name, _)| theirs.contains_key(name)), "{text}");
                    for name in theirs.keys() {
                        let json = ours.get(name).unwrap();
                        let mut without = ours.clone();
                        assert_eq!(
                            (without.remove(name).as_deref(), without.get(name)),
                            (Some(json), None)
                        );
                        let value: Value = serde_json::from_str(json).unwrap();
                        assert_eq!(value, theirs[name], "{text}");
                        assert_eq!(super::text(json).as_deref(), value.as_str(), "{text}");
                        assert_eq!(
                            (whole(json), flag(json)),
                            (value.as_u64(), value.as_bool()),
                            "{text}"
                        );
                        assert_eq!(
                            (is_null(json), is_number(json)),
                            (value.is_null(), value.is_number())
                        );
                    }
                    assert_eq!(Object::read(ours.to_json().as_bytes()).as_ref(), Some(ours));
                }
                (None, None) => refused += 1,
                _ => panic!("{text} reads as {ours:?}, and as {theirs:?} by serde_json"),
            }
        }
        assert!(objects > 5_000 && refused > 5_000, "{objects} {refused}");
    }

    #[test]
    fn nesting_is_bounded_where_serde_json_bounds_it() {
        for (depth, readable) in [(126, true), (127, false), (30_000, false)] {
            let text = format!(r#"{{"[":{}1{}}}"#, "[".repeat(depth), "]".repeat(depth));
            assert_eq!(Object::read(text.as_bytes()).is_some(), readable, "{depth}");
            assert_eq!(serde_json::from_str::<Value>(&text).is_ok(), readable, "{depth}");
        }
    }

    #[test]
    fn every_text_is_written_so_that_it_reads_back_and_hides_nothing() {
        for character in '\0'..=char::MAX {
            let json = quoted(&String::from(character));
            assert_eq!(text(&json), Some(String::from(character)));
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), String::from(character));
        }
        assert_eq!(quoted("a\u{202e}b\n\u{85}\"\\"), r#""a\u202eb\u000a\u0085\"\\""#);
        for half in [r#""\ud800""#, r#""\udc00\ud800""#, r#""\ud800x""#, r#""\ud800\u0041""#] {
            assert_eq!(text(half), None, "{half}");
        }
    }

    #[test]
    fn numbers_are_compared_without_rounding() {
        for (json, reached) in [
            ("100", true),
            ("99", false),
            ("99.999", false),
            ("1e2", true),
            ("1E+2", true),
            ("0.1e3", true),
            ("0.0099e4", false),
            ("1000e-1", true),
            ("999e-1", false),
            ("1e99999999999999999999", true),
            ("1e-99999999999999999999", false),
            ("0e400", false),
            ("-200", false),
            ("null", false),
            ("99999999999999999999999999999999999", true),
            ("\"200\"", false),
        ] {
            assert_eq!(is_at_least(json, 100), reached, "{json}");
        }
    }
}
