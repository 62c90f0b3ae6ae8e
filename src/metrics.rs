//! What monitors read at `GET /metrics`: OpenMetrics, by crate `prometheus-client`. No session's id and no text of an error is in
//! it; the only label that somebody chooses is the group.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use serde::{Deserialize, Serialize};

use crate::clock::Now;
use crate::driver::Handle;
use crate::election::Election;
use crate::lease::{Past, history};
use crate::tally::{Counts, LATENCIES_MS, Tally};

/// The path at which a member shows its metrics.
pub const PATH: &str = "/metrics";

/// Their media type.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What there is to tell of one group at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Sample {
    group: String,
    /// Nothing of what competes for no term of its own: somebody who reads the record, or who runs slots.
    authority: Option<bool>,
    record_leader: Option<bool>,
    error: bool,
    term: Option<u64>,
    transitions: Option<u64>,
    last_slot_ms: Option<u64>,
    history: Option<Counts>,
    questions_held: Option<u64>,
    tally: Option<Tally>,
}

impl Sample {
    /// Of an elector, by a reading of its host's clocks.
    pub fn of(elector: &Handle, now: Now) -> Self {
        let leads = elector.authority(now).is_some();
        let sample = elector.with(|election| Self {
            authority: (!election.has_schedule()).then_some(leads),
            ..Self::of_record(election)
        });
        let (held, tally) = (elector.questions_held(), elector.tally());
        Self { questions_held: Some(held), tally: Some(tally), ..sample }
    }

    /// Of the record that this election has read last.
    pub(crate) fn of_record(election: &Election) -> Self {
        // What a record without versions says of terms is made up.
        let lease = election.record().map(|(_, lease)| lease).filter(|_| !election.is_unfenced());
        let history = lease.map(|lease| {
            let mut counts = Counts::new();
            for past in lease.history.entries() {
                let Past::Term(term) = past else { continue };
                // A word of somebody else's would be a label of somebody else's.
                let known = ["released", "parked", "steppedDown", "paused", "expired"];
                let word = known.into_iter().find(|how| *how == term.how).unwrap_or("other");
                *counts.entry(Cow::Borrowed(word)).or_default() += 1;
            }
            counts
        });
        Self {
            group: election.config().lockfile_path.clone(),
            authority: None,
            record_leader: None,
            error: election.problem().is_some(),
            term: lease.and_then(|lease| lease.term),
            transitions: lease.map(|lease| lease.transitions),
            last_slot_ms: lease.and_then(history::shown_slot).map(|past| past.slot),
            history,
            questions_held: None,
            tally: None,
        }
    }

    /// The same with whether that record, which anybody may have read, has a leader.
    pub(crate) fn read(election: &Election, has_leader: bool) -> Self {
        Self { record_leader: Some(has_leader), ..Self::of_record(election) }
    }

    /// Of a group that can't be used.
    pub fn unusable(group: &str) -> Self {
        Self { group: group.to_owned(), error: true, ..Self::default() }
    }

    /// What stays to be told of an elector that has ended.
    pub fn ended(self) -> Self {
        Self { authority: self.authority.map(|_| false), questions_held: None, ..self }
    }

    /// Adds what a later or another session of the same group tells: counts are added, and of what both know the other's counts.
    pub fn absorb(&mut self, other: Self) {
        self.authority = self.authority.max(other.authority);
        self.record_leader = other.record_leader.or(self.record_leader);
        self.error = other.error;
        self.term = other.term.or(self.term);
        self.transitions = other.transitions.or(self.transitions);
        self.last_slot_ms = other.last_slot_ms.or(self.last_slot_ms);
        self.history = other.history.or(self.history.take());
        self.questions_held = other.questions_held.or(self.questions_held);
        if let Some(more) = other.tally {
            self.tally.get_or_insert_default().add(&more);
        }
    }
}

/// The text for monitors. What is told of one group several times is [added up](Sample::absorb).
pub fn text(samples: impl IntoIterator<Item = Sample>) -> String {
    let mut groups: BTreeMap<String, Sample> = BTreeMap::new();
    for sample in samples {
        match groups.get_mut(&sample.group) {
            Some(known) => known.absorb(sample),
            None => drop(groups.insert(sample.group.clone(), sample)),
        }
    }
    let mut registry = Registry::with_prefix("edgelect");
    registry.register_collector(Box::new(Metrics(groups.into_values().collect())));
    let mut text = String::new();
    encode(&mut text, &registry).expect("a text takes whatever is written to it");
    text
}

#[derive(Debug)]
struct Metrics(Vec<Sample>);

/// The name of a metric, without what all names begin with and without its unit, and what it means.
type Named = (&'static str, &'static str);

type Labels<'a> = Vec<(&'static str, &'a str)>;

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let encoder = &mut encoder;
        self.gauges(encoder, AUTHORITY, &|one| one.authority.map(u64::from))?;
        self.gauges(encoder, RECORD_LEADER, &|one| one.record_leader.map(u64::from))?;
        self.gauges(encoder, ERROR, &|one| Some(one.error.into()))?;
        self.gauges(encoder, TERM, &|one| one.term)?;
        self.family(encoder, TRANSITIONS, MetricType::Counter, &|one| plain(one.transitions))?;
        self.family(encoder, HISTORY, MetricType::Gauge, &|one| {
            one.history.iter().flat_map(|counts| labelled(counts, "end")).collect()
        })?;
        self.last_slots(encoder)?;
        self.counters(encoder, TERMS, &|tally| labelled(&tally.terms, "reason").collect())?;
        self.counters(encoder, REQUESTS, &|tally| {
            let each = tally.requests.iter().flat_map(|(operation, counts)| {
                labelled(counts, "outcome").map(move |(mut labels, count)| {
                    labels.insert(0, ("operation", operation.as_ref()));
                    (labels, count)
                })
            });
            each.collect()
        })?;
        self.latencies(encoder)?;
        self.counters(encoder, SLOTS, &|tally| labelled(&tally.slots, "outcome").collect())?;
        self.counters(encoder, QUESTIONS, &|tally| {
            labelled(&tally.questions, "outcome").collect()
        })?;
        self.gauges(encoder, HELD, &|one| one.questions_held)
    }
}

const AUTHORITY: Named = ("authority", "1 while this member leads the group, else 0");
const RECORD_LEADER: Named =
    ("record_leader", "1 while a Worker knows of a leader by the stored record, else 0");
const ERROR: Named = ("error", "1 while the status shows an error");
const TERM: Named = ("term", "The fencing token of the newest term in the record");
const TRANSITIONS: Named =
    ("transitions", "How often the record has gone from one member to another");
const HISTORY: Named =
    ("history_terms", "The terms in the history of the record, at most eight, by how they ended");
const LAST_SLOT: Named =
    ("last_slot_timestamp", "The scheduled time of the newest claimed slot in the record");
const TERMS: Named = ("terms", "Terms of this member that have ended, by the reason");
const REQUESTS: Named = ("store_requests", "Requests of elections to the store");
const LATENCY: Named = ("store_request_duration", "How long these requests took, of all groups");
const SLOTS: Named = ("slots", "Slots of this member's triggers, by outcome");
const QUESTIONS: Named = ("peer_requests", "Questions to peers, by outcome");
const HELD: Named = ("peer_questions_held", "Questions of peers that wait for an answer");

fn plain(value: Option<u64>) -> Vec<(Labels<'static>, u64)> {
    value.map(|value| (Vec::new(), value)).into_iter().collect()
}

fn labelled<'a>(counts: &'a Counts, name: &'static str) -> impl Iterator<Item = (Labels<'a>, u64)> {
    counts.iter().map(move |(word, count)| (vec![(name, word.as_ref())], *count))
}

impl Metrics {
    fn gauges(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        named: Named,
        value: &dyn Fn(&Sample) -> Option<u64>,
    ) -> fmt::Result {
        self.family(encoder, named, MetricType::Gauge, &|one| plain(value(one)))
    }

    fn counters<'a>(
        &'a self,
        encoder: &mut DescriptorEncoder<'_>,
        named: Named,
        counts: &dyn Fn(&'a Tally) -> Vec<(Labels<'a>, u64)>,
    ) -> fmt::Result {
        let of = |one: &'a Sample| one.tally.as_ref().map(counts).unwrap_or_default();
        self.family(encoder, named, MetricType::Counter, &of)
    }

    /// One metric, with the group as its first label. One without a value is left out.
    fn family<'a>(
        &'a self,
        encoder: &mut DescriptorEncoder<'_>,
        (name, help): Named,
        kind: MetricType,
        values: &dyn Fn(&'a Sample) -> Vec<(Labels<'a>, u64)>,
    ) -> fmt::Result {
        let all: Vec<_> = self.0.iter().map(|one| (one, values(one))).collect();
        if all.iter().all(|(_, values)| values.is_empty()) {
            return Ok(());
        }
        let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
        for (one, values) in all {
            for (labels, value) in values {
                let labels = [vec![("group", one.group.as_str())], labels].concat();
                let mut series = metric.encode_family(&labels)?;
                match kind {
                    MetricType::Counter => {
                        series.encode_counter::<NoLabelSet, u64, f64>(&value, None)?;
                    }
                    _ => series.encode_gauge(&value)?,
                }
            }
        }
        Ok(())
    }

    fn last_slots(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let slots: Vec<_> =
            self.0.iter().filter_map(|one| Some((one, one.last_slot_ms?))).collect();
        if slots.is_empty() {
            return Ok(());
        }
        let (name, help) = LAST_SLOT;
        let unit = Some(&Unit::Seconds);
        let mut metric = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
        for (one, slot_ms) in slots {
            let labels = [("group", one.group.as_str())];
            metric.encode_family(&labels)?.encode_gauge(&(slot_ms as f64 / 1_000.0))?;
        }
        Ok(())
    }

    /// Of all groups together: they have one store, and a histogram of each would be many series.
    fn latencies(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut all = Tally::default();
        self.0.iter().filter_map(|one| one.tally.as_ref()).for_each(|tally| all.add(tally));
        if all.latencies.is_empty() {
            return Ok(());
        }
        let (name, help) = LATENCY;
        let unit = Some(&Unit::Seconds);
        let mut metric: MetricEncoder<'_> =
            encoder.encode_descriptor(name, help, unit, MetricType::Histogram)?;
        for (operation, latencies) in &all.latencies {
            let limits = LATENCIES_MS.iter().map(|ms| *ms as f64 / 1_000.0).chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = limits.zip(latencies.counts).collect();
            let (sum, count) = (latencies.sum_ms as f64 / 1_000.0, latencies.counts.iter().sum());
            let labels = [("operation", operation.as_ref())];
            let mut series = metric.encode_family(&labels)?;
            series.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }
        Ok(())
    }
}
