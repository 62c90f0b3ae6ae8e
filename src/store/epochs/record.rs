//! The body of an epoch: a record with `validity_ms` and `expired` beside it, or these two alone.

use serde::Serialize;

use super::listing::{Epoch, LAST};
use crate::calendar::YEAR_9999_MS;
use crate::json::{self, Object};
use crate::lease::{
    Closed, Flaw, Format, Lease, MAX_FOREIGN_LEASE_MS, MAX_LEASE_MS, MAX_TERM, MIN_LEASE_MS,
    Reading, Remains, Stamp,
};

/// What a record says to those who know these two fields alone.
#[derive(Serialize)]
struct Lock {
    #[serde(skip_serializing_if = "Option::is_none")]
    validity_ms: Option<u64>,
    expired: bool,
}

const VALIDITY: &str = "validity_ms";
const EXPIRED: &str = "expired";

/// A lease as its epoch's body.
pub(super) fn write(format: Format, lease: &Lease) -> Vec<u8> {
    let lock = Lock { validity_ms: lease.lease_ms, expired: lease.released() };
    format.write_with(lease, &Object::of(&lock)).into_bytes()
}

/// Reads an epoch's body, in which no `term` is below the epoch's number. `modified_ms` is when it was written.
pub(super) fn judge(format: Format, epoch: Epoch, body: &[u8], modified_ms: u64) -> Reading {
    // Nothing can follow it, whatever it says.
    if epoch.number >= LAST {
        return Reading::Closed(Closed::TermTooHigh);
    }
    let number = epoch.number;
    match read_body(format, epoch, body, modified_ms) {
        Reading::Lease(mut lease) => {
            lease.term = match lease.term {
                Some(term) => Some(term.max(number)),
                // The election counts the storage time of the last change, unless that is no time of ours.
                None => Some(number).filter(|number| *number > modified_ms),
            };
            Reading::Lease(lease)
        }
        Reading::Unreadable(flaw, told) => {
            Reading::Unreadable(flaw, Remains { term: told.term.max(Some(number)), ..told })
        }
        closed => closed,
    }
}

/// Reads a body: a record of `format`, or one that says `validity_ms` and `expired` alone.
fn read_body(format: Format, epoch: Epoch, body: &[u8], modified_ms: u64) -> Reading {
    match format.read(body) {
        Reading::Lease(mut lease) => {
            let expired = take(&mut lease.extra, EXPIRED).map(|json| json::flag(&json));
            let validity = take(&mut lease.extra, VALIDITY).map(|json| validity_ms(&json));
            if lease.session.is_none() {
                // Whoever knows no sessions says by these two what it means.
                lease.lease_ms = lease.lease_ms.max(validity.flatten());
                let told =
                    Remains { lease_ms: remaining_ms(lease.lease_ms), ..Remains::of(&lease) };
                match (expired, validity) {
                    (Some(None), _) => return Reading::Unreadable(Flaw::Foreign, told),
                    (_, Some(None)) => return Reading::Unreadable(Flaw::Absurd, told),
                    (Some(Some(true)), _) => lease.last_updated = Stamp::Released,
                    _ => {}
                }
            }
            Reading::Lease(lease)
        }
        Reading::Unreadable(flaw, told) => match Object::read(body) {
            Some(fields) if flaw == Flaw::Foreign && foreign(&fields) => {
                read_foreign(epoch, fields, modified_ms)
            }
            fields => {
                let validity = fields.and_then(|fields| validity_ms(fields.get(VALIDITY)?));
                let lease_ms = remaining_ms(validity);
                Reading::Unreadable(flaw, told.and(Remains { term: None, lease_ms }))
            }
        },
        other => other,
    }
}

/// What two records of one number say together: nobody's lease ends before both have.
pub(super) fn of_twins(one: &Reading, other: &Reading) -> Reading {
    let told = |reading: &Reading| match reading {
        Reading::Lease(lease) => {
            Remains { lease_ms: remaining_ms(lease.lease_ms), ..Remains::of(lease) }
        }
        Reading::Unreadable(_, told) => *told,
        Reading::Closed(_) => Remains::NONE,
    };
    match (one, other) {
        (Reading::Closed(why), _) | (_, Reading::Closed(why)) => Reading::Closed(*why),
        (Reading::Unreadable(flaw, _), _) | (_, Reading::Unreadable(flaw, _)) => {
            Reading::Unreadable(*flaw, told(one).and(told(other)))
        }
        (Reading::Lease(one), Reading::Lease(other)) => {
            let (held, less) = if one.released() { (other, one) } else { (one, other) };
            let living = !less.released();
            if living && held.lease_ms.is_some() != less.lease_ms.is_some() {
                // The one that names none lasts for as long as a lease of the reader's.
                let told = Remains::of(held).and(Remains::of(less));
                let lease_ms = remaining_ms(told.lease_ms);
                return Reading::Unreadable(Flaw::Foreign, Remains { lease_ms, ..told });
            }
            let mut both = held.clone();
            both.session = None;
            both.parked &= !living || less.parked && less.leader_id == held.leader_id;
            both.term = held.term.max(less.term);
            both.lease_ms = held.lease_ms.max(less.lease_ms.filter(|_| living));
            if less.slot > held.slot {
                (both.slot, both.slot_done) = (less.slot, less.slot_done);
                both.slot_result.clone_from(&less.slot_result);
                (both.slot_took_ms, both.slot_failures) = (less.slot_took_ms, less.slot_failures);
                both.slot_term = less.slot_term;
            }
            Reading::Lease(both)
        }
    }
}

/// Whether a body has at least one of the two fields and none that only a record of ours, damaged, would have.
fn foreign(fields: &Object) -> bool {
    let given = |name: &&str| fields.get(name).is_some_and(|json| !json::is_null(json));
    let ours = ["leaderID", "holderIdentity", "session", "leaseMs"];
    !ours.iter().any(given) && [VALIDITY, EXPIRED].iter().any(given)
}

/// Source of the format: <https://www.morling.dev/blog/leader-election-with-s3-conditional-writes/>.
fn read_foreign(epoch: Epoch, mut fields: Object, modified_ms: u64) -> Reading {
    let validity = take(&mut fields, VALIDITY).map(|json| validity_ms(&json));
    let lease_ms = validity.flatten();
    let term = match take(&mut fields, "term") {
        None => None,
        Some(json) => match json::whole(&json) {
            Some(term) if term <= MAX_TERM => Some(term),
            None if !json::is_at_least(&json, MAX_TERM) => {
                return Reading::Unreadable(
                    Flaw::Foreign,
                    Remains { term: None, lease_ms: remaining_ms(lease_ms) },
                );
            }
            _ => return Reading::Closed(Closed::TermTooHigh),
        },
    };
    if validity == Some(None) {
        return Reading::Unreadable(Flaw::Absurd, Remains { term, lease_ms });
    }
    let released = match take(&mut fields, EXPIRED).map(|json| json::flag(&json)) {
        Some(None) => {
            return Reading::Unreadable(
                Flaw::Foreign,
                Remains { term, lease_ms: remaining_ms(lease_ms) },
            );
        }
        given => given.flatten().unwrap_or(false),
    };
    if !released && lease_ms.is_none() {
        return Reading::Closed(Closed::NoEnd);
    }
    // It names no time of its own; this one is for people, and no rule reads it.
    let written = Stamp::At(i64::try_from(modified_ms).unwrap_or(i64::MAX).min(YEAR_9999_MS));
    let last_updated = if released { Stamp::Released } else { written };
    let lease = Lease { term, lease_ms, extra: fields, ..Lease::bare(epoch.name(), last_updated) };
    Reading::Lease(Box::new(lease))
}

/// How long somebody else's lock is valid: waited out in full, also where no lease of ours is as long.
fn validity_ms(json: &str) -> Option<u64> {
    let told_ms = json::rounded_up(json).filter(|ms| *ms >= MIN_LEASE_MS);
    told_ms.map(|ms| ms.min(MAX_FOREIGN_LEASE_MS))
}

/// The same where the body cannot be used, of which an hour at most is waited out (S7).
fn remaining_ms(validity: Option<u64>) -> Option<u64> {
    validity.map(|ms| ms.min(MAX_LEASE_MS))
}

/// A field's JSON; `null` counts as not there. It is written anew, so none of its name stays, whatever its case.
fn take(fields: &mut Object, name: &str) -> Option<String> {
    let json = fields.remove(name).filter(|json| !json::is_null(json));
    let named = |other: &&str| other.eq_ignore_ascii_case(name);
    let others: Vec<String> =
        fields.iter().map(|(other, _)| other).filter(named).map(ToOwned::to_owned).collect();
    for other in others {
        fields.remove(&other);
    }
    json
}
