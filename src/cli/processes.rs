//! The processes of a command: its group, and on Linux those of its descendants that have left the group.

use std::collections::HashSet;
use std::fs;

use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

/// The variable by which the processes of a command are known, also those that have left its group.
pub const MARK: &str = "_EDGELECT_RUN";

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
    /// Sends a signal to the group.
    pub fn send(&self, signal: Signal) {
        // It may have ended in between.
        let _ = killpg(self.group, signal);
    }

    /// Sends a signal to the group and to those that have left it.
    pub fn send_all(&self, signal: Signal) {
        self.send(signal);
        for pid in self.strays(&seen()) {
            let _ = kill(pid, signal);
        }
    }

    /// Whether anything of it runs. In a container without an init nobody collects dead processes, which count as none.
    pub fn lives(&self) -> bool {
        let seen = seen();
        self.reap(&seen);
        if !self.strays(&seen).is_empty() {
            return true;
        }
        let runs = |one: &Seen| one.group == self.group && !one.dead;
        killpg(self.group, None).is_ok() && (seen.is_empty() || seen.iter().any(runs))
    }

    /// Collects what was adopted and has died.
    pub fn reap_adopted(&self) {
        self.reap(&seen());
    }

    fn reap(&self, seen: &[Seen]) {
        let adopted = |one: &&Seen| one.dead && one.parent == self.owner;
        for one in seen.iter().filter(adopted) {
            if ![self.group, self.guard].contains(&one.pid) {
                let _ = waitpid(one.pid, Some(WaitPidFlag::WNOHANG));
            }
        }
    }

    /// The descendants outside the group that run.
    fn strays(&self, seen: &[Seen]) -> Vec<Pid> {
        let mut family = HashSet::from([self.owner]);
        loop {
            let is_new = |one: &&Seen| family.contains(&one.parent) && !family.contains(&one.pid);
            let found: Vec<Pid> = seen
                .iter()
                .filter(is_new)
                .map(|one| one.pid)
                .filter(|pid| *pid != self.guard)
                .collect();
            if found.is_empty() {
                break;
            }
            family.extend(found);
        }
        let strays = seen.iter().filter(|one| family.contains(&one.pid) && one.pid != self.owner);
        strays.filter(|one| one.group != self.group && !one.dead).map(|one| one.pid).collect()
    }
}

/// Kills what has this mark in its environment, where `/proc` shows that; whether there was any.
pub fn kill_marked(mark: &str) -> bool {
    let text = format!("{MARK}={mark}");
    let is_marked = |pid: &Pid| {
        let variables = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        variables.split(|byte| *byte == 0).any(|one| one == text.as_bytes())
    };
    let marked: Vec<Pid> = seen().iter().map(|one| one.pid).filter(is_marked).collect();
    for pid in &marked {
        let _ = kill(*pid, Signal::SIGKILL);
    }
    !marked.is_empty()
}

struct Seen {
    pid: Pid,
    parent: Pid,
    group: Pid,
    dead: bool,
}

/// All processes, where `/proc` shows them.
fn seen() -> Vec<Seen> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.filter_map(|entry| read(entry.ok()?.file_name().to_str()?)).collect()
}

fn read(name: &str) -> Option<Seen> {
    let pid = name.parse().ok()?;
    let stat = fs::read(format!("/proc/{name}/stat")).ok()?;
    // The name of the program, in brackets, may contain anything: `7 (sh) S 1 7 7 …`.
    let text = String::from_utf8_lossy(&stat);
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    let dead = matches!(fields.next()?, "Z" | "X");
    let mut next = || Some(Pid::from_raw(fields.next()?.parse().ok()?));
    Some(Seen { pid: Pid::from_raw(pid), parent: next()?, group: next()?, dead })
}
