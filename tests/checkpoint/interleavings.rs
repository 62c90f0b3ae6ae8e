//! Every interleaving of two terms that open and write one checkpoint while answers get lost.
//!
//! Each operation is a step: somebody chooses whose is next and what becomes of it, and all choices are gone through.

use edgelect::{Checkpoint, Refusal};
use futures::channel::oneshot;
use futures::executor::LocalPool;
use futures::task::LocalSpawnExt;

use super::desk::{owner, stored_by, unknown};
use crate::driver::prelude::*;

const TERMS: [u64; 2] = [7, 8];

/// The choices of one run, each with how many there were; counted up like the digits of a number.
#[derive(Default)]
struct Choices {
    made: Vec<(usize, usize)>,
    at: usize,
}

impl Choices {
    fn choose(&mut self, of: usize) -> usize {
        if self.at == self.made.len() {
            self.made.push((0, of));
        }
        let (chosen, known) = self.made[self.at];
        assert_eq!(known, of, "a run repeats itself up to its new choice");
        self.at += 1;
        chosen
    }

    fn advance(&mut self) -> bool {
        self.at = 0;
        while let Some((chosen, of)) = self.made.pop() {
            if chosen + 1 < of {
                self.made.push((chosen + 1, of));
                return true;
            }
        }
        false
    }
}

/// One term's operation that waits for its turn, and where its answer goes.
type Window = Rc<RefCell<Option<(Operation, oneshot::Sender<Outcome>)>>>;

/// A store whose operations wait there.
fn queue(window: Window) -> impl Store {
    Through(async move |operation| {
        let (answers, answer) = oneshot::channel();
        *window.borrow_mut() = Some((operation, answers));
        undated(answer.await.expect("every operation is answered"))
    })
}

#[derive(Clone, Debug, PartialEq)]
enum Told {
    Opened(Option<String>),
    Written(String),
    Failed(Refusal),
}

type Diary = Rc<RefCell<Vec<Told>>>;

/// Opens, again once if nobody knows, and writes; what failed for good ends it.
async fn work(store: impl Store, host: Virtual, token: u64, writes: usize, diary: Diary) {
    let tell = |told| diary.borrow_mut().push(told);
    for _ in 0..2 {
        let mut state = match Checkpoint::open(&store, &host, owner(token)).await {
            Ok(state) => state,
            Err(error) if error.kind == Refusal::Unknown => {
                tell(Told::Failed(error.kind));
                continue;
            }
            Err(error) => return tell(Told::Failed(error.kind)),
        };
        tell(Told::Opened(state.value().map(str::to_owned)));
        for write in 1..=writes {
            let value = (token * 10 + write as u64).to_string();
            match state.write(&value).await {
                Ok(()) => tell(Told::Written(value)),
                Err(error) if error.kind == Refusal::Unknown => tell(Told::Failed(error.kind)),
                Err(error) => return tell(Told::Failed(error.kind)),
            }
        }
        return;
    }
}

/// One body that took effect.
#[derive(Clone, Debug, PartialEq)]
struct Accepted {
    term: u64,
    value: String,
}

struct Run {
    memory: Memory,
    accepted: Vec<Accepted>,
    /// Writes of which nobody was told, still on their way.
    late: Vec<Operation>,
    faults_left: usize,
}

impl Run {
    fn perform(&mut self, operation: Operation) -> Outcome {
        let accepts = match &operation {
            Operation::Write { record, .. } => Some(stored_by(record)),
            Operation::Read { .. } | Operation::Delete => None,
        };
        let outcome = block_on(self.memory.perform(operation)).outcome;
        if let (Some(record), Outcome::Written { .. }) = (accepts, &outcome) {
            let value = record.extra.get("value").expect("it has one").to_owned();
            self.accepted.push(Accepted { term: record.term.expect("it has one"), value });
        }
        outcome
    }

    /// Performs an operation as its fate is chosen.
    fn serve(&mut self, operation: Operation, choices: &mut Choices) -> Outcome {
        let writes = matches!(operation, Operation::Write { .. });
        let fates = match (self.faults_left, writes) {
            (0, _) => 1,
            (_, true) => 5,
            (_, false) => 2,
        };
        let fate = choices.choose(fates);
        self.faults_left -= usize::from(fate > 0);
        match fate {
            0 => return self.perform(operation),
            1 => (),
            2 | 3 => drop(self.perform(operation)),
            _ => self.late.push(operation),
        }
        if fate == 3 { Outcome::Refused } else { unknown() }
    }
}

fn run(choices: &mut Choices, writes: [usize; 2], faults: usize) -> (Run, [Vec<Told>; 2]) {
    let (memory, accepted, late) = (Memory::default(), Vec::new(), Vec::new());
    let mut run = Run { memory, accepted, late, faults_left: faults };
    let windows: [Window; 2] = Default::default();
    let diaries: [Diary; 2] = Default::default();
    let mut pool = LocalPool::new();
    for who in 0..2 {
        // No time passes: a pause is over at once, a timeout never comes.
        let host = Virtual::default().seeded(who as u8).hasty(config().request_timeout_ms);
        let queue = queue(Rc::clone(&windows[who]));
        let task = work(queue, host, TERMS[who], writes[who], Rc::clone(&diaries[who]));
        pool.spawner().spawn_local(task).expect("the pool is alive");
    }
    loop {
        pool.run_until_stalled();
        let asking: Vec<_> = windows.iter().filter(|window| window.borrow().is_some()).collect();
        let steps = asking.len() + run.late.len();
        if steps == 0 {
            return (run, diaries.map(|diary| diary.take()));
        }
        let chosen = choices.choose(steps);
        match asking.get(chosen) {
            Some(window) => {
                let (operation, answers) = window.borrow_mut().take().expect("it asks");
                answers.send(run.serve(operation, choices)).expect("the term waits for it");
            }
            None => {
                let operation = run.late.remove(chosen - asking.len());
                run.perform(operation);
            }
        }
    }
}

fn judge(run: &Run, told: &[Vec<Told>; 2]) -> Result<(), String> {
    let accepted = &run.accepted;
    if !accepted.is_sorted_by_key(|one| one.term) {
        return Err("an earlier term wrote after a later one".to_owned());
    }
    let opened = told[1].iter().find_map(|told| match told {
        Told::Opened(value) => Some(value),
        _ => None,
    });
    if let Some(read) = opened {
        let before = accepted.iter().rfind(|one| one.term == TERMS[0]);
        let last = before.map(|one| one.value.clone()).filter(|value| value != "null");
        if *read != last {
            return Err(format!("it read {read:?} and the last that was accepted is {last:?}"));
        }
    }
    for (who, term) in TERMS.into_iter().enumerate() {
        let mut from = 0;
        for value in told[who].iter().filter_map(|told| match told {
            Told::Written(value) => Some(value),
            _ => None,
        }) {
            let places: Vec<usize> = (0..accepted.len())
                .filter(|at| accepted[*at].term == term && accepted[*at].value == *value)
                .collect();
            match places[..] {
                [at] if at >= from => from = at,
                _ => return Err(format!("{value} was told as written and is at {places:?}")),
            }
        }
        let newest = accepted.last().filter(|newest| newest.term == term);
        if let (Some(Told::Written(value)), Some(newest)) = (told[who].last(), newest)
            && newest.value != *value
        {
            return Err(format!("{value} was the last, and {newest:?} is there"));
        }
    }
    Ok(())
}

fn every_run(writes: [usize; 2], faults: usize) -> (usize, usize) {
    let mut choices = Choices::default();
    let (mut runs, mut fenced) = (0, 0);
    loop {
        let (run, told) = run(&mut choices, writes, faults);
        if let Err(why) = judge(&run, &told) {
            panic!("{why}\n{:?}\n{told:#?}\n{:?}", run.accepted, choices.made);
        }
        assert!(faults > 0 || matches!(told[1].last(), Some(Told::Written(_))), "{told:?}");
        runs += 1;
        fenced += usize::from(told[0].contains(&Told::Failed(Refusal::Fenced)));
        if !choices.advance() {
            return (runs, fenced);
        }
    }
}

#[test]
fn in_every_interleaving_no_term_writes_after_a_later_one_has_opened_and_nothing_is_lost() {
    for (writes, faults) in [([2, 2], 0), ([2, 2], 1), ([1, 0], 2)] {
        let (runs, fenced) = every_run(writes, faults);
        println!("{runs} runs of {writes:?} writes with {faults} lost answers, {fenced} fenced");
        assert!(fenced > 10, "only {fenced} of {runs} runs met the fence");
    }
}
