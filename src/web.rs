//! The host that every JavaScript runtime is. What takes time is begun by `js/host.js` under a number and
//! settled by that number: no promise and no closure crosses the boundary, so a trap never surfaces in
//! somebody else's event loop, and nothing on either side holds on to the other.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use wasm_bindgen::prelude::*;

use crate::clock::Now;
use crate::config::HostClock;
use crate::driver::Host;
use crate::json::{self, Object};
use crate::request::{self, Body, Request, Response};
use crate::store::s3::ANSWER_HEADERS;
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
    fn fetch(this: &JsHost, id: u32, head: &str, body: Vec<u8>, limit: u32);

    #[wasm_bindgen(method)]
    fn credentials(this: &JsHost, id: u32, fresh: bool);

    #[wasm_bindgen(method)]
    fn read(this: &JsHost, id: u32, key: &str, limit: u32);

    #[wasm_bindgen(method)]
    fn write(this: &JsHost, id: u32, key: &str, body: Vec<u8>, etag: Option<String>);

    #[wasm_bindgen(method)]
    fn lock(this: &JsHost, id: u32, name: &str, shard_id: &str, owner_id: &str, ttl_ms: f64);

    #[wasm_bindgen(method)]
    fn cancel(this: &JsHost, id: u32);

    #[wasm_bindgen(method, catch)]
    fn random(this: &JsHost) -> Result<Vec<u8>, JsValue>;

    #[wasm_bindgen(method, getter, js_name = singleClock)]
    fn single_clock(this: &JsHost) -> bool;

    #[wasm_bindgen(method, getter)]
    fn locker(this: &JsHost) -> bool;

    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn performance_now() -> f64;

    #[wasm_bindgen(js_namespace = Date, js_name = now)]
    fn date_now() -> f64;
}

/// How an operation ended.
#[derive(Clone, Debug, Default)]
pub struct Settled {
    /// False: it failed, and `head` says why.
    pub ok: bool,
    /// A JSON object, or the text of the error.
    pub head: String,
    /// Bytes that came with it.
    pub body: Vec<u8>,
}

impl Settled {
    /// The head's fields, if it is an object.
    pub fn fields(&self) -> Option<Object> {
        Object::read(self.head.as_bytes())
    }
}

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
            Operation::Settled(settled) => {
                let settled = std::mem::take(settled);
                open.swap_remove(at);
                Poll::Ready(settled)
            }
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

/// Method, URL and headers as JSON.
fn request_head(request: &Request) -> String {
    let headers = request.headers().iter();
    let headers: BTreeMap<&str, &str> =
        headers.map(|(name, value)| (name.as_str(), value.to_str().unwrap_or_default())).collect();
    let (method, url) = (request.method().as_str(), request.uri().to_string());
    serde_json::json!({ "method": method, "url": url, "headers": headers }).to_string()
}

impl Host for Web {
    fn now(&self) -> Now {
        self.timers.now(mono_ms(self.timers.clock()), date_now() as u64)
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
        let head = request_head(&request);
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let begin = |host: &JsHost, id| host.fetch(id, &head, request.into_body(), limit);
        let settled = self.link.begin(begin).await;
        if !settled.ok {
            return Err(settled.head);
        }
        let strange = || "the runtime gave an answer that is none".to_owned();
        let fields = settled.fields().ok_or_else(strange)?;
        let status = fields.get("status").and_then(json::whole);
        let status = status.and_then(|status| u16::try_from(status).ok()).ok_or_else(strange)?;
        let truncated = fields.get("truncated").and_then(json::flag) == Some(true);
        let body = Body { bytes: settled.body, truncated };
        let headers: Vec<_> = ANSWER_HEADERS
            .iter()
            .filter_map(|name| Some((*name, fields.get(name).and_then(json::text)?)))
            .collect();
        let headers = headers.iter().map(|(name, value)| (*name, value.as_str()));
        request::answer(status, headers, body).map_err(|_| strange())
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
