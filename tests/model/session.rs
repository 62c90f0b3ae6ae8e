//! One session: the election itself, and what its driver keeps beside it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use edgelect::clock::Now;
use edgelect::election::{Election, Event, Input, LostReason, Step};
use edgelect::lease::Lease;
use edgelect::store::{Answer, Condition};

use super::bounds::Bounds;
use super::rules::{Author, Rule, Witness};
use super::store::{Request, Write};

/// Where all jitter comes from.
const SEED: u64 = 7;

/// An election that many states share. The lock is there only because its reading of the authority may raise
/// a flag; nothing here asks a shared one for that.
#[derive(Clone, Debug)]
pub struct Member {
    election: Arc<Mutex<Election>>,
    hash: u64,
}

impl Member {
    fn new(mut election: Election) -> Self {
        election.reseed(SEED);
        // Records tell no past here (`Write::new`), and what a session has added to one decides nothing.
        election.forget_history();
        let mut hasher = DefaultHasher::new();
        election.hash(&mut hasher);
        Self { election: Arc::new(Mutex::new(election)), hash: hasher.finish() }
    }

    fn election(&self) -> Election {
        self.election.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Hash for Member {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u64(self.hash);
    }
}

impl PartialEq for Member {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.election, &other.election)
            || (self.hash == other.hash && self.election() == other.election())
    }
}

impl Eq for Member {}

/// The one request that a session waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Flight {
    pub request: Request,
    /// The reading of the session's clock at which it counts as unanswered, in milliseconds.
    pub cut_ms: u64,
    /// What the store said, once the request has arrived.
    pub answer: Option<Arc<Answer>>,
    /// The request or its answer was lost.
    pub lost: bool,
}

/// A place in which one session lives after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    pub member: Option<Member>,
    /// How many sessions have lived here.
    pub lives: u8,
    /// The tick at which the session wants to be called again.
    pub wake: u64,
    pub flight: Option<Flight>,
    /// The term that was given up and whose work goes on.
    pub work: Option<u64>,
    /// The term for which the session has authority at this tick.
    pub authority: Option<u64>,
    /// The highest term for which it has had authority and has none.
    lapsed: u64,
    sequence: u64,
}

impl Place {
    /// A new session, which begins at once.
    pub fn start(&mut self, bounds: &Bounds, index: usize, tick: u64, witness: &mut Witness) {
        *self = Self { lives: self.lives + 1, ..Self::default() };
        let name = format!("{}{}", bounds.configs[index].server_id, self.lives);
        let mut election = Election::new(bounds.configs[index].clone(), name, SEED);
        election.claim_first();
        self.member = Some(Member::new(election));
        self.tell(bounds, index, tick, None, witness);
    }

    /// Tells the session what happened, as the driver does: `handle`, then `poll` until it waits.
    pub fn tell(
        &mut self,
        bounds: &Bounds,
        index: usize,
        tick: u64,
        input: Option<(Now, Input)>,
        witness: &mut Witness,
    ) {
        const TURNS: usize = 3;
        let Some(member) = &self.member else { return };
        let now = bounds.now(index, tick);
        let mut election = member.election();
        if let Some((at, input)) = input {
            election.handle(at, input);
            self.drain(&mut election, now, witness);
        }
        for _ in 0..TURNS {
            let step = election.poll(now);
            self.drain(&mut election, now, witness);
            match step {
                Step::Wait { until_ms } => {
                    self.wake = bounds.tick_of(index, until_ms);
                    self.look(&election, now, witness);
                    self.member = Some(Member::new(election));
                    return;
                }
                Step::Finished => {
                    self.look(&election, now, witness);
                    return self.end();
                }
                Step::Read { unless, timeout_ms } => {
                    self.send(now, Request::Read { unless }, timeout_ms);
                }
                Step::Claim { lease, seen, timeout_ms } => {
                    let write = self.write(index, *lease, seen, witness);
                    self.send(now, write, timeout_ms);
                }
                Step::Renew { lease, held, timeout_ms } => {
                    let write = self.write(index, *lease, Condition::Match(held), witness);
                    self.send(now, write, timeout_ms);
                }
                Step::AskPeer { .. } => unreachable!("peers are off"),
            }
        }
        witness.hold(Rule::Waits, false);
    }

    /// Looks at the authority without leaving a trace in the election: nobody else need have looked.
    pub fn watch(&mut self, now: Now, witness: &mut Witness) {
        if let Some(member) = &self.member {
            let election = member.election();
            self.look(&election, now, witness);
        }
    }

    fn look(&mut self, election: &Election, now: Now, witness: &mut Witness) {
        let authority = election.clone().authority(now).map(|authority| authority.term);
        if let Some(before) = self.authority.filter(|_| authority != self.authority) {
            self.lapsed = self.lapsed.max(before);
        }
        witness.hold(Rule::TermsEnd, authority.is_none_or(|term| term > self.lapsed));
        self.authority = authority;
    }

    /// The session is gone, and nothing of it is left but what is under way.
    pub fn end(&mut self) {
        *self = Self { lives: self.lives, ..Self::default() };
    }

    fn drain(&mut self, election: &mut Election, now: Now, witness: &mut Witness) {
        while let Some(event) = election.next_event() {
            match event {
                Event::Acquired { term } => witness.acquired(term),
                Event::Lost { term, reason: LostReason::Resigned | LostReason::Stopped } => {
                    self.work = Some(term);
                }
                // Work that stops at once: when it does is a question of giving up alone.
                Event::Lost { term, .. } => election.handle(now, Input::WorkEnded { term }),
                Event::GivenUp => {
                    if let Some(term) = self.work.take() {
                        election.handle(now, Input::WorkEnded { term });
                    }
                }
                _ => {}
            }
        }
    }

    fn write(
        &mut self,
        index: usize,
        lease: Lease,
        condition: Condition,
        witness: &mut Witness,
    ) -> Request {
        witness.hold(Rule::NewBodies, lease.sequence > self.sequence);
        self.sequence = lease.sequence;
        let author: Author = (index, self.lives);
        Request::Write(Write::new(author, condition, lease))
    }

    fn send(&mut self, now: Now, request: Request, timeout_ms: u64) {
        let cut_ms = now.mono_ms + timeout_ms;
        self.flight = Some(Flight { request, cut_ms, answer: None, lost: false });
    }
}
