//! What `js/electors.js` and `js/shards.js` ask about many groups: which request leaves next, and who leads what.

use serde_json::json;
use wasm_bindgen::prelude::*;

use super::{RawElector, config_error, object};
use crate::config::Settings;
use crate::driver::{Handle, Host};
use crate::electors::budget::{Budget, Limits, Urgency, need_milli, start_delay_ms};
use crate::electors::{MOST_HELD, check_rate, check_room};
use crate::shards::{self, Order, Sharing};

/// The budget of one `Electors`.
#[wasm_bindgen]
pub struct RawBudget {
    budget: Budget,
}

#[wasm_bindgen]
impl RawBudget {
    /// A budget of these limits, JSON as [`limits`] gives it.
    #[wasm_bindgen(constructor)]
    pub fn new(limits: &str, now_ms: f64) -> Result<RawBudget, String> {
        let limits = Limits::from_json(&mut object(limits)?).map_err(config_error)?;
        Ok(Self { budget: Budget::new(limits, now_ms as u64) })
    }

    /// A request waits from now on; see [`Urgency::of_parts`]. Gives its ticket.
    pub fn ask(&mut self, urgency: u8, fence_ms: f64) -> f64 {
        self.budget.ask(Urgency::of_parts(urgency, fence_ms as u64)) as f64
    }

    /// A request is over, or was given up.
    pub fn leave(&mut self, ticket: f64) {
        self.budget.leave(ticket as u64);
    }

    /// The tickets of the requests that leave now.
    pub fn grant(&mut self, now_ms: f64) -> Vec<f64> {
        let next = || self.budget.grant(now_ms as u64);
        std::iter::from_fn(next).map(|ticket| ticket as f64).collect()
    }

    /// After how many milliseconds the next one may leave by the rate.
    #[wasm_bindgen(js_name = waitMs)]
    pub fn wait_ms(&self, now_ms: f64) -> Option<f64> {
        self.budget.wait_ms(now_ms as u64).map(|wait_ms| wait_ms as f64)
    }

    /// `{ underWay, waiting }` as JSON.
    pub fn load(&self) -> String {
        crate::json::of(&self.budget.load())
    }
}

/// Takes the limits out of the options of an `Electors`: `{ limits, settings, mostHeld }` as JSON, the last of them how many questions
/// all groups hold together unless one may hold more. Refuses a setting of a group that nobody knows, or of a type that it cannot
/// have; `names` are others that it may have meant.
#[wasm_bindgen]
pub fn limits(options: &str, names: Vec<String>) -> Result<String, String> {
    let mut settings = object(options)?;
    let limits = Limits::from_json(&mut settings).map_err(config_error)?;
    let names = Limits::OPTIONS.into_iter().chain(names.iter().map(String::as_str));
    Settings::of_many(&settings, &names.collect::<Vec<_>>()).map_err(config_error)?;
    let [connections, rate] = Limits::OPTIONS;
    let limits =
        json!({ connections: limits.max_connections, rate: limits.max_requests_per_second });
    Ok(json!({ "limits": limits, "settings": settings, "mostHeld": MOST_HELD }).to_string())
}

/// Refuses a group that is there, one too many, or one too many for the rate. `before` is JSON: `groups`, how many there are, and
/// what they `need`, as this has given it. `added` counts all that there ever were. Gives as JSON what they `need` now, and for
/// how many milliseconds the new one waits before its first request, `delayMs`.
#[wasm_bindgen(js_name = checkGroup)]
pub fn check_group(
    limits: &str,
    group: &str,
    there: bool,
    frequent_interval: f64,
    before: &str,
) -> Result<String, String> {
    let limits = Limits::from_json(&mut object(limits)?).map_err(config_error)?;
    let before = object(before)?;
    let number = |name: &str| before.get(name).and_then(crate::json::whole).unwrap_or(0);
    let (groups, interval_ms) = (number("groups"), frequent_interval as u64);
    check_room(there, groups as usize, group).map_err(config_error)?;
    let need = number("need") + need_milli(interval_ms);
    check_rate(&limits, need, groups as usize + 1).map_err(config_error)?;
    let delay_ms = start_delay_ms(number("added"), interval_ms);
    Ok(json!({ "need": need, "own": need_milli(interval_ms), "delayMs": delay_ms }).to_string())
}

/// The settings of the shards and of the seat, the seat's last, as a JSON list; `settings` are those that they have in common.
#[wasm_bindgen(js_name = shardPaths)]
pub fn shard_paths(settings: &str, prefix: &str, shards: f64) -> Result<String, String> {
    let settings = Settings::from_json(&object(settings)?).map_err(config_error)?;
    let whole = shards.fract() == 0.0 && (0.0..=1e6).contains(&shards);
    let shards = if whole { shards as usize } else { 0 };
    let configs = shards::configs(&settings, prefix, shards).map_err(config_error)?;
    let paths = configs.iter().map(|config| config.lockfile_path.as_str());
    Ok(json!({
        "paths": paths.collect::<Vec<_>>(),
        "stepMs": configs.first().map(shards::step_ms),
    })
    .to_string())
}

/// What one member does about the shards.
#[wasm_bindgen]
#[derive(Default)]
pub struct RawShards {
    handles: Vec<Handle>,
    sharing: Option<Sharing>,
}

#[wasm_bindgen]
impl RawShards {
    /// No elector yet.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the elector of the next shard, or at the end of the seat.
    pub fn add(&mut self, elector: &RawElector) {
        self.handles.push(elector.handle.clone());
    }

    /// What is to be told to electors now, as a JSON list of `[number, "claim" | "leave" | "give"]`. `barred` are the numbers of
    /// those that are left to others, because old work goes on here.
    pub fn step(&mut self, elector: &RawElector, barred: &[u32]) -> String {
        let sharing = self.sharing.get_or_insert_with(|| {
            let config = elector.handle.with(|election| election.config().clone());
            Sharing::new(&config, self.handles.clone())
        });
        let barred: Vec<usize> = barred.iter().map(|at| *at as usize).collect();
        let orders = sharing.step(elector.web.now(), &barred);
        let told = orders.iter().map(|(at, order)| {
            let name = match order {
                Order::Compete(true) => "claim",
                Order::Compete(false) => "leave",
                Order::Give => "give",
            };
            json!([at, name])
        });
        told.collect::<serde_json::Value>().to_string()
    }
}
