//! What a run has done so far, kept in a file so that it can go on after an interruption.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::arguments::Arguments;
use worlds::sim::run::{Seed, Summary};
use worlds::sim::world::Depth;

/// The run of one depth.
#[derive(Default)]
pub struct Part {
    pub wanted: u64,
    pub summary: Summary,
    pub took: Duration,
}

pub struct Record {
    path: PathBuf,
    build: String,
    pub first: u64,
    pub core: Part,
    pub store: Part,
    pub failures: Vec<(Seed, String)>,
}

impl Record {
    /// Begins a run, or goes on with an interrupted one of the same build and the same seeds.
    ///
    /// # Errors
    /// The file is damaged, or of another run.
    pub fn open(arguments: &Arguments) -> Result<Self, String> {
        let part = |wanted| Part { wanted, ..Part::default() };
        let mut record = Self {
            path: arguments.record.clone(),
            build: build()?,
            first: arguments.first,
            core: part(arguments.schedules),
            store: part(arguments.store_schedules),
            failures: Vec::new(),
        };
        if !arguments.fresh && record.path.exists() {
            record.resume().map_err(|what| {
                let path = record.path.display();
                format!(
                    "cannot go on with {path}: {what}; start again with --fresh, or name another \
                     file with --record"
                )
            })?;
            let done = record.core.summary.schedules + record.store.summary.schedules;
            println!("Going on after {done} schedules (--fresh begins anew).");
        }
        Ok(record)
    }

    fn resume(&mut self) -> Result<(), String> {
        let text = fs::read_to_string(&self.path).map_err(|error| error.to_string())?;
        let value: Value =
            serde_json::from_str(&text).map_err(|error| format!("it is damaged ({error})"))?;
        if value["build"] != json!(self.build) {
            return Err("another build wrote it, whose schedules were others".to_owned());
        }
        if value["first"] != json!(self.first) {
            return Err(format!("it began with seed {}, not {}", value["first"], self.first));
        }
        for (name, part) in [("core", &mut self.core), ("store", &mut self.store)] {
            *part = read_part(&value[name], part.wanted)
                .ok_or_else(|| format!("it is damaged (its part {name:?} makes no sense)"))?;
        }
        let failures = value["failures"].as_array().ok_or("it is damaged (no failures)")?;
        for failure in failures {
            let seed = failure["seed"].as_str().unwrap_or_default().parse()?;
            self.failures.push((seed, failure["check"].as_str().unwrap_or_default().to_owned()));
        }
        Ok(())
    }

    pub fn part(&self, depth: Depth) -> &Part {
        match depth {
            Depth::Core => &self.core,
            Depth::Store => &self.store,
        }
    }

    pub fn wanted(&self, depth: Depth) -> u64 {
        self.part(depth).wanted
    }

    pub fn done(&self, depth: Depth) -> u64 {
        self.part(depth).summary.schedules
    }

    /// Adds what a few more schedules gave, and writes it down.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, depth: Depth, mut more: Summary, took: Duration) -> Result<(), String> {
        for (seed, violation) in std::mem::take(&mut more.broken) {
            self.failures.push((seed, violation.check.to_owned()));
        }
        let part = match depth {
            Depth::Core => &mut self.core,
            Depth::Store => &mut self.store,
        };
        part.summary.merge(more);
        part.took += took;
        self.write()
    }

    fn write(&self) -> Result<(), String> {
        let failures: Vec<Value> = self
            .failures
            .iter()
            .map(|(seed, check)| json!({ "seed": seed.to_string(), "check": check }))
            .collect();
        let value = json!({
            "build": self.build,
            "first": self.first,
            "core": write_part(&self.core),
            "store": write_part(&self.store),
            "failures": failures,
        });
        // Renamed into place, so that an interruption leaves the one or the other.
        let beside = self.path.with_extension("new");
        let cannot = |error| format!("cannot write {}: {error}", self.path.display());
        if let Some(folder) = self.path.parent().filter(|folder| *folder != Path::new("")) {
            fs::create_dir_all(folder).map_err(cannot)?;
        }
        fs::write(&beside, value.to_string()).map_err(cannot)?;
        fs::rename(&beside, &self.path).map_err(cannot)
    }

    /// The run is over: nothing is left to go on with.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn close(&self) -> Result<(), String> {
        if self.path.exists() {
            let cannot = |error| format!("cannot remove {}: {error}", self.path.display());
            fs::remove_file(&self.path).map_err(cannot)?;
        }
        Ok(())
    }
}

/// This very program: another one draws other schedules from the same seeds.
fn build() -> Result<String, String> {
    let bytes = std::env::current_exe().and_then(fs::read);
    let bytes = bytes.map_err(|error| format!("cannot read this program: {error}"))?;
    let mut hasher = DefaultHasher::new();
    hasher.write(&bytes);
    Ok(format!("{:016x}", hasher.finish()))
}

fn write_part(part: &Part) -> Value {
    json!([part.summary, part.took.as_millis() as u64])
}

fn read_part(value: &Value, wanted: u64) -> Option<Part> {
    let (summary, took_ms) = serde_json::from_value(value.clone()).ok()?;
    Some(Part { wanted, summary, took: Duration::from_millis(took_ms) })
}
