//! How long a version of the record is known not to have changed (S6).
//!
//! Each answer that showed the version proves a lower bound of its age, and own monotonic time since that
//! answer adds to it; the greatest sum counts. (a) The answer that first showed the version proves zero.
//! (b) The store's own clock: `Date - Last-Modified`, less a second of rounding and `storeSkew`.

use crate::clock::{Clocks, Drift, Now, ROUNDING_MS, Since};
use crate::planted::planted;
use crate::store::{Facts, Version};

/// A version of the record and what is known of its age.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Observation {
    /// The version.
    pub version: Version,
    /// The answer that first showed it; a step of a single clock begins again.
    since: Since,
    /// Whether an answer that shows the present began the watch.
    begun: bool,
    first_mono_ms: u64,
    /// The greatest age by proof (b), and the own clock from which on own time adds to it.
    by_store: Option<(u64, u64)>,
    last_modified_ms: Option<u64>,
    /// The same, also from a relayed answer: it belongs to the body, however old the answer is.
    changed_ms: Option<u64>,
    /// Its `Last-Modified` is no later than this, as long as nobody makes it anew.
    latest_ms: Option<u64>,
    /// The earliest `Date` of an answer that showed the version, which had its last change by then.
    dated_ms: Option<u64>,
    /// Proof (b) is off for this version: `Date` and the own clock moved apart while we watched, or the
    /// store's clock claims what cannot be.
    store_clock_off: bool,
    /// The newest `Last-Modified` and the own clock when it was read.
    modified_at: Option<(u64, u64)>,
    /// How many reads in a row showed a `Last-Modified` that had moved on as the own clock did.
    moves: u32,
    /// How often the wait for this version began anew.
    restarts: u32,
    /// An answer to a read has shown it.
    read: bool,
}

/// After how many moves in a row `Last-Modified` is the time of the answer and not of the record.
const MOVES_ALWAYS: u32 = 3;

/// Nor is one version gone and made anew more often than this, whatever its `Last-Modified` says.
const MOST_RESTARTS: u32 = 6;

/// How far two differences of time may be apart that count as equal, in milliseconds: whole seconds, and the store's
/// several clocks.
const ALIKE_MS: u64 = 3_000;

/// How far the `Date` of an answer and a `Last-Modified` that a proxy made for it may be apart, in milliseconds.
const OF_ANSWER_MS: u64 = 2_000;

impl Observation {
    /// The version was first shown by the answer that is processed now.
    pub fn first(version: Version, clocks: &Clocks, now: Now) -> Self {
        Self {
            version,
            since: clocks.begin(now),
            begun: true,
            first_mono_ms: now.mono_ms,
            by_store: None,
            last_modified_ms: None,
            changed_ms: None,
            latest_ms: None,
            dated_ms: None,
            store_clock_off: false,
            modified_at: None,
            moves: 0,
            restarts: 0,
            read: false,
        }
    }

    /// Adds what an answer that showed this version says: a 200's `Last-Modified`, a 304's `Date`.
    ///
    /// `oldest_ms` is how old the version can be at most, where an earlier answer showed another one: a store
    /// clock that claims more is wrong.
    pub fn shown(
        &mut self,
        clocks: &Clocks,
        now: Now,
        facts: &Facts,
        drift: Drift,
        oldest_ms: Option<u64>,
    ) {
        self.read = true;
        let present = clocks.shows_present(facts);
        if present && !self.begun {
            self.since = clocks.begin(now);
        }
        self.begun = present || (self.begun && !self.is_new(now));
        // A body that was put again may be shown with the time of before once more.
        self.changed_ms = facts.last_modified_ms.max(self.changed_ms);
        self.latest_ms = facts.last_modified_ms.or(self.latest_ms);
        if let Some(modified_ms) = facts.last_modified_ms {
            self.note_move(modified_ms, facts.date_ms, now);
        }
        self.dated_ms = self.dated_ms.into_iter().chain(facts.date_ms).min();
        if matches!(drift, Drift::StoreAhead | Drift::OwnAhead) {
            self.distrust_store_clock();
        }
        if facts.relayed && !planted!(RelayBelieved) {
            return;
        }
        if facts.last_modified_ms.is_some() {
            self.last_modified_ms = facts.last_modified_ms;
        }
        let (Some(date_ms), Some(modified_ms)) = (facts.date_ms, self.last_modified_ms) else {
            return;
        };
        if self.store_clock_off {
            return;
        }
        let proven_ms = clocks.age_by_store_ms(date_ms, modified_ms);
        if oldest_ms.is_some_and(|oldest_ms| proven_ms > oldest_ms) {
            return self.distrust_store_clock();
        }
        let at_ms = now.mono_ms.saturating_add(clocks.owed_by_store_ms(date_ms, modified_ms));
        let sooner = at_ms == now.mono_ms || self.by_store.is_none_or(|(_, known)| at_ms <= known);
        let known_ms = self.age_by_store_ms(clocks, now);
        if known_ms.is_none_or(|known_ms| proven_ms >= known_ms && sooner) {
            self.by_store = Some((proven_ms, at_ms));
        }
    }

    /// How many milliseconds a store that takes writes so far apart may go on to refuse one after that of this version. A guess
    /// by the store's clock, which nothing but patience depends on.
    pub fn rests_ms(&self, now: Now, apart_ms: u64) -> u64 {
        let shown_ms = now.mono_ms.saturating_sub(self.first_mono_ms);
        let dates_ms = self.dated_ms.zip(self.changed_ms);
        let before_ms =
            dates_ms.map_or(0, |(date_ms, changed_ms)| date_ms.saturating_sub(changed_ms));
        // Both are whole seconds.
        apart_ms.saturating_sub(shown_ms.saturating_add(before_ms.saturating_sub(1_000)))
    }

    /// The version was made by a write of ours that this answer showed to have landed.
    pub fn made(&mut self, facts: &Facts) {
        // Less than another of the store's clocks may say: one that came back within `storeSkew` would look like this one.
        // The read that follows soon shows which it is.
        let by_date_ms = facts.date_ms.map(|date_ms| date_ms.saturating_add(ROUNDING_MS));
        self.latest_ms = facts.last_modified_ms.or(by_date_ms);
        self.dated_ms = facts.date_ms;
    }

    /// Whether an answer shows that the version was gone and came back. Only for a record that nobody renews: a
    /// change of its metadata moves `Last-Modified` as well. One that moves with each read says nothing.
    pub fn made_anew(&self, facts: &Facts) -> bool {
        // None is known of a creation of ours whose answer had no `Date`: its wait begins once more.
        facts.last_modified_ms > self.latest_ms && !self.moves_always()
    }

    /// Whether `Last-Modified` has moved with each of the last reads of this version, as a proxy's does that makes its
    /// own: a wait that began anew each time would never end.
    pub fn moves_always(&self) -> bool {
        let always = self.moves >= MOVES_ALWAYS || self.restarts >= MOST_RESTARTS;
        always && !planted!(MovingTimeBelieved)
    }

    /// Whether the wait for this version has begun anew, or the last read showed a `Last-Modified` that had moved on as
    /// the own clock did.
    pub fn moved(&self) -> bool {
        self.moves > 0 || self.restarts > 1
    }

    fn note_move(&mut self, modified_ms: u64, date_ms: Option<u64>, now: Now) {
        let Some((before_ms, mono_ms)) = self.modified_at else {
            self.modified_at = Some((modified_ms, now.mono_ms));
            return;
        };
        let passed_ms = now.mono_ms.saturating_sub(mono_ms);
        if passed_ms < ALIKE_MS && modified_ms.abs_diff(before_ms) < ALIKE_MS {
            // Too soon to tell whether it moves.
            return;
        }
        // Roughly, because clocks differ; a record that is made anew does this three times in a row only by chance.
        let moved_ms = modified_ms.saturating_sub(before_ms);
        // Nor is it the time of an answer that names another one: somebody puts the same bytes again and again.
        let of_answer = date_ms.is_none_or(|ms| ms.abs_diff(modified_ms) <= OF_ANSWER_MS);
        let alike = moved_ms.saturating_add(ALIKE_MS) >= passed_ms / 2
            && moved_ms > 0
            && moved_ms <= 2 * passed_ms + ALIKE_MS
            && of_answer;
        self.moves = if alike { self.moves.saturating_add(1) } else { 0 };
        self.modified_at = Some((modified_ms, now.mono_ms));
    }

    /// The same version, watched from here on; what is known of the store's clock holds.
    pub fn anew(&self, clocks: &Clocks, now: Now) -> Self {
        let Self { store_clock_off, modified_at, moves, .. } = *self;
        let restarts = self.restarts.saturating_add(1);
        let first = Self::first(self.version.clone(), clocks, now);
        Self { store_clock_off, modified_at, moves, restarts, ..first }
    }

    /// Whether an answer to a read has shown it, so that [`Observation::made_anew`] compares with that.
    pub fn was_read(&self) -> bool {
        self.read
    }

    /// Proof (b) is off for this version from here on.
    pub fn distrust_store_clock(&mut self) {
        if planted!(DriftBelieved) {
            return;
        }
        self.store_clock_off = true;
        self.by_store = None;
    }

    /// New settings: an age that the store's clock proved by the old ones counts no more.
    pub fn forget_store_age(&mut self) {
        self.by_store = None;
    }

    /// Counts on from the newest answer as [`Clocks::rebased`] says.
    pub fn rebase(&mut self, clocks: &Clocks, now: Now) {
        self.since = clocks.rebased(now, self.since);
    }

    /// Starts the observation again: what was measured by a clock that stepped proves nothing.
    pub fn restart(&mut self, clocks: &Clocks, now: Now) {
        self.since = clocks.begin(now);
        self.first_mono_ms = now.mono_ms;
        self.by_store = None;
    }

    /// The proven age in milliseconds.
    pub fn age_ms(&self, clocks: &Clocks, now: Now) -> u64 {
        self.watched_ms(clocks, now).max(self.age_by_store_ms(clocks, now).unwrap_or(0))
    }

    /// The age by proof (a) alone, in milliseconds.
    pub fn watched_ms(&self, clocks: &Clocks, now: Now) -> u64 {
        let watched_ms = clocks.passed_ms(now, self.since);
        let watched_ms = watched_ms.saturating_sub(clocks.watched_doubt_ms());
        if self.begun { watched_ms } else { 0 }
    }

    fn age_by_store_ms(&self, clocks: &Clocks, now: Now) -> Option<u64> {
        let (proven_ms, at_ms) = self.by_store.filter(|_| clocks.date_ahead_ms().is_none())?;
        // A single clock may have stepped forward since, so that its time adds nothing.
        let since_ms = if clocks.single() { 0 } else { now.mono_ms.saturating_sub(at_ms) };
        Some(proven_ms.saturating_add(since_ms))
    }

    /// The monotonic reading at which the proven age should be `age_ms`, if nothing changes; for planning
    /// only.
    pub fn proven_at_ms(&self, clocks: &Clocks, now: Now, age_ms: u64) -> u64 {
        now.mono_ms.saturating_add(age_ms.saturating_sub(self.age_ms(clocks, now)))
    }

    /// For how long this version has been shown, by the own clock alone, in milliseconds: no proof of an age.
    pub fn shown_for_ms(&self, now: Now) -> u64 {
        now.mono_ms.saturating_sub(self.first_mono_ms)
    }

    /// Whether the answer processed at `now` was the first that showed this version.
    pub fn is_new(&self, now: Now) -> bool {
        self.first_mono_ms == now.mono_ms
    }

    /// `Last-Modified` of the version in milliseconds since the Unix epoch, where an answer named it.
    pub fn changed_ms(&self) -> Option<u64> {
        self.changed_ms.filter(|_| !self.moves_always())
    }

    /// What the store's clock showed at most when the version had its last change, but for the whole seconds of
    /// `Last-Modified`; where an answer named any time. No own time is in it, so that it holds over a step of the own clock.
    pub fn changed_by_ms(&self, clocks: &Clocks) -> Option<u64> {
        let dated_ms = self.dated_ms.filter(|_| !planted!(ForeignTermFromNow));
        // No version is changed after an answer has shown it, whatever a proxy's `Last-Modified` says later.
        let shown_ms = self.dated_ms.map_or(u64::MAX, |date_ms| clocks.latest_of_ms(date_ms));
        let changed_ms = self.changed_ms().map(|changed_ms| changed_ms.min(shown_ms));
        changed_ms.or(dated_ms.map(|date_ms| date_ms.saturating_add(999)))
    }

    /// Whether the store's clock gives proofs for this version.
    pub fn has_store_clock(&self, clocks: &Clocks) -> bool {
        self.by_store.is_some() && clocks.date_ahead_ms().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HostClock;

    const SKEW_MS: u64 = 2_000;

    fn facts(date_s: u64, modified_s: u64) -> Facts {
        Facts {
            date_ms: Some(date_s * 1_000),
            last_modified_ms: Some(modified_s * 1_000),
            ..Facts::default()
        }
    }

    fn at(mono_ms: u64) -> Now {
        Now::new(mono_ms, mono_ms)
    }

    fn observe(clocks: &mut Clocks, now: Now, facts: &Facts) -> Observation {
        clocks.answer(now, now, facts);
        let mut observation = Observation::first(Version("\"v\"".to_owned()), clocks, now);
        observation.shown(clocks, now, facts, Drift::Unproven, None);
        observation
    }

    #[test]
    fn c43_the_first_answer_proves_nothing_and_own_time_adds_to_it() {
        let mut clocks = Clocks::new(HostClock::Two, SKEW_MS);
        let observation = observe(&mut clocks, at(7_000), &Facts::default());
        assert_eq!(observation.age_ms(&clocks, at(7_000)), 0);
        assert_eq!(observation.age_ms(&clocks, at(22_000)), 15_000);
        assert_eq!(observation.proven_at_ms(&clocks, at(7_000), 15_000), 22_000);
    }

    #[test]
    fn a_store_rests_from_the_write_of_a_version_or_from_when_that_was_first_shown() {
        let mut clocks = Clocks::new(HostClock::Two, SKEW_MS);
        for (named, at_ms, rests_ms) in [
            (Facts::default(), 7_000, 10_000),
            (Facts::default(), 11_000, 6_000),
            (Facts::default(), 30_000, 0),
            (facts(104, 100), 7_000, 7_000),
            (facts(104, 100), 9_000, 5_000),
            // `Date` before `Last-Modified` says nothing.
            (facts(100, 104), 7_000, 10_000),
        ] {
            let observation = observe(&mut clocks, at(7_000), &named);
            assert_eq!(observation.rests_ms(at(at_ms), 10_000), rests_ms, "{named:?} {at_ms}");
        }
    }

    #[test]
    fn the_stores_clock_proves_an_age_at_once_less_rounding_and_skew() {
        let mut clocks = Clocks::new(HostClock::Two, SKEW_MS);
        let observation = observe(&mut clocks, at(0), &facts(120, 100));
        assert_eq!(observation.age_ms(&clocks, at(0)), 17_000);
        assert_eq!(observation.age_ms(&clocks, at(500)), 17_500);
    }

    #[test]
    fn a_later_304_proves_by_its_date_with_the_200s_last_modified() {
        let mut clocks = Clocks::new(HostClock::One, SKEW_MS);
        let mut observation = observe(&mut clocks, at(0), &facts(103, 100));
        assert_eq!(observation.age_ms(&clocks, at(0)), 0);
        let later = Facts { last_modified_ms: None, ..facts(120, 0) };
        let drift = clocks.answer(at(17_000), at(17_000), &later);
        observation.shown(&clocks, at(17_000), &later, drift, None);
        assert_eq!(observation.age_ms(&clocks, at(17_000)), 17_000);
    }

    #[test]
    fn c43_a_relayed_answer_and_a_clock_that_drifts_prove_nothing() {
        let mut clocks = Clocks::new(HostClock::Two, SKEW_MS);
        let relayed = Facts { relayed: true, ..facts(200, 100) };
        let mut observation = observe(&mut clocks, at(0), &relayed);
        assert_eq!(observation.age_ms(&clocks, at(0)), 0);
        let direct = Facts { last_modified_ms: None, ..facts(200, 0) };
        observation.shown(&clocks, at(0), &direct, Drift::Agreed, None);
        assert_eq!(observation.age_ms(&clocks, at(0)), 0, "the relayed Last-Modified is not used");
        observation.shown(&clocks, at(0), &facts(200, 100), Drift::StoreAhead, None);
        assert_eq!(observation.age_ms(&clocks, at(1_000)), 1_000);
    }

    #[test]
    fn a_store_clock_that_claims_more_than_can_be_is_not_believed() {
        let mut clocks = Clocks::new(HostClock::Two, SKEW_MS);
        clocks.answer(at(10_000), at(10_000), &facts(200, 100));
        let mut observation = Observation::first(Version("\"w\"".to_owned()), &clocks, at(10_000));
        observation.shown(&clocks, at(10_000), &facts(200, 100), Drift::Agreed, Some(5_000));
        assert_eq!(observation.age_ms(&clocks, at(10_000)), 0);
    }

    #[test]
    fn a_single_clock_that_jumped_forward_proves_no_more_than_the_stores() {
        let mut clocks = Clocks::new(HostClock::One, SKEW_MS);
        let observation = observe(&mut clocks, at(0), &facts(100, 100));
        clocks.answer(at(16_900), at(16_900), &facts(115, 100));
        assert_eq!(observation.age_ms(&clocks, at(16_900)), 12_000);
    }

    #[test]
    fn a_later_date_that_proves_less_takes_nothing_away() {
        let mut clocks = Clocks::new(HostClock::Two, SKEW_MS);
        let mut observation = observe(&mut clocks, at(0), &facts(120, 100));
        observation.shown(&clocks, at(5_000), &facts(122, 100), Drift::Agreed, None);
        assert_eq!(observation.age_ms(&clocks, at(5_000)), 22_000);
    }

    #[test]
    fn s6_where_nothing_corrects_an_older_answer_only_one_of_the_store_begins_a_watch() {
        let mut clocks = Clocks::new(HostClock::Two, SKEW_MS);
        clocks.set_covered(false);
        let relayed = Facts { relayed: true, ..Facts::default() };
        let mut observation = observe(&mut clocks, at(0), &relayed);
        assert_eq!(observation.age_ms(&clocks, at(60_000)), 0);
        observation.shown(&clocks, at(60_000), &Facts::default(), Drift::Unproven, None);
        observation.shown(&clocks, at(65_000), &relayed, Drift::Unproven, None);
        assert_eq!(observation.age_ms(&clocks, at(70_000)), 7_000);
    }

    #[test]
    fn a_wait_that_has_begun_anew_six_times_does_so_no_more() {
        let mut clocks = Clocks::new(HostClock::Two, SKEW_MS);
        let mut observation = observe(&mut clocks, at(0), &facts(100, 100));
        for restarts in 1..=6 {
            assert!(observation.made_anew(&facts(200, 101)), "{restarts}");
            observation = observation.anew(&clocks, at(restarts * 60_000));
        }
        assert!(!observation.made_anew(&facts(900, 800)));
    }
}
