//! One run of a command, whose processes are dead before the authority under which it runs ends.

use std::cell::Cell;

use edgelect::Config;
use nix::sys::signal::Signal;

use super::guard::Guard;
use super::place::Failure;
use super::processes::{Family, Moment, now_ms};

/// How often something is looked at that presses.
pub const POLL_MS: u64 = 20;
/// How often the authority is read where nothing presses.
const LOOK_MS: u64 = 200;
/// How long a group may take to die of SIGKILL before its lease is left to run out.
const DYING_MS: u64 = 1_000;

/// How long before the fence the group gets SIGTERM and SIGKILL, in milliseconds.
#[derive(Clone, Copy)]
pub struct Times {
    grace_ms: u64,
    kill_ms: u64,
}

impl Times {
    /// Those of a lease.
    ///
    /// # Errors
    /// SIGTERM would come before a renewal can be answered.
    pub fn new(config: &Config, grace_ms: Option<u64>) -> Result<Self, Failure> {
        let lease_ms = config.leader_timeout_ms;
        let kill_ms = (lease_ms / 20).min(500);
        let before_ms =
            config.margin_ms + config.frequent_interval_ms + config.request_timeout_ms + kill_ms;
        let most_ms = lease_ms.saturating_sub(before_ms);
        match grace_ms {
            Some(grace_ms) if grace_ms > most_ms => Err(Failure::Settings(format!(
                "--grace = {grace_ms} ms: at most {most_ms} ms with this lease, so that a renewal is answered before SIGTERM; set a longer --lease"
            ))),
            Some(grace_ms) => Ok(Self { grace_ms, kill_ms }),
            None => Ok(Self { grace_ms: (lease_ms / 6).min(most_ms), kill_ms }),
        }
    }

    /// When the guard kills what others have not, where so much is left of the authority.
    pub fn killed_at(&self, now: Moment, left_ms: u64) -> Moment {
        now.after(left_ms.saturating_sub(self.kill_ms / 2))
    }

    /// What has to be left of an authority for a command to begin under it.
    pub fn least_ms(&self) -> u64 {
        self.grace_ms + self.kill_ms + POLL_MS
    }
}

/// Whether signals reach a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Denied {
    No,
    Yes,
    Told,
}

/// One run, as signals and the work under a term have it. Times are those of [`now_ms`].
pub struct Run {
    family: Cell<Family>,
    times: Times,
    kill_after_ms: u64,
    /// When it gets SIGKILL, whatever its lease says.
    kill_at_ms: Cell<u64>,
    fence: Cell<Moment>,
    lost: Cell<bool>,
    /// Whether something of it runs as another user, and so can't be ended.
    denied: Cell<Denied>,
}

impl Run {
    /// A run that has begun.
    pub fn new(family: Family, times: Times, kill_after_ms: u64) -> Self {
        let (kill_at_ms, fence) = (Cell::new(u64::MAX), Cell::default());
        let family = Cell::new(family);
        let (lost, denied) = (Cell::new(false), Cell::new(Denied::No));
        Self { family, times, kill_after_ms, kill_at_ms, fence, lost, denied }
    }

    /// Whether it can't be ended; says so once.
    pub fn take_denied(&self) -> bool {
        let denied = self.denied.get() == Denied::Yes;
        if denied {
            self.denied.set(Denied::Told);
        }
        denied
    }

    fn send_all(&self, signal: Signal) {
        self.sent(self.family.get().send_all(signal));
    }

    fn sent(&self, sent: bool) {
        if !sent && self.denied.get() == Denied::No {
            self.denied.set(Denied::Yes);
        }
    }

    /// Whether it was ended because the authority ended.
    pub fn is_lost(&self) -> bool {
        self.lost.get()
    }

    /// Acts on what is left of the authority; gives after how many milliseconds to look again.
    pub fn look(&self, guard: &Guard, left_ms: impl FnOnce() -> u64) -> u64 {
        let Times { grace_ms, kill_ms } = self.times;
        // Before the authority is read, so that the fence is not taken for later than it is.
        let now = Moment::now();
        let (now_ms, left_ms) = (now.shared_ms, left_ms());
        self.fence.set(now.after(left_ms));
        if left_ms <= kill_ms || now_ms >= self.kill_at_ms.get() {
            self.lost.set(self.lost.get() || left_ms <= kill_ms);
            self.send_all(Signal::SIGKILL);
        } else if left_ms <= kill_ms + grace_ms && !self.lost.get() {
            self.lose();
        }
        let family = self.family.get();
        guard.set(Some(family.group), self.times.killed_at(now, left_ms));
        self.family.set(Family { guard: guard.pid(), ..family });
        let calm_ms = left_ms.saturating_sub(kill_ms + grace_ms) / 2;
        calm_ms
            .min(self.kill_at_ms.get() - now_ms.min(self.kill_at_ms.get()))
            .clamp(POLL_MS, LOOK_MS)
    }

    /// Passes a signal on. One that `ends` the command has a limit; the second one is SIGKILL.
    pub fn signal(&self, signal: Signal, ends: bool) {
        let again = ends && self.kill_at_ms.get() < u64::MAX;
        if ends {
            self.kill_in(self.kill_after_ms);
        }
        if again {
            self.send_all(Signal::SIGKILL);
        } else {
            self.sent(self.family.get().send(signal));
        }
    }

    /// The authority is ending, or was given up.
    fn lose(&self) {
        self.lost.set(true);
        self.sweep();
    }

    /// Ends what still runs.
    pub fn sweep(&self) {
        self.kill_in(self.times.grace_ms);
        self.send_all(Signal::SIGTERM);
    }

    /// The term is over. Where the authority was `given_up` the lease is held for the rest of its time, and the command has its
    /// grace; otherwise it gets SIGKILL at once.
    pub fn abandon(&self, given_up: bool) {
        if given_up && !self.is_at_fence() {
            self.lose();
        } else {
            self.lost.set(true);
            self.kill_at_ms.set(now_ms());
            self.send_all(Signal::SIGKILL);
        }
    }

    /// Whether to wait on for its end, with SIGKILL from its time on.
    pub fn is_ending(&self) -> bool {
        if !self.family.get().lives() {
            return false;
        }
        if self.is_at_fence() {
            self.kill_in(0);
        }
        let late_ms = now_ms().checked_sub(self.kill_at_ms.get());
        if late_ms.is_some() {
            self.send_all(Signal::SIGKILL);
        }
        late_ms.is_none_or(|late_ms| late_ms < DYING_MS)
    }

    /// Whether anything of it runs.
    pub fn lives(&self) -> bool {
        self.family.get().lives()
    }

    /// Collects what it has left behind and has died.
    pub fn reap(&self) {
        self.family.get().reap_adopted();
    }

    /// Whether it is time for SIGKILL, by what was left of the authority when somebody looked last.
    fn is_at_fence(&self) -> bool {
        self.fence.get().left_ms() <= self.times.kill_ms
    }

    fn kill_in(&self, ms: u64) {
        self.kill_at_ms.set(self.kill_at_ms.get().min(now_ms() + ms));
    }
}
