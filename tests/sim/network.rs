//! What becomes of one request on its way to the store and back.

use edgelect::store::{Fault, FaultKind, Outcome};

use super::chance::Chance;
use super::report::{Kind, Tally};

/// A way in which an honest answer is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// 500 or 503.
    ServerError,
    /// 429.
    TooMany,
    /// The connection broke.
    Reset,
    /// 409, which a store answers without having done anything.
    Conflict,
    /// 403.
    Denied,
    /// 501 to a conditional header.
    Misconfigured,
    /// An answer without an ETag or with a broken body.
    Nonsense,
}

/// The way of one request. Durations are true time.
#[derive(Clone, Debug)]
pub struct Fate {
    /// How long it travels; `None` if it is lost.
    pub request_ms: Option<u64>,
    /// How long the answer travels; `None` if it is lost.
    pub answer_ms: Option<u64>,
    /// The request is stopped at the door with this answer, without effect.
    pub before: Option<Trouble>,
    /// The request takes effect and is answered with this all the same.
    pub after: Option<Trouble>,
    pub retry_after_ms: Option<u64>,
    /// A second copy takes effect this much later than the first.
    pub again_ms: Option<u64>,
    /// Only the second copy is answered.
    pub again_answers: bool,
}

impl Fate {
    /// Arrives and is answered.
    pub fn calm(request_ms: u64, answer_ms: u64) -> Self {
        Self {
            request_ms: Some(request_ms),
            answer_ms: Some(answer_ms),
            before: None,
            after: None,
            retry_after_ms: None,
            again_ms: None,
            again_answers: false,
        }
    }
}

impl Trouble {
    /// What the store's client makes of it.
    pub fn outcome(self, retry_after_ms: Option<u64>) -> Outcome {
        let fault = |kind| Fault::new(kind, "a modelled fault");
        let unknown = |kind| Outcome::Unknown { retry_after_ms, cause: fault(kind) };
        match self {
            Self::ServerError | Self::TooMany => unknown(FaultKind::Unavailable),
            Self::Reset => unknown(FaultKind::Network),
            Self::Nonsense => unknown(FaultKind::Nonsense),
            Self::Conflict => Outcome::Refused,
            Self::Denied => Outcome::Rejected(fault(FaultKind::Denied)),
            Self::Misconfigured => Outcome::Rejected(fault(FaultKind::Misconfigured)),
        }
    }
}

/// How a schedule's network behaves: which faults it has and how often, drawn once (swarm).
#[derive(Clone, Debug, Default)]
pub struct Weather {
    /// One way at its best and at its usual worst.
    pub latency_ms: (u64, u64),
    /// The longest that a delayed request or answer travels.
    pub delay_ms: u64,
    pub retry_after_ms: u64,
    rates: Vec<(Kind, u64)>,
}

const FAULTS: [Kind; 14] = [
    Kind::RequestLost,
    Kind::AnswerLost,
    Kind::RequestDelayed,
    Kind::AnswerDelayed,
    Kind::Duplicate,
    Kind::DuplicateAnswered,
    Kind::Reset,
    Kind::ErrorBefore,
    Kind::ErrorAfter,
    Kind::TooManyRequests,
    Kind::Conflict,
    Kind::Denied,
    Kind::EtagMissing,
    Kind::Nonsense,
];

impl Weather {
    /// Draws the faults of one schedule. `lease_ms` is the longest lease of the group.
    pub fn draw(chance: &mut Chance, lease_ms: u64) -> Self {
        let mut rates = Vec::new();
        for kind in FAULTS {
            if chance.per_mille(350) {
                rates.push((kind, chance.pick(&[10, 30, 100, 250])));
            }
        }
        if chance.one_in(20) {
            rates.push((Kind::Misconfigured, 5));
        }
        let latency_ms =
            chance.pick(&[(0, 1), (1, 10), (5, 60), (20, 200), (lease_ms / 50, lease_ms / 10)]);
        let delay_ms = lease_ms * chance.pick(&[1, 1, 2, 4]);
        let retry_after_ms = chance.pick(&[1_000, lease_ms / 2, 2 * lease_ms]);
        Self { latency_ms, delay_ms, retry_after_ms, rates }
    }

    /// The network of the healed phase and of scripted scenarios.
    pub fn calm() -> Self {
        Self { latency_ms: (1, 10), delay_ms: 1, retry_after_ms: 1, rates: Vec::new() }
    }

    /// Draws the way of one request and counts what befell it.
    pub fn fate(&self, chance: &mut Chance, tally: &mut Tally, write: bool) -> Fate {
        let (low_ms, high_ms) = self.latency_ms;
        let way = (chance.between(low_ms, high_ms), chance.between(low_ms, high_ms));
        let mut fate = Fate::calm(way.0, way.1);
        for (kind, rate) in &self.rates {
            if chance.per_mille(*rate) && self.befall(&mut fate, *kind, write, chance) {
                tally.fault(*kind);
            }
        }
        fate
    }

    /// Applies one fault; false where it means nothing for this request.
    fn befall(&self, fate: &mut Fate, kind: Kind, write: bool, chance: &mut Chance) -> bool {
        let honest = fate.before.is_none() && fate.after.is_none();
        let asked_ms = chance.one_in(2).then_some(chance.between(1, self.retry_after_ms));
        let (before, after) = match kind {
            Kind::RequestLost => {
                fate.request_ms = None;
                return true;
            }
            Kind::AnswerLost => {
                fate.answer_ms = None;
                return true;
            }
            Kind::RequestDelayed => {
                let travel_ms = &mut fate.request_ms;
                *travel_ms = travel_ms.map(|ms| ms + chance.between(1, self.delay_ms));
                return travel_ms.is_some();
            }
            Kind::AnswerDelayed => {
                let travel_ms = &mut fate.answer_ms;
                *travel_ms = travel_ms.map(|ms| ms + chance.between(1, self.delay_ms));
                return travel_ms.is_some();
            }
            Kind::Duplicate | Kind::DuplicateAnswered if !write => return false,
            Kind::Duplicate | Kind::DuplicateAnswered => {
                fate.again_ms = Some(chance.span(self.delay_ms));
                fate.again_answers = kind == Kind::DuplicateAnswered;
                return true;
            }
            Kind::Reset => (Some(Trouble::Reset), None),
            Kind::ErrorBefore => (Some(Trouble::ServerError), None),
            Kind::TooManyRequests => (Some(Trouble::TooMany), None),
            Kind::Denied => (Some(Trouble::Denied), None),
            Kind::Misconfigured => (Some(Trouble::Misconfigured), None),
            Kind::Conflict if write => (Some(Trouble::Conflict), None),
            Kind::ErrorAfter if write => (None, Some(Trouble::ServerError)),
            Kind::EtagMissing if write => (None, Some(Trouble::Nonsense)),
            Kind::Nonsense if !write => (None, Some(Trouble::Nonsense)),
            _ => return false,
        };
        if honest {
            (fate.before, fate.after, fate.retry_after_ms) = (before, after, asked_ms);
        }
        honest
    }
}
