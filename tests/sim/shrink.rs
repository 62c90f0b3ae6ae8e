//! Takes from a schedule that breaks a rule what it can break it without: members, faults, time. Its history then fits on a page.

use super::chance::Chance;
use super::report::Kind;
use super::run::{Ended, Running, Seed, run};
use super::schedule::{Blow, Schedule, WITHIN_CONTRACT};

/// With how many dice each smaller schedule is tried, and the smallest one at the end.
const DICE: u64 = 8;
const LAST_DICE: u64 = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Member(usize),
    Blow(Blow),
    OnTheWay(Kind),
    Operator,
    PeerTrouble,
}

/// What a seed draws, without these parts. The same faults may come at other times: the `dice` of all that is drawn while
/// the schedule runs are other ones, but for 0.
#[derive(Clone, Default)]
struct Less {
    without: Vec<Part>,
    dice: u64,
}

impl Less {
    fn draw(&self, seed: Seed) -> Schedule {
        let mut schedule = Schedule::draw(seed.number, seed.depth, WITHIN_CONTRACT);
        let world = &mut schedule.world;
        for part in &self.without {
            match part {
                Part::Member(machine) => world.machines[*machine].absent = true,
                Part::Blow(blow) => schedule.blows.retain(|one| one != blow),
                Part::OnTheWay(kind) => world.weather.remove(*kind),
                Part::Operator => world.operator = None,
                Part::PeerTrouble => world.peers.trouble = 0,
            }
        }
        if self.dice > 0 {
            world.chance = Chance::new(seed.number.rotate_left(32) ^ self.dice);
        }
        schedule
    }

    fn run(&self, seed: Seed) -> Ended {
        let schedule = self.draw(seed);
        let cast = schedule.cast();
        let mut ended = Running::new(schedule, true).to_end(seed);
        ended.lines.splice(0..0, cast);
        ended
    }

    /// The same with the dice, of so many, that break this rule by the shortest history.
    fn shortest(&self, seed: Seed, check: &str, dice: u64) -> Option<(Self, Ended)> {
        let others = (0..dice).chain([self.dice].into_iter().filter(|own| *own >= dice));
        let tried = others.map(|dice| {
            let less = Self { dice, ..self.clone() };
            let ended = less.run(seed);
            (less, ended)
        });
        let breaks = |ended: &Ended| ended.violation.as_ref().is_some_and(|of| of.check == check);
        let broken = tried.filter(|(_, ended)| breaks(ended));
        broken.min_by_key(|(_, ended)| ended.lines.len())
    }
}

/// The parts of a schedule that it may do without.
fn parts(seed: Seed) -> Vec<Part> {
    let Schedule { world, blows, .. } = Less::default().draw(seed);
    let members = (0..world.machines.len()).map(Part::Member);
    let blows = blows.into_iter().map(Part::Blow);
    let on_the_way = world.weather.rates().map(|(kind, _)| Part::OnTheWay(kind));
    let operator = world.operator.iter().map(|_| Part::Operator);
    let peers = [Part::PeerTrouble].into_iter().filter(|_| world.peers.trouble > 0);
    members.chain(blows).chain(on_the_way).chain(operator).chain(peers).collect()
}

/// The end of a smaller schedule that breaks the same rule as that of this seed; `None` where that one breaks none.
pub fn shrink(seed: Seed) -> Option<Ended> {
    let check = run(seed, false).violation?.check;
    let mut left = parts(seed);
    let mut less = Less::default();
    loop {
        let before = left.len();
        left.retain(|part| {
            let mut smaller = less.clone();
            smaller.without.push(*part);
            let found = smaller.shortest(seed, check, DICE);
            let needed = found.is_none();
            if let Some((smaller, _)) = found {
                less = smaller;
            }
            needed
        });
        if left.len() == before {
            break;
        }
    }
    less.shortest(seed, check, LAST_DICE).map(|(_, ended)| ended)
}
