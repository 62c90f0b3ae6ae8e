//! How long a version of the record is known not to have changed (S6).
//!
//! Each answer that showed the version proves a lower bound of its age, and own monotonic time since that
//! answer adds to it; the greatest sum counts. (a) The answer that first showed the version proves zero.
//! (b) The store's own clock: `Date - Last-Modified`, less a second of rounding and `storeSkew`.

use crate::clock::{Drift, Now};
use crate::store::{Facts, Version};

/// A version of the record and what is known of its age.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The version.
    pub version: Version,
    /// When the answer that first showed it was processed, on the own monotonic clock; a step of a single
    /// clock starts it again.
    since_ms: u64,
    /// The monotonic reading at which the version was surely there already, by proof (b). Negative where
    /// that was before the clock's origin.
    origin_ms: Option<i64>,
    last_modified_ms: Option<u64>,
    /// Proof (b) is off for this version: `Date` and the own clock moved apart while we watched.
    store_clock_off: bool,
}

impl Observation {
    /// The version was first shown by the answer that is processed now.
    pub fn first(version: Version, now: Now) -> Self {
        Self {
            version,
            since_ms: now.mono_ms,
            origin_ms: None,
            last_modified_ms: None,
            store_clock_off: false,
        }
    }

    /// Adds what an answer that showed this version says: a 200's `Last-Modified`, a 304's `Date`.
    ///
    /// `youngest_ms` is how old the version can be at most, where an earlier answer showed another one: a
    /// store clock that claims more is wrong.
    pub fn shown(
        &mut self,
        now: Now,
        facts: &Facts,
        drift: Drift,
        store_skew_ms: u64,
        youngest_ms: Option<u64>,
    ) {
        if facts.last_modified_ms.is_some() {
            self.last_modified_ms = facts.last_modified_ms;
        }
        if matches!(drift, Drift::StoreAhead | Drift::OwnAhead) {
            self.store_clock_off = true;
            self.origin_ms = None;
        }
        if self.store_clock_off || facts.relayed {
            return;
        }
        let (Some(date_ms), Some(modified_ms)) = (facts.date_ms, self.last_modified_ms) else {
            return;
        };
        let apart_ms = date_ms.saturating_sub(modified_ms);
        let proven_ms = apart_ms.saturating_sub(1_000).saturating_sub(store_skew_ms);
        if youngest_ms.is_some_and(|youngest_ms| proven_ms > youngest_ms) {
            self.store_clock_off = true;
            self.origin_ms = None;
            return;
        }
        let origin_ms = i128::from(now.mono_ms) - i128::from(proven_ms);
        let origin_ms = i64::try_from(origin_ms).unwrap_or(i64::MAX);
        self.origin_ms = Some(self.origin_ms.map_or(origin_ms, |best_ms| best_ms.min(origin_ms)));
    }

    /// Starts the observation again: what was measured by a clock that stepped proves nothing.
    pub fn restart(&mut self, now: Now) {
        self.since_ms = now.mono_ms;
        self.origin_ms = None;
    }

    /// The proven age in milliseconds.
    pub fn age_ms(&self, now: Now) -> u64 {
        let watched_ms = now.mono_ms.saturating_sub(self.since_ms);
        let by_store_ms = self.origin_ms.map_or(0, |origin_ms| {
            u64::try_from(i128::from(now.mono_ms) - i128::from(origin_ms)).unwrap_or(0)
        });
        watched_ms.max(by_store_ms)
    }

    /// The monotonic reading at which the proven age will be `age_ms`, if nothing changes.
    pub fn proven_at_ms(&self, age_ms: u64) -> u64 {
        let origin_ms = self
            .origin_ms
            .map_or(i128::from(self.since_ms), |ms| i128::from(ms).min(self.since_ms.into()));
        u64::try_from((origin_ms + i128::from(age_ms)).max(0)).unwrap_or(u64::MAX)
    }

    /// Whether the answer processed at `now` was the first that showed this version.
    pub fn is_new(&self, now: Now) -> bool {
        self.since_ms == now.mono_ms
    }

    /// `Last-Modified` of the version in milliseconds since the Unix epoch, where an answer named it.
    pub fn last_modified_ms(&self) -> Option<u64> {
        self.last_modified_ms
    }

    /// Whether the store's clock gives proofs for this version.
    pub fn has_store_clock(&self) -> bool {
        self.origin_ms.is_some()
    }
}
