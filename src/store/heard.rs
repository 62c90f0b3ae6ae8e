//! What every answer over HTTP says about time, whichever store gave it.

use std::num::IntErrorKind;

use crate::calendar;
use crate::planted::planted;
use crate::request::{self, Response};
use crate::store::Facts;

/// The longest pause that a store may ask for, in milliseconds (five minutes).
const MAX_RETRY_AFTER_MS: u64 = 300_000;

/// The same for what stands in its place, such as a gateway that begins anew and knows nothing of the store: as long as a
/// back-off may grow by default.
const MAX_GATEWAY_RETRY_MS: u64 = 30_000;

/// `Date`, `Last-Modified`, and whether something in between answered or relayed.
pub(super) fn facts(response: &Response) -> Facts {
    Facts {
        date_ms: only_time_ms(response, "date"),
        last_modified_ms: only_time_ms(response, "last-modified"),
        relayed: ["age", "via"].iter().any(|name| response.headers().contains_key(*name))
            && !planted!(ViaIgnored),
        // A relay that fetched the answer for us may say so with a zero.
        cached: request::count(response.headers(), "age")
            > usize::from(request::text(response.headers(), "age") == Some("0")),
        doubtful: false,
    }
}

/// The time in a header that an answer has exactly once: of two, nobody knows which one the store wrote. JavaScript's
/// `fetch` joins them with a comma, which makes them no time.
fn only_time_ms(response: &Response, name: &str) -> Option<u64> {
    let headers = response.headers();
    let text = request::text(headers, name).filter(|_| request::count(headers, name) == 1)?;
    calendar::read_http_date(text)
}

/// `Retry-After` in seconds, or as a date beside the answer's own `Date`: no clock of ours is compared. `by_store`: the answer
/// has the store's own error document.
pub(super) fn retry_after_ms(response: &Response, facts: &Facts, by_store: bool) -> Option<u64> {
    let text = request::text(response.headers(), "retry-after")?.trim();
    let asked_ms = match text.parse::<u64>() {
        Ok(seconds) => seconds.saturating_mul(1_000),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => u64::MAX,
        Err(_) => calendar::read_http_date(text)?.saturating_sub(facts.date_ms?),
    };
    Some(asked_ms.min(if by_store { MAX_RETRY_AFTER_MS } else { MAX_GATEWAY_RETRY_MS }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Body;

    const EARLY: &str = "Sun, 22 Nov 2026 17:00:00 GMT";
    const LATE: &str = "Sun, 22 Nov 2026 17:00:30 GMT";

    fn heard(headers: &[(&str, &str)]) -> Facts {
        let mut answer = http::Response::builder();
        for (name, value) in headers {
            answer = answer.header(*name, *value);
        }
        facts(&answer.body(Body::default()).unwrap())
    }

    #[test]
    fn a_pause_beyond_every_number_is_the_longest_one() {
        let asked = |text: &str| {
            let answer = http::Response::builder().header("retry-after", text);
            let answer = answer.body(Body::default()).unwrap();
            [true, false].map(|by_store| retry_after_ms(&answer, &facts(&answer), by_store))
        };
        assert_eq!(asked("20"), [Some(20_000); 2]);
        assert_eq!(asked("300"), [Some(300_000), Some(30_000)], "a gateway's is shorter");
        let most = [MAX_RETRY_AFTER_MS, MAX_GATEWAY_RETRY_MS].map(Some);
        assert_eq!(asked("18446744073709551616"), most);
        assert_eq!(asked("-1"), [None; 2]);
    }

    #[test]
    fn a_time_that_is_told_twice_is_none() {
        let once = heard(&[("date", LATE), ("last-modified", EARLY)]);
        let (date_ms, modified_ms) = (once.date_ms.unwrap(), once.last_modified_ms.unwrap());
        assert_eq!(date_ms - modified_ms, 30_000);
        for dates in [[EARLY, LATE], [LATE, EARLY], [LATE, LATE], [LATE, "no time"]] {
            let twice = dates.map(|date| ("date", date));
            let read = heard(&[twice[0], ("last-modified", EARLY), twice[1]]);
            assert_eq!(
                (read.date_ms, read.last_modified_ms),
                (None, Some(modified_ms)),
                "{dates:?}"
            );
            let read = heard(&dates.map(|date| ("last-modified", date)));
            assert_eq!(read.last_modified_ms, None, "{dates:?}");
            let joined = dates.join(", ");
            let read = heard(&[("date", &joined), ("last-modified", &joined)]);
            assert_eq!((read.date_ms, read.last_modified_ms), (None, None), "{joined}");
        }
    }
}
