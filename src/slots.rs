//! One job per cron slot: which slot a trigger may claim, judged by the record alone.
//!
//! A slot is the scheduled time of one cron firing. The record's `slot` is the newest one that was claimed and only
//! grows; `slotDone` says whether its job has ended. One compare-and-swap claims slot and lease together, so of any
//! number of triggers for one slot one wins, whenever and wherever they fire.

mod trigger;

pub(crate) use self::trigger::{Holder, Trigger};

use crate::config::{Config, ConfigError, HostClock};
use crate::json::{self, Object};
use crate::lease::Lease;
use crate::planted::planted;
use crate::text::{first, nearest, quoted, unknown, visible};

/// The most slots that nobody claimed which one trigger makes up for; older ones are counted and not run.
pub const MAX_MISSED: u64 = 100;

/// The longest time between two slots, in milliseconds (366 days).
const MAX_PERIOD_MS: u64 = 366 * 86_400_000;

/// The requests that one event may make on Cloudflare's free plan.
const FREE_SUBREQUESTS: u64 = 50;

/// The steps of the store that one slot needs at least beside its job's call: a look, its claim, its closing write.
const LEAST_STEPS: u64 = 3;

/// The longest budget, in milliseconds: Cloudflare ends a cron trigger after a quarter of an hour.
const MAX_BUDGET_MS: u64 = 900_000;

/// How far ahead of storage time a stored slot counts as claimed where the store does not name both `Date` and
/// `Last-Modified`, in milliseconds. Without a `Date` storage time is the own clock, and may be slow by a time zone taken
/// for another.
const MAX_AHEAD_MS: u64 = 86_400_000;

/// `Date` and `Last-Modified` have whole seconds, and the one is rounded up, so that a difference of two may be this much
/// too small, in milliseconds.
const ROUNDING_MS: u64 = 2_000;

/// What becomes of a slot whose runner died or whose job failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub enum Policy {
    /// It is not run again.
    #[default]
    AtMostOnce,
    /// The next claim runs it again, before any later slot.
    AtLeastOnce,
}

/// What becomes of slots that nobody claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub enum Missed {
    /// Nothing.
    #[default]
    Skip,
    /// The newest of them is run before the trigger's own.
    Latest,
    /// All of them are run before the trigger's own, the oldest first, at most [`MAX_MISSED`].
    All,
}

/// What one trigger asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// The slot in milliseconds since the Unix epoch; `None` for a timer without a scheduled time, whose slot is
    /// the last multiple of the period by storage time, or the next one where that is at most `storeSkew` ahead.
    pub slot_ms: Option<u64>,
    /// From one slot to the next, in milliseconds.
    pub period_ms: Option<u64>,
    /// What becomes of a slot that died.
    pub policy: Policy,
    /// What becomes of slots that nobody claimed.
    pub missed: Missed,
    /// With [`Policy::AtLeastOnce`]: after how many failures of its job a slot is given up.
    pub attempts: u64,
    /// How long to wait for a lease that somebody else holds, in milliseconds.
    pub budget_ms: u64,
    /// How many requests one trigger may make, each call of a job counted as one, before it leaves further slots to
    /// the next; none where nobody counts them. With `room_ms` without those of the longest job's renewals.
    pub subrequests: Option<u64>,
    /// How long another slot may take at most, in milliseconds, whatever those before it took; 0 where nobody knows.
    pub room_ms: u64,
    /// The cron that fires, where that is known.
    pub cron: Option<Cron>,
}

/// A cron that fires a trigger: which slots were missed is known by the steps of one cron alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cron {
    /// Its text.
    pub text: String,
    /// Whether the operator has named it as the group's only one, so that it takes the place of the recorded one.
    pub named: bool,
    /// Whether the schedule runs slots again or makes up for those that nobody claimed.
    pub makes_up: bool,
    /// Whether the schedule's period is that of its steps.
    pub periodic: bool,
}

/// The field of a record that keeps the cron of its slots; other members keep it as one that they do not know.
const CRON_FIELD: &str = "slotCron";

impl Cron {
    /// Whether the record's slots are of another cron that counts on their being the only ones.
    fn conflicts(&self, lease: &Lease) -> bool {
        let other = || recorded_cron(lease).is_some_and(|text| text != self.text);
        self.makes_up && !self.named && other()
    }

    /// Whether the gap between the record's newest slot and a slot of this cron says which ones were missed.
    fn counts(&self, lease: &Lease) -> bool {
        let said = lease.extra.get(CRON_FIELD).is_some();
        !self.makes_up || !said || recorded_cron(lease).is_some_and(|text| text == self.text)
    }

    /// Says in a record whose slots are claimed from here on: `false`, which is no cron's text, if this one makes up for none.
    pub(crate) fn record(&self, lease: &mut Lease) {
        if self.makes_up && self.periodic {
            lease.extra.set(CRON_FIELD, json::of(&self.text));
        } else if recorded_cron(lease).is_none_or(|text| text != self.text) {
            lease.extra.set(CRON_FIELD, json::of(&false));
        }
    }
}

/// The cron that a record's slots are of, if it says so and that cron counts those that were missed; a text out of a bucket.
pub fn recorded_cron(lease: &Lease) -> Option<String> {
    lease.extra.get(CRON_FIELD).and_then(json::text)
}

/// What a schedule is made of; everything has a default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScheduleSettings {
    /// `slot`.
    pub slot_ms: Option<u64>,
    /// `period`.
    pub period_ms: Option<u64>,
    /// `policy`. Default at most once.
    pub policy: Option<Policy>,
    /// `missed`. Default skip; with at least once and a period, all.
    pub missed: Option<Missed>,
    /// `attempts`. Default 3.
    pub attempts: Option<u64>,
    /// `budget`. Default `sustain`, or 50 s.
    pub budget_ms: Option<u64>,
    /// `subrequests`. Default 50 on hosts with one clock, which are Workers.
    pub subrequests: Option<u64>,
}

/// How a slot's job ended, for the record's closing write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SlotEnd {
    /// Whether the slot needs nothing more: its job has ended well.
    pub done: bool,
    /// Whether the job itself failed, which counts against [`Schedule::attempts`]; false where it was only told to stop.
    pub failed: bool,
    /// A word or two for the record (`slotResult`): no secret, at most 64 bytes are written.
    pub result: String,
    /// How long the job took, in milliseconds.
    pub took_ms: u64,
}

/// What a trigger may do, given the newest record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Claim this slot once the lease may be taken.
    Claim {
        /// The slot in milliseconds.
        slot_ms: u64,
        /// Whether it was claimed before and not done.
        again: bool,
        /// How many slots before it nobody will run.
        left_out: u64,
    },
    /// There is nothing to claim: the slot or a later one was claimed before.
    Taken,
    /// A slot that must be run first has failed in this very call.
    Blocked,
    /// The record's slots are of another cron, so that nobody knows which ones were missed.
    OtherCron,
    /// Neither the record nor the store's two times say which slots were claimed before: no slot is claimed before a
    /// record says that all up to its own writing count as claimed.
    Undated,
    /// The slot is further ahead of storage time than clocks are apart.
    Ahead {
        /// By how many milliseconds.
        by_ms: u64,
    },
}

/// Why a schedule needs nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlotsOver {
    /// The slot was run.
    Ran,
    /// The slot, or a later one, was claimed before.
    Taken,
    /// The record is new, or was made anew because it did not say which slots were claimed before; later ones can be.
    NewGroup,
    /// Somebody else held the lease, or the store did not answer, for longer than the budget.
    Budget,
    /// An earlier slot must be run first, and has failed or was lost.
    Blocked,
    /// The record's slots are of another cron, so that nobody knows which ones were missed; nothing was claimed.
    OtherCron,
    /// The term was lost under the job of the slot.
    Lost,
    /// The slot is this many milliseconds ahead of storage time.
    Ahead {
        /// By how many milliseconds.
        by_ms: u64,
    },
    /// A claim left and nobody knows whether it landed: the slot may count as claimed.
    Unknown,
    /// Earlier slots had to be run first, and another one would not fit into what one trigger may do.
    Full,
    /// The store can't be used.
    Store,
    /// It was told to stop before it had claimed the slot.
    Stopped,
    /// An operator has paused the group.
    Paused,
}

impl SlotsOver {
    /// The word for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ran => "ran",
            Self::Taken => "taken",
            Self::NewGroup => "newGroup",
            Self::Budget => "budget",
            Self::Blocked => "blocked",
            Self::OtherCron => "otherCron",
            Self::Lost => "lost",
            Self::Ahead { .. } => "ahead",
            Self::Unknown => "unknown",
            Self::Full => "full",
            Self::Store => "store",
            Self::Stopped => "stopped",
            Self::Paused => "paused",
        }
    }

    /// Why the slot was not run here, in a sentence.
    pub fn text(self) -> &'static str {
        match self {
            Self::Ran | Self::Taken => "this slot, or a later one, was claimed before",
            Self::NewGroup => {
                "the lease object is new, or did not say which slots ran before, so this one is skipped and the next can \
                 run; `init` avoids that for a new group"
            }
            Self::Budget => {
                "somebody else held the lease, or the store did not answer, for longer than the budget"
            }
            Self::Blocked => "an earlier slot has to run first, and its job failed or was lost",
            Self::OtherCron => "the lease object counts the slots of another cron",
            Self::Lost => {
                "it was told to stop when its claim had left: the slot is claimed, and its job never began"
            }
            Self::Ahead { .. } => "it is further ahead of the store's clock than storeSkew",
            Self::Unknown => {
                "a claim was sent, and may have landed: the slot may count as claimed, and was not run here"
            }
            Self::Full => {
                "earlier slots had to run first, and another one would not fit into what one trigger may do: the next one \
                 goes on"
            }
            Self::Store => "the store can no longer be used",
            Self::Stopped => "it was told to stop before it had claimed the slot",
            Self::Paused => "an operator has paused the group",
        }
    }
}

/// What is known of the time at the store when a record is judged, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug)]
pub struct StorageTimes {
    /// Storage time.
    pub now_ms: u64,
    /// The latest that storage time can be.
    pub ceiling_ms: u64,
    /// Whether storage time is the store's own `Date`; otherwise it is the host's clock, which may be wrong by any amount.
    pub dated: bool,
    /// When the record changed last; `None` where the store does not say.
    pub changed_ms: Option<u64>,
    /// How far the store's own clocks may be apart.
    pub skew_ms: u64,
}

/// What a session has done so far.
#[derive(Clone, Copy, Debug)]
pub struct OwnSlots<'a> {
    /// Its random id.
    pub session: &'a str,
    /// The slots that it began to run.
    pub begun: &'a [u64],
    /// Those whose job ended well.
    pub done: &'a [u64],
}

impl StorageTimes {
    /// A record without a slot, or none at all, counts all slots up to here as claimed: whoever claimed one did so before
    /// it was changed, for a slot at most `storeSkew` ahead, by a clock that may be `storeSkew` ahead of that which names
    /// the change.
    pub fn claimed_through_ms(&self) -> u64 {
        let changed_ms = self.changed_ms.unwrap_or(self.ceiling_ms);
        if planted!(SlotlessWithoutSkew) {
            return changed_ms;
        }
        changed_ms.saturating_add(2 * self.skew_ms + ROUNDING_MS)
    }
}

impl Schedule {
    /// The slot that is meant at this storage time.
    ///
    /// The last multiple of the period; or the next one where that is at most `storeSkew` ahead, so that a timer that fires a
    /// little early means the same slot as one that fires a little late.
    pub fn slot_at(&self, times: &StorageTimes) -> u64 {
        if let Some(slot_ms) = self.slot_ms {
            return slot_ms;
        }
        let period_ms = self.period_ms.unwrap_or(1).max(1);
        let before_ms = times.now_ms / period_ms * period_ms;
        let nearest_ms = times.now_ms.saturating_add(period_ms / 2) / period_ms * period_ms;
        if nearest_ms > times.ceiling_ms.saturating_add(times.skew_ms) {
            before_ms
        } else {
            nearest_ms
        }
    }

    /// Whether another slot would not fit into what one trigger may do, given what the `runs` before it took: a slot
    /// that is claimed and can't be called is lost. Each step of the store is `per_step` requests.
    pub fn is_full(&self, requests: u64, spent_ms: u64, runs: u64, per_step: u64) -> bool {
        if runs == 0 {
            return false;
        }
        let made = requests.saturating_add(runs);
        let least = LEAST_STEPS * per_step + 1;
        // Where the longest job is known, its renewals are no part of `subrequests`.
        let each = if self.room_ms > 0 { least } else { made.div_ceil(runs).max(least) };
        let crowded = self.subrequests.is_some_and(|most| made.saturating_add(each) > most);
        let late = spent_ms.saturating_add(self.room_ms.max(spent_ms / runs)) > MAX_BUDGET_MS;
        crowded || (self.subrequests.is_some() && late)
    }

    /// What a trigger for `slot_ms` may do about a record.
    pub fn judge(
        &self,
        slot_ms: u64,
        lease: Option<&Lease>,
        own: &OwnSlots<'_>,
        times: &StorageTimes,
    ) -> Verdict {
        if let (Some(cron), Some(lease)) = (&self.cron, lease)
            && cron.conflicts(lease)
        {
            return Verdict::OtherCron;
        }
        let counts = |lease: Option<&Lease>| match (&self.cron, lease) {
            (Some(cron), Some(lease)) => cron.counts(lease),
            _ => true,
        };
        let latest_ms = times.ceiling_ms.saturating_add(times.skew_ms);
        if slot_ms > latest_ms && !planted!(SlotAheadClaimed) {
            return Verdict::Ahead { by_ms: slot_ms - times.ceiling_ms };
        }
        // One that lies ahead of what anybody may claim counts as damaged, not as a claim of all slots before it. Without
        // the time of the last change nothing else says which were claimed, and the own clock may be slow. Without a `Date`
        // a member with a fast clock may have claimed it.
        let dated = times.changed_ms.is_some() && times.dated;
        // Nor is a member's own word damage because it lies ahead: a proxy's fast `Date` may have made it so.
        let ours = lease.is_some_and(|lease| lease.session.is_some());
        let damage = (dated && !ours) || planted!(OwnSlotIsDamage);
        let ahead_ms = if damage { times.skew_ms } else { MAX_AHEAD_MS };
        let newest_ms = times.ceiling_ms.saturating_add(ahead_ms);
        let stored = lease
            .and_then(|lease| lease.slot.map(|slot_ms| (slot_ms, lease)))
            .filter(|(stored_ms, _)| *stored_ms <= newest_ms);
        // Nobody has led with it: a held-up creation may have come back after a deletion, or was made by a wrong clock. Nor
        // has anybody begun a slot then, that it should be run again.
        let unled = |lease: &Lease| match dated {
            true => lease.acquired.is_none() && !planted!(CreationCoversNothing),
            false => lease.acquired.is_none() && !planted!(ReturnedCreationFreesSlot),
        };
        let Some((claimed_ms, lease)) = stored.filter(|(_, lease)| !unled(lease)) else {
            let stored_ms = stored.map_or(0, |(stored_ms, _)| stored_ms);
            if planted!(SlotlessIsFree) {
                return self.after(stored_ms, slot_ms, true);
            }
            let counts = counts(lease);
            return match dated {
                true => self.after(stored_ms.max(times.claimed_through_ms()), slot_ms, counts),
                false => Verdict::Undated,
            };
        };
        let counts = counts(Some(lease));
        if lease.slot_done == Some(true) || own.done.contains(&claimed_ms) {
            return self.after(claimed_ms, slot_ms, counts);
        }
        let mine = lease.session.as_deref() == Some(own.session);
        let again = Verdict::Claim { slot_ms: claimed_ms, again: true, left_out: 0 };
        // A claim of this session's whose answer came too late: nobody has run the slot.
        if mine && !own.begun.contains(&claimed_ms) && !planted!(LateClaimIsRun) {
            return again;
        }
        let failures = lease.slot_failures.unwrap_or(0);
        let spent = failures >= self.attempts && !planted!(SpentSlotRerun);
        let rerun = self.policy == Policy::AtLeastOnce || planted!(DeadSlotRerun);
        let later = planted!(LaterSlotFirst) && slot_ms > claimed_ms;
        if rerun && !spent && !later && !planted!(DeadSlotForgotten) {
            let blocked = own.begun.contains(&claimed_ms) && !planted!(RerunAtOnce);
            return if blocked { Verdict::Blocked } else { again };
        }
        self.after(claimed_ms, slot_ms, counts)
    }

    /// The next slot, given that all up to `claimed_ms` were claimed and need nothing more, and whether the gap since says
    /// which ones were missed.
    fn after(&self, claimed_ms: u64, slot_ms: u64, counts: bool) -> Verdict {
        let taken =
            if planted!(SlotClaimedTwice) { slot_ms < claimed_ms } else { slot_ms <= claimed_ms };
        if taken {
            return Verdict::Taken;
        }
        let gap_ms = slot_ms - claimed_ms;
        let missed = match self.period_ms {
            Some(period_ms) if period_ms > 0 && counts => gap_ms.saturating_sub(1) / period_ms,
            _ => 0,
        };
        let back = match self.missed {
            Missed::Skip => 0,
            Missed::Latest => missed.min(1),
            Missed::All if planted!(MissedNewestFirst) => missed.min(1),
            Missed::All => missed.min(MAX_MISSED),
        };
        let slot_ms = slot_ms - back * self.period_ms.unwrap_or(0);
        Verdict::Claim { slot_ms, again: false, left_out: missed - back }
    }
}

impl Policy {
    /// The option's value.
    pub fn name(self) -> &'static str {
        match self {
            Self::AtMostOnce => "atMostOnce",
            Self::AtLeastOnce => "atLeastOnce",
        }
    }
}

impl Missed {
    /// The option's value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Latest => "latest",
            Self::All => "all",
        }
    }
}

impl ScheduleSettings {
    /// Reads the options of `runScheduled`; `null` counts as not given.
    ///
    /// # Errors
    /// An option of the wrong type, or one that nobody knows.
    pub fn from_json(options: &Object) -> Result<Self, ConfigError> {
        let mut settings = Self::default();
        for (name, value) in options.iter().filter(|(_, value)| !json::is_null(value)) {
            settings.set(name, value)?;
        }
        Ok(settings)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), ConfigError> {
        let text = json::text(value).unwrap_or_default();
        let place = match name {
            "policy" => {
                let all = [Policy::AtMostOnce, Policy::AtLeastOnce];
                self.policy = all.into_iter().find(|policy| policy.name() == text);
                let rule = "must be \"atMostOnce\" or \"atLeastOnce\"";
                return known(self.policy.is_some(), name, value, rule);
            }
            "missed" => {
                let all = [Missed::Skip, Missed::Latest, Missed::All];
                self.missed = all.into_iter().find(|missed| missed.name() == text);
                let rule = "must be \"skip\", \"latest\" or \"all\"";
                return known(self.missed.is_some(), name, value, rule);
            }
            "slot" => &mut self.slot_ms,
            "period" => &mut self.period_ms,
            "attempts" => &mut self.attempts,
            "subrequests" => &mut self.subrequests,
            "budget" => &mut self.budget_ms,
            _ => {
                let names =
                    ["period", "policy", "missed", "attempts", "budget", "subrequests", "signal"];
                let rest = "runScheduled knows period, policy, missed, attempts, budget, subrequests and signal";
                let rule = unknown("option", nearest(name, names), rest);
                return Err(ConfigError::new(&visible(first(name, 60)), "(not shown)", rule));
            }
        };
        *place = crate::config::exact(value);
        let rule = match name {
            "attempts" => "must be a whole number, 1 to 100",
            "subrequests" => "must be a whole number, 10 to 100000",
            "slot" => "is the scheduled time: a Date, or milliseconds since 1970",
            _ => "must be a whole number of milliseconds",
        };
        known(place.is_some(), name, value, rule)
    }
}

fn known(ok: bool, name: &str, value: &str, rule: &str) -> Result<(), ConfigError> {
    if ok { Ok(()) } else { Err(ConfigError::new(name, crate::config::shown(value), rule)) }
}

impl Schedule {
    /// Checks a schedule against the settings of its group and fills in the defaults.
    ///
    /// # Errors
    /// The option that breaks a rule, with the rule.
    pub fn new(settings: &ScheduleSettings, config: &Config) -> Result<Self, ConfigError> {
        let policy = settings.policy.unwrap_or_default();
        let by_default = match (policy, settings.period_ms) {
            (Policy::AtLeastOnce, Some(_)) => Missed::All,
            _ => Missed::Skip,
        };
        let least_ms = config.take_over_ms();
        let schedule = Self {
            slot_ms: settings.slot_ms,
            period_ms: settings.period_ms,
            policy,
            missed: settings.missed.unwrap_or(by_default),
            attempts: settings.attempts.unwrap_or(3),
            budget_ms: settings.budget_ms.or(config.sustain_ms).unwrap_or(least_ms.max(50_000)),
            subrequests: settings.subrequests.or(match config.clock {
                HostClock::One => Some(FREE_SUBREQUESTS),
                HostClock::Two => None,
            }),
            room_ms: 0,
            cron: None,
        };
        schedule.check(config.leader_timeout_ms, least_ms)?;
        Ok(schedule)
    }

    fn check(&self, lease_ms: u64, least_ms: u64) -> Result<(), ConfigError> {
        let refuse =
            |field: &str, value: String, rule: &str| Err(ConfigError::new(field, value, rule));
        if let Some(period_ms) = self.period_ms
            && !(lease_ms..=MAX_PERIOD_MS).contains(&period_ms)
        {
            let rule = format!(
                "must be from leaderTimeout ({lease_ms} ms) to 366 days: a cron finer than the \
                 lease could not take over a slot that died before the next one is due; lower \
                 leaderTimeout"
            );
            return refuse("period", period_ms.to_string(), &rule);
        }
        match self.slot_ms {
            Some(slot_ms) if slot_ms == 0 || slot_ms > crate::lease::MAX_TERM => {
                let rule = "is the scheduled time: a Date, or milliseconds since 1970";
                return refuse("slot", slot_ms.to_string(), rule);
            }
            None if self.period_ms.is_none() => {
                let rule = "a timer without a scheduled time needs period, so that all members mean the same slot";
                return refuse("slot", "(not set)".to_owned(), rule);
            }
            _ => {}
        }
        if self.missed != Missed::Skip && self.period_ms.is_none() {
            let rule = "which slots were missed is known only by the period; set it";
            return refuse("missed", quoted(self.missed.name()), rule);
        }
        if !(1..=100).contains(&self.attempts) {
            return refuse("attempts", self.attempts.to_string(), "must be from 1 to 100");
        }
        if let Some(most) = self.subrequests
            && !(10..=100_000).contains(&most)
        {
            let rule =
                "must be from 10 to 100000: 50 on Cloudflare's free plan, 10000 on the paid one";
            return refuse("subrequests", most.to_string(), rule);
        }
        if !(least_ms..=MAX_BUDGET_MS.max(least_ms)).contains(&self.budget_ms) {
            let rule = format!(
                "must be from {least_ms} ms (the grace + storeSkew + 4 * requestTimeout + 1.5 \
                 s, or a trigger could never take over a dead runner's lease) to 15 minutes"
            );
            return refuse("budget", self.budget_ms.to_string(), &rule);
        }
        Ok(())
    }
}
