//! The members, their requests on the way, and the causes of failovers.

use edgelect::clock::Now;
use edgelect::election::{Election, Event as Told, Input, PeerAnswer, Step};
use edgelect::peer;
use edgelect::store::{Answer, Condition, Operation, Outcome, Version};

use super::chance::Chance;
use super::count::{Cause, Failover, Requests};
use super::store::{EPOCH_MS, Object};
use super::timeline::{Event, Timeline, What};
use super::{INTERVAL_MS, LEASE_MS, PEER_MS, Setup, member_at};

/// Nobody leads for longer than this in a fleet whose store works.
const LONGEST_FAILOVER_MS: u64 = 600_000;

struct Member {
    election: Election,
    /// By how much its monotonic clock is ahead of the true time, in milliseconds.
    ahead_ms: u64,
    alive: bool,
    wake: u32,
    request: u32,
    under_way: UnderWay,
}

/// A member's request, of which there is one at a time.
enum UnderWay {
    Nothing,
    ToStore(Operation),
    ToPeer { member: Option<usize>, timeout_ms: u64 },
    Back(Input),
}

pub struct Fleet {
    setup: Setup,
    chance: Chance,
    now_ms: u64,
    timeline: Timeline,
    members: Vec<Member>,
    object: Object,
    requests: Requests,
    /// Who acquired the leadership last, and when.
    leader: Option<(usize, u64)>,
    /// What the leader has answered under this version.
    told: Option<(usize, Version, PeerAnswer)>,
}

impl Fleet {
    /// A new group, whose members start within one interval of each other.
    pub fn new(setup: Setup) -> Self {
        let mut fleet = Self {
            setup,
            chance: Chance::new(setup.seed),
            now_ms: 1_000,
            timeline: Timeline::default(),
            members: Vec::with_capacity(setup.followers + 1),
            object: Object::new(setup.limited),
            requests: Requests::default(),
            leader: None,
            told: None,
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
        let before = self.requests;
        self.run(minutes * 60_000);
        let made = self.requests - before;
        assert_eq!(made.claims, 0, "a stable group has no claims");
        made
    }

    /// Takes the leadership from the leader and runs until the group is settled again.
    pub fn fail(&mut self, cause: Cause) -> Failover {
        let pause_ms = self.chance.below(INTERVAL_MS);
        self.run(pause_ms);
        let leader = self.leading().expect("a settled group has a leader");
        let (began_ms, before) = (self.now_ms, self.requests);
        let throttled = self.object.answered.throttled;
        self.leader = None;
        match cause {
            Cause::Crash => self.members[leader].alive = false,
            Cause::Resign => self.tell(leader, Input::Resign),
            Cause::Delete => self.object.delete(),
        }
        while self.leader.is_none() {
            assert!(self.now_ms - began_ms < LONGEST_FAILOVER_MS, "nobody took over");
            self.run(20);
        }
        let (_, acquired_ms) = self.leader.expect("somebody leads");
        let gets = (self.requests - before).gets();
        self.run(LEASE_MS);
        let claims = (self.requests - before).claims;
        if cause == Cause::Crash {
            self.add_member(INTERVAL_MS);
        }
        self.run(2 * LEASE_MS);
        let throttled = self.object.answered.throttled - throttled;
        Failover { took_ms: acquired_ms - began_ms, claims, throttled, gets }
    }

    fn run(&mut self, ms: u64) {
        let until_ms = self.now_ms + ms;
        while let Some((at_ms, list)) = self.timeline.next(until_ms) {
            self.now_ms = at_ms;
            for event in &list {
                self.happen(*event);
            }
            self.timeline.give_back(list);
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
        self.members.push(Member {
            election,
            ahead_ms: self.chance.below(1 << 40),
            alive: true,
            wake: 0,
            request: 0,
            under_way: UnderWay::Nothing,
        });
        let at_ms = self.now_ms + 1 + self.chance.below(within_ms);
        self.plan(at_ms, What::Start, number, 0);
    }

    fn plan(&mut self, at_ms: u64, what: What, member: usize, number: u32) {
        let member = u32::try_from(member).expect("a fleet has fewer members");
        self.timeline.plan(at_ms, Event { what, member, number });
    }

    fn reading(&self, member: usize) -> Now {
        Now::new(self.now_ms + self.members[member].ahead_ms, EPOCH_MS + self.now_ms)
    }

    fn happen(&mut self, event: Event) {
        let member = event.member as usize;
        let of = &mut self.members[member];
        if !of.alive {
            return;
        }
        match event.what {
            What::Start => self.turn(member),
            What::Wake if event.number == of.wake => self.turn(member),
            What::Arrive if event.number == of.request => self.arrive(member),
            What::Answer if event.number == of.request => {
                let UnderWay::Back(input) = std::mem::replace(&mut of.under_way, UnderWay::Nothing)
                else {
                    unreachable!("what comes back has arrived before")
                };
                self.tell(member, input);
            }
            What::Wake | What::Arrive | What::Answer => {}
        }
    }

    fn tell(&mut self, member: usize, input: Input) {
        let now = self.reading(member);
        self.members[member].election.handle(now, input);
        self.turn(member);
    }

    /// Drives a member as the driver does, until it waits.
    fn turn(&mut self, member: usize) {
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
                Step::AskPeer { addr, timeout_ms } => {
                    self.requests.questions += 1;
                    (UnderWay::ToPeer { member: member_at(&addr), timeout_ms }, PEER_MS)
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
                if is_read {
                    self.count_read(&answer);
                }
                (Input::Answer(answer), self.way_ms(self.setup.store_ms))
            }
            UnderWay::ToPeer { member: asked, timeout_ms } => match self.ask(asked) {
                Some(answer) => (Input::Peer(answer), self.way_ms(PEER_MS)),
                // No machine answers at this address.
                None => (Input::Peer(PeerAnswer::Silent), timeout_ms),
            },
            UnderWay::Nothing | UnderWay::Back(_) => unreachable!("a request arrives once"),
        };
        self.members[member].under_way = UnderWay::Back(input);
        self.plan(self.now_ms + back_ms, What::Answer, member, number);
    }

    fn count_read(&mut self, answer: &Answer) {
        match answer.outcome {
            Outcome::Unchanged => self.requests.unchanged += 1,
            _ => self.requests.reads += 1,
        }
    }

    /// What a member answers to a question, as the follower's code understands it; `None` where nobody answers.
    fn ask(&mut self, asked: Option<usize>) -> Option<PeerAnswer> {
        let asked = asked.filter(|asked| self.members[*asked].alive)?;
        let now = self.reading(asked);
        let election = &self.members[asked].election;
        let version = election.authority(now).and(election.record()).map(|(version, _)| version);
        match (&self.told, version) {
            // Equal questions at a leader of one version have equal answers, but for what is left of the lease.
            (Some((of, at, answer)), Some(version)) if *of == asked && at == version => {
                Some(answer.clone())
            }
            (_, version) => {
                let answer = peer::answer(election, now);
                let group = &election.config().lockfile_path;
                let judged = peer::judge(answer.status, answer.body.as_bytes(), group);
                self.told = version.map(|version| (asked, version.clone(), judged.clone()));
                Some(judged)
            }
        }
    }
}

fn write(record: edgelect::store::Record, condition: Condition) -> UnderWay {
    UnderWay::ToStore(Operation::Write { record, condition })
}
