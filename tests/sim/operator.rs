//! An operator who asks the leader to step down, pauses and resumes the group, by requests that are held up or lost.

use std::rc::Rc;

use edgelect::lease::{Ask, Lease, OperatorRequest};
use edgelect::store::Version;

use super::chance::Chance;
use super::clocks::EPOCH_MS;
use super::justified::Writer;
use super::oracle::{Aim, Deed, Oracle};
use super::report::Kind;
use super::store::{self, Object, Shown};
use super::world::{Event, World};

/// One seed in so many has an operator.
const ONE_IN: u64 = 6;

/// Chosen so that no seed that ever broke a rule means another schedule than it did.
const SALT: u64 = 1_527_728 << 40;

/// A request on its way to the store.
#[derive(Clone, Debug)]
pub struct Asked {
    /// On which version it is conditional.
    over: Version,
    lease: Rc<Lease>,
}

/// The operator of a schedule.
pub struct Operator {
    chance: Chance,
    lease_ms: u64,
    asked: u64,
}

impl Operator {
    fn draw(seed: u64, lease_ms: u64) -> Option<Self> {
        let mut chance = Chance::new(seed ^ SALT);
        chance.one_in(ONE_IN).then_some(Self { chance, lease_ms, asked: 0 })
    }

    fn request(&mut self, ask: Ask, lease: &Lease, now_ms: u64) -> OperatorRequest {
        self.asked += 1;
        let led = !lease.released() && !lease.parked && !lease.in_grace();
        let ends = ask == Ask::Pause && self.chance.one_in(3);
        OperatorRequest {
            ask,
            id: format!("o{}", self.asked),
            by: "ada".to_owned(),
            why: String::new(),
            at_ms: None,
            until_ms: ends.then(|| EPOCH_MS + now_ms + self.chance.span(4 * self.lease_ms)),
            term: lease.term.filter(|_| led),
            session: lease.session.clone().filter(|_| led),
        }
    }
}

impl World {
    /// Some schedules have an operator.
    pub fn operator_begins(&mut self, seed: u64, lease_ms: u64) {
        self.operator = Operator::draw(seed, lease_ms);
        if self.operator.is_some() {
            self.after(lease_ms, Event::OperatorAsks);
        }
    }

    /// The operator looks at the record and asks for something.
    pub fn operator_asks(&mut self) {
        let Some(operator) = self.operator.as_mut().filter(|_| !self.healed) else { return };
        let next_ms = operator.chance.between(1, 4 * operator.lease_ms);
        let object = self.store.object.as_ref();
        if let Some((object, lease)) = object.and_then(|o| Some((o, o.shown.lease()?))) {
            let led = lease.session.is_some() && !lease.released() && !lease.parked;
            let paused = lease.operator.as_ref().is_some_and(|request| request.ask == Ask::Pause);
            let ask = match (operator.chance.below(4), led && !lease.in_grace()) {
                (1.., _) if paused => Ask::Resume,
                (0 | 1, true) => Ask::StepDown,
                _ => Ask::Pause,
            };
            // Nothing is asked of a leader of another make.
            if led || lease.session.is_some() || lease.released() {
                let request = operator.request(ask, lease, self.now_ms);
                let lease = Rc::new(request.over(lease));
                let asked = Asked { over: object.version.clone(), lease };
                let travel_ms = operator.chance.span(operator.lease_ms);
                // The sooner it arrives, the likelier it is that the record is still the one that was read.
                let travel_ms = if operator.chance.one_in(2) { travel_ms / 16 } else { travel_ms };
                self.trouble_until(self.now_ms + travel_ms);
                self.after(travel_ms, Event::OperatorArrives { asked });
            }
        }
        self.after(next_ms, Event::OperatorAsks);
    }

    /// The request takes effect where the record is still the one that was read.
    pub fn operator_arrives(&mut self, asked: Asked) {
        let object = self.store.object.as_ref();
        let current = object.filter(|object| object.version == asked.over);
        let (Some(write), false) = (current.map(|object| object.write), self.healed) else {
            return;
        };
        let ask = asked.lease.operator.as_ref().map(|request| request.ask);
        self.tally.fault(kind_of(ask));
        self.put_request(write, asked.lease);
    }

    /// Whoever asks from outside writes over what `before` has stored, if it is a member's; a pause of theirs is ended at
    /// the end of all faults, as those of the schedule's own operator are.
    pub fn request_landed(&mut self, request: usize, asked: &store::Asked, before: Option<usize>) {
        let store::Asked::Write { lease, version, write: None, .. } = asked else { return };
        self.tally.fault(kind_of(lease.operator.as_ref().map(|request| request.ask)));
        self.history.note(self.now_ms, || format!("*** an operator asks {:?}", lease.operator));
        let write = before.map(|deed| self.oracle.asked(deed, lease.clone(), version.clone()));
        if let Some(object) = &mut self.store.object {
            object.write = write;
        }
        let session = self.requests[request].session;
        if let Some(outside) = &mut self.sessions[session].outside {
            outside.landed = Some(lease.clone());
        }
    }

    fn put_request(&mut self, write: Option<usize>, lease: Rc<Lease>) {
        self.history.note(self.now_ms, || format!("*** the operator asks {:?}", lease.operator));
        let (bytes, version) = self.body_of(&lease);
        let write = write.map(|deed| self.oracle.asked(deed, lease.clone(), version.clone()));
        let (shown, modified_s) = (Shown::Lease(lease), self.store.clock_s(self.now_ms, 0));
        self.store.change(self.now_ms, Object { version, shown, bytes, modified_s, write });
    }

    /// At the end of all faults nothing stays paused.
    pub fn operator_resumes(&mut self) {
        let anybody = || Operator { chance: Chance::new(SALT), lease_ms: 0, asked: 0 };
        self.operator.get_or_insert_with(anybody);
        let Some(object) = &self.store.object else { return };
        let Some(lease) = object.shown.lease().cloned() else { return };
        let paused = lease.operator.as_ref().is_some_and(|request| request.ask == Ask::Pause);
        if let Some(operator) = self.operator.as_mut().filter(|_| paused) {
            let request = operator.request(Ask::Resume, &lease, self.now_ms);
            let write = object.write;
            self.put_request(write, Rc::new(request.over(&lease)));
        }
    }
}

fn kind_of(ask: Option<Ask>) -> Kind {
    match ask {
        Some(Ask::StepDown) => Kind::SteppedDown,
        Some(Ask::Pause) => Kind::PausedGroup,
        _ => Kind::ResumedGroup,
    }
}

impl Oracle {
    /// A request over what this write has stored: the same write under another version.
    fn asked(&mut self, deed: usize, lease: Rc<Lease>, version: Version) -> usize {
        let Deed { lease: before, .. } = &self.deeds[deed];
        let same = Lease { operator: None, ..(*lease).clone() };
        let same = same == Lease { operator: None, ..(**before).clone() };
        require!(self, same, "operator: nothing else changes"; "{before:?} became {lease:?}");
        let fresh = self.enter(&version);
        require!(self, fresh, "S4 every body is new"; "{} was written before", version.0);
        let asked = Deed { lease, version, under_way: 0, ..self.deeds[deed].clone() };
        self.deeds.push(asked);
        self.deeds.len() - 1
    }

    /// Nobody claims what the operator has paused.
    pub fn check_pause(&mut self, writer: &Writer, before: &Lease) {
        let Some(request) = &before.operator else { return };
        // Storage time as a member knows it, by a clock that may be fast since the last `Date`.
        let room_ms = writer.config.store_skew_ms + 4 * writer.config.max_lease_ms + 2_000;
        let timed = self.contract.always_dated && self.contract.timely;
        let lasts = request.pauses(EPOCH_MS + self.true_ms + room_ms)
            && (timed || request.until_ms.is_none());
        require!(self, !lasts, "operator: a paused group is not claimed"; "over {request:?}");
    }

    /// What a session has been shown of its own record it obeys: it renews nothing that it was asked to end, and a
    /// tombstone stays paused.
    pub fn check_obeyed(&mut self, held: &Lease, lease: &Lease, aim: Aim) {
        let Some(request) = &held.operator else { return };
        let (term, session) = (held.term.unwrap_or(0), held.session.as_deref().unwrap_or(""));
        let lasts = request.ask == Ask::Pause && request.until_ms.is_none();
        let ends = lasts || request.ends(term, session);
        require!(self, aim != Aim::Renew || !ends, "operator: a request is obeyed";
            "renewed over {request:?}");
        let kept = aim == Aim::Renew || lease.operator.as_ref() == Some(request);
        require!(self, kept, "operator: a tombstone keeps the request";
            "{request:?} became {:?}", lease.operator);
    }
}
