//! What `js/engine.js` builds the npm package's `Elector` on: one election, driven in this runtime.
//!
//! Everything that crosses the boundary is a text, a number, a flag, bytes or a list of texts, so that nothing on either side holds
//! on to the other. The JavaScript side owns promises, signals and callbacks; this side owns the election, and
//! moves only while [`RawElector::poll`] runs. An error is thrown as a text: JSON with `code`, `message`, `field`.

mod many;
mod probe;
mod settle;
mod shown;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::Rc;

use futures::future::select;
use serde_json::{Value, json};
use wasm_bindgen::prelude::*;

use crate::bucket::{self, CredentialSource, Group, read_credentials};
use crate::checkpoint::{CheckpointError, Opening, Owner, Refusal};
use crate::config::{Config, ConfigError, HostClock, Settings};
use crate::custom::{AnyStore, CustomStore, OwnStore};
use crate::driver::{self, Asked, Handle, Held, Host, UNHURRIED_MS};
use crate::election::{Election, Event, Input, Problem, SlotsOver, Standing, Waiting};
use crate::electors::answer_full;
use crate::electors::queue::Budgeted;
use crate::isolate::Isolate;
use crate::json::{self, Object};
use crate::lease::{Format, OperatorRequest};
use crate::locker::LockerStore;
use crate::look::{Due, look};
use crate::object_store_lock::LeaderElectionConfig;
use crate::operator::{self, OperatorError, Receipt, Words};
use crate::peer::Question;
use crate::probe::{Judgement, judge_by};
use crate::proof::Secrets;
use crate::scheduled::{SlotOutcome, says_nothing, shown_slot};
use crate::slots::{Schedule, ScheduleSettings, SlotEnd};
use crate::store::{Answer, Condition, Fault, Operation, Outcome, Record, Store, Version};
use crate::task::Task;
use crate::text::quoted;
use crate::web::{JsHost, Link, Web};
use crate::{status, vars};

/// One elector instance from its start to its stop: one session.
#[wasm_bindgen]
pub struct RawElector {
    handle: Handle,
    place: Place,
    store: Rc<Budgeted<AnyStore<CredentialSource>, Web>>,
    web: Web,
    link: Rc<Link>,
    task: Task,
    events: Rc<RefCell<Vec<String>>>,
    /// The questions of peers that are held, by numbers of their own.
    held: BTreeMap<u32, Held>,
    questions: u32,
}

thread_local! {
    /// What was read for questions.
    static READ: Isolate<Web> = Isolate::default();
}

#[wasm_bindgen]
impl RawElector {
    /// An elector. `settings` and `bucket` are JSON objects; without `bucket` the host's own storage is used.
    /// `credentials` is a JSON object, or nothing where the host is to be asked for them. With a `schedule`, also JSON,
    /// it runs slots and finishes. `format` is how the host's own storage keeps records, `writes_apart_ms` the shortest time
    /// between two of its writes; a bucket's are its options and its host.
    #[wasm_bindgen(constructor)]
    pub fn new(
        settings: &str,
        bucket: Option<String>,
        credentials: Option<String>,
        schedule: Option<String>,
        format: Option<String>,
        writes_apart_ms: Option<f64>,
        host: JsHost,
    ) -> Result<RawElector, String> {
        let config = read_config(settings, Web::clock_of(&host))?;
        let schedule = match schedule {
            Some(schedule) => {
                let settings =
                    ScheduleSettings::from_json(&object(&schedule)?).map_err(config_error)?;
                Some(Schedule::new(&settings, &config).map_err(config_error)?)
            }
            None => None,
        };
        let link = Link::new(host);
        let web = Web::new(Rc::clone(&link));
        let election = match schedule {
            Some(schedule) => driver::new_schedule(&web, config, schedule),
            None => driver::new_election(&web, config),
        };
        let election = election.map_err(|message| {
            thrown("EDGELECT_RANDOMNESS", &format!("no randomness here: {message}"))
        })?;
        let handle = Handle::new(election);
        let writes_apart_ms = writes_apart_ms.unwrap_or_default() as u64;
        let place = Place { bucket, credentials, format, writes_apart_ms };
        let store = match web.is_locker() {
            true => AnyStore::Local(OwnStore::Locker(
                LockerStore::new(web.clone(), &handle).map_err(config_error)?,
            )),
            false => handle.with(|election| place.open(election.config(), &web))?,
        };
        let store = Budgeted::new(store, web.clone(), handle.clone(), web.clone());
        Ok(Self {
            handle,
            place,
            store: Rc::new(store),
            web,
            link,
            task: Task::default(),
            events: Rc::default(),
            held: BTreeMap::new(),
            questions: 0,
        })
    }

    /// Has [`RawElector::poll`] drive the election until it has finished. With `judges` the store is judged first, without
    /// `judges` not; where nobody says, a bucket is, in a long-running process. True if it is: then an event `judged` tells that
    /// it did not fail, and whether it came to an end. Before all of it a member of many groups waits `delay_ms`, unless it is
    /// told to stop.
    pub fn run(&mut self, judges: Option<bool>, delay_ms: f64) -> bool {
        let (handle, store, web) = (self.handle.clone(), Rc::clone(&self.store), self.web.clone());
        let events = Rc::clone(&self.events);
        let object = self.judged(judges);
        let is_judged = object.is_some();
        self.task = Task::new(async move {
            let tell = |event| {
                let json = handle.with(|election| event_json(&event, election));
                events.borrow_mut().push(json);
            };
            if delay_ms > 0.0 {
                select(pin!(web.sleep(delay_ms as u64)), pin!(handle.stop_told())).await;
            }
            let judged = match object {
                Some(object) => judge_by(&handle, &object, &web).await.map(Some),
                None => Ok(None),
            };
            match judged {
                Ok(judgement) => {
                    if let Some(judgement) = judgement {
                        let made = judgement == Judgement::Made;
                        let told = json!({ "type": "judged", "made": made });
                        events.borrow_mut().push(told.to_string());
                    }
                    driver::run(&handle, &*store, &web, tell).await;
                }
                Err(violation) => tell(Event::Failed(violation)),
            }
            json!({ "type": "finished" }).to_string()
        });
        is_judged
    }

    /// Has [`RawElector::poll`] perform one operation on the object at this one's `lockfilePath`: a write of `body` over
    /// `version`, or over nothing; without `body` a read. An event `answered` tells of it.
    pub fn ask(&mut self, body: Option<String>, version: Option<String>) {
        let (store, web) = (Rc::clone(&self.store), self.web.clone());
        let events = Rc::clone(&self.events);
        self.task = Task::new(async move {
            let version = version.map(Version);
            let operation = match body {
                Some(body) => {
                    let condition = version.map_or(Condition::Absent, Condition::Match);
                    Operation::Write { record: Record::Raw(body.into_bytes()), condition }
                }
                None => Operation::Read { unless: version },
            };
            let answer = driver::perform_within(&*store, &web, operation, UNHURRIED_MS).await;
            events.borrow_mut().push(answer_json(&answer, &store.describe()));
            json!({ "type": "finished" }).to_string()
        });
    }

    /// Has [`RawElector::poll`] answer a question to `GET /health/leadership`, the query of its URL, from the stored record. An event
    /// `health` has the answer. `place` is a number of the storage, 0 for a bucket; `bound` says that it is a binding to R2;
    /// `ended` are the sessions that have run here.
    #[wasm_bindgen(js_name = healthOfStore)]
    pub fn health_of_store(&mut self, query: String, place: u32, bound: bool, ended: Vec<String>) {
        let (handle, store, web) = (self.handle.clone(), Rc::clone(&self.store), self.web.clone());
        let events = Rc::clone(&self.events);
        let isolate = READ.with(|read| read.at(place));
        self.task = Task::new(async move {
            let config = handle.with(|election| election.config().clone());
            let answer = isolate.health(&config, &*store, &web, bound, &query, &ended).await;
            events.borrow_mut().push(json!({ "type": "health", "answer": answer }).to_string());
            json!({ "type": "finished" }).to_string()
        });
    }

    /// Has [`RawElector::poll`] read the record once. An event `looked` has what it shows, or `failed` why not. With a `period_ms`
    /// it says whether the next slot is later than `late_ms`.
    pub fn look(&mut self, period_ms: Option<f64>, late_ms: f64) {
        let (handle, store, web) = (self.handle.clone(), Rc::clone(&self.store), self.web.clone());
        let events = Rc::clone(&self.events);
        let due = period_ms.map(|ms| Due { period_ms: ms as u64, late_ms: late_ms as u64 });
        self.task = Task::new(async move {
            let config = handle.with(|election| election.config().clone());
            let told = match look(&*store, &web, &config, due).await {
                Ok(shown) => format!(r#"{{"type":"looked","shown":{shown}}}"#),
                Err(fault) => handle.with(|election| event_json(&Event::Failed(fault), election)),
            };
            events.borrow_mut().push(told);
            json!({ "type": "finished" }).to_string()
        });
    }

    /// Has [`RawElector::poll`] start a new group: create a tombstone if there is no record.
    pub fn init(&mut self) {
        let (handle, store, web) = (self.handle.clone(), Rc::clone(&self.store), self.web.clone());
        self.task = Task::new(async move {
            let config = handle.with(|election| election.config().clone());
            let mut end = json!({ "type": "finished" });
            if let Err(error) = driver::init(&*store, &web, &config).await {
                end["error"] = match &error {
                    driver::InitError::Exists => error_json("EDGELECT_EXISTS", error.message()),
                    driver::InitError::Store(fault) => store_error(fault),
                };
            }
            end.to_string()
        });
    }

    /// Has [`RawElector::poll`] ask something as an operator: `order` is JSON with `ask`, `by`, `why` and `until`. What was
    /// asked of whom is told as the event `asked`.
    pub fn operate(&mut self, order: &str) -> Result<(), String> {
        let order = object(order)?;
        let text = |name| order.get(name).and_then(json::text).unwrap_or_default();
        let (ask, words) = (text("ask"), Words { by: text("by"), why: text("why") });
        let until_ms = order.get("until").and_then(json::whole);
        let (handle, store, web) = (self.handle.clone(), Rc::clone(&self.store), self.web.clone());
        let events = Rc::clone(&self.events);
        self.task = Task::new(async move {
            let config = handle.with(|election| election.config().clone());
            let asked = match ask.as_str() {
                "stepDown" => operator::step_down(&*store, &web, &config, &words).await,
                "pause" => operator::pause(&*store, &web, &config, &words, until_ms).await,
                _ => operator::resume(&*store, &web, &config, &words).await,
            };
            let mut end = json!({ "type": "finished" });
            match asked {
                Ok(Receipt { written, leader_id, term }) => {
                    let receipt =
                        json!({ "written": written, "leaderId": leader_id, "term": term });
                    let told = json!({ "type": "asked", "receipt": receipt });
                    events.borrow_mut().push(told.to_string());
                }
                Err(error) => end["error"] = operator_error(&error),
            }
            end.to_string()
        });
        Ok(())
    }

    /// Goes on as far as it can. The events since the last call, as a JSON array; the last of all is
    /// `finished`. To be called after anything was settled or told.
    pub fn poll(&mut self) -> String {
        if let Some(end) = self.task.poll() {
            self.events.borrow_mut().push(end);
        }
        format!("[{}]", self.events.take().join(","))
    }

    /// Has the election look at the clocks.
    pub fn tick(&self) {
        self.handle.tell(Input::Tick);
    }

    /// Gives the leadership up and sits out for a while.
    pub fn resign(&self) {
        self.handle.tell(Input::Resign);
    }

    /// Gives the leadership up and finishes; `park` keeps the lease for this `serverId`.
    pub fn stop(&self, park: bool) {
        self.handle.tell(Input::Stop { park });
    }

    /// The work of this term, which ended, has stopped.
    #[wasm_bindgen(js_name = workEnded)]
    pub fn work_ended(&self, term: f64) {
        self.handle.tell(Input::WorkEnded { term: term as u64 });
    }

    /// Whether a job of this term that ends now, also after it was told to, has ended in time.
    #[wasm_bindgen(js_name = endsInTime)]
    pub fn ends_in_time(&self, term: f64) -> bool {
        let now = self.web.now();
        self.handle.with(|election| election.ends_in_time(now, term as u64))
    }

    /// How the job of this term's slot has ended; see [`SlotEnd`].
    #[wasm_bindgen(js_name = slotEnded)]
    pub fn slot_ended(&self, term: f64, done: bool, failed: bool, result: String, took_ms: f64) {
        let end = SlotEnd { done, failed, result, took_ms: took_ms as u64 };
        self.handle.tell(Input::SlotEnded { term: term as u64, end });
    }

    /// New settings, complete, as JSON. The group and the name can't change.
    pub fn configure(&self, settings: &str) -> Result<(), String> {
        let old = self.handle.with(|election| election.config().clone());
        let config = read_config(settings, old.clock)?;
        for (field, was, is) in [
            ("lockfilePath", &old.lockfile_path, &config.lockfile_path),
            ("serverId", &old.server_id, &config.server_id),
        ] {
            if was != is {
                let rule = "can't change while the elector runs; stop it and make a new one";
                return Err(config_error(ConfigError::new(field, quoted(is), rule)));
            }
        }
        self.handle.tell(Input::Configure(Box::new(config)));
        Ok(())
    }

    /// Whether this member may claim. What it holds it keeps.
    pub fn compete(&self, competes: bool) {
        self.handle.tell(Input::Compete(competes));
    }

    /// What is known of the own term now: `[term, remainingMs, 1]` with authority, 0 in place of the 1 where a single clock
    /// proves nothing for a moment (S11), `undefined` once it is over. To ask ends no term.
    pub fn standing(&self) -> Option<Vec<f64>> {
        let (left, proven) = match self.handle.standing(self.web.now()) {
            Standing::Leads(left) => (left, 1.0),
            Standing::Unproven(left) => (left, 0.0),
            Standing::Over => return None,
        };
        Some([left.term as f64, left.remaining_ms as f64, proven].into())
    }

    /// Whether the store has answered, or has failed once.
    pub fn heard(&self) -> bool {
        self.handle.with(Election::is_heard)
    }

    /// Why the last request to the store has failed, as JSON: `message`, and `status` and `storeCode` where a store has said
    /// them. Nothing while it answers, whatever else somebody should know.
    pub fn problem(&self) -> Option<String> {
        self.handle.with(|election| {
            let fault = election.fault().cloned();
            fault.map(|fault| problem_json(&Problem::Store(fault)).to_string())
        })
    }

    /// The status as JSON.
    pub fn status(&self) -> String {
        let (now, requests) = (self.web.now(), self.handle.requests());
        self.handle.with(|election| status::status(election, now, requests))
    }

    /// The same for anybody who asks.
    #[wasm_bindgen(js_name = publicStatus)]
    pub fn public_status(&self) -> String {
        let (now, requests) = (self.web.now(), self.handle.requests());
        self.handle.with(|election| status::public(election, now, requests))
    }

    /// A question to `GET /health/leadership`, the query of its URL: its answer as JSON, or `{ held, forMs }`. What is held is
    /// answered by [`RawElector::peer_answer`], once [`RawElector::steady_term`] says something new or the time is over. Nothing
    /// is held where the groups of this one's `Electors` are `full`.
    #[wasm_bindgen(js_name = peerAsks)]
    pub fn peer_asks(&mut self, query: &str, chance: u32, full: bool) -> String {
        let now = self.web.now();
        let (question, _) = Question::read(query, &Secrets::default());
        if full && question.wait_ms > 0 {
            return json::of(&answer_full(&self.handle, now, query, chance.into()));
        }
        match self.handle.asked(now, query, chance.into()) {
            Asked::Answered(answer) => json::of(&answer),
            Asked::Held { held, for_ms } => {
                self.questions = self.questions.wrapping_add(1);
                self.held.insert(self.questions, held);
                json!({ "held": self.questions, "forMs": for_ms }).to_string()
            }
        }
    }

    /// The session's random id.
    pub fn session(&self) -> String {
        self.handle.with(|election| election.session().to_owned())
    }

    /// The term about which questions are held.
    #[wasm_bindgen(js_name = steadyTerm)]
    pub fn steady_term(&self) -> Option<f64> {
        self.handle.steady_term(self.web.now()).map(|term| term as f64)
    }

    /// The answer to a question that was held, as JSON, and nothing while there is nothing new to tell unless it is `due`.
    #[wasm_bindgen(js_name = peerAnswer)]
    pub fn peer_answer(&mut self, held: u32, due: bool) -> Option<String> {
        let now = self.web.now();
        let changed = self.held.get(&held)?.has_changed(now);
        let question = if due || changed { self.held.remove(&held) } else { None };
        question.map(|question| json::of(&question.answer(now)))
    }

    /// Nobody waits for the answer to this question any more.
    #[wasm_bindgen(js_name = peerLeaves)]
    pub fn peer_leaves(&mut self, held: u32) {
        self.held.remove(&held);
    }
}

/// Checks what `new RawElector` would take, without a session: there is no randomness for one in the global
/// scope of a Worker. Gives the settings in force, as JSON.
#[wasm_bindgen]
pub fn check(
    settings: &str,
    bucket: Option<String>,
    credentials: Option<String>,
    host: JsHost,
) -> Result<String, String> {
    let config = read_config(settings, Web::clock_of(&host))?;
    if let Some(bucket) = bucket {
        let web = Web::new(Link::new(host));
        open_bucket(&bucket, credentials.as_deref(), &group_of(&config), web)?;
    }
    Ok(config.to_json())
}

/// Checks a storage's options, before its group is known, and its credentials.
#[wasm_bindgen(js_name = checkBucket)]
pub fn check_bucket(bucket: &str, credentials: Option<String>, host: JsHost) -> Result<(), String> {
    let group = Group { key: "check", server_id: "", lease_ms: 15_000 };
    open_bucket(bucket, credentials.as_deref(), &group, Web::new(Link::new(host))).map(drop)
}

/// Reads settings, store and credentials from variables given as a JSON object of texts: `{ settings, kind, place, credentials, names }`
/// as JSON; `place` has the options of the storage of this `kind`, `names` says by which variable each option was set.
#[wasm_bindgen(js_name = fromVariables)]
pub fn from_variables(variables: &str) -> Result<String, String> {
    let variables = object(variables)?;
    let get = |name: &str| variables.get(name).and_then(json::text);
    vars::check_names(variables.iter().map(|(name, _)| name)).map_err(config_error)?;
    let settings = vars::settings_json(get).map_err(config_error)?;
    let kind = vars::program_store(get).map_err(config_error)?;
    let place = vars::place(get, kind).map_err(config_error)?;
    let secrets = vars::secrets(get).map_err(config_error)?;
    let mut names = Object::new();
    for (option, _) in settings.iter().chain(place.iter()) {
        names.set(option, json::of(&vars::variable_of(get, option)));
    }
    Ok(json!({
        "settings": settings,
        "kind": kind.name(),
        "place": place,
        "credentials": secrets,
        "names": names,
    })
    .to_string())
}

/// The first number of a JSON text that JavaScript would change, if there is one.
#[wasm_bindgen(js_name = unheldNumber)]
pub fn unheld_number(text: &str) -> Option<String> {
    json::unheld_number(text).map(str::to_owned)
}

/// The settings that options of a `LeaderElectionConfig` mean, and a `warning`, as JSON.
#[wasm_bindgen(js_name = leaderElection)]
pub fn leader_election(options: &str) -> Result<String, String> {
    let config = LeaderElectionConfig::from_json(&object(options)?);
    let (settings, warning) = config.and_then(|config| config.settings()).map_err(config_error)?;
    Ok(json!({
        "lockfilePath": settings.lockfile_path,
        "serverId": settings.server_id,
        "leaderTimeout": settings.leader_timeout_ms,
        "frequentInterval": settings.frequent_interval_ms,
        "margin": settings.margin_ms,
        "warning": warning,
    })
    .to_string())
}

/// Where the objects of a group are, as JavaScript has said it.
struct Place {
    bucket: Option<String>,
    credentials: Option<String>,
    format: Option<String>,
    writes_apart_ms: u64,
}

impl Place {
    /// The object at the `lockfilePath` of these settings.
    fn open(&self, config: &Config, web: &Web) -> Result<AnyStore<CredentialSource>, String> {
        if let Some(bucket) = &self.bucket {
            return open_bucket(
                bucket,
                self.credentials.as_deref(),
                &group_of(config),
                web.clone(),
            );
        }
        let format = self.format.clone().map_or(Ok(Format::default()), |name| {
            bucket::read_format("format", Some(name)).map_err(config_error)
        })?;
        Ok(AnyStore::Local(OwnStore::Storage(CustomStore::new(
            web.clone(),
            &config.lockfile_path,
            format,
            self.writes_apart_ms,
        ))))
    }
}

fn open_bucket(
    bucket: &str,
    credentials: Option<&str>,
    group: &Group<'_>,
    web: Web,
) -> Result<AnyStore<CredentialSource>, String> {
    let source = match credentials {
        Some(credentials) => {
            CredentialSource::Fixed(read_credentials(&object(credentials)?).map_err(config_error)?)
        }
        None => CredentialSource::Asked(web.clone()),
    };
    bucket::open(&object(bucket)?, group, source, web).map_err(config_error)
}

fn group_of(config: &Config) -> Group<'_> {
    let (key, server_id) = (&config.lockfile_path, &config.server_id);
    Group { key, server_id, lease_ms: config.leader_timeout_ms }
}

fn read_config(settings: &str, clock: HostClock) -> Result<Config, String> {
    let mut settings = Settings::from_json(&object(settings)?).map_err(config_error)?;
    settings.clock = clock;
    Config::new(&settings).map_err(config_error)
}

fn object(text: &str) -> Result<Object, String> {
    Object::read(text.as_bytes())
        .ok_or_else(|| thrown("EDGELECT_CONFIG", "the options must be an object"))
}

fn config_error(error: ConfigError) -> String {
    let mut told = error_json("EDGELECT_CONFIG", &error.message());
    told["field"] = error.field.into();
    told.to_string()
}

fn thrown(code: &str, message: &str) -> String {
    error_json(code, message).to_string()
}

fn error_json(code: &str, message: &str) -> Value {
    // The code comes first: by it the JavaScript side tells our texts from others'.
    json!({ "code": code, "message": message })
}

/// What a store refuses says so.
fn store_error(fault: &Fault) -> Value {
    let mut told = error_json("EDGELECT_STORE", &fault.message);
    told["status"] = fault.status.into();
    told["storeCode"] = fault.code.as_deref().into();
    told
}

fn operator_error(error: &OperatorError) -> Value {
    let code = match error {
        OperatorError::Store(fault) => return store_error(fault),
        OperatorError::Config(_) => "EDGELECT_CONFIG",
        OperatorError::NobodyLeads(_) => "EDGELECT_NOBODY_LEADS",
        OperatorError::Unknown(_) => "EDGELECT_UNKNOWN",
        _ => "EDGELECT_STORE",
    };
    let mut told = error_json(code, &error.to_string());
    if let OperatorError::Config(error) = error {
        told["field"] = error.field.as_str().into();
    }
    told
}

fn answer_json(answer: &Answer, store: &str) -> String {
    let (name, version, cause) = match &answer.outcome {
        Outcome::Found { version, .. } => ("found", Some(version), None),
        Outcome::Missing => ("missing", None, None),
        Outcome::Written { version: Some(version) } => ("written", Some(version), None),
        // A success that no store has to say alone, such as a web page's: what is stored tells.
        Outcome::Written { version: None } => ("vague", None, None),
        Outcome::Refused if answer.facts.doubtful => ("doubtful", None, None),
        Outcome::Refused => ("refused", None, None),
        Outcome::Unchanged => ("unchanged", None, None),
        Outcome::Unknown { cause, .. } => ("unknown", None, Some(cause)),
        Outcome::Rejected(cause) => ("rejected", None, Some(cause)),
    };
    let version = version.map(|version| version.0.as_str());
    let message = cause.map(|cause| cause.message.as_str());
    json!({
        "type": "answered",
        "store": store,
        "outcome": name,
        "version": version,
        "message": message,
    })
    .to_string()
}

fn event_json(event: &Event, election: &Election) -> String {
    let told = match event {
        Event::Acquired { term } => {
            let previous = election.previous_slot();
            json!({ "type": "acquired", "term": term, "slot": election.slot_ms(), "previous": previous })
        }
        Event::Lost { term, reason } => {
            json!({ "type": "lost", "term": term, "reason": reason.name() })
        }
        Event::NewLeader { leader_id } => json!({ "type": "newLeader", "leaderId": leader_id }),
        Event::GivenUp => json!({ "type": "givenUp" }),
        Event::SlotClosed { term, recorded } => {
            json!({ "type": "slotClosed", "term": term, "recorded": recorded })
        }
        Event::SlotsOver(why) => {
            let (slot_ms, left_out) = election.own_slot_ms().unzip();
            let ahead_ms = match why {
                SlotsOver::Ahead { by_ms } => Some(*by_ms),
                _ => None,
            };
            let request = election.record().and_then(|(_, lease)| lease.operator.as_ref());
            let paused = request.filter(|_| *why == SlotsOver::Paused).map(OperatorRequest::told);
            let reason = paused.unwrap_or_else(|| why.text().to_owned());
            let shown = shown_slot(election);
            let shown = shown.map(|past| json!({ "by": past.by, "finished": past.finished() }));
            json!({
                "type": "slotsOver",
                "why": why.name(),
                "outcome": SlotOutcome::unrun(Some(*why)).name(),
                "saysNothing": says_nothing(Some(*why)),
                "slot": slot_ms,
                "leftOut": left_out.unwrap_or(0),
                "aheadMs": ahead_ms,
                "problem": election.problem().map(Problem::to_string),
                "shown": shown,
                "reason": reason,
            })
        }
        Event::Failed(fault) => json!({
            "type": "failed",
            "message": fault.message,
            "status": fault.status,
            "storeCode": fault.code,
            "public": fault.public,
        }),
        Event::Troubled(problem) => {
            let mut told = problem_json(problem);
            told["type"] = "troubled".into();
            told
        }
        Event::Solved => json!({ "type": "solved" }),
        Event::Suspected { server_id } => json!({ "type": "suspected", "serverId": server_id }),
        Event::Recovered { server_id } => json!({ "type": "recovered", "serverId": server_id }),
        Event::InGrace { left_ms } => {
            json!({ "type": "inGrace", "message": Waiting::NewGroup.text(Some(*left_ms), None) })
        }
    };
    told.to_string()
}

fn problem_json(problem: &Problem) -> Value {
    let fault = match problem {
        Problem::Store(fault) => Some(fault),
        _ => None,
    };
    json!({
        "message": problem.to_string(),
        "status": fault.and_then(|fault| fault.status),
        "storeCode": fault.and_then(|fault| fault.code.as_deref()),
    })
}

/// A checkpoint has the same needs as an election: settings, a store, a host, and somebody who moves it.
#[wasm_bindgen]
impl RawElector {
    /// Has [`RawElector::poll`] open the checkpoint at this one's `lockfilePath`, or write it. `order` is JSON: the
    /// `session` and the `token` of whoever does, and to write, the `value` and the fields of the last `held` event.
    pub fn checkpoint(&mut self, order: &str) -> Result<(), String> {
        let order = object(order)?;
        let mut opening = self.handle.with(|election| {
            let (config, key) = (election.config(), &election.config().lockfile_path);
            let session = order.get("session").and_then(json::text).unwrap_or_default();
            let token = order.get("token").and_then(json::whole).unwrap_or_default();
            let owner = Owner::unchecked(config, &session, token, key);
            // The session of an election that nobody runs is random, and nobody else's.
            Opening::new(owner, json::of(election.session()), &self.store.describe()).with_floats()
        });
        if let Some(value) = order.get("value") {
            opening.resume(&order);
            opening.begin(value).map_err(|error| checkpoint_error(&error).to_string())?;
        }
        let (store, web) = (Rc::clone(&self.store), self.web.clone());
        let events = Rc::clone(&self.events);
        self.task = Task::new(async move {
            let ended = opening.carry_out(&*store, &web).await;
            events.borrow_mut().push(opening.suspend());
            let mut end = json!({ "type": "finished" });
            if let Err(error) = ended {
                end["error"] = checkpoint_error(&error);
            }
            end.to_string()
        });
        Ok(())
    }
}

fn checkpoint_error(error: &CheckpointError) -> Value {
    let code = match error.kind {
        Refusal::Value => "EDGELECT_CONFIG",
        Refusal::Fenced => "EDGELECT_FENCED",
        Refusal::Unknown => "EDGELECT_UNKNOWN",
        Refusal::Unusable | Refusal::Store => "EDGELECT_STORE",
    };
    error_json(code, &error.message)
}
