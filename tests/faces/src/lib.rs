//! The simulator's world for members that the npm package brings, as JavaScript calls it.

// It uses a part of it.
#[allow(dead_code)]
#[path = "../../sim/mod.rs"]
mod sim;

use std::collections::BTreeMap;

use edgelect::config::{Config, HostClock, Settings};
use edgelect::election::{LostReason, SlotsOver};
use edgelect::json::Object;
use edgelect::peer::HealthAnswer;
use edgelect::request;
use edgelect::slots::Schedule as Slots;
use serde_json::{Value, json};
use wasm_bindgen::prelude::wasm_bindgen;

use sim::clocks::EPOCH_MS;
use sim::oracle::{Aim, Deed, Violation};
use sim::outside::By;
use sim::peers::Questioned;
use sim::report::Kind;
use sim::run::{Running, Seed};
use sim::schedule::{Around, Schedule, WITHIN_CONTRACT};
use sim::slots::Ended;
use sim::world::{Depth, World};

/// Chosen so that schedules of members from outside are others than those without them.
const SALT: u64 = 31_013 << 40;

/// One schedule under way.
#[wasm_bindgen]
pub struct Faces {
    running: Option<Running>,
    /// The rule that was broken by its end.
    broken: Option<Violation>,
    seed: u64,
    machine: usize,
    schedules: Vec<Slots>,
    /// Questions of peers that the members have not answered yet, by number.
    questions: BTreeMap<u32, Questioned>,
    asked: u32,
}

#[wasm_bindgen]
impl Faces {
    #[wasm_bindgen(constructor)]
    pub fn new(seed: f64, keep: bool, members: u32, single: bool, worker: bool) -> Self {
        let seed = seed as u64;
        let around = Around { members: u64::from(members), single, worker };
        let schedule = Schedule::draw_around(seed ^ SALT, Depth::Store, WITHIN_CONTRACT, around);
        let machines = &schedule.world.machines;
        let machine = machines.iter().position(|machine| machine.outside).expect("it was drawn");
        let running = Some(Running::new(schedule, keep));
        Self {
            running,
            broken: None,
            seed,
            machine,
            schedules: Vec::new(),
            questions: BTreeMap::new(),
            asked: 0,
        }
    }

    fn schedule(&mut self) -> &mut Schedule {
        &mut self.running.as_mut().expect("it is under way").schedule
    }

    fn world(&mut self) -> &mut World {
        &mut self.schedule().world
    }

    /// What the members are to be: their options, the leases that they may change to, whether they run slots, and whether their
    /// machine has one clock.
    pub fn plan(&mut self) -> String {
        let single = self.single();
        let schedule = self.schedule();
        let members: Vec<Value> = schedule.outside.iter().map(options).collect();
        let slots = schedule.world.slots.is_some();
        let (leases, by_storage) = (&schedule.leases_ms, schedule.by_storage);
        json!({
            "members": members, "leases": leases, "slots": slots, "byStorage": by_storage, "single": single,
        })
        .to_string()
    }

    fn single(&mut self) -> bool {
        let machine = self.machine;
        self.world().machines[machine].clocks.single
    }

    fn config(&mut self, options: &str) -> Config {
        let object = Object::read(options.as_bytes()).expect("an object");
        let mut settings = Settings::from_json(&object).expect("options that the world has drawn");
        settings.clock = if self.single() { HostClock::One } else { HostClock::Two };
        Config::new(&settings).expect("options that the world has drawn")
    }

    /// What these members' timers go by: their monotonic clock, where they have one.
    pub fn timers(&mut self) -> f64 {
        let machine = self.machine;
        let world = self.world();
        world.machines[machine].clocks.timers_ms(world.now_ms) as f64
    }

    pub fn wall(&mut self) -> f64 {
        let machine = self.machine;
        let world = self.world();
        world.machines[machine].clocks.wall_ms(world.now_ms) as f64
    }

    /// A number below `bound`, for what the members do.
    pub fn chance(&mut self, bound: f64) -> f64 {
        self.world().chance.below(bound as u64) as f64
    }

    /// Lets the world go on until the members have to hear of something, their next timer is due, or the schedule is over.
    /// Gives what they hear, as JSON, or nothing once it is over.
    pub fn run(&mut self, due_ms: f64) -> Option<String> {
        let machine = self.machine;
        self.world().outside_rests();
        loop {
            let running = self.running.as_mut().expect("it is under way");
            let world = &running.schedule.world;
            if world.oracle.violation.is_some() || running.rests() {
                return None;
            }
            let blocked_ms = world.machines[machine].paused_until_ms;
            if !world.calls.is_empty() && blocked_ms <= world.now_ms {
                return Some(self.calls());
            }
            let clocks = &world.machines[machine].clocks;
            let at_ms = match due_ms.is_finite() {
                true => clocks.true_when_due(world.now_ms, due_ms as u64).max(blocked_ms),
                false => u64::MAX,
            };
            if clocks.timers_ms(world.now_ms) as f64 >= due_ms && blocked_ms <= world.now_ms {
                return Some(self.calls());
            }
            let end_ms = running.end_ms();
            if !running.step(at_ms) {
                running.schedule.world.pass_to(at_ms.min(end_ms));
                running.schedule.world.glance();
            }
        }
    }

    fn calls(&mut self) -> String {
        let answers: Vec<Value> = self.world().outside_answers().iter().map(answer).collect();
        let calls = std::mem::take(&mut self.world().calls);
        let first = self.schedules.len();
        let triggers = calls.triggers.iter().enumerate();
        let triggers: Vec<Value> = triggers.map(|(at, slots)| trigger(first + at, slots)).collect();
        self.schedules.extend(calls.triggers);
        let mut questions = Vec::new();
        for question in calls.questions {
            self.asked += 1;
            let Questioned { addr, query, .. } = &question;
            questions.push(json!({ "number": self.asked, "addr": addr, "query": query }));
            self.questions.insert(self.asked, question);
        }
        json!({
            "answers": answers, "triggers": triggers, "questions": questions, "stepped": calls.stepped,
        })
        .to_string()
    }

    /// The members' process computes for so long: nothing reaches it.
    /// Whether their wall clock was stepped meanwhile.
    pub fn block(&mut self, ms: f64) -> bool {
        let machine = self.machine;
        let until_ms = self.world().now_ms + ms as u64;
        self.world().pause(machine, ms as u64);
        let running = self.running.as_mut().expect("it is under way");
        let last_ms = until_ms.saturating_sub(1);
        while running.schedule.world.now_ms < last_ms && running.step(last_ms) {}
        let world = &mut running.schedule.world;
        world.pass_to(world.now_ms.max(until_ms));
        world.look_around();
        world.calls.stepped
    }

    /// A session begins; `trigger` is the number of the trigger that it runs, if any; `by`: it reaches the
    /// store by a `storage` of its own or by the binding `r2` of a bucket; `worker`: it is an event of a Worker.
    pub fn join(
        &mut self,
        options: &str,
        name: &str,
        by: Option<String>,
        trigger: Option<u32>,
        worker: Option<bool>,
    ) -> u32 {
        let machine = self.machine;
        let config = self.config(options);
        let schedule = trigger.map(|number| self.schedules[number as usize].clone());
        let session = self.world().joins(machine, name, &config, schedule);
        if let Some(outside) = &mut self.world().sessions[session].outside {
            outside.by = match by.as_deref() {
                Some("storage") => By::Storage,
                Some("r2") => By::Binding,
                _ => By::Requests,
            };
            outside.worker = worker.unwrap_or(false);
        }
        session as u32
    }

    pub fn configured(&mut self, session: u32, options: &str) {
        let config = self.config(options);
        self.world().outside_configured(session as usize, &config);
    }

    /// A request leaves; `headers` is JSON, a list of pairs.
    pub fn ask(
        &mut self,
        session: u32,
        method: &str,
        url: &str,
        headers: &str,
        body: Vec<u8>,
    ) -> u32 {
        let headers: Vec<(String, String)> = serde_json::from_str(headers).expect("pairs");
        let headers: Vec<_> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        let method = method.parse().expect("a method");
        let http = request::new(method, url, &headers, body).expect("a request");
        self.world().outside_asks(session as usize, http) as u32
    }

    /// A question to a peer leaves.
    #[wasm_bindgen(js_name = askPeer)]
    pub fn ask_peer(&mut self, session: u32, addr: &str, query: &str) -> u32 {
        self.world().outside_asks_peer(session as usize, addr, query) as u32
    }

    /// The answer to a peer's question; of nobody, where there is no session.
    #[wasm_bindgen(js_name = answerPeer)]
    pub fn answer_peer(
        &mut self,
        number: u32,
        session: Option<u32>,
        status: u16,
        proof: Option<String>,
        body: String,
        of_record: bool,
    ) {
        let Some(question) = self.questions.remove(&number) else { return };
        let answer = HealthAnswer { proof, ..HealthAnswer::of(status, body) };
        let session = session.map(|session| session as usize);
        self.world().outside_answers_peer(session, &question, answer, of_record);
    }

    pub fn abandon(&mut self, session: u32, request: u32) {
        self.world().outside_abandons(session as usize, request as usize);
    }

    pub fn stands(&mut self, session: u32, term: f64, remaining_ms: f64, stepped: bool) {
        self.world().outside_stands(session as usize, term as u64, remaining_ms as u64, stepped);
    }

    pub fn acquired(&mut self, session: u32, term: f64, remaining_ms: f64) {
        self.world().outside_acquired(session as usize, term as u64, remaining_ms as u64);
    }

    pub fn lost(&mut self, session: u32, term: f64, reason: &str) {
        let reason = match reason {
            "overtaken" => LostReason::Overtaken,
            "deleted" => LostReason::Deleted,
            "clock" => LostReason::Clock,
            "resigned" => LostReason::Resigned,
            "stopped" => LostReason::Stopped,
            "done" => LostReason::Done,
            "stepDown" => LostReason::SteppedDown,
            "paused" => LostReason::Paused,
            _ => LostReason::Expired,
        };
        self.world().outside_lost(session as usize, term as u64, reason);
    }

    pub fn works(&mut self, session: u32, term: f64, begins: bool) {
        self.world().outside_works(session as usize, term as u64, begins);
    }

    pub fn job(&mut self, session: u32, slot_ms: f64, term: f64) {
        self.world().outside_job(session as usize, slot_ms as u64, term as u64);
    }

    #[wasm_bindgen(js_name = jobEnded)]
    pub fn job_ended(&mut self, session: u32, term: f64, how: &str) {
        let ended = match how {
            "done" => Ended::Done,
            "failed" => Ended::Failed,
            _ => Ended::Lost,
        };
        self.world().outside_job_ends(session as usize, term as u64, ended);
    }

    /// A trigger reports.
    pub fn reports(&mut self, session: u32, outcome: &str, new_group: bool, recorded: Vec<f64>) {
        if new_group && let Some(trigger) = &mut self.world().sessions[session as usize].trigger {
            trigger.over = Some(SlotsOver::NewGroup);
        }
        for term in recorded {
            self.world().slot_recorded(session as usize, term as u64);
        }
        self.world().reports(session as usize, outcome);
    }

    pub fn resigns(&mut self, session: u32) {
        let look = self.world().look(session as usize);
        let world = self.world();
        let lease_ms = world.sessions[session as usize].election.config().leader_timeout_ms;
        world.tally.fault(Kind::Resign);
        world.oracle.resigns(look, lease_ms);
    }

    /// An operator begins to ask for something.
    pub fn operates(&mut self, session: u32) {
        self.world().operates(session as usize);
    }

    /// The operator's request that the record has carried since, as JSON: their own, or else another's that they have read.
    pub fn operated(&mut self, session: u32) -> Option<String> {
        let outside = self.world().sessions[session as usize].outside.as_ref()?;
        let own = outside.landed.is_some();
        let lease = outside.landed.as_ref().or(outside.asked_before.as_ref())?;
        let request = lease.operator.as_ref()?;
        let told = json!({
            "own": own, "ask": request.ask.name(), "by": request.by, "why": request.why,
            "untilMs": request.until_ms, "term": request.term, "session": request.session,
        });
        Some(told.to_string())
    }

    /// A trigger is told to stop.
    pub fn stopped(&mut self, session: u32) {
        if let Some(trigger) = &mut self.world().sessions[session as usize].trigger {
            trigger.stopped = true;
        }
    }

    pub fn gone(&mut self, session: u32) {
        self.world().outside_gone(session as usize);
    }

    /// The process of a session has ended, whatever it was doing.
    pub fn killed(&mut self, session: u32) {
        self.world().kill(session as usize);
    }

    /// Something that the members do goes on for so long.
    pub fn trouble(&mut self, ms: f64) {
        let world = self.world();
        world.trouble_until(world.now_ms + ms as u64);
    }

    /// The term that a session has authority for, as far as the world knows.
    pub fn leads(&mut self, session: u32) -> Option<f64> {
        self.world().authority(session as usize).map(|term| term as f64)
    }

    /// How much longer a term lasts at most, as far as the world knows.
    pub fn lasts(&mut self, session: u32, term: f64) -> f64 {
        self.world().lasts_ms(session as usize, term as u64) as f64
    }

    /// Whether a session has claimed a term, and its claim has landed.
    pub fn claimed(&mut self, session: u32, term: f64) -> bool {
        self.landed(session).any(|deed| (deed.term, deed.aim) == (term as u64, Aim::Claim))
    }

    /// Whether a renewal of a session's has landed.
    pub fn renewed(&mut self, session: u32) -> bool {
        self.landed(session).any(|deed| deed.aim == Aim::Renew)
    }

    /// Whether the last write of a session's that led this term was to give the lease up.
    #[wasm_bindgen(js_name = givesBack)]
    pub fn gives_back(&mut self, session: u32, term: f64) -> bool {
        let world = self.world();
        // An old state that is shown after a claim has landed says that another one has taken it.
        let hidden = |deed: &Deed| world.store.keeps_past && deed.term != term as u64;
        // A claim that did not land took nothing that is to be given back.
        let counts = |deed: &Deed| !deed.aim.takes() || deed.landed_ms.is_some() && !hidden(deed);
        let deeds = world.oracle.deeds.iter();
        let own = deeds.filter(|deed| deed.session == session as usize && counts(deed));
        // By its number, since a copy of an earlier write is in the book later.
        let last = own.max_by_key(|deed| deed.lease.sequence);
        last.is_some_and(|deed| matches!(deed.aim, Aim::Release | Aim::Park))
    }

    /// What is wrong by a judge in JavaScript.
    pub fn broke(&mut self, check: &str, text: &str) {
        let check = Box::leak(check.to_owned().into_boxed_str());
        self.world().oracle.broke(check, text.to_owned());
    }

    /// What is left of the members once they are closed.
    pub fn left(&mut self, text: &str) {
        let at_ms = self.world().now_ms;
        let left = Violation { at_ms, check: "nothing is left", text: text.to_owned() };
        self.broken.get_or_insert(left);
    }

    /// One more line of the history.
    pub fn note(&mut self, line: &str) {
        let world = self.world();
        world.history.note(world.now_ms, || line.to_owned());
    }

    #[wasm_bindgen(getter)]
    pub fn healed(&mut self) -> bool {
        self.world().healed
    }

    /// Time since the schedule began, in truth.
    #[wasm_bindgen(getter)]
    pub fn time(&mut self) -> f64 {
        self.world().now_ms as f64
    }

    /// The schedule is over: what is judged from here on is what is left of its members.
    pub fn close(&mut self) {
        self.running.as_mut().expect("it is under way").judge_end();
        self.broken = self.world().oracle.violation.take();
        self.world().oracle.contract.wild = true;
    }

    /// The end, as JSON: what broke a rule, what was counted, the history.
    pub fn finish(&mut self) -> String {
        let running = self.running.take().expect("it is under way");
        let ended = running.finish(Seed { depth: Depth::Store, number: self.seed });
        let broken = self.broken.take().or(ended.violation).map(
            |broken| json!({ "atMs": broken.at_ms, "check": broken.check, "text": broken.text }),
        );
        let kinds = Kind::ALL.map(|kind| (format!("{kind:?}"), json!(ended.tally.faults(kind))));
        let counts: serde_json::Map<String, Value> = kinds.into_iter().collect();
        let tally = &ended.tally;
        json!({
            "broken": broken, "counts": counts, "terms": tally.terms, "failovers": tally.failovers,
            "requests": tally.requests, "simulatedMs": tally.simulated_ms, "lines": ended.lines,
            "hash": format!("{:x}", ended.hash),
        })
        .to_string()
    }
}

impl Faces {
    /// What a session has written and the store has taken, in the order in which it left.
    fn landed(&mut self, session: u32) -> impl Iterator<Item = &Deed> {
        let deeds = self.world().oracle.deeds.iter();
        deeds.filter(move |deed| deed.session == session as usize && deed.landed_ms.is_some())
    }
}

fn options(settings: &Settings) -> Value {
    json!({
        "lockfilePath": settings.lockfile_path,
        "serverId": settings.server_id,
        "frequentInterval": settings.frequent_interval_ms,
        "infrequentInterval": settings.infrequent_interval_ms,
        "leaderTimeout": settings.leader_timeout_ms,
        "follow": settings.follow.map(|follow| format!("{follow:?}").to_lowercase()),
        "margin": settings.margin_ms,
        "storeSkew": settings.store_skew_ms,
        "maxLease": settings.max_lease_ms,
        "peerMode": settings.peer_mode,
        "serverAddr": settings.server_addr,
        "peerTimeout": settings.peer_timeout_ms,
        "peerSecret": settings.peers.secret.as_ref().map(|secret| &secret.0),
        "peerWait": settings.peers.wait_ms,
        "maxPeers": settings.peers.most,
    })
}

fn answer((request, answer): &(usize, Result<request::Response, String>)) -> Value {
    match answer {
        Ok(answer) => {
            let headers = answer.headers().iter();
            let headers =
                headers.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
            let headers: serde_json::Map<String, Value> =
                headers.map(|(name, value)| (name.to_owned(), json!(value))).collect();
            let body = String::from_utf8_lossy(&answer.body().bytes);
            json!({ "request": request, "status": answer.status().as_u16(), "headers": headers, "body": body })
        }
        Err(error) => json!({ "request": request, "error": error }),
    }
}

fn trigger(number: usize, slots: &Slots) -> Value {
    let (policy, missed) = (slots.policy.name(), slots.missed.name());
    json!({
        "number": number, "slot": slots.slot_ms, "trueMs": slots.slot_ms.map(|ms| ms as i64 - EPOCH_MS as i64),
        "options": {
            "period": slots.period_ms, "policy": policy, "missed": missed, "attempts": slots.attempts,
            "budget": slots.budget_ms,
        },
    })
}
