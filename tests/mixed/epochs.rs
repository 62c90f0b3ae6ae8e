//! Members of other makes that keep an object for each term: they list, judge the newest epoch by their own clock, create
//! the next number, believe in it without another look, touch it, and say when they give it up.

use edgelect::json::Object;
use edgelect::{EpochStore, S3Config, calendar, json};
use http::{HeaderValue, Method};

use crate::driver::prelude::*;
use crate::mixed::coordinator::{Coordinator, Lock};
use crate::mixed::world::{Group, Member, World, played};
use worlds::bucket::Bucket;

const FOLDER: &str = "leader/g";

/// A tenth of it has to bear the second by which `Last-Modified` is cut, and their clocks.
const LEASE_MS: u64 = 20_000;

const REQUEST_MS: u64 = 1_000;

/// What they write, and by what they judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Make {
    /// `validity_ms`, `expired`, and the store's `Last-Modified`.
    Validity,
    /// `holderIdentity`, `leaseDuration` and `renewTime`.
    Holder,
}

/// What members of another make keep to.
#[derive(Clone, Copy, Debug)]
struct Rules {
    make: Make,
    /// By how much their clocks are behind the store's, and ahead of it, at most.
    behind_ms: u64,
    ahead_ms: u64,
    /// How long before its lock has run out a leader of theirs stops, counted from before the request that it rests on;
    /// without one it never looks.
    reserve_ms: Option<u64>,
    /// What would be carried out later than this after it was sent is lost.
    latest_ms: u64,
}

impl Rules {
    /// What the page asks of them, at this lease and its margin.
    const fn of(make: Make) -> Self {
        // What a clock that is behind writes is old to the others, and so is what comes late over something newer.
        let (behind_ms, latest_ms) = match make {
            Make::Validity => (5_000, u64::MAX),
            Make::Holder => (1_000, 1_800),
        };
        Self { make, behind_ms, ahead_ms: 600, reserve_ms: Some(2_000), latest_ms }
    }
}

#[derive(Clone)]
struct Place {
    rules: Rules,
    bucket: Rc<RefCell<Bucket>>,
    /// Requests that nobody waits for any more, and when they arrive.
    late: Rc<RefCell<Vec<(u64, Request)>>>,
}

/// One member's way to the bucket.
#[derive(Clone)]
struct Net {
    rules: Rules,
    time: Virtual,
    bucket: Rc<RefCell<Bucket>>,
    chance: Rc<RefCell<Chance>>,
    late: Rc<RefCell<Vec<(u64, Request)>>>,
    cut_until_ms: Rc<Cell<u64>>,
    /// What one of theirs leads with: the epoch, since when, and until when by its own clock.
    lead: Rc<RefCell<Option<(String, u64, u64)>>>,
    transitions: Rc<Cell<u64>>,
}

impl Net {
    fn below(&self, bound: u64) -> u64 {
        self.chance.borrow_mut().below(bound)
    }

    fn perform(&self, request: &Request) -> Response {
        let (now_ms, front_end) = (self.time.now_ms.get(), self.below(2) as usize);
        self.bucket.borrow_mut().perform(now_ms, front_end, request)
    }

    /// What comes later than the rules have it is lost.
    fn comes_late(&self, request: Request) {
        let late_ms = self.below(3 * LEASE_MS);
        if late_ms <= self.rules.latest_ms {
            self.late.borrow_mut().push((self.time.now_ms.get() + late_ms, request));
        }
    }

    async fn send(self, request: Request) -> Result<Response, String> {
        if self.time.now_ms.get() < self.cut_until_ms.get() {
            return std::future::pending().await;
        }
        let reset = || Err("the connection was reset".to_owned());
        self.time.sleep(self.below(60)).await;
        let fate = self.below(30);
        match fate {
            0 => return reset(),
            1 => {
                self.comes_late(request);
                return std::future::pending().await;
            }
            2 if request.method() == Method::PUT => self.comes_late(request.clone()),
            _ => {}
        }
        let response = self.perform(&request);
        if fate == 3 {
            return reset();
        }
        self.time.sleep(self.below(60)).await;
        Ok(response)
    }

    /// A request of theirs; nothing of an answer that is no success.
    async fn ask(&self, mut request: Request) -> Option<Response> {
        request.headers_mut().insert("authorization", HeaderValue::from_static("signed"));
        let answer = self.time.within(REQUEST_MS, self.clone().send(request)).await;
        answer?.ok().filter(|response| response.status() == 200)
    }

    fn body(&self, clock: &Virtual, acquired_ms: u64, released: bool) -> Vec<u8> {
        let time = |ms: u64| calendar::rfc3339(ms as i64);
        let (seconds, holder) = (LEASE_MS / 1_000, if released { "" } else { "theirs" });
        let (acquired, renewed) = (time(acquired_ms), time(clock.wall_ms()));
        let transitions = self.transitions.get();
        let text = match self.rules.make {
            Make::Validity => format!(r#"{{"validity_ms":{LEASE_MS},"expired":{released}}}"#),
            Make::Holder => format!(
                r#"{{"holderIdentity":"{holder}","leaseDuration":"{seconds}s","acquireTime":"{acquired}","renewTime":"{renewed}","leaderTransitions":{transitions}}}"#
            ),
        };
        text.into_bytes()
    }

    /// Whether the newest epoch is free, as its rules have it. What it cannot read it leaves alone.
    fn is_free(&self, now_ms: u64, response: &Response) -> bool {
        let Some(fields) = Object::read(&response.body().bytes) else { return false };
        let text = |name| fields.get(name).and_then(json::text);
        match self.rules.make {
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
                let before = fields.get("leaderTransitions").and_then(json::whole);
                self.transitions.set(before.unwrap_or(0) + 1);
                text("holderIdentity").unwrap_or_default().is_empty()
                    || now_ms as i64 > renewed.unix_ms + LEASE_MS as i64
            }
        }
    }

    /// The name after the newest, if that is free.
    async fn next(&self, clock: &Virtual) -> Option<String> {
        let url = format!(
            "https://s3.example.com/jobs/?list-type=2&max-keys=1000&prefix={FOLDER}%2Flock"
        );
        let listing = self.ask(get(&url)).await?;
        let Some(name) = newest(&listing.body().bytes) else {
            return Some("lock_0000000001.json".to_owned());
        };
        let response = self.ask(get(&url_of(&name))).await?;
        let number: u64 = name[5..15].parse().expect("ten digits");
        let next = || format!("{}{:010}.json", &name[..5], number + 1);
        self.is_free(clock.wall_ms(), &response).then(next)
    }
}

impl Lock for Net {
    async fn take(&self, _id: &str, leads: bool, lease_ms: u64, clock: &Virtual) -> Option<u64> {
        let until_ms = |sent_ms: u64| {
            self.rules.reserve_ms.map_or(u64::MAX, |reserve_ms| sent_ms + lease_ms - reserve_ms)
        };
        let lead = self.lead.borrow().clone().filter(|_| leads);
        let (name, acquired_ms, until_ms) = match lead {
            Some((name, acquired_ms, led_ms)) => {
                let sent_ms = clock.wall_ms();
                let touched = self.ask(put(&name, self.body(clock, acquired_ms, false))).await;
                // What has run out by its own clock is not extended by an answer.
                let extends = touched.is_some() && clock.wall_ms() < led_ms;
                (name, acquired_ms, if extends { until_ms(sent_ms) } else { led_ms })
            }
            None => {
                let name = self.next(clock).await?;
                let sent_ms = clock.wall_ms();
                let mut create = put(&name, self.body(clock, sent_ms, false));
                create.headers_mut().insert("if-none-match", HeaderValue::from_static("*"));
                self.ask(create).await?;
                (name, sent_ms, until_ms(sent_ms))
            }
        };
        *self.lead.borrow_mut() = Some((name, acquired_ms, until_ms));
        Some(until_ms).filter(|until_ms| clock.wall_ms() < *until_ms)
    }

    /// It has stopped its work, and then says so.
    async fn release(&self, _id: &str) {
        let lead = self.lead.take();
        if let Some((name, acquired_ms, until_ms)) = lead
            && self.time.wall_ms() < until_ms
        {
            self.ask(put(&name, self.body(&self.time, acquired_ms, true))).await;
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

fn url_of(name: &str) -> String {
    format!("https://s3.example.com/jobs/{FOLDER}/{name}")
}

fn put(name: &str, body: Vec<u8>) -> Request {
    request::new(Method::PUT, &url_of(name), &[], body).expect("a request")
}

fn get(url: &str) -> Request {
    request::new(Method::GET, url, &[], Vec::new()).expect("a request")
}

type Fleet = World<Place>;

fn fleet(seed: u64, rules: Rules) -> Fleet {
    let bucket = Bucket { front_end_ms: vec![0, 500 * (seed % 3)], ..Bucket::default() };
    let place = Place { rules, bucket: Rc::new(RefCell::new(bucket)), late: Rc::default() };
    let mut fleet = World::new(50, seed, |_, _| place);
    let net = fleet.net();
    fleet.each_step = Box::new(move || {
        let now_ms = net.time.now_ms.get();
        let due: Vec<_> = net.late.borrow_mut().extract_if(.., |one| one.0 <= now_ms).collect();
        due.iter().for_each(|(_, request)| drop(net.perform(request)));
    });
    fleet
}

impl Fleet {
    fn net(&self) -> Net {
        let Place { rules, bucket, late } = self.place.clone();
        let (time, chance) = (self.time.clone(), Rc::clone(&self.chance));
        let (cut_until_ms, lead, transitions) = Default::default();
        Net { rules, time, bucket, chance, late, cut_until_ms, lead, transitions }
    }
}

impl Group for Place {
    fn ours(fleet: &Fleet) -> Member {
        let (name, net) = (format!("ours-{}", fleet.next_number()), fleet.net());
        let settings = Settings {
            lockfile_path: Some(FOLDER.to_owned()),
            server_id: Some(name.clone()),
            leader_timeout_ms: Some(LEASE_MS),
            frequent_interval_ms: Some(LEASE_MS / 3),
            infrequent_interval_ms: Some(LEASE_MS),
            max_lease_ms: Some(LEASE_MS),
            follow: Some(fleet.pick(&[Follow::Tight, Follow::Balanced, Follow::Frugal])),
            ..Settings::default()
        };
        let config = Config::new(&settings).expect("the settings keep every rule");
        let s3 = S3Config {
            format: match fleet.place.rules.make {
                Make::Validity => Format::Native,
                Make::Holder => Format::Kubernetes,
            },
            ..bucket_with(FOLDER)
        };
        let cut_until_ms = Rc::clone(&net.cut_until_ms);
        let host = fleet.time.drawing(&fleet.chance);
        let host = host.asking(move |request| net.clone().send(request));
        let store = EpochStore::new(s3, credentials(), host.clone()).expect("a plain bucket");
        let handle = Handle::new(new_election(&host, config).expect("it has chance"));
        fleet.elect(&name, handle.clone(), store, host, ());
        Member::ours(name, handle, cut_until_ms)
    }

    fn theirs(fleet: &Fleet) -> Option<Member> {
        let (name, net, rules) =
            (format!("theirs-{}", fleet.next_number()), fleet.net(), fleet.place.rules);
        let span_ms = rules.behind_ms + rules.ahead_ms + 1;
        let host = fleet.time.ahead(fleet.below(span_ms) as i64 - rules.behind_ms as i64);
        let renew_ms = LEASE_MS / 10 + fleet.below(LEASE_MS / 5);
        let net = Net { time: host.clone(), ..net };
        let theirs = Coordinator::new(&name, net, host, LEASE_MS, renew_ms);
        let theirs = fleet.coordinate(theirs);
        Some(Member::theirs(name, theirs.stops, theirs.lock.cut_until_ms))
    }
}

#[test]
fn beside_members_of_another_make_one_leads_and_each_make_succeeds_the_other() {
    for make in [Make::Validity, Make::Holder] {
        println!("{make:?}");
        played(50, 8, LEASE_MS, 50, |seed| fleet(seed, Rules::of(make)));
    }
}

/// They look at no listing after it.
#[test]
fn a_creation_of_theirs_that_was_long_on_its_way_finds_its_number_taken() {
    let mut fleet = fleet(2, Rules::of(Make::Validity));
    let led = |fleet: &mut Fleet| {
        let member = Place::ours(fleet);
        assert!(fleet.led_by(&member.name, 4 * LEASE_MS), "{}", member.name);
        member
    };
    led(&mut fleet).stop();
    assert!(fleet.pass_until(5_000, |fleet| fleet.leaders().is_empty()));
    // One of theirs has listed the released epoch, and creates the next.
    let (sent_ms, net) = (fleet.now_ms(), fleet.net());
    let mut create = put("lock_0000000002.json", net.body(&fleet.time, sent_ms, false));
    for (name, value) in [("if-none-match", "*"), ("authorization", "signed")] {
        create.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    for _ in 0..3 {
        led(&mut fleet).stop();
        fleet.pass(1_000);
    }
    assert!(fleet.now_ms() < sent_ms + LEASE_MS, "{}", fleet.now_ms() - sent_ms);
    assert_eq!(net.perform(&create).status(), 412);
    led(&mut fleet);
    fleet.pass(12 * LEASE_MS);
    let left: Vec<String> = fleet.place.bucket.borrow().objects.keys().cloned().collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn what_members_of_another_make_must_keep_to_is_seen_where_it_is_not_kept() {
    let [article, holder] = [Make::Validity, Make::Holder].map(Rules::of);
    for rules in [
        Rules { ahead_ms: 6_000, ..article },
        Rules { reserve_ms: None, ..article },
        Rules { ahead_ms: 6_000, ..holder },
        Rules { reserve_ms: None, ..holder },
        Rules { latest_ms: u64::MAX, ..holder },
    ] {
        let seen = (0..200).find(|seed| fleet(*seed, rules).breaks(8, LEASE_MS));
        println!("{rules:?}: {seen:?}");
        assert!(seen.is_some(), "{rules:?}");
    }
}
