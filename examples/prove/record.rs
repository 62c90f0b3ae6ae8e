//! What a run has done so far, kept in a file so that it can go on after an interruption.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

use edgelect::json;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::arguments::Arguments;
use worlds::sim::run::{Seed, Summary};
use worlds::sim::world::Depth;

/// The run of one depth.
#[derive(Default, Deserialize, Serialize)]
pub struct Part {
    #[serde(skip)]
    pub wanted: u64,
    pub summary: Summary,
    pub took: Duration,
    /// The schedules that broke a rule.
    pub failed: Vec<Seed>,
}

#[derive(Deserialize, Serialize)]
pub struct Record {
    #[serde(skip)]
    path: PathBuf,
    build: String,
    pub first: u64,
    pub core: Part,
    pub store: Part,
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
        let damaged = |error| format!("it is damaged ({error})");
        let value: Value = serde_json::from_str(&text).map_err(damaged)?;
        if value["build"] != self.build {
            return Err("another build wrote it, whose schedules were others".to_owned());
        }
        let before: Self = serde_json::from_value(value).map_err(damaged)?;
        if before.first != self.first {
            return Err(format!("it began with seed {}, not {}", before.first, self.first));
        }
        self.core = Part { wanted: self.core.wanted, ..before.core };
        self.store = Part { wanted: self.store.wanted, ..before.store };
        Ok(())
    }

    pub fn part(&mut self, depth: Depth) -> &mut Part {
        match depth {
            Depth::Core => &mut self.core,
            Depth::Store => &mut self.store,
        }
    }

    /// Adds what a few more schedules gave, and writes it down.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, depth: Depth, mut more: Summary, took: Duration) -> Result<(), String> {
        let part = self.part(depth);
        part.failed.extend(std::mem::take(&mut more.broken).into_iter().map(|(seed, _)| seed));
        part.summary.merge(more);
        part.took += took;
        self.write()
    }

    fn write(&self) -> Result<(), String> {
        // Renamed into place, so that an interruption leaves the one or the other.
        let beside = self.path.with_extension("new");
        let cannot = |error| format!("cannot write {}: {error}", self.path.display());
        if let Some(folder) = self.path.parent().filter(|folder| *folder != Path::new("")) {
            fs::create_dir_all(folder).map_err(cannot)?;
        }
        fs::write(&beside, json::of(self)).map_err(cannot)?;
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
