//! Which change counts in this process, and where it came by. Only in a copy that `node tests/unplanned/run.mjs` has made.

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

static ACTIVE: LazyLock<u32> = LazyLock::new(|| {
    std::env::var("UNPLANNED").ok().and_then(|number| number.parse().ok()).unwrap_or(0)
});
static CAME_BY: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("UNPLANNED_CAME_BY").ok());
static NOTED: [AtomicBool; 20_000] = [const { AtomicBool::new(false) }; 20_000];

/// The change that counts; `first` is the first of this place.
#[inline]
pub fn at(first: u32) -> u32 {
    if let Some(file) = &*CAME_BY
        && !NOTED[first as usize].swap(true, Ordering::Relaxed)
    {
        let mut out = OpenOptions::new().append(true).create(true).open(file).unwrap();
        out.write_all(format!("{first}\n").as_bytes()).unwrap();
    }
    *ACTIVE
}
