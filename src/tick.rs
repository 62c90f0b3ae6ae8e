//! One cron tick: an elector leads until its time is nearly over, and parks what it holds for the
//! next.

use std::pin::pin;

use futures::future::{Either, select};

use crate::clock::Now;
use crate::config::{Config, ConfigError};
use crate::driver::{self, Handle, Host};
use crate::election::{Event, Input, LostReason};
use crate::store::{Fault, Store};

/// How long a tick of a trigger a minute may take from its scheduled time, in milliseconds, where nothing else is set:
/// beyond the next trigger, which finds it still leading, waits for the park that its record announces, and claims at
/// once.
pub const SUSTAIN_MS: u64 = 63_000;

/// How many requests a tick makes besides its renewals or looks: a look, another once the tick before it has parked, a claim and
/// a park.
const BESIDE_RENEWALS: u64 = 4;

/// How long before the end of its time a tick begins to park, in milliseconds: a usual store needs
/// a tenth of it. Whatever is left of the period nobody has authority, so it is short; a slow store
/// may make the tick end later, by no more than the attempts of one write.
pub const PARKING_MS: u64 = 1_000;

/// How long a tick may lead from now on, in milliseconds, counted from the time that it was
/// scheduled for; `None` where nothing is left of that. A trigger that came early gets no more than
/// `sustain_ms`, one without a usable time (0) all of it.
pub fn leads_for_ms(scheduled_ms: u64, now: Now, sustain_ms: u64) -> Option<u64> {
    let from_ms = if scheduled_ms == 0 { now.wall_ms } else { scheduled_ms.min(now.wall_ms) };
    let end_ms = from_ms.saturating_add(sustain_ms);
    end_ms.saturating_sub(now.wall_ms).checked_sub(PARKING_MS).filter(|left_ms| *left_ms > 0)
}

/// Refuses a tick that surely makes more requests than it may.
///
/// # Errors
/// The rule, by the variable of the limit.
pub fn check_tick(config: &Config, sustain_ms: u64, most: u64) -> Result<(), ConfigError> {
    let leads_ms = sustain_ms.saturating_sub(PARKING_MS);
    let heartbeats = config.peers.heartbeat_ms.map_or(0, |ms| leads_ms / ms);
    // Who leads renews; who follows looks as often, and sends heartbeats beside that.
    let made = BESIDE_RENEWALS + leads_ms / config.frequent_interval_ms + heartbeats;
    if made <= most {
        return Ok(());
    }
    let rule = format!(
        "a tick of this group makes {made} requests, and the groups of one trigger share what \
         it may make; give groups triggers of their own (EDGELECT_CRON), renew less often \
         (EDGELECT_FREQUENT_INTERVAL), let the leader hear less often (EDGELECT_HEARTBEAT), or on the paid plan set this to 10000"
    );
    Err(ConfigError::new("EDGELECT_SUBREQUESTS", most.to_string(), rule))
}

/// What a tick has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticked {
    /// The last term that it led, if any.
    pub term: Option<u64>,
    /// How it lost that one, where it did not keep it to the end of its time.
    pub lost: Option<LostReason>,
}

/// Drives an election for so long and then parks.
///
/// # Errors
/// The store cannot be used.
pub async fn tick<S: Store, H: Host>(
    handle: &Handle,
    store: &S,
    host: &H,
    leads_for_ms: u64,
) -> Result<Ticked, Fault> {
    let (mut ticked, mut failure) = (Ticked { term: None, lost: None }, None);
    handle.tell(Input::ParkAt { mono_ms: host.now().mono_ms.saturating_add(leads_for_ms) });
    {
        let run = pin!(driver::run(handle, store, host, |event| match event {
            Event::Acquired { term } => ticked = Ticked { term: Some(term), lost: None },
            // A tick has no work of its own yet, so it has stopped as soon as it should.
            Event::Lost { term, reason } => {
                ticked.lost = Some(reason).filter(|reason| reason.is_loss());
                handle.tell(Input::WorkEnded { term });
            }
            Event::Failed(fault) => failure = Some(fault),
            Event::NewLeader { .. } | Event::GivenUp => {}
            Event::SlotClosed { .. } | Event::SlotsOver(_) => {}
            Event::Troubled(_) | Event::Solved | Event::InGrace { .. } => {}
            Event::Suspected { .. } | Event::Recovered { .. } => {}
        }));
        let until_park = pin!(host.sleep(leads_for_ms));
        if let Either::Right((_, run)) = select(run, until_park).await {
            handle.tell(Input::Stop { park: true });
            run.await;
        }
    }
    failure.map_or(Ok(ticked), Err)
}
