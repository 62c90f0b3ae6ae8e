//! The host that every JavaScript runtime is: its clocks, timers, randomness and `fetch`, by their global names.

use alloc::rc::Rc;
use core::cell::RefCell;
use core::future::Future;

use js_sys::{Array, Function, Object, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortController, ReadableStreamDefaultReader};

use crate::clock::Now;
use crate::config::HostClock;
use crate::driver::{Host, Question};
use crate::election::PeerAnswer;
use crate::json::first;
use crate::peer;
use crate::prelude::*;
use crate::request::{Body, Request, Response};
use crate::store::s3::ANSWER_HEADERS;
use crate::store::{Fault, FaultKind};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn performance_now() -> f64;

    #[wasm_bindgen(js_namespace = Date, js_name = now)]
    fn date_now() -> f64;

    #[wasm_bindgen(js_namespace = crypto, js_name = getRandomValues, catch)]
    fn get_random_values(array: &Uint8Array) -> Result<JsValue, JsValue>;

    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(callback: &Function, ms: f64) -> JsValue;

    #[wasm_bindgen(js_name = clearTimeout)]
    fn clear_timeout(timer: &JsValue);

    #[wasm_bindgen(js_name = fetch, catch)]
    fn global_fetch(url: &str, init: &JsValue) -> Result<JsValue, JsValue>;
}

/// The JavaScript runtime. Cheap to clone; clones share the pending timers.
#[derive(Clone)]
pub struct Web {
    clock: HostClock,
    /// Whether pending timers let a process end (`unref`; Node, Deno and Bun know it).
    unref: bool,
    pending: Rc<RefCell<Pending>>,
}

/// The timers that were set and have not fired: when each is due on the one clock, and its number.
#[derive(Default)]
struct Pending {
    timers: Vec<(u64, u64)>,
    numbers: u64,
    /// How many timers fired before their due time by a single clock, which then stepped back (S11).
    early: u32,
}

/// What a timer's own rounding may take off, in milliseconds.
const TIMER_ROUNDING_MS: u64 = 2;

impl Web {
    /// The runtime that this code runs in.
    pub fn new(clock: HostClock, unref: bool) -> Self {
        Self { clock, unref, pending: Rc::default() }
    }

    /// What clocks this runtime has: Workers have one, which stands still between I/O (S11).
    pub fn detect_clock() -> HostClock {
        let navigator = Reflect::get(&js_sys::global(), &"navigator".into()).unwrap_or_default();
        let agent = Reflect::get(&navigator, &"userAgent".into()).unwrap_or_default();
        match agent.as_string().as_deref() {
            Some("Cloudflare-Workers") => HostClock::One,
            _ => HostClock::Two,
        }
    }

    fn mono_ms(&self) -> u64 {
        match self.clock {
            HostClock::One => date_now() as u64,
            HostClock::Two => performance_now() as u64,
        }
    }

    /// Sends a request and reads the answer's body up to `limit` bytes. Dropping the future aborts it.
    ///
    /// # Errors
    /// The request could not be made or no answer came. The text is the runtime's, which names no header.
    pub async fn fetch(&self, request: Request, limit: usize) -> Result<Response, String> {
        let abort = AbortOnDrop(AbortController::new().map_err(|error| describe(&error))?);
        let init = self.request_init(&request, &abort.0);
        let promised = global_fetch(&request.url, &init).map_err(|error| describe(&error))?;
        // Not every patched fetch gives a promise of the native kind.
        let response: web_sys::Response = JsFuture::from(Promise::resolve(&promised))
            .await
            .map_err(|error| describe(&error))?
            .dyn_into()
            .map_err(|_| "fetch gave no Response".to_owned())?;
        let mut headers = Vec::new();
        for name in ANSWER_HEADERS {
            if let Ok(Some(value)) = response.headers().get(name) {
                headers.push((name.to_owned(), value));
            }
        }
        let body = read_body(&response, limit).await?;
        Ok(Response { status: response.status(), headers, body })
    }

    fn request_init(&self, request: &Request, abort: &AbortController) -> JsValue {
        let init = Object::new();
        let put = |name: &str, value: &JsValue| {
            // A plain object takes any property.
            let _ = Reflect::set(&init, &name.into(), value);
        };
        put("method", &request.method.as_str().into());
        let headers = Array::new();
        for (name, value) in &request.headers {
            headers.push(&Array::of2(&name.into(), &value.into()));
        }
        put("headers", &headers);
        if !request.body.is_empty() {
            // Bytes, because a text would grow a content type.
            put("body", &Uint8Array::from(request.body.as_slice()));
        }
        put("redirect", &"manual".into());
        put("signal", abort.signal().as_ref());
        if self.clock == HostClock::Two {
            // Workers know `cache` only from some compatibility date on, and do not cache signed requests.
            put("cache", &"no-store".into());
        }
        init.into()
    }
}

impl Host for Web {
    fn now(&self) -> Now {
        let mono_ms = self.mono_ms();
        let wall_ms = date_now() as u64;
        let due_ms = self.pending.borrow().timers.iter().map(|(due_ms, _)| *due_ms).min();
        let held = self.clock == HostClock::One && due_ms == Some(mono_ms);
        let early_timers = self.pending.borrow().early;
        Now { mono_ms, wall_ms, held, early_timers }
    }

    async fn sleep(&self, ms: u64) {
        Timer::start(self, ms).await;
    }

    fn random(&self) -> Result<[u8; 16], String> {
        let array = Uint8Array::new_with_length(16);
        get_random_values(&array).map_err(|error| describe(&error))?;
        let mut bytes = [0; 16];
        array.copy_to(&mut bytes);
        Ok(bytes)
    }

    async fn ask_peer(&self, question: &Question) -> PeerAnswer {
        let Some(url) = peer::url(&question.addr, &question.own_addr) else {
            return PeerAnswer::Silent;
        };
        match self.fetch(Request::new("GET", url), peer::MAX_ANSWER_BYTES + 1).await {
            Ok(answer) => peer::judge(answer.status, &answer.body.bytes, &question.group),
            Err(_) => PeerAnswer::Silent,
        }
    }
}

struct AbortOnDrop(AbortController);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A pending `setTimeout`, given back when dropped.
struct Timer {
    promise: JsFuture,
    /// Ends the promise of a timer that was given back: one that never ends keeps its closures for ever.
    resolve: Option<Function>,
    timer: JsValue,
    web: Web,
    key: (u64, u64),
}

impl Timer {
    fn start(host: &Web, ms: u64) -> Self {
        let mut timer = JsValue::UNDEFINED;
        // Not `Function::default()`, which compiles a text: Workers forbid that.
        let mut end = None;
        let promise = Promise::new(&mut |resolve, _reject| {
            timer = set_timeout(&resolve, ms as f64);
            end = Some(resolve);
        });
        if host.unref
            && let Ok(unref) = Reflect::get(&timer, &"unref".into())
            && let Some(unref) = unref.dyn_ref::<Function>()
        {
            let _ = unref.call0(&timer);
        }
        let key = {
            let mut pending = host.pending.borrow_mut();
            pending.numbers += 1;
            let key = (host.mono_ms() + ms, pending.numbers);
            pending.timers.push(key);
            key
        };
        Self { promise: JsFuture::from(promise), resolve: end, timer, web: host.clone(), key }
    }
}

impl Future for Timer {
    type Output = ();

    fn poll(
        mut self: core::pin::Pin<&mut Self>,
        context: &mut core::task::Context<'_>,
    ) -> core::task::Poll<()> {
        core::pin::Pin::new(&mut self.promise).poll(context).map(|_| {
            // It fired: from here on the clock is not held at its due time any more.
            let early = self.web.mono_ms() + TIMER_ROUNDING_MS < self.key.0;
            let mut pending = self.web.pending.borrow_mut();
            pending.timers.retain(|key| *key != self.key);
            if early && self.web.clock == HostClock::One {
                pending.early += 1;
            }
        })
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        clear_timeout(&self.timer);
        if let Some(resolve) = &self.resolve {
            let _ = resolve.call0(&JsValue::UNDEFINED);
        }
        self.web.pending.borrow_mut().timers.retain(|key| *key != self.key);
    }
}

async fn read_body(response: &web_sys::Response, limit: usize) -> Result<Body, String> {
    let mut body = Body::default();
    let Some(stream) = response.body() else { return Ok(body) };
    let reader = Reflect::get(&stream, &"getReader".into())
        .and_then(|method| method.dyn_into::<Function>())
        .and_then(|method| method.call0(&stream))
        .map_err(|_| "the answer's body can't be read: somebody else took it".to_owned())?
        .unchecked_into::<ReadableStreamDefaultReader>();
    loop {
        let chunk = JsFuture::from(reader.read()).await.map_err(|error| describe(&error))?;
        let done = Reflect::get(&chunk, &"done".into()).unwrap_or_default();
        if done.is_truthy() {
            return Ok(body);
        }
        let value = Reflect::get(&chunk, &"value".into()).unwrap_or_default();
        let Ok(bytes) = value.dyn_into::<Uint8Array>() else {
            return Err("the answer's body is not made of bytes".to_owned());
        };
        let room = limit.saturating_sub(body.bytes.len());
        let length = bytes.length() as usize;
        if length <= room {
            body.bytes.extend_from_slice(&bytes.to_vec());
            continue;
        }
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        body.bytes.extend_from_slice(&bytes.subarray(0, room).to_vec());
        body.truncated = true;
        let _ = JsFuture::from(reader.cancel()).await;
        return Ok(body);
    }
}

/// An error of the runtime as text: its message and the cause's code (`ECONNREFUSED`), unless somebody's fetch
/// put a signed request into it.
pub fn describe(error: &JsValue) -> String {
    let text = |value: &JsValue, name: &str| {
        Reflect::get(value, &name.into()).ok().and_then(|found| found.as_string())
    };
    let message = text(error, "message")
        .or_else(|| error.as_string())
        .unwrap_or_else(|| "an error without a message".to_owned());
    let cause = Reflect::get(error, &"cause".into()).unwrap_or_default();
    let code = text(&cause, "code").or_else(|| text(&cause, "message"));
    let mut described = first(&message, 200).to_owned();
    if let Some(code) = code {
        described.push_str(" (");
        described.push_str(first(&code, 100));
        described.push(')');
    }
    let lowered = described.to_ascii_lowercase();
    let signed = ["signature", "aws4-hmac", "x-amz-", "authorization"];
    if signed.iter().any(|word| lowered.contains(word)) {
        return "an error whose text is not shown, because it quotes the signed request".to_owned();
    }
    described
}

/// A failed fetch as the store's fault.
pub fn network_fault(store: &str, message: &str) -> Fault {
    Fault::new(
        FaultKind::Network,
        [store, ": no answer: ", message, "; check the endpoint and the network"].concat(),
    )
}
