//! Shards that are shared out evenly over the members that are alive, each led by one member at a time.
//!
//! Every shard has a lease of its own, `PREFIX/0` and so on, and its own terms and tokens: whatever a member believes of the
//! others, nobody leads a shard without its lease. Which shards a member asks for is decided by [`plan`].

pub mod plan;

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::pin::pin;

use futures::StreamExt;
use futures::future::{Either, select};
use futures::stream::FuturesUnordered;

use self::plan::{Plan, View};
use crate::clock::Now;
use crate::config::{Config, ConfigError, Follow, Settings};
use crate::driver::{Handle, Host, session_id};
use crate::election::{Election, Holder, Input};
use crate::electors::{AddError, Electors, Member};
use crate::lead::Term;
use crate::store::{Fault, Store};
use crate::text::quoted;

/// How many shards there may be: each member follows all of them.
pub const MOST_SHARDS: usize = 1_024;

/// How often in each `frequentInterval` the leases are looked at, and how soon at the least, in milliseconds.
const LOOKS: u64 = 10;
const SOONEST_LOOK_MS: u64 = 50;

/// Why [`Shards::lead`] has ended by itself.
#[derive(Clone, Debug, PartialEq)]
pub enum ShardsError {
    /// The shards' electors could not be made.
    Add(AddError),
    /// The store can't be used, or breaks its conditions.
    Store(Fault),
}

impl std::fmt::Display for ShardsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Add(error) => error.fmt(f),
            Self::Store(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for ShardsError {}

/// One member's part in the shards of one prefix.
pub struct Shards<H> {
    electors: Electors<H>,
    host: H,
    configs: Vec<Config>,
    stops: Cell<bool>,
    handles: RefCell<Vec<Handle>>,
}

/// The settings of each shard, and those of the seat at the end.
///
/// # Errors
/// An option breaks a rule, or there are too many shards.
pub fn configs(
    settings: &Settings,
    prefix: &str,
    shards: usize,
) -> Result<Vec<Config>, ConfigError> {
    if !(1..=MOST_SHARDS).contains(&shards) {
        let rule = format!("must be a whole number from 1 to {MOST_SHARDS}");
        return Err(ConfigError::new("shards", shards.to_string(), rule));
    }
    if prefix.is_empty() || prefix.ends_with('/') {
        let rule =
            "must be a text without a slash at its end: what the shards' lockfilePaths begin with";
        return Err(ConfigError::new("prefix", quoted(prefix), rule));
    }
    let names = (0..shards).map(|shard| shard.to_string()).chain(["seat".to_owned()]);
    let config = |name: String| {
        let lockfile_path = Some(format!("{prefix}/{name}"));
        Config::new(&Settings { lockfile_path, ..settings.clone() })
    };
    names.map(config).collect()
}

/// How old a member's view of a lease may be, in milliseconds.
pub fn look_ms(config: &Config) -> u64 {
    match config.follow {
        Follow::Tight => config.frequent_interval_ms,
        Follow::Balanced => config.leader_timeout_ms,
        Follow::Frugal => config.infrequent_interval_ms,
    }
}

/// How often a member looks at what it knows of the leases, in milliseconds.
pub fn step_ms(config: &Config) -> u64 {
    (config.frequent_interval_ms / LOOKS).max(SOONEST_LOOK_MS)
}

/// Who holds a lease, as the plan wants to know. What was not heard of for longer than `stale_ms` may have changed: a member
/// that the store does not answer sees every lease run out.
fn view(election: &Election, now: Now, stale_ms: u64) -> View {
    match election.holder(now) {
        Holder::Me => View::Mine,
        // It is not read again before that is over.
        Holder::Coming if election.in_own_grace(now) => View::Coming,
        _ if election.unheard_ms(now) > stale_ms => View::Unknown,
        Holder::Unknown => View::Unknown,
        Holder::Coming => View::Coming,
        Holder::Nobody => View::Free,
        Holder::Barred => View::Barred,
        Holder::Unnamed => View::Unnamed,
        Holder::Other(name) => View::Other(name.to_owned()),
    }
}

impl<H: Host + Clone + 'static> Shards<H> {
    /// A member of the shards `PREFIX/0` to `PREFIX/SHARDS-1`, with the seat `PREFIX/seat`. Each member has a `server_id` of its
    /// own: without one, a random one. All members have the same number of shards.
    ///
    /// # Errors
    /// An option breaks a rule.
    pub fn new(
        electors: &Electors<H>,
        host: H,
        settings: &Settings,
        prefix: &str,
        shards: usize,
    ) -> Result<Self, ShardsError> {
        let refused = |error| ShardsError::Add(AddError::Config(error));
        let mut settings = settings.clone();
        if settings.server_id.is_none() {
            let random =
                host.random().map_err(|error| ShardsError::Add(AddError::Randomness(error)))?;
            settings.server_id = Some(session_id(random));
        }
        let configs = configs(&settings, prefix, shards).map_err(refused)?;
        let electors = electors.clone();
        Ok(Self { electors, host, configs, stops: Cell::default(), handles: RefCell::default() })
    }

    /// Runs `work` for each shard while this member leads it, with the shard's number and the term: dropped when the term is
    /// over, and run again in the next one. Work that returns before gives its shard up for a while. `open` gives the store of each
    /// of these settings. Ends after [`Shards::stop`], and at once where that was called before. To drop this future leaves the
    /// leases to run out.
    ///
    /// # Errors
    /// The electors can't be made; the store can't be used as it is set up, or breaks its conditions. All shards are given back
    /// then, and `lead` may be called again.
    pub async fn lead<S: Store>(
        &self,
        open: impl Fn(&Config) -> Result<S, ConfigError>,
        work: impl AsyncFn(usize, Term<'_, H>),
    ) -> Result<(), ShardsError> {
        let members = self.members(open)?;
        let handles: Vec<Handle> = members.iter().map(|member| member.handle().clone()).collect();
        *self.handles.borrow_mut() = handles.clone();
        let work = &work;
        let seat = members.len() - 1;
        let leading = members.iter().enumerate().map(async |(shard, member)| {
            let on_term = async |term: Term<'_, H>| {
                if shard < seat {
                    work(shard, term).await;
                    member.handle().tell(Input::Resign);
                }
                pending::<()>().await;
            };
            member.lead(on_term).await.map(|_| ())
        });
        let mut leading: FuturesUnordered<_> = leading.collect();
        let all = async {
            let mut failed = Ok(());
            while let Some(ended) = leading.next().await {
                if failed.is_ok() && ended.is_err() {
                    failed = ended.map_err(ShardsError::Store);
                    self.give_back();
                }
            }
            failed
        };
        let sharing = pin!(self.share_out(&handles));
        match select(pin!(all), sharing).await {
            Either::Left((ended, _)) => ended,
            Either::Right((never, _)) => match never {},
        }
    }

    /// Gives everything back, for good; `lead` ends when that is done, if it is polled until then.
    pub fn stop(&self) {
        self.stops.set(true);
        self.give_back();
    }

    fn give_back(&self) {
        for handle in &*self.handles.borrow() {
            handle.tell(Input::Stop { park: false });
        }
    }

    /// The shards that this member leads now.
    pub fn led(&self) -> Vec<usize> {
        let now = self.host.now();
        let handles = self.handles.borrow();
        let shards = handles.iter().take(self.configs.len() - 1).enumerate();
        shards.filter(|(_, handle)| handle.authority(now).is_some()).map(|(at, _)| at).collect()
    }

    fn members<S: Store>(
        &self,
        open: impl Fn(&Config) -> Result<S, ConfigError>,
    ) -> Result<Vec<Member<S, H>>, ShardsError> {
        let add = |config: &Config| {
            let store = open(config).map_err(AddError::Config)?;
            let member = self.electors.add(config.clone(), store)?;
            member.handle().tell(Input::Compete(false));
            if self.stops.get() {
                member.handle().tell(Input::Stop { park: false });
            }
            Ok(member)
        };
        self.configs.iter().map(add).collect::<Result<_, AddError>>().map_err(ShardsError::Add)
    }

    async fn share_out(&self, handles: &[Handle]) -> std::convert::Infallible {
        let config = &self.configs[0];
        let mut sharing = Sharing::new(config, handles.to_vec());
        loop {
            self.host.sleep(step_ms(config)).await;
            for (at, order) in sharing.step(self.host.now(), &[]) {
                match order {
                    Order::Compete(competes) => handles[at].tell(Input::Compete(competes)),
                    Order::Give => handles[at].tell(Input::Resign),
                }
            }
        }
    }
}

/// What one election is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Whether it may claim.
    Compete(bool),
    /// To give its lease up.
    Give,
}

/// A plan over elections: those of the shards, and that of the seat at the end.
pub struct Sharing {
    plan: Plan,
    handles: Vec<Handle>,
    competes: Vec<bool>,
    stale_ms: u64,
}

impl Sharing {
    /// Elections of these settings, none of which competes yet: those of the shards, and that of the seat at the end.
    ///
    /// # Panics
    /// There is none.
    pub fn new(config: &Config, handles: Vec<Handle>) -> Self {
        let shards = handles.len().checked_sub(1).expect("the seat has an election");
        let lease_ms = config.leader_timeout_ms;
        let plan = Plan::new(&config.server_id, shards, look_ms(config), lease_ms);
        let competes = vec![false; handles.len()];
        let stale_ms = lease_ms.max(2 * look_ms(config));
        Self { plan, handles, competes, stale_ms }
    }

    /// What changes now, by the number of the election. `barred` are those that this member leaves to others for now, because
    /// work of an earlier term goes on here.
    pub fn step(&mut self, now: Now, barred: &[usize]) -> Vec<(usize, Order)> {
        let seen = |(at, handle): (usize, &Handle)| {
            let view = handle.with(|one| view(one, now, self.stale_ms));
            if view == View::Free && barred.contains(&at) { View::Barred } else { view }
        };
        let views: Vec<View> = self.handles.iter().enumerate().map(seen).collect();
        let (seat, shards) = views.split_last().expect("there is a seat");
        let orders = self.plan.decide(now.mono_ms, shards, seat);
        let mut told = Vec::new();
        let competes = orders.competes.into_iter().chain([orders.takes_seat]);
        for (at, competes) in competes.enumerate() {
            if std::mem::replace(&mut self.competes[at], competes) != competes {
                told.push((at, Order::Compete(competes)));
            }
        }
        let seat = orders.gives_seat.then_some(shards.len());
        told.extend(orders.gives.into_iter().chain(seat).map(|at| (at, Order::Give)));
        told
    }
}
