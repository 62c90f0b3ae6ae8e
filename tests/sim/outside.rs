//! Members that whoever runs the schedule brings. Their requests come as HTTP; what they say of their terms is held
//! against the same rules as that of the simulated ones.

use std::collections::BTreeMap;
use std::rc::Rc;

use edgelect::clock::Now;
use edgelect::config::Config;
use edgelect::election::{Authority, Election, LostReason};
use edgelect::lease::{self, Lease, Reading};
use edgelect::request::{Request as HttpRequest, Response};
use edgelect::slots::{Schedule, SlotEnd};
use edgelect::store::{Answer, Condition, Facts, Fault, FaultKind, Outcome, Version};

use super::clocks::Clocks;
use super::member::Session;
use super::oracle::{Aim, Deed, Look};
use super::peers::Questioned;
use super::requests::Reply;
use super::slots::Ended;
use super::store::Asked;
use super::told;
use super::world::{World, no_answer, rest_ms};

/// How late a signal may fire while nothing blocks the process: a reading that proves nothing is repeated after 20 ms.
const LATE_MS: u64 = 25;
/// The same with one clock, which holds still at each timer that it could prove nothing at: 97 ms, and the rest as above.
const SINGLE_LATE_MS: u64 = 125;
/// And where a clock was stepped or slept, which no timer counts: the fence is checked each second.
const UNCOUNTED_MS: u64 = 1_000;

/// How a member outside reaches the store.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum By {
    #[default]
    Requests,
    /// A storage of its own, which says less: no `Date` but of a record, no cause.
    Storage,
    /// The binding of a bucket, which tells no `Date` at all.
    Binding,
}

/// What is known of a member outside.
#[derive(Default)]
pub struct Outside {
    pub by: By,
    /// It is an event of a Worker: how it takes the end of a job is known by its closing write alone.
    pub worker: bool,
    /// It is an operator, who competes for nothing, and the request of theirs that took effect last.
    pub operates: bool,
    pub landed: Option<Rc<Lease>>,
    /// They have read that somebody asks for what they were to ask.
    pub asked_before: Option<Rc<Lease>>,
    standing: Option<Standing>,
    /// The term that it had authority for in this turn of its process: what it has begun leaves after its callbacks.
    pub recent: Option<u64>,
    /// How many pieces of work of each term go on.
    works: BTreeMap<u64, u64>,
    /// Since when its term is over by the wall clock.
    over_ms: Option<u64>,
    /// The margin of each lease that it was configured to.
    margins: BTreeMap<u64, u64>,
    /// When each of its writes left.
    sent: BTreeMap<usize, Sent>,
    /// The write that was refused last. Its store code may sign it anew, by a better clock.
    refused: Option<usize>,
}

/// When a write left, by what the timers of its host go by and by its wall clock.
#[derive(Clone, Copy)]
struct Sent {
    timers_ms: u64,
    wall_ms: u64,
}

impl Sent {
    fn now(clocks: &Clocks, now_ms: u64) -> Self {
        Self { timers_ms: clocks.timers_ms(now_ms), wall_ms: clocks.wall_ms(now_ms) }
    }

    /// How long ago it left, as its session counts it: a step back of a single clock hides time from it (S11).
    fn ago_ms(self, clocks: &Clocks, now_ms: u64) -> u64 {
        let now = Self::now(clocks, now_ms);
        let timed_ms = now.timers_ms - self.timers_ms;
        if !clocks.single {
            return timed_ms;
        }
        timed_ms.min(now.wall_ms.saturating_sub(self.wall_ms))
    }
}

/// A term, and until when it lasts by each clock unless it is renewed.
#[derive(Clone, Copy)]
struct Standing {
    term: u64,
    until_mono_ms: u64,
    until_wall_ms: u64,
    /// By when a timer of its own ends it, by what timers go by: a step of a single clock moves none of them.
    timed_ms: u64,
}

impl Outside {
    pub fn authority(&self, now: Now) -> Option<Authority> {
        let Standing { term, until_mono_ms, until_wall_ms, .. } = self.standing?;
        let mono_ms = until_mono_ms.saturating_sub(now.mono_ms);
        let remaining_ms = mono_ms.min(until_wall_ms.saturating_sub(now.wall_ms));
        (remaining_ms > 0).then_some(Authority { term, remaining_ms })
    }
}

/// What those who bring members have to hear of.
#[derive(Default)]
pub struct Calls {
    /// The answers to their requests: session, request, what comes.
    answers: Vec<(usize, usize, Reply)>,
    /// What peers have told them, by request.
    pub told: Vec<(usize, Result<Response, String>)>,
    /// What peers ask them.
    pub questions: Vec<Questioned>,
    /// Triggers of slots that have fired.
    pub triggers: Vec<Schedule>,
    /// A wall clock was stepped.
    pub stepped: bool,
}

impl Calls {
    pub fn is_empty(&self) -> bool {
        let Self { answers, told, questions, triggers, stepped } = self;
        let silent = answers.is_empty() && told.is_empty() && questions.is_empty();
        silent && triggers.is_empty() && !stepped
    }
}

impl World {
    /// A session of such a member begins; the name may be empty until its first write tells it.
    pub fn joins(
        &mut self,
        machine: usize,
        name: &str,
        config: &Config,
        schedule: Option<Schedule>,
    ) -> usize {
        let session = self.sessions.len();
        let mut member = Session::new(machine, name.to_owned(), config, 0, None, schedule);
        let margins = BTreeMap::from([(config.leader_timeout_ms, config.margin_ms)]);
        member.outside = Some(Outside { margins, ..Outside::default() });
        self.enters(name.to_owned(), member);
        self.oracle.views[session].hides_timers = true;
        self.history.note(self.now_ms, || format!("s{session} begins: {name}"));
        session
    }

    /// Other settings count for a session.
    pub fn outside_configured(&mut self, session: usize, config: &Config) {
        self.sessions[session].election = Election::new(config.clone(), String::new(), 0);
        self.outside_of(session).margins.insert(config.leader_timeout_ms, config.margin_ms);
        self.history.note(self.now_ms, || {
            format!("s{session} gets a lease of {} ms", config.leader_timeout_ms)
        });
    }

    /// A request of a session leaves; its number.
    pub fn outside_asks(&mut self, session: usize, http: HttpRequest) -> usize {
        let look = self.look(session);
        if self.outside_of(session).operates {
            return self.operator_sends(look, http);
        }
        self.worker_renews(look);
        let (asked, deed) = self.meant(look, &http);
        self.check_asked(look, &asked, deed);
        self.outside_sends(look, asked, deed, http)
    }

    /// A Worker renews a term before its job, which is called in the same turn, has begun; without a job none ever does.
    fn worker_renews(&mut self, Look { session, .. }: Look) {
        let untold =
            self.outside_of(session).worker && self.oracle.views[session].announced.is_none();
        if let Some(term) = self.tick_leads(session) {
            self.outside_of(session).recent = Some(term);
        }
        let Some((term, _)) = self.oracle.granting(session).filter(|_| untold) else { return };
        let sees = |sent: Sent, clocks: &Clocks| sent.ago_ms(clocks, self.now_ms);
        if self.left_ms(session, term, sees) > 0 {
            self.outside_of(session).recent = Some(term);
        }
    }

    /// Whether a Worker leads that has no job.
    pub fn a_tick_leads(&self) -> bool {
        self.living.iter().any(|index| self.tick_leads(*index).is_some())
    }

    /// The term of a Worker without a job. Nobody is told of it: its last write that has landed shows it.
    fn tick_leads(&self, session: usize) -> Option<u64> {
        let Session { outside, trigger, machine, .. } = &self.sessions[session];
        let outside = outside.as_ref().filter(|one| one.worker && trigger.is_none())?;
        let mut writes = outside.sent.iter().rev();
        let landed = |deed: usize| self.oracle.deeds[deed].landed_ms.is_some();
        let (last, sent) = writes.find(|(deed, _)| landed(**deed))?;
        let ago_ms = sent.ago_ms(&self.machines[*machine].clocks, self.now_ms);
        let Deed { aim, term, lease, margin_ms, .. } = &self.oracle.deeds[*last];
        let span_ms = lease.lease_ms.unwrap_or(0).saturating_sub(*margin_ms);
        let leads = matches!(aim, Aim::Claim | Aim::Renew) && ago_ms < span_ms;
        leads.then_some(*term)
    }

    /// How much longer a term of a session from outside lasts at most, by what its timers go by.
    pub fn lasts_ms(&self, session: usize, term: u64) -> u64 {
        let timed = |sent: Sent, clocks: &Clocks| clocks.timers_ms(self.now_ms) - sent.timers_ms;
        self.left_ms(session, term, timed)
    }

    /// What is left of a term, as `ago_ms` counts since its writes left.
    fn left_ms(&self, session: usize, term: u64, ago_ms: impl Fn(Sent, &Clocks) -> u64) -> u64 {
        let granting = self.oracle.granting(session).filter(|(granted, _)| *granted == term);
        let (_, deeds) = granting.unwrap_or_default();
        let Session { outside, machine, .. } = &self.sessions[session];
        let clocks = &self.machines[*machine].clocks;
        let left_ms = deeds.into_iter().map(|deed| {
            let Deed { lease, margin_ms, sent_ms, .. } = &self.oracle.deeds[deed];
            let span_ms = lease.lease_ms.unwrap_or(0).saturating_sub(*margin_ms);
            // With an operator's request in it, it is the same write under another number.
            let same = |(own, _): &(&usize, _)| self.oracle.deeds[**own].sent_ms == *sent_ms;
            let own = outside.as_ref().map(|outside| outside.sent.range(..=deed).rev());
            let sent = own.and_then(|mut own| own.find(same));
            sent.map_or(0, |(_, sent)| span_ms.saturating_sub(ago_ms(*sent, clocks)))
        });
        left_ms.min().unwrap_or(0)
    }

    /// An operator's request leaves: a read, or the record with the request in it.
    fn operator_sends(&mut self, look: Look, http: HttpRequest) -> usize {
        let asked = match self.written(&http) {
            Ok((lease, condition)) => {
                let version = self.store.etag(http.body());
                let (lease, bytes) = (Rc::from(lease), Some(Rc::from(&http.body()[..])));
                Asked::Write { lease, bytes, version, condition, write: None }
            }
            Err(read) => read,
        };
        self.history
            .note(self.now_ms, || format!("s{} {}", look.session, told::asks(&asked, None)));
        self.outside_sends(look, asked, None, http)
    }

    fn outside_sends(
        &mut self,
        look: Look,
        asked: Asked,
        deed: Option<usize>,
        http: HttpRequest,
    ) -> usize {
        let Session { election, machine, .. } = &self.sessions[look.session];
        let timeout_ms = election.config().request_timeout_ms;
        let sent = Sent::now(&self.machines[*machine].clocks, self.now_ms);
        if let Some(deed) = deed {
            self.outside_of(look.session).sent.insert(deed, sent);
        }
        self.under_way(look, timeout_ms, (Some(asked), deed), Some(http), None)
    }

    /// The record that a request writes, and on what condition; or else the read that it is.
    fn written(&mut self, http: &HttpRequest) -> Result<(Box<Lease>, Condition), Asked> {
        if http.method() == "GET" {
            return Err(Asked::Read { unless: header(http, "if-none-match") });
        }
        let Reading::Lease(lease) = lease::read(http.body()) else {
            self.oracle.broke("what is written can be read", format!("{http:?}"));
            return Err(Asked::Read { unless: None });
        };
        let condition = header(http, "if-match").map_or(Condition::Absent, Condition::Match);
        Ok((lease, condition))
    }

    /// What a request asks of the store, judged if it is a write.
    fn meant(&mut self, look: Look, http: &HttpRequest) -> (Asked, Option<usize>) {
        let session = look.session;
        let (lease, condition) = match self.written(http) {
            Ok(written) => written,
            Err(read) => return (read, None),
        };
        let (bytes, version) = self.body_of(&lease);
        let refused = self.outside_of(session).refused.take();
        if let Some(deed) = refused.filter(|deed| self.oracle.deeds[*deed].version == version) {
            let lease = self.oracle.deeds[deed].lease.clone();
            let write = Some(deed);
            return (Asked::Write { lease, bytes, version, condition, write }, write);
        }
        if self.oracle.views[session].name.is_empty() {
            self.oracle.views[session].name = lease.session.clone().unwrap_or_default();
        }
        let own = match &condition {
            Condition::Match(version) => self.oracle.own_deed(session, version),
            Condition::Absent => None,
        };
        let renews = own.map(|own| &self.oracle.deeds[own]).is_some_and(|own| {
            // What was only reserved may be given up, and not renewed.
            let given_up = own.aim == Aim::Reserve && lease.released();
            own.lease.term == lease.term && (matches!(own.aim, Aim::Claim | Aim::Renew) || given_up)
        });
        if renews {
            self.job_told(session, &lease);
        }
        let (asked, deed) = self.write(look, *lease, condition, !renews);
        // One that waited for its turn among other groups' was made by settings of before, and its lease says by which. That of
        // a claim may be a longer one that it replaces (S6 (b)): then the smallest margin counts that it can have.
        let current_ms = self.sessions[session].election.config().leader_timeout_ms;
        let made_ms = self.oracle.deeds[deed].lease.lease_ms.filter(|ms| *ms != current_ms);
        let renewal = self.oracle.deeds[deed].aim == Aim::Renew;
        let margins = &self.outside_of(session).margins;
        let margin_ms = made_ms.and_then(|ms| match renewal {
            true => margins.get(&ms).copied(),
            false => margins.range(..=ms).map(|(_, margin_ms)| *margin_ms).min(),
        });
        if let Some(margin_ms) = margin_ms {
            self.oracle.deeds[deed].margin_ms = margin_ms;
        }
        (asked, Some(deed))
    }

    /// How a job has ended of whose slot this is the closing write. One that never began was stopped, or is not told of.
    fn job_told(&mut self, session: usize, lease: &Lease) {
        let (Some(trigger), Some(term)) = (&mut self.sessions[session].trigger, lease.term) else {
            return;
        };
        let never = lease.slot_result.as_ref().map(|_| Ended::Lost);
        let ended = self.oracle.slots.ended.get(&(session, term)).copied().or(never);
        let Some(ended) = ended else { return };
        let told = ended.told(lease.slot_took_ms.unwrap_or(0));
        trigger.told = Some((term, told.clone()));
        let worker = self.outside_of(session).worker;
        if let Some(result) = lease.slot_result.as_deref().filter(|_| worker) {
            self.worker_told(session, term, ended, result);
        }
    }

    /// A Worker's words say more than the end: the status of the job's answer, or that it gave none. A job that has answered may
    /// have done so too late.
    fn worker_told(&mut self, session: usize, term: u64, ended: Ended, result: &str) {
        let word = match result.split([' ', ':']).next() {
            Some("ok") => Ended::Done,
            Some("failed" | "unknown") => Ended::Failed,
            _ => Ended::Lost,
        };
        require!(self.oracle, word == ended || word == Ended::Lost, "slot: the closing write says how it ended";
            "{result} for {ended:?} of term {term}");
        self.outside_job_ends(session, term, word);
        if result.starts_with("unknown") {
            self.oracle.slots.unknown.insert((session, term));
        }
        let Some(trigger) = &mut self.sessions[session].trigger else { return };
        if let Some((_, told)) = &mut trigger.told {
            let took_ms = told.took_ms;
            *told = SlotEnd { result: result.to_owned(), ..word.told(took_ms) };
        }
    }

    /// An answer reaches a session.
    pub fn outside_hears(&mut self, session: usize, request: usize, reply: Reply) {
        self.calls.answers.push((session, request, reply));
    }

    /// The answers that have come: whoever takes them hands them on before anything else happens.
    pub fn outside_answers(&mut self) -> Vec<(usize, Result<Response, String>)> {
        let answers = std::mem::take(&mut self.calls.answers);
        let told = std::mem::take(&mut self.calls.told);
        let hear = |(session, request, reply): (usize, usize, Reply)| {
            let told = told_by(self.outside_of(session).by, reply.answer);
            self.outside_ended(session, request, &told);
            (request, reply.http.expect("its requests are HTTP"))
        };
        told.into_iter().chain(answers.into_iter().map(hear)).collect()
    }

    /// A session waits for an answer no more.
    pub fn outside_abandons(&mut self, session: usize, request: usize) {
        if !self.awaits(session, request) {
            return;
        }
        if self.requests[request].asked.is_none() {
            self.sessions[session].flight = None;
            return;
        }
        self.outside_ended(session, request, &no_answer());
    }

    fn outside_ended(&mut self, session: usize, request: usize, answer: &Answer) {
        let look = self.look(session);
        self.sessions[session].flight = None;
        let refused = matches!(answer.outcome, Outcome::Rejected(_));
        self.outside_of(session).refused = self.requests[request].deed.filter(|_| refused);
        if !self.outside_of(session).operates {
            return self.learns(look, request, answer);
        }
        self.history.note(self.now_ms, || format!("s{session} {}", told::hears(answer, look.now)));
        self.operator_hears(session, &answer.outcome);
    }

    fn operator_hears(&mut self, session: usize, outcome: &Outcome) {
        if let Outcome::Found { reading: Reading::Lease(lease), .. } = outcome
            && lease.operator.is_some()
        {
            self.outside_of(session).asked_before = Some(Rc::from(lease.clone()));
        }
    }

    /// An operator begins to ask for something.
    pub fn operates(&mut self, session: usize) {
        let outside = self.outside_of(session);
        (outside.operates, outside.landed, outside.asked_before) = (true, None, None);
    }

    fn outside_of(&mut self, session: usize) -> &mut Outside {
        self.sessions[session].outside.as_mut().expect("it is one from outside")
    }

    /// The wall clock of its process was stepped. One that is stopped sees nothing of it before it runs again, and says then
    /// where it stands; one with a single clock can't say what a step back has hidden from it (S11).
    pub fn outside_stepped(&mut self, machine: usize, step_ms: i64) {
        self.calls.stepped = true;
        let stepped = &self.machines[machine];
        if stepped.paused_until_ms <= self.now_ms || stepped.clocks.single {
            return;
        }
        for session in self.sessions.iter_mut().filter(|session| session.machine == machine) {
            let standing = session.outside.as_mut().and_then(|outside| outside.standing.as_mut());
            if let Some(Standing { until_wall_ms, .. }) = standing {
                *until_wall_ms = until_wall_ms.saturating_add_signed(step_ms);
            }
        }
    }

    /// What a session says of its authority, now.
    /// `stepped`: because a clock was stepped. Nothing was told to it then, and no timer set anew.
    pub fn outside_stands(&mut self, session: usize, term: u64, remaining_ms: u64, stepped: bool) {
        let look = self.look(session);
        let (until_mono_ms, until_wall_ms) =
            (look.now.mono_ms + remaining_ms, look.now.wall_ms + remaining_ms);
        let before = self.outside_of(session).standing.filter(|one| stepped && one.term == term);
        let clocks = &self.machines[self.sessions[session].machine].clocks;
        let until_timers_ms = clocks.timers_ms(self.now_ms) + remaining_ms;
        let timed_ms = before.map_or(0, |one| one.timed_ms).max(until_timers_ms);
        let standing = Standing { term, until_mono_ms, until_wall_ms, timed_ms };
        let outside = self.outside_of(session);
        (outside.standing, outside.over_ms) = (Some(standing).filter(|_| remaining_ms > 0), None);
        outside.recent = outside.recent.max(Some(term).filter(|_| remaining_ms > 0));
        let authority = self.sessions[session].authority(look.now);
        self.oracle.looked(look, authority, false);
    }

    /// A session tells its application of a term.
    pub fn outside_acquired(&mut self, session: usize, term: u64, remaining_ms: u64) {
        self.history
            .note(self.now_ms, || format!("s{session} says Acquired {term}, {remaining_ms} ms"));
        self.term_begins(session, term, remaining_ms > 0);
        self.outside_stands(session, term, remaining_ms, false);
    }

    /// A session tells its application that a term is over.
    pub fn outside_lost(&mut self, session: usize, term: u64, reason: LostReason) {
        self.history.note(self.now_ms, || format!("s{session} says Lost {term} {reason:?}"));
        self.outside_of(session).standing = None;
        if matches!(reason, LostReason::SteppedDown | LostReason::Paused) {
            let rest_ms = rest_ms(reason, self.sessions[session].election.config());
            let look = self.look(session);
            self.oracle.resigns(look, rest_ms);
        }
        self.term_ends(session, term, reason);
        self.look_around();
        self.outside_idle(session, term);
    }

    /// One more piece of work goes on under a term, or one less.
    pub fn outside_works(&mut self, session: usize, term: u64, begins: bool) {
        let works = self.outside_of(session).works.entry(term).or_default();
        *works = if begins { *works + 1 } else { works.saturating_sub(1) };
        self.outside_idle(session, term);
    }

    /// A lost term without work is over.
    fn outside_idle(&mut self, session: usize, term: u64) {
        let announced = self.oracle.views[session].announced == Some(term);
        let state = &mut self.sessions[session];
        let works = state.outside.as_ref().and_then(|outside| outside.works.get(&term));
        if !announced && works.is_none_or(|works| *works == 0) {
            state.works.retain(|running| *running != term);
        }
    }

    /// The job of a slot begins.
    pub fn outside_job(&mut self, session: usize, slot_ms: u64, term: u64) {
        self.history.note(self.now_ms, || format!("s{session} runs slot {slot_ms} in term {term}"));
        self.slot_runs(session, (slot_ms, term));
    }

    /// It has ended.
    pub fn outside_job_ends(&mut self, session: usize, term: u64, ended: Ended) {
        self.history
            .note(self.now_ms, || format!("s{session}'s job of term {term} ended: {ended:?}"));
        if let Some(trigger) = &mut self.sessions[session].trigger {
            trigger.ends(term, ended);
        }
        self.oracle.slots.ended.insert((session, term), ended);
    }

    /// A session is over.
    pub fn outside_gone(&mut self, session: usize) {
        let told = self.oracle.views[session].announced;
        require!(self.oracle, told.is_none(), "S10 lost is told";
            "s{session} has ended and the end of term {told:?} was never told");
        if self.sessions[session].alive {
            self.kill(session);
        }
    }

    /// The process of these members has nothing to do: no term may be over of which it was not told.
    pub fn outside_rests(&mut self) {
        for index in 0..self.living.len() {
            let session = self.living[index];
            // To ask a simulated member would have it notice that its term is over.
            if self.sessions[session].outside.is_none() {
                continue;
            }
            let now = self.look(session).now;
            let machine = &self.machines[self.sessions[session].machine];
            let (freed_ms, timers_ms) =
                (machine.paused_until_ms, machine.clocks.timers_ms(self.now_ms));
            let may_be_late_ms = if machine.clocks.single { SINGLE_LATE_MS } else { LATE_MS };
            let announced = self.oracle.views[session].announced;
            let authority = self.authority(session);
            let config = self.sessions[session].election.config();
            let renews_ms = config.frequent_interval_ms + config.request_timeout_ms;
            let Some(outside) = &mut self.sessions[session].outside else { continue };
            outside.recent = authority;
            let Some(Standing { term, until_wall_ms, timed_ms, .. }) = outside.standing else {
                continue;
            };
            if announced != Some(term) || freed_ms > self.now_ms {
                continue;
            }
            let free_ms = self.now_ms - freed_ms;
            let late_ms = timers_ms.saturating_sub(timed_ms).min(free_ms);
            let uncounted_ms = match now.wall_ms >= until_wall_ms {
                true => self.now_ms - *outside.over_ms.get_or_insert(self.now_ms),
                false => 0,
            };
            // A Worker watches nothing between its renewals: each wake would cost it CPU that it pays for.
            let unseen_ms = if outside.worker { renews_ms } else { UNCOUNTED_MS };
            let in_time = late_ms <= may_be_late_ms
                && uncounted_ms.min(free_ms) <= unseen_ms + may_be_late_ms;
            require!(self.oracle, in_time, "S10 the signal fires when the authority ends";
                "term {term} of s{session} was over {} ms ago and nobody was told",
                late_ms.max(uncounted_ms));
        }
    }
}

fn header(http: &HttpRequest, name: &str) -> Option<Version> {
    let value = http.headers().get(name).and_then(|value| value.to_str().ok());
    value.map(|value| Version(value.to_owned()))
}

/// What is left of an answer behind a storage that gives bodies, and throws where it has none.
fn told_by(by: By, Answer { outcome, facts }: Answer) -> Answer {
    if by == By::Requests {
        return Answer { outcome, facts };
    }
    let found = matches!(outcome, Outcome::Found { .. }) && !facts.relayed;
    let dated = facts.date_ms.filter(|_| by == By::Storage);
    let facts = if found { Facts { date_ms: dated, ..facts } } else { Facts::default() };
    let unknown = |cause| Outcome::Unknown { retry_after_ms: None, cause };
    // A binding that cannot tell when an object was written, or its version, throws.
    let throws = by == By::Binding
        && match &outcome {
            Outcome::Found { .. } => facts.last_modified_ms.is_none(),
            Outcome::Written { version } => version.is_none(),
            _ => false,
        };
    let outcome = match outcome {
        _ if throws => unknown(Fault::new(FaultKind::Unavailable, "an internal error")),
        Outcome::Rejected(cause) | Outcome::Unknown { cause, .. } => unknown(cause),
        other => other,
    };
    Answer { outcome, facts }
}
