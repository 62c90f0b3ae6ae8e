//! A world of members over one store, and schedules of what may happen to them.

#[allow(dead_code)] // Each suite uses a part of it.
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::pending;
use std::rc::Rc;

use edgelect::config::Follow;
use edgelect::request::{self, Request, Response};
use edgelect::store::memory::Memory;
use edgelect::store::{Answer, Facts, Fault, FaultKind, Operation, Outcome, Store};
use edgelect::{Config, Electors, Host, Limits, Settings, Shards, driver};
use futures::executor::block_on;
use futures::future::AbortHandle;

use crate::sim::chance::Chance;
use crate::virtual_time::{Machine, Virtual, undated};

/// The default lease.
pub const LEASE_MS: u64 = 15_000;

/// Within what time shares are even after the last event: two leases and ten intervals.
pub const SETTLED_MS: u64 = 80_000;

/// For how long at most nobody leads a shard whose work ended: its member leaves it alone for a lease and an interval, and looks
/// once in an interval.
pub const REST_MS: u64 = 30_000;

const ANSWER_MS: u64 = 15;
const LOOK_MS: u64 = 500;

/// A member's way to one object.
struct Way {
    memory: Memory,
    time: Virtual,
    cut: Rc<Cell<bool>>,
    how: How,
    /// Whether the store takes no write of this object.
    fails: Rc<Cell<Fails>>,
}

/// What becomes of the writes of an object.
#[derive(Clone, Copy, Debug, Default)]
pub enum Fails {
    #[default]
    No,
    Unknown,
    Denied,
    Refused,
}

impl Store for Way {
    async fn perform(&self, operation: Operation) -> Answer {
        self.time.sleep(ANSWER_MS).await;
        // Cut off, it gives no answer, and nothing happens.
        if self.cut.get() {
            return pending().await;
        }
        if matches!(operation, Operation::Write { .. }) {
            let fault = |kind| Fault::new(kind, "no writes");
            match self.fails.get() {
                Fails::No => {}
                Fails::Unknown => return Answer::unknown(fault(FaultKind::Unavailable)),
                Fails::Denied => return Answer::rejected(fault(FaultKind::Denied)),
                Fails::Refused => return undated(Outcome::Refused),
            }
        }
        let mut answer = self.memory.perform(operation).await;
        if self.how.undated {
            answer.facts = Facts::default();
        }
        self.time.sleep(ANSWER_MS).await;
        answer
    }

    fn condition_covers_version(&self) -> bool {
        true
    }

    fn writes_apart_ms(&self) -> u64 {
        self.how.writes_apart_ms
    }

    fn describe(&self) -> String {
        "the store".to_owned()
    }
}

struct One {
    shards: Rc<Shards<Virtual>>,
    electors: Rc<Electors<Virtual>>,
    end: AbortHandle,
    cut: Rc<Cell<bool>>,
    /// Neither crashed nor stopped.
    alive: Rc<Cell<bool>>,
}

/// Who answers the questions of peers at `member-N.example`.
type Street = Rc<RefCell<Vec<One>>>;

pub struct World {
    machine: Machine,
    place: Virtual,
    objects: Rc<BTreeMap<String, Memory>>,
    /// Of which objects the store takes no write.
    fails: Rc<BTreeMap<String, Rc<Cell<Fails>>>>,
    shards: usize,
    members: Street,
    /// How many terms have begun, by the shard.
    terms: Rc<RefCell<Vec<usize>>>,
    how: How,
    /// For how long nobody has led each shard, and how many terms there had been.
    unled_ms: Vec<(u64, usize)>,
}

/// What a world is like.
#[derive(Clone, Copy, Debug, Default)]
pub struct How {
    /// Whether followers ask their leaders before they ask the store.
    pub peers: bool,
    /// Whether nobody has called `init`.
    pub new: bool,
    /// How far apart the store takes two writes of one object.
    pub writes_apart_ms: u64,
    /// How followers watch.
    pub follow: Follow,
    /// Whether the store tells no times.
    pub undated: bool,
    /// How long the work takes at least, and less than twice as long; 0 if it never ends.
    pub work_ms: u64,
}

impl How {
    /// How old a member's view of a lease may be, in milliseconds.
    fn look_ms(&self) -> u64 {
        match self.follow {
            Follow::Tight => 5_000,
            Follow::Balanced => LEASE_MS,
            Follow::Frugal => 30_000,
        }
    }

    /// As [`SETTLED_MS`].
    pub fn settled_ms(&self) -> u64 {
        2 * LEASE_MS + 10 * self.look_ms()
    }
}

/// What a member on this street answers; nothing while it is gone or cut off.
async fn answer(street: Street, request: Request) -> Result<Response, String> {
    let name = request.uri().host().and_then(|host| host.strip_suffix(".example"));
    let number = name.and_then(|name| name.strip_prefix("member-")?.parse::<usize>().ok());
    let electors = {
        let street = street.borrow();
        let one = number.and_then(|number| street.get(number)).ok_or("nobody is there")?;
        (one.alive.get() && !one.cut.get()).then(|| Rc::clone(&one.electors))
    };
    let Some(electors) = electors else { return pending().await };
    let answer = electors.answer_peer(request.uri().query().unwrap_or("")).await;
    request::answer(answer.status, [], answer.body.as_bytes().into())
        .map_err(|error| error.to_string())
}

impl World {
    pub fn new(shards: usize, seed: u64) -> Self {
        Self::with(shards, seed, How::default())
    }

    pub fn with(shards: usize, seed: u64, how: How) -> Self {
        let machine = Machine::default();
        let place = machine.host.drawing(&Rc::new(RefCell::new(Chance::new(seed))));
        let settings = Settings::default();
        let configs = edgelect::shards::configs(&settings, "jobs", shards).expect("settings");
        let object = |config: &Config| {
            let time = place.clone();
            let memory = Memory::new(move || time.wall_ms());
            if !how.new {
                block_on(driver::init(&memory, &place, config)).expect("a new group");
            }
            (config.lockfile_path.clone(), memory)
        };
        let objects = Rc::new(configs.iter().map(object).collect());
        let fails = configs.iter().map(|one| (one.lockfile_path.clone(), Rc::default())).collect();
        let fails = Rc::new(fails);
        let (members, terms) = (Street::default(), Rc::new(RefCell::new(vec![0; shards])));
        Self {
            machine,
            place,
            objects,
            fails,
            shards,
            members,
            terms,
            how,
            unled_ms: vec![(0, 0); shards],
        }
    }

    /// One member more.
    pub fn join(&mut self) {
        let (cut, street) = (Rc::<Cell<bool>>::default(), Rc::clone(&self.members));
        let (way, time) = (Rc::clone(&cut), self.place.clone());
        let place = self.place.asking(move |request| {
            let (cut, street, time) = (way.get(), Rc::clone(&street), time.clone());
            async move {
                time.sleep(ANSWER_MS).await;
                if cut { pending().await } else { answer(street, request).await }
            }
        });
        let electors = Electors::new(place.clone(), Limits::default());
        let electors = Rc::new(electors.expect("the limits are fine"));
        let number = self.members.borrow().len();
        let settings = Settings {
            server_id: Some(format!("member-{number}")),
            server_addr: self.how.peers.then(|| format!("member-{number}.example:8443")),
            peer_mode: Some(self.how.peers),
            follow: Some(self.how.follow),
            ..Settings::default()
        };
        let made = Shards::new(&electors, place, &settings, "jobs", self.shards);
        let shards = Rc::new(made.expect("settings"));
        let (objects, time) = (Rc::clone(&self.objects), self.place.clone());
        let fails = Rc::clone(&self.fails);
        let how = self.how;
        let (way, terms, running) = (Rc::clone(&cut), Rc::clone(&self.terms), Rc::clone(&shards));
        let working = self.place.clone();
        let end = self.machine.run(async move {
            let open = |config: &Config| {
                let memory = objects[&config.lockfile_path].clone();
                let fails = Rc::clone(&fails[&config.lockfile_path]);
                Ok(Way { memory, time: time.clone(), cut: Rc::clone(&way), how, fails })
            };
            let work = async |shard: usize, _term: edgelect::Term<'_, Virtual>| {
                terms.borrow_mut()[shard] += 1;
                let begun = terms.borrow().iter().sum::<usize>() as u64;
                match how.work_ms {
                    0 => pending().await,
                    ms => working.sleep(ms + begun * 7_919 % ms).await,
                }
            };
            running.lead(open, work).await.expect("the store can be used");
        });
        let alive = Rc::new(Cell::new(true));
        self.members.borrow_mut().push(One { shards, electors, end, cut, alive });
    }

    /// From here on the store takes no write of these shards' leases, or takes them again.
    pub fn fail(&self, shards: impl IntoIterator<Item = usize>, fails: Fails) {
        shards.into_iter().for_each(|shard| self.fails[&format!("jobs/{shard}")].set(fails));
    }

    /// This member's process dies.
    pub fn crash(&mut self, member: usize) {
        let members = self.members.borrow();
        members[member].alive.set(false);
        members[member].end.abort();
    }

    /// This member gives everything back.
    pub fn stop(&mut self, member: usize) {
        let members = self.members.borrow();
        members[member].alive.set(false);
        members[member].shards.stop();
    }

    pub fn pass(&mut self, ms: u64) {
        self.machine.pass(ms);
    }

    /// How many shards each living member leads.
    pub fn shares(&self) -> Vec<usize> {
        let members = self.members.borrow();
        let alive = members.iter().filter(|one| one.alive.get());
        alive.map(|one| one.shards.led().len()).collect()
    }

    /// How many terms have begun.
    pub fn moves(&self) -> usize {
        self.terms.borrow().iter().sum()
    }

    /// Whether each shard has one leader at the most, those counted that died without a word.
    pub fn one_each(&self) -> Result<(), String> {
        let mut leaders = vec![0; self.shards];
        for shard in self.members.borrow().iter().flat_map(|one| one.shards.led()) {
            leaders[shard] += 1;
        }
        match leaders.iter().position(|count| *count > 1) {
            Some(shard) => Err(format!("shard {shard} has {} leaders", leaders[shard])),
            None => Ok(()),
        }
    }

    /// Whether each shard is led, and shares differ by one at the most.
    fn even(&self) -> Result<(), String> {
        self.one_each()?;
        let shares = self.shares();
        let (most, least) = (shares.iter().max(), shares.iter().min());
        let apart = most.zip(least).map_or(0, |(most, least)| most - least);
        if shares.iter().sum::<usize>() != self.shards || apart > 1 {
            return Err(format!("{} shards are led as {shares:?}", self.shards));
        }
        Ok(())
    }

    pub fn check(&self) {
        assert_eq!(self.even(), Ok(()));
    }

    /// Passes time, and looks at it all the while.
    pub fn watch(&mut self, ms: u64) -> Result<(), String> {
        for _ in 0..ms.div_ceil(LOOK_MS) {
            self.pass(LOOK_MS);
            self.one_each()?;
            let members = self.members.borrow();
            let led: Vec<usize> = members.iter().flat_map(|one| one.shards.led()).collect();
            let terms = self.terms.borrow();
            for (shard, (unled_ms, before)) in self.unled_ms.iter_mut().enumerate() {
                let rests = !led.contains(&shard) && terms[shard] == *before;
                *unled_ms = if rests { *unled_ms + LOOK_MS } else { 0 };
                *before = terms[shard];
            }
        }
        Ok(())
    }

    /// Watches for longer, and lets no shard rest for longer than so.
    pub fn watch_rests(&mut self, ms: u64, most_ms: u64) -> Result<(), String> {
        self.unled_ms.iter_mut().for_each(|(ms, _)| *ms = 0);
        for _ in 0..ms.div_ceil(LOOK_MS) {
            self.watch(LOOK_MS)?;
            if let Some(shard) = self.unled_ms.iter().position(|(ms, _)| *ms > most_ms) {
                return Err(format!("nobody has led shard {shard} for {most_ms} ms"));
            }
        }
        Ok(())
    }

    fn alive(&self) -> Vec<usize> {
        let members = self.members.borrow();
        (0..members.len()).filter(|at| members[*at].alive.get()).collect()
    }

    /// Nobody is cut off any more.
    fn heal(&self) {
        self.members.borrow().iter().for_each(|one| one.cut.set(false));
    }

    /// Something happens to one of the members.
    fn happen(&mut self, chance: &mut Chance) {
        let alive = self.alive();
        let one = chance.pick(&alive);
        match chance.below(6) {
            0 | 1 if alive.len() < 5 => self.join(),
            2 if alive.len() > 1 => self.crash(one),
            3 if alive.len() > 1 => self.stop(one),
            4 => self.members.borrow()[one].cut.set(true),
            _ => self.heal(),
        }
    }
}

/// One schedule: whatever happens for a while, then quiet, then one member more.
fn schedule(seed: u64) -> Result<(), String> {
    let mut chance = Chance::new(seed);
    let shards = chance.between(5, 10) as usize;
    let writes_apart_ms = if seed % 4 < 2 { 1_000 } else { 0 };
    let follow = match seed % 8 {
        3 => Follow::Balanced,
        5 => Follow::Frugal,
        _ => Follow::Tight,
    };
    let (peers, new, undated) = (seed % 3 == 2, seed.is_multiple_of(2), seed % 5 == 1);
    let work_ms = if seed % 16 == 9 { chance.between(500, 60_000) } else { 0 };
    let how = How { peers, new, writes_apart_ms, follow, undated, work_ms };
    let mut world = World::with(shards, seed, how);
    (0..chance.between(1, 3)).for_each(|_| world.join());
    for _ in 0..chance.between(0, 6) {
        let ms = chance.span(40_000);
        world.watch(ms)?;
        world.happen(&mut chance);
    }
    world.heal();
    // A member that was cut off backs off for as long as `infrequentInterval` before it hears the store again.
    world.watch(how.settled_ms() + 30_000)?;
    if how.work_ms > 0 {
        return world.watch_rests(600_000, REST_MS);
    }
    world.even()?;
    let moved = world.moves();
    world.watch(60_000)?;
    if world.moves() != moved {
        return Err(format!("{} terms began while nothing happened", world.moves() - moved));
    }
    if world.alive().len() < 5 {
        world.join();
        // In a new group the first newcomer makes the seat, which seems free when its grace ends.
        let most = world.shards.div_ceil(world.alive().len()) + usize::from(how.new);
        world.watch(how.settled_ms())?;
        world.even()?;
        if world.moves() - moved > most {
            return Err(format!("a join moved {} shards, not {most}", world.moves() - moved));
        }
    }
    Ok(())
}

/// Plays so many schedules; the first seed that breaks a rule, and what it broke.
pub fn play(first: u64, count: u64, plant: impl Fn()) -> Result<(), (u64, String)> {
    for seed in first..first + count {
        plant();
        schedule(seed).map_err(|told| (seed, told))?;
    }
    Ok(())
}
