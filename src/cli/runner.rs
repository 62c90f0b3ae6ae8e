//! What `run` and `slot` share: settings, signals, and one command at a time under a term.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::future::poll_fn;
use std::io::{self, ErrorKind, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use edgelect::choice::AnyStore;
use edgelect::driver::Host;
use edgelect::probe::judge;
use edgelect::{Config, Election, Handle, Input, Native, Term, Waiting, calendar};
use futures::future::{Either, select};
use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getpid};
use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessSession};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::signal::unix::{self, SignalKind};

use super::child::{POLL_MS, Run, Times};
use super::command::{Flags, code};
use super::guard::Guard;
use super::place::{Failure, Place, Variables, require_name, shown};
use super::processes::{Family, MARK, Moment, now_ms, spare_descendants};
use super::tell;

const KILL_AFTER_MS: u64 = 8_000;
/// How often it is looked at what a member waits for.
const LOOK_MS: u64 = 100;
/// With -n: how long a lease that is about to end, and a store that is slow, are waited for.
const MOMENT_MS: u64 = 1_000;
const PATIENCE_MS: u64 = 10_000;
/// How long the last look at the lease may take.
const TELL_MS: u64 = 1_000;
/// Within what time two of one signal are one.
const SAME_SIGNAL_MS: u64 = 500;
/// After these no command is begun.
const ENDS: [Signal; 3] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGQUIT];
/// Those that others have a process ignore.
const UNHEARD: [Signal; 3] = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT];
const PASSED: [Signal; 8] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGHUP,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
    Signal::SIGCONT,
];

/// What is told of one run on standard error.
struct Lines {
    clock: Native,
    as_json: bool,
    warned: AtomicBool,
}

impl Lines {
    /// A line if there is a text; with --json each event.
    fn tell(&self, event: &str, mut more: Value, text: Option<&str>) {
        if self.as_json {
            let now_ms = i64::try_from(self.clock.now().wall_ms).unwrap_or_default();
            more["at"] = calendar::rfc3339_with_ms(now_ms).into();
            more["event"] = event.into();
            if let Some(text) = text {
                more["text"] = text.into();
            }
            tell::line(&tell::json(&more));
        } else if let Some(text) = text {
            tell::error(text);
        }
    }

    fn warn(&self, line: &str) {
        self.warned.store(true, Ordering::Relaxed);
        self.tell("error", json!({}), Some(line.strip_prefix("edgelect: ").unwrap_or(line)));
    }
}

/// Why nothing is to be begun any more, and with which exit code.
#[derive(Clone, Copy)]
struct Ending {
    code: i32,
    signal: Option<Signal>,
}

/// How a command has ended.
pub struct Ended {
    /// The exit code of it all.
    pub code: i32,
    /// Whether it had begun.
    pub started: bool,
}

/// One command line at work.
pub struct Runner {
    /// The machine.
    pub host: Native,
    lines: Arc<Lines>,
    /// The group's store.
    pub store: Place,
    /// This member.
    pub handle: Handle,
    /// The exit code where another leads.
    pub conflict: i32,
    command: Vec<OsString>,
    shell: bool,
    restarts: bool,
    nonblock: bool,
    /// Until when to wait for the leadership, if not for ever; by [`now_ms`].
    give_up_at_ms: Cell<Option<u64>>,
    /// With -n: the time of the record that it watches, where that has run out by this time.
    watches: Cell<Option<i64>>,
    kill_after_ms: u64,
    times: Times,
    guard: Guard,
    signals: RefCell<Vec<(Signal, unix::Signal)>>,
    current: RefCell<Option<Rc<Run>>>,
    ending: Cell<Option<Ending>>,
    /// The newest signal that ends the command, and when it came.
    signalled: Cell<Option<(Signal, u64)>>,
    waits_for: Cell<Option<Waiting>>,
}

impl Runner {
    /// Reads settings and variables, and catches signals from here on.
    ///
    /// # Errors
    /// What is wrong.
    pub fn open(
        flags: &Flags,
        elect: impl FnOnce(&Native, Config) -> Result<Election, Failure>,
    ) -> Result<Self, Failure> {
        let machine = |error: io::Error| Failure::Machine(error.to_string());
        spare_descendants(getpid());
        tell::from_behind();
        let heard = PASSED.iter().filter(|signal| !is_ignored(**signal)).chain([&Signal::SIGCHLD]);
        let signals: io::Result<_> = heard.map(listen).collect();
        let name = nix::unistd::gethostname().unwrap_or_default();
        let server_id = format!("{}-{}", name.to_string_lossy(), getpid());
        if flags.operands.first().is_none_or(|program| program.is_empty()) {
            return Err(Failure::Settings("COMMAND = \"\": name a program".to_owned()));
        }
        require_name(flags)?;
        let variables = Variables::new(flags, &[("EDGELECT_SERVER_ID", server_id)])?;
        let config = variables.config()?;
        let times = Times::new(&config, flags.number("grace"))?;
        let native = Native::new().map_err(Failure::Machine)?;
        let (clock, as_json) = (native.clone(), flags.has("json"));
        let lines = Arc::new(Lines { clock, as_json, warned: AtomicBool::default() });
        let mark = hex::encode(native.random().map_err(Failure::Machine)?);
        let hearing = Arc::clone(&lines);
        let host = native.heard_by(move |line| hearing.warn(line));
        let store = variables.store(&config, host.clone())?;
        let wait_ms = flags.number("wait");
        let nonblock = flags.has("nonblock") || wait_ms == Some(0);
        let patience_ms = nonblock.then_some(PATIENCE_MS);
        let wait_ms = wait_ms.filter(|ms| *ms > 0).or(patience_ms);
        adopt().map_err(machine)?;
        Ok(Self {
            handle: Handle::new(elect(&host, config)?),
            store,
            conflict: flags.number("conflict-exit-code").map_or(code("conflict"), |n| n as i32),
            command: flags.operands.clone(),
            shell: flags.has("shell"),
            restarts: flags.has("restart"),
            nonblock,
            watches: Cell::new(None),
            give_up_at_ms: Cell::new(wait_ms.map(|ms| now_ms() + ms)),
            kill_after_ms: flags.number("kill-after").unwrap_or(KILL_AFTER_MS),
            times,
            guard: Guard::start(mark).map_err(machine)?,
            signals: RefCell::new(signals.map_err(machine)?),
            current: RefCell::default(),
            ending: Cell::default(),
            signalled: Cell::default(),
            waits_for: Cell::default(),
            host,
            lines,
        })
    }

    /// Carries `work` out, and heeds signals meanwhile; gives the exit code.
    ///
    /// # Errors
    /// Those of the work.
    pub async fn attend(
        &self,
        work: impl Future<Output = Result<i32, Failure>>,
    ) -> Result<i32, Failure> {
        let working = async {
            let ended = work.await;
            self.tell_lease().await;
            ended
        };
        let Either::Left((ended, _)) = select(Box::pin(working), Box::pin(self.heed())).await;
        let own = match ended {
            Err(failure @ Failure::Settings(_)) => return Err(failure),
            Err(failure) => {
                self.tell("error", json!({}), Some(failure.text()));
                failure.code()
            }
            Ok(code) => code,
        };
        Ok(self.ending.get().map_or(own, |ending| ending.code))
    }

    /// Judges the store, as a long-running process does before it trusts one.
    ///
    /// # Errors
    /// It breaks a condition.
    pub async fn judge(&self) -> Result<(), Failure> {
        let judged = match &self.store {
            _ if self.nonblock => return Ok(()),
            AnyStore::S3(store) => judge(&self.handle, &**store, &self.host).await,
            AnyStore::Epochs(store) => judge(&self.handle, &**store, &self.host).await,
            // A table and a zone are AWS's own.
            _ => return Ok(()),
        };
        judged.map(drop).map_err(Failure::Store)
    }

    /// Runs the command under a term: how it ended, or `None` where nothing is to be begun. Dropped, it ends the command.
    pub async fn run(&self, term: &Term<'_, Native>, slot: Option<&str>) -> Option<Ended> {
        self.give_up_at_ms.set(None);
        // A claim that was slow leaves too little: the next renewal comes first.
        while !self.is_over() && term.remaining_ms() <= self.times.least_ms() {
            self.host.sleep(POLL_MS).await;
        }
        if self.is_over() {
            return None;
        }
        // Before the command can act: this process may be killed right after.
        let (now, left_ms) = (Moment::now(), term.remaining_ms());
        self.guard.set(None, self.times.killed_at(now, left_ms));
        let mut life = match self.spawn(term, slot) {
            Ok(life) => life,
            Err(error) => {
                self.guard.clear();
                return Some(self.not_started(&error));
            }
        };
        let mut began = json!({ "term": term.token });
        if let Some(slot) = slot {
            began["slot"] = slot.into();
        }
        self.tell("began", began, None);
        let status = loop {
            // One that has ended by itself is not ended by us, though the authority is over as well.
            if let Ok(Some(status)) = life.process.try_wait() {
                break Ok(status);
            }
            let next_ms = life.run.look(&self.guard, || term.remaining_ms());
            tokio::select! {
                status = life.process.wait() => break status,
                () = self.host.sleep(next_ms) => {}
            }
        };
        if life.run.lives() {
            life.run.sweep();
        }
        while life.run.is_ending() {
            life.run.look(&self.guard, || term.remaining_ms());
            self.host.sleep(POLL_MS).await;
        }
        let lost = life.run.is_lost();
        Some(Ended { code: life.end(status.ok(), lost), started: true })
    }

    fn spawn(&self, term: &Term<'_, Native>, slot: Option<&str>) -> io::Result<Life<'_>> {
        let (program, args) = match self.shell {
            true => (OsStr::new("/bin/sh"), vec!["-c".into(), self.command.join(OsStr::new(" "))]),
            false => (self.command[0].as_os_str(), self.command[1..].to_vec()),
        };
        let mut command = Command::new(program);
        command.args(args).env(MARK, &self.guard.mark);
        command.env("EDGELECT_TOKEN", term.token.to_string());
        command.envs(slot.map(|slot| ("EDGELECT_SLOT", slot)));
        // Its own group has a session of its own, as a terminal would otherwise stop it at its first read.
        let process = CommandWrap::from(command).wrap(ProcessSession).spawn()?.into_inner();
        let group = process.id().and_then(|id| i32::try_from(id).ok());
        let group = Pid::from_raw(group.expect("nobody has waited for it"));
        let family = Family { group, owner: getpid(), guard: self.guard.pid() };
        let run = Rc::new(Run::new(family, self.times, self.kill_after_ms));
        self.current.replace(Some(Rc::clone(&run)));
        Ok(Life { runner: self, run, process, ended: false })
    }

    fn not_started(&self, error: &io::Error) -> Ended {
        let (code, why) = match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename => {
                (code("notFound"), "there is no such command".to_owned())
            }
            ErrorKind::PermissionDenied => {
                (code("notExecutable"), "it can't be executed".to_owned())
            }
            _ if error.raw_os_error() == Some(Errno::ELOOP as i32) => {
                (code("notExecutable"), "its symbolic links lead in a circle".to_owned())
            }
            _ => (code("failed"), error.to_string()),
        };
        let text = format!("{}: {why}", self.command[0].to_string_lossy());
        self.tell("ended", json!({ "code": code }), Some(&text));
        Ended { code, started: false }
    }

    /// A line on standard error if there is a text; with --json each event.
    pub fn tell(&self, event: &str, more: Value, text: Option<&str>) {
        self.lines.tell(event, more, text);
    }

    /// Has nothing begun any more.
    pub fn end(&self, code: i32) {
        self.end_by(code, None);
    }

    fn end_by(&self, code: i32, signal: Option<Signal>) {
        // The code is that of what came first; a signal that comes later has its answer as well.
        let ending = self.ending.get().unwrap_or(Ending { code, signal });
        self.ending.set(Some(Ending { signal: ending.signal.or(signal), ..ending }));
        if self.current.borrow().is_none() {
            self.handle.tell(Input::Stop { park: false });
        }
    }

    /// Whether nothing is to be begun any more.
    pub fn is_over(&self) -> bool {
        self.ending.get().is_some()
    }

    async fn heed(&self) -> Infallible {
        loop {
            let next = poll_fn(|context| {
                let mut signals = self.signals.borrow_mut();
                let mut came = signals.iter_mut().filter_map(|(name, stream)| {
                    stream.poll_recv(context).is_ready().then_some(*name)
                });
                came.next().map_or(Poll::Pending, Poll::Ready)
            });
            tokio::select! {
                signal = next => self.on_signal(signal),
                () = self.host.sleep(LOOK_MS) => {}
            }
            self.look();
        }
    }

    fn on_signal(&self, signal: Signal) {
        let run = self.current.borrow().clone();
        if signal == Signal::SIGCHLD {
            run.iter().for_each(|run| run.reap());
            return;
        }
        let ends = ENDS.contains(&signal);
        let now_ms = self.host.now().mono_ms;
        // What starts programs may pass on what the terminal has sent to its whole group.
        let before =
            self.signalled.get().filter(|(one, ms)| *one == signal && now_ms - ms < SAME_SIGNAL_MS);
        if ends {
            if before.is_some() {
                return;
            }
            self.signalled.set(Some((signal, now_ms)));
        }
        self.tell("signal", json!({ "signal": signal.as_str() }), None);
        let code = 128 + signal as i32;
        match &run {
            Some(run) => run.signal(signal, ends),
            None if ends && self.ending.get().is_some_and(|ending| ending.signal.is_some()) => {
                self.leave(code, signal.as_str());
            }
            None => {}
        }
        if ends || (signal == Signal::SIGHUP && run.is_none()) {
            self.end_by(code, Some(signal));
        }
    }

    fn tell_denied(&self, run: &Run) {
        if run.take_denied() {
            let text = "the command runs as another user, so that it can't be ended: run edgelect itself as that user";
            self.tell("denied", json!({}), Some(text));
        }
    }

    /// Whether what is waited for is shown while it is.
    fn shows(&self) -> bool {
        self.lines.as_json || io::stderr().is_terminal()
    }

    /// Tells what is waited for, and gives up where that takes too long.
    fn look(&self) {
        if let Some(run) = &*self.current.borrow() {
            self.tell_denied(run);
        }
        let now = self.host.now();
        let waiting = self.handle.with(|election| election.waiting(now));
        let before = self.waits_for.replace(waiting.map(|(what, _)| what));
        if let Some((what, left_ms)) = waiting
            && before != Some(what)
        {
            let why = self.handle.with(|election| {
                election.waiting_text(now, (what, left_ms), election.leader_id(now))
            });
            self.tell("waits", json!({}), Some(&why).filter(|_| self.shows()).map(String::as_str));
        }
        if self.give_up_at_ms.get().is_none() {
            return;
        }
        let problem = self.handle.with(|election| election.problem().map(ToString::to_string));
        let warned = self.lines.warned.load(Ordering::Relaxed);
        let grace = |what| matches!(what, Waiting::NewGroup | Waiting::Grace);
        let over = self.handle.with(|election| election.seems_over(now)).filter(|_| self.nonblock);
        if let (Some(_), None) = (over, self.watches.get()) {
            // Where no clock of the store's proves that, it is watched for its whole length, or no call would ever lead.
            let most_ms = 2 * self.handle.with(|election| election.config().take_over_ms());
            self.watches.set(over);
            self.give_up_at_ms.set(Some(now_ms() + most_ms));
        }
        let Some(give_up_at_ms) = self.give_up_at_ms.get() else { return };
        let watches = self.watches.get().is_some();
        // One that is renewed meanwhile is not over: a clock is wrong.
        let seems_over = over.is_some() && over == self.watches.get();
        // Where nobody has written anything yet, a next call has to find that this one has.
        let is_long = waiting.is_some_and(|(what, left_ms)| match what {
            Waiting::Store => false,
            Waiting::Lease => !seems_over && left_ms.is_none_or(|left_ms| left_ms > MOMENT_MS),
            what if grace(what) => !watches && left_ms.is_some_and(|left_ms| left_ms > MOMENT_MS),
            _ => left_ms.is_none_or(|left_ms| left_ms > MOMENT_MS),
        });
        let at_once = self.nonblock && (is_long || (problem.is_some() && warned));
        if at_once || now_ms() >= give_up_at_ms {
            // Whose lease it waits for nobody asked, and of a grace the driver tells.
            let untold = |what| what != Waiting::Lease && !grace(what);
            if let Some((what, left_ms)) = waiting.filter(|(what, _)| untold(*what))
                && !self.shows()
                && problem.is_none()
            {
                // That nobody leads the exit code does not tell.
                let why =
                    self.handle.with(|election| election.waiting_text(now, (what, left_ms), None));
                self.tell("waits", json!({}), Some(&why));
            }
            self.give_up_at_ms.set(None);
            self.end(if problem.is_some() { code("failed") } else { self.conflict });
            if let Some(text) = problem.filter(|_| !warned) {
                self.lines.warn(&text);
            }
        }
    }

    /// Ends at once; the lease is not released.
    fn leave(&self, code: i32, why: &str) {
        let lease_ms = self.handle.with(|election| election.config().leader_timeout_ms);
        let text = format!("{why}: the lease is not released, and runs out within {lease_ms} ms");
        self.tell("left", json!({ "code": code }), Some(&text));
        tell::settle();
        std::process::exit(code);
    }

    /// After a signal: what became of the lease.
    async fn tell_lease(&self) {
        let Some(Ending { signal: Some(signal), .. }) = self.ending.get() else { return };
        let config = self.handle.with(|election| election.config().clone());
        let (server_id, lease_ms) = (config.server_id.clone(), config.leader_timeout_ms);
        // Docker kills what has not ended 10 s after its SIGTERM.
        let late = self.host.sleep(TELL_MS);
        let looking = shown(&config, &self.store, &self.host, None);
        let (held, text) = match select(Box::pin(looking), Box::pin(late)).await {
            Either::Left((Ok(look), _)) if look["leaderId"] == server_id.as_str() => {
                (true, format!("the lease runs out within {} ms", look["leftMs"]))
            }
            Either::Left((Ok(_), _)) => (false, "this member holds no lease".to_owned()),
            // No look came through: a claim may have landed all the same.
            _ => (true, format!("a lease that this member may hold runs out within {lease_ms} ms")),
        };
        self.tell("left", json!({ "held": held }), Some(&format!("{signal}: {text}")));
    }
}

/// A command that runs. Dropped, it is ended first: the lease is released after that.
struct Life<'a> {
    runner: &'a Runner,
    run: Rc<Run>,
    process: Box<dyn ChildWrapper>,
    ended: bool,
}

impl Life<'_> {
    /// Nothing of it is to run any more; gives the exit code. `lost` says that it was ended because the authority was.
    fn end(&mut self, status: Option<ExitStatus>, lost: bool) -> i32 {
        let runner = self.runner;
        let lives = self.run.lives();
        if lives {
            runner.tell_denied(&self.run);
        }
        self.ended = true;
        let signal = status.and_then(|status| status.signal());
        let own = status.and_then(|status| status.code()).or(signal.map(|number| 128 + number));
        let code = if lost { code("lost") } else { own.unwrap_or(code("failed")) };
        let text = "the authority was lost, so the command was ended";
        runner.tell("ended", json!({ "code": code }), Some(text).filter(|_| lost && !lives));
        if lives {
            runner.leave(code, "a process of the command does not die");
        }
        runner.guard.clear();
        runner.current.replace(None);
        if let Some(ending) = runner.ending.get() {
            runner.ending.set(Some(Ending { code, ..ending }));
        } else if signal == Some(Signal::SIGHUP as i32) {
            runner.ending.set(Some(Ending { code, signal: None }));
        }
        if runner.is_over() {
            // Before the slot is closed: another one must not be claimed that nobody would run.
            runner.handle.tell(Input::Stop { park: false });
        }
        code
    }
}

impl Drop for Life<'_> {
    #[allow(clippy::disallowed_methods)] // Nothing else may go on before the command has ended.
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let mut status = self.process.try_wait().ok().flatten();
        // The guard ends it by a signal.
        let by_itself = !self.run.is_lost() && status.and_then(|status| status.code()).is_some();
        // Where the authority was lost, after a jump of a clock for one, another may lead, whatever the newest record says.
        self.run.abandon(self.runner.handle.with(Election::gives_up));
        while self.run.is_ending() {
            status = status.or(self.process.try_wait().ok().flatten());
            std::thread::sleep(std::time::Duration::from_millis(POLL_MS));
        }
        let code = self.end(status, !by_itself);
        if self.runner.is_over() || !self.runner.restarts || (by_itself && code == 0) {
            self.runner.end(code);
        }
    }
}

/// Whether whoever started this process has it ignore a signal, as `nohup` does and a shell for what it starts with `&`: then it
/// goes on doing so, and the command as well. Known where `/proc` shows it.
fn is_ignored(signal: Signal) -> bool {
    if !UNHEARD.contains(&signal) {
        return false;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal as i32 - 1) & 1 == 1
}

fn listen(signal: &Signal) -> io::Result<(Signal, unix::Signal)> {
    Ok((*signal, unix::signal(SignalKind::from_raw(*signal as i32))?))
}

/// Becomes the parent of descendants that lose theirs.
fn adopt() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_child_subreaper(true)?;
    Ok(())
}
