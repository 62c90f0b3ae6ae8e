//! The parts of `edgelect::workerd` for `parts.js`, which runs them in workerd.

#[path = "../../conformance/mod.rs"]
#[allow(dead_code)] // The suite of all stores needs more of it.
mod conformance;

use std::cell::Cell;
use std::pin::pin;

use conformance::Traits;
use edgelect::lease::Reading;
use edgelect::request;
use edgelect::store::{Operation, Outcome, Store};
use edgelect::workerd::{AnyStore, R2Store, Workerd, config, variables};
use edgelect::{Checkpoint, Host, Owner};
use futures::future::{Either, select};
use http::Method;
use wasm_bindgen::prelude::*;
use worker::{Bucket, Env};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console)]
    fn error(text: &str);
}

thread_local! {
    static KEYS: Cell<u32> = const { Cell::new(0) };
}

#[wasm_bindgen(start)]
fn start() {
    std::panic::set_hook(Box::new(|panic| error(&panic.to_string())));
}

fn fresh_key() -> String {
    KEYS.with(|keys| keys.set(keys.get() + 1));
    format!("parts/{}.json", KEYS.with(Cell::get))
}

#[wasm_bindgen(js_name = conformR2)]
pub async fn conform_r2(bucket: JsValue) -> usize {
    let traits = Traits::R2;
    let store = || R2Store::new(bucket.clone().unchecked_into::<Bucket>(), &fresh_key());
    conformance::check(traits, store).await
}

#[wasm_bindgen(js_name = readR2)]
pub async fn read_r2(bucket: JsValue, key: String) -> String {
    let store = R2Store::new(bucket.unchecked_into::<Bucket>(), &key);
    format!("{:?}", store.perform(Operation::Read { unless: None }).await)
}

/// One request of the host's: status, length of the body, whether it was cut, and two headers; or the error.
#[wasm_bindgen]
pub async fn fetch(url: String, body: String, limit: usize) -> String {
    let method = if body.is_empty() { Method::GET } else { Method::PUT };
    let request = request::new(method, &url, &[("x-test", "as it is")], body.into_bytes());
    let request = request.expect("the URL is one");
    match Workerd::new().fetch(request, limit).await {
        Ok(answer) => format!(
            "{} {} {} {:?} {:?}",
            answer.status().as_u16(),
            answer.body().bytes.len(),
            answer.body().truncated,
            request::text(answer.headers(), "etag"),
            request::text(answer.headers(), "location"),
        ),
        Err(problem) => problem,
    }
}

#[wasm_bindgen(js_name = fetchFor)]
pub async fn fetch_for(url: String, ms: u32) -> bool {
    let host = Workerd::new();
    let request = request::new(Method::GET, &url, &[], Vec::new()).expect("the URL is one");
    let fetching = pin!(host.fetch(request, 1_000_000));
    matches!(select(fetching, pin!(host.sleep(ms.into()))).await, Either::Left(_))
}

/// Sets a timer of `ms`, which is pending until the next call of this function is polled; says what the clock
/// looked like at each stage.
#[wasm_bindgen]
pub async fn sleep(ms: u32, stop_after_ms: u32) -> String {
    let host = Workerd::new();
    let before = host.now();
    let (slept, stopped) = (host.sleep(ms.into()), host.sleep(stop_after_ms.into()));
    let ended = match select(pin!(slept), pin!(stopped)).await {
        Either::Left(_) => "slept",
        Either::Right(_) => "dropped",
    };
    let after = host.now();
    format!("{ended} {} {} {}", after.mono_ms - before.mono_ms, after.held, after.early_timers)
}

/// A host with one timer pending, for a clock that the test moves.
#[wasm_bindgen]
pub struct Held(Workerd);

#[wasm_bindgen]
impl Held {
    #[wasm_bindgen(constructor)]
    #[allow(clippy::new_without_default)] // JavaScript makes it.
    pub fn new() -> Self {
        Self(Workerd::new())
    }

    pub fn sleep(&self, ms: u32) -> js_sys::Promise {
        let host = self.0.clone();
        js_sys::futures::future_to_promise(async move {
            host.sleep(ms.into()).await;
            Ok(JsValue::UNDEFINED)
        })
    }

    /// Whether the clock is held, and how often it stepped back under a timer.
    pub fn now(&self) -> String {
        let now = self.0.now();
        assert_eq!(now.mono_ms, now.wall_ms, "there is one clock");
        format!("{} {}", now.held, now.early_timers)
    }
}

/// Randomness, or why there is none.
#[wasm_bindgen]
pub fn random() -> String {
    let hex = |bytes: [u8; 16]| bytes.map(|byte| format!("{byte:02x}")).concat();
    Workerd::new().random().map_or_else(|problem| problem, hex)
}

/// A checkpoint beside the lease that the variables name: what a second term finds, whether the first is then refused, and
/// whether the object is a native record.
#[wasm_bindgen]
pub async fn checkpoint(env: Env) -> String {
    let host = Workerd::new();
    let key = format!("{}/cursor.json", fresh_key());
    let config = config(variables(&env)).expect("good settings");
    let lease = AnyStore::from_env(&env, &config, &host).expect("the variables name a store");
    let cursor = lease.at(&key).expect("a good key");
    let owner = |token| Owner::new(&config, "session", token, &key).expect("a good key");
    let mut first = Checkpoint::open(&cursor, &host, owner(1)).await.expect("it opens");
    first.write("[1]").await.expect("it is written");
    let second = Checkpoint::open(&cursor, &host, owner(2)).await.expect("it opens");
    let zombie = first.write("[2]").await.expect_err("it is refused");
    let native = match cursor.perform(Operation::Read { unless: None }).await.outcome {
        Outcome::Found { reading: Reading::Lease(lease), .. } => lease.term == Some(2),
        _ => false,
    };
    let wrong = lease.at("/cursor.json").err().expect("it is no key");
    format!("{:?} {:?} {native} {}", second.value(), zombie.kind, wrong.message())
}
