//! Members of other makes beside ours, in the adversary's world: they list, judge the newest epoch by their own clock,
//! create the next number, believe in it without another look, touch it, and say when they give it up.

use edgelect::calendar;
use edgelect::json::{self, Object};
use edgelect::lease::Format;
use edgelect::request::{self, Request, Response};
use http::{HeaderValue, Method};

use super::super::bucket::BEGAN_MS;
use super::{Event, FOLDER, Who, World};

/// The lease of a group with members of another make, in milliseconds: a tenth of it has to bear the second by which
/// `Last-Modified` is cut, and their clocks.
pub const LEASE_MS: u64 = 20_000;

/// Their HTTP client's own timeout.
const REQUEST_MS: u64 = 1_000;

/// What they write, and by what they judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Make {
    /// `validity_ms`, `expired`, and the store's `Last-Modified`.
    Validity,
    /// `holderIdentity`, `leaseDuration` and `renewTime`.
    Holder,
}

/// Members of another make in a world.
#[derive(Clone, Copy, Debug)]
pub struct Beside {
    pub make: Make,
    /// By how much their clocks are behind the store's, and ahead of it, at most.
    pub behind_ms: u64,
    pub ahead_ms: u64,
    /// How long before its lock has run out a leader of theirs stops, counted from before the request that it rests on;
    /// without one it never looks.
    pub reserve_ms: Option<u64>,
    /// What would be carried out later than this after it was sent is lost.
    pub latest_ms: u64,
}

impl Beside {
    /// What the page asks of them, at the lease and the margin of these worlds.
    pub const fn within_the_rule(make: Make) -> Self {
        // What a clock that is behind writes is old to the others, and so is what comes late over something newer.
        let (behind_ms, latest_ms) = match make {
            Make::Validity => (5_000, u64::MAX),
            Make::Holder => (1_000, 1_800),
        };
        Self { make, behind_ms, ahead_ms: 600, reserve_ms: Some(2_000), latest_ms }
    }

    pub fn format(self) -> Format {
        match self.make {
            Make::Validity => Format::Native,
            Make::Holder => Format::Kubernetes,
        }
    }
}

/// How often each make has succeeded the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Successions {
    /// Ours that they took over from: a lease that had run out, and one that was released.
    pub from_expired: u64,
    pub from_released: u64,
    /// Theirs that we took over from, the same.
    pub to_ours: u64,
    pub to_ours_released: u64,
}

pub struct Other {
    beside: Beside,
    ahead_ms: i64,
    /// The request that it waits for, when it left, and what for.
    awaited: u64,
    sent_ms: u64,
    stage: Stage,
    lead: Option<Lead>,
    transitions: u64,
}

#[derive(Clone, Debug, PartialEq)]
enum Stage {
    List,
    Get(String),
    Create(String),
    Touch,
    Expire,
}

#[derive(Clone)]
struct Lead {
    name: String,
    acquired_ms: u64,
    until_ms: u64,
    retires_ms: u64,
}

impl Other {
    fn new(beside: Beside, ahead_ms: i64) -> Self {
        let (stage, lead) = (Stage::List, None);
        Self { beside, ahead_ms, awaited: 0, sent_ms: 0, stage, lead, transitions: 0 }
    }

    fn clock_ms(&self, now_ms: u64) -> u64 {
        (BEGAN_MS + now_ms).saturating_add_signed(self.ahead_ms)
    }

    /// Until when it leads by a write that was sent then.
    fn until_ms(&self, sent_ms: u64) -> u64 {
        self.beside.reserve_ms.map_or(u64::MAX, |reserve_ms| sent_ms + LEASE_MS - reserve_ms)
    }

    pub fn leads(&self, now_ms: u64) -> bool {
        self.lead.as_ref().is_some_and(|lead| now_ms < lead.until_ms)
    }

    fn body(&self, now_ms: u64, acquired_ms: u64, released: bool) -> Vec<u8> {
        let time = |ms: u64| calendar::rfc3339(ms as i64);
        let (seconds, holder) = (LEASE_MS / 1_000, if released { "" } else { "theirs" });
        let (acquired, renewed) = (time(acquired_ms), time(self.clock_ms(now_ms)));
        let transitions = self.transitions;
        let text = match self.beside.make {
            Make::Validity => format!(r#"{{"validity_ms":{LEASE_MS},"expired":{released}}}"#),
            Make::Holder => format!(
                r#"{{"holderIdentity":"{holder}","leaseDuration":"{seconds}s","acquireTime":"{acquired}","renewTime":"{renewed}","leaderTransitions":{transitions}}}"#
            ),
        };
        text.into_bytes()
    }

    /// Whether the newest epoch is free, as its rules have it. What it cannot read it leaves alone.
    fn is_free(&mut self, now_ms: u64, response: &Response) -> bool {
        let Some(fields) = Object::read(&response.body().bytes) else { return false };
        let text = |name| fields.get(name).and_then(json::text);
        let now_ms = self.clock_ms(now_ms);
        match self.beside.make {
            Make::Validity => {
                let expired = fields.get("expired").and_then(json::flag) == Some(true);
                let modified = request::text(response.headers(), "last-modified")
                    .map(httpdate::parse_http_date);
                let modified = modified.and_then(Result::ok).expect("every object has one");
                let since = modified.duration_since(std::time::UNIX_EPOCH).expect("it is 2026");
                let validity_ms = fields.get("validity_ms").and_then(json::whole);
                expired || validity_ms.is_some_and(|ms| since.as_millis() as u64 + ms < now_ms)
            }
            Make::Holder => {
                let renewed = text("renewTime").and_then(|text| calendar::read_rfc3339(&text));
                let Some(renewed) = renewed else { return false };
                self.transitions =
                    fields.get("leaderTransitions").and_then(json::whole).unwrap_or(0) + 1;
                text("holderIdentity").unwrap_or_default().is_empty()
                    || now_ms as i64 > renewed.unix_ms + LEASE_MS as i64
            }
        }
    }
}

/// The newest of the names of a listing; all of it is on one page.
fn newest(listing: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(listing).into_owned();
    let keys = text.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next());
    let names = keys.filter_map(|key| key.strip_prefix(FOLDER)?.strip_prefix("/lock"));
    let epochs = names.filter(|name| name.len() == 16 && name.ends_with(".json"));
    let newest = epochs.max_by_key(|name| (name[1..11].to_owned(), name.starts_with('-')))?;
    Some(format!("lock{newest}"))
}

/// The name after this one, of its kind.
fn after(name: &str) -> String {
    format!("{}{:010}.json", &name[..5], number_of(name) + 1)
}

fn number_of(name: &str) -> u64 {
    name[5..15].parse().expect("ten digits")
}

impl World {
    pub fn admit_others(&mut self, beside: Beside) {
        for index in 0..2 {
            let span_ms = beside.behind_ms + beside.ahead_ms + 1;
            let ahead_ms = self.chance.below(span_ms) as i64 - beside.behind_ms as i64;
            self.others.push(Other::new(beside, ahead_ms));
            let at_ms = self.chance.below(3 * LEASE_MS);
            self.at(at_ms, Event::OtherTick { other: index });
        }
    }

    /// It looks, or it renews.
    pub fn on_other_tick(&mut self, other: usize) {
        let now_ms = self.now_ms;
        let Some(lead) = self.others[other].lead.clone() else {
            let url = format!(
                "https://s3.example.com/jobs/?list-type=2&max-keys=1000&prefix={FOLDER}%2Flock"
            );
            return self.ask(other, Stage::List, get(&url));
        };
        if now_ms >= lead.until_ms {
            self.others[other].lead = None;
        } else if now_ms < lead.retires_ms {
            let body = self.others[other].body(now_ms, lead.acquired_ms, false);
            return self.ask(other, Stage::Touch, put(&lead.name, body));
        } else {
            // It stops its work, and then says so, unless it has died.
            self.others[other].lead = None;
            if self.chance.below(3) > 0 {
                let body = self.others[other].body(now_ms, lead.acquired_ms, true);
                return self.ask(other, Stage::Expire, put(&lead.name, body));
            }
        }
        let rest_ms = self.chance.below(3 * LEASE_MS);
        self.at(now_ms + rest_ms, Event::OtherTick { other });
    }

    fn ask(&mut self, other: usize, stage: Stage, mut request: Request) {
        request.headers_mut().insert("authorization", HeaderValue::from_static("signed"));
        self.ids += 1;
        let (id, now_ms) = (self.ids, self.now_ms);
        let member = &mut self.others[other];
        (member.awaited, member.sent_ms, member.stage) = (id, now_ms, stage);
        self.at(now_ms + REQUEST_MS, Event::OtherTimeout { other, id });
        self.send(Who::Other(other), id, request);
    }

    pub fn on_other_timeout(&mut self, other: usize, id: u64) {
        if self.others[other].awaited == id {
            self.rest(other);
        }
    }

    /// Until its next look or renewal.
    fn rest(&mut self, other: usize) {
        self.others[other].awaited = 0;
        let longest_ms = if self.others[other].stage == Stage::Expire { 3 } else { 1 } * LEASE_MS;
        let rest_ms = LEASE_MS / 10 + self.chance.below(longest_ms / 5);
        self.at(self.now_ms + rest_ms, Event::OtherTick { other });
    }

    pub fn on_other_deliver(&mut self, other: usize, id: u64, response: &Response) {
        if self.others[other].awaited != id {
            return;
        }
        let (now_ms, landed) = (self.now_ms, response.status() == 200);
        match self.others[other].stage.clone() {
            Stage::List if landed => {
                return match newest(&response.body().bytes) {
                    None => self.create(other, "lock_0000000001.json".to_owned()),
                    Some(name) => {
                        let request = get(&url(&name));
                        self.ask(other, Stage::Get(name), request);
                    }
                };
            }
            Stage::Get(name) if landed && self.others[other].is_free(now_ms, response) => {
                return self.create(other, after(&name));
            }
            Stage::Create(name) if landed => {
                let until_ms = self.others[other].until_ms(self.others[other].sent_ms);
                let retires_ms = now_ms + self.chance.below(6 * LEASE_MS);
                let acquired_ms = self.others[other].clock_ms(now_ms);
                self.count_succession(number_of(&name), false);
                self.others[other].lead = Some(Lead { name, acquired_ms, until_ms, retires_ms });
                self.note(|| format!("theirs {other} leads until {until_ms}"));
            }
            Stage::Touch if landed => {
                let until_ms = self.others[other].until_ms(self.others[other].sent_ms);
                // What has run out by its own clock is not extended by an answer.
                let lead = self.others[other].lead.as_mut().filter(|lead| now_ms < lead.until_ms);
                if let Some(lead) = lead {
                    lead.until_ms = until_ms;
                }
            }
            _ => {}
        }
        self.rest(other);
    }

    fn create(&mut self, other: usize, name: String) {
        let now_ms = self.now_ms;
        let acquired_ms = self.others[other].clock_ms(now_ms);
        let mut request = put(&name, self.others[other].body(now_ms, acquired_ms, false));
        request.headers_mut().insert("if-none-match", HeaderValue::from_static("*"));
        self.ask(other, Stage::Create(name), request);
    }

    /// Counts whom a new leader has succeeded: who made the epoch before this one, and whether it was released.
    pub fn count_succession(&mut self, number: u64, by_ours: bool) {
        let named = |key: &&String| key.contains(&format!("{:010}.json", number - 1));
        let Some(key) = self.bucket.objects.keys().find(named) else { return };
        let body = String::from_utf8_lossy(&self.bucket.objects[key].bytes).into_owned();
        let was_ours = body.contains("\"session\"");
        let released = ["\"expired\":true", "\"holderIdentity\":\"\""];
        let released = released.iter().any(|sign| body.contains(sign));
        let counts = &mut self.successions;
        match (was_ours, by_ours, released) {
            (true, false, false) => counts.from_expired += 1,
            (true, false, true) => counts.from_released += 1,
            (false, true, false) => counts.to_ours += 1,
            (false, true, true) => counts.to_ours_released += 1,
            _ => {}
        }
    }
}

fn url(name: &str) -> String {
    format!("https://s3.example.com/jobs/{FOLDER}/{name}")
}

fn put(name: &str, body: Vec<u8>) -> Request {
    request::new(Method::PUT, &url(name), &[], body).expect("a request")
}

fn get(url: &str) -> Request {
    request::new(Method::GET, url, &[], Vec::new()).expect("a request")
}
