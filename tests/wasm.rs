//! The conformance list and random histories as in production: in wasm, in a JavaScript runtime, over its own `fetch`.
//! `npm test -- --only wasm` starts the store and sets the variables.

#![cfg(all(target_arch = "wasm32", feature = "js"))]

#[path = "sim/chance.rs"]
#[allow(dead_code)] // The simulator needs more of it.
mod chance;
mod conformance;
#[path = "conformance/histories.rs"]
mod histories;

use std::cell::RefCell;
use std::rc::Rc;

use conformance::Traits;
use edgelect::S3Store;
use edgelect::custom::CustomStore;
use edgelect::driver::Host;
use edgelect::lease::Format;
use edgelect::request::Body;
use edgelect::store::Store;
use edgelect::web::{Fetched, Found, JsHost, Link, Settled, Web};
use histories::Plan;
use js_sys::{Array, Function, Object, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use wasm_bindgen_test::{console_log, wasm_bindgen_test};

thread_local! {
    /// The one host of this process over its own fetch, and its link, made at the first use.
    static LINK: RefCell<Option<Rc<Link>>> = const { RefCell::new(None) };
}

fn get(object: &JsValue, name: &str) -> JsValue {
    Reflect::get(object, &name.into()).unwrap_or_default()
}

fn variable(name: &str) -> Option<String> {
    let env = get(&get(&js_sys::global(), "process"), "env");
    get(&env, &name.replace("EDGELECT_", "EDGELECT_TEST_")).as_string()
}

/// A module of this repository, found at run time: the test runner bundles none.
async fn import(path: &str) -> JsValue {
    let import = format!("import('file://{}/{path}')", env!("CARGO_MANIFEST_DIR"));
    let promise: Promise = js_sys::eval(&import).expect("an expression").unchecked_into();
    JsFuture::from(promise).await.expect("a module of this repository")
}

type Own = Rc<RefCell<Option<Rc<Link>>>>;

/// What a `RawElector` has for the host to say how an operation ended.
fn settling(own: &Own) -> Object {
    let settle = {
        let own = Rc::clone(own);
        move |id, settled| {
            let link = own.borrow().clone().expect("nothing is begun before");
            link.settle(id, settled);
        }
    };
    let raw = Object::new();
    let set = |name: &str, function: JsValue| {
        Reflect::set(&raw, &name.into(), &function).expect("a plain object");
    };
    macro_rules! on {
        ($name:literal, ($($argument:ident: $type:ty),*) => $settled:expr) => {{
            let settle = settle.clone();
            let told = Closure::<dyn Fn(u32, $($type),*)>::new(move |id, $($argument: $type),*| {
                settle(id, $settled);
            });
            set($name, told.into_js_value());
        }};
    }
    on!("failed", (why: String) => Settled::Failed(why));
    on!("slept", () => Settled::Slept);
    on!("fetched", (status: u16, headers: Vec<String>, bytes: Vec<u8>, truncated: bool) => {
        Settled::Fetched(Fetched { status, headers, body: Body { bytes, truncated } })
    });
    on!("found", (etag: String, body: Vec<u8>, date: Option<f64>, modified: Option<f64>) => {
        let [date_ms, last_modified_ms] = [date, modified].map(|ms| ms.map(|ms| ms as u64));
        Settled::Found(Found { etag, body, date_ms, last_modified_ms })
    });
    on!("missing", () => Settled::Missing);
    on!("nonsense", (why: String) => Settled::Nonsense(why));
    on!("written", (etag: Option<String>) => Settled::Written(etag));
    on!("refused", () => Settled::Refused);
    raw
}

/// The package's own host, over a storage if there is one.
async fn link_over(storage: JsValue) -> Rc<Link> {
    let class: Function = get(&import("js/host.js").await, "Host").unchecked_into();
    let own = Own::default();
    let telling: Function =
        js_sys::eval("raw => how => how(raw)").expect("a function").unchecked_into();
    let settle = telling.call1(&JsValue::NULL, &settling(&own)).expect("a function");
    let options = Object::new();
    for (name, value) in [("settle", settle), ("storage", storage)] {
        Reflect::set(&options, &name.into(), &value).expect("a plain object");
    }
    let host = Reflect::construct(&class, &Array::of1(&options)).expect("a host");
    // Nobody here knows when the wasm has returned, as the package does.
    let often = "host => void setInterval(() => host.startAll(), 1)";
    let start_often: Function = js_sys::eval(often).expect("a function").unchecked_into();
    start_often.call1(&JsValue::NULL, &host).expect("a timer");
    let link = Link::new(host.unchecked_into::<JsHost>());
    *own.borrow_mut() = Some(Rc::clone(&link));
    link
}

async fn web() -> Web {
    if let Some(link) = LINK.with(|link| link.borrow().clone()) {
        return Web::new(link);
    }
    let link = link_over(JsValue::UNDEFINED).await;
    LINK.with(|own| *own.borrow_mut() = Some(Rc::clone(&link)));
    Web::new(link)
}

fn random_key(web: &Web) -> String {
    let random = web.random().expect("Node has randomness");
    format!("wasm/{:032x}.json", u128::from_le_bytes(random))
}

fn bucket(key: &str, web: &Web) -> S3Store<Web> {
    S3Store::from_vars(variable, key, web.clone()).expect("npm test names a usable test store")
}

/// Everything that a store must show, with so many histories in a long run, which are judged here as natively.
async fn conforms<S: Store>(traits: Traits, long: u64, fresh: impl Fn() -> S) {
    let env = get(&get(&js_sys::global(), "process"), "env");
    let count = histories::how_many(long, get(&env, "EDGELECT_LONG").as_string());
    let tally = histories::conforms(traits, Plan { count, at_once: 8 }, &fresh).await;
    console_log!("{}: {tally:?}", fresh().describe());
}

#[wasm_bindgen_test]
async fn a_real_bucket_over_fetch_conforms() {
    let web = web().await;
    conforms(Traits::S3, 100, || bucket(&random_key(&web), &web)).await;
}

/// A storage of JavaScript behind the package's own host: `module` opens and closes it.
async fn custom_conforms(module: &str, traits: Traits, long: u64) {
    let open: Function = get(&import(module).await, "open").unchecked_into();
    let opening: Promise = open.call0(&JsValue::NULL).expect("a function").unchecked_into();
    let opened = JsFuture::from(opening).await.expect("a storage");
    let web = Web::new(link_over(get(&opened, "storage")).await);
    let fresh = || CustomStore::new(web.clone(), &random_key(&web), Format::Native, 0);
    conforms(traits, long, fresh).await;
    let close: Function = get(&opened, "close").unchecked_into();
    let closed: Promise = close.call0(&opened).expect("a function").unchecked_into();
    JsFuture::from(closed).await.expect("the storage ends");
}

/// `js/r2.js` over Miniflare's R2, as the package has it: the bucket is all that differs.
#[wasm_bindgen_test]
async fn an_r2_binding_conforms() {
    custom_conforms("tests/conformance/r2.mjs", Traits::R2, 100).await;
}

#[wasm_bindgen_test]
async fn the_packages_memory_storage_conforms() {
    custom_conforms("tests/conformance/memory.mjs", Traits::COUNTED, 1_000).await;
}
