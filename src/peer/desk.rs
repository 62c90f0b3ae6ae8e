//! Who asks, who waits for an answer, and who answers for this member: a bounded number of each.

use std::collections::VecDeque;

use super::{HealthAnswer, Question, answer};
use crate::clock::Now;
use crate::election::Election;
use crate::lease::is_name;
use crate::planted::planted;

/// How many relays are remembered.
const MOST_RELAYS: usize = 64;

/// How many of them a busy leader names at once.
const NAMED_RELAYS: usize = 4;

/// How many nonces are remembered: those of a few seconds, with heartbeats and without room for everybody.
const MOST_NONCES: usize = 2_048;

/// How many heartbeats are kept until they are taken.
const MOST_HEARTBEATS: usize = 4_096;

/// After how many leases without a question a relay is forgotten.
const RELAY_LEASES: u64 = 2;

/// The longest `Retry-After`, in seconds.
const MAX_PAUSE_S: u64 = 60;

/// What becomes of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It is answered.
    Now(HealthAnswer),
    /// It is held for so many milliseconds, or until [`Desk::is_steady`] says no. Who holds it tells [`Desk::leave`] once it is
    /// answered or the asker is gone, and answers by [`Desk::answer`].
    Hold {
        /// In milliseconds.
        for_ms: u64,
    },
}

/// Whether a question is about the group of this member.
fn is_asked(election: &Election, question: &Question) -> bool {
    question.group.is_empty() || question.group == election.config().lockfile_path
}

/// A term in which this member led and held questions.
#[derive(Clone, Copy, Debug)]
struct Led {
    term: Option<u64>,
    /// Whether there was no room for somebody, who asks others now.
    crowded: bool,
    /// How many were held when it was over.
    waiting: u64,
}

/// The questions to one member.
#[derive(Clone, Debug, Default)]
pub struct Desk {
    /// How many are held.
    held: u64,
    /// Since when how many had no room, on the monotonic clock; for a lease.
    turned_away: (u64, u64),
    /// The term that this member leads in or has led in last, of those about which questions were held.
    led: Option<Led>,
    /// Where members answer for this one, and when each was heard of last, on the monotonic clock. The newest comes last.
    relays: VecDeque<(String, u64)>,
    /// Those of the last questions that were to be held.
    nonces: VecDeque<String>,
    /// Whose heartbeats came since they were taken last, and when.
    heartbeats: Vec<(String, u64)>,
}

impl Desk {
    /// A question, and whether it is proven. `chance` is any number.
    pub fn ask(
        &mut self,
        election: &Election,
        now: Now,
        (question, proven): (&Question, bool),
        chance: u64,
    ) -> Reply {
        let config = election.config();
        let secrets = config.peers.secrets.is_set();
        // Whoever knows no secret is answered, and leaves nothing here.
        // Nor must somebody who has seen a member's question use it again: to take places, or to be taken for the member.
        let member = !secrets || (proven && self.is_new(&question.nonce));
        // Where nobody takes them they would only lie here. A member names its group.
        let beats = config.peers.heartbeat_ms.is_some() && question.group == config.lockfile_path;
        if member && beats && is_name(&question.from) && self.heartbeats.len() < MOST_HEARTBEATS {
            self.heartbeats.push((question.from.clone(), now.mono_ms));
        }
        // What a relay would answer only to a proven question it holds for no other.
        let tells = proven || election.relayed(now).is_none();
        let waits = question.wait_ms > 0 && config.peers.most > 0 && tells;
        if !waits || !member || !Self::is_steady(election, now, question) {
            return Reply::Now(self.answer(election, now, (question, proven)));
        }
        if self.led.is_none_or(|led| led.term != question.term) {
            let led = Led { term: question.term, crowded: false, waiting: 0 };
            self.led = election.authority(now).map(|_| led);
        }
        if self.held >= config.peers.most && !planted!(QuestionsWithoutEnd) {
            let (since_ms, count) = self.turned_away;
            let recent = now.mono_ms.saturating_sub(since_ms) < config.leader_timeout_ms;
            self.turned_away = if recent { (since_ms, count + 1) } else { (now.mono_ms, 1) };
            if let Some(led) = &mut self.led {
                led.crowded = true;
            }
            return Reply::Now(self.busy(election, now, question, chance));
        }
        self.held += 1;
        if secrets && config.asks(&question.relay) && question.relay != config.server_addr {
            self.relays.retain(|(addr, _)| *addr != question.relay);
            if self.relays.len() == MOST_RELAYS {
                self.relays.pop_front();
            }
            self.relays.push_back((question.relay.clone(), now.mono_ms));
        }
        // Those who began together do not all come back together.
        let for_ms = question.wait_ms - chance % (question.wait_ms / 16 + 1);
        Reply::Hold { for_ms }
    }

    /// Whether there is nothing new to tell to who asked this.
    pub fn is_steady(election: &Election, now: Now, question: &Question) -> bool {
        is_asked(election, question)
            && question.term.is_some()
            && election.steady_term(now) == question.term
    }

    /// The answer to a question, as it is now, and whether that is proven. One that is held is left after this.
    pub fn answer(
        &mut self,
        election: &Election,
        now: Now,
        (question, proven): (&Question, bool),
    ) -> HealthAnswer {
        let config = election.config();
        let mut answer = match is_asked(election, question) {
            true => answer(election, now, proven),
            false => HealthAnswer::not_leading(None),
        };
        let held = question.wait_ms > 0 && answer.status == 404;
        if let Some(led) = self.led.as_mut().filter(|led| held && led.term == question.term) {
            led.waiting = led.waiting.max(self.held);
            // Of those who ask relays nobody knows how many they are.
            if !led.crowded && led.waiting > 0 {
                answer = HealthAnswer::over(election.leader_id(now), led.waiting);
            }
        }
        answer.to(question, &config.peers.secrets)
    }

    /// Whose heartbeats came since the last call, by `serverId`, and when, on the monotonic clock.
    pub fn take_heartbeats(&mut self) -> Vec<(String, u64)> {
        std::mem::take(&mut self.heartbeats)
    }

    /// A question is held no more.
    pub fn leave(&mut self) {
        self.held = self.held.saturating_sub(1);
    }

    fn is_new(&mut self, nonce: &str) -> bool {
        if self.nonces.iter().any(|known| known == nonce) {
            return false;
        }
        if self.nonces.len() == MOST_NONCES {
            self.nonces.pop_front();
        }
        self.nonces.push_back(nonce.to_owned());
        true
    }

    /// How many questions are held.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// 503: later again, the later the more there are who have no room; or somewhere else.
    fn busy(
        &mut self,
        election: &Election,
        now: Now,
        question: &Question,
        chance: u64,
    ) -> HealthAnswer {
        let config = election.config();
        let lease_ms = config.leader_timeout_ms;
        let longest_ms = RELAY_LEASES * lease_ms;
        self.relays.retain(|(_, heard_ms)| now.mono_ms.saturating_sub(*heard_ms) < longest_ms);
        let count = self.relays.len();
        let first = if count == 0 { 0 } else { (chance % count as u64) as usize };
        let named = (0..count.min(NAMED_RELAYS)).map(|at| (first + at) % count);
        let named: Vec<&str> = named.map(|at| self.relays[at].0.as_str()).collect();
        let over = self.turned_away.1.saturating_sub(1) / config.peers.most.max(1);
        let pause_s = (lease_ms / 1_000).max(1).saturating_mul(1 + over).min(MAX_PAUSE_S);
        let pause_s = pause_s + chance % (pause_s / 2 + 1);
        HealthAnswer::busy(pause_s, &named).to(question, &config.peers.secrets)
    }
}
