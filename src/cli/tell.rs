//! What people and programs read. A reader that has gone away ends nothing.

use std::io::{self, ErrorKind, Write};
use std::process::exit;
use std::sync::OnceLock;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use serde_json::Value;

use super::command::code;

/// How many lines wait for a reader that is slow; what comes then is dropped.
const MOST_WAITING: usize = 256;
/// How long such a reader is waited for at the end.
const SETTLE: Duration = Duration::from_secs(1);

/// A line for standard error, or somebody who waits until all before are written.
enum Said {
    Line(String),
    Settled(SyncSender<()>),
}

/// Where lines go that must not keep their sender waiting.
static BEHIND: OnceLock<SyncSender<Said>> = OnceLock::new();

/// The exit code where standard output can't be written.
static UNWRITTEN: OnceLock<i32> = OnceLock::new();

/// From now on the process ends with this code where standard output can't be written.
pub fn unwritten_ends_with(code: i32) {
    let _ = UNWRITTEN.set(code);
}

/// A line on standard output; false where nobody reads it any more. Ends the process where it can't be written, as on a full
/// disk.
pub fn print(line: &str) -> bool {
    match writeln!(io::stdout(), "{line}") {
        Ok(()) => true,
        Err(gone) if gone.kind() == ErrorKind::BrokenPipe => false,
        // A reader that is slow, on a pipe that waits for nobody, misses it.
        Err(slow) if slow.kind() == ErrorKind::WouldBlock => true,
        Err(cause) => {
            error(&format!("standard output: {cause}"));
            exit(UNWRITTEN.get().copied().unwrap_or(code("failed")));
        }
    }
}

/// From now on a reader of standard error that is slow, or has stopped, keeps nobody waiting.
pub fn from_behind() {
    let (tell, told) = sync_channel(MOST_WAITING);
    let writer = std::thread::Builder::new().spawn(move || {
        for said in told {
            match said {
                Said::Line(line) => write(&line),
                Said::Settled(whom) => drop(whom.send(())),
            }
        }
    });
    // Where there can be no thread each line is written at once, as by all other commands.
    if writer.is_ok() {
        let _ = BEHIND.set(tell);
    }
}

/// Waits until what was said is written, but not long.
pub fn settle() {
    let Some(behind) = BEHIND.get() else { return };
    let (whom, settled) = sync_channel(1);
    if behind.try_send(Said::Settled(whom)).is_ok() {
        let _ = settled.recv_timeout(SETTLE);
    }
}

/// A line on standard error.
pub fn line(line: &str) {
    match BEHIND.get() {
        Some(behind) => drop(behind.try_send(Said::Line(line.to_owned()))),
        None => write(line),
    }
}

fn write(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// What has gone wrong, on standard error.
pub fn error(text: &str) {
    line(&format!("edgelect: {}", visible(text, 1_000)));
}

/// A text of a store or a record on one line, in which nothing moves a cursor.
pub fn visible(text: &str, most: usize) -> String {
    text.chars().take(most).map(|one| if is_hidden(one) { ' ' } else { one }).collect()
}

/// One line of JSON in which nothing moves a cursor either.
pub fn json(value: &Value) -> String {
    let mut line = String::new();
    for one in value.to_string().chars() {
        if is_hidden(one) {
            for unit in one.encode_utf16(&mut [0; 2]) {
                line.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            line.push(one);
        }
    }
    line
}

/// Whether a character is a control or a format character, or another that nobody sees.
fn is_hidden(one: char) -> bool {
    one.is_control() || one.escape_debug().len() > 2
}
