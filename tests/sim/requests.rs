//! Requests of the members: judged as they leave, their way to the store and back, and their peers.

use std::rc::Rc;

use edgelect::election::Step;
use edgelect::lease::{self, Lease};
use edgelect::request::{Request as HttpRequest, Response};
use edgelect::store::{Answer, Condition, Facts, Outcome, Version};

use super::justified::Writer;
use super::member::Flight;
use super::network::{Fate, Mangle, Trouble};
use super::oracle::{Aim, Deed, Look, Oracle};
use super::port::{Conversation, Move};
use super::report::{Ground, Kind};
use super::store::{Asked, Effect};
use super::told;
use super::wire::{self, Turned};
use super::world::{Depth, Event, World};

/// One request on its way, and what will become of it.
pub struct Request {
    pub session: usize,
    /// The operation that it belongs to: a redirected client asks more than once.
    pub operation: usize,
    /// `None` for a question to a peer.
    pub asked: Option<Rc<Asked>>,
    pub fate: Fate,
    pub deed: Option<usize>,
    pub http: Option<Rc<HttpRequest>>,
}

/// What comes back to one request.
#[derive(Clone, Debug)]
pub struct Reply {
    /// What it means: all that a store's client may conclude.
    pub answer: Answer,
    /// As it comes over the wire, where the requests are HTTP.
    pub http: Option<Result<Response, String>>,
    turned: Option<Turned>,
}

impl World {
    pub fn send(&mut self, look: Look, step: Step) {
        let session = look.session;
        let (asked, deed, timeout_ms) = match step {
            Step::Read { unless, timeout_ms } => (Asked::Read { unless }, None, timeout_ms),
            Step::Claim { lease, seen, timeout_ms } => {
                let (asked, deed) = self.write(look, *lease, seen, true);
                (asked, Some(deed), timeout_ms)
            }
            Step::Renew { lease, held, timeout_ms } => {
                let (asked, deed) = self.write(look, *lease, Condition::Match(held), false);
                (asked, Some(deed), timeout_ms)
            }
            step @ Step::AskPeer { .. } => return self.ask_peer(look, step),
            Step::Wait { .. } | Step::Finished => return,
        };
        self.check_asked(look, &asked, deed);
        let client = self.sessions[session].client.as_ref();
        let mut conversation = client.map(|client| client.begin(&asked));
        let http = conversation.as_mut().and_then(|talk| self.first_request(look, talk));
        self.under_way(look, timeout_ms, (Some(asked), deed), http, conversation);
    }

    /// What a member asks of the store is counted, and held against what it knows.
    pub fn check_asked(&mut self, look: Look, asked: &Asked, deed: Option<usize>) {
        self.history.note(self.now_ms, || {
            format!("s{} {}", look.session, told::asks(asked, self.oracle.deeds.last()))
        });
        self.count_request(look);
        let aim = deed.map(|deed| self.oracle.deeds[deed].aim);
        self.oracle.asks(look, aim);
        if let Asked::Read { unless } = asked {
            self.oracle.reads(look, unless.is_some());
        }
    }

    fn first_request(&mut self, look: Look, talk: &mut Conversation) -> Option<HttpRequest> {
        let keys = self.newest_keys();
        let client = self.sessions[look.session].client.as_ref()?;
        match client.go_on(talk, look.now, keys, None) {
            Move::Sends(request) => Some(*request),
            Move::Ends(answer) => {
                let text = format!("ended without a request: {answer:?}");
                self.oracle.broke("the store code asks the store", text);
                None
            }
        }
    }

    /// The generation of credentials that the store takes from now on.
    fn newest_keys(&self) -> u64 {
        self.store.manners.credentials_ms.map_or(0, |ms| self.now_ms / ms)
    }

    pub fn count_request(&mut self, look: Look) {
        // A tight follower whose clock is off looks half a dozen times around each renewal; three
        // attempts, a read-back and a look, each answered at once, come with pauses that grow eight
        // times before they are as long as an interval, and begin anew after a stale read. The term before may have had
        // as many in the same lease: a store that takes no writes ends it, and the claims that follow begin with the
        // shortest pause. A look that fails is asked again, which takes the place of the look that the term had no need of.
        let config = self.sessions[look.session].election.config();
        let window_ms = config.leader_timeout_ms;
        let most = 8 * window_ms.div_ceil(config.frequent_interval_ms) + 2 * 8 * 5;
        // Each slot that it runs is a claim and a closing write, each with its attempts.
        let runs = self.sessions[look.session].trigger.as_ref().map_or(0, |e| e.runs.len() as u64);
        let most = most + 8 * runs;
        let busy = self.oracle.sent(look, config);
        self.tally.requests += 1;
        self.tally.busiest = self.tally.busiest.max(busy);
        require!(self.oracle, busy <= most, "no spinning";
            "s{} sent {busy} requests within one lease", look.session);
    }

    /// The first request of an operation leaves, or a question to a peer; its number.
    pub fn under_way(
        &mut self,
        look: Look,
        timeout_ms: u64,
        (asked, deed): (Option<Asked>, Option<usize>),
        http: Option<HttpRequest>,
        conversation: Option<Conversation>,
    ) -> usize {
        let (session, operation) = (look.session, self.operations);
        self.operations += 1;
        let fate = match &asked {
            Some(asked) => self.fate(session, matches!(asked, Asked::Write { .. })),
            None => Fate::default(),
        };
        let (asked, http) = (asked.map(Rc::new), http.map(Rc::new));
        let awaited = self.launch(Request { session, operation, asked, fate, deed, http });
        let due = self.due(look, look.now.mono_ms + timeout_ms);
        self.sessions[session].flight = Some(Flight { operation, awaited, due, conversation });
        self.at(due.true_ms, Event::Timeout { session, operation });
        let machine = self.sessions[session].machine;
        let busy_ms = std::mem::take(&mut self.machines[machine].busy_ms);
        if busy_ms > 0 && !self.healed {
            self.pause(machine, busy_ms);
            let freezes = self.machines[machine].clocks.single && self.chance.one_in(2);
            self.machines[machine].frozen_ms = if freezes { busy_ms } else { 0 };
        }
        awaited
    }

    /// Lets a request leave; its number.
    fn launch(&mut self, request: Request) -> usize {
        let number = self.requests.len();
        let Request { fate, .. } = request;
        let deed = request.deed;
        if deed.is_none() {
            let machine = &self.machines[self.sessions[request.session].machine];
            let view = &mut self.oracle.views[request.session];
            view.asked_ms = self.now_ms;
            view.asked_lived_ms = machine.clocks.lived_ms(self.now_ms);
        }
        self.requests.push(request);
        if let Some(travel_ms) = fate.request_ms {
            if let Some(deed) = deed {
                self.oracle.deeds[deed].under_way += 1 + u64::from(fate.again_ms.is_some());
            }
            self.trouble_until(self.now_ms + travel_ms);
            self.after(travel_ms, Event::Arrive { request: number, copy: false });
            if let Some(again_ms) = fate.again_ms {
                self.trouble_until(self.now_ms + travel_ms + again_ms);
                self.after(travel_ms + again_ms, Event::Arrive { request: number, copy: true });
            }
        }
        number
    }

    /// The newest creation that took effect was copied on its way, and the copy arrives so much after whoever has asked
    /// before was answered or has given up: no rule can tell what it was shown from what there is then (docs/proof.md).
    pub fn creation_comes_again(&mut self, held_up_ms: u64) {
        let flights = self.sessions.iter().filter_map(|session| session.flight.as_ref());
        let over_ms = flights.map(|flight| flight.due.true_ms).max().unwrap_or(0);
        let held_up_ms = held_up_ms + over_ms.saturating_sub(self.now_ms) + 1;
        let created = |request: &Request| {
            let deed = request.deed.map(|deed| &self.oracle.deeds[deed]);
            let landed = |deed: &Deed| deed.aim == Aim::Create && deed.landed_ms.is_some();
            deed.is_some_and(landed)
        };
        let Some(number) = self.requests.iter().rposition(created) else { return };
        let Request { fate, deed, .. } = &mut self.requests[number];
        // More copies than one are beyond the contract.
        if fate.again_ms.is_some() {
            return;
        }
        fate.again_ms = Some(held_up_ms);
        fate.again_answers = false;
        self.oracle.deeds[deed.expect("it is a write")].under_way += 1;
        self.tally.fault(Kind::Duplicate);
        self.trouble_until(self.now_ms + held_up_ms);
        self.after(held_up_ms, Event::Arrive { request: number, copy: true });
    }

    /// The client goes on with what came back: asks once more, or knows the end.
    pub fn hear(&mut self, look: Look, request: usize, reply: Reply) -> Option<Answer> {
        let Reply { answer: meant, http, turned } = reply;
        let Some(http) = http else { return Some(meant) };
        let keys = self.newest_keys();
        let state = &mut self.sessions[look.session];
        let (Some(client), Some(flight)) = (&state.client, &mut state.flight) else { return None };
        let talk = flight.conversation.as_mut()?;
        let answer = match client.go_on(talk, look.now, keys, Some(http)) {
            Move::Sends(next) => {
                self.ask_again(look, request, *next, turned);
                return None;
            }
            Move::Ends(answer) => *answer,
        };
        let agrees = wire::agrees(&answer, &meant);
        require!(self.oracle, agrees, "the store code says what an answer means";
            "{answer:?} was made of {meant:?}");
        Some(answer)
    }

    /// S8: only an answer that shows that nothing was done lets a request leave once more.
    fn ask_again(&mut self, look: Look, before: usize, next: HttpRequest, turned: Option<Turned>) {
        require!(self.oracle, turned.is_some(), "S8 sent once";
            "s{} sends {next:?} again by itself", look.session);
        self.tally.fault(match turned {
            Some(Turned::Redirected) | None => Kind::Redirected,
            Some(Turned::Skewed) => Kind::SignedAnew,
            Some(Turned::Expired) => Kind::KeysExpired,
        });
        self.history.note(self.now_ms, || format!("s{} asks again: {turned:?}", look.session));
        let Request { session, operation, asked, deed, .. } = &self.requests[before];
        let (session, operation, asked, deed) = (*session, *operation, asked.clone(), *deed);
        let fate = Fate { redirect: false, ..self.fate(session, deed.is_some()) };
        let http = Some(Rc::new(next));
        let awaited = self.launch(Request { session, operation, asked, fate, deed, http });
        if let Some(flight) = &mut self.sessions[session].flight {
            flight.awaited = awaited;
        }
    }

    pub fn write(
        &mut self,
        look: Look,
        lease: Lease,
        seen: Condition,
        claim: bool,
    ) -> (Asked, usize) {
        let (bytes, version) = self.body_of(&lease);
        let aim = Oracle::aim(&lease, &seen, claim);
        let state = &self.sessions[look.session];
        let config = state.election.config();
        let born_ms = match &seen {
            Condition::Match(version) => self.store.born_ms(version),
            Condition::Absent => None,
        };
        let authority = state.authority(look.now).map(|authority| authority.term);
        let recent = state.outside.as_ref().and_then(|outside| outside.recent);
        let authority = authority.or(recent.filter(|_| aim == Aim::Renew));
        let working = state.works.contains(&lease.term.unwrap_or(0));
        let again =
            matches!(&seen, Condition::Match(version) if self.store.again.contains(version));
        let stale = self.store.keeps_past || !self.oracle.contract.changes_told || again;
        let (trigger, own_slot) = (state.trigger.as_ref(), state.election.own_slot_ms());
        let writer =
            Writer { look, config, authority, working, born_ms, stale, again, trigger, own_slot };
        if let Some(ground) = self.oracle.judge(&writer, &lease, &seen, aim) {
            self.tally.claim(ground);
            if ground == Ground::Healed {
                self.oracle.tampered();
            }
        }
        let lease = Rc::new(lease);
        let skew_ms = config.store_skew_ms;
        let write = self.oracle.wrote(look, lease.clone(), version.clone(), aim, config);
        if let Some(trigger) = &mut self.sessions[look.session].trigger
            && matches!(aim, Aim::Claim | Aim::Reserve | Aim::Cover)
        {
            trigger.claimed = true;
            if aim == Aim::Cover {
                self.tally.fault(Kind::SlotCovered);
            }
            if aim != Aim::Reserve {
                trigger.claims.push((write, seen.clone()));
            }
            if aim == Aim::Claim {
                self.oracle.claims_slot(look.session, write, skew_ms);
            }
        }
        (Asked::Write { lease, bytes, version, condition: seen, write: Some(write) }, write)
    }

    /// The bytes of a record, where the requests are HTTP, and its version.
    pub fn body_of(&self, lease: &Lease) -> (Option<Rc<[u8]>>, Version) {
        match self.depth {
            Depth::Core => (None, self.store.etag(lease)),
            Depth::Store => {
                let body = lease::write(lease);
                let version = self.store.etag(&body);
                (Some(Rc::from(body)), version)
            }
        }
    }

    fn fate(&mut self, session: usize, write: bool) -> Fate {
        let machine = self.sessions[session].machine;
        let scripted = self
            .script
            .iter_mut()
            .find(|script| script.machine == machine && script.write == write && script.times > 0);
        if let Some(script) = scripted {
            script.times -= 1;
            return script.fate;
        }
        let mut fate = self.weather.fate(&mut self.chance, &mut self.tally, write);
        let cut = self.machines[machine].cut;
        if cut.until_ms > self.now_ms && cut.requests && (write || !cut.writes) {
            self.tally.fault(Kind::CutRequests);
            match cut.says {
                Some(_) => fate.before = cut.says,
                None => fate.request_ms = None,
            }
        }
        fate
    }

    pub fn on_arrive(&mut self, request: usize, copy: bool) {
        let Request { session, asked, fate, http, .. } = &self.requests[request];
        let (session, fate, http) = (*session, *fate, http.clone());
        let Some(asked) = asked.clone() else { return };
        if let Some(deed) = self.requests[request].deed {
            self.oracle.deeds[deed].under_way -= 1;
        }
        let answer_ms = fate.answer_ms.filter(|_| copy == fate.again_answers);
        let front_end = self.chance.below(8) as usize;
        let writes = matches!(*asked, Asked::Write { .. });
        let down = self.outage.until_ms > self.now_ms
            && self.outage.requests
            && (writes || !self.outage.writes);
        let facts = self.store.facts(self.now_ms, front_end);
        let facts = self.shaded(facts, !writes);
        if down {
            self.tally.fault(Kind::Outage);
            let answer_ms = answer_ms.filter(|_| self.outage.says.is_some());
            let says = self.outage.says.unwrap_or(Trouble::ServerError);
            let reply = trouble(says, None, facts, (writes, http.is_some()));
            return self.answer(session, request, answer_ms, reply);
        }
        let mut condition = match &*asked {
            // At the end of all faults no operator asks for anything.
            Asked::Write { write: None, .. } if self.healed => return,
            Asked::Write { condition, .. } => Some(condition),
            Asked::Read { .. } => None,
        };
        let received;
        if let Some(http) = &http {
            received = wire::receive(http, &asked);
            if let Some(wrong) = &received.wrong {
                self.oracle.broke("S3 what is sent", wrong.clone());
            }
            let (manners, keys) = (&self.store.manners, self.newest_keys());
            if let Some(turned) = received.turned(self.now_ms, manners, keys, fate.redirect) {
                let reply = turned_away(turned, self.now_ms, facts);
                return self.answer(session, request, answer_ms, reply);
            }
            condition = received.condition.as_ref();
        }
        let reply = match fate.before {
            None if fate.mangle == Some(Mangle::EchoOnly)
                && let Some(Condition::Match(held)) = condition =>
            {
                let outcome = Outcome::Written { version: Some(held.clone()) };
                let http = http.is_some().then(|| Ok(wire::echo(held, &facts)));
                Reply { answer: Answer { outcome, facts }, http, turned: None }
            }
            Some(before) => trouble(before, fate.retry_after_ms, facts, (writes, http.is_some())),
            None => self.carry_out(request, &asked, condition, front_end, facts),
        };
        self.answer(session, request, answer_ms, reply);
    }

    fn carry_out(
        &mut self,
        request: usize,
        asked: &Asked,
        condition: Option<&Condition>,
        front_end: usize,
        shaded: Facts,
    ) -> Reply {
        let Request { fate, deed, http, .. } = &self.requests[request];
        let (fate, deed, over_http) = (*fate, *deed, http.is_some());
        let writes = matches!(asked, Asked::Write { .. });
        let stale = self.stale();
        let before = self.store.object.as_ref().and_then(|object| object.write);
        let effect = self.store.perform(self.now_ms, asked, condition, front_end, stale);
        let facts = Facts { last_modified_ms: effect.last_modified_ms, ..shaded };
        self.took_effect(deed, &effect);
        if effect.accepted() {
            self.request_landed(request, asked, before);
        }
        let now_is = self.store.object.as_ref().map(|object| &object.version);
        let old = matches!(asked, Asked::Read { unless: Some(known) } if now_is != Some(known));
        if old && effect.outcome == Outcome::Unchanged {
            self.tally.fault(Kind::StaleUnchanged);
        }
        if self.store.manners.moving && facts.last_modified_ms.is_some() {
            self.tally.fault(Kind::MovingTime);
        }
        if let Some(after) = fate.after {
            return trouble(after, fate.retry_after_ms, shaded, (writes, over_http));
        }
        let known = match (asked, condition) {
            (Asked::Read { unless }, _) => unless.as_ref(),
            (_, Some(Condition::Match(held))) => Some(held),
            _ => None,
        };
        let http = over_http.then(|| Ok(wire::honest(&effect, &facts, known, fate.mangle)));
        let outcome = match fate.mangle {
            Some(Mangle::Echo) if effect.accepted() && known.is_some() => {
                Outcome::Written { version: known.cloned() }
            }
            Some(mangle) => mangle.outcome(effect.outcome),
            None => effect.outcome,
        };
        Reply { answer: Answer { outcome, facts }, http, turned: None }
    }

    /// What something on the way does to what an answer says about time.
    fn shaded(&mut self, mut facts: Facts, read: bool) -> Facts {
        let (undated, relayed, cached_ms) = {
            let manners = &self.store.manners;
            (manners.undated_per_mille, manners.relayed_per_mille, manners.cached_ms)
        };
        let old = read && !self.healed && self.now_ms < self.old_dates_until_ms;
        let cached_ms = if old { self.old_dates_until_ms } else { cached_ms };
        if old || self.chance.per_mille(relayed) {
            self.tally.fault(Kind::Relayed);
            facts.relayed = true;
            let cached_ms = if read { cached_ms } else { 0 };
            let old_ms = self.chance.span(cached_ms) / 1_000 * 1_000;
            facts.cached = old_ms > 0;
            if facts.cached && facts.date_ms.is_some() {
                self.tally.fault(Kind::CachedDate);
                facts.date_ms = facts.date_ms.map(|date_ms| date_ms - old_ms);
            }
        }
        // Not drawn, so that other schedules stay what they were.
        let late = self.now_ms / 7 % 8 < self.store.manners.late_dates_of_eight;
        if late && read && !self.healed && facts.date_ms.is_some() {
            self.tally.fault(Kind::LateDate);
            facts.date_ms = facts.date_ms.map(|date_ms| date_ms + 3_600_000);
        }
        if facts.date_ms.is_some() && self.chance.per_mille(undated) {
            self.tally.fault(Kind::Undated);
            facts.date_ms = None;
        }
        facts
    }

    /// How many states back a read looks, where the store shows old ones.
    fn stale(&mut self) -> Option<usize> {
        let stale = self.chance.per_mille(self.store.manners.stale_per_mille);
        let most = self.store.past.len();
        let back = (stale && most > 0).then(|| self.chance.below(most as u64) as usize);
        if back.is_some() {
            self.tally.fault(Kind::StaleRead);
        }
        back
    }

    fn took_effect(&mut self, deed: Option<usize>, effect: &Effect) {
        let Some(deed) = deed else { return };
        let line = if effect.accepted() { "lands" } else { "is refused" };
        let Self { oracle, history, tally, now_ms, .. } = self;
        history.note(*now_ms, || {
            let deed = &oracle.deeds[deed];
            format!("   s{} #{} {:?} {line}", deed.session, deed.lease.sequence, deed.aim)
        });
        if effect.accepted() {
            oracle.accepted(deed);
        } else if effect.outcome == Outcome::Refused {
            if oracle.deeds[deed].landed_ms.is_some() {
                tally.fault(Kind::OwnWriteRefused);
            }
            if effect.absent {
                tally.fault(Kind::MatchOnAbsent);
            }
        }
    }

    fn answer(&mut self, session: usize, request: usize, travel_ms: Option<u64>, reply: Reply) {
        let cut = self.machines[self.sessions[session].machine].cut;
        let Some(travel_ms) = travel_ms else { return };
        if (cut.until_ms > self.now_ms && cut.answers)
            || (self.outage.until_ms > self.now_ms && self.outage.answers)
        {
            self.tally.fault(Kind::CutAnswers);
            return;
        }
        self.after(travel_ms, Event::Deliver { session, request, reply: Box::new(reply) });
    }
}

fn trouble(
    trouble: Trouble,
    retry_after_ms: Option<u64>,
    facts: Facts,
    (write, over_http): (bool, bool),
) -> Reply {
    Reply {
        answer: trouble.answer(write, retry_after_ms, facts),
        http: over_http.then(|| wire::trouble(trouble, retry_after_ms, &facts)),
        turned: None,
    }
}

fn turned_away(turned: Turned, now_ms: u64, facts: Facts) -> Reply {
    let http = Some(Ok(wire::turn_away(turned, now_ms, &facts)));
    let answer = wire::turned_outcome(turned).answer(false, None, facts);
    Reply { answer, http, turned: Some(turned) }
}
