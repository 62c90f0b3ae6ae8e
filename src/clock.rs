//! What an election may believe about time (S11): readings of the host's clocks, and what the store's `Date`
//! says about them.

use crate::config::HostClock;
use crate::planted::planted;
use crate::store::Facts;

/// How far `Date` and the own clock may move apart between two answers, in milliseconds (S6, S11).
const DRIFT_MS: i64 = 2_000;

/// `Date` has whole seconds, so a difference of two may be this much too great, in milliseconds.
pub(crate) const ROUNDING_MS: u64 = 1_000;

/// So many answers, and no fewer, may deny the `Date` of an earlier one.
const DENIALS_ENOUGH: u32 = 3;

/// What part of its own time a clock may have run too fast: a margin is at most half the lease, so that a clock of the
/// contract (S1) is fast by at most half, which is a third of what it shows.
const FAST_PART: u64 = 3;

/// One reading of the host's clocks. Both count milliseconds; a host with one clock gives it twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Now {
    /// The monotonic clock, from any origin.
    pub mono_ms: u64,
    /// The wall clock, since the Unix epoch.
    pub wall_ms: u64,
    /// Whether the reading equals the due time of a pending timer of the host: a clock that is held
    /// there until the timer fires, and so says nothing (S11; only hosts with one clock do this).
    pub held: bool,
    /// How often the host has seen a timer fire before its due time by this clock: steps back that are
    /// smaller than the pause in which they happened, which no two readings show (only hosts with one clock).
    pub early_timers: u32,
}

impl Now {
    /// A reading of two clocks.
    pub fn new(mono_ms: u64, wall_ms: u64) -> Self {
        Self { mono_ms, wall_ms, held: false, early_timers: 0 }
    }

    /// How long ago `earlier` was, for something that we hold: the greater of the two differences, because
    /// suspend stops the one clock and a step moves the other.
    pub fn since_pessimistic_ms(&self, earlier: Now) -> u64 {
        let mono_ms = self.mono_ms.saturating_sub(earlier.mono_ms);
        if planted!(SuspendUnseen) {
            return mono_ms;
        }
        mono_ms.max(self.wall_ms.saturating_sub(earlier.wall_ms))
    }
}

/// How the own clock and the store's `Date` moved between the last two answers that had one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drift {
    /// There were no two answers with a `Date` to compare.
    Unproven,
    /// Within the tolerance.
    Agreed,
    /// `Date` moved on by more: the own clock lost time.
    StoreAhead,
    /// The own clock moved on by more.
    OwnAhead,
}

/// What a write of our own has shown of the store's two clocks, that of `Date` and that of `Last-Modified`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Pair {
    Unseen,
    /// Within what the rules allow.
    Agrees,
    /// `Date` is ahead by so many milliseconds or more: something on the way sets it.
    Ahead(u64),
}

/// The beginning of a wait for something of somebody else's: a watched version, a grace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Since {
    mono_ms: u64,
    date_ms: Option<u64>,
    cached: bool,
}

/// Answers that deny the highest `Date`, by one running clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Denials {
    /// How many, each with a later `Date`.
    many: u32,
    first_ms: u64,
    last_ms: u64,
    /// The own clock at the first.
    mono_ms: u64,
}

/// The memory that the rules on clocks need.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Clocks {
    kind: HostClock,
    store_skew_ms: u64,
    /// A write takes effect only while the record has the version that it names.
    covered: bool,
    last_mono_ms: u64,
    early_timers: u32,
    /// `Date` of the newest answer that had one, and the own clocks when it was processed.
    sample: Option<(u64, Now)>,
    /// When the request left whose answer the sample is of.
    sample_sent: Now,
    /// `Date` of the newest answer that had one.
    newest_date_ms: Option<u64>,
    /// The highest `Date` of any answer, but for those that later ones denied.
    latest_date_ms: Option<u64>,
    denials: Option<Denials>,
    /// The highest `Last-Modified` of any answer: no cache makes it older than the record.
    latest_modified_ms: Option<u64>,
    /// What storage time surely is not before, and the monotonic reading at which that was so.
    surely: Option<(u64, u64)>,
    /// What the newest answer itself said.
    newest: Facts,
    /// Set by a held reading, cleared by the next answer that comes with a moving clock.
    awaiting_answer: bool,
    pair: Pair,
}

impl Clocks {
    /// For a host of this kind, and a store whose own clocks agree within `store_skew_ms`.
    pub fn new(kind: HostClock, store_skew_ms: u64) -> Self {
        Self {
            kind,
            store_skew_ms,
            covered: true,
            last_mono_ms: 0,
            early_timers: 0,
            sample: None,
            sample_sent: Now::default(),
            newest_date_ms: None,
            latest_date_ms: None,
            denials: None,
            latest_modified_ms: None,
            surely: None,
            newest: Facts::default(),
            awaiting_answer: false,
            pair: Pair::Unseen,
        }
    }

    /// New settings: how far the store's own clocks may be apart; true if that changed, so that what their times have
    /// proven by the old one counts no more.
    pub fn set_store_skew_ms(&mut self, store_skew_ms: u64) -> bool {
        let changed = std::mem::replace(&mut self.store_skew_ms, store_skew_ms) != store_skew_ms;
        if changed {
            self.pair = Pair::Unseen;
        }
        changed
    }

    /// Whether a condition covers the version that it names, as it does unless said otherwise.
    pub fn set_covered(&mut self, covered: bool) {
        self.covered = covered;
    }

    /// Whether a condition covers the version that it names. Where it does not, an age counts only up to the sending
    /// of the read that showed the version last: a renewal may have landed since.
    pub fn covered(&self) -> bool {
        self.covered
    }

    /// Whether an answer to a read shows what the record was when that read left. Where a claim is no compare-and-swap
    /// with what was read, nothing corrects an older answer, which something in between may have given (S6).
    pub fn shows_present(&self, facts: &Facts) -> bool {
        self.covered() || !facts.relayed || planted!(EpochCacheBelieved)
    }

    /// By how much less a version was watched than it seems to have been. Where it may be overwritten by itself, two
    /// changes within one second of `Last-Modified`, by two clocks of the store, look like one. What
    /// [`Clocks::passed_ms`] takes off on a single clock is another doubt: how long it watched, not what it saw.
    pub fn watched_doubt_ms(&self) -> u64 {
        let blind = !self.covered() && !planted!(EpochSameSecond);
        if blind { ROUNDING_MS.saturating_add(self.store_skew_ms) } else { 0 }
    }

    /// Whether the host has one clock only.
    pub fn single(&self) -> bool {
        self.kind == HostClock::One
    }

    /// Whether a single clock stepped backward before this reading, of which nobody has taken note yet.
    pub fn stepped_back(&self, now: Now) -> bool {
        self.single() && (now.mono_ms < self.last_mono_ms || self.fired_early(now))
    }

    /// Whether a timer fired before its time since the last reading that was taken note of.
    pub fn fired_early(&self, now: Now) -> bool {
        now.early_timers != self.early_timers
    }

    /// This reading, or the last that was taken note of if that was later.
    pub fn not_before_last(&self, now: Now) -> Now {
        Now { mono_ms: now.mono_ms.max(self.last_mono_ms), ..now }
    }

    /// Takes note of a reading; true if a single clock stepped backward, so that every duration that began
    /// before is unknown.
    pub fn read(&mut self, now: Now) -> bool {
        let backward = self.stepped_back(now);
        self.last_mono_ms = now.mono_ms;
        self.early_timers = now.early_timers;
        self.awaiting_answer |= self.single() && now.held;
        if backward {
            (self.sample, self.denials) = (None, None);
        }
        backward
    }

    /// Takes note of an answer's `Date` and compares how far it moved with the own clock; `sent` is when its request left.
    pub fn answer(&mut self, now: Now, sent: Now, facts: &Facts) -> Drift {
        self.awaiting_answer &= now.held;
        self.newest = *facts;
        // An answer without a `Date` proves no time: what the last one said still bounds a wait.
        self.newest_date_ms = facts.date_ms.or(self.newest_date_ms);
        self.latest_date_ms = facts.date_ms.max(self.latest_date_ms);
        if let Some(date_ms) = facts.date_ms.filter(|_| !facts.cached) {
            self.note_denial(date_ms, now);
        }
        // A `Date` that is not a cache's bounds what a proxy may make of the record's time.
        let bound_ms = match facts.date_ms {
            Some(date_ms) if !facts.cached => self.latest_of_ms(date_ms),
            Some(_) => u64::MAX,
            None => 0,
        };
        let modified_ms = facts.last_modified_ms.filter(|ms| *ms <= bound_ms);
        self.latest_modified_ms = modified_ms.max(self.latest_modified_ms);
        if let Some(date_ms) = facts.date_ms {
            // A `Date` of the store's own shows when one before was wrong.
            let wrong = !facts.cached && self.surely_ms(now) > self.latest_of_ms(date_ms);
            if wrong || date_ms >= self.surely_ms(now) {
                self.surely = Some((date_ms, now.mono_ms));
            }
        }
        let drift = self.drift(now, facts);
        if drift == Drift::OwnAhead && !facts.relayed && self.date_ahead_ms().is_some() {
            // Somebody put that clock right: the next write shows by how much.
            self.pair = Pair::Unseen;
        }
        // A cache's `Date` may be of long ago; storage time, and with it the tokens, must not follow it (S2).
        let old = facts.cached && drift == Drift::OwnAhead && !planted!(CachedDateMovesTokens);
        if let Some(date_ms) = facts.date_ms.filter(|_| !old) {
            self.sample = Some((date_ms, now));
            self.sample_sent = sent;
        }
        drift
    }

    /// One `Date` that is far too late must not count for ever. Some answers have to deny it, and their `Date`s to move on as
    /// the own clock does: old answers that nothing marks as a cache's stand still, or jump.
    fn note_denial(&mut self, date_ms: u64, now: Now) {
        if self.latest_date_ms.is_none_or(|latest_ms| self.latest_of_ms(date_ms) >= latest_ms)
            || planted!(LateDateBelieved)
        {
            return;
        }
        let doubt_ms = self.latest_of_ms(0);
        let runs_on = |denials: &Denials| {
            let moved_ms = signed_difference(date_ms, denials.first_ms);
            let passed_ms = signed_difference(now.mono_ms, denials.mono_ms);
            moved_ms.abs_diff(passed_ms) <= doubt_ms
        };
        let first = Denials { many: 0, first_ms: date_ms, last_ms: 0, mono_ms: now.mono_ms };
        let before = self.denials.filter(runs_on).unwrap_or(first);
        let many = before.many + u32::from(date_ms > before.last_ms);
        let last_ms = date_ms.max(before.last_ms);
        self.denials = Some(Denials { many, last_ms, ..before });
        if many >= DENIALS_ENOUGH && last_ms > self.latest_of_ms(before.first_ms) {
            (self.latest_date_ms, self.denials) = (Some(last_ms), None);
        }
    }

    /// The same of an answer that something on the way may have given instead of the store: what it says may
    /// show that the own clock lost time, but is not learned.
    pub fn turned_away(&mut self, now: Now, facts: &Facts) -> Drift {
        self.awaiting_answer &= now.held;
        self.drift(now, facts)
    }

    fn drift(&self, now: Now, facts: &Facts) -> Drift {
        let (Some(date_ms), Some((earlier_date_ms, earlier_now))) = (facts.date_ms, self.sample)
        else {
            return Drift::Unproven;
        };
        let date_moved_ms = signed_difference(date_ms, earlier_date_ms);
        let own_moved_ms = signed_difference(now.mono_ms, earlier_now.mono_ms);
        match date_moved_ms - own_moved_ms {
            apart_ms if apart_ms > DRIFT_MS => Drift::StoreAhead,
            apart_ms if apart_ms < -DRIFT_MS => Drift::OwnAhead,
            _ => Drift::Agreed,
        }
    }

    /// Whether authority may be judged at this reading at all (S11).
    pub fn trusted(&self, now: Now) -> bool {
        let held = (now.held || self.awaiting_answer) && !planted!(HeldClockTrusted);
        !(self.single() && (held || self.stepped_back(now)))
    }

    /// A wait begins with the answer that is processed now.
    pub fn begin(&self, now: Now) -> Since {
        let Facts { date_ms, cached, .. } = self.newest;
        // Without a `Date` there is none that could be old, and nothing better may ever come.
        Since { mono_ms: now.mono_ms, date_ms, cached: cached && date_ms.is_some() }
    }

    /// The wait as it counts after the newest answer: with a single clock, one that began without a `Date`, or
    /// with a cached one, begins again at the first better one. Otherwise a step before that would count. One that began
    /// with a `Date` that has been denied since begins again as well: it would take until that time.
    pub fn rebased(&self, now: Now, since: Since) -> Since {
        let better = self.newest.date_ms.is_some()
            && (since.date_ms.is_none() || (since.cached && !self.newest.cached));
        let latest_ms = self.latest_date_ms.map(|date_ms| self.latest_of_ms(date_ms));
        let denied = since.date_ms > latest_ms;
        if self.single() && (better || denied) { self.begin(now) } else { since }
    }

    /// How many milliseconds have passed since a request left, in a wait that began then, and by how many more that may be
    /// wrong. A single clock may have stood still unseen: where the store named its time, that counts as well, and an answer
    /// without it proves nothing.
    pub fn at_most_ms(&self, now: Now, sent: Now, since: Since) -> Option<(u64, u64)> {
        let own_ms = now.since_pessimistic_ms(sent);
        let Some(sent_ms) = since.date_ms.filter(|_| self.single()) else {
            return Some((own_ms, 0));
        };
        let date_ms = self.newest.date_ms.filter(|_| !self.newest.cached && !since.cached)?;
        Some((own_ms.max(date_ms.saturating_sub(sent_ms)), self.latest_of_ms(0)))
    }

    /// How much of a wait has surely passed: own monotonic time; with a single clock, which may have stepped
    /// forward unseen, no more than the store's clock has moved, or `storeSkew` less where it shows none.
    pub fn passed_ms(&self, now: Now, since: Since) -> u64 {
        let own_ms = now.mono_ms.saturating_sub(since.mono_ms);
        if !self.single() || planted!(ForwardStepWaits) {
            return own_ms;
        }
        match (since.date_ms, self.newest_date_ms) {
            // How long before the wait a cached time was true, nobody knows.
            _ if since.cached && !planted!(CachedDateWaits) => 0,
            (Some(from_ms), Some(to_ms)) => {
                let doubt_ms = ROUNDING_MS.saturating_add(self.store_skew_ms);
                own_ms.min(to_ms.saturating_sub(from_ms).saturating_sub(doubt_ms))
            }
            // The store names times, but has not since the wait began: nothing says what passed (S11).
            (None, Some(_)) => 0,
            _ => own_ms.saturating_sub(self.store_skew_ms),
        }
    }

    /// The latest that any clock of the store showed at a `Date`.
    pub fn latest_of_ms(&self, date_ms: u64) -> u64 {
        date_ms.saturating_add(ROUNDING_MS).saturating_add(self.store_skew_ms)
    }

    /// What the newest answer said about time.
    pub fn newest(&self) -> &Facts {
        &self.newest
    }

    /// The age that `Date` and `Last-Modified` of one answer prove (S6 (b)).
    pub fn age_by_store_ms(&self, date_ms: u64, modified_ms: u64) -> u64 {
        let doubt_ms = ROUNDING_MS.saturating_add(self.store_skew_ms);
        let doubt_ms = if planted!(AgeWithoutSkew) { 0 } else { doubt_ms };
        date_ms.saturating_sub(modified_ms).saturating_sub(doubt_ms)
    }

    /// Compares the store's two clocks by an answer that shows a write of ours which left `passed_ms` ago (S6 (b)).
    pub fn compare(&mut self, facts: &Facts, passed_ms: u64, margin_ms: u64) {
        let (Some(date_ms), Some(modified_ms), false) =
            (facts.date_ms, facts.last_modified_ms, facts.relayed)
        else {
            return;
        };
        let ahead_ms = date_ms.saturating_sub(modified_ms);
        // Where less than a second is allowed, whole seconds show no more than that the two are equal.
        let allowed_ms = self.store_skew_ms.saturating_add(margin_ms.max(ROUNDING_MS));
        if ahead_ms.saturating_add(ROUNDING_MS) <= allowed_ms {
            self.pair = Pair::Agrees;
        } else if self.age_by_store_ms(date_ms, modified_ms) > passed_ms {
            self.pair = Pair::Ahead(ahead_ms.saturating_sub(passed_ms));
        }
    }

    /// What an earlier write of ours has shown says nothing of the way that the next answers take (S6 (b)).
    pub fn forget_agreement(&mut self) {
        if self.pair == Pair::Agrees {
            self.pair = Pair::Unseen;
        }
    }

    /// Whether a write of our own has shown that `Date` is not ahead of `Last-Modified`. Until then an age by these two may
    /// be as wrong as the clock of a proxy.
    pub fn pair_agrees(&self) -> bool {
        self.pair == Pair::Agrees
    }

    /// By how many milliseconds `Date` is ahead of `Last-Modified`, where a write of our own has shown that it is.
    pub fn date_ahead_ms(&self) -> Option<u64> {
        match self.pair {
            Pair::Ahead(ms) => Some(ms),
            Pair::Unseen | Pair::Agrees => None,
        }
    }

    /// Whether the time that a writer saw by `Date` is further ahead of the `Last-Modified` of that write than a request
    /// takes, whole seconds and the store's own clocks explain.
    pub fn stamped_ahead(&self, stamp_ms: i64, modified_ms: u64, request_ms: u64) -> bool {
        let room_ms = request_ms + 2 * ROUNDING_MS + self.store_skew_ms;
        u64::try_from(stamp_ms).is_ok_and(|ms| ms > modified_ms.saturating_add(room_ms))
    }

    /// How much own time has to pass before it adds to [`Clocks::age_by_store_ms`]. Where the version may be overwritten
    /// by itself, nothing is proven before the second of its `Last-Modified` is surely over.
    pub fn owed_by_store_ms(&self, date_ms: u64, modified_ms: u64) -> u64 {
        self.watched_doubt_ms().saturating_sub(date_ms.saturating_sub(modified_ms))
    }

    /// Storage time in milliseconds since the Unix epoch: the newest `Date` plus own monotonic time since,
    /// or the own wall clock where the store names none.
    pub fn storage_ms(&self, now: Now) -> u64 {
        match self.sample {
            Some((date_ms, at)) => date_ms.saturating_add(now.mono_ms.saturating_sub(at.mono_ms)),
            None => now.wall_ms,
        }
    }

    /// What storage time most probably is: the own wall clock, where it fits into the second that `Date` names, else as
    /// near to that as can be. For hints only.
    pub fn likely_ms(&self, now: Now) -> u64 {
        let least_ms = self.storage_ms(now);
        now.wall_ms.clamp(least_ms, least_ms.saturating_add(ROUNDING_MS - 1))
    }

    /// Whether storage time is the store's own.
    pub fn dated(&self) -> bool {
        self.sample.is_some()
    }

    /// The latest that storage time can be, as others read it in a record: foreign members, who judge a record by the
    /// time in it, must not take a living lease early. `Date` has whole seconds, and its answer may have waited for a
    /// process that stood still, so that what has passed since counts from before its request left.
    pub fn stamp_ms(&self, now: Now) -> u64 {
        let Some((date_ms, _)) = self.sample else { return now.wall_ms };
        if planted!(StampOfDate) {
            return date_ms;
        }
        let passed_ms = now.since_pessimistic_ms(self.sample_sent);
        let latest_ms = date_ms.saturating_add(ROUNDING_MS - 1).saturating_add(passed_ms);
        // A cache's `Date` may be of long ago.
        if self.newest.cached { latest_ms.max(now.wall_ms) } else { latest_ms }
    }

    /// The latest of all `Date`s, each with what the fastest clock of the contract leaves of own time since.
    fn surely_ms(&self, now: Now) -> u64 {
        self.surely.map_or(0, |(date_ms, mono_ms)| {
            let passed_ms = now.mono_ms.saturating_sub(mono_ms);
            let doubt_ms =
                if planted!(CachedTimeInFull) { 0 } else { passed_ms.div_ceil(FAST_PART) };
            date_ms.saturating_add(passed_ms - doubt_ms)
        })
    }

    /// Storage time rounded up, for tokens (S2): `Date` has whole seconds, so the true time may be 999 ms
    /// later. Tokens that run ahead of storage time could fall with a deletion, so a single clock, which may have
    /// stepped forward since that `Date`, adds nothing; behind a cache, where the last good `Date` may be long ago,
    /// own time adds what the fastest clock of the contract leaves of it. The `Last-Modified` of a record is storage
    /// time too, however old a cache's `Date` is.
    pub fn storage_ceiling_ms(&self, now: Now) -> u64 {
        let cached = self.newest.cached && self.newest.date_ms.is_some();
        let latest_ms = self.latest_date_ms.unwrap_or(0);
        let by_date_ms = match self.sample {
            _ if self.single() && self.latest_date_ms.is_some() && !planted!(StepMovesTokens) => {
                latest_ms.saturating_add(ROUNDING_MS - 1)
            }
            Some(_) if cached && planted!(CachedTimeStops) => latest_ms + ROUNDING_MS - 1,
            Some(_) if cached => self.surely_ms(now).max(latest_ms).saturating_add(ROUNDING_MS - 1),
            Some(_) => self.storage_ms(now).saturating_add(ROUNDING_MS - 1),
            None => self.storage_ms(now),
        };
        let modified_ms = self.latest_modified_ms.filter(|_| !planted!(ModifiedIsNoStorageTime));
        by_date_ms.max(modified_ms.map_or(0, |ms| ms.saturating_add(ROUNDING_MS - 1)))
    }
}

fn signed_difference(later: u64, earlier: u64) -> i64 {
    let difference = i128::from(later) - i128::from(earlier);
    difference.clamp(i128::from(i64::MIN / 4), i128::from(i64::MAX / 4)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dated(date_ms: u64) -> Facts {
        Facts { date_ms: Some(date_ms), ..Facts::default() }
    }

    fn one(mono_ms: u64) -> Now {
        Now::new(mono_ms, mono_ms)
    }

    #[test]
    fn c38_c40_what_is_held_counts_by_the_faster_clock() {
        let sent = Now::new(1_000, 50_000);
        assert_eq!(Now::new(3_000, 52_000).since_pessimistic_ms(sent), 2_000);
        assert_eq!(Now::new(3_000, 60_000).since_pessimistic_ms(sent), 10_000, "suspended");
        assert_eq!(Now::new(3_000, 40_000).since_pessimistic_ms(sent), 2_000, "stepped back");
    }

    #[test]
    fn a_single_clock_that_steps_back_is_noticed_even_within_a_pause() {
        let mut clocks = Clocks::new(HostClock::One, 2_000);
        assert!(!clocks.read(one(5_000)));
        assert!(clocks.trusted(one(5_001)) && !clocks.trusted(one(4_999)));
        assert!(clocks.read(one(4_999)));
        let early = Now { early_timers: 1, ..one(9_000) };
        assert!(!clocks.trusted(early) && clocks.read(early));
        assert!(clocks.trusted(early) && !clocks.read(early));
        assert!(!Clocks::new(HostClock::Two, 2_000).read(Now::new(0, 0)));
    }

    #[test]
    fn c41_a_held_clock_is_not_believed_until_an_answer_comes_with_a_moving_one() {
        let mut clocks = Clocks::new(HostClock::One, 2_000);
        let held = Now { held: true, ..one(5_000) };
        clocks.read(held);
        assert!(!clocks.trusted(held) && !clocks.trusted(one(5_001)));
        clocks.answer(one(5_002), one(5_002), &Facts::default());
        assert!(clocks.trusted(one(5_002)));
    }

    #[test]
    fn a_single_clock_waits_by_the_slower_of_its_own_and_the_stores_time() {
        let mut clocks = Clocks::new(HostClock::One, 2_000);
        clocks.answer(one(0), one(0), &dated(100_000));
        let since = clocks.begin(one(0));
        clocks.answer(one(20_000), one(20_000), &dated(110_000));
        assert_eq!(clocks.passed_ms(one(20_000), since), 7_000);
        clocks.answer(one(20_000), one(20_000), &Facts::default());
        assert_eq!(clocks.passed_ms(one(20_000), since), 7_000, "an undated answer proves no time");
        let mut undated = Clocks::new(HostClock::One, 2_000);
        undated.answer(one(0), one(0), &Facts::default());
        let since = undated.begin(one(0));
        assert_eq!(undated.passed_ms(one(20_000), since), 18_000);
        undated.answer(one(20_000), one(20_000), &dated(100_000));
        let since = undated.rebased(one(20_000), since);
        assert_eq!(undated.passed_ms(one(20_000), since), 0, "it begins again, dated");
        let two = Clocks::new(HostClock::Two, 2_000);
        assert_eq!(two.passed_ms(one(20_000), two.begin(one(0))), 20_000);
    }

    #[test]
    fn tokens_follow_neither_a_cached_date_nor_a_step_of_a_single_clock() {
        let cached = |date_ms| Facts { relayed: true, cached: true, ..dated(date_ms) };
        let mut two = Clocks::new(HostClock::Two, 2_000);
        two.answer(one(0), one(0), &dated(100_000));
        assert_eq!(two.answer(one(10_000), one(10_000), &cached(60_000)), Drift::OwnAhead);
        assert_eq!(two.storage_ceiling_ms(one(10_000)), 107_665, "own time, were it fast by half");
        two.answer(one(10_500), one(10_500), &Facts::default());
        assert_eq!(two.storage_ceiling_ms(one(10_500)), 111_499, "the own clock goes on");
        assert_eq!(two.answer(one(11_000), one(11_000), &dated(111_000)), Drift::Agreed);
        let mut single = Clocks::new(HostClock::One, 2_000);
        single.answer(one(0), one(0), &dated(100_000));
        assert_eq!(single.storage_ceiling_ms(one(70_000)), 100_999, "that may have been a step");
        single.read(one(70_000));
        single.read(one(5_000));
        assert_eq!(single.storage_ceiling_ms(one(5_000)), 100_999, "a step back forgets no Date");
    }

    #[test]
    fn own_time_goes_on_from_the_best_date_while_caches_repeat_an_old_one() {
        let cached = |date_ms| Facts { relayed: true, cached: true, ..dated(date_ms) };
        let mut clocks = Clocks::new(HostClock::Two, 2_000);
        clocks.answer(one(0), one(0), &dated(100_000));
        for now_ms in (1_000..=60_000).step_by(1_000) {
            clocks.answer(one(now_ms), one(now_ms), &cached(100_000));
        }
        assert_eq!(clocks.storage_ceiling_ms(one(60_000)), 140_999);
        clocks.answer(one(61_000), one(61_000), &cached(158_000));
        assert_eq!(clocks.storage_ceiling_ms(one(64_000)), 160_999, "that one is later");
        clocks.answer(one(65_000), one(65_000), &dated(150_000));
        clocks.answer(one(66_000), one(66_000), &cached(100_000));
        assert_eq!(
            clocks.storage_ceiling_ms(one(66_000)),
            158_999,
            "it was wrong, and counts as it is"
        );
    }

    #[test]
    fn the_time_of_a_record_is_storage_time_too_however_old_the_date_of_a_cache_is() {
        let cached = Facts {
            last_modified_ms: Some(200_000),
            relayed: true,
            cached: true,
            ..dated(100_000)
        };
        let mut clocks = Clocks::new(HostClock::Two, 2_000);
        clocks.answer(one(0), one(0), &cached);
        assert_eq!(clocks.storage_ceiling_ms(one(0)), 200_999);
        clocks.answer(one(1_000), one(1_000), &dated(300_000));
        assert_eq!(clocks.storage_ceiling_ms(one(1_000)), 300_999);
        let lying = Facts { last_modified_ms: Some(3_900_000), ..dated(300_000) };
        clocks.answer(one(1_000), one(1_000), &lying);
        assert_eq!(clocks.storage_ceiling_ms(one(1_000)), 300_999, "later than the store's `Date`");
        let mut undated = Clocks::new(HostClock::Two, 2_000);
        let facts = Facts { last_modified_ms: Some(200_000), ..Facts::default() };
        undated.answer(one(0), one(0), &facts);
        assert_eq!(undated.storage_ceiling_ms(Now::new(0, 50_000)), 50_000, "the own wall clock");
    }

    #[test]
    fn a_wait_without_a_date_proves_nothing_once_the_store_has_named_one() {
        let mut clocks = Clocks::new(HostClock::One, 2_000);
        clocks.answer(one(0), one(0), &dated(100_000));
        clocks.answer(one(1_000), one(1_000), &Facts::default());
        let since = clocks.begin(one(1_000));
        assert_eq!(clocks.passed_ms(one(60_000), since), 0);
    }

    #[test]
    fn the_time_in_a_record_is_not_before_storage_time_however_late_the_answer_was_heard() {
        let mut clocks = Clocks::new(HostClock::Two, 2_000);
        assert_eq!(clocks.stamp_ms(one(500)), 500, "without a Date, the own wall clock");
        clocks.answer(one(21_000), one(1_000), &dated(100_000));
        assert_eq!(clocks.stamp_ms(one(21_500)), 120_000 + 999 + 500);
        assert_eq!(clocks.storage_ms(one(21_500)), 100_500, "tokens stay behind (S2)");
        assert_eq!(clocks.stamp_ms(Now::new(21_500, 61_500)), 160_000 + 999 + 500, "suspended");
        clocks.answer(one(22_010), one(22_000), &dated(121_000));
        assert_eq!(clocks.stamp_ms(one(22_010)), 121_999 + 10);
    }

    #[test]
    fn drift_is_told_from_two_seconds_on_and_storage_time_is_the_newest_date_and_own_time_since() {
        let mut clocks = Clocks::new(HostClock::Two, 2_000);
        assert_eq!(clocks.answer(one(0), one(0), &dated(100_000)), Drift::Unproven);
        assert_eq!(clocks.answer(one(5_000), one(5_000), &dated(107_000)), Drift::Agreed);
        assert_eq!(clocks.answer(one(10_000), one(10_000), &dated(115_000)), Drift::StoreAhead);
        assert_eq!(clocks.answer(one(15_000), one(15_000), &dated(117_000)), Drift::OwnAhead);
        assert_eq!(clocks.storage_ms(one(16_000)), 118_000);
        assert_eq!(clocks.storage_ceiling_ms(one(16_000)), 118_999);
    }

    #[test]
    fn s6_a_version_that_may_be_overwritten_by_itself_proves_nothing_before_its_second_is_over() {
        let mut clocks = Clocks::new(HostClock::Two, 2_000);
        assert_eq!(clocks.owed_by_store_ms(100_000, 100_000), 0);
        clocks.set_covered(false);
        for (date_ms, owed_ms) in [(100_000, 3_000), (102_000, 1_000), (103_000, 0)] {
            assert_eq!(clocks.owed_by_store_ms(date_ms, 100_000), owed_ms, "{date_ms}");
        }
    }
}
