//! What people and programs read. A reader that has gone away ends nothing.

use std::io::{self, Write};

use serde_json::Value;

/// A line on standard output; false where nobody reads it any more.
pub fn print(line: &str) -> bool {
    writeln!(io::stdout(), "{line}").is_ok()
}

/// A line on standard error.
pub fn line(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// What has gone wrong, on standard error.
pub fn error(text: &str) {
    line(&format!("edgelect: {}", visible(text, 1_000)));
}

/// A text of a store or a record on one line, in which nothing moves a cursor.
pub fn visible(text: &str, most: usize) -> String {
    text.chars().take(most).map(|one| if is_hidden(one) { ' ' } else { one }).collect()
}

/// One line of JSON in which nothing moves a cursor either.
pub fn json(value: &Value) -> String {
    let mut line = String::new();
    for one in value.to_string().chars() {
        if is_hidden(one) {
            for unit in one.encode_utf16(&mut [0; 2]) {
                line.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            line.push(one);
        }
    }
    line
}

/// Whether a character is a control or a format character, or another that nobody sees.
fn is_hidden(one: char) -> bool {
    one.is_control() || one.escape_debug().len() > 2
}
