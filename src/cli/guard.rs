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

use super::processes::{
    Family, Known, MARK, Marked, Moment, NAME, QUIET, kill_known, kill_marked, now_ms, spare,
    spare_descendants,
};

/// How long the guard waits at most before it reads the clock again: a machine that slept stops its timers.
const LOOK: Duration = Duration::from_millis(250);

/// How often it notes what has left the group: nothing else tells what such a process was once the owner has ended.
const NOTE_MS: u64 = 1_000;
/// And what has to be left of the authority for that, as thousands of processes take a while to read.
const LEISURE_MS: u64 = 500;

/// How often, and how far apart, it looks for what is left once it has killed.
const LOOKS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(50);

/// The guard, as its owner has it. It ends with its owner, and is started again where somebody has ended it.
pub struct Guard {
    process: RefCell<Process>,
    /// The value of [`MARK`] for all that it guards.
    pub mark: String,
}

struct Process {
    process: Child,
    pipe: ChildStdin,
}

impl Guard {
    /// Starts it, once for all runs of this process.
    ///
    /// # Errors
    /// There can be no more processes.
    pub fn start(mark: String) -> io::Result<Self> {
        Ok(Self { process: RefCell::new(Process::start(&mark)?), mark })
    }

    /// Its process.
    pub fn pid(&self) -> Pid {
        let id = self.process.borrow().process.id();
        Pid::from_raw(i32::try_from(id).expect("a process id is an i32"))
    }

    /// Has it kill this group, and what has its mark, at this moment, unless it is told again before. There is no group while
    /// the command is being started.
    pub fn set(&self, group: Option<Pid>, until: Moment) {
        let mut guard = self.process.borrow_mut();
        if let Ok(Some(_)) = guard.process.try_wait()
            && let Ok(next) = Process::start(&self.mark)
        {
            *guard = next;
        }
        let group = group.map_or(0, Pid::as_raw);
        let Moment { shared_ms, wall_ms } = until;
        let _ = (&guard.pipe).write_all(format!("{group} {shared_ms} {wall_ms}\n").as_bytes());
    }

    /// Has it kill nothing.
    pub fn clear(&self) {
        self.set(None, Moment::default());
    }
}

impl Process {
    fn start(mark: &str) -> io::Result<Self> {
        // What was started goes on where the file was replaced meanwhile.
        let program = match cfg!(target_os = "linux") {
            true => "/proc/self/exe".into(),
            false => std::env::current_exe()?,
        };
        let owner = getpid();
        let spared = spare_descendants(owner).iter();
        let spared = spared.map(|one| format!("{}:{}", one.pid, one.started));
        let mut process = Command::new(program)
            .args([NAME, mark, &owner.to_string()])
            .args(spared)
            // Of an edgelect that runs this one: its guard leaves ours alone, which has a command of its own to end.
            .env_remove(MARK)
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

/// Is the guard until its owner has ended; `told` is what [`Guard::start`] hands over.
pub fn watch(told: &[String]) {
    // Before there is another thread, which has the same mask.
    let _ = SigSet::all().thread_block();
    let [mark, owner, spared @ ..] = told else { return };
    // Its parent may be another by now.
    let owner = owner.parse().map_or(getppid(), Pid::from_raw);
    spare(spared.iter().filter_map(|one| known(one)).collect());
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let _ = tell.send(read(&line).filter(|(_, until)| until.shared_ms > 0));
        }
    });
    let mut watched = None;
    let mut rest: Option<Rest> = None;
    let (mut strays, mut noted_ms) = (Vec::new(), now_ms());
    let family = |group| {
        let group = Some(group).filter(|group| *group > 1).map(Pid::from_raw);
        group.map(|group| Family { group, owner, guard: getpid() })
    };
    loop {
        let left_ms = || watched.map_or(u64::MAX, |(_, until): (i32, Moment)| until.left_ms());
        let pause = if rest.is_some() { PAUSE } else { LOOK };
        match told.recv_timeout(pause.min(Duration::from_millis(left_ms()))) {
            Ok(now) => (watched, rest) = (now, None),
            Err(RecvTimeoutError::Timeout) => {
                if left_ms() == 0 {
                    rest = watched.take().map(|(group, _)| Rest::of(family(group)));
                }
                if rest.as_mut().is_some_and(|rest| !rest.look(mark)) {
                    rest = None;
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                if let Some((group, _)) = watched {
                    rest = Some(Rest::of(family(group)));
                    kill_known(&strays);
                }
                #[allow(clippy::disallowed_methods)] // It has nothing else to do.
                while rest.as_mut().is_some_and(|rest| rest.look(mark)) {
                    std::thread::sleep(PAUSE);
                }
                return;
            }
        }
        let left_ms = watched.map_or(0, |(_, until): (i32, Moment)| until.left_ms());
        if left_ms >= LEISURE_MS && now_ms().saturating_sub(noted_ms) >= NOTE_MS {
            let family = watched.and_then(|(group, _)| family(group));
            let now_outside = family.map_or_else(Vec::new, |family| family.now_outside());
            // After its end nobody's descendants are the owner's.
            if getppid() == owner {
                strays = now_outside;
            }
            noted_ms = now_ms();
        }
    }
}

fn known(text: &str) -> Option<Known> {
    let (pid, started) = text.split_once(':')?;
    Some(Known { pid: Pid::from_raw(pid.parse().ok()?), started: started.parse().ok()? })
}

/// What it was told: the group, and until when.
fn read(line: &str) -> Option<(i32, Moment)> {
    let mut numbers = line.split(' ');
    let group = numbers.next()?.parse().ok()?;
    let mut next_ms = || numbers.next()?.parse().ok();
    Some((group, Moment { shared_ms: next_ms()?, wall_ms: next_ms()? }))
}

/// The end of what was killed: looked for until nothing is left of it.
struct Rest {
    family: Option<Family>,
    /// A command that was just being started may have no mark yet.
    found: bool,
    looks: u32,
    quiet: u32,
}

impl Rest {
    /// Kills the group, to which nothing can be added any more.
    fn of(family: Option<Family>) -> Self {
        if let Some(family) = family {
            family.send(Signal::SIGKILL);
        }
        Self { family, found: family.is_some(), looks: 0, quiet: 0 }
    }

    /// Kills what it sees outside the group; whether to look again.
    fn look(&mut self, mark: &str) -> bool {
        let strays = self.family.is_some_and(|family| family.kill_outside());
        let marked = kill_marked(mark);
        self.found |= strays || marked == Marked::Some;
        let is_quiet = self.found && !strays && marked == Marked::None;
        self.quiet = if is_quiet { self.quiet + 1 } else { 0 };
        self.looks += 1;
        self.quiet < QUIET && self.looks < LOOKS
    }
}
