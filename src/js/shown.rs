//! What `js/elector.js` shows to monitors and people: metrics, and the page.

use std::collections::BTreeMap;

use serde_json::json;
use wasm_bindgen::prelude::*;

use super::RawElector;
use crate::driver::Host;
use crate::metrics::{self, Sample};
use crate::page;

#[wasm_bindgen]
impl RawElector {
    /// What its metrics tell now, as JSON for [`show`] and [`add_sample`].
    pub fn sample(&self) -> String {
        crate::json::of(&Sample::of(&self.handle, self.web.now()))
    }
}

fn read(sample: &str) -> Option<Sample> {
    serde_json::from_str(sample).ok()
}

/// Adds what an elector that has ended tells to what earlier ones of the same group have told.
#[wasm_bindgen(js_name = addSample)]
pub fn add_sample(before: Option<String>, ended: &str) -> String {
    let ended = read(ended).unwrap_or_default().ended();
    let before = before.as_deref().and_then(read).map(|mut before| {
        before.absorb(ended.clone());
        before
    });
    crate::json::of(&before.unwrap_or(ended))
}

/// The answer to `GET /metrics`, made of samples, or to `GET /`: `{ headers, body }` as JSON.
#[wasm_bindgen]
pub fn show(path: &str, samples: Vec<String>) -> String {
    if path == metrics::PATH {
        let headers = json!({ "content-type": metrics::CONTENT_TYPE, "cache-control": "no-store" });
        let body = metrics::text(samples.iter().filter_map(|sample| read(sample)));
        return json!({ "headers": headers, "body": body }).to_string();
    }
    let headers: BTreeMap<_, _> = page::headers().into();
    json!({ "headers": headers, "body": page::HTML }).to_string()
}
