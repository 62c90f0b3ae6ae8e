//! Members of two makes over one record, in virtual time. Who leads is looked at at every step and at the beginning of every
//! term: never two of ours at once, never one of theirs beside one of ours, and tokens that grow.

use edgelect::{Store, run};
use futures::future::AbortHandle;

use crate::driver::Told;
use crate::driver::prelude::*;

pub type Chances = Rc<RefCell<Chance>>;

pub struct World<P> {
    pub time: Virtual,
    /// The record that they share, and what is around it.
    pub place: P,
    pub observer: Rc<Observer>,
    /// What happens in each step beside the members: what was held up arrives, what is old is deleted.
    pub each_step: Box<dyn FnMut()>,
    /// What a failure names, and what is drawn by it.
    pub seed: u64,
    pub chance: Chances,
    /// How often it is looked at.
    pub step_ms: u64,
    machine: Machine,
    made: Cell<u64>,
}

/// Who is there, and what is known of them.
#[derive(Default)]
pub struct Observer {
    candidates: RefCell<Vec<Candidate>>,
    /// The fencing tokens of our terms, in the order in which they began.
    pub tokens: RefCell<Vec<u64>>,
    /// What no schedule may show: two of ours at once, a token that does not grow, an elector that fails.
    pub violations: RefCell<Vec<String>>,
    /// When others led at once, and who. What theirs do to one another is theirs, unless `strict`.
    pub overlaps: RefCell<Vec<(u64, Vec<String>)>>,
    /// For how long they did, as far as the steps tell.
    pub beside_ms: Cell<u64>,
    /// How often one of theirs has followed one of ours, and the other way round.
    pub followed: Cell<[u64; 2]>,
    last_is_ours: Cell<Option<bool>>,
    strict: bool,
}

/// Whoever can have authority, and whether it has.
struct Candidate {
    name: String,
    ours: bool,
    leads: Box<dyn Fn() -> bool>,
    end: AbortHandle,
}

/// Members of two makes over one store.
pub trait Group: Sized {
    /// One more of ours, and one of theirs where they are there.
    fn ours(world: &World<Self>) -> Member;
    fn theirs(world: &World<Self>) -> Option<Member>;

    /// After a schedule: what has to hold beside what is looked at all the time.
    fn ends(_world: &mut World<Self>) {}
}

/// A member of either make, as a schedule strikes it.
#[derive(Clone)]
pub struct Member {
    pub name: String,
    /// Ours have one.
    pub handle: Option<Handle>,
    /// How theirs are told to release, and to end.
    pub stops: Rc<Cell<bool>>,
    /// Until then nothing of it reaches the store.
    pub cut_until_ms: Rc<Cell<u64>>,
}

impl Member {
    pub fn ours(name: String, handle: Handle, cut_until_ms: Rc<Cell<u64>>) -> Self {
        Self { name, handle: Some(handle), stops: Rc::default(), cut_until_ms }
    }

    pub fn theirs(name: String, stops: Rc<Cell<bool>>, cut_until_ms: Rc<Cell<u64>>) -> Self {
        Self { name, handle: None, stops, cut_until_ms }
    }

    pub fn stop(&self) {
        match &self.handle {
            Some(handle) => handle.tell(Input::Stop { park: false }),
            None => self.stops.set(true),
        }
    }
}

/// A member of ours. Clones are the same one.
#[derive(Clone)]
pub struct Ours<W> {
    pub handle: Handle,
    /// Its way to the record.
    pub way: W,
    pub told: Told,
}

impl Observer {
    fn leaders(&self) -> Vec<(String, bool)> {
        let candidates = self.candidates.borrow();
        let leaders = candidates.iter().filter(|one| (one.leads)());
        leaders.map(|one| (one.name.clone(), one.ours)).collect()
    }

    /// Of two authorities that overlap, one begins second. Whether there are two that must not be.
    pub fn look(&self, now_ms: u64) -> bool {
        let leaders = self.leaders();
        let ours = leaders.iter().filter(|(_, ours)| *ours).count();
        if let [(_, is_ours)] = leaders[..]
            && self.last_is_ours.replace(Some(is_ours)).is_some_and(|last| last != is_ours)
        {
            let mut followed = self.followed.get();
            followed[usize::from(is_ours)] += 1;
            self.followed.set(followed);
        }
        if ours > 1 {
            self.violations.borrow_mut().push(format!("{now_ms}: {leaders:?} at once"));
        }
        let overlap = leaders.len() > 1 && (ours > 0 || self.strict);
        if overlap {
            let names = leaders.into_iter().map(|(name, _)| name).collect();
            self.overlaps.borrow_mut().push((now_ms, names));
        }
        overlap
    }

    pub fn hand_out(&self, term: u64, now_ms: u64) {
        let mut tokens = self.tokens.borrow_mut();
        if let Some(before) = tokens.last().filter(|before| **before >= term) {
            self.violations.borrow_mut().push(format!("{now_ms}: token {term} after {before}"));
        }
        tokens.push(term);
    }

    /// Everything that went wrong so far.
    pub fn broken(&self) -> Vec<String> {
        let overlaps = self.overlaps.borrow();
        let told = overlaps.iter().map(|(at_ms, names)| format!("{at_ms}: {names:?} at once"));
        self.violations.borrow().iter().cloned().chain(told).collect()
    }
}

impl<P> World<P> {
    /// One that is looked at every so many milliseconds.
    pub fn new(step_ms: u64, seed: u64, place: impl FnOnce(&Virtual, &Chances) -> P) -> Self {
        let machine = Machine::default();
        let (time, chance) = (machine.host.clone(), Rc::new(RefCell::new(Chance::new(seed))));
        Self {
            place: place(&time, &chance),
            time,
            observer: Rc::default(),
            each_step: Box::new(|| ()),
            seed,
            chance,
            step_ms,
            machine,
            made: Cell::default(),
        }
    }

    /// One in which two of theirs must not lead at once either.
    pub fn strict(step_ms: u64, seed: u64, place: impl FnOnce(&Virtual, &Chances) -> P) -> Self {
        let observer = Observer { strict: true, ..Observer::default() };
        Self { observer: Rc::new(observer), ..Self::new(step_ms, seed, place) }
    }

    pub fn now_ms(&self) -> u64 {
        self.time.now_ms.get()
    }

    /// The number of the next member, from 1 on.
    pub fn next_number(&self) -> u64 {
        self.made.set(self.made.get() + 1);
        self.made.get()
    }

    pub fn below(&self, bound: u64) -> u64 {
        self.chance.borrow_mut().below(bound)
    }

    pub fn pick<T: Copy>(&self, from: &[T]) -> T {
        self.chance.borrow_mut().pick(from)
    }

    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.machine.run(task);
    }

    /// Runs somebody who may lead, until [`World::kill`].
    pub fn admit(
        &self,
        name: &str,
        ours: bool,
        leads: impl Fn() -> bool + 'static,
        task: impl Future<Output = ()> + 'static,
    ) {
        let end = self.machine.run(task);
        let (name, leads) = (name.to_owned(), Box::new(leads));
        self.observer.candidates.borrow_mut().push(Candidate { name, ours, leads, end });
    }

    /// Runs an elector of ours.
    pub fn elect<W>(
        &self,
        name: &str,
        handle: Handle,
        store: impl Store + 'static,
        host: impl Host + Clone + 'static,
        way: W,
    ) -> Ours<W> {
        let ours = Ours { handle: handle.clone(), way, told: Told::default() };
        let (driven, place, mut note) = (handle.clone(), host.clone(), ours.told.note(&self.time));
        let (observer, time) = (Rc::clone(&self.observer), self.time.clone());
        let task = async move {
            run(&driven, &store, &place, |event| {
                match &event {
                    Event::Acquired { term } => {
                        observer.hand_out(*term, time.now_ms.get());
                        observer.look(time.now_ms.get());
                    }
                    Event::Lost { term, .. } => driven.tell(Input::WorkEnded { term: *term }),
                    Event::Failed(fault) => {
                        observer.violations.borrow_mut().push(fault.to_string())
                    }
                    _ => {}
                }
                note(event);
            })
            .await;
        };
        self.admit(name, true, move || handle.authority(host.now()).is_some(), task);
        ours
    }

    /// Ends its process: without one there is no leader, whatever it last believed.
    pub fn kill(&self, name: &str) {
        let mut candidates = self.observer.candidates.borrow_mut();
        candidates.extract_if(.., |one| one.name == name).for_each(|one| one.end.abort());
    }

    /// Looks at it no longer, and lets it go on.
    pub fn ignore(&self, name: &str) {
        self.observer.candidates.borrow_mut().retain(|one| one.name != name);
    }

    /// Who leads now.
    pub fn leaders(&self) -> Vec<String> {
        self.observer.leaders().into_iter().map(|(name, _)| name).collect()
    }

    /// Whether one of ours leads, or one of theirs; `None` without a leader.
    pub fn ours_leads(&self) -> Option<bool> {
        self.observer.leaders().first().map(|(_, ours)| *ours)
    }

    /// Lets time pass, and notes what goes wrong.
    pub fn run(&mut self, ms: u64) {
        let end_ms = self.now_ms() + ms;
        while self.now_ms() < end_ms {
            let step_ms = self.step_ms.min(end_ms - self.now_ms());
            (self.each_step)();
            self.machine.pass(step_ms);
            if self.observer.look(self.now_ms()) {
                self.observer.beside_ms.set(self.observer.beside_ms.get() + step_ms);
            }
        }
    }

    /// The same; of ours there is never more than one leader, and their tokens grow.
    pub fn watch(&mut self, ms: u64) {
        self.run(ms);
        let violations = self.observer.violations.borrow();
        assert!(violations.is_empty(), "seed {}: {violations:#?}", self.seed);
    }

    /// The same, and nobody leads beside one of ours.
    pub fn pass(&mut self, ms: u64) {
        self.run(ms);
        let broken = self.observer.broken();
        assert!(broken.is_empty(), "seed {}: {broken:#?}", self.seed);
    }

    /// The same until something holds; true if it did.
    pub fn pass_until(&mut self, ms: u64, holds: impl Fn(&Self) -> bool) -> bool {
        let end_ms = self.now_ms() + ms;
        while !holds(self) && self.now_ms() < end_ms {
            self.pass(self.step_ms.min(end_ms - self.now_ms()));
        }
        holds(self)
    }

    pub fn led_by(&mut self, name: &str, within_ms: u64) -> bool {
        self.pass_until(within_ms, |fleet| fleet.leaders() == [name])
    }
}

/// Plays so many seeds; panics with the first violation, or where the makes have not followed one another more than so
/// often.
pub fn played<P: Group>(
    seeds: u64,
    blows: u64,
    lease_ms: u64,
    often: u64,
    fleet: impl Fn(u64) -> World<P>,
) {
    let mut followed = [0, 0];
    for seed in 0..seeds {
        let mut fleet = fleet(seed);
        fleet.play(blows, lease_ms);
        assert_eq!(fleet.observer.broken(), [""; 0], "seed {seed}");
        let [theirs, ours] = fleet.observer.followed.get();
        followed = [followed[0] + theirs, followed[1] + ours];
    }
    println!("{followed:?} times one of theirs, of ours, has followed the other make");
    assert!(followed.iter().all(|times| *times > often), "{followed:?}");
}

impl<P: Group> World<P> {
    pub fn cut(&self, member: &Member, ms: u64) {
        member.cut_until_ms.set(self.now_ms() + ms);
    }

    /// So many blows, and then peace. What goes wrong is noted.
    pub fn play(&mut self, blows: u64, lease_ms: u64) {
        let mut members = Vec::new();
        for _ in 0..2 {
            members.push(P::ours(self));
            members.extend(P::theirs(self));
        }
        for _ in 0..blows {
            self.run(lease_ms + self.below(3 * lease_ms));
            self.strike(&mut members, lease_ms);
        }
        members.iter().for_each(|member| member.cut_until_ms.set(0));
        self.run(6 * lease_ms);
        P::ends(self);
    }

    /// Whether such a schedule shows what none may show.
    pub fn breaks(mut self, blows: u64, lease_ms: u64) -> bool {
        self.play(blows, lease_ms);
        !self.observer.broken().is_empty()
    }

    /// Something happens to whoever leads, or to anybody, while at times the others of its make hear nothing: it dies,
    /// resigns, stops or is cut off. For who is gone another one of its make comes.
    fn strike(&self, members: &mut Vec<Member>, lease_ms: u64) {
        let leader = self.leaders().pop();
        let leader = members.iter().position(|one| Some(&one.name) == leader.as_ref());
        let any = self.below(members.len() as u64) as usize;
        let at = leader.filter(|_| self.below(4) > 0).unwrap_or(any);
        let struck = members[at].clone();
        if self.below(3) > 0 {
            let alike = |one: &&Member| one.handle.is_some() == struck.handle.is_some();
            for other in members.iter().filter(alike) {
                self.cut(other, lease_ms + self.below(2 * lease_ms));
            }
            struck.cut_until_ms.set(0);
        }
        match (self.below(4), &struck.handle) {
            (0, _) => self.kill(&struck.name),
            (1, Some(handle)) => return handle.tell(Input::Resign),
            (2, _) => return self.cut(&struck, self.below(3 * lease_ms)),
            _ => struck.stop(),
        }
        members.swap_remove(at);
        match struck.handle {
            Some(_) => members.push(P::ours(self)),
            None => members.extend(P::theirs(self)),
        }
    }
}
