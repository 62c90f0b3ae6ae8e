//! The members, their requests on the way, and the causes of failovers.

use std::collections::BTreeMap;

use edgelect::clock::Now;
use edgelect::election::{Election, Event as Told, Input, PeerAnswer, Step};
use edgelect::peer::{Desk, HealthAnswer, Heard, Question, Reply, judge};
use edgelect::store::{Condition, Operation, Outcome};

use super::count::{Cause, Failover, Requests};
use super::store::{EPOCH_MS, Object, WRITE_EVERY_MS};
use super::{INTERVAL_MS, LEASE_MS, PEER_MS, Setup, member_at};
use crate::sim::chance::Chance;

/// Nobody leads for longer than this in a fleet whose store works.
const LONGEST_FAILOVER_MS: u64 = 600_000;

/// What happens to a member.
enum What {
    /// Its time to act comes.
    Wake,
    /// Its request reaches the store, or its question the peer.
    Arrive,
    /// The answer reaches it.
    Answer,
    /// Its question was held for long enough.
    Due,
    /// It begins.
    Start,
}

struct Event {
    what: What,
    member: usize,
    /// Which of the member's wakes or requests this belongs to; what is older than its newest is over.
    number: u32,
}

struct Member {
    election: Election,
    /// By how much its monotonic clock is ahead of the true time, in milliseconds.
    ahead_ms: u64,
    alive: bool,
    wake: u32,
    request: u32,
    under_way: UnderWay,
    desk: Desk,
    /// The members whose questions it holds, with the number of each question.
    holds: Vec<(usize, u32)>,
}

/// A member's request, of which there is one at a time.
enum UnderWay {
    Nothing,
    ToStore(Operation),
    ToPeer(Asked),
    Back(Input),
}

/// A question to a peer.
struct Asked {
    peer: Option<usize>,
    query: String,
    question: Question,
    /// When the asker gives up.
    until_ms: u64,
}

pub struct Fleet {
    setup: Setup,
    chance: Chance,
    now_ms: u64,
    /// What happens when, and in which order it was planned.
    queue: BTreeMap<(u64, u64), Event>,
    planned: u64,
    members: Vec<Member>,
    object: Object,
    /// Those since they were last set to nothing.
    requests: Requests,
    /// Who acquired the leadership last, and when.
    leader: Option<(usize, u64)>,
}

impl Fleet {
    /// A new group, whose members start within one interval of each other.
    pub fn new(setup: Setup) -> Self {
        let mut fleet = Self {
            setup,
            chance: Chance::new(setup.seed),
            now_ms: 1_000,
            queue: BTreeMap::new(),
            planned: 0,
            members: Vec::with_capacity(setup.followers + 1),
            object: Object::new(setup.limited),
            requests: Requests::default(),
            leader: None,
        };
        for _ in 0..=setup.followers {
            fleet.add_member(INTERVAL_MS);
        }
        fleet
    }

    /// Runs until one member leads and the others are in step with it.
    pub fn settle(&mut self) {
        let began_ms = self.now_ms;
        while self.leading().is_none() {
            assert!(self.now_ms - began_ms < LONGEST_FAILOVER_MS, "nobody has become the leader");
            self.run(1_000);
        }
        self.run(4 * LEASE_MS);
    }

    /// The requests of so many minutes of a stable group: those of all members, which are the leader's renewals and the
    /// followers' reads and questions.
    pub fn stable(&mut self, minutes: u64) -> Requests {
        self.requests = Requests::default();
        self.run(minutes * 60_000);
        assert_eq!(self.requests.claims, 0, "a stable group has no claims");
        self.requests
    }

    /// Takes the leadership from the leader and runs until the group is settled again.
    pub fn fail(&mut self, cause: Cause) -> Failover {
        let pause_ms = self.chance.below(INTERVAL_MS);
        self.run(pause_ms);
        let leader = self.leading().expect("a settled group has a leader");
        let (began_ms, throttled) = (self.now_ms, self.object.throttled);
        self.requests = Requests::default();
        self.leader = None;
        match cause {
            Cause::Crash => self.crash(leader),
            Cause::Resign => self.tell(leader, Input::Resign),
            Cause::Delete => self.object.delete(),
        }
        while self.leader.is_none() {
            assert!(self.now_ms - began_ms < LONGEST_FAILOVER_MS, "nobody took over");
            self.run(20);
        }
        let (next, acquired_ms) = self.leader.expect("somebody leads");
        let before = self.requests.renewals;
        self.run(LEASE_MS);
        let Requests { claims, renewals, .. } = self.requests;
        let leads_on = self.leading() == Some(next);
        if cause == Cause::Crash {
            self.add_member(INTERVAL_MS);
        }
        self.run(2 * LEASE_MS);
        let throttled = self.object.throttled - throttled;
        let (took_ms, renewals) = (acquired_ms - began_ms, renewals - before);
        Failover { took_ms, claims, renewals, leads_on, throttled }
    }

    fn run(&mut self, ms: u64) {
        let until_ms = self.now_ms + ms;
        while let Some(next) = self.queue.first_entry().filter(|next| next.key().0 <= until_ms) {
            let ((at_ms, _), event) = next.remove_entry();
            self.now_ms = at_ms;
            self.happen(event);
        }
        self.now_ms = until_ms;
    }

    /// The member that has authority.
    fn leading(&self) -> Option<usize> {
        let (leader, _) = self.leader?;
        let now = self.reading(leader);
        self.members[leader].election.authority(now).map(|_| leader)
    }

    fn add_member(&mut self, within_ms: u64) {
        let number = self.members.len();
        let session = format!("{:016x}{:016x}", self.chance.next(), self.chance.next());
        let mut election = Election::new(self.setup.config(number), session, self.chance.next());
        if self.setup.hasty {
            election.claim_first();
        }
        if self.setup.limited {
            election.writes_apart_ms(WRITE_EVERY_MS);
        }
        self.members.push(Member {
            election,
            ahead_ms: self.chance.below(1 << 40),
            alive: true,
            wake: 0,
            request: 0,
            under_way: UnderWay::Nothing,
            desk: Desk::default(),
            holds: Vec::new(),
        });
        let at_ms = self.now_ms + 1 + self.chance.below(within_ms);
        self.plan(at_ms, What::Start, number, 0);
    }

    fn plan(&mut self, at_ms: u64, what: What, member: usize, number: u32) {
        self.planned += 1;
        self.queue.insert((at_ms, self.planned), Event { what, member, number });
    }

    fn reading(&self, member: usize) -> Now {
        Now::new(self.now_ms + self.members[member].ahead_ms, EPOCH_MS + self.now_ms)
    }

    fn happen(&mut self, event: Event) {
        let member = event.member;
        let of = &self.members[member];
        if !of.alive {
            return;
        }
        match event.what {
            What::Start => self.turn(member),
            What::Wake if event.number == of.wake => self.turn(member),
            What::Arrive if event.number == of.request => self.arrive(member),
            What::Due if self.held(member, event.number).is_some() => self.end_hold(member),
            What::Answer if event.number == of.request => {
                let of = &mut self.members[member];
                let UnderWay::Back(input) = std::mem::replace(&mut of.under_way, UnderWay::Nothing)
                else {
                    unreachable!("what comes back has arrived before")
                };
                self.tell(member, input);
            }
            What::Wake | What::Arrive | What::Answer | What::Due => {}
        }
    }

    fn tell(&mut self, member: usize, input: Input) {
        let now = self.reading(member);
        self.members[member].election.handle(now, input);
        self.turn(member);
    }

    /// Drives a member until it waits, and answers the questions that it holds if there is something new to tell.
    fn turn(&mut self, member: usize) {
        self.drive(member);
        let now = self.reading(member);
        let of = &self.members[member];
        let over = |(asker, number): &&(usize, u32)| {
            let asked = self.held(*asker, *number);
            !asked.is_some_and(|asked| Desk::is_steady(&of.election, now, &asked.question))
        };
        let over: Vec<usize> = of.holds.iter().filter(over).map(|(asker, _)| *asker).collect();
        over.into_iter().for_each(|asker| self.end_hold(asker));
    }

    /// Drives a member as the driver does.
    fn drive(&mut self, member: usize) {
        let now = self.reading(member);
        loop {
            let step = self.members[member].election.poll(now);
            let mut again = false;
            while let Some(told) = self.members[member].election.next_event() {
                match told {
                    Told::Acquired { .. } => self.leader = Some((member, self.now_ms)),
                    // The work of a member stops at once.
                    Told::Lost { term, .. } => {
                        self.members[member].election.handle(now, Input::WorkEnded { term });
                        again = true;
                    }
                    _ => {}
                }
            }
            let (under_way, takes_ms) = match step {
                Step::Finished => return,
                Step::Wait { .. } if again => continue,
                Step::Wait { until_ms } => return self.wait(member, now, until_ms),
                Step::Read { unless, .. } => {
                    let leads = self.leader.is_some_and(|(leader, _)| leader == member);
                    self.requests.leader_gets += u64::from(leads);
                    (UnderWay::ToStore(Operation::Read { unless }), self.setup.store_ms)
                }
                Step::Claim { lease, seen, .. } => {
                    self.requests.claims += 1;
                    (write(lease.into(), seen), self.setup.store_ms)
                }
                Step::Renew { lease, held, .. } => {
                    self.requests.renewals += 1;
                    (write(lease.into(), Condition::Match(held)), self.setup.store_ms)
                }
                Step::AskPeer { addr, term, wait_ms, timeout_ms } => {
                    self.requests.questions += 1;
                    let asked = self.asked(member, &addr, (term, wait_ms), timeout_ms);
                    (UnderWay::ToPeer(asked), PEER_MS)
                }
            };
            self.send(member, under_way, takes_ms);
        }
    }

    fn wait(&mut self, member: usize, now: Now, until_ms: u64) {
        let of = &mut self.members[member];
        of.wake = of.wake.wrapping_add(1);
        let number = of.wake;
        // Whoever waits for an answer alone has nothing to wake for.
        if until_ms < u64::MAX {
            self.plan(self.now_ms + (until_ms - now.mono_ms), What::Wake, member, number);
        }
    }

    /// One way takes from half to one and a half of half the time.
    fn way_ms(&mut self, takes_ms: u64) -> u64 {
        self.chance.between(takes_ms / 4, takes_ms * 3 / 4).max(1)
    }

    fn send(&mut self, member: usize, under_way: UnderWay, takes_ms: u64) {
        let of = &mut self.members[member];
        of.request = of.request.wrapping_add(1);
        of.under_way = under_way;
        let number = of.request;
        let at_ms = self.now_ms + self.way_ms(takes_ms);
        self.plan(at_ms, What::Arrive, member, number);
    }

    fn arrive(&mut self, member: usize) {
        let number = self.members[member].request;
        let of = &mut self.members[member];
        let (input, back_ms) = match std::mem::replace(&mut of.under_way, UnderWay::Nothing) {
            UnderWay::ToStore(operation) => {
                let is_read = matches!(operation, Operation::Read { .. });
                let answer = self.object.perform(self.now_ms, operation);
                match answer.outcome {
                    Outcome::Unchanged if is_read => self.requests.unchanged += 1,
                    _ => self.requests.reads += u64::from(is_read),
                }
                (Input::Answer(answer), self.way_ms(self.setup.store_ms))
            }
            UnderWay::ToPeer(asked) => return self.ask(member, asked),
            UnderWay::Nothing | UnderWay::Back(_) => unreachable!("a request arrives once"),
        };
        self.members[member].under_way = UnderWay::Back(input);
        self.plan(self.now_ms + back_ms, What::Answer, member, number);
    }

    fn asked(
        &mut self,
        member: usize,
        addr: &str,
        (term, wait_ms): (Option<u64>, u64),
        timeout_ms: u64,
    ) -> Asked {
        let nonce = format!("{:016x}", self.chance.next());
        let config = self.members[member].election.config();
        let (group, relay) = (config.lockfile_path.clone(), config.server_addr.clone());
        let question = Question { group, nonce, term, wait_ms, relay, from: String::new() };
        let query = question.to_query(&config.peers.secrets);
        Asked { peer: member_at(addr), query, question, until_ms: self.now_ms + timeout_ms }
    }

    /// A question reaches its peer.
    fn ask(&mut self, asker: usize, asked: Asked) {
        let peer = asked.peer.filter(|peer| self.members[*peer].alive);
        // No machine answers at this address.
        let Some(peer) = peer else { return self.hear_nothing(asker, asked.until_ms) };
        let leads = self.leader.is_some_and(|(leader, _)| leader == peer);
        self.requests.leader_questions += u64::from(leads);
        let (now, chance) = (self.reading(peer), self.chance.next());
        let Member { election, desk, .. } = &mut self.members[peer];
        let (question, proven) = Question::read(&asked.query, &election.config().peers.secrets);
        match desk.ask(election, now, (&question, proven), chance) {
            Reply::Now(answer) => self.tell_asker(asker, &asked, &answer),
            Reply::Hold { for_ms } => {
                let number = self.members[asker].request;
                self.members[peer].holds.push((asker, number));
                self.members[asker].under_way = UnderWay::ToPeer(asked);
                self.plan(self.now_ms + for_ms, What::Due, asker, number);
            }
        }
    }

    /// The question that is held for this asker, if it still waits.
    fn held(&self, asker: usize, number: u32) -> Option<&Asked> {
        let of = &self.members[asker];
        match &of.under_way {
            UnderWay::ToPeer(asked) if of.alive && of.request == number => Some(asked),
            _ => None,
        }
    }

    /// A question that was held is answered.
    fn end_hold(&mut self, asker: usize) {
        let under_way = std::mem::replace(&mut self.members[asker].under_way, UnderWay::Nothing);
        let UnderWay::ToPeer(asked) = under_way else { unreachable!("it waits for its peer") };
        let peer = asked.peer.expect("somebody holds it");
        let now = self.reading(peer);
        let Member { election, desk, holds, .. } = &mut self.members[peer];
        holds.retain(|(held, _)| *held != asker);
        let (question, proven) = Question::read(&asked.query, &election.config().peers.secrets);
        let answer = desk.answer(election, now, (&question, proven));
        desk.leave();
        self.tell_asker(asker, &asked, &answer);
    }

    fn tell_asker(&mut self, asker: usize, asked: &Asked, answer: &HealthAnswer) {
        let heard = Heard {
            status: answer.status,
            proof: answer.proof.as_deref(),
            body: answer.body.as_bytes(),
        };
        let peers = &self.members[asker].election.config().peers;
        let input = Input::Peer(judge(&heard, &asked.question, peers));
        let at_ms = self.now_ms + self.way_ms(PEER_MS);
        self.come_back(asker, input, at_ms);
    }

    fn hear_nothing(&mut self, asker: usize, until_ms: u64) {
        self.come_back(asker, Input::Peer(PeerAnswer::Silent), until_ms.max(self.now_ms + 1));
    }

    fn come_back(&mut self, member: usize, input: Input, at_ms: u64) {
        let of = &mut self.members[member];
        of.under_way = UnderWay::Back(input);
        let number = of.request;
        self.plan(at_ms, What::Answer, member, number);
    }

    /// The machine of a member is gone, and with it the connections to it. It leads, so that it asks nobody.
    fn crash(&mut self, member: usize) {
        self.members[member].alive = false;
        for (asker, number) in std::mem::take(&mut self.members[member].holds) {
            if let Some(until_ms) = self.held(asker, number).map(|asked| asked.until_ms) {
                self.hear_nothing(asker, until_ms);
            }
        }
    }
}

fn write(record: edgelect::store::Record, condition: Condition) -> UnderWay {
    UnderWay::ToStore(Operation::Write { record, condition })
}
