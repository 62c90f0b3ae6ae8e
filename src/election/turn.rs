//! In which order the followers of one leader claim, so that of thousands that see the same only a handful write.
//!
//! A follower's rank is drawn from its session and the term that it follows, so that each term has another order. It is a
//! wait: most followers have a long one and few a short one. At its end, its turn, a follower looks, and claims
//! if nobody has before: looks cost GETs, and only those that look within the round trip of the first claim write as well.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Election, Seen, Turn};
use crate::clock::Now;
use crate::config::SPREAD_MS;
use crate::lease::Reading;

/// How often the number of followers whose turn has come doubles within the longest wait.
const DOUBLINGS: u64 = 14;

/// How many round trips the longest wait has at least, so that their number doubles about twice within one.
const ROUND_TRIPS: u64 = 8;

impl Election {
    /// How long after everybody may claim this follower's turn comes: the truncated exponential distribution of feedback
    /// suppression in multicast (Nonnenmacher and Biersack).
    pub(super) fn rank_ms(&self) -> u64 {
        self.rank_within_ms(DOUBLINGS)
    }

    /// The same where so few compete that their number doubles less often.
    fn rank_within_ms(&self, doublings: u64) -> u64 {
        if self.first || doublings == 0 {
            return 0;
        }
        let round_trips_ms = ROUND_TRIPS * self.round_trip_ms;
        let longest_ms = self.spread_ms().max(round_trips_ms);
        let mut hasher = DefaultHasher::new();
        (&self.session, self.highest_term).hash(&mut hasher);
        let drawn = hasher.finish();
        let from_end = u64::from(drawn.leading_zeros()).min(doublings - 1);
        let within_ms = drawn % (longest_ms / DOUBLINGS + 1);
        longest_ms * (doublings - 1 - from_end) / DOUBLINGS + within_ms
    }

    fn spread_ms(&self) -> u64 {
        (self.config.leader_timeout_ms / 30).min(SPREAD_MS)
    }

    /// Takes note of how long a read took.
    pub(super) fn note_round_trip(&mut self, took_ms: u64) {
        // A request that takes longer is cut off: it was the host that stood still.
        if took_ms <= self.config.request_timeout_ms {
            let took_ms = took_ms.min(self.config.request_timeout_ms / 4);
            self.round_trip_ms = (3 * self.round_trip_ms + took_ms).div_ceil(4);
        }
    }

    /// A look leaves: whether it is the one of this session's turn, or a later one because that failed.
    pub(super) fn take_turn(&mut self, now: Now) {
        let comes = |turn: Turn| (turn.at_ms..=turn.until_ms).contains(&now.mono_ms);
        // Those that begin have not waited together.
        self.in_turn = matches!(self.seen, Seen::Nothing) || self.turn.is_some_and(comes);
    }

    /// This session's turn comes when a lease has run out and its wait is over. One that passed long ago is none:
    /// after an outage of the store everybody's has.
    pub(super) fn plan_turn(&mut self, at_ms: Option<u64>) {
        let until_ms = |at_ms: u64| at_ms + self.config.leader_timeout_ms / 2;
        let turn = |at_ms| Turn { at_ms, until_ms: until_ms(at_ms), of_lease: true };
        self.turn = at_ms.map(turn);
    }

    /// A read has shown another record than the one that was known: the turn of its lease is over. Thousands may find the
    /// same release when that lease would have run out.
    pub(super) fn forget_turn(&mut self) {
        if self.turn.is_some_and(|turn| turn.of_lease) {
            self.in_turn = false;
        }
    }

    /// Whether a claim that is justified may be written now.
    pub(super) fn may_write_claim(&self) -> bool {
        let alone = match &self.seen {
            Seen::Record { reading: Reading::Lease(lease), .. } => {
                // Nobody else claims these.
                let parked = lease.parked && lease.leader_id == self.config.server_id;
                parked || lease.session.as_deref() == Some(&self.session)
            }
            _ => false,
        };
        // A look at a locker shows nobody else.
        let waits = self.rank_ms() > 0 && !self.unfenced && self.trigger.is_none();
        self.in_turn || alone || !waits
    }

    /// The store asks for patience, most likely because others claim as well: a look shows whether one of them has, or
    /// whether the own write took effect all the same.
    pub(super) fn yield_claim(&mut self, now: Now) {
        self.round = None;
        self.throttled = self.throttled.saturating_add(1);
        self.rest_from_claims(now, self.throttled);
    }

    /// Looks again when this session's turn comes, after a look that has shown a lease that anybody may claim.
    pub(super) fn await_turn(&mut self, now: Now) {
        let rests_ms = match &self.seen {
            Seen::Record { observation, .. } => observation.rests_ms(now, self.writes_apart_ms),
            _ => 0,
        };
        self.await_turn_after(now, rests_ms + self.rank_ms());
    }

    /// Looks when this session's turn comes: a peer has said that the leader's term is over, or has left all that it held
    /// without an answer. They know it in the same moment, in which the leader may have written its release. `waiting` is how many
    /// they are, where the leader has said so; it counts for this turn only, because it may be made up.
    pub(super) fn await_turn_told(&mut self, now: Now, waiting: Option<u64>) {
        let doublings = match waiting {
            // Nobody else was told.
            Some(0 | 1) => 0,
            Some(waiting) => u64::from(u64::BITS - waiting.leading_zeros()).min(DOUBLINGS),
            None => DOUBLINGS,
        };
        self.await_turn_after(now, self.writes_apart_ms + self.rank_within_ms(doublings));
    }

    fn await_turn_after(&mut self, now: Now, wait_ms: u64) {
        self.turn =
            Some(Turn { at_ms: now.mono_ms + wait_ms, until_ms: u64::MAX, of_lease: false });
        self.plan_look(now, wait_ms);
    }
}
