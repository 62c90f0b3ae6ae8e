//! What goes wrong in an event.

use wasm_bindgen::prelude::*;
use worker::js_sys;

use crate::config::ConfigError;

/// Why an event came to nothing.
pub enum Problem {
    /// A variable is wrong.
    Config(ConfigError),
    /// What the log says, and a word for whoever only counts failures.
    Told(String, &'static str),
}

impl From<ConfigError> for Problem {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<String> for Problem {
    fn from(message: String) -> Self {
        Self::Told(message, "failed")
    }
}

/// What was thrown, for people: short, and no text that may quote an address or a signed request.
pub fn told(thrown: &JsValue) -> String {
    const SECRET: [&str; 4] = ["signature", "aws4-hmac", "x-amz-", "authorization"];
    let message = thrown.dyn_ref::<js_sys::Error>().map(|error| String::from(error.message()));
    let text = message.or_else(|| thrown.as_string()).unwrap_or_default();
    let lower = text.to_ascii_lowercase();
    let shown: String = text.chars().take(200).collect();
    // The mark may stand behind the secret, where nobody would see it any more.
    if SECRET.iter().any(|mark| lower.contains(mark)) || shown.contains("://") {
        return "an error whose text is not shown, because it quotes the request".to_owned();
    }
    if shown.is_empty() { "an error without a text".to_owned() } else { shown }
}
