//! What a group's stored record says to somebody who runs no member: for people and monitors, who grant nothing by it.

use serde::Serialize;

use crate::calendar;
use crate::config::Config;
use crate::driver::{Host, UNHURRIED_MS, perform_within};
use crate::election::Problem;
use crate::json;
use crate::lease::{History, Lease, OperatorRequest, PastSlot, Reading, history};
use crate::status::PausedStatus;
use crate::store::{Facts, Fault, Operation, Outcome, Store};
use crate::text::{first, quoted};

/// When slots are due, where somebody wants to know whether one is overdue.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    /// The time between two slots, in milliseconds.
    pub period_ms: u64,
    /// How late a slot may begin, in milliseconds.
    pub late_ms: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Look<'a> {
    group: &'a str,
    state: &'static str,
    leader_id: Option<&'a str>,
    leader_addr: Option<&'a str>,
    since: Option<u64>,
    term: Option<u64>,
    left_ms: Option<u64>,
    paused: Option<PausedStatus<'a>>,
    transitions: Option<u64>,
    history: History,
    last_slot: Option<PastSlot>,
    slot_overdue: Option<bool>,
    why: Option<String>,
}

/// Reads the record once and gives what it shows as a JSON object. `state` is `led`, `paused`, `parked`, `expired`, `released`,
/// `grace`, `missing`, `unreadable` or `closed`; `why` is a sentence that says why nobody leads, or what an operator asks of the leader. Times are in milliseconds since the Unix
/// epoch. `slotOverdue` is `null` where `due` is `None`. The age of the record is a guess by the store's clock, or without one by
/// the own, which is good enough to be shown.
///
/// # Errors
/// The store did not answer, or refused.
pub async fn look<S: Store, H: Host>(
    store: &S,
    host: &H,
    config: &Config,
    due: Option<Due>,
) -> Result<String, Fault> {
    let read = Operation::Read { unless: None };
    let answer = perform_within(store, host, read, UNHURRIED_MS).await;
    let storage_ms = answer.facts.date_ms.unwrap_or(host.now().wall_ms);
    match answer.outcome {
        Outcome::Found { reading, .. } => {
            Ok(shown(config, Some(&reading), &answer.facts, storage_ms, due))
        }
        Outcome::Unknown { cause, .. } | Outcome::Rejected(cause) => Err(cause),
        _ => Ok(shown(config, None, &answer.facts, storage_ms, due)),
    }
}

fn shown(
    config: &Config,
    found: Option<&Reading>,
    facts: &Facts,
    storage_ms: u64,
    due: Option<Due>,
) -> String {
    let lease = match found {
        Some(Reading::Lease(lease)) => Some(&**lease),
        _ => None,
    };
    let left_ms =
        lease.map_or(0, |lease| facts.left_ms(lease, config.leader_timeout_ms, storage_ms));
    let asked = lease.and_then(|lease| lease.operator.as_ref());
    let paused = lease.and_then(|lease| lease.pause(storage_ms));
    let (state, why) = match (state_of(found, left_ms), paused) {
        // A leader obeys at its next renewal.
        (("led", _), _) => ("led", asked.map(OperatorRequest::told)),
        (_, Some(pause)) => ("paused", Some(pause.told())),
        (state, None) => state,
    };
    let leader = lease.filter(|_| state == "led");
    // A group of which no slot is known was started when its record was written.
    let begun_ms = lease.and_then(|lease| lease.slot.or(facts.last_modified_ms));
    let is_overdue = |due: Due| {
        let allowed_ms = due.period_ms.saturating_add(due.late_ms);
        begun_ms.is_none_or(|begun_ms| storage_ms > begun_ms.saturating_add(allowed_ms))
    };
    json::of(&Look {
        group: &config.lockfile_path,
        state,
        leader_id: leader.map(|lease| lease.leader_id.as_str()),
        leader_addr: leader.map(|lease| lease.leader_addr.as_str()).filter(|addr| !addr.is_empty()),
        since: leader.and_then(|lease| u64::try_from(lease.acquired?).ok()),
        term: lease.and_then(|lease| lease.term),
        left_ms: leader.map(|_| left_ms.unsigned_abs()),
        paused: paused.map(PausedStatus::from),
        transitions: lease.map(|lease| lease.transitions),
        history: lease.map(|lease| lease.history.clone()).unwrap_or_default(),
        last_slot: lease.and_then(history::shown_slot),
        slot_overdue: due.map(is_overdue),
        why,
    })
}

fn state_of(found: Option<&Reading>, left_ms: i64) -> (&'static str, Option<String>) {
    let (state, why) = match found {
        None => {
            let why = "there is no lease object of this name: no member has run yet, somebody deleted it, or \
                       your group has another name (--lockfile-path)";
            ("missing", why.to_owned())
        }
        Some(Reading::Closed(why)) => ("closed", Problem::closed(*why).to_string()),
        Some(Reading::Unreadable(flaw, _)) => {
            ("unreadable", Problem::Unreadable(*flaw).to_string())
        }
        Some(Reading::Lease(lease)) => return state_of_lease(lease, left_ms),
    };
    (state, Some(why))
}

const NOBODY_CLAIMS: &str = "nobody has claimed it: no member runs, or none reaches the store";

fn state_of_lease(lease: &Lease, left_ms: i64) -> (&'static str, Option<String>) {
    let by = quoted(first(&lease.leader_id, 120));
    let seconds = left_ms.unsigned_abs().div_ceil(1_000);
    let (state, why) = if lease.released() {
        ("released", released(lease, &by))
    } else if left_ms <= 0 {
        let why = format!("the lease of {by} ran out {seconds} s ago and {NOBODY_CLAIMS}");
        ("expired", why)
    } else if lease.parked {
        let why = format!(
            "{by} has parked the lease until its next trigger; others may claim it in {seconds} s"
        );
        ("parked", why)
    } else if lease.in_grace() {
        let why = format!(
            "{by} has written the lease object and waits out the grace, for {seconds} s at most"
        );
        ("grace", why)
    } else {
        return ("led", None);
    };
    (state, Some(why))
}

fn released(lease: &Lease, by: &str) -> String {
    if lease.is_creation() {
        return "an init was cut short: run it again, or wait until a member has waited out the grace"
            .to_owned();
    }
    if !lease.was_led() {
        return "the group was started and no member has led yet".to_owned();
    }
    let own_slot = history::shown_slot(lease).filter(|_| lease.slot_term == lease.term);
    match own_slot {
        Some(PastSlot { slot, outcome, .. }) => {
            let at = calendar::rfc3339(i64::try_from(slot).unwrap_or(i64::MAX));
            format!("the slot of {at} has ended ({outcome}) and the next one has not begun")
        }
        None => format!("{by} released the lease and {NOBODY_CLAIMS}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;
    use crate::lease;

    const NOW_MS: u64 = 1_795_244_300_000;

    /// What a look at this body shows that was written `age_ms` ago, where slots are due each hour.
    fn look_at(body: &str, age_ms: u64) -> serde_json::Value {
        let path = Some("a".to_owned());
        let config = Config::new(&Settings { lockfile_path: path, ..Settings::default() }).unwrap();
        let facts = Facts {
            date_ms: Some(NOW_MS),
            last_modified_ms: Some(NOW_MS - age_ms),
            ..Facts::default()
        };
        let due = Due { period_ms: 3_600_000, late_ms: 60_000 };
        let reading = Some(lease::read(body.as_bytes())).filter(|_| !body.is_empty());
        serde_json::from_str(&shown(&config, reading.as_ref(), &facts, NOW_MS, Some(due))).unwrap()
    }

    #[test]
    fn each_state_of_a_record_says_who_leads_or_why_nobody_does() {
        let record = |more: &str| {
            format!(
                r#"{{"leaderID":"a","lastUpdated":"2026-11-21T06:58:12Z","term":7,"session":"s","sequence":1,"leaseMs":15000{more}}}"#
            )
        };
        let acquired = r#","acquired":"2026-11-21T06:00:00Z""#;
        let slot = |ms: u64| {
            format!(r#"{acquired},"slot":{ms},"slotTerm":7,"slotDone":true,"slotTookMs":5"#)
        };
        let started = r#","acquired":"1970-01-01T00:00:00Z""#;
        let gone = r#","lastUpdated":"0001-01-01T00:00:00Z""#;
        let (hour_ms, minute_ms) = (3_600_000, 60_000);
        for (body, age_ms, state, why) in [
            (record(acquired), 4_000, "led", ""),
            (record(acquired), 16_000, "expired", "ran out 1 s ago"),
            (record(&format!("{acquired},\"parked\":true")), 4_000, "parked", "in 11 s"),
            (record(""), 4_000, "grace", "for 11 s at most"),
            (record(gone), 4_000, "released", "an init was cut short"),
            (record(&format!("{started}{gone}")), 4_000, "released", "no member has led yet"),
            (record(&format!("{acquired}{gone}")), 4_000, "released", "\"a\" released the lease"),
            (record(&format!("{}{gone}", slot(NOW_MS))), 4_000, "released", "has ended (ok)"),
            (
                record(&format!(
                    r#"{acquired}{gone},"operator":{{"ask":"pause","id":"i","by":"ann","why":"w"}}"#
                )),
                4_000,
                "paused",
                "\"ann\" has paused the group",
            ),
            (String::new(), 0, "missing", "no lease object"),
            ("{".to_owned(), 0, "unreadable", ""),
            (record(",\"format\":2"), 0, "closed", "newer"),
        ] {
            let told = look_at(&body, age_ms);
            assert_eq!(told["state"], state, "{told}");
            assert_eq!(told["why"].is_null(), state == "led", "{told}");
            assert!(told["why"].as_str().unwrap_or_default().contains(why), "{told}");
            assert_eq!(told["leftMs"].as_u64(), (state == "led").then_some(11_000), "{told}");
        }
        let since = NOW_MS - hour_ms - minute_ms;
        assert_eq!(look_at(&record(&slot(since)), 0)["slotOverdue"], false);
        assert_eq!(look_at(&record(&slot(since - 1)), 0)["slotOverdue"], true);
        assert_eq!(look_at(&record(acquired), hour_ms + minute_ms + 1)["slotOverdue"], true);
        assert_eq!(look_at("", 0)["slotOverdue"], true);
    }
}
