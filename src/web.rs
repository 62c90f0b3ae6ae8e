//! The host that every JavaScript runtime is. What takes time is begun by `js/host.js` under a number and
//! settled by that number: no promise and no closure crosses the boundary, so a trap never surfaces in
//! somebody else's event loop, and nothing on either side holds on to the other.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use wasm_bindgen::prelude::*;

use crate::clock::Now;
use crate::config::HostClock;
use crate::driver::Host;
use crate::electors::budget::Urgency;
use crate::electors::queue::Queue;
use crate::request::{self, Body, Request, Response};
use crate::sigv4::Credentials;
use crate::timers::{Due, Timers};

#[wasm_bindgen]
extern "C" {
    /// The `Host` of `js/host.js`. None of its methods throws or calls back before it returns, but `random`
    /// may throw where there is no randomness.
    #[derive(Clone)]
    pub type JsHost;

    #[wasm_bindgen(method)]
    fn sleep(this: &JsHost, id: u32, ms: f64);

    #[wasm_bindgen(method)]
    fn fetch(
        this: &JsHost,
        id: u32,
        method: &str,
        url: &str,
        headers: Vec<String>,
        body: Vec<u8>,
        limit: u32,
    );

    #[wasm_bindgen(method, js_name = askPeer)]
    fn ask_peer(this: &JsHost, id: u32, url: &str, limit: u32);

    #[wasm_bindgen(method)]
    fn credentials(this: &JsHost, id: u32, fresh: bool);

    #[wasm_bindgen(method)]
    fn read(this: &JsHost, id: u32, key: &str, limit: u32);

    #[wasm_bindgen(method)]
    fn write(this: &JsHost, id: u32, key: &str, body: Vec<u8>, etag: Option<String>);

    #[wasm_bindgen(method)]
    fn lock(this: &JsHost, id: u32, name: &str, shard_id: &str, owner_id: &str, ttl_ms: f64);

    #[wasm_bindgen(method)]
    fn turn(this: &JsHost, id: u32, urgency: u8, fence_ms: f64);

    #[wasm_bindgen(method)]
    fn leave(this: &JsHost, id: u32);

    #[wasm_bindgen(method)]
    fn cancel(this: &JsHost, id: u32);

    #[wasm_bindgen(method, catch)]
    fn random(this: &JsHost) -> Result<Vec<u8>, JsValue>;

    #[wasm_bindgen(method, getter, js_name = singleClock)]
    fn single_clock(this: &JsHost) -> bool;

    #[wasm_bindgen(method, js_name = isHeld)]
    fn is_held(this: &JsHost, ms: f64) -> bool;

    #[wasm_bindgen(method, getter)]
    fn locker(this: &JsHost) -> bool;

    #[wasm_bindgen(method, getter)]
    fn shares(this: &JsHost) -> bool;

    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn performance_now() -> f64;

    #[wasm_bindgen(js_namespace = Date, js_name = now)]
    fn date_now() -> f64;
}

/// How an operation ended.
#[derive(Debug)]
pub enum Settled {
    /// It failed, and why.
    Failed(String),
    /// The time of a `sleep` is over.
    Slept,
    /// A `fetch` was answered.
    Fetched(Fetched),
    /// The credentials that were asked for.
    Given(Credentials),
    /// A `read` found an object.
    Found(Found),
    /// A `read` found nothing.
    Missing,
    /// A `read` gave what is no object, and why.
    Nonsense(String),
    /// A `write` took effect; with the object's new ETag, if the storage gave one.
    Written(Option<String>),
    /// A `write` met another version.
    Refused,
    /// What a locker has answered.
    Locked(bool),
    /// A request may leave.
    Turned,
}

/// An answer to a `fetch`.
#[derive(Debug)]
pub struct Fetched {
    /// The status.
    pub status: u16,
    /// The headers: each name and its value after it.
    pub headers: Vec<String>,
    /// As much of the body as was asked for.
    pub body: Body,
}

/// An object of a storage that the application brings.
#[derive(Debug)]
pub struct Found {
    /// The version of this body.
    pub etag: String,
    /// The body, or as much of it as was asked for.
    pub body: Vec<u8>,
    /// The storage's clock, in milliseconds since the Unix epoch, if it has one.
    pub date_ms: Option<u64>,
    /// When the object was written last by that clock, in milliseconds since the Unix epoch.
    pub last_modified_ms: Option<u64>,
}

impl Settled {
    /// Why nothing is known of an operation that has ended like this.
    pub fn failure(self) -> String {
        match self {
            Self::Failed(why) => why,
            _ => STRANGE.to_owned(),
        }
    }
}

const STRANGE: &str = "the runtime gave an answer that is none";

/// The JavaScript side, and the operations that it has begun for us.
pub struct Link {
    host: JsHost,
    numbers: RefCell<u32>,
    open: RefCell<Vec<(u32, Operation)>>,
}

enum Operation {
    Running(Option<Waker>),
    Settled(Settled),
}

impl Link {
    /// A link over which nothing has been asked yet.
    pub fn new(host: JsHost) -> Rc<Self> {
        Rc::new(Self { host, numbers: RefCell::default(), open: RefCell::default() })
    }

    /// The JavaScript side says how an operation ended. A number that nobody waits for any more is ignored.
    pub fn settle(&self, id: u32, settled: Settled) {
        let mut open = self.open.borrow_mut();
        let Some((_, operation)) = open.iter_mut().find(|(other, _)| *other == id) else { return };
        if let Operation::Running(waker) = std::mem::replace(operation, Operation::Settled(settled))
        {
            drop(open);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Begins an operation; dropping the future cancels it.
    fn begin(self: &Rc<Self>, start: impl FnOnce(&JsHost, u32)) -> Begun {
        let id = {
            let mut numbers = self.numbers.borrow_mut();
            *numbers = numbers.wrapping_add(1);
            *numbers
        };
        self.open.borrow_mut().push((id, Operation::Running(None)));
        start(&self.host, id);
        Begun { link: Rc::clone(self), id }
    }
}

/// An operation of the JavaScript side.
pub struct Begun {
    link: Rc<Link>,
    id: u32,
}

impl Future for Begun {
    type Output = Settled;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Settled> {
        let mut open = self.link.open.borrow_mut();
        let found = open.iter().position(|(id, _)| *id == self.id);
        let at = found.expect("it is open until it is polled to its end or dropped");
        match &mut open[at].1 {
            Operation::Running(waker) => {
                *waker = Some(context.waker().clone());
                Poll::Pending
            }
            Operation::Settled(_) => match open.swap_remove(at).1 {
                Operation::Settled(settled) => Poll::Ready(settled),
                Operation::Running(_) => unreachable!("it was settled a moment ago"),
            },
        }
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        let mut open = self.link.open.borrow_mut();
        let Some(at) = open.iter().position(|(id, _)| *id == self.id) else { return };
        if let (_, Operation::Running(_)) = open.swap_remove(at) {
            drop(open);
            self.link.host.cancel(self.id);
        }
    }
}

/// The JavaScript runtime. Cheap to clone; clones share the pending timers.
#[derive(Clone)]
pub struct Web {
    link: Rc<Link>,
    timers: Timers,
}

impl Web {
    /// The runtime behind this link.
    pub fn new(link: Rc<Link>) -> Self {
        let timers = Timers::new(Self::clock_of(&link.host));
        Self { link, timers }
    }

    /// What clocks a runtime has: Workers have one, which stands still between I/O (S11).
    pub fn clock_of(host: &JsHost) -> HostClock {
        if host.single_clock() { HostClock::One } else { HostClock::Two }
    }

    /// Whether the storage of the application is a backend of three calls and no versions.
    pub fn is_locker(&self) -> bool {
        self.link.host.locker()
    }

    /// Asks for credentials; `fresh` if the ones that were given last have been refused.
    pub async fn credentials(&self, fresh: bool) -> Settled {
        self.link.begin(|host, id| host.credentials(id, fresh)).await
    }

    /// Calls `get` of a storage that the application brings.
    pub async fn read(&self, key: &str, limit: usize) -> Settled {
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        self.link.begin(|host, id| host.read(id, key, limit)).await
    }

    /// Calls `putIfMatch` of a storage that the application brings.
    pub async fn write(&self, key: &str, body: Vec<u8>, etag: Option<String>) -> Settled {
        self.link.begin(|host, id| host.write(id, key, body, etag)).await
    }

    /// Calls `tryAcquire`, `renew` or `release` of a locker that the application brings.
    pub async fn lock(&self, name: &str, shard_id: &str, owner_id: &str, ttl_ms: u64) -> Settled {
        let ttl_ms = ttl_ms as f64;
        self.link.begin(|host, id| host.lock(id, name, shard_id, owner_id, ttl_ms)).await
    }
}

fn mono_ms(clock: HostClock) -> u64 {
    match clock {
        HostClock::One => date_now() as u64,
        HostClock::Two => performance_now() as u64,
    }
}

/// Each header's name, and its value after it.
fn pairs(request: &Request) -> Vec<String> {
    let headers = request.headers().iter();
    headers
        .flat_map(|(name, value)| [name.as_str(), value.to_str().unwrap_or_default()])
        .map(ToOwned::to_owned)
        .collect()
}

fn fetched(settled: Settled) -> Result<Response, String> {
    match settled {
        Settled::Fetched(Fetched { status, headers, body }) => {
            let pairs = headers.chunks_exact(2).map(|pair| (pair[0].as_str(), pair[1].as_str()));
            request::answer(status, pairs, body).map_err(|_| STRANGE.to_owned())
        }
        other => Err(other.failure()),
    }
}

impl Host for Web {
    fn now(&self) -> Now {
        let clock = self.timers.clock();
        let mut now = self.timers.now(mono_ms(clock), date_now() as u64);
        // The package sets timers that no engine knows, and an isolate has many engines.
        now.held |= clock == HostClock::One && self.link.host.is_held(now.mono_ms as f64);
        now
    }

    async fn sleep(&self, ms: u64) {
        Timer::start(self, ms).await;
    }

    fn random(&self) -> Result<[u8; 16], String> {
        let refused = |_| "the runtime refuses random bytes".to_owned();
        let bytes = self.link.host.random().map_err(refused)?;
        bytes.try_into().map_err(|_| "the runtime gave too few random bytes".to_owned())
    }

    async fn fetch(&self, request: Request, limit: usize) -> Result<Response, String> {
        let (method, url) = (request.method().clone(), request.uri().to_string());
        let headers = pairs(&request);
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let begin = |host: &JsHost, id| {
            host.fetch(id, method.as_str(), &url, headers, request.into_body(), limit);
        };
        fetched(self.link.begin(begin).await)
    }

    async fn ask_peer(&self, request: Request, limit: usize) -> Result<Response, String> {
        let (url, limit) = (request.uri().to_string(), u32::try_from(limit).unwrap_or(u32::MAX));
        fetched(self.link.begin(|host, id| host.ask_peer(id, &url, limit)).await)
    }
}

/// Requests of many groups wait for their turn in JavaScript, which wakes the engine of the one whose turn it is.
impl Queue for Web {
    type Turn = Option<WebTurn>;

    async fn turn(&self, urgency: Urgency) -> Option<WebTurn> {
        if !self.link.host.shares() {
            return None;
        }
        let (kind, fence_ms) = urgency.parts();
        let begun = self.link.begin(|host, id| host.turn(id, kind, fence_ms as f64));
        let turn = WebTurn { link: Rc::clone(&self.link), id: begun.id };
        begun.await;
        Some(turn)
    }
}

/// A place among the requests that are under way, given back when dropped.
pub struct WebTurn {
    link: Rc<Link>,
    id: u32,
}

impl Drop for WebTurn {
    fn drop(&mut self) {
        self.link.host.leave(self.id);
    }
}

/// A pending timer, given back when dropped.
struct Timer {
    begun: Begun,
    clock: HostClock,
    due: Option<Due>,
}

impl Timer {
    fn start(web: &Web, ms: u64) -> Self {
        let clock = web.timers.clock();
        let due = Some(web.timers.set(mono_ms(clock) + ms));
        let begun = web.link.begin(|host, id| host.sleep(id, ms as f64));
        Self { begun, clock, due }
    }
}

impl Future for Timer {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.begun).poll(context).map(|_| {
            if let Some(due) = self.due.take() {
                due.fired(mono_ms(self.clock));
            }
        })
    }
}
