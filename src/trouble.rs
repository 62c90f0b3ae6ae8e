//! When a problem is worth telling: once it has lasted for two answers in a row, when it becomes another one, and when it is
//! over; and when a new group waits. The election itself decides nothing by this.

use std::mem::discriminant;

use crate::election::{Event, Problem, Waiting};
use crate::store::{Fault, FaultKind};

/// After how many answers in a row with a problem it is told: one failed request is usual, and is tried again.
const LASTING: u32 = 2;

/// After how many answers in a row without one it is over: where two of three writes fail, nobody wants a line for each.
const STAYED_AWAY: u32 = 3;

/// What was told last, and what has been seen since.
#[derive(Clone, Debug, Default)]
pub struct Trouble {
    told: Option<Problem>,
    newest: Option<Problem>,
    /// For how many answers in a row there has been a problem, and for how many the newest one.
    failing: u32,
    lasting: u32,
    /// For how many answers in a row there has been none.
    well: u32,
    /// A wait for a grace was told.
    waited: bool,
}

impl Trouble {
    /// Takes note of what a session that runs no slots waits for. What the application should hear now, if anything.
    pub fn note_waiting(&mut self, waiting: Option<(Waiting, Option<u64>)>) -> Option<Event> {
        let Some((Waiting::NewGroup, Some(left_ms))) = waiting else { return None };
        let first = !std::mem::replace(&mut self.waited, true);
        first.then_some(Event::InGrace { left_ms })
    }

    /// Takes note of the problem that an election has after an answer of the store. What the application should hear now, if
    /// anything.
    pub fn note(&mut self, problem: Option<&Problem>) -> Option<Event> {
        let Some(problem) = problem else {
            (self.failing, self.lasting, self.newest) = (0, 0, None);
            self.well = self.well.saturating_add(1);
            let over = self.well >= STAYED_AWAY;
            return self.told.take_if(|_| over).map(|_| Event::Solved);
        };
        self.well = 0;
        let same = self.newest.as_ref().is_some_and(|newest| alike(newest, problem));
        self.failing = self.failing.saturating_add(1);
        self.lasting = if same { self.lasting.saturating_add(1) } else { 1 };
        self.newest = Some(problem.clone());
        let due = match &self.told {
            None => self.failing >= LASTING,
            Some(told) => self.lasting >= LASTING && !alike(told, problem),
        };
        due.then(|| {
            self.told = Some(problem.clone());
            Event::Troubled(problem.clone())
        })
    }
}

/// Whether two problems are one for people: the texts of one may differ in a time.
fn alike(one: &Problem, other: &Problem) -> bool {
    match (one, other) {
        (Problem::Store(one), Problem::Store(other)) => {
            (one.kind, one.status, &one.code) == (other.kind, other.status, &other.code)
        }
        _ => discriminant(one) == discriminant(other),
    }
}

/// An event as a line of a log, if it is one about trouble.
pub fn line(event: &Event, group: &str) -> Option<String> {
    match event {
        // What a store says may hold anything: it stays one line, and moves no cursor.
        Event::Troubled(problem) => {
            // Said here, because the store does not know whether who asked it asks again.
            let busy = |fault: &Fault| fault.kind == FaultKind::Unavailable;
            let again = matches!(problem, Problem::Store(fault) if busy(fault));
            let more = if again { "; it is tried again" } else { "" };
            let line = format!("edgelect: group {group}: {problem}{more}");
            Some(line.replace(char::is_control, " "))
        }
        Event::Solved => Some(format!("edgelect: group {group}: the problem is over")),
        Event::InGrace { left_ms } => {
            let text = Waiting::NewGroup.text(Some(*left_ms), None);
            Some(format!("edgelect: group {group}: {text}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(kind: FaultKind, message: &str) -> Problem {
        Problem::Store(Fault::new(kind, message))
    }

    fn told(notes: &[Option<Problem>]) -> Vec<Option<Event>> {
        let mut trouble = Trouble::default();
        notes.iter().map(|problem| trouble.note(problem.as_ref())).collect()
    }

    #[test]
    fn one_failed_request_is_not_told() {
        let once = failing(FaultKind::Timeout, "no answer within 1800 ms");
        assert_eq!(told(&[Some(once.clone()), None, Some(once), None]), [None, None, None, None]);
    }

    #[test]
    fn a_lasting_problem_is_told_once_and_so_is_its_end() {
        let early = failing(FaultKind::Timeout, "no answer within 1800 ms");
        let late = failing(FaultKind::Timeout, "no answer within 900 ms");
        let again = Some(late.clone());
        let notes =
            [Some(early), again.clone(), again.clone(), None, None, again, None, None, None];
        let events = told(&notes);
        assert_eq!(events.iter().flatten().count(), 2);
        assert_eq!((&events[1], &events[8]), (&Some(Event::Troubled(late)), &Some(Event::Solved)));
    }

    #[test]
    fn another_lasting_problem_is_told_too() {
        let timeout = failing(FaultKind::Timeout, "no answer");
        let denied = failing(FaultKind::Denied, "not allowed");
        let notes = [&timeout, &timeout, &denied, &timeout, &denied, &denied];
        let events = told(&notes.map(|problem| Some(problem.clone())));
        let expected = [None, Some(timeout.clone()), None, None, None, Some(denied.clone())];
        assert_eq!(events, expected.map(|problem| problem.map(Event::Troubled)));
    }

    #[test]
    fn a_line_is_one_line_without_control_characters() {
        let problem = failing(FaultKind::Network, "first\nforged\u{1b}[2J");
        let line = line(&Event::Troubled(problem), "a");
        assert_eq!(line.as_deref(), Some("edgelect: group a: first forged [2J"));
    }

    #[test]
    fn a_line_about_a_busy_store_says_that_it_is_tried_again() {
        for (kind, said) in [
            (FaultKind::Unavailable, "edgelect: group a: no; it is tried again"),
            (FaultKind::Denied, "edgelect: group a: no"),
        ] {
            let line = line(&Event::Troubled(failing(kind, "no")), "a");
            assert_eq!(line.as_deref(), Some(said));
        }
    }

    #[test]
    fn problems_that_take_turns_are_told_too() {
        let (timeout, denied) =
            (failing(FaultKind::Timeout, "no answer"), failing(FaultKind::Denied, "no"));
        let events = told(&[Some(timeout), Some(denied.clone())]);
        assert_eq!(events, [None, Some(Event::Troubled(denied))]);
    }
}
