//! What every answer over HTTP says about time, whichever store gave it.

use crate::calendar;
use crate::planted::planted;
use crate::request::Response;
use crate::store::Facts;

/// The longest pause that a store may ask for, in milliseconds (five minutes).
const MAX_RETRY_AFTER_MS: u64 = 300_000;

/// `Date`, `Last-Modified`, and whether something in between answered or relayed.
pub(super) fn facts(response: &Response) -> Facts {
    Facts {
        date_ms: response.header("date").and_then(calendar::read_http_date),
        last_modified_ms: response.header("last-modified").and_then(calendar::read_http_date),
        relayed: response.count("age") + response.count("via") > 0 && !planted!(ViaIgnored),
        // A relay that fetched the answer for us may say so with a zero.
        cached: response.count("age") > usize::from(response.header("age") == Some("0")),
    }
}

/// `Retry-After` in seconds, or as a date beside the answer's own `Date`: no clock of ours is compared.
pub(super) fn retry_after_ms(response: &Response, facts: &Facts) -> Option<u64> {
    let text = response.header("retry-after")?.trim();
    let asked_ms = match text.parse::<u64>() {
        Ok(seconds) => seconds.saturating_mul(1_000),
        Err(_) => calendar::read_http_date(text)?.saturating_sub(facts.date_ms?),
    };
    Some(asked_ms.min(MAX_RETRY_AFTER_MS))
}
