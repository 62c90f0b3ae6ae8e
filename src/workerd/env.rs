//! What a Worker's `env` has that is of this crate.

use wasm_bindgen::prelude::*;
use worker::Env;
use worker::js_sys::{Number, Object, Reflect};

use crate::groups;
use crate::vars::Given;

/// All that is set, by its name. An entry that can't even be looked at is none that anybody can use.
pub fn entries(env: &Env) -> Vec<(String, Given)> {
    let names =
        Object::keys(env.unchecked_ref::<Object>()).into_iter().filter_map(|name| name.as_string());
    let ours = names.filter(|name| groups::is_ours(name));
    ours.filter_map(|name| entry(env, &name).map(|given| (name, given))).collect()
}

/// What is set by this name.
pub fn entry(env: &Env, name: &str) -> Option<Given> {
    let Ok(value) = Reflect::get(env, &name.into()) else { return Some(Given::Other) };
    if value.is_null_or_undefined() {
        return None;
    }
    if let Some(text) = value.as_string() {
        return Some(Given::Text(text));
    }
    if let Some(flag) = value.as_bool() {
        return Some(Given::Flag(flag.to_string()));
    }
    // Written by JavaScript: what formats floating point is large.
    let number = value.dyn_ref::<Number>().and_then(|number| number.to_string_with_radix(10).ok());
    if let Some(number) = number {
        return Some(Given::Number(number.into()));
    }
    Some(match constructor(&value).as_deref() {
        Some("R2Bucket") => Given::Bucket,
        Some("Fetcher") => Given::Service,
        _ => Given::Other,
    })
}

/// The name by which crate `worker` knows a binding: a service seems to have every method, so methods say nothing.
fn constructor(value: &JsValue) -> Option<String> {
    let constructor = Reflect::get(value, &"constructor".into()).ok()?;
    Reflect::get(&constructor, &"name".into()).ok()?.as_string()
}
