//! A backend of three calls, `try_acquire`, `renew` and `release`, as the store of one elector.
//!
//! It tells no version, no time and no name of a leader, so the records and the versions that the election reads here are made
//! up. What holds without versions: authority ends by itself a margin before the lease, counted from before the call (S5); a
//! term never resumes (S9); the lock is released only after the work has stopped (S12). What does not: fencing tokens (S2), and
//! the proof that a lease has run out, which is the backend's. So an elector over a locker is *unfenced*:
//! `lead_unfenced` runs its work, its status says so and shows no term, and `lead`, checkpoints, slots, peers and `init` are
//! refused.

use std::cell::RefCell;

use crate::config::ConfigError;
use crate::driver::Handle;
use crate::lease::{Lease, Reading, Stamp};
use crate::store::{
    Answer, Condition, Facts, Fault, FaultKind, Operation, Outcome, Record, Store, Version,
};
use crate::text::quoted;

/// A backend that knows no versions, as shardcoordinator's `Locker`: but for `ttl_ms`, which is no time but how long the lock
/// lasts from when the backend carries the call out.
///
/// An error counts as unknown, never as success or failure: a leader keeps its authority to the fence and tries again, and
/// `renew` tells whether the unknown call has taken effect. So does a call that is not answered in time; its future is dropped,
/// and it may take effect all the same.
///
/// What it has to promise: each call is one indivisible step, and `ttl_ms` counts from when it takes effect, by one clock for
/// all owners: the backend's (`SET … PX`, `now() + interval`), not the machine's that calls. Then a call that is held up can't
/// shorten what a later one has granted, because all calls of one `owner_id` have the same `ttl_ms`.
#[allow(async_fn_in_trait)] // Hosts here have one thread; no future has to be Send.
pub trait Locker {
    /// Takes the lock for `ttl_ms` milliseconds, rounded up to what the backend can count, if nobody holds it or what is held
    /// has run out. False: somebody holds it, be it this very owner. `owner_id` is the `serverId`, if one is set, the session's
    /// id and a count: unique to one session, with nothing in it that the `serverId` has not but letters, digits and dashes.
    ///
    /// # Errors
    /// Nobody knows whether the lock was taken; why, for people, without a secret.
    async fn try_acquire(
        &self,
        shard_id: &str,
        owner_id: &str,
        ttl_ms: u64,
    ) -> Result<bool, String>;

    /// Lets the lock last for `ttl_ms` milliseconds from now, if this owner holds it and it has not run out. False: it does
    /// not.
    ///
    /// # Errors
    /// Nobody knows whether the lock was renewed.
    async fn renew(&self, shard_id: &str, owner_id: &str, ttl_ms: u64) -> Result<bool, String>;

    /// Frees the lock if this owner holds it; otherwise nothing is to be done.
    ///
    /// # Errors
    /// Nobody knows whether the lock was freed.
    async fn release(&self, shard_id: &str, owner_id: &str) -> Result<(), String>;
}

/// A [`Locker`] as the store of one elector.
///
/// ```
/// use edgelect::{Config, Handle, Host, Locker, LockerStore, lead_unfenced, new_election};
///
/// async fn report(
///     my_locker: impl Locker,
///     host: impl Host,
///     config: Config,
/// ) -> Result<(), Box<dyn std::error::Error>> {
///     let elector = Handle::new(new_election(&host, config)?);
///     let store = LockerStore::new(my_locker, &elector)?;
///     lead_unfenced(&elector, &store, &host, async |term| work(term.remaining_ms()).await).await?;
///     Ok(())
/// }
/// # async fn work(_left_ms: u64) {}
/// ```
pub struct LockerStore<L> {
    locker: L,
    /// The group's `lockfilePath`.
    shard_id: String,
    server_id: String,
    session: String,
    view: RefCell<View>,
}

/// Under which name the lock is held, and for how many milliseconds each call holds it.
#[derive(Clone, PartialEq)]
struct Hold {
    owner_id: String,
    ttl_ms: u64,
}

/// What a read shows.
enum Shown {
    /// To be claimed at once.
    Free,
    /// Held by somebody whom nobody names.
    Taken,
    /// Held by this session.
    Mine(Hold),
}

struct View {
    shown: Shown,
    record: Box<Lease>,
    /// How many records were shown; the newest one's number is its version.
    versions: u64,
    /// Whether the newest record has been read.
    seen: bool,
    /// The newest claim or renewal of which nobody knows whether it took effect, and its record.
    doubted: Option<(Hold, Box<Lease>)>,
    /// Under how many names the lock was asked for.
    names: u64,
    /// For how many milliseconds under the last one.
    ttl_ms: u64,
    /// Whether the last one has been released, or may have been: neither a release that is held up nor a renewal for a shorter
    /// time may meet what was acquired after it.
    spent: bool,
}

impl View {
    fn show(&mut self, shown: Shown, record: Box<Lease>) {
        self.versions += 1;
        (self.shown, self.record, self.seen) = (shown, record, false);
    }

    fn version(&self) -> Version {
        Version(format!("\"{}\"", self.versions))
    }

    fn is_mine(&self) -> bool {
        matches!(self.shown, Shown::Mine(_))
    }
}

impl<L: Locker> LockerStore<L> {
    /// The lock of this elector's group, for this elector alone, which is unfenced from here on.
    ///
    /// # Errors
    /// The elector is set up for what needs versions: peers, or slots.
    pub fn new(locker: L, elector: &Handle) -> Result<Self, ConfigError> {
        let refused = elector.with(|election| match () {
            () if election.config().peer_mode => Some(("peerMode", "true")),
            () if election.has_schedule() => Some(("slot", "(a schedule)")),
            () => None,
        });
        if let Some((field, value)) = refused {
            let rule = "needs a store with versions: a locker has no fencing tokens, and nothing that a late writer could be \
                        refused by";
            return Err(ConfigError::new(field, value, rule));
        }
        elector.unfence();
        let own = elector.with(|election| {
            let texts =
                [&election.config().lockfile_path, election.server_id(), election.session()];
            texts.map(str::to_owned)
        });
        let [shard_id, server_id, session] = own;
        let view = View {
            shown: Shown::Free,
            record: made_up(&server_id, Stamp::Released),
            versions: 1,
            seen: false,
            doubted: None,
            names: 0,
            ttl_ms: 0,
            spent: true,
        };
        Ok(Self { locker, shard_id, server_id, session, view: RefCell::new(view) })
    }

    async fn read(&self, unless: Option<Version>) -> Result<Outcome, String> {
        let doubted = {
            let view = self.view.borrow();
            // The claim that follows meets it if it has landed, and the read after that one finds it.
            let claims_next = matches!(view.shown, Shown::Taken) && view.seen;
            view.doubted.clone().filter(|_| !claims_next)
        };
        let held = match &doubted {
            Some((hold, _)) => self.renew(hold).await?,
            None => false,
        };
        let view = &mut *self.view.borrow_mut();
        match doubted {
            // Who has renewed is the owner; the lock then lasts for longer than any write in doubt may grant.
            Some((hold, record)) if held => {
                view.doubted = None;
                view.show(Shown::Mine(hold), record);
            }
            Some(_) if view.is_mine() => {
                view.doubted = None;
                view.show(Shown::Taken, self.of_somebody());
            }
            // A claim that is still on its way may land after it was not found, and is looked for again.
            _ => {
                let over = match view.shown {
                    // The read after a refused claim was an interval ago.
                    Shown::Taken => view.seen,
                    // A release may have taken effect.
                    Shown::Mine(_) => view.spent,
                    Shown::Free => false,
                };
                if over {
                    view.show(Shown::Free, made_up(&self.server_id, Stamp::Released));
                }
            }
        }
        view.seen = true;
        let version = view.version();
        Ok(if unless.as_ref() == Some(&version) {
            Outcome::Unchanged
        } else {
            Outcome::Found { version, reading: Reading::Lease(view.record.clone()) }
        })
    }

    async fn write(&self, record: Box<Lease>, condition: Condition) -> Result<Outcome, String> {
        if condition != Condition::Match(self.view.borrow().version()) {
            return Ok(Outcome::Refused);
        }
        // Nobody else could take a parked lock over.
        if record.parked || record.released() {
            return self.release(record).await;
        }
        let (held, hold) = self.hold_for(record.lease_ms.unwrap_or_default());
        let doubt = Some((hold.clone(), record.clone()));
        // In doubt until it is answered: this future may be dropped before.
        let before = std::mem::replace(&mut self.view.borrow_mut().doubted, doubt);
        let done = match held {
            true => self.renew(&hold).await?,
            false => self.locker.try_acquire(&self.shard_id, &hold.owner_id, hold.ttl_ms).await?,
        };
        let view = &mut *self.view.borrow_mut();
        // An earlier claim may be what this one met.
        view.doubted = before.filter(|_| !done && !held);
        if done {
            view.show(Shown::Mine(hold), record);
            return Ok(Outcome::Written { version: Some(view.version()) });
        }
        view.show(Shown::Taken, self.of_somebody());
        Ok(Outcome::Refused)
    }

    /// Whether the lock is held already for a time like this, and the name that it is, or is to be, held under. A term keeps
    /// its lease, so that another one is a new term's, which has a name of its own.
    fn hold_for(&self, ttl_ms: u64) -> (bool, Hold) {
        let view = &mut *self.view.borrow_mut();
        if let Shown::Mine(hold) = &view.shown
            && hold.ttl_ms == ttl_ms
        {
            return (true, hold.clone());
        }
        if view.spent || view.ttl_ms != ttl_ms {
            view.names += 1;
            (view.ttl_ms, view.spent) = (ttl_ms, false);
        }
        // The session makes it nobody else's, whoever has the same `serverId`.
        let name = match self.server_id == self.session {
            true => self.session.clone(),
            false => format!("{}-{}", self.server_id, self.session),
        };
        (false, Hold { owner_id: format!("{name}-{}", view.names), ttl_ms })
    }

    async fn renew(&self, hold: &Hold) -> Result<bool, String> {
        self.locker.renew(&self.shard_id, &hold.owner_id, hold.ttl_ms).await
    }

    async fn release(&self, record: Box<Lease>) -> Result<Outcome, String> {
        let owner_id = {
            let view = &mut *self.view.borrow_mut();
            (view.spent, view.doubted) = (true, None);
            match &view.shown {
                Shown::Mine(hold) => Some(hold.owner_id.clone()),
                _ => None,
            }
        };
        if let Some(owner_id) = owner_id {
            self.locker.release(&self.shard_id, &owner_id).await?;
        }
        let view = &mut *self.view.borrow_mut();
        view.show(Shown::Free, record);
        Ok(Outcome::Written { version: Some(view.version()) })
    }

    /// A record of another session that nobody leads with yet.
    fn of_somebody(&self) -> Box<Lease> {
        made_up(&self.server_id, Stamp::At(LONG_AGO_MS))
    }
}

/// The `lastUpdated` of a record that somebody holds, in milliseconds since the Unix epoch: 2000-01-01. No rule reads it.
const LONG_AGO_MS: i64 = 946_684_800_000;

/// A record of another session, by our own name, so that nobody is named who may not be there.
fn made_up(server_id: &str, last_updated: Stamp) -> Box<Lease> {
    Box::new(Lease {
        term: Some(1),
        session: Some("unknown".to_owned()),
        sequence: 1,
        // No creation of a record, that a copy could bring back: there is none.
        reserved: true,
        ..Lease::bare(server_id, last_updated)
    })
}

impl<L: Locker> Store for LockerStore<L> {
    async fn perform(&self, operation: Operation) -> Answer {
        let fault = |kind, what: &str| Fault::new(kind, [&self.describe(), ": ", what].concat());
        let performed = match operation {
            Operation::Read { unless } => self.read(unless).await,
            Operation::Delete => return Answer::rejected(Fault::not_deleted(&self.describe())),
            Operation::Write { record, condition } => match record {
                Record::Lease(lease) if lease.session.as_ref() == Some(&self.session) => {
                    self.write(lease, condition).await
                }
                _ => {
                    let what = "it keeps the lease of one session, and nothing else";
                    return Answer::rejected(fault(FaultKind::Misconfigured, what));
                }
            },
        };
        match performed {
            Ok(outcome) => Answer { outcome, facts: Facts::default() },
            Err(what) => {
                let public = [&self.describe(), ": it failed; the log says why"].concat();
                Answer::unknown(fault(FaultKind::Network, &what).shown_as(public))
            }
        }
    }

    fn condition_covers_version(&self) -> bool {
        true
    }

    /// Its calls name no version: a renewal that is held up takes effect after a later one.
    fn stale_writes_fail(&self) -> bool {
        false
    }

    fn describe(&self) -> String {
        format!("locker, key {}", quoted(&self.shard_id))
    }
}
