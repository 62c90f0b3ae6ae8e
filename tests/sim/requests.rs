//! Requests of the members: judged as they leave, their way to the store and back, and their peers.

use std::rc::Rc;

use edgelect::election::{PeerAnswer, Step};
use edgelect::lease::{self, Lease};
use edgelect::store::{Answer, Condition, Facts, Outcome};

use super::evidence::Writer;
use super::member::Flight;
use super::network::{Fate, Trouble};
use super::oracle::{Deed, Look, Oracle};
use super::report::Kind;
use super::store::Asked;
use super::world::{Event, World};

/// One request under way, and what will become of it.
pub struct Request {
    session: usize,
    /// `None` for a question to a peer.
    pub asked: Option<Rc<Asked>>,
    fate: Fate,
    pub deed: Option<usize>,
}

impl World {
    pub fn send(&mut self, look: Look, step: Step) {
        let session = look.session;
        let (asked, deed, timeout_ms) = match step {
            Step::Read { unless, timeout_ms } => (Asked::Read { unless }, None, timeout_ms),
            Step::Claim { lease, seen, timeout_ms } => {
                let (asked, deed) = self.write(look, &lease, seen, true);
                (asked, Some(deed), timeout_ms)
            }
            Step::Renew { lease, held, timeout_ms } => {
                let (asked, deed) = self.write(look, &lease, Condition::Match(held), false);
                (asked, Some(deed), timeout_ms)
            }
            Step::AskPeer { addr, timeout_ms } => return self.ask_peer(look, &addr, timeout_ms),
            Step::Wait { .. } | Step::Finished => return,
        };
        self.history.note(self.now_ms, || {
            format!("s{session} -> {}", asked_brief(&asked, self.oracle.deeds.last()))
        });
        let fate = self.fate(session, deed.is_some());
        if let Some(travel_ms) = fate.request_ms {
            let request = self.requests.len();
            self.trouble_until(self.now_ms + travel_ms);
            self.after(travel_ms, Event::Arrive { request, copy: false });
            if let Some(again_ms) = fate.again_ms {
                self.trouble_until(self.now_ms + travel_ms + again_ms);
                self.after(travel_ms + again_ms, Event::Arrive { request, copy: true });
            }
        }
        self.count_request(look);
        self.under_way(
            look,
            timeout_ms,
            Request { session, asked: Some(Rc::new(asked)), fate, deed },
        );
    }

    fn count_request(&mut self, look: Look) {
        // A tight follower whose clock is off looks half a dozen times around each renewal; three
        // attempts and a read-back, each failing at once, come with growing pauses a few times on
        // top of that.
        let config = self.sessions[look.session].election.config();
        let window_ms = config.leader_timeout_ms;
        let most = 8 * window_ms.div_ceil(config.frequent_interval_ms) + 32;
        let busy = self.oracle.sent(look, config);
        self.tally.requests += 1;
        self.tally.busiest = self.tally.busiest.max(busy);
        self.oracle.broke_unless(busy <= most, self.now_ms, "no spinning", || {
            format!("s{} sent {busy} requests within one lease", look.session)
        });
    }

    fn under_way(&mut self, look: Look, timeout_ms: u64, request: Request) {
        let session = look.session;
        self.requests.push(request);
        let request = self.requests.len() - 1;
        let due = self.due(look, look.now.mono_ms + timeout_ms);
        self.sessions[session].flight = Some(Flight { request, due });
        self.at(due.true_ms, Event::Timeout { session, request });
    }

    fn write(&mut self, look: Look, lease: &Lease, seen: Condition, claim: bool) -> (Asked, usize) {
        let body = lease::write(lease);
        let aim = Oracle::aim(lease, &seen, claim);
        let state = &self.sessions[look.session];
        let config = state.election.config();
        let born_ms = match &seen {
            Condition::Match(version) => self.store.born_ms(version),
            Condition::Absent => None,
        };
        let authority = state.election.authority(look.now).map(|authority| authority.term);
        let writer = Writer {
            look,
            config,
            authority,
            working: state.works.contains(&lease.term.unwrap_or(0)),
            born_ms,
        };
        if let Some(ground) = self.oracle.judge(&writer, lease, &seen, aim) {
            self.tally.claim(ground);
        }
        let deed = self.oracle.wrote(look, lease, &body, aim, config);
        (Asked::Write { body, condition: seen, write: deed }, deed)
    }

    fn fate(&mut self, session: usize, write: bool) -> Fate {
        let machine = self.sessions[session].machine;
        let scripted = self
            .script
            .iter_mut()
            .find(|script| script.machine == machine && script.write == write && script.times > 0);
        if let Some(script) = scripted {
            script.times -= 1;
            return script.fate.clone();
        }
        let mut fate = self.weather.fate(&mut self.chance, &mut self.tally, write);
        let cut = self.machines[machine].cut;
        if cut.until_ms > self.now_ms && cut.requests {
            self.tally.fault(Kind::CutRequests);
            if cut.refused {
                fate.before = Some(Trouble::Reset);
            } else {
                fate.request_ms = None;
            }
        }
        fate
    }

    pub fn on_arrive(&mut self, request: usize, copy: bool) {
        let Request { session, asked, fate, deed } = &self.requests[request];
        let (session, deed, fate) = (*session, *deed, fate.clone());
        let Some(asked) = asked.clone() else { return };
        let relayed = self.chance.per_mille(self.store.manners.relayed_per_mille);
        let front_end = self.chance.next();
        let mut answers = fate.answer_ms.filter(|_| copy == fate.again_answers);
        let facts = self.store.facts(self.now_ms, front_end as usize % 8, relayed);
        let down = self.outage.until_ms > self.now_ms;
        let outcome = if down && self.outage.requests {
            self.tally.fault(Kind::Outage);
            answers = answers.filter(|_| self.outage.refused);
            Trouble::ServerError.outcome(None)
        } else if let Some(trouble) = fate.before {
            trouble.outcome(fate.retry_after_ms)
        } else {
            let effect = self.store.perform(self.now_ms, &asked, front_end % 8, relayed);
            self.took_effect(deed, &effect.outcome, effect.accepted, effect.absent);
            let nameless = matches!(effect.outcome, Outcome::Written { .. });
            match fate.after {
                Some(Trouble::Nonsense) if nameless => Outcome::Written { version: None },
                Some(Trouble::Nonsense) if deed.is_some() => effect.outcome,
                Some(trouble) => trouble.outcome(fate.retry_after_ms),
                None => {
                    return self.answer(session, request, answers, effect.outcome, effect.facts);
                }
            }
        };
        self.answer(session, request, answers, outcome, facts);
    }

    fn took_effect(
        &mut self,
        deed: Option<usize>,
        outcome: &Outcome,
        accepted: bool,
        absent: bool,
    ) {
        let Some(deed) = deed else { return };
        let line = if accepted { "lands" } else { "is refused" };
        let Self { oracle, history, tally, now_ms, .. } = self;
        history.note(*now_ms, || {
            let deed = &oracle.deeds[deed];
            format!("   s{} #{} {:?} {line}", deed.session, deed.lease.sequence, deed.aim)
        });
        if accepted {
            oracle.accepted(*now_ms, deed);
        } else if *outcome == Outcome::Refused {
            if oracle.deeds[deed].landed_ms.is_some() {
                tally.fault(Kind::OwnWriteRefused);
            }
            if absent {
                tally.fault(Kind::MatchOnAbsent);
            }
        }
    }

    fn answer(
        &mut self,
        session: usize,
        request: usize,
        travel_ms: Option<u64>,
        outcome: Outcome,
        facts: Facts,
    ) {
        let cut = self.machines[self.sessions[session].machine].cut;
        let Some(travel_ms) = travel_ms else { return };
        if facts.relayed {
            self.tally.fault(Kind::Relayed);
        }
        if (cut.until_ms > self.now_ms && cut.answers)
            || (self.outage.until_ms > self.now_ms && self.outage.answers)
        {
            self.tally.fault(Kind::CutAnswers);
            return;
        }
        let answer = Box::new(Answer { outcome, facts });
        self.after(travel_ms, Event::Deliver { session, request, answer });
    }

    /// A peer answers by its own authority, or lies, or is silent.
    fn ask_peer(&mut self, look: Look, addr: &str, timeout_ms: u64) {
        let session = look.session;
        let machine = addr.trim_start_matches('m').split(':').next().and_then(|n| n.parse().ok());
        let leads = (0..self.sessions.len()).rev().find(|peer| {
            Some(self.sessions[*peer].machine) == machine && self.authority(*peer).is_some()
        });
        let mut answer = match leads {
            Some(peer) => {
                let leader_id = self.sessions[peer].election.server_id().to_owned();
                PeerAnswer::Alive { leader_id }
            }
            None => PeerAnswer::Silent,
        };
        if self.chance.per_mille(self.peer_trouble) {
            self.tally.fault(Kind::PeerLies);
            let liar = self.chance.below(self.machines.len() as u64);
            answer = PeerAnswer::Alive { leader_id: format!("m{liar}") };
        } else if self.chance.per_mille(self.peer_trouble) || leads.is_none() {
            self.tally.fault(Kind::PeerSilent);
            answer = PeerAnswer::Silent;
        }
        self.history.note(self.now_ms, || format!("s{session} asks peer {addr}: {answer:?}"));
        let request = self.requests.len();
        let fate = Fate::calm(1, 1);
        let travel_ms = self.chance.between(1, 40);
        self.under_way(look, timeout_ms, Request { session, asked: None, fate, deed: None });
        self.after(travel_ms, Event::Peer { session, request, answer });
    }
}

pub fn brief(answer: &Answer) -> String {
    match &answer.outcome {
        Outcome::Found { version, reading } => match reading {
            lease::Reading::Lease(lease) => format!(
                "Found {} {} {:?}#{} term {:?}{}{}",
                version.0,
                lease.leader_id,
                lease.session,
                lease.sequence,
                lease.term,
                if lease.parked { " parked" } else { "" },
                if lease.released() { " released" } else { "" },
            ),
            other => format!("Found {} {other:?}", version.0),
        },
        Outcome::Unknown { retry_after_ms, cause } => {
            format!("Unknown {:?} retry after {retry_after_ms:?}", cause.kind)
        }
        other => format!("{other:?}"),
    }
}

fn asked_brief(asked: &Asked, deed: Option<&Deed>) -> String {
    match (asked, deed) {
        (Asked::Write { condition, .. }, Some(deed)) => format!(
            "{:?} #{} term {} lease {:?} makes {} if {condition:?}",
            deed.aim, deed.lease.sequence, deed.term, deed.lease.lease_ms, deed.version.0
        ),
        (asked, _) => format!("{asked:?}"),
    }
}
