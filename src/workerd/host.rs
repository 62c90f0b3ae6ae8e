//! A Worker's globals as a host.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use wasm_bindgen::prelude::*;
use worker::js_sys::{Date, Function};

use super::problem::told;
use super::send;
use crate::clock::Now;
use crate::driver::Host;
use crate::request::{Request, Response};
use crate::timers::{Due, Timers};

#[wasm_bindgen]
extern "C" {
    /// Calls `then` with `callback`. Gives a number, or an object where `nodejs_compat` says so.
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(then: &Function, ms: f64, callback: &Closure<dyn FnMut()>) -> JsValue;

    #[wasm_bindgen(thread_local_v2, js_name = queueMicrotask)]
    static QUEUE_MICROTASK: Function;

    #[wasm_bindgen(js_name = clearTimeout)]
    fn clear_timeout(timer: &JsValue);

    #[wasm_bindgen(js_namespace = crypto, js_name = getRandomValues, catch)]
    fn get_random_values(bytes: &mut [u8]) -> Result<(), JsValue>;
}

/// The host that one event of a Worker is. Cheap to clone; clones share the pending timers.
///
/// Made in each event anew. Workers have one clock, so settings must say
/// [`HostClock::One`](crate::config::HostClock::One), as [`config`](super::config) does.
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
    /// None of its own timers is pending yet.
    pub fn new() -> Self {
        Self { timers: Timers::of_isolate() }
    }
}

fn clock_ms() -> u64 {
    Date::now() as u64
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
        get_random_values(&mut bytes).map_err(|thrown| told(&thrown))?;
        Ok(bytes)
    }

    async fn fetch(&self, request: Request, limit: usize) -> Result<Response, String> {
        send::exchange(request, limit).await.map_err(|error| told(&error.into()))
    }
}

/// A pending timer, given back when dropped. Not crate `worker`'s `Delay`, which wakes only the task that polled it first and
/// takes a long time for a negative one.
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
        // As a microtask: what breaks down in a timer's own callback no listener hears of.
        let id = QUEUE_MICROTASK.with(|queue| set_timeout(queue, ms as f64, &callback));
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
