//! What becomes of one request on its way to the store and back.

use edgelect::lease::{Flaw, Reading, Remains};
use edgelect::store::{Answer, Facts, Fault, FaultKind, Outcome};

use super::chance::Chance;
use super::report::{Kind, Tally};

/// An answer that is given instead of the honest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// 500 or 503.
    ServerError,
    /// 429.
    TooMany,
    /// The connection broke.
    Reset,
    /// 409.
    Conflict,
    /// 403 with the store's own code.
    Denied,
    /// 501 to a conditional header.
    Misconfigured,
    /// 404 of something on the way, without the store's document.
    NotFound,
    /// 501 of something on the way, without the store's document.
    Gateway,
}

/// What happens to an honest answer on its way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mangle {
    NoEtag,
    WeakEtag,
    /// `*` for an ETag, which as a condition would match anything.
    StarEtag,
    /// The body ends early, and nothing says so.
    CutShort,
    /// More follows the body than anybody reads.
    Oversized,
    /// An error document under the status of a success.
    ErrorDocument,
    /// A write names the version that it replaced.
    Echo,
    /// So, and it was not carried out.
    EchoOnly,
}

/// The way of one request. Durations are true time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fate {
    /// How long it travels; `None` if it is lost.
    pub request_ms: Option<u64>,
    /// How long the answer travels; `None` if it is lost.
    pub answer_ms: Option<u64>,
    /// The request is stopped at the door with this answer, without effect.
    pub before: Option<Trouble>,
    /// The request takes effect and is answered with this all the same.
    pub after: Option<Trouble>,
    /// What the honest answer is made into.
    pub mangle: Option<Mangle>,
    pub retry_after_ms: Option<u64>,
    /// A second copy takes effect this much later than the first.
    pub again_ms: Option<u64>,
    /// Only the second copy is answered.
    pub again_answers: bool,
    /// The store sends the client to another region first.
    pub redirect: bool,
}

impl Fate {
    /// Arrives and is answered.
    pub fn calm(request_ms: u64, answer_ms: u64) -> Self {
        Self { request_ms: Some(request_ms), answer_ms: Some(answer_ms), ..Self::default() }
    }
}

impl Trouble {
    /// What the store's client makes of it.
    pub fn outcome(self, write: bool, retry_after_ms: Option<u64>) -> Outcome {
        let fault = |kind| Fault::new(kind, "");
        let unknown =
            |kind, retry_after_ms| Outcome::Unknown { retry_after_ms, cause: fault(kind) };
        match self {
            Self::ServerError | Self::TooMany => unknown(FaultKind::Unavailable, retry_after_ms),
            Self::Reset => unknown(FaultKind::Network, None),
            Self::Conflict => Outcome::Refused,
            Self::NotFound if write => Outcome::Refused,
            Self::NotFound => Outcome::Rejected(fault(FaultKind::Nonsense)),
            // What is no store's own word holds for half a minute.
            Self::Gateway => unknown(FaultKind::Nonsense, retry_after_ms.map(|ms| ms.min(30_000))),
            Self::Denied => Outcome::Rejected(fault(FaultKind::Denied)),
            Self::Misconfigured => Outcome::Rejected(fault(FaultKind::Misconfigured)),
        }
    }

    /// The whole answer; nothing is heard of the time over a broken connection.
    pub fn answer(self, write: bool, retry_after_ms: Option<u64>, facts: Facts) -> Answer {
        let facts = if self == Self::Reset { Facts::default() } else { facts };
        Answer { outcome: self.outcome(write, retry_after_ms), facts }
    }
}

impl Mangle {
    /// What the store's client makes of an honest answer that this happened to.
    pub fn outcome(self, honest: Outcome) -> Outcome {
        let nonsense = || Fault::new(FaultKind::Nonsense, "");
        match (self, honest) {
            (Self::NoEtag | Self::WeakEtag | Self::StarEtag, Outcome::Written { .. }) => {
                Outcome::Written { version: None }
            }
            (Self::NoEtag | Self::WeakEtag | Self::StarEtag, Outcome::Found { .. }) => {
                Outcome::Rejected(nonsense())
            }
            (Self::CutShort, Outcome::Found { version, .. }) => Outcome::Found {
                version,
                reading: Reading::Unreadable(Flaw::NotJson, Remains::NONE),
            },
            (Self::Oversized, Outcome::Found { version, .. }) => Outcome::Found {
                version,
                reading: Reading::Unreadable(Flaw::TooLarge, Remains::NONE),
            },
            (Self::ErrorDocument, Outcome::Found { .. }) => Outcome::Rejected(nonsense()),
            (Self::ErrorDocument, Outcome::Written { .. }) => {
                Outcome::Unknown { retry_after_ms: None, cause: nonsense() }
            }
            (_, honest) => honest,
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

const FAULTS: [Kind; 23] = [
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
    Kind::TooManyAfter,
    Kind::Conflict,
    Kind::ConflictAfter,
    Kind::Denied,
    Kind::DeniedAfter,
    Kind::NotFound,
    Kind::EtagMissing,
    Kind::EtagWeak,
    Kind::EtagStar,
    Kind::CutShort,
    Kind::Oversized,
    Kind::ErrorDocument,
    Kind::Redirected,
];

impl Weather {
    /// Draws the faults of one schedule. `lease_ms` is the longest lease of the group.
    pub fn draw(chance: &mut Chance, lease_ms: u64) -> Self {
        let mut rates = Vec::new();
        for kind in FAULTS {
            if chance.per_mille(300) {
                rates.push((kind, chance.pick(&[10, 30, 100, 250])));
            }
        }
        if chance.one_in(20) {
            rates.push((Kind::Misconfigured, 5));
        }
        if chance.one_in(8) {
            rates.push((Kind::MisconfiguredAfter, 10));
        }
        let latency_ms =
            chance.pick(&[(0, 1), (1, 10), (5, 60), (20, 200), (lease_ms / 50, lease_ms / 10)]);
        let delay_ms = lease_ms * chance.pick(&[1, 1, 1, 2, 2, 4, 4, 10]);
        let retry_after_ms = chance.pick(&[1_000, lease_ms / 2, 2 * lease_ms]);
        Self { latency_ms, delay_ms, retry_after_ms, rates }
    }

    /// Adds a fault that befalls so many of a thousand requests.
    pub fn add(&mut self, kind: Kind, per_mille: u64) {
        self.rates.push((kind, per_mille));
    }

    /// Such a fault befalls no request.
    pub fn remove(&mut self, kind: Kind) {
        self.rates.retain(|(one, _)| *one != kind);
    }

    /// Each fault, and how many of a thousand requests it befalls.
    pub fn rates(&self) -> impl Iterator<Item = (Kind, u64)> {
        self.rates.iter().copied()
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
        match kind {
            Kind::RequestLost => fate.request_ms = None,
            Kind::AnswerLost => fate.answer_ms = None,
            Kind::RequestDelayed => {
                let Some(travel_ms) = &mut fate.request_ms else { return false };
                *travel_ms += chance.between(1, self.delay_ms);
            }
            Kind::AnswerDelayed => {
                let Some(travel_ms) = &mut fate.answer_ms else { return false };
                *travel_ms += chance.between(1, self.delay_ms);
            }
            Kind::Duplicate | Kind::DuplicateAnswered if write => {
                fate.again_ms = Some(chance.span(self.delay_ms));
                fate.again_answers = kind == Kind::DuplicateAnswered;
            }
            Kind::Redirected => {
                fate.redirect = true;
                // Counted where it happens: only AWS does it.
                return false;
            }
            _ => return self.answer_otherwise(fate, kind, write, chance),
        }
        true
    }

    /// An answer that is not the honest one; at most one befalls a request.
    fn answer_otherwise(
        &self,
        fate: &mut Fate,
        kind: Kind,
        write: bool,
        chance: &mut Chance,
    ) -> bool {
        if fate.before.is_some() || fate.after.is_some() || fate.mangle.is_some() {
            return false;
        }
        let late = chance.one_in(2);
        match kind {
            Kind::Reset if late => fate.after = Some(Trouble::Reset),
            Kind::Reset => fate.before = Some(Trouble::Reset),
            Kind::ErrorBefore => fate.before = Some(Trouble::ServerError),
            Kind::TooManyRequests => fate.before = Some(Trouble::TooMany),
            Kind::Denied => fate.before = Some(Trouble::Denied),
            Kind::Misconfigured => fate.before = Some(Trouble::Misconfigured),
            Kind::EtagMissing => fate.mangle = Some(Mangle::NoEtag),
            Kind::EtagWeak => fate.mangle = Some(Mangle::WeakEtag),
            Kind::EtagStar => fate.mangle = Some(Mangle::StarEtag),
            Kind::Gateway if late => fate.after = Some(Trouble::Gateway),
            Kind::Gateway => fate.before = Some(Trouble::Gateway),
            Kind::NotFound if late => fate.after = Some(Trouble::NotFound),
            Kind::NotFound => fate.before = Some(Trouble::NotFound),
            Kind::ErrorDocument => fate.mangle = Some(Mangle::ErrorDocument),
            Kind::WriteEchoed if write && late => fate.mangle = Some(Mangle::Echo),
            Kind::WriteEchoed if write => fate.mangle = Some(Mangle::EchoOnly),
            Kind::CutShort if !write => fate.mangle = Some(Mangle::CutShort),
            Kind::Oversized if !write => fate.mangle = Some(Mangle::Oversized),
            Kind::Conflict if write => fate.before = Some(Trouble::Conflict),
            Kind::ConflictAfter if write => fate.after = Some(Trouble::Conflict),
            Kind::ErrorAfter if write => fate.after = Some(Trouble::ServerError),
            Kind::TooManyAfter if write => fate.after = Some(Trouble::TooMany),
            Kind::DeniedAfter if write => fate.after = Some(Trouble::Denied),
            Kind::MisconfiguredAfter if write => fate.after = Some(Trouble::Misconfigured),
            _ => return false,
        }
        let asked_ms = chance.between(1, self.retry_after_ms).div_ceil(1_000) * 1_000;
        fate.retry_after_ms = late.then_some(asked_ms.min(300_000));
        true
    }
}
