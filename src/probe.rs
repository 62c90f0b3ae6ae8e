//! Whether a store keeps what an election leans on, asked before the store is trusted.
//!
//! A store that takes a condition and ignores it lets two lead at once, and nothing in an election shows it. So a probe
//! breaks each condition on purpose, on an object of its own, and looks at what the store keeps afterwards. What cannot be told is no
//! violation: a store that is busy, far away or forbids the probe may still be a good one.
//!
//! A long-running process asks before it trusts the store: `lead` does by itself, and who calls
//! [`run`](crate::driver::run) calls [`judge`] first. A cron tick asks nothing: it has neither the time nor the requests.

mod steps;

use std::future::{Future, pending};
use std::pin::pin;

use futures::future::{Either, select};

use self::steps::Probe;
use crate::config::{Config, HostClock};
use crate::driver::{Handle, Host, UNHURRIED_MS};
use crate::store::{Fault, FaultKind, PROBE_MARK, Store};

/// For how long [`Effort::thorough`] leaves the object alone, in milliseconds: a time that is told anew with each reading
/// shows itself after a second.
const AGE_MS: u64 = 1_100;

/// What a probe does, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// An update of an object that does not exist; must be refused.
    UpdateOfNothing,
    /// A create.
    Create,
    /// A create of what exists; must be refused.
    CreateAgain,
    /// An update with the current version.
    Update,
    /// An update with the version before; must be refused.
    StaleUpdate,
    /// Updates with versions that are wrong in one part; each must be refused. Only where a condition has several parts.
    NearUpdate,
    /// Five updates of one version at once; one may land.
    Race,
    /// A reading on condition that an old version is there no more; must show the new one.
    StaleRead,
    /// A create of what has existed for a while; must be refused.
    LaterCreate,
    /// An update, after a while, with the version before; must be refused.
    LaterUpdate,
    /// `Date` beside the `Last-Modified` of a write of a moment ago.
    Clocks,
}

impl Step {
    /// All of them, in their order.
    pub const ALL: [Self; 11] = [
        Self::UpdateOfNothing,
        Self::Create,
        Self::CreateAgain,
        Self::Update,
        Self::StaleUpdate,
        Self::NearUpdate,
        Self::Race,
        Self::StaleRead,
        Self::LaterCreate,
        Self::LaterUpdate,
        Self::Clocks,
    ];

    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::UpdateOfNothing => "update of an absent object",
            Self::Create => "create",
            Self::CreateAgain => "create again",
            Self::Update => "update",
            Self::StaleUpdate => "update with a stale version",
            Self::NearUpdate => "update with a nearly right version",
            Self::Race => "race",
            Self::StaleRead => "read with a stale version",
            Self::LaterCreate => "create again, later",
            Self::LaterUpdate => "update with a stale version, later",
            Self::Clocks => "clocks",
        }
    }
}

/// What a step has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The store did as it must.
    Holds,
    /// Nothing can be concluded, and why.
    Unclear(String),
    /// Nothing can be concluded: the store refuses the credentials or lacks the bucket, and will do so again.
    Refused(Fault),
    /// The store did what lets two lead; what it did.
    Violated(String),
}

impl Finding {
    /// The word for people and programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Unclear(_) | Self::Refused(_) => "unclear",
            Self::Violated(_) => "violated",
        }
    }

    /// What the store did, or why nothing can be concluded.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Holds => None,
            Self::Unclear(why) | Self::Violated(why) => Some(why),
            Self::Refused(fault) => Some(&fault.message),
        }
    }
}

/// One step and what it has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The step.
    pub step: Step,
    /// What it has shown.
    pub finding: Finding,
}

/// How far the store's clock is from the own wall clock, by the `Date` of all its answers: each was told while its request
/// was under way, and has whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// What to add to the own wall clock, in milliseconds.
    pub ms: i64,
    /// By how much that may be wrong either way, in milliseconds.
    pub error_ms: u64,
}

/// What a probe has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The steps that were done, in their order.
    pub judged: Vec<Judged>,
    /// The store's clock, where its answers tell the time.
    pub offset: Option<Offset>,
}

impl Report {
    /// The finding of it all. Clocks that cannot be told leave it at [`Finding::Holds`]: ages are watched then, which
    /// costs time and no safety.
    pub fn finding(&self) -> &Finding {
        let violated = |one: &&Judged| matches!(one.finding, Finding::Violated(_));
        let unclear = |one: &&Judged| one.step != Step::Clocks && one.finding != Finding::Holds;
        let told = self.judged.iter().find(violated).or_else(|| self.judged.iter().find(unclear));
        told.map_or(&Finding::Holds, |one| &one.finding)
    }

    /// What the store refused, where that ended the probe.
    pub fn refusal(&self) -> Option<&Fault> {
        match &self.judged.last()?.finding {
            Finding::Refused(fault) => Some(fault),
            _ => None,
        }
    }
}

/// How much a probe may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// How many races are run. One finds a store that looks before it writes most of the time, not always.
    pub races: u32,
    /// How long it may take besides `age_ms`, in milliseconds, and the requests that are then under way. What is not done by then is unclear.
    pub limit_ms: u64,
    /// How long one request may take, in milliseconds.
    pub timeout_ms: u64,
    /// For how long the object is left alone before its conditions are broken once more, in milliseconds; 0 leaves that out.
    pub age_ms: u64,
}

impl Effort {
    /// For the start of a process: one race, nothing later, and no more time than one renewal is given (S8).
    pub fn at_start(config: &Config) -> Self {
        let timeout_ms = config.request_timeout_ms;
        Self { races: 1, limit_ms: 4 * timeout_ms, timeout_ms, age_ms: 0 }
    }

    /// For somebody who wants to know: as long as its requests take.
    pub fn thorough(races: u32) -> Self {
        Self { races, limit_ms: u64::MAX, timeout_ms: UNHURRIED_MS, age_ms: AGE_MS }
    }
}

/// The key of the object for one probe, beside the lease's. Each probe has its own, so that two never meet.
///
/// # Errors
/// The host has no randomness.
pub fn key<H: Host>(lockfile_path: &str, host: &H) -> Result<String, String> {
    Ok([lockfile_path, PROBE_MARK, &hex::encode(host.random()?)].concat())
}

/// Judges a store by an object at a [`key`] that nobody else uses, and deletes that object again as well as it can.
/// It makes 17 requests, 6 more for each further race, four more after [`Effort::age_ms`], two for each of
/// [`Store::near_misses`], and one to clean up. `tell` hears each step when it is done.
///
/// It ends with the first violation, where a step gets no answer, and where a step is so unclear that the next ones
/// would have nothing to stand on. Dropped, it leaves its object behind, as it does where the store cannot delete or forbids it.
///
/// # Errors
/// The host has no randomness.
pub async fn probe<S: Store, H: Host>(
    object: &S,
    host: &H,
    config: &Config,
    effort: Effort,
    mut tell: impl FnMut(&Judged),
) -> Result<Report, String> {
    let done = |progress: Progress<'_>| {
        if let Progress::Done(one) = progress {
            tell(one);
        }
    };
    probe_until(object, host, config, effort, done, pending()).await
}

/// How far a probe is.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// This step begins, where a pause comes first, with that.
    Begins(Step),
    /// This one has shown what it shows.
    Done(&'a Judged),
}

/// As [`probe`] until `stop`, which breaks off the step that is under way; the object is deleted all the same. `tell` hears how
/// far it is.
///
/// # Errors
/// The host has no randomness.
pub async fn probe_until<S: Store, H: Host>(
    object: &S,
    host: &H,
    config: &Config,
    effort: Effort,
    mut tell: impl FnMut(Progress<'_>),
    stop: impl Future<Output = ()>,
) -> Result<Report, String> {
    let mut probe = Probe::new(object, host, config, effort)?;
    let (mut judged, mut under_way) = (Vec::new(), Some(Step::UpdateOfNothing));
    let mut note = |progress: Progress<'_>| {
        match &progress {
            Progress::Begins(step) => under_way = Some(*step),
            Progress::Done(one) => {
                under_way = None;
                judged.push((*one).clone());
            }
        }
        tell(progress);
    };
    let taking = async {
        probe.take_all(effort, &mut note).await;
        false
    };
    let stopping = async {
        stop.await;
        true
    };
    let (stopped, _) = select(pin!(taking), pin!(stopping)).await.factor_first();
    if let Some(step) = under_way.filter(|_| stopped) {
        judged.push(Judged { step, finding: Finding::Unclear("it was stopped".to_owned()) });
    }
    probe.clean().await;
    Ok(Report { judged, offset: probe.offset() })
}

/// Judges the store of a long-running process, as [`Effort::at_start`] says, on an object of its own beside the lease. It
/// ends early when a stop is told to `handle`.
///
/// Only a violation is an error: what cannot be told is none. Nothing is asked of a store that has nothing
/// [beside](Store::beside) its record or was made `unjudged`, in a tick (`sustain`), nor on a host with a single clock.
///
/// # Errors
/// The store breaks a condition: which store, at which step, what it did.
pub async fn judge<S: Store, H: Host>(
    handle: &Handle,
    store: &S,
    host: &H,
) -> Result<Judgement, Fault> {
    let config = handle.with(|election| election.config().clone());
    if !is_due(&config) {
        return Ok(Judgement::NotMade);
    }
    let Ok(key) = key(&config.lockfile_path, host) else { return Ok(Judgement::NotMade) };
    let Some(object) = store.beside(&key) else { return Ok(Judgement::NotMade) };
    judge_by(handle, &object, host).await
}

/// What came of [`judge`], if not a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Nothing was asked, or not to the end.
    NotMade,
    /// The store keeps its conditions, or whether it does cannot be told.
    Made,
}

/// Whether the process is a long-running one: a tick has neither the time nor the requests, and on Workers, which have a
/// single clock, everything is one.
pub(crate) fn is_due(config: &Config) -> bool {
    config.sustain_ms.is_none() && config.clock == HostClock::Two
}

/// As [`judge`], by this object and in any process.
pub(crate) async fn judge_by<S: Store, H: Host>(
    handle: &Handle,
    object: &S,
    host: &H,
) -> Result<Judgement, Fault> {
    let config = handle.with(|election| election.config().clone());
    let probing = probe(object, host, &config, Effort::at_start(&config), |_| {});
    let report = match select(pin!(probing), pin!(handle.stop_told())).await {
        Either::Left((Ok(report), _)) => report,
        Either::Left((Err(_), _)) | Either::Right(_) => return Ok(Judgement::NotMade),
    };
    if let Some(violation) = violation(object, &report.judged) {
        return Err(violation);
    }
    let last = report.judged.last().map(|one| one.step);
    if *report.finding() == Finding::Holds && last == Step::ALL.last().copied() {
        handle.store_held();
    }
    Ok(Judgement::Made)
}

/// The violation among the findings, as the error that stops an elector: the store, the step, what it did.
pub fn violation<S: Store>(object: &S, judged: &[Judged]) -> Option<Fault> {
    judged.iter().find_map(|Judged { step, finding }| {
        let Finding::Violated(what) = finding else { return None };
        let pieces = [&object.describe(), ": probe step \"", step.name(), "\": ", what];
        Some(Fault::new(FaultKind::Misconfigured, pieces.concat()))
    })
}
