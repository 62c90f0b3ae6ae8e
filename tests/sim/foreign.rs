//! Members of another make: S3lect's, by the rules of its document and by nothing else. Each judges by its own wall clock, renews
//! by a Get and a PutIfMatch, marks a resignation by the zero time, and acts a grace after it has become leader.

use std::cell::Cell;

use edgelect::lease;
use edgelect::store::{Condition, Outcome, Version};

use super::chance::Chance;
use super::clocks::EPOCH_MS;
use super::go::{self, Record, Time};
use super::oracle::Contract;
use super::report::Kind;
use super::store::{Asked, Shown};
use super::world::{Event, World};

/// One seed in so many has some.
const ONE_IN: u64 = 10;

/// Chosen so that no seed that ever broke a rule means another schedule than it did.
const SALT: u64 = 326_425 << 40;

const ATTEMPTS: u64 = 3;

/// What a member of another make may do wrong, so that the observer can be seen to notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A failed update does not end its leadership.
    NeverResigns,
    /// It acts at once, by a right wall clock, and writes without a condition.
    Unconditional,
    /// It acts for an interval more after its resignation.
    ActsAfterResigning,
    /// It acts at once, by a wall clock that is wrong.
    NoGrace,
    /// It acts at once, by a right wall clock and with conditions, as two of the others would without what is wrong with them.
    Control,
}

impl Bug {
    pub const ALL: [Self; 4] =
        [Self::NeverResigns, Self::Unconditional, Self::ActsAfterResigning, Self::NoGrace];
}

thread_local! {
    static BUG: Cell<Option<Bug>> = const { Cell::new(None) };
}

/// All members of another make do this wrong, in this thread.
pub fn plant(bug: Option<Bug>) {
    BUG.set(bug);
}

fn planted(bug: Bug) -> bool {
    BUG.get() == Some(bug)
}

/// Those of a schedule.
pub struct ForeignMembers {
    chance: Chance,
    rules: Rules,
    members: Vec<ForeignMember>,
}

/// The settings of the document, as parts of a lease of the group. A leader acts no longer than two thirds of it after its last
/// update landed, so that clocks of the contract may differ.
struct Rules {
    lease_ms: u64,
    /// How often of a thousand times a request or its answer is lost, or comes late.
    trouble_per_mille: u64,
}

impl Rules {
    fn frequent_ms(&self) -> u64 {
        self.lease_ms / 3
    }

    fn infrequent_ms(&self) -> u64 {
        2 * self.lease_ms
    }

    /// Between becoming leader and acting as one.
    fn grace_ms(&self) -> u64 {
        let none = planted(Bug::NoGrace) || planted(Bug::Unconditional) || planted(Bug::Control);
        if none { 0 } else { self.lease_ms }
    }

    fn timeout_ms(&self) -> u64 {
        self.lease_ms / 30
    }

    fn pause_ms(&self, attempt: u64) -> u64 {
        if attempt == 1 { self.lease_ms / 150 } else { self.lease_ms / 30 }
    }
}

struct ForeignMember {
    id: String,
    /// How far its wall clock is ahead.
    ahead_ms: i64,
    /// How much too slowly its clock runs, in millionths.
    slow_ppm: u64,
    offset_minutes: i64,
    runs: bool,
    /// Counts what it has begun, so that an answer or a timer of what is over means nothing.
    turn: u64,
    aim: Aim,
    request: Request,
    attempt: u64,
    acts_from_ms: Option<u64>,
    /// Whom it has seen lead.
    known: Option<String>,
}

/// Why it makes its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    Look,
    Renew,
    Resign,
}

/// A request to the store.
#[derive(Clone, Debug)]
pub enum Request {
    Get,
    Put { record: Record, condition: Condition },
}

/// The answer.
#[derive(Clone, Debug)]
pub enum Heard {
    Nothing,
    Found(Option<Record>, Version),
    Written,
    Refused,
}

/// What happens to one.
#[derive(Clone, Debug)]
pub enum Act {
    Begins,
    Tries,
    /// A request reaches the store, and will be answered or not.
    Arrives(Request, bool),
    Hears(Heard),
    WaitsNoLonger,
    /// Its grace is over: there is an instant at which it is looked at.
    Leads,
    /// All of them are gone.
    Leaves,
}

impl ForeignMembers {
    fn draw(seed: u64, lease_ms: u64, most_slow_ppm: u64) -> Option<Self> {
        let mut chance = Chance::new(seed ^ SALT);
        if !chance.one_in(ONE_IN) {
            return None;
        }
        let trouble_per_mille = chance.pick(&[0, 50, 300]);
        let members = (0..chance.between(1, 2)).map(|number| ForeignMember {
            id: format!("foreign-{number}"),
            ahead_ms: chance.pick(&[0, 0, 0, 1_000, -1_000, 3_600_000, -3_600_000]),
            slow_ppm: chance.below(most_slow_ppm + 1),
            offset_minutes: chance.pick(&[0, 120, -570]),
            runs: true,
            turn: 0,
            aim: Aim::Look,
            request: Request::Get,
            attempt: 0,
            acts_from_ms: None,
            known: None,
        });
        let members = members.collect();
        Some(Self { chance, rules: Rules { lease_ms, trouble_per_mille }, members })
    }

    /// One that acts as the leader at this instant.
    pub fn acts(&self, now_ms: u64) -> Option<&str> {
        let acts = |one: &&ForeignMember| one.acts_from_ms.is_some_and(|from_ms| from_ms <= now_ms);
        self.members.iter().find(acts).map(|one| one.id.as_str())
    }
}

impl World {
    /// Some schedules have members of another make.
    pub fn foreign_members_begin(&mut self, seed: u64, lease_ms: u64) {
        self.foreign = ForeignMembers::draw(seed, lease_ms, self.oracle.contract.worst_ppm);
        let Some(ForeignMembers { chance, members, .. }) = &mut self.foreign else { return };
        let begin: Vec<u64> = members.iter().map(|_| chance.span(4 * lease_ms)).collect();
        for (member, begin_ms) in begin.into_iter().enumerate() {
            self.at(begin_ms, Event::Foreign { member, turn: 0, act: Act::Begins });
        }
    }

    /// The faults are over, and so are they. A lease later, when nobody acts by what they may have taken, they leave a tombstone
    /// to triggers that are shorter than a look.
    pub fn foreign_members_end(&mut self) {
        let Some(ForeignMembers { rules, members, .. }) = &mut self.foreign else { return };
        for one in members.iter_mut() {
            one.acts_from_ms = None;
        }
        let last_ms = 2 * rules.lease_ms;
        self.trouble_until_ms = self.trouble_until_ms.max(self.now_ms + last_ms);
        self.after(last_ms, Event::Foreign { member: 0, turn: 0, act: Act::Leaves });
    }

    fn foreign_members_leave(&mut self) {
        let Some(ForeignMembers { members, .. }) = &self.foreign else { return };
        let crons = self.machines.iter().any(|machine| machine.cron.is_some());
        let lease = self.store.object.as_ref().and_then(|object| object.shown.lease());
        let lease = lease.filter(|lease| !lease.released());
        let held = lease.filter(|lease| members.iter().any(|one| one.id == lease.leader_id));
        if let Some(lease) = held.filter(|_| crons) {
            let (leader_id, leader_addr) = (lease.leader_id.clone(), lease.leader_addr.clone());
            let last = Record { leader_id, leader_addr, last_updated: Time::ZERO };
            self.foreign_puts(&last, None);
        }
    }

    pub fn foreign_acts(&mut self, member: usize, turn: u64, act: Act) {
        if matches!(act, Act::Leaves) {
            return self.foreign_members_leave();
        }
        if self.healed {
            return;
        }
        if let Act::Arrives(request, answered) = act {
            return self.foreign_asks(member, turn, &request, answered);
        }
        let timed = self.tells_true_time();
        let Some(ForeignMembers { chance, rules, members }) = &mut self.foreign else { return };
        let one = &mut members[member];
        if one.turn != turn {
            return;
        }
        match act {
            Act::Begins => {
                let leads = one.acts_from_ms.is_some();
                if one.runs && chance.one_in(if leads { 12 } else { 40 }) {
                    // Its process is gone, and is back after a while.
                    (one.runs, one.acts_from_ms, one.known) = (false, None, None);
                    let back_ms = chance.span(4 * rules.lease_ms);
                    self.history.note(self.now_ms, || format!("foreign-{member} crashes"));
                    return self.foreign_does(member, back_ms, Act::Begins);
                }
                one.runs = true;
                // One that took a lease that is still held has to wait until nobody acts by that (docs/s3lect.md, rule 3).
                let right = timed && one.ahead_ms <= 0;
                let may = right || one.acts_from_ms.is_some_and(|from_ms| from_ms <= self.now_ms);
                one.aim = match leads {
                    true if may && chance.one_in(6) => Aim::Resign,
                    true => Aim::Renew,
                    false => Aim::Look,
                };
                if one.aim == Aim::Resign && !planted(Bug::ActsAfterResigning) {
                    one.acts_from_ms = None;
                }
                (one.request, one.attempt) = (Request::Get, 0);
                self.foreign_sends(member);
            }
            Act::Tries => self.foreign_sends(member),
            Act::WaitsNoLonger if one.attempt < ATTEMPTS => {
                let pause_ms = rules.pause_ms(one.attempt);
                self.foreign_does(member, pause_ms, Act::Tries);
            }
            Act::WaitsNoLonger => self.foreign_fails(member),
            Act::Hears(heard) => self.foreign_hears(member, heard),
            Act::Leads | Act::Leaves | Act::Arrives(..) => {}
        }
    }

    /// Something else comes next.
    fn foreign_does(&mut self, member: usize, in_ms: u64, act: Act) {
        let Some(foreign) = &mut self.foreign else { return };
        let one = &mut foreign.members[member];
        one.turn += 1;
        let turn = one.turn;
        let in_ms = in_ms * 1_000_000 / (1_000_000 - one.slow_ppm);
        self.after(in_ms, Event::Foreign { member, turn, act });
    }

    /// Whether what our records say of time is no less than the truth, so that who has a right clock takes none that is held.
    fn tells_true_time(&self) -> bool {
        let Contract { always_dated, timely, clocks, .. } = self.oracle.contract;
        always_dated && timely && clocks && self.store.manners.cached_ms == 0
    }

    fn foreign_sends(&mut self, member: usize) {
        let cut = self.outage.until_ms > self.now_ms && self.outage.requests;
        let Some(ForeignMembers { chance, rules, members }) = &mut self.foreign else { return };
        let one = &mut members[member];
        one.attempt += 1;
        let travel_ms = chance.span(rules.timeout_ms());
        let fate = if cut { 0 } else { chance.below(3) };
        let troubled = cut || chance.per_mille(rules.trouble_per_mille);
        let late_ms = chance.span(2 * rules.lease_ms);
        let request = one.request.clone();
        let (timeout_ms, turn) = (rules.timeout_ms(), one.turn + 1);
        self.history.note(self.now_ms, || format!("foreign-{member} asks {request:?}"));
        self.foreign_does(member, timeout_ms, Act::WaitsNoLonger);
        let (in_ms, answered) = match fate {
            _ if !troubled => (travel_ms, true),
            0 => return,
            1 => (travel_ms, false),
            _ => (late_ms, false),
        };
        self.trouble_until(self.now_ms + in_ms);
        self.after(in_ms, Event::Foreign { member, turn, act: Act::Arrives(request, answered) });
    }

    /// A request takes effect.
    fn foreign_asks(&mut self, member: usize, turn: u64, request: &Request, answered: bool) {
        let heard = match request {
            Request::Get => {
                let asked = Asked::Read { unless: None };
                let effect = self.store.perform(self.now_ms, &asked, None, 0, None);
                match effect.outcome {
                    Outcome::Found { version, reading } => {
                        let bytes = effect.bytes.map(|bytes| bytes.to_vec());
                        let bytes = bytes.or_else(|| match &Shown::of(reading) {
                            Shown::Lease(lease) => Some(lease::write(lease)),
                            Shown::Other(_) => None,
                        });
                        Heard::Found(bytes.and_then(|bytes| go::unmarshal(&bytes)), version)
                    }
                    _ => Heard::Nothing,
                }
            }
            Request::Put { record, condition } => match self.holds_for_foreign(condition) {
                true => {
                    self.foreign_puts(record, Some(member));
                    Heard::Written
                }
                false => Heard::Refused,
            },
        };
        if answered {
            let Some(ForeignMembers { chance, rules, .. }) = &mut self.foreign else { return };
            let travel_ms = chance.span(rules.timeout_ms() / 2);
            self.after(travel_ms, Event::Foreign { member, turn, act: Act::Hears(heard) });
        }
    }

    fn holds_for_foreign(&self, condition: &Condition) -> bool {
        let object = self.store.object.as_ref();
        planted(Bug::Unconditional)
            || match condition {
                Condition::Absent => object.is_none(),
                Condition::Match(version) => object.is_some_and(|held| held.version == *version),
            }
    }

    fn foreign_puts(&mut self, record: &Record, by: Option<usize>) {
        self.tally.fault(Kind::ForeignWrite);
        if let Some(member) = by {
            self.check_taken(member);
        }
        self.history.note(self.now_ms, || format!("{} puts {record:?}", record.leader_id));
        let Some(ForeignMembers { chance, .. }) = &mut self.foreign else { return };
        let front_end = chance.below(self.store.manners.front_end_ms.len() as u64) as usize;
        self.store.put_by(self.now_ms, &go::marshal(record), front_end);
        self.oracle.tampered();
        let Some(version) = self.store.object.as_ref().map(|object| &object.version) else {
            return;
        };
        // A claim that waits for the one before may land on this one (docs/s3lect.md, Tokens and slots).
        let oracle = &self.oracle;
        let shown = |session: &usize| {
            oracle.views[*session].sight.as_ref().is_some_and(|sight| sight.version == *version)
        };
        let waits = || oracle.deeds.iter().any(|deed| deed.under_way > 0 && deed.aim.takes());
        let again = self.store.again.contains(version);
        // And an old state may show the one before only after this.
        let later = self.store.keeps_past;
        if again && (later || self.living.iter().any(shown) || waits()) {
            self.oracle.slots.forgotten = true;
        }
    }

    /// Who has a right clock takes no lease that is still held.
    fn check_taken(&mut self, member: usize) {
        let one = self.foreign.as_ref().map(|foreign| &foreign.members[member]);
        let right = one.is_some_and(|one| one.ahead_ms <= 0 && one.aim == Aim::Look);
        if !right || !self.tells_true_time() || planted(Bug::Unconditional) {
            return;
        }
        let write = self.store.object.as_ref().and_then(|object| object.write);
        let held = write.map(|write| &self.oracle.deeds[write]);
        let held = held.map(|deed| (deed.session, deed.term));
        let led = held.filter(|(session, term)| self.authority(*session) == Some(*term));
        if let Some((session, term)) = led
            && !self.oracle.views[session].single
        {
            self.oracle.broke(
                "a record says no earlier time",
                format!("foreign-{member} takes the lease of s{session} in term {term}"),
            );
        }
    }

    fn foreign_hears(&mut self, member: usize, heard: Heard) {
        let Some(ForeignMembers { rules, members, .. }) = &mut self.foreign else { return };
        let one = &mut members[member];
        let right = planted(Bug::Unconditional) || planted(Bug::Control);
        let ahead_ms = if right { 0 } else { one.ahead_ms };
        let wall_ms = (EPOCH_MS + self.now_ms) as i64 + ahead_ms;
        let nanoseconds = (self.now_ms * 7_919 % 1_000_000) as u32;
        let now = Time { unix_ms: wall_ms, nanoseconds, offset_minutes: one.offset_minutes };
        let over =
            |updated: Time| updated.is_zero() || wall_ms - updated.unix_ms > rules.lease_ms as i64;
        let condition = match (one.aim, heard) {
            (Aim::Look, Heard::Nothing) => Condition::Absent,
            (Aim::Look, Heard::Found(Some(record), version)) if over(record.last_updated) => {
                Condition::Match(version)
            }
            (Aim::Look, Heard::Found(Some(Record { leader_id, .. }), _)) => {
                let stable = one.known.replace(leader_id.clone()) == Some(leader_id);
                let next_ms = if stable { rules.infrequent_ms() } else { rules.frequent_ms() };
                return self.foreign_does(member, next_ms, Act::Begins);
            }
            (Aim::Look, Heard::Written) => {
                let (grace_ms, next_ms) = (rules.grace_ms(), rules.frequent_ms());
                (one.acts_from_ms, one.known) = (Some(self.now_ms + grace_ms), None);
                self.tally.fault(Kind::ForeignLeads);
                let turn = one.turn;
                self.after(grace_ms, Event::Foreign { member, turn, act: Act::Leads });
                return self.foreign_does(member, next_ms, Act::Begins);
            }
            (Aim::Renew | Aim::Resign, Heard::Found(Some(record), version))
                if record.leader_id == one.id =>
            {
                Condition::Match(version)
            }
            (Aim::Renew, Heard::Written) => {
                let next_ms = rules.frequent_ms();
                return self.foreign_does(member, next_ms, Act::Begins);
            }
            _ => return self.foreign_fails(member),
        };
        let last_updated = if one.aim == Aim::Resign { Time::ZERO } else { now };
        let leader_addr = format!("{}:80", one.id);
        let record = Record { leader_id: one.id.clone(), leader_addr, last_updated };
        (one.request, one.attempt) = (Request::Put { record, condition }, 0);
        self.foreign_sends(member);
    }

    /// An update that failed ends its leadership, and a look that failed is made again later.
    fn foreign_fails(&mut self, member: usize) {
        let Some(ForeignMembers { rules, members, .. }) = &mut self.foreign else { return };
        let one = &mut members[member];
        let goes_on = match one.aim {
            Aim::Look => false,
            Aim::Renew => planted(Bug::NeverResigns),
            Aim::Resign => planted(Bug::ActsAfterResigning),
        };
        one.acts_from_ms = one.acts_from_ms.filter(|_| goes_on);
        one.known = None;
        let next_ms = rules.frequent_ms();
        self.foreign_does(member, next_ms, Act::Begins);
    }
}
