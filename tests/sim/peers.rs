//! Questions of members to one another, by the members' own code: who holds them, who answers in a leader's place, who lies.

use std::collections::BTreeMap;

use edgelect::Config;
use edgelect::config::{Follow, Peers};
use edgelect::election::{Input, PeerAnswer, Step};
use edgelect::peer::{self, HealthAnswer, Heard, Question, Reply};
use edgelect::proof::Secrets;
use edgelect::request::Response;

use super::member::Session;
use super::oracle::Look;
use super::report::Kind;
use super::wire;
use super::world::{Event, World};

/// A question on its way or held: the text of its URL, and what the asker knows of it.
#[derive(Clone, Debug)]
pub struct Asked {
    addr: String,
    query: String,
    question: Question,
    secrets: Secrets,
}

/// An answer on its way.
#[derive(Clone, Debug, Default)]
pub struct Told {
    status: u16,
    proof: Option<String>,
    body: String,
    /// Somebody else made it than the member that was asked, or at another time.
    forged: bool,
}

impl Told {
    /// As it comes to those who ask over HTTP.
    fn over_http(&self) -> Result<Response, String> {
        if self.status == 0 {
            return Err("the connection was refused".to_owned());
        }
        Ok(wire::told(self.status, self.proof.as_deref(), &self.body))
    }
}

/// A question that a member from outside is to answer.
pub struct Questioned {
    pub addr: String,
    pub query: String,
    asker: usize,
    request: usize,
    asked: Asked,
}

/// A question that a session holds.
pub struct Hold {
    by: usize,
    asker: usize,
    request: usize,
    asked: Asked,
    question: Question,
    proven: bool,
}

/// What stands at the addresses of peers.
#[derive(Default)]
pub struct PeerWorld {
    /// Peers may lie, and how often they are silent, out of a thousand.
    pub trouble: u64,
    /// Whatever is at a peer's address repeats the first answer of a leader that was there.
    pub repeats: bool,
    repeated: BTreeMap<String, Told>,
    holds: BTreeMap<u64, Hold>,
    next_hold: u64,
}

impl World {
    pub fn ask_peer(&mut self, look: Look, step: Step) {
        let Step::AskPeer { addr, term, wait_ms, timeout_ms } = step else { return };
        let config = self.sessions[look.session].election.config();
        let secrets = config.peers.secrets.clone();
        let nonce =
            if secrets.is_set() { format!("{:016x}", self.chance.next()) } else { String::new() };
        let config = self.sessions[look.session].election.config();
        let group = config.lockfile_path.clone();
        let relay = config.server_addr.clone();
        let from = String::new();
        let question = Question { group, nonce, term, wait_ms, relay, from };
        let query = question.to_query(&secrets);
        self.question_leaves(look, timeout_ms, Asked { addr, query, question, secrets });
    }

    /// A member from outside asks a peer; the number of its request.
    pub fn outside_asks_peer(&mut self, session: usize, addr: &str, query: &str) -> usize {
        let config = self.sessions[session].election.config();
        let (secrets, timeout_ms) = (config.peers.secrets.clone(), config.peer_timeout_ms);
        let (question, _) = Question::read(query, &secrets);
        let asked = Asked { addr: addr.to_owned(), query: query.to_owned(), question, secrets };
        self.question_leaves(self.look(session), timeout_ms, asked)
    }

    /// A question sets off; the number of its request.
    fn question_leaves(&mut self, look: Look, timeout_ms: u64, asked: Asked) -> usize {
        let session = look.session;
        let Session { machine, election, .. } = &self.sessions[session];
        let lived_ms = self.machines[*machine].clocks.lived_ms(self.now_ms);
        let (lease_ms, infrequent_ms) =
            (election.config().leader_timeout_ms, election.config().infrequent_interval_ms);
        self.oracle.asks_peer(look, lived_ms, lease_ms, infrequent_ms);
        self.history
            .note(self.now_ms, || format!("s{session} asks {} ? {}", asked.addr, asked.query));
        let machine = self.machine_at(&asked.addr);
        let travel_ms = self.chance.between(1, 20);
        let request = self.under_way(look, timeout_ms, (None, None), None, None);
        let asked = Box::new(asked);
        self.after(travel_ms, Event::PeerAsked { asker: session, request, machine, asked });
        request
    }

    /// Those from outside share one machine, and have addresses that no machine has by its number.
    fn machine_at(&self, addr: &str) -> Option<usize> {
        let number = addr.trim_start_matches('m').split(':').next()?.parse().ok()?;
        match number < self.machines.len() {
            true => Some(number),
            false => self.machines.iter().position(|machine| machine.outside),
        }
    }

    /// The machine's newest member that leads answers, or the newest of all.
    pub fn on_peer_asked(
        &mut self,
        asker: usize,
        request: usize,
        machine: Option<usize>,
        asked: Asked,
    ) {
        // Nothing is at that address: nobody ever says so.
        let Some(machine) = machine else { return };
        if self.machines[machine].outside {
            let (addr, query) = (asked.addr.clone(), asked.query.clone());
            return self.calls.questions.push(Questioned { addr, query, asker, request, asked });
        }
        let members = self.sessions_of(machine);
        let leads = members.iter().rev().find(|member| self.authority(**member).is_some());
        let Some(by) = leads.or(members.last()).copied() else {
            return self.tell_asker(asker, request, &asked, None);
        };
        self.strangers_ask(by);
        let look = self.look(by);
        let chance = self.chance.next();
        let member = &mut self.sessions[by];
        let (question, proven) =
            Question::read(&asked.query, &member.election.config().peers.secrets);
        match member.desk.ask(&member.election, look.now, (&question, proven), chance) {
            Reply::Now(answer) => self.answer_asker(by, asker, request, &asked, answer, false),
            Reply::Hold { for_ms } => {
                self.tally.fault(Kind::PeerHeld);
                let hold = self.peers.next_hold;
                self.peers.next_hold += 1;
                self.peers.holds.insert(hold, Hold { by, asker, request, asked, question, proven });
                self.after(for_ms, Event::HoldOver { session: by, hold });
                let (held, most) =
                    (self.sessions[by].desk.held(), self.sessions[by].election.config().peers.most);
                require!(self.oracle, held <= most, "questions are bounded"; "s{by} holds {held} of {most}");
            }
        }
    }

    /// What a member from outside answers; `session` is none where nobody is at that address, or closes the connection, and
    /// `of_record` says that it led nothing when it was asked, and went to read the record.
    pub fn outside_answers_peer(
        &mut self,
        session: Option<usize>,
        questioned: &Questioned,
        answer: HealthAnswer,
        of_record: bool,
    ) {
        let Questioned { asker, request, asked, .. } = questioned;
        let Some(by) = session else { return self.tell_asker(*asker, *request, asked, None) };
        let HealthAnswer { status, proof, body, .. } = &answer;
        let heard = Heard { status: *status, proof: proof.as_deref(), body: body.as_bytes() };
        let config = self.sessions[by].election.config();
        let peers = Peers { secrets: asked.secrets.clone(), ..config.peers.clone() };
        let meant = peer::judge(&heard, &asked.question, &peers);
        let plain = *status != 200 || matches!(meant, PeerAnswer::Alive { .. });
        require!(self.oracle, plain, "what a leader answers is believed";
            "s{by} answers {status} {body} with {proof:?}, which is {meant:?}");
        self.answer_asker(by, *asker, *request, asked, answer, of_record);
    }

    /// Others than members ask as well, and would wait for ever.
    fn strangers_ask(&mut self, by: usize) {
        if !self.chance.per_mille(self.peers.trouble) {
            return;
        }
        let look = self.look(by);
        let member = &mut self.sessions[by];
        let secret = member.election.config().peers.secrets.is_set();
        let term = member.election.steady_term(look.now);
        let (held, most) = (member.desk.held(), member.election.config().peers.most);
        for _ in 0..3 {
            let (question, _) =
                Question::read("wait=55000&nonce=00&relay=evil:80", &Secrets::default());
            let question = Question { term, ..question };
            let reply = member.desk.ask(&member.election, look.now, (&question, false), 0);
            if let Reply::Hold { .. } = reply {
                require!(self.oracle, !secret, "only members wait"; "s{by} holds a stranger's question");
                // The stranger goes away at once; its place must be free again.
                member.desk.leave();
            }
        }
        let now = member.desk.held();
        require!(self.oracle, now == held && now <= most, "questions are bounded";
            "s{by} holds {now} of {most}, {held} before strangers came");
        self.tally.fault(Kind::PeerFlooded);
    }

    /// Those that hold a question look whether there is something new to tell.
    pub fn look_at_holds(&mut self) {
        let over = |world: &Self, hold: &Hold| {
            let member = &world.sessions[hold.by];
            let stopped = world.machines[member.machine].paused_until_ms > world.now_ms;
            !member.alive
                || (!stopped
                    && !peer::Desk::is_steady(
                        &member.election,
                        world.look(hold.by).now,
                        &hold.question,
                    ))
        };
        let holds = self.peers.holds.iter().filter(|(_, hold)| over(self, hold));
        for id in holds.map(|(id, _)| *id).collect::<Vec<u64>>() {
            self.end_hold(id, false);
        }
    }

    pub fn end_hold(&mut self, id: u64, due: bool) {
        let Some(Hold { by, asker, request, asked, question, proven }) =
            self.peers.holds.remove(&id)
        else {
            return;
        };
        if !self.sessions[by].alive {
            self.sessions[by].desk.leave();
            // Its host closed the connection, or nobody ever hears of it.
            if self.chance.one_in(2) {
                self.tell_asker(asker, request, &asked, None);
            }
            return;
        }
        if !due {
            self.tally.fault(Kind::PeerToldEarly);
        }
        let look = self.look(by);
        let member = &mut self.sessions[by];
        let answer = member.desk.answer(&member.election, look.now, (&question, proven));
        member.desk.leave();
        self.answer_asker(by, asker, request, &asked, answer, false);
    }

    /// What a member's own code answers now: a 200 only with authority, or where it believes its leader. A 404 of a record may
    /// have been overtaken by an own claim.
    fn answer_asker(
        &mut self,
        by: usize,
        asker: usize,
        request: usize,
        asked: &Asked,
        answer: HealthAnswer,
        of_record: bool,
    ) {
        let look = self.look(by);
        let member = &self.sessions[by];
        let config = member.election.config();
        let authority = member.authority(look.now);
        let led = member.outside.as_ref().and_then(|outside| outside.recent);
        // A question under way keeps the times that it left with, whatever the operator has changed since.
        let relays = member.heard.is_some_and(|(at_ms, relays_ms)| {
            look.now.mono_ms.saturating_sub(at_ms) <= relays_ms.max(relays_for_ms(config))
        });
        self.oracle.looked(look, authority, false);
        let honest = match answer.status {
            200 => authority.is_some() || led.is_some() || relays,
            503 => true,
            _ => authority.is_none() || of_record,
        };
        require!(self.oracle, honest, "a peer answers by its authority";
            "s{by} answers {} with authority {authority:?}", answer.status);
        if answer.status == 200 && authority.is_none() && led.is_none() {
            self.tally.fault(Kind::PeerRelayed);
        }
        if answer.status == 503 {
            self.tally.fault(Kind::PeerBusy);
        }
        let told =
            Told { status: answer.status, proof: answer.proof, body: answer.body, forged: false };
        self.tell_asker(asker, request, asked, Some(told));
    }

    /// An answer sets off, or what somebody makes of it. `None`: the connection is refused or closed.
    fn tell_asker(&mut self, asker: usize, request: usize, asked: &Asked, told: Option<Told>) {
        let mut told = told.unwrap_or_default();
        if self.chance.per_mille(self.peers.trouble) {
            self.tally.fault(Kind::PeerLies);
            told = self.lie(&asked.question.group);
        } else if self.chance.per_mille(self.peers.trouble / 2) {
            self.tally.fault(Kind::PeerStalls);
            return;
        } else if self.chance.per_mille(self.peers.trouble) || told.status == 0 {
            self.tally.fault(Kind::PeerSilent);
            told = Told::default();
        }
        if self.peers.repeats && !self.healed {
            match self.peers.repeated.get(&asked.addr) {
                None if told.status == 200 => {
                    let first = Told { forged: true, ..told.clone() };
                    self.peers.repeated.insert(asked.addr.clone(), first);
                }
                None => {}
                Some(first) => {
                    self.tally.fault(Kind::PeerRepeats);
                    told = first.clone();
                }
            }
        }
        let travel_ms = self.chance.between(1, 20);
        let asked = Box::new(asked.clone());
        self.after(travel_ms, Event::Peer { session: asker, request, asked, told: Box::new(told) });
    }

    pub fn on_peer_told(&mut self, session: usize, request: usize, asked: &Asked, told: &Told) {
        if !self.awaits(session, request) {
            return;
        }
        self.sessions[session].flight = None;
        let look = self.look(session);
        let election = &self.sessions[session].election;
        let heard =
            Heard { status: told.status, proof: told.proof.as_deref(), body: told.body.as_bytes() };
        let peers = Peers { secrets: asked.secrets.clone(), ..election.config().peers.clone() };
        let answer = peer::judge(&heard, &asked.question, &peers);
        let refused = !told.forged || !asked.secrets.is_set() || answer == PeerAnswer::Silent;
        require!(self.oracle, refused, "only a proven answer is believed";
            "s{session} believes a forged answer: {answer:?}");
        self.history
            .note(self.now_ms, || format!("s{session} hears {} as {answer:?}", told.status));
        let sight = self.oracle.shown_lease(session);
        let record = match self.sessions[session].outside {
            Some(_) => sight,
            None => election.record().map(|(_, lease)| lease),
        };
        if let (PeerAnswer::Alive { leader_id, term, sequence, .. }, Some(lease)) =
            (&answer, record)
            && (leader_id, *term) == (&lease.leader_id, lease.term)
        {
            let lease_ms = election.config().leader_timeout_ms;
            self.oracle.peer_answered(look, (*term, *sequence), lease_ms);
            let relays_ms = relays_for_ms(self.sessions[session].election.config());
            self.sessions[session].heard = Some((look.now.mono_ms, relays_ms));
        }
        if self.sessions[session].outside.is_some() {
            return self.calls.told.push((request, told.over_http()));
        }
        self.tell(session, Input::Peer(answer));
    }

    /// Another's name, another group's leader, or an answer without end; of the term in the record, and ever newer.
    fn lie(&mut self, group: &str) -> Told {
        let liar = self.chance.below(self.machines.len() as u64);
        let (named, padding) = match self.chance.below(4) {
            0 => ("others.json", 0),
            1 => (group, peer::MAX_ANSWER_BYTES),
            _ => (group, 0),
        };
        let padding = " ".repeat(padding);
        let object = self.store.object.as_ref();
        let term = object.and_then(|object| object.shown.lease()?.term).unwrap_or(0);
        let fields = format!("\"group\":\"{named}\",\"term\":{term},\"sequence\":{}", self.now_ms);
        let body = format!("{{\"leaderID\":\"m{liar}\",{fields}}}{padding}");
        let told = Told { status: 200, forged: true, body, ..Told::default() };
        let foreign = named != group || !padding.is_empty();
        let heard = Heard { status: 200, proof: None, body: told.body.as_bytes() };
        let (asked, _) = Question::read("", &Secrets::default());
        let asked = Question { group: group.to_owned(), ..asked };
        let trusting = &self.machines[0].config.peers;
        let believed = peer::judge(&heard, &asked, trusting) != PeerAnswer::Silent;
        require!(self.oracle, !(foreign && believed), "a peer of the group";
            "an answer of {} bytes for {named} is believed", told.body.len());
        told
    }
}

/// For how long a member passes on what it has heard of its leader: an interval, a question that is held and one that is not
/// answered.
fn relays_for_ms(config: &Config) -> u64 {
    let interval_ms = match config.follow {
        Follow::Tight => config.frequent_interval_ms,
        Follow::Balanced => config.leader_timeout_ms,
        Follow::Frugal => config.infrequent_interval_ms,
    };
    let held_ms = config.leader_timeout_ms.saturating_sub(config.peer_timeout_ms);
    interval_ms + held_ms + 2 * config.peer_timeout_ms
}
