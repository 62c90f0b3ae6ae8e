//! Sessions of the real election and the real protocol of epochs against a bucket without `If-Match`, in virtual time:
//! what the network loses, delays and duplicates, who crashes, stalls and resigns is drawn from a seed.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use edgelect::clock::Now;
use edgelect::config::{Config, Follow, Settings};
use edgelect::election::{Election, Event as Told, Input, Step};
use edgelect::lease::Format;
use edgelect::request::{Request, Response};
use edgelect::store::epochs::Epochs;
use edgelect::store::{Answer, Condition, Fault, FaultKind, Operation};

use super::bucket::{BEGAN_MS, Bucket, add, error, lists};
use crate::sim::chance::Chance;
use crate::sim::oracle::Violation;
use crate::sim::port::{Conversation, Move};
use crate::sim::run::on_all_cores;
use crate::{bucket_with, credentials};

const FOLDER: &str = "leader/g";
/// The longest that anything travels, in leases.
const DELAY_LEASES: u64 = 3;

/// How far a `termFloor` lies ahead of storage time: longer than any schedule lasts.
const FLOOR_AHEAD_MS: u64 = 86_400_000;

/// Draws whatever the rate is, so that a rate of 0 shifts nothing.
fn befalls(chance: &mut Chance, rate: u64) -> bool {
    chance.below(1_000) < rate
}

struct Flight {
    operation: u64,
    awaited: u64,
    talk: Conversation,
}

struct Session {
    machine: usize,
    election: Election,
    epochs: Rc<Epochs>,
    flight: Option<Flight>,
    wakes: u64,
    alive: bool,
}

struct Machine {
    config: Config,
    /// How fast its clock runs, in millionths, and what it showed in the beginning.
    ppm: i64,
    origin_ms: u64,
    paused_until_ms: u64,
    /// Until then what it sends is held up or lost.
    cut_until_ms: u64,
}

impl Machine {
    fn mono_ms(&self, true_ms: u64) -> u64 {
        self.origin_ms + (true_ms as i64 + true_ms as i64 * self.ppm / 1_000_000) as u64
    }

    fn now(&self, true_ms: u64) -> Now {
        let mono_ms = self.mono_ms(true_ms);
        Now::new(mono_ms, BEGAN_MS + mono_ms)
    }

    /// The first true time at which its clock shows this.
    fn true_ms(&self, mono_ms: u64) -> u64 {
        let span = mono_ms.saturating_sub(self.origin_ms) as i128;
        (span * 1_000_000 / (1_000_000 + self.ppm as i128)) as u64 + 1
    }
}

enum Event {
    Arrive { from: usize, id: u64, request: Request, answered: bool },
    Deliver { to: usize, id: u64, response: Response },
    Timeout { session: usize, operation: u64 },
    Wake { session: usize, wakes: u64 },
    WorkEnds { session: usize, term: u64 },
    Start { machine: usize },
    Blow,
    FirstDies,
    Touch,
}

/// A member that knows `validity_ms` alone and renews by writing the same bytes.
struct Foreign {
    validity_ms: u64,
    until_ms: u64,
    leads_until_ms: u64,
}

/// How many of each there were, so that a run which tests nothing shows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub terms: u64,
    pub recreated: u64,
    pub cleaned: u64,
    pub duplicates: u64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.terms += other.terms;
        self.recreated += other.recreated;
        self.cleaned += other.cleaned;
        self.duplicates += other.duplicates;
    }
}

/// What a schedule is rich in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// A little of everything.
    Mixed,
    /// Leaders that are cut off for about a lease, under answers that are slow.
    Cut,
    /// Leaders that stop soon after they began, under claims that are slow.
    Rapid,
    /// Settings that change, under renewals that land once more.
    Settings,
}

pub struct World {
    now_ms: u64,
    chance: Chance,
    pub bucket: Bucket,
    machines: Vec<Machine>,
    sessions: Vec<Session>,
    /// By when they happen; those of one instant in any order.
    queue: BTreeMap<(u64, u64), Event>,
    ids: u64,
    lease_ms: u64,
    leases_ms: Vec<u64>,
    store_skew_ms: u64,
    heal_ms: u64,
    rates: [u64; 6],
    latency_ms: u64,
    highest: u64,
    /// Nobody waits for its turn. One seed in two.
    claims_early: bool,
    foreign: Option<Foreign>,
    pub tally: Tally,
    pub violation: Option<Violation>,
    pub lines: Vec<String>,
    keep: bool,
    last_led_ms: u64,
    mode: Mode,
    request_timeout_ms: u64,
    /// Ahead of storage time, so that terms are no times: a creation that was refused and the next have the same.
    term_floor: Option<u64>,
    /// What a cache between ours and the store keeps, if there is one: answers by their URLs.
    cache: Option<HashMap<String, (u64, Response)>>,
}

/// Runs so many seeds on all cores; `prepare` is called once in each thread.
///
/// # Errors
/// The first seed that breaks a rule.
pub fn play(first: u64, count: u64, prepare: impl Fn() + Sync) -> Result<Tally, (u64, Violation)> {
    type Part = (Tally, Vec<(u64, Violation)>);
    let each = |(sum, found): &mut Part, seed| {
        let world = run(seed, false);
        sum.add(world.tally);
        found.extend(world.violation.map(|broken| (seed, broken)));
        found.is_empty()
    };
    let merge = |whole: &mut Part, part: Part| {
        whole.0.add(part.0);
        whole.1.extend(part.1);
    };
    let (sum, found) = on_all_cores(first..first + count, prepare, each, merge);
    found.into_iter().min_by_key(|(seed, _)| *seed).map_or(Ok(sum), Err)
}

/// Runs one schedule; what it broke, if anything.
pub fn run(seed: u64, keep: bool) -> World {
    let mut world = World::draw(seed, keep);
    let end_ms = world.heal_ms + if world.harsh() { 5 } else { 14 } * world.lease_ms + 20_000;
    while world.violation.is_none() {
        let Some(((at_ms, _), event)) = world.queue.pop_first() else { break };
        if at_ms > end_ms {
            break;
        }
        world.now_ms = at_ms;
        world.happen(event);
        world.look();
    }
    if world.violation.is_none() && world.last_led_ms + 2 * world.lease_ms < end_ms {
        let last_ms = world.last_led_ms;
        let text = format!("nobody led from {last_ms} to {end_ms} ms");
        world.broke("I5 a leader after healing", text);
    }
    world.tally.cleaned = world.bucket.counts.get("delete").copied().unwrap_or(0);
    world
}

impl World {
    fn draw(seed: u64, keep: bool) -> Self {
        let mut chance = Chance::at(seed.wrapping_mul(0x2545_F491_4F6C_DD1D) ^ 0xEE0C);
        let modes = [Mode::Mixed, Mode::Cut, Mode::Rapid, Mode::Settings];
        let mode = chance.pick(&modes);
        let harsh = mode != Mode::Mixed;
        let (base_ms, leases_ms) = Self::leases(&mut chance, mode);
        let store_skew_ms = chance.pick(if harsh { &[50, 100, 500] } else { &[100, 500, 2_000] });
        let mut bucket = Bucket { undated: chance.one_in(3), ..Bucket::default() };
        bucket.front_end_ms = vec![0, chance.pick(&[0, store_skew_ms])];
        let mut rates = [0; 6];
        for rate in &mut rates {
            if chance.one_in(2) {
                *rate = chance.pick(&[10, 50, 150, 300]);
            }
        }
        let leases = if harsh { 3 + chance.below(4) } else { 20 + chance.below(40) };
        let heal_ms = base_ms * leases;
        let shortest_ms = leases_ms.iter().copied().min().unwrap_or(base_ms);
        let latency_ms = match harsh {
            true => chance.pick(&[1, 10]),
            false => chance.pick(&[1, 10, shortest_ms / 60]),
        };
        if latency_ms <= 10 && base_ms >= 3_000 && mode != Mode::Rapid {
            // Many pages on a slow way take longer than a request may.
            bucket.page = chance.pick(&[1_000, 2, 3]);
        }
        let mut world = Self {
            now_ms: 0,
            chance,
            bucket,
            machines: Vec::new(),
            sessions: Vec::new(),
            queue: BTreeMap::new(),
            ids: 0,
            lease_ms: base_ms,
            leases_ms,
            store_skew_ms,
            heal_ms,
            rates,
            latency_ms,
            claims_early: seed.is_multiple_of(2),
            highest: 0,
            foreign: None,
            tally: Tally::default(),
            violation: None,
            lines: Vec::new(),
            keep,
            last_led_ms: 0,
            mode,
            request_timeout_ms: 0,
            term_floor: seed.is_multiple_of(6).then_some(BEGAN_MS + FLOOR_AHEAD_MS),
            cache: (seed % 6 == 1).then(HashMap::new),
        };
        world.first_objects();
        world.admit_machines();
        world.at(base_ms, Event::Blow);
        world
    }

    fn admit_machines(&mut self) {
        let members = self.chance.pick(&[2, 2, 3, 4]);
        for member in 0..members {
            let config = self.config(member);
            // Rates r keep I1 while they differ by less than m / (2 - m) for a margin of m leases.
            let ppm = if self.harsh() { 0 } else { self.chance.pick(&[0, 47_000, -47_000]) };
            let origin_ms = self.chance.below(1_000_000);
            self.machines.push(Machine {
                config,
                ppm,
                origin_ms,
                paused_until_ms: 0,
                cut_until_ms: 0,
            });
            let start_ms = self.chance.below(2 * self.lease_ms);
            let together = self.term_floor.is_some();
            let start_ms = if together { start_ms % (self.latency_ms + 2) } else { start_ms };
            self.at(start_ms, Event::Start { machine: member as usize });
        }
        if self.term_floor.is_some() {
            self.at(self.lease_ms / 4, Event::FirstDies);
        }
    }

    /// The longest lease, and all that members may have.
    fn leases(chance: &mut Chance, mode: Mode) -> (u64, Vec<u64>) {
        let harsh = mode != Mode::Mixed;
        let base_ms = match harsh {
            true => chance.pick(&[10_000, 20_000]),
            false => chance.pick(&[1_000, 1_500, 2_000, 3_000, 6_000, 10_000]),
        };
        let leases_ms = match chance.one_in(3) {
            _ if mode == Mode::Settings => vec![base_ms, base_ms / 4, base_ms / 8],
            true => vec![base_ms, 1_000.max(base_ms / 2), 1_000.max(base_ms / 3)],
            false => vec![base_ms],
        };
        (base_ms, leases_ms)
    }

    fn first_objects(&mut self) {
        let key = |name: &str| format!("{FOLDER}/{name}");
        self.bucket.put(0, &key("lock_0000000009.json.tmp"), b"foreign");
        let validity_ms = self.lease_ms;
        let body = format!("{{\"validity_ms\":{validity_ms},\"expired\":false}}");
        let first = self.chance.below(6);
        match if self.term_floor.is_some() { 6 } else { first } {
            0 => self.bucket.put(0, &key("lock-0000000004.json"), b"{\"expired\":true}"),
            1 => self.bucket.put(0, &key("lock_0000000004.json"), b"not a record"),
            2 => {
                for number in 1..=5 {
                    self.bucket.put(0, &key(&format!("lock_{number:010}.json")), body.as_bytes());
                }
            }
            3 => {
                self.bucket.put(0, &key("lock-0000000007.json"), body.as_bytes());
                let until_ms = self.chance.below(self.heal_ms);
                let leads_until_ms = validity_ms * 9 / 10;
                self.foreign = Some(Foreign { validity_ms, until_ms, leads_until_ms });
                self.at(validity_ms / 3, Event::Touch);
            }
            _ => {}
        }
    }

    fn config(&mut self, member: u64) -> Config {
        let lease_ms = self.chance.pick(&self.leases_ms.clone());
        let follow = match self.harsh() && self.chance.below(4) > 0 {
            true => Follow::Tight,
            false => self.chance.pick(&[Follow::Tight, Follow::Balanced, Follow::Frugal]),
        };
        let frequent_ms = match self.mode {
            Mode::Mixed => (lease_ms / 3).max(100),
            Mode::Rapid => (lease_ms / 100).max(50),
            Mode::Cut | Mode::Settings => lease_ms / 25,
        };
        let (mut margin_ms, mut request_timeout_ms, mut retry_delays_ms) = (None, None, None);
        if self.harsh() {
            (margin_ms, retry_delays_ms) = (Some(lease_ms / 100), Some([10, 50]));
            let fits_ms = (lease_ms - lease_ms / 100 - frequent_ms - 60) / 4 - 10;
            request_timeout_ms = Some(fits_ms);
            self.request_timeout_ms = self.request_timeout_ms.max(fits_ms);
        }
        let settings = Settings {
            margin_ms,
            request_timeout_ms,
            retry_delays_ms,
            lockfile_path: Some(FOLDER.to_owned()),
            server_id: Some(format!("m{member}")),
            frequent_interval_ms: Some(frequent_ms),
            infrequent_interval_ms: Some(lease_ms),
            leader_timeout_ms: Some(lease_ms),
            follow: Some(follow),
            store_skew_ms: Some(self.store_skew_ms),
            max_lease_ms: Some(self.lease_ms),
            // Not the same for all, so that a claim may have the term of a creation that was refused.
            term_floor: self.term_floor.map(|floor| floor + member),
            ..Settings::default()
        };
        Config::new(&settings).expect("settings of the seeds' kind")
    }

    fn at(&mut self, at_ms: u64, event: Event) {
        let order = self.chance.next();
        self.queue.insert((at_ms.max(self.now_ms), order), event);
    }

    fn note(&mut self, text: impl FnOnce() -> String) {
        if self.keep {
            self.lines.push(format!("{:>8} {}", self.now_ms, text()));
        }
    }

    fn broke(&mut self, check: &'static str, text: String) {
        let at_ms = self.now_ms;
        self.violation.get_or_insert(Violation { at_ms, check, text });
    }

    fn harsh(&self) -> bool {
        self.mode != Mode::Mixed
    }

    fn healed(&self) -> bool {
        self.now_ms >= self.heal_ms
    }

    /// At most one has authority at this true instant; a stopped process counts by its clock all the same.
    fn look(&mut self) {
        let mut leaders = Vec::new();
        for (index, session) in self.sessions.iter().enumerate().filter(|(_, s)| s.alive) {
            let now = self.machines[session.machine].now(self.now_ms);
            if let Some(authority) = session.election.authority(now) {
                leaders.push(format!("s{index} in term {}", authority.term));
            }
        }
        if self.foreign.as_ref().is_some_and(|foreign| foreign.leads_until_ms > self.now_ms) {
            leaders.push("the foreign member".to_owned());
        }
        if !leaders.is_empty() {
            self.last_led_ms = self.now_ms;
        }
        if leaders.len() > 1 {
            self.broke("I1 one authority", leaders.join(" and "));
        }
    }

    fn happen(&mut self, event: Event) {
        if let Event::Deliver { to: session, .. }
        | Event::Timeout { session, .. }
        | Event::Wake { session, .. }
        | Event::WorkEnds { session, .. } = &event
        {
            let until_ms = self.machines[self.sessions[*session].machine].paused_until_ms;
            if until_ms > self.now_ms {
                return self.at(until_ms, event);
            }
        }
        match event {
            Event::Arrive { from, id, request, answered } => {
                self.on_arrive(from, id, &request, answered);
            }
            Event::Deliver { to: session, id, response } => {
                let flight = self.sessions[session].flight.as_ref();
                if flight.is_some_and(|flight| flight.awaited == id) {
                    self.go_on(session, Some(response));
                }
            }
            Event::Timeout { session, operation } => {
                let flight = self.sessions[session].flight.as_ref();
                if flight.is_some_and(|flight| flight.operation == operation) {
                    self.sessions[session].flight = None;
                    let cause = Fault::new(FaultKind::Timeout, "no answer in time");
                    self.ended(session, Answer::unknown(cause));
                }
            }
            Event::Wake { session, wakes } => {
                if self.sessions[session].wakes == wakes {
                    self.drive(session);
                }
            }
            Event::WorkEnds { session, term } => self.tell(session, Input::WorkEnded { term }),
            Event::Start { machine } => self.start(machine),
            Event::Blow => self.on_blow(),
            Event::FirstDies => self.on_first_dies(),
            Event::Touch => self.on_touch(),
        }
    }

    fn start(&mut self, machine: usize) {
        let index = self.sessions.len();
        let seed = self.chance.next();
        let config = self.machines[machine].config.clone();
        let mut election = Election::new(config, format!("s{index}"), seed);
        // Members that take turns hide what is wrong with the earliest claims.
        if self.claims_early {
            election.claim_first();
        }
        election.condition_covers_version(false);
        let epochs = Rc::new(Epochs::new(bucket_with(FOLDER)).expect("a plain bucket"));
        let (flight, wakes, alive) = (None, 0, true);
        self.sessions.push(Session { machine, election, epochs, flight, wakes, alive });
        self.note(|| format!("s{index} starts on m{machine}"));
        self.drive(index);
    }

    fn on_touch(&mut self) {
        let Some(foreign) = &mut self.foreign else { return };
        if self.now_ms > foreign.until_ms {
            return;
        }
        let validity_ms = foreign.validity_ms;
        // It looks first, as its rules say, and is gone once somebody has succeeded it.
        if self.now_ms >= foreign.leads_until_ms {
            return;
        }
        foreign.leads_until_ms = self.now_ms + validity_ms * 9 / 10;
        let body = format!("{{\"validity_ms\":{validity_ms},\"expired\":false}}");
        let key = format!("{FOLDER}/lock-0000000007.json");
        self.bucket.put(self.now_ms, &key, body.as_bytes());
        self.note(|| "the foreign member renews".to_owned());
        self.at(self.now_ms + validity_ms / 3, Event::Touch);
    }

    fn on_blow(&mut self) {
        if self.healed() {
            return;
        }
        let pause_ms = match self.mode {
            Mode::Mixed => 3 * self.lease_ms,
            Mode::Cut => 2 * self.lease_ms,
            Mode::Rapid => self.lease_ms / 20,
            Mode::Settings => self.lease_ms / 2,
        };
        let next_ms = self.now_ms + self.chance.below(pause_ms) + 1;
        self.at(next_ms, Event::Blow);
        let alive: Vec<usize> =
            (0..self.sessions.len()).filter(|s| self.sessions[*s].alive).collect();
        if alive.is_empty() {
            return;
        }
        let leads = |session: &&usize| {
            let session = &self.sessions[**session];
            session.election.authority(self.machines[session.machine].now(self.now_ms)).is_some()
        };
        let leader = alive.iter().find(leads).copied();
        let session = self.chance.pick(&alive);
        let to_leader = self.harsh() && self.chance.below(8) > 0;
        let session = leader.filter(|_| to_leader).unwrap_or(session);
        let machine = self.sessions[session].machine;
        let usual = self.chance.one_in(4);
        let what = match self.mode {
            Mode::Cut if !usual => 6,
            Mode::Rapid if !usual => 7,
            Mode::Settings if !usual => self.chance.pick(&[4, 6]),
            _ => self.chance.below(6),
        };
        match what {
            6 => self.cut(machine),
            7 => self.tell(session, Input::Stop { park: false }),
            0 => self.crash(session),
            1 => {
                let until_ms = self.now_ms + self.chance.below(3 * self.lease_ms);
                self.note(|| format!("m{machine} stalls until {until_ms}"));
                self.machines[machine].paused_until_ms = until_ms;
            }
            2 => self.tell(session, Input::Resign),
            3 => {
                let park = self.chance.one_in(2);
                self.tell(session, Input::Stop { park });
            }
            4 => {
                let config = self.config(machine as u64);
                self.machines[machine].config = config.clone();
                self.tell(session, Input::Configure(Box::new(config)));
            }
            _ => {
                // A claim of long ago lands: the number may have been cleaned.
                let number = self.newest().saturating_sub(self.chance.below(6));
                let key = format!("{FOLDER}/lock_{number:010}.json");
                if number > 0 && number < self.newest() && !self.bucket.objects.contains_key(&key) {
                    self.tally.recreated += 1;
                    self.bucket.put(self.now_ms, &key, b"{\"expired\":true}");
                }
            }
        }
    }

    fn crash(&mut self, session: usize) {
        self.note(|| format!("s{session} crashes"));
        self.sessions[session].alive = false;
        self.sessions[session].flight = None;
        let back_ms = self.now_ms + self.chance.below(2 * self.lease_ms);
        self.at(back_ms, Event::Start { machine: self.sessions[session].machine });
    }

    /// Who has created the first epoch dies in its grace, and leaves it to those whose creations were refused.
    fn on_first_dies(&mut self) {
        let Some(object) = self.bucket.objects.get(&format!("{FOLDER}/lock_0000000001.json"))
        else {
            return;
        };
        let body = String::from_utf8_lossy(&object.bytes).into_owned();
        let named = |index: &usize| body.contains(&format!("\"session\":\"s{index}\""));
        let creator = (0..self.sessions.len()).filter(|index| self.sessions[*index].alive);
        if let Some(session) = creator.into_iter().find(named) {
            self.crash(session);
        }
    }

    /// Cuts a machine off, mostly for about as long as a lease lasts.
    fn cut(&mut self, machine: usize) {
        let lease_ms = self.machines[machine].config.leader_timeout_ms;
        let span_ms = match self.chance.below(3) {
            0 => self.chance.below(2 * lease_ms),
            _ => lease_ms - self.chance.below(lease_ms / 4),
        };
        let until_ms = self.now_ms + span_ms;
        self.note(|| format!("m{machine} is cut off until {until_ms}"));
        self.machines[machine].cut_until_ms = until_ms;
    }

    fn newest(&self) -> u64 {
        let number = |key: &String| key.get(FOLDER.len() + 6..FOLDER.len() + 16)?.parse().ok();
        let keys = self.bucket.objects.keys().filter(|key| key.ends_with(".json"));
        keys.filter_map(number).max().unwrap_or(0)
    }

    fn tell(&mut self, session: usize, input: Input) {
        if !self.sessions[session].alive {
            return;
        }
        self.note(|| format!("s{session} is told {input:?}"));
        let now = self.machines[self.sessions[session].machine].now(self.now_ms);
        self.sessions[session].election.handle(now, input);
        self.drive(session);
    }

    fn ended(&mut self, session: usize, answer: Answer) {
        self.note(|| format!("s{session} <- {:?} {:?}", answer.outcome, answer.facts));
        let now = self.machines[self.sessions[session].machine].now(self.now_ms);
        self.sessions[session].election.handle(now, Input::Answer(answer));
        self.drive(session);
    }

    /// The driver's loop: polls and carries out until the election waits.
    fn drive(&mut self, session: usize) {
        if !self.sessions[session].alive {
            return;
        }
        let machine = self.sessions[session].machine;
        loop {
            self.drain(session);
            let now = self.machines[machine].now(self.now_ms);
            let step = self.sessions[session].election.poll(now);
            self.drain(session);
            let (operation, timeout_ms) = match step {
                Step::Finished => {
                    self.sessions[session].alive = false;
                    self.sessions[session].flight = None;
                    let longest_ms = if self.harsh() { 200 } else { self.lease_ms };
                    let back_ms = self.now_ms + self.chance.below(longest_ms);
                    return self.at(back_ms, Event::Start { machine });
                }
                Step::Wait { until_ms } => {
                    let at_ms = self.machines[machine].true_ms(until_ms);
                    self.sessions[session].wakes += 1;
                    let wakes = self.sessions[session].wakes;
                    return self.at(at_ms.max(self.now_ms + 1), Event::Wake { session, wakes });
                }
                Step::Read { unless, timeout_ms } => (Operation::Read { unless }, timeout_ms),
                Step::Claim { lease, seen, timeout_ms } => {
                    (Operation::Write { record: lease.into(), condition: seen }, timeout_ms)
                }
                Step::Renew { lease, held, timeout_ms } => {
                    let condition = Condition::Match(held);
                    (Operation::Write { record: lease.into(), condition }, timeout_ms)
                }
                Step::AskPeer { .. } => unreachable!("peers are off"),
            };
            self.begin(session, operation, timeout_ms);
        }
    }

    fn begin(&mut self, session: usize, operation: Operation, timeout_ms: u64) {
        self.note(|| match &operation {
            Operation::Read { unless } => format!("s{session} -> read unless {unless:?}"),
            Operation::Write { record, condition } => {
                let body = record.body(Format::Native);
                format!("s{session} -> {} on {condition:?}", String::from_utf8_lossy(&body))
            }
            Operation::Delete => format!("s{session} -> delete"),
        });
        let epochs = self.sessions[session].epochs.clone();
        let talk = Conversation::begin(epochs, credentials(), operation);
        self.ids += 1;
        let operation = self.ids;
        let machine = &self.machines[self.sessions[session].machine];
        let due_ms = machine.true_ms(machine.mono_ms(self.now_ms) + timeout_ms);
        self.at(due_ms, Event::Timeout { session, operation });
        self.sessions[session].flight = Some(Flight { operation, awaited: 0, talk });
        self.go_on(session, None);
    }

    fn go_on(&mut self, session: usize, answer: Option<Response>) {
        let now = self.machines[self.sessions[session].machine].now(self.now_ms);
        self.ids += 1;
        let id = self.ids;
        let Some(flight) = &mut self.sessions[session].flight else { return };
        match flight.talk.go_on(now, answer.map(Ok)) {
            Move::Ends(answer) => {
                self.sessions[session].flight = None;
                self.ended(session, *answer);
            }
            Move::Sends(request) => {
                flight.awaited = id;
                self.send(session, id, *request);
            }
        }
    }

    fn send(&mut self, from: usize, id: u64, request: Request) {
        let (trouble, longest_ms) = (!self.healed(), DELAY_LEASES * self.lease_ms);
        let befalls =
            |index: usize, chance: &mut Chance| trouble && befalls(chance, self.rates[index]);
        let chance = &mut self.chance;
        let (mut lost, delayed) = (befalls(0, chance), befalls(1, chance));
        let duplicated = befalls(2, chance) && request.method() == "PUT";
        let mut travel_ms = chance.below(self.latency_ms + 1);
        if delayed {
            travel_ms += match chance.one_in(2) {
                true => chance.below(longest_ms),
                false => chance.below(self.lease_ms / 3),
            };
        }
        let creates = request.headers().contains_key("if-none-match");
        let slow = match self.mode {
            Mode::Rapid => creates && chance.one_in(4),
            Mode::Cut | Mode::Settings => chance.one_in(16),
            Mode::Mixed => false,
        };
        if slow && trouble {
            travel_ms += chance.below(self.request_timeout_ms);
        }
        if creates && trouble && self.term_floor.is_some() && chance.one_in(2) {
            travel_ms += chance.below(self.lease_ms / 20);
        }
        let cut_until_ms = self.machines[self.sessions[from].machine].cut_until_ms;
        if cut_until_ms > self.now_ms {
            lost |= chance.one_in(4);
            travel_ms += cut_until_ms - self.now_ms;
        }
        if duplicated {
            self.tally.duplicates += 1;
            let after_ms = match chance.one_in(3) {
                true => chance.below(700),
                false => chance.below(longest_ms),
            };
            let at_ms = self.now_ms + travel_ms + after_ms;
            let request = request.clone();
            self.at(at_ms, Event::Arrive { from, id, request, answered: false });
        }
        if !lost {
            let at_ms = self.now_ms + travel_ms;
            self.at(at_ms, Event::Arrive { from, id, request, answered: true });
        }
    }

    fn on_arrive(&mut self, from: usize, id: u64, request: &Request, answered: bool) {
        let trouble = !self.healed();
        let chance = &mut self.chance;
        let front_end = chance.below(2) as usize;
        let refused = trouble && answered && befalls(chance, self.rates[5] / 3);
        let mut response = match refused {
            true => error(503, "SlowDown"),
            false => self.bucket.perform(self.now_ms, front_end, request),
        };
        self.note(|| {
            let body = String::from_utf8_lossy(&response.body().bytes).replace("</Contents>", "\n");
            let body = body.replace("<Contents><Key>leader/g/", "").replace("<LastModified>", " ");
            let url = request.uri().to_string();
            let url = url.strip_prefix("https://s3.example.com").unwrap_or_default();
            format!("s{from} {} {url} = {} {body}", request.method(), response.status())
        });
        if trouble && answered {
            self.pass_cache(request, &mut response);
        }
        if !answered || (trouble && befalls(&mut self.chance, self.rates[3])) {
            return;
        }
        let mut travel_ms = self.chance.below(self.latency_ms + 1);
        let slow = match self.mode {
            Mode::Cut => request.method() == "GET" && self.chance.one_in(3),
            Mode::Settings => self.chance.one_in(16),
            Mode::Mixed | Mode::Rapid => false,
        };
        if slow && trouble {
            // Slow after it was carried out; of the two ends of that the `Date` may be either.
            let slow_ms = self.chance.below(self.request_timeout_ms);
            travel_ms += slow_ms;
            if self.chance.one_in(2) {
                self.bucket.dated_later(&mut response, slow_ms);
            }
        }
        if trouble && befalls(&mut self.chance, self.rates[4]) {
            travel_ms += self.chance.below(2 * self.lease_ms);
        }
        let at_ms = self.now_ms + travel_ms;
        self.at(at_ms, Event::Deliver { to: from, id, response });
    }

    /// What a cache answers to a read: some of them with what it has kept. Of a listing it says so; of a body not always,
    /// but then the listing came from the store.
    fn pass_cache(&mut self, request: &Request, response: &mut Response) {
        let Some(cache) = &mut self.cache else { return };
        if request.method() != "GET" || response.status() != 200 {
            return;
        }
        let (now_ms, lists) = (self.now_ms, lists(request));
        let kept =
            cache.entry(request.uri().to_string()).or_insert_with(|| (now_ms, response.clone()));
        if kept.0 + 3 * self.lease_ms < now_ms {
            *kept = (now_ms, response.clone());
        }
        if self.chance.one_in(2) {
            *response = kept.1.clone();
            let says = lists || self.chance.one_in(2);
            let age_s = (now_ms - kept.0) / 1_000;
            if says {
                add(response, "age", &age_s.to_string());
            }
        }
    }

    fn drain(&mut self, session: usize) {
        while let Some(told) = self.sessions[session].election.next_event() {
            self.note(|| format!("s{session} says {told:?}"));
            match told {
                Told::Acquired { term } => {
                    self.tally.terms += 1;
                    if term <= self.highest {
                        let highest = self.highest;
                        let text = format!("s{session} has token {term} after {highest}");
                        self.broke("I2 tokens grow", text);
                    }
                    self.highest = self.highest.max(term);
                }
                Told::Lost { term, .. } => {
                    let at_ms = self.now_ms + self.chance.below(50);
                    self.at(at_ms, Event::WorkEnds { session, term });
                }
                Told::Failed(fault) => {
                    self.broke("no failure", format!("s{session}: {fault}"));
                }
                _ => {}
            }
        }
    }
}
