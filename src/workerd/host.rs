//! A Worker's globals as a host.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use js_sys::Uint8Array;
use js_sys::futures::JsFuture;
use wasm_bindgen::prelude::*;
use web_sys::{
    AbortController, Headers, ReadableStreamDefaultReader, RequestInit, RequestRedirect,
};

use super::problem;
use crate::clock::Now;
use crate::config::HostClock;
use crate::driver::Host;
use crate::request::{self, Body, Request, Response};
use crate::store::s3::ANSWER_HEADERS;
use crate::timers::{Due, Timers};

#[wasm_bindgen]
extern "C" {
    /// A number, or an object where `nodejs_compat` says so.
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(callback: &Closure<dyn FnMut()>, ms: f64) -> JsValue;

    #[wasm_bindgen(js_name = clearTimeout)]
    fn clear_timeout(timer: &JsValue);

    #[wasm_bindgen(js_name = fetch, catch)]
    fn global_fetch(url: &str, init: &RequestInit) -> Result<js_sys::Promise, JsValue>;

    #[wasm_bindgen(js_namespace = crypto, js_name = getRandomValues, catch)]
    fn get_random_values(bytes: &mut [u8]) -> Result<(), JsValue>;
}

/// The host that one event of a Worker is. Cheap to clone; clones share the pending timers.
///
/// Made in each event anew. Workers have one clock, so settings must say [`HostClock::One`], as
/// [`config`](super::config) does.
#[derive(Clone)]
pub struct Workerd {
    timers: Timers,
}

impl Default for Workerd {
    fn default() -> Self {
        Self::new()
    }
}

impl Workerd {
    /// No timer is pending yet.
    pub fn new() -> Self {
        Self { timers: Timers::new(HostClock::One) }
    }
}

fn clock_ms() -> u64 {
    js_sys::Date::now() as u64
}

impl Host for Workerd {
    fn now(&self) -> Now {
        let now_ms = clock_ms();
        self.timers.now(now_ms, now_ms)
    }

    async fn sleep(&self, ms: u64) {
        Timer::start(&self.timers, ms).await;
    }

    fn random(&self) -> Result<[u8; 16], String> {
        let mut bytes = [0; 16];
        get_random_values(&mut bytes).map_err(|thrown| problem(&thrown))?;
        Ok(bytes)
    }

    async fn fetch(&self, request: Request, limit: usize) -> Result<Response, String> {
        exchange(request, limit).await.map_err(|thrown| problem(&thrown))
    }
}

/// A pending timer, given back when dropped.
struct Timer {
    id: JsValue,
    fired: Rc<Fired>,
    due: Option<Due>,
    /// What `id` calls; it must live until that is given back.
    _callback: Closure<dyn FnMut()>,
}

#[derive(Default)]
struct Fired {
    yes: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Timer {
    fn start(timers: &Timers, ms: u64) -> Self {
        let due = Some(timers.set(clock_ms() + ms));
        let fired = Rc::<Fired>::default();
        let told = Rc::clone(&fired);
        let callback = Closure::<dyn FnMut()>::new(move || {
            told.yes.set(true);
            if let Some(waker) = told.waker.take() {
                waker.wake();
            }
        });
        let id = set_timeout(&callback, ms as f64);
        Self { id, fired, due, _callback: callback }
    }
}

impl Future for Timer {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if !self.fired.yes.get() {
            self.fired.waker.replace(Some(context.waker().clone()));
            return Poll::Pending;
        }
        if let Some(due) = self.due.take() {
            due.fired(clock_ms());
        }
        Poll::Ready(())
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if !self.fired.yes.get() {
            clear_timeout(&self.id);
        }
    }
}

/// A request on its way; dropping it ends the connection, unless the answer was read to its end.
struct UnderWay(AbortController);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn exchange(request: Request, limit: usize) -> Result<Response, JsValue> {
    let under_way = UnderWay(AbortController::new()?);
    let headers = Headers::new()?;
    for (name, value) in request.headers() {
        headers.append(name.as_str(), value.to_str().unwrap_or_default())?;
    }
    let init = RequestInit::new();
    init.set_method(request.method().as_str());
    init.set_headers(&headers);
    init.set_redirect(RequestRedirect::Manual);
    init.set_signal(Some(&under_way.0.signal()));
    if !request.body().is_empty() {
        // Bytes, because a text would grow a content type.
        init.set_body(&Uint8Array::from(request.body().as_slice()));
    }
    let answer = JsFuture::from(global_fetch(&request.uri().to_string(), &init)?).await?;
    let answer = answer.unchecked_into::<web_sys::Response>();
    let body = match answer.body() {
        Some(stream) => read_body(&stream.get_reader().unchecked_into(), limit).await?,
        None => Body::default(),
    };
    let mut headers = Vec::new();
    for name in ANSWER_HEADERS {
        if let Some(value) = answer.headers().get(name)? {
            headers.push((name, value));
        }
    }
    let headers = headers.iter().map(|(name, value)| (*name, value.as_str()));
    request::answer(answer.status(), headers, body)
        .map_err(|_| JsValue::from_str("an answer that is none"))
}

async fn read_body(reader: &ReadableStreamDefaultReader, limit: usize) -> Result<Body, JsValue> {
    let mut body = Body::default();
    while !body.truncated {
        let read = JsFuture::from(reader.read()).await?;
        if js_sys::Reflect::get(&read, &"done".into())?.is_truthy() {
            break;
        }
        let chunk = js_sys::Reflect::get(&read, &"value".into())?.unchecked_into::<Uint8Array>();
        let room = limit - body.bytes.len();
        body.truncated = chunk.length() as usize > room;
        let kept = if body.truncated { chunk.subarray(0, room as u32) } else { chunk };
        body.bytes.extend_from_slice(&kept.to_vec());
    }
    Ok(body)
}
