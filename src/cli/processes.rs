//! The processes of a command: its group, and on Linux those of its descendants that have left the group.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::ErrorKind::{NotFound, PermissionDenied};
use std::io::{self, Read};
use std::sync::OnceLock;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, getppid};

/// The command of this program that is the guard.
pub const NAME: &str = "__guard";

/// The variable by which the processes of a command are known, also those that have left its group.
pub const MARK: &str = "_EDGELECT_RUN";

/// After how many looks in a row that have found nothing there is nothing: a process may begin another one and end meanwhile.
pub const QUIET: u32 = 2;

/// Milliseconds of a clock that all processes of this machine share; on Linux it goes on while the machine sleeps.
pub fn now_ms() -> u64 {
    #[cfg(target_os = "linux")]
    const CLOCK: ClockId = ClockId::CLOCK_BOOTTIME;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: ClockId = ClockId::CLOCK_MONOTONIC;
    read_ms(CLOCK)
}

fn read_ms(clock: ClockId) -> u64 {
    let now = clock_gettime(clock).expect("the machine has this clock");
    now.tv_sec() as u64 * 1_000 + now.tv_nsec() as u64 / 1_000_000
}

/// A moment by [`now_ms`] and by the wall clock: the one stands still while a virtual machine is paused, the other may be set.
#[derive(Clone, Copy, Default)]
pub struct Moment {
    /// By [`now_ms`].
    pub shared_ms: u64,
    /// Since the Unix epoch.
    pub wall_ms: u64,
}

impl Moment {
    /// This one.
    pub fn now() -> Self {
        Self { shared_ms: now_ms(), wall_ms: read_ms(ClockId::CLOCK_REALTIME) }
    }

    /// So many milliseconds later.
    pub fn after(self, ms: u64) -> Self {
        Self { shared_ms: self.shared_ms + ms, wall_ms: self.wall_ms + ms }
    }

    /// How many milliseconds are left until then, by the clock that leaves less.
    pub fn left_ms(self) -> u64 {
        let now = Self::now();
        let wall_ms = self.wall_ms.saturating_sub(now.wall_ms);
        self.shared_ms.saturating_sub(now.shared_ms).min(wall_ms)
    }
}

/// The processes of one run of a command.
#[derive(Clone, Copy)]
pub struct Family {
    /// The process group of the command, which its first process leads.
    pub group: Pid,
    /// The process that started it and that adopts what loses its parent.
    pub owner: Pid,
    /// The owner's other child, which is no part of it.
    pub guard: Pid,
}

impl Family {
    /// Sends a signal to the group; false where it runs as another user.
    pub fn send(&self, signal: Signal) -> bool {
        // It may have ended in between.
        killpg(self.group, signal) != Err(Errno::EPERM)
    }

    /// Sends a signal to the group and to those that have left it; false where one of them runs as another user.
    pub fn send_all(&self, signal: Signal) -> bool {
        let sent = self.send(signal);
        let strays = self.strays(&seen());
        strays.iter().fold(sent, |sent, one| kill(one.pid, signal) != Err(Errno::EPERM) && sent)
    }

    /// Kills those that have left the group, for the guard, while the owner goes on; whether there were any.
    pub fn kill_outside(&self) -> bool {
        let strays = self.now_outside();
        // After its end nobody's descendants are the owner's: its number may be another's by now.
        if getppid() != self.owner {
            return false;
        }
        for one in &strays {
            let _ = kill(one.pid, Signal::SIGKILL);
        }
        !strays.is_empty()
    }

    /// Whether anything of it runs. In a container without an init nobody collects dead processes, which count as none.
    pub fn lives(&self) -> bool {
        let seen = seen();
        // Each may have started another one after that was read of which there is none in the list.
        if self.reap(&seen) || !self.strays(&seen).is_empty() {
            return true;
        }
        // One that runs as another user can't be signalled, or seen where /proc hides it, and lives.
        let mut group = seen.iter().filter(|one| one.group == self.group).peekable();
        let hidden = group.peek().is_none();
        killpg(self.group, None) != Err(Errno::ESRCH) && (hidden || group.any(|one| !one.dead))
    }

    /// Those outside the group that run. The guard of an edgelect in the command is none: it has a command of its own to end.
    pub fn now_outside(&self) -> Vec<Known> {
        let mut strays = self.strays(&seen());
        strays.retain(|one| !is_guard(one.pid));
        strays
    }

    /// Collects what was adopted and has died.
    pub fn reap_adopted(&self) {
        self.reap(&seen());
    }

    /// Collects what has died here; whether there was any.
    fn reap(&self, seen: &[Seen]) -> bool {
        let adopted = |one: &&Seen| {
            let own = [self.group, self.guard].contains(&one.pid);
            one.dead && one.parent == self.owner && !own
        };
        seen.iter().filter(adopted).fold(false, |_, one| {
            let _ = waitpid(one.pid, Some(WaitPidFlag::WNOHANG));
            true
        })
    }

    /// The descendants outside the group that run, but for those that were there before.
    fn strays(&self, seen: &[Seen]) -> Vec<Known> {
        let spared = SPARED.get().map_or(&[][..], |spared| spared);
        let is_own = |one: &&Seen| one.pid != self.guard && !spared.contains(&one.known());
        let family = descendants(self.owner, seen, is_own);
        let strays = family.into_iter().filter(|one| one.group != self.group && !one.dead);
        strays.map(Seen::known).collect()
    }
}

/// A process: its number, and when it started, in ticks since the machine did; numbers come again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Its number.
    pub pid: Pid,
    /// When it started.
    pub started: u64,
}

/// What an owner had started before it ran this program, as the shell of a script does.
static SPARED: OnceLock<Vec<Known>> = OnceLock::new();

/// Takes what descends from this process now for none of any command; gives that.
pub fn spare_descendants(owner: Pid) -> &'static [Known] {
    SPARED.get_or_init(|| {
        descendants(owner, &seen(), |_| true).into_iter().map(Seen::known).collect()
    })
}

/// The same, as the owner has seen it.
pub fn spare(known: Vec<Known>) {
    let _ = SPARED.set(known);
}

fn descendants(of: Pid, seen: &[Seen], is_own: impl Fn(&&Seen) -> bool) -> Vec<&Seen> {
    let mut family = HashSet::from([of]);
    let mut all = Vec::new();
    loop {
        let is_new = |one: &&Seen| family.contains(&one.parent) && !family.contains(&one.pid);
        let found: Vec<&Seen> = seen.iter().filter(is_new).filter(&is_own).collect();
        if found.is_empty() {
            return all;
        }
        family.extend(found.iter().map(|one| one.pid));
        all.extend(found);
    }
}

/// Kills these, if they are still the same, and what descends from them.
pub fn kill_known(known: &[Known]) {
    let mut stopped = HashSet::new();
    loop {
        let now = seen();
        let roots = now.iter().filter(|one| known.contains(&one.known()) && !one.dead);
        let all =
            roots.flat_map(|one| descendants(one.pid, &now, |_| true).into_iter().chain([one]));
        let found: Vec<Pid> = all.map(|one| one.pid).filter(|pid| !stopped.contains(pid)).collect();
        if found.is_empty() {
            break;
        }
        // So that none starts another one before it dies.
        for pid in &found {
            let _ = kill(*pid, Signal::SIGSTOP);
        }
        stopped.extend(found);
    }
    for pid in stopped {
        let _ = kill(pid, Signal::SIGKILL);
    }
}

/// What [`kill_marked`] has seen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Marked {
    /// None.
    None,
    /// None, but one that may have the mark did not show it, or has ended meanwhile and may have begun another one before.
    Unclear,
    /// Some, which it has killed.
    Some,
}

/// Kills what has this mark in its environment, where `/proc` shows that.
pub fn kill_marked(mark: &str) -> Marked {
    let text = format!("{MARK}={mark}");
    let unreadable = fs::read_dir("/proc").is_err_and(|error| error.kind() != NotFound);
    let mut found = if unreadable { Marked::Unclear } else { Marked::None };
    for Seen { pid, .. } in seen() {
        match is_marked(pid, text.as_bytes()) {
            Ok(Some(true)) => {
                let _ = kill(pid, Signal::SIGKILL);
                found = Marked::Some;
            }
            Ok(Some(false)) => {}
            Err(error) if error.kind() == PermissionDenied => {}
            Ok(None) | Err(_) if found == Marked::None => found = Marked::Unclear,
            Ok(None) | Err(_) => {}
        }
    }
    found
}

/// Whether a process has this variable; `None` where it may have: Linux shows no environment while a process begins another program,
/// and no program either.
fn is_marked(pid: Pid, text: &[u8]) -> io::Result<Option<bool>> {
    let has = |variables: &[u8]| variables.split(|byte| *byte == 0).any(|one| one == text);
    let variables = variables_of(&format!("/proc/{pid}"))?;
    if !variables.is_empty() {
        return Ok(Some(has(&variables)));
    }
    let Some(fields) = stat(pid) else { return Err(NotFound.into()) };
    let number = |at: usize| fields.get(at).and_then(|one| one.parse::<u64>().ok()).unwrap_or(0);
    if number(THREADS_AT) > 1 {
        let threads = fs::read_dir(format!("/proc/{pid}/task"))?.flatten();
        let mut all = threads.flat_map(|thread| variables_of(&thread.path().to_string_lossy()));
        return Ok(Some(all.any(|variables| has(&variables))));
    }
    match (number(MEMORY_AT), number(PROGRAM_AT)) {
        // A kernel's own, or one that has ended.
        (0, _) => Ok(Some(false)),
        (_, 0) => Ok(None),
        _ => Ok(Some(has(&variables_of(&format!("/proc/{pid}"))?))),
    }
}

fn is_guard(pid: Pid) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).nth(1) == Some(NAME.as_bytes())
}

/// The environment of a process or thread. It is empty where it has none or has ended.
fn variables_of(place: &str) -> io::Result<Vec<u8>> {
    let variables = File::open(format!("{place}/environ")).and_then(|mut file| {
        // By one read: where the process begins another program meanwhile, the next would say that there is no more of them.
        let mut variables = vec![0; MOST_VARIABLES];
        let length = file.read(&mut variables)?;
        variables.truncate(length);
        Ok(variables)
    });
    // Of a process whose first thread has ended.
    let ended = |error: &io::Error| error.raw_os_error() == Some(Errno::ESRCH as i32);
    variables.or_else(|error| if ended(&error) { Ok(Vec::new()) } else { Err(error) })
}

/// As long as Linux lets an environment be, in bytes (`execve(2)`).
const MOST_VARIABLES: usize = 6 * 1024 * 1024;

struct Seen {
    pid: Pid,
    parent: Pid,
    group: Pid,
    dead: bool,
    started: u64,
}

impl Seen {
    fn known(&self) -> Known {
        Known { pid: self.pid, started: self.started }
    }
}

/// Where `stat` has how many threads there are, when it started, how much memory it has, and where its program begins there; counted
/// from its state on.
const THREADS_AT: usize = 17;
const STARTED_AT: usize = 19;
const MEMORY_AT: usize = 20;
const PROGRAM_AT: usize = 23;

/// All processes, where `/proc` shows them.
fn seen() -> Vec<Seen> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.filter_map(|entry| read(entry.ok()?.file_name().to_str()?)).collect()
}

/// What `stat` says of a process, from its state on.
fn stat(pid: Pid) -> Option<Vec<String>> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in brackets, may contain anything: `7 (sh) S 1 7 7 …`.
    let text = String::from_utf8_lossy(&stat);
    Some(text.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect())
}

fn read(name: &str) -> Option<Seen> {
    let pid = Pid::from_raw(name.parse().ok()?);
    let fields = stat(pid)?;
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let process = |at: usize| Some(Pid::from_raw(fields.get(at)?.parse().ok()?));
    // Its first thread may have ended while others go on.
    let dead = matches!(fields.first()?.as_str(), "Z" | "X") && number(THREADS_AT)? <= 1;
    let (parent, group, started) = (process(1)?, process(2)?, number(STARTED_AT)?);
    Some(Seen { pid, parent, group, dead, started })
}
