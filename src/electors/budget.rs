//! Which request of many groups leaves next, and when: a state machine without I/O and without a clock.
//!
//! What keeps a term alive goes before everything else, the one whose fence is nearest first; then claims and releases; then the
//! reads of followers, in the order in which they came. Reads never hold the last connections, so that a renewal does not wait
//! for the answer to one. A request that waits has begun for its election: the wait counts as latency, and the fence
//! and the `requestTimeout` hold as they do without a budget.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::config::ConfigError;
use crate::json::{self, Object};

/// What is under way at once where nothing else is said.
pub const DEFAULT_CONNECTIONS: u64 = 64;

/// What [`Limits::max_connections`] may be: one for reads and one that is kept free of them.
const CONNECTIONS: std::ops::RangeInclusive<u64> = 2..=10_000;

/// What [`Limits::max_requests_per_second`] may be.
const RATES: std::ops::RangeInclusive<u64> = 1..=1_000_000;

/// A request, in thousandths: so much of one comes in each millisecond at a rate of one a second.
const REQUEST: u64 = 1_000;

/// Of how many connections one is kept free of claims, and another one of reads.
const CONNECTIONS_FOR_ONE_FREE: u64 = 8;

/// What all groups of one process may do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `maxConnections`: how many requests may be under way at once. 2 to 10000, default 64.
    pub max_connections: u64,
    /// `maxRequestsPerSecond`: how many requests may leave in a second, a tenth of it more in a burst. No limit by default.
    pub max_requests_per_second: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_connections: DEFAULT_CONNECTIONS, max_requests_per_second: None }
    }
}

impl Limits {
    /// The options that [`Limits::from_json`] takes.
    pub const OPTIONS: [&'static str; 2] = ["maxConnections", "maxRequestsPerSecond"];

    /// Takes these options out of those of an application; `null` counts as not given.
    ///
    /// # Errors
    /// The option that is no whole number of its range.
    pub fn from_json(options: &mut Object) -> Result<Self, ConfigError> {
        let mut take = |name: &str, range: std::ops::RangeInclusive<u64>| {
            let given = options.remove(name).filter(|value| !json::is_null(value));
            let Some(value) = given else { return Ok(None) };
            let number = json::whole(&value).filter(|number| range.contains(number));
            let rule = format!("must be a whole number from {} to {}", range.start(), range.end());
            number.map(Some).ok_or_else(|| ConfigError::new(name, shown(&value), rule))
        };
        let [connections, rate] = Self::OPTIONS;
        let limits = Self {
            max_connections: take(connections, CONNECTIONS)?.unwrap_or(DEFAULT_CONNECTIONS),
            max_requests_per_second: take(rate, RATES)?,
        };
        Ok(limits)
    }

    /// The same, held to the ranges of [`Limits::from_json`].
    ///
    /// # Errors
    /// The option that is out of its range.
    pub fn checked(self) -> Result<Self, ConfigError> {
        let mut options = Object::new();
        let [connections, rate] = Self::OPTIONS;
        options.set(connections, self.max_connections.to_string());
        options.set(rate, json::of(&self.max_requests_per_second));
        Self::from_json(&mut options)
    }
}

/// A number as it was written; a text may be a secret in the wrong place.
fn shown(value: &str) -> &str {
    let number = value.bytes().all(|byte| byte.is_ascii_digit() || b"-.eE+".contains(&byte));
    if number { value } else { "(not shown)" }
}

/// What depends on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// A term, which ends at this reading of the monotonic clock if nothing is accepted before.
    Term {
        /// In milliseconds.
        fence_ms: u64,
    },
    /// A change: a claim, a release.
    Change,
    /// The view of a follower.
    Read,
}

impl Urgency {
    /// As two numbers, for a boundary that only numbers cross; see [`Urgency::of_parts`].
    pub fn parts(self) -> (u8, u64) {
        match self {
            Self::Term { fence_ms } => (0, fence_ms),
            Self::Change => (1, 0),
            Self::Read => (2, 0),
        }
    }

    /// What [`Urgency::parts`] has given.
    pub fn of_parts(kind: u8, fence_ms: u64) -> Self {
        match kind {
            0 => Self::Term { fence_ms },
            1 => Self::Change,
            _ => Self::Read,
        }
    }
}

/// The number of a request that waits or is under way.
pub type Ticket = u64;

/// What waits and what is under way.
#[derive(Debug)]
pub struct Budget {
    limits: Limits,
    waiting: BTreeSet<(Urgency, Ticket)>,
    /// What each request is, and whether it is under way.
    tickets: BTreeMap<Ticket, (Urgency, bool)>,
    under_way: u64,
    numbers: Ticket,
    /// What may leave now, in thousandths of a request.
    tokens: u64,
    filled_ms: u64,
}

/// How much of a budget is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Load {
    /// Requests that have left and are not answered.
    pub under_way: u64,
    /// Requests that wait to leave.
    pub waiting: u64,
}

impl Budget {
    /// Nothing has been asked for yet.
    pub fn new(limits: Limits, now_ms: u64) -> Self {
        let mut budget = Self {
            limits,
            waiting: BTreeSet::new(),
            tickets: BTreeMap::new(),
            under_way: 0,
            numbers: 0,
            tokens: 0,
            filled_ms: now_ms,
        };
        budget.tokens = budget.most_tokens();
        budget
    }

    /// A request wants to leave. It may once [`Budget::grant`] has given its ticket, and says [`Budget::leave`] when it has
    /// been answered or given up, whether it had left or not.
    pub fn ask(&mut self, urgency: Urgency) -> Ticket {
        self.numbers += 1;
        self.waiting.insert((urgency, self.numbers));
        self.tickets.insert(self.numbers, (urgency, false));
        self.numbers
    }

    /// A request is over.
    pub fn leave(&mut self, ticket: Ticket) {
        match self.tickets.remove(&ticket) {
            Some((_, true)) => self.under_way -= 1,
            Some((urgency, false)) => {
                self.waiting.remove(&(urgency, ticket));
            }
            None => {}
        }
    }

    /// The next request that leaves now, if one may. To be called until there is none.
    pub fn grant(&mut self, now_ms: u64) -> Option<Ticket> {
        self.fill(now_ms);
        let (urgency, ticket) = *self.waiting.first()?;
        let paid = self.limits.max_requests_per_second.is_none() || self.tokens >= REQUEST;
        if !paid || self.under_way >= self.most_under_way(urgency) {
            return None;
        }
        self.waiting.pop_first();
        self.tickets.insert(ticket, (urgency, true));
        self.under_way += 1;
        self.tokens = self.tokens.saturating_sub(REQUEST);
        Some(ticket)
    }

    /// The first of those that wait, which has to look at the clock for all of them.
    pub fn first(&self) -> Option<Ticket> {
        self.waiting.first().map(|(_, ticket)| *ticket)
    }

    /// After how many milliseconds the rate lets the next one leave; nothing where none waits for the rate.
    pub fn wait_ms(&self, now_ms: u64) -> Option<u64> {
        let rate = self.limits.max_requests_per_second?;
        let (urgency, _) = *self.waiting.first()?;
        if self.under_way >= self.most_under_way(urgency) {
            return None;
        }
        let passed_ms = now_ms.saturating_sub(self.filled_ms);
        let tokens = self.tokens.saturating_add(passed_ms.saturating_mul(rate));
        Some(REQUEST.saturating_sub(tokens).div_ceil(rate).max(1))
    }

    /// How much is in use.
    pub fn load(&self) -> Load {
        Load { under_way: self.under_way, waiting: self.waiting.len() as u64 }
    }

    fn most_under_way(&self, urgency: Urgency) -> u64 {
        let most = self.limits.max_connections;
        let free = (most / CONNECTIONS_FOR_ONE_FREE).max(1);
        match urgency {
            Urgency::Term { .. } => most,
            Urgency::Change => most - free,
            Urgency::Read => most.saturating_sub(2 * free).max(1),
        }
    }

    fn most_tokens(&self) -> u64 {
        (self.limits.max_requests_per_second.unwrap_or(0) * REQUEST / 10).max(REQUEST)
    }

    fn fill(&mut self, now_ms: u64) {
        let rate = self.limits.max_requests_per_second.unwrap_or(0);
        let passed_ms = now_ms.saturating_sub(self.filled_ms);
        // Also where the host's only clock stepped back: nothing would come until it has caught up.
        self.filled_ms = now_ms;
        let come = passed_ms.saturating_mul(rate);
        self.tokens = self.tokens.saturating_add(come).min(self.most_tokens());
    }
}

/// How long the group that is added as number `index`, from 0, waits before its first request, so that the renewals of many spread
/// over their interval: the first one not at all, and few for a moment only. Multiples of the golden ratio fall evenly however
/// many there are.
pub fn start_delay_ms(index: u64, frequent_interval_ms: u64) -> u64 {
    const BETWEEN_MS: u64 = 20;
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let window_ms = index.saturating_mul(BETWEEN_MS).min(frequent_interval_ms);
    let fraction = index.wrapping_mul(GOLDEN) >> 32;
    (window_ms.saturating_mul(fraction)) >> 32
}

/// How many thousandths of a request a second a group needs at least, by its `frequentInterval`: its leader's renewals, or a
/// follower's reads.
pub fn need_milli(frequent_interval_ms: u64) -> u64 {
    1_000_000_u64.div_ceil(frequent_interval_ms.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(connections: u64, rate: Option<u64>) -> Limits {
        Limits { max_connections: connections, max_requests_per_second: rate }
    }

    fn all(budget: &mut Budget, now_ms: u64) -> Vec<Ticket> {
        std::iter::from_fn(|| budget.grant(now_ms)).collect()
    }

    #[test]
    fn terms_go_first_by_their_fence_then_changes_then_reads() {
        let mut budget = Budget::new(limits(2, Some(1)), 0);
        let [read, change] = [Urgency::Read, Urgency::Change].map(|one| budget.ask(one));
        let [later, sooner] = [900, 500].map(|fence_ms| budget.ask(Urgency::Term { fence_ms }));
        let mut left: Vec<Ticket> = Vec::new();
        for second in 0..4 {
            let now = all(&mut budget, second * 1_000);
            assert_eq!(now.len(), 1, "one a second");
            left.extend(&now);
            budget.leave(now[0]);
        }
        assert_eq!(left, [sooner, later, change, read]);
    }

    #[test]
    fn reads_leave_connections_to_changes_and_both_leave_some_to_terms() {
        let mut budget = Budget::new(limits(16, None), 0);
        let reads: Vec<Ticket> = (0..20).map(|_| budget.ask(Urgency::Read)).collect();
        assert_eq!(all(&mut budget, 0), reads[..12]);
        let changes: Vec<Ticket> = (0..20).map(|_| budget.ask(Urgency::Change)).collect();
        assert_eq!(all(&mut budget, 0), changes[..2]);
        let terms: Vec<Ticket> =
            (0..20).map(|fence_ms| budget.ask(Urgency::Term { fence_ms })).collect();
        assert_eq!(all(&mut budget, 0), terms[..2]);
        assert_eq!(budget.load(), Load { under_way: 16, waiting: 44 });
        budget.leave(reads[0]);
        assert_eq!(all(&mut budget, 0), [terms[2]]);
    }

    #[test]
    fn no_second_has_more_than_the_rate_and_a_tenth() {
        let mut budget = Budget::new(limits(1_000, Some(100)), 0);
        (0..1_000).for_each(|_| _ = budget.ask(Urgency::Read));
        let mut left: Vec<u64> = Vec::new();
        let mut now_ms = 0;
        while now_ms < 5_000 {
            let granted = all(&mut budget, now_ms);
            granted.iter().for_each(|ticket| budget.leave(*ticket));
            left.extend(granted.iter().map(|_| now_ms));
            now_ms += budget.wait_ms(now_ms).expect("more wait");
        }
        for second in 0..40 {
            let window = second * 100..second * 100 + 1_000;
            let count = left.iter().filter(|at_ms| window.contains(*at_ms)).count();
            assert!((99..=110).contains(&count), "{count} from {} ms on", window.start);
        }
    }

    #[test]
    fn s11_a_clock_that_stepped_back_stops_nothing_and_gives_no_more_than_a_burst() {
        let mut budget = Budget::new(limits(1_000, Some(10)), 60_000);
        (0..100).for_each(|_| _ = budget.ask(Urgency::Read));
        assert_eq!(all(&mut budget, 60_000).len(), 1);
        assert_eq!(all(&mut budget, 0).len(), 0);
        assert_eq!(budget.wait_ms(0), Some(100));
        assert_eq!(all(&mut budget, 100).len(), 1, "it goes on by the clock as it is now");
        assert_eq!(all(&mut budget, 60_100).len(), 1, "a step forward brings one burst");
    }

    #[test]
    fn what_is_given_up_while_it_waits_takes_nothing_and_what_is_unknown_changes_nothing() {
        let mut budget = Budget::new(limits(2, Some(1)), 0);
        let [one, two] = [budget.ask(Urgency::Read), budget.ask(Urgency::Read)];
        budget.leave(one);
        budget.leave(one);
        budget.leave(99);
        assert_eq!(all(&mut budget, 0), [two]);
        budget.leave(two);
        assert_eq!((budget.load(), budget.wait_ms(0)), (Load::default(), None));
        assert_eq!(budget.tickets.len(), 0, "nothing is kept of what is over");
    }

    #[test]
    fn the_starts_of_many_spread_evenly_and_the_first_waits_for_nothing() {
        assert_eq!(start_delay_ms(0, 5_000), 0);
        assert!((0..16).all(|index| start_delay_ms(index, 5_000) < 320));
        let mut parts = [0; 10];
        (1_000..2_000).for_each(|index| parts[start_delay_ms(index, 5_000) as usize / 500] += 1);
        assert!(parts.iter().all(|part| (95..=105).contains(part)), "{parts:?}");
    }

    #[test]
    fn a_limit_out_of_its_range_is_refused_by_its_name() {
        for (given, says) in [
            (r#"{"maxConnections":1}"#, "maxConnections = 1: must be a whole number from 2 to"),
            (r#"{"maxRequestsPerSecond":0.5}"#, "maxRequestsPerSecond = 0.5: must be a whole"),
            (r#"{"maxRequestsPerSecond":"secret"}"#, "maxRequestsPerSecond = (not shown): must"),
        ] {
            let mut given = Object::read(given.as_bytes()).expect("an object");
            let told = Limits::from_json(&mut given).unwrap_err().message();
            assert!(told.starts_with(says), "{told}");
        }
        let mut given = Object::read(br#"{"maxConnections":null,"unref":true}"#).unwrap();
        assert_eq!(Limits::from_json(&mut given), Ok(Limits::default()));
        assert_eq!(given.get("unref"), Some("true"), "the others are left");
    }
}
