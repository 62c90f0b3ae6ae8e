//! The conformance list as it runs in production: in wasm, in a JavaScript runtime, over its own `fetch`.
//! `npm test -- --only wasm` starts the store and sets the variables.

#![cfg(all(target_arch = "wasm32", feature = "npm"))]

mod conformance;

use conformance::Traits;
use edgelect::bucket::{Bucket, CredentialSource};
use edgelect::driver::Host;
use edgelect::store::memory::Memory;
use edgelect::vars;
use edgelect::web::Web;
use edgelect::{Config, Election, Handle, Settings};
use wasm_bindgen_test::wasm_bindgen_test;

fn variable(name: &str) -> Option<String> {
    let get = |object: &wasm_bindgen::JsValue, name: &str| {
        js_sys::Reflect::get(object, &name.into()).unwrap_or_default()
    };
    let env = get(&get(&js_sys::global(), "process"), "env");
    get(&env, &name.replace("EDGELECT_", "EDGELECT_TEST_")).as_string()
}

fn web() -> Web {
    Web::new(Web::detect_clock(), false)
}

fn random_key() -> String {
    let random = web().random().expect("Node has randomness");
    format!("wasm/{:032x}.json", u128::from_le_bytes(random))
}

fn bucket(key: &str) -> Bucket {
    let secrets = vars::secrets(variable).expect("npm test sets the test store's keys");
    let vars = vars::bucket(variable).expect("npm test sets the test store's bucket");
    let source = CredentialSource::from_vars(secrets);
    Bucket::from_vars(vars, key, source, web()).expect("the test store's address is usable")
}

#[wasm_bindgen_test]
async fn a_real_bucket_over_fetch_conforms() {
    let traits = Traits { tells_time: true, versions_are_hashes: true };
    let ran = conformance::check(traits, || bucket(&random_key())).await;
    assert_eq!(ran, 19);
}

#[wasm_bindgen_test]
async fn memory_conforms_in_wasm() {
    let traits = Traits { tells_time: false, versions_are_hashes: true };
    assert_eq!(conformance::check(traits, Memory::default).await, 19);
}

#[wasm_bindgen_test]
async fn an_elector_in_wasm_leads_over_a_real_bucket_and_releases() {
    let key = random_key();
    let settings = Settings {
        lockfile_path: Some(key.clone()),
        leader_timeout_ms: Some(1_500),
        frequent_interval_ms: Some(400),
        ..Settings::default()
    };
    let config = Config::new(&settings).expect("the settings keep every rule");
    let (store, host) = (bucket(&key), web());
    edgelect::driver::init(&store, &host, &config).await.expect("a new group");
    let random = host.random().expect("Node has randomness");
    let election = Election::new(config, format!("{:032x}", u128::from_le_bytes(random)), 1);
    let handle = Handle::new(election);
    let mut tokens = Vec::new();
    edgelect::run(&handle, &store, &host, |event| match event {
        edgelect::Event::Acquired { term } => {
            assert!(handle.authority(host.now()).is_some());
            tokens.push(term);
            handle.tell(edgelect::election::Input::Stop { park: false });
        }
        edgelect::Event::Lost { term, .. } => {
            assert!(handle.authority(host.now()).is_none());
            handle.tell(edgelect::election::Input::WorkEnded { term });
        }
        _ => {}
    })
    .await;
    let (_, lease) = edgelect::driver::read_back(&store, &host, 5_000).await.expect("the record");
    assert!(lease.released());
    assert_eq!(tokens, [lease.term.expect("our records have terms")]);
}
