//! A second process that kills a command when its authority is over, or when the process that renews it is gone, stopped or
//! blocked. Nothing else can do this after a SIGKILL.

use std::cell::RefCell;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Pid, getpid, getppid};

use super::processes::{Family, now_ms};

/// The command of this program that is the guard.
pub const NAME: &str = "__guard";

/// How long the guard waits at most before it reads the clock again: a machine that slept stops its timers.
const LOOK: Duration = Duration::from_millis(250);

/// The guard, as its owner has it. It ends with its owner, and is started again where somebody has ended it.
pub struct Guard(RefCell<Process>);

struct Process {
    process: Child,
    pipe: ChildStdin,
}

impl Guard {
    /// Starts it, once for all runs of this process.
    ///
    /// # Errors
    /// There can be no more processes.
    pub fn start() -> io::Result<Self> {
        Process::start().map(|process| Self(RefCell::new(process)))
    }

    /// Its process.
    pub fn pid(&self) -> Pid {
        let id = self.0.borrow().process.id();
        Pid::from_raw(i32::try_from(id).expect("a process id is an i32"))
    }

    /// Has it kill this group at a time of [`now_ms`], unless it is told again before.
    pub fn set(&self, group: Pid, until_ms: u64) {
        let mut guard = self.0.borrow_mut();
        if let Ok(Some(_)) = guard.process.try_wait()
            && let Ok(next) = Process::start()
        {
            *guard = next;
        }
        let _ = (&guard.pipe).write_all(format!("{group} {until_ms}\n").as_bytes());
    }

    /// Has it kill nothing.
    pub fn clear(&self) {
        self.set(Pid::from_raw(0), 0);
    }
}

impl Process {
    fn start() -> io::Result<Self> {
        // What was started goes on where the file was replaced meanwhile.
        let program = match cfg!(target_os = "linux") {
            true => "/proc/self/exe".into(),
            false => std::env::current_exe()?,
        };
        let mut process = Command::new(program)
            .arg(NAME)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A signal for every process of a terminal is no reason to leave the command alone.
            .process_group(0)
            .spawn()?;
        let pipe = process.stdin.take().expect("it is piped");
        // A guard that is stopped reads nothing, and must not stop its owner.
        fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(Self { process, pipe })
    }
}

/// Is the guard until its owner has ended.
pub fn watch() {
    // Before there is another thread, which has the same mask.
    let _ = SigSet::all().thread_block();
    let owner = getppid();
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let numbers = line.split_once(' ').and_then(|(group, until)| {
                Some((group.parse::<i32>().ok()?, until.parse::<u64>().ok()?))
            });
            let _ = tell.send(numbers.filter(|(group, _)| *group > 1));
        }
    });
    let mut watched = None;
    let family = |group| Family { group: Pid::from_raw(group), owner, guard: getpid() };
    loop {
        let left_ms =
            watched.map_or(u64::MAX, |(_, until_ms): (i32, u64)| until_ms.saturating_sub(now_ms()));
        match told.recv_timeout(LOOK.min(Duration::from_millis(left_ms))) {
            Ok(now) => watched = now,
            Err(RecvTimeoutError::Timeout)
                if left_ms > 0 && now_ms() < watched.map_or(u64::MAX, |(_, at)| at) => {}
            Err(RecvTimeoutError::Timeout) => {
                if let Some((group, _)) = watched.take() {
                    family(group).send_all(Signal::SIGKILL);
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                // The owner's number may be another's by now, so its descendants can't be told.
                if let Some((group, _)) = watched {
                    family(group).send(Signal::SIGKILL);
                }
                return;
            }
        }
    }
}
