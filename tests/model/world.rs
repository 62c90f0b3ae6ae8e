//! One state of everything, and what may happen next.

use std::sync::Arc;

use edgelect::election::Input;
use edgelect::lease::{self, Lease, Reading};
use edgelect::store::{Answer, Condition, Facts, Fault, FaultKind, Outcome};

use super::bounds::{Begin, Bounds, Budget};
use super::rules::{Rule, Witness};
use super::session::{Flight, Place};
use super::store::{self, Object, Request, Stray, Write};

/// What may happen. Whoever is meant is given by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Time goes on by a tick, and whoever wants to be called is, but for one that pauses. On the way, some
    /// have given up waiting for an answer: one bit for each place.
    Tick { cut: u8, pauses: Option<usize> },
    /// The request arrives and is carried out. With `copy`, the network keeps a copy of the write.
    Arrive { place: usize, copy: bool },
    /// The answer arrives.
    Answer { place: usize },
    /// The request or its answer is lost.
    Lose { place: usize },
    /// A write for which nobody waits lands.
    Stray { stray: usize },
    /// The session ends without a word.
    Crash { place: usize },
    /// A new session begins there.
    Start { place: usize },
    /// The session is told to resign.
    Resign { place: usize },
    /// The session is told to stop.
    Stop { place: usize, park: bool },
    /// The work of the term that was given up has ended.
    WorkEnds { place: usize },
    /// Somebody deletes the object.
    Delete,
}

/// One state of everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    tick: u64,
    object: Option<Arc<Object>>,
    places: Vec<Place>,
    strays: Vec<Stray>,
    budget: Budget,
    pub witness: Witness,
}

impl World {
    pub fn new(bounds: &Bounds) -> Self {
        let object = (bounds.begin != Begin::Absent).then(|| {
            let lease_ms = bounds.configs[0].leader_timeout_ms;
            Object::new(tombstone(lease_ms), bounds.store_ms(0))
        });
        let mut world = Self {
            tick: 0,
            object,
            places: vec![Place::default(); bounds.clocks.len()],
            strays: Vec::new(),
            budget: bounds.budget,
            witness: Witness::default(),
        };
        for index in 0..world.places.len() {
            world.places[index].start(bounds, index, 0, &mut world.witness);
            while bounds.begin == Begin::Led && world.places[index].flight.is_some() {
                world.act(bounds, Act::Arrive { place: index, copy: false });
                world.act(bounds, Act::Answer { place: index });
            }
        }
        world
    }

    /// How many sessions have authority at this tick.
    pub fn leaders(&self) -> usize {
        self.places.iter().filter(|place| place.authority.is_some()).count()
    }

    /// Whether the leadership has moved from one server to another.
    pub fn handed_over(&self, bounds: &Bounds) -> bool {
        // A first record from absence is a transition less.
        let Some(object) = &self.object else { return false };
        let first = if bounds.begin == Begin::Absent { 0 } else { 1 };
        self.leaders() == 1 && object.lease.transitions > first
    }

    /// What may happen next.
    pub fn acts(&self, bounds: &Bounds, acts: &mut Vec<Act>) {
        if self.witness.broken.is_some() {
            return;
        }
        for place in 0..self.places.len() {
            self.acts_of(bounds, place, acts);
        }
        for stray in 0..self.strays.len() {
            let known = stray > 0 && self.strays[stray] == self.strays[stray - 1];
            let condition = &self.strays[stray].write.condition;
            if !known && store::holds(self.object.as_ref(), condition) {
                acts.push(Act::Stray { stray });
            }
        }
        if self.budget.deletions > 0 && self.object.is_some() {
            acts.push(Act::Delete);
        }
        self.ticks(bounds, acts);
    }

    fn acts_of(&self, bounds: &Bounds, place: usize, acts: &mut Vec<Act>) {
        let Place { member, lives, flight, work, authority, .. } = &self.places[place];
        if member.is_none() {
            if *lives > 0 {
                acts.push(Act::Start { place });
            }
            return;
        }
        let mut writes = false;
        if let Some(Flight { request, answer, lost, .. }) = flight {
            writes = matches!(request, Request::Write(_));
            if !lost && answer.is_none() {
                acts.push(Act::Arrive { place, copy: false });
                if writes && self.budget.copies > 0 {
                    acts.push(Act::Arrive { place, copy: true });
                }
            }
            if !lost && answer.is_some() {
                acts.push(Act::Answer { place });
            }
            if !lost && bounds.calm && self.budget.losses > 0 {
                acts.push(Act::Lose { place });
            }
        }
        if self.budget.crashes > 0 {
            acts.push(Act::Crash { place });
        }
        if work.is_some() {
            acts.push(Act::WorkEnds { place });
        } else if self.budget.farewells > 0 && (authority.is_some() || writes) {
            acts.push(Act::Resign { place });
            acts.push(Act::Stop { place, park: false });
            acts.push(Act::Stop { place, park: true });
        }
    }

    /// Time goes on once nobody is late, or only one that pauses. Whose time for an answer ends on the way may
    /// give up then, or be a little late and take the answer at the new tick.
    fn ticks(&self, bounds: &Bounds, acts: &mut Vec<Act>) {
        if self.tick >= bounds.last_tick {
            return;
        }
        let waits_until = |index: usize, tick: u64| {
            let own_ms = bounds.now(index, tick).mono_ms;
            let flight = self.places[index].flight.as_ref();
            flight.is_some_and(|flight| flight.cut_ms <= own_ms)
        };
        let (mut late, mut must, mut may) = (0_u8, 0_u8, 0_u8);
        for (index, place) in self.places.iter().enumerate() {
            let bit = 1 << index;
            let lost = place.flight.as_ref().is_some_and(|flight| flight.lost);
            if waits_until(index, self.tick) || (bounds.calm && place.flight.is_some() && !lost) {
                late |= bit;
            } else if waits_until(index, self.tick + 1) {
                *(if lost { &mut must } else { &mut may }) |= bit;
            }
        }
        for cut in (0..1 << self.places.len()).filter(|cut| cut & !(must | may) == 0) {
            if cut & must != must {
                continue;
            }
            if late == 0 {
                acts.push(Act::Tick { cut, pauses: None });
            }
            for index in 0..self.places.len() {
                let others_late = late & !(1 << index) != 0;
                if cut & 1 << index == 0 && !others_late && self.may_pause(index, late) {
                    acts.push(Act::Tick { cut, pauses: Some(index) });
                }
            }
        }
    }

    /// Whether it makes a difference that a session does nothing at the next tick.
    fn may_pause(&self, index: usize, late: u8) -> bool {
        let place = &self.places[index];
        let due = place.wake <= self.tick + 1 || place.flight.is_some();
        self.budget.pauses > 0 && place.member.is_some() && (late != 0 || due)
    }

    /// Lets something happen.
    pub fn act(&mut self, bounds: &Bounds, act: Act) {
        match act {
            Act::Tick { cut, pauses } => self.tick(bounds, cut, pauses),
            Act::Arrive { place, copy } => self.arrive(bounds, place, copy),
            Act::Answer { place } => self.answer(bounds, place),
            Act::Lose { place } => self.lose(place),
            Act::Stray { stray } => {
                let Stray { write, copy } = self.strays.remove(stray);
                self.carry_out(bounds, &write, copy);
            }
            Act::Crash { place } => {
                self.budget.crashes -= 1;
                self.leave_under_way(place);
                self.places[place].end();
            }
            Act::Start { place } => {
                self.places[place].start(bounds, place, self.tick, &mut self.witness);
            }
            Act::Resign { place } => {
                self.budget.farewells -= 1;
                self.tell(bounds, place, Input::Resign);
            }
            Act::Stop { place, park } => {
                self.budget.farewells -= 1;
                self.tell(bounds, place, Input::Stop { park });
            }
            Act::WorkEnds { place } => {
                if let Some(term) = self.places[place].work.take() {
                    self.tell(bounds, place, Input::WorkEnded { term });
                }
            }
            Act::Delete => {
                self.budget.deletions -= 1;
                self.object = None;
            }
        }
        self.witness.hold(Rule::OneAuthority, self.leaders() <= 1);
        self.forget_the_impossible();
    }

    /// The rules are held at the new tick before anybody is called: authority needs no call to end.
    fn tick(&mut self, bounds: &Bounds, cut: u8, pauses: Option<usize>) {
        self.tick += 1;
        self.budget.pauses -= u8::from(pauses.is_some());
        for index in 0..self.places.len() {
            let now = bounds.now(index, self.tick);
            self.places[index].watch(now, &mut self.witness);
        }
        self.witness.hold(Rule::OneAuthority, self.leaders() <= 1);
        if bounds.calm {
            let led = self.leaders() > 0;
            let ticks = if led { 0 } else { self.witness.leaderless_ticks + 1 };
            self.witness.leaderless_ticks = ticks;
            self.witness.hold(Rule::SoonLed, ticks <= bounds.leaderless_ticks);
        }
        for index in 0..self.places.len() {
            if cut & 1 << index != 0 {
                self.cut(bounds, index);
            } else if pauses != Some(index) && self.places[index].wake <= self.tick {
                self.places[index].tell(bounds, index, self.tick, None, &mut self.witness);
            }
        }
    }

    fn tell(&mut self, bounds: &Bounds, place: usize, input: Input) {
        let now = bounds.now(place, self.tick);
        self.places[place].tell(bounds, place, self.tick, Some((now, input)), &mut self.witness);
    }

    fn arrive(&mut self, bounds: &Bounds, place: usize, copy: bool) {
        let Some(flight) = &self.places[place].flight else { return };
        let answer = match flight.request.clone() {
            Request::Read { unless } => {
                store::read(self.object.as_ref(), unless.as_ref(), self.date_ms(bounds))
            }
            Request::Write(write) => {
                let answer = self.carry_out(bounds, &write, false);
                if copy {
                    self.budget.copies -= 1;
                    self.strays.push(Stray { write, copy: true });
                }
                answer
            }
        };
        let flight = self.places[place].flight.as_mut().expect("it was there a moment ago");
        flight.answer = Some(Arc::new(answer));
    }

    /// The store does what it is asked to, if the condition holds.
    fn carry_out(&mut self, bounds: &Bounds, write: &Arc<Write>, copy: bool) -> Answer {
        let Write { author, condition, lease, version } = &**write;
        if !store::holds(self.object.as_ref(), condition) {
            return store::written(None, self.date_ms(bounds));
        }
        self.witness.stored(lease.term.unwrap_or(0), *author, lease.in_grace(), copy);
        self.object = Some(Object::new(lease.clone(), bounds.store_ms(self.tick)));
        store::written(Some(version.clone()), self.date_ms(bounds))
    }

    fn date_ms(&self, bounds: &Bounds) -> Option<u64> {
        bounds.dated.then(|| bounds.store_ms(self.tick))
    }

    fn answer(&mut self, bounds: &Bounds, place: usize) {
        let flight = self.places[place].flight.take();
        if let Some(answer) = flight.and_then(|flight| flight.answer) {
            self.tell(bounds, place, Input::Answer((*answer).clone()));
        }
    }

    fn lose(&mut self, place: usize) {
        self.budget.losses -= 1;
        if let Some(flight) = &mut self.places[place].flight {
            flight.lost = true;
            flight.answer = None;
        }
    }

    /// The session gave up waiting when its clock said so, and is called again at this tick.
    fn cut(&mut self, bounds: &Bounds, place: usize) {
        let Some(cut_ms) = self.places[place].flight.as_ref().map(|flight| flight.cut_ms) else {
            return;
        };
        self.leave_under_way(place);
        let cause = Fault::new(FaultKind::Timeout, "no answer in time");
        let outcome = Outcome::Unknown { retry_after_ms: None, cause };
        let input = Input::Answer(Answer { outcome, facts: Facts::default() });
        let at = bounds.reading(place, cut_ms);
        self.places[place].tell(bounds, place, self.tick, Some((at, input)), &mut self.witness);
    }

    /// Nobody waits for the request any more; a write may land all the same.
    fn leave_under_way(&mut self, place: usize) {
        let Some(flight) = self.places[place].flight.take() else { return };
        if let Flight { request: Request::Write(write), answer: None, lost: false, .. } = flight {
            self.strays.push(Stray { write, copy: false });
        }
    }

    /// Drops the strays that can never land: no body comes twice (S4), so a version that is neither stored
    /// nor under way does not come back, and nobody but the budget makes the object absent.
    fn forget_the_impossible(&mut self) {
        loop {
            let possible = |stray: &Stray| match &stray.write.condition {
                Condition::Absent => self.object.is_none() || self.budget.deletions > 0,
                Condition::Match(version) => {
                    self.object.as_ref().is_some_and(|object| object.version == *version)
                        || self.under_way().any(|write| write.version == *version)
                }
            };
            let keep: Vec<bool> = self.strays.iter().map(possible).collect();
            if keep.iter().all(|keep| *keep) {
                break;
            }
            let mut keep = keep.into_iter();
            self.strays.retain(|_| keep.next().unwrap_or(true));
        }
        self.strays.sort_by(|one, other| {
            (&one.write.version.0, one.copy).cmp(&(&other.write.version.0, other.copy))
        });
    }

    /// The writes that may still land.
    fn under_way(&self) -> impl Iterator<Item = &Arc<Write>> {
        let awaited = self.places.iter().filter_map(|place| match &place.flight {
            Some(Flight { request: Request::Write(write), answer: None, lost: false, .. }) => {
                Some(write)
            }
            _ => None,
        });
        self.strays.iter().map(|stray| &stray.write).chain(awaited)
    }
}

/// What `init` leaves behind.
fn tombstone(lease_ms: u64) -> Lease {
    let released = r#""lastUpdated":"0001-01-01T00:00:00Z""#;
    let body = format!(
        r#"{{"leaderID":"init",{released},"term":1,"session":"init","sequence":2,"acquired":"1970-01-01T00:00:00Z","leaseMs":{lease_ms}}}"#
    );
    match lease::read(body.as_bytes()) {
        Reading::Lease(lease) => *lease,
        other => panic!("{body} reads as {other:?}"),
    }
}
