//! Machines with their clocks, and the sessions that run on them.

use edgelect::clock::Now;
use edgelect::config::Config;
use edgelect::election::{Authority, Election};
use edgelect::peer::Desk;
use edgelect::slots::Schedule;

use super::clocks::Clocks;
use super::liveness::Liveness;
use super::network::Trouble;
use super::outside::Outside;
use super::port::Conversation;
use super::slots::Triggered;
use super::wire::Client;

/// For how long something is cut off, and in which direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cut {
    pub until_ms: u64,
    pub requests: bool,
    pub answers: bool,
    /// Ends at once with this answer instead of silence.
    pub says: Option<Trouble>,
    /// Reads are spared.
    pub writes: bool,
}

/// When a cron wakes a machine and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Cron {
    pub period_ms: u64,
    pub sustain_ms: u64,
    /// How long before the end of `sustain` the elector is told to park.
    pub reserve_ms: u64,
}

/// One process on one host; a cron machine starts a new session at each tick.
pub struct Machine {
    pub config: Config,
    pub clocks: Clocks,
    pub paused_until_ms: u64,
    /// For how long it computes once its next request has left.
    pub busy_ms: u64,
    /// How much time its clock has lost when the next answer comes, frozen with its host.
    pub frozen_ms: u64,
    pub cut: Cut,
    pub cron: Option<Cron>,
    /// Its sessions begin with a trigger and run slots.
    pub runs_slots: bool,
    /// Whoever runs the schedule brings its members, and starts and stops them.
    pub outside: bool,
    /// The schedule goes on without it.
    pub absent: bool,
    /// How long the work takes to stop after `Lost`, at most.
    pub work_end_ms: u64,
    /// The work goes on writing to the fenced resource until it has stopped, without a look.
    pub careless: bool,
}

impl Machine {
    /// Whether its process is always to run, so that it is started again.
    pub fn runs_for_long(&self) -> bool {
        self.cron.is_none() && !self.runs_slots && !self.outside
    }
}

/// The one operation that is under way.
pub struct Flight {
    pub operation: usize,
    /// Its newest request, whose answer is awaited.
    pub awaited: usize,
    pub due: Due,
    pub conversation: Option<Conversation>,
}

/// When a timer is due: by the clock of the host that set it, and in truth.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    pub mono_ms: u64,
    pub true_ms: u64,
}

/// One elector instance and the driver's memory beside it.
pub struct Session {
    pub machine: usize,
    pub election: Election,
    /// What is known of one that runs elsewhere; its election here gets no input, and has its settings alone.
    pub outside: Option<Outside>,
    /// Who asks it.
    pub desk: Desk,
    /// When a peer told it last that the leader is alive, by its monotonic clock, and for how long it passes that on.
    pub heard: Option<(u64, u64)>,
    /// Between the election and the store, where the requests are HTTP.
    pub client: Option<Client>,
    pub alive: bool,
    pub flight: Option<Flight>,
    /// How many timers fired before their due time by a single clock, which then had stepped back.
    pub early_timers: u32,
    /// The driver's timer.
    pub wake: Option<Due>,
    pub wakes: u64,
    /// It was told to stop, for good.
    pub stopped: bool,
    /// When the session was told to stop or to resign and has not said yet that it did, by its
    /// monotonic clock.
    pub stopping_ms: Option<u64>,
    /// An operator's request in its own record asked it to end a term.
    pub requested: bool,
    /// The terms whose work is running, the ending ones included.
    pub works: Vec<u64>,
    pub liveness: Liveness,
    /// The slots that it is to run, and what became of them.
    pub trigger: Option<Triggered>,
}

impl Session {
    pub fn new(
        machine: usize,
        name: String,
        config: &Config,
        seed: u64,
        client: Option<Client>,
        schedule: Option<Schedule>,
    ) -> Self {
        let config = config.clone();
        let trigger = schedule.clone().map(Triggered::new);
        let election = match schedule {
            Some(schedule) => Election::for_schedule(config, name, seed, schedule),
            None => Election::new(config, name, seed),
        };
        Self {
            machine,
            election,
            outside: None,
            desk: Desk::default(),
            heard: None,
            client,
            alive: true,
            flight: None,
            early_timers: 0,
            wake: None,
            wakes: 0,
            stopped: false,
            stopping_ms: None,
            requested: false,
            works: Vec::new(),
            liveness: Liveness::default(),
            trigger,
        }
    }

    pub fn authority(&self, now: Now) -> Option<Authority> {
        match &self.outside {
            Some(outside) => outside.authority(now),
            None => self.election.authority(now),
        }
    }

    /// The clocks as this session reads them. A single clock is held at the due time of the
    /// earliest timer that has not fired yet (S11).
    pub fn reading(&self, clocks: &Clocks, true_ms: u64) -> Now {
        let now = clocks.reading(true_ms);
        // Those from outside say themselves what they make of their clock.
        if !clocks.single || self.outside.is_some() {
            return now;
        }
        let early_timers = self.early_timers;
        let flight = self.flight.as_ref().map(|flight| flight.due);
        let pending = self.wake.into_iter().chain(flight).min_by_key(|due| due.true_ms);
        match pending.filter(|due| due.true_ms <= true_ms) {
            Some(due) => {
                Now { mono_ms: due.mono_ms, wall_ms: due.mono_ms, held: true, early_timers }
            }
            None => Now { early_timers, ..now },
        }
    }
}
