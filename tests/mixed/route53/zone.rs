//! A Route 53 hosted zone with one record set, in virtual time: its batches are atomic, its reads may be old,
//! it throttles, and it loses requests and answers or is late with them.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use crate::driver::prelude::*;

/// What stands in the way of a batch, in the service's own words.
const NOT_FOUND: &str =
    "Tried to delete resource record set [name='x', type='TXT'] but it was not found";
const NO_MATCH: &str = "Tried to delete resource record set [name='x', type='TXT'] but the values \
    provided do not match the current values";
const EXISTS: &str =
    "Tried to create resource record set [name='x', type='TXT'] but it already exists";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    pub ttl: String,
    pub values: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Batch {
    pub delete: Option<Set>,
    pub create: Option<Set>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// How old a read may be, in milliseconds.
    pub stale_ms: u64,
    /// How many of a hundred requests get no answer.
    pub lost_percent: u64,
    /// Whether it takes five requests a second.
    pub throttles: bool,
}

pub struct Zone {
    states: Vec<(u64, Option<Set>)>,
    late: Vec<(u64, Batch)>,
    recent: VecDeque<u64>,
    chance: Chance,
    /// Of the members' own randomness.
    random: Rc<RefCell<Chance>>,
    faults: Faults,
    /// How far ahead a proxy's clock is that names the `Date` of every answer.
    pub date_ahead_ms: u64,
    /// Requests that were throttled, reads that were old, and writes that took effect late.
    pub seen: [u64; 3],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Answered,
    Throttled,
    Lost,
    Late,
    AnswerLost,
}

impl Zone {
    pub fn new(seed: u64, faults: Faults) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self {
            states: Vec::new(),
            late: Vec::new(),
            recent: VecDeque::new(),
            chance: Chance::new(seed),
            random: Rc::new(RefCell::new(Chance::new(!seed))),
            faults,
            date_ahead_ms: 0,
            seen: [0; 3],
        }))
    }

    pub fn current(&self) -> Option<&Set> {
        self.states.last().and_then(|(_, set)| set.as_ref())
    }

    fn at(&self, at_ms: u64) -> Option<Set> {
        let then = self.states.iter().rev().find(|(since_ms, _)| *since_ms <= at_ms);
        then.and_then(|(_, set)| set.clone())
    }

    /// Carries a batch out, or says what stands in its way.
    pub fn change(&mut self, now_ms: u64, batch: &Batch) -> Result<(), &'static str> {
        let mut current = self.current().cloned();
        let sorted = |set: &Set| {
            let mut values = set.values.clone();
            values.sort();
            (set.ttl.clone(), values)
        };
        if let Some(delete) = &batch.delete {
            let there = current.take().ok_or(NOT_FOUND)?;
            if sorted(&there) != sorted(delete) {
                return Err(NO_MATCH);
            }
        }
        if let Some(create) = &batch.create {
            if current.is_some() {
                return Err(EXISTS);
            }
            current = Some(create.clone());
        }
        self.states.push((now_ms, current));
        Ok(())
    }

    /// Batches that were held up on their way.
    pub fn catch_up(&mut self, now_ms: u64) {
        self.late.sort_by_key(|(due_ms, _)| *due_ms);
        while self.late.first().is_some_and(|(due_ms, _)| *due_ms <= now_ms) {
            let (due_ms, batch) = self.late.remove(0);
            self.seen[2] += u64::from(self.change(due_ms, &batch).is_ok());
        }
    }

    fn fate(&mut self, now_ms: u64) -> Fate {
        self.catch_up(now_ms);
        while self.recent.front().is_some_and(|at_ms| now_ms - at_ms >= 1_000) {
            self.recent.pop_front();
        }
        let lost = self.chance.below(100) < self.faults.lost_percent;
        let which = [Fate::Lost, Fate::Late, Fate::AnswerLost][self.chance.below(3) as usize];
        if self.faults.throttles && self.recent.len() >= 5 {
            self.seen[0] += 1;
            return Fate::Throttled;
        }
        self.recent.push_back(now_ms);
        if lost { which } else { Fate::Answered }
    }

    fn read(&mut self, now_ms: u64) -> Option<Set> {
        let old = self.chance.below(2) == 0;
        let back_ms = if old { self.chance.below(self.faults.stale_ms + 1) } else { 0 };
        let (then, now) = (self.at(now_ms.saturating_sub(back_ms)), self.current().cloned());
        self.seen[1] += u64::from(then != now);
        then
    }

    fn send(&mut self, now_ms: u64, batch: Batch) -> Result<(), &'static str> {
        match self.fate(now_ms) {
            Fate::Throttled => return Err("Throttling"),
            Fate::Answered => return self.change(now_ms, &batch),
            Fate::Lost => {}
            Fate::Late => {
                let longest_ms = [300, 3_000, 20_000][self.chance.below(3) as usize];
                let due_ms = now_ms + 50 + self.chance.below(longest_ms);
                self.late.push((due_ms, batch));
            }
            Fate::AnswerLost => drop(self.change(now_ms, &batch)),
        }
        Err("no answer")
    }

    fn list(&mut self, now_ms: u64) -> Result<Option<Set>, &'static str> {
        match self.fate(now_ms) {
            Fate::Throttled => Err("Throttling"),
            Fate::Answered => Ok(self.read(now_ms)),
            _ => Err("no answer"),
        }
    }
}

/// A member's way to the zone.
#[derive(Clone)]
pub struct Net {
    pub time: Virtual,
    pub zone: Rc<RefCell<Zone>>,
    pub cut_until_ms: Rc<Cell<u64>>,
}

impl Net {
    pub fn new(time: &Virtual, zone: &Rc<RefCell<Zone>>) -> Self {
        Self { time: time.clone(), zone: Rc::clone(zone), cut_until_ms: Rc::default() }
    }

    async fn travel(&self) -> Result<u64, String> {
        let ms = 5 + self.zone.borrow_mut().chance.below(60);
        self.time.sleep(ms).await;
        if self.time.now_ms.get() < self.cut_until_ms.get() {
            return Err("cut off".to_owned());
        }
        Ok(self.time.now_ms.get())
    }

    /// A batch as a member of another make sends it.
    pub async fn change(&self, batch: Batch) -> Result<(), String> {
        let now_ms = self.travel().await?;
        self.zone.borrow_mut().send(now_ms, batch).map_err(str::to_owned)
    }

    /// A listing as a member of another make asks for it.
    pub async fn list(&self) -> Result<Option<Set>, String> {
        let now_ms = self.travel().await?;
        self.zone.borrow_mut().list(now_ms).map_err(str::to_owned)
    }

    pub fn host(&self) -> Virtual {
        let (net, random) = (self.clone(), Rc::clone(&self.zone.borrow().random));
        self.time.drawing(&random).asking(move |request| net.clone().fetch(request))
    }

    async fn fetch(self, request: Request) -> Result<Response, String> {
        let answer = if request.method() == "POST" {
            let body = String::from_utf8(request.into_body()).expect("a batch is text");
            let changed = "<ChangeResourceRecordSetsResponse/>".to_owned();
            self.change(batch(&body)).await.map(|()| changed)
        } else {
            self.list().await.map(|set| listing(set.as_ref()))
        };
        let back_ms = 5 + self.zone.borrow_mut().chance.below(60);
        self.time.sleep(back_ms).await;
        match answer {
            Ok(body) => Ok(self.response(200, body)),
            Err(why) if why == "no answer" || why == "cut off" => Err(why),
            Err(why) => Ok(self.error(&why)),
        }
    }

    fn response(&self, status: u16, body: String) -> Response {
        let ahead_ms = self.zone.borrow().date_ahead_ms;
        let since = Duration::from_millis(self.time.wall_ms() + ahead_ms);
        let date = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + since);
        let headers = [("date", date.as_str())];
        request::answer(status, headers, body.as_bytes().into()).expect("an answer")
    }

    fn error(&self, said: &str) -> Response {
        // What is wrong with a batch is a sentence, everything else is told by its code.
        let code = if said.contains(' ') { "InvalidChangeBatch" } else { said };
        let said = said.replace('\'', "&apos;");
        let error = format!("<Error><Code>{code}</Code><Message>{said}</Message></Error>");
        self.response(400, format!("<ErrorResponse>{error}</ErrorResponse>"))
    }
}

/// The texts between two tags, unescaped.
fn between<'a>(text: &'a str, tag: &'a str) -> impl Iterator<Item = String> + 'a {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    let pieces: Vec<&str> = text.split(&open).skip(1).collect();
    pieces.into_iter().map(move |rest| {
        let text = rest.split(&close).next().unwrap_or_default();
        let text = text.replace("&quot;", "\"").replace("&apos;", "'").replace("&lt;", "<");
        text.replace("&gt;", ">").replace("&amp;", "&")
    })
}

fn batch(body: &str) -> Batch {
    let set = |action: &str| {
        let change = body.split("<Change>").find(|change| change.contains(action))?;
        let ttl = between(change, "TTL").next()?;
        Some(Set { ttl, values: between(change, "Value").collect() })
    };
    Batch { delete: set(">DELETE<"), create: set(">CREATE<") }
}

fn listing(set: Option<&Set>) -> String {
    let shown = set.map(|set| {
        let value = |value: &String| {
            let value = value.replace('&', "&amp;").replace('<', "&lt;");
            format!("<ResourceRecord><Value>{value}</Value></ResourceRecord>")
        };
        let values: String = set.values.iter().map(value).collect();
        format!(
            "<ResourceRecordSet><Name>lock.jobs.example.com.</Name><Type>TXT</Type><TTL>{}</TTL>\
            <ResourceRecords>{values}\
             </ResourceRecords></ResourceRecordSet>",
            set.ttl
        )
    });
    let sets = shown.unwrap_or_default();
    format!(
        "<ListResourceRecordSetsResponse><ResourceRecordSets>{sets}</ResourceRecordSets>\
        </ListResourceRecordSetsResponse>"
    )
}
