//! Was this write justified? Asked at the moment when it leaves, with what the session was shown
//! and with what is true (S3, S6, S7, S12).

use edgelect::config::Config;
use edgelect::lease::{Lease, Reading};
use edgelect::store::{Condition, Version};

use super::clocks::EPOCH_MS;
use super::oracle::{Aim, Look, Oracle, ROUNDING_MS, Sight, View};
use super::report::Ground;
use super::slots::Triggered;
use super::store::Shown;

/// What the checks of a write have to know of the writer at the moment of writing.
pub struct Writer<'a> {
    pub look: Look,
    pub config: &'a Config,
    /// The term that it has authority for.
    pub authority: Option<u64>,
    /// Its work has not stopped.
    pub working: bool,
    /// When the version in the condition came into being, in true time.
    pub born_ms: Option<u64>,
    /// The store shows old states, or no `Last-Modified`, so that nobody can see that a version came back.
    pub stale: bool,
    /// That version was put there more than once: who watches it may not see that it was gone.
    pub again: bool,
    /// Where it runs slots: what was asked for, and what became of it.
    pub trigger: Option<&'a Triggered>,
    /// The trigger's own slot, once it is known.
    pub own_slot: Option<(u64, u64)>,
}

impl Oracle {
    /// Judges one write before it leaves; the ground of a claim.
    pub fn judge(
        &mut self,
        writer: &Writer,
        lease: &Lease,
        condition: &Condition,
        aim: Aim,
    ) -> Option<Ground> {
        self.check_pair(writer, condition, aim);
        if aim.takes() {
            self.check_past(writer, lease);
        }
        match (aim, condition) {
            (Aim::Create, _) => self.check_creation(writer, lease),
            (Aim::Claim | Aim::Reserve | Aim::Cover, Condition::Match(version)) => {
                let before = self.shown_lease(writer.look.session).cloned();
                self.check_slot(writer, before.as_ref(), lease, aim);
                self.check_claim(writer, lease, version)
            }
            (_, Condition::Match(version)) => {
                self.check_own_write(writer, lease, version, aim);
                None
            }
            (_, Condition::Absent) => None,
        }
    }

    /// I4: the condition is what was shown together with the body that was judged; or the version that is held, where a
    /// body that nobody could read was shown since (S8, S12).
    fn check_pair(&mut self, writer: &Writer, condition: &Condition, aim: Aim) {
        let session = writer.look.session;
        let view = &self.views[session];
        let paired = match condition {
            Condition::Absent => view.absent,
            Condition::Match(version) => {
                let held = view.grant.filter(|_| !aim.takes());
                let held = held.is_some_and(|grant| self.deeds[grant].version == *version);
                let blurred = |sight: &Sight| sight.shown.lease().is_none();
                let shown = |sight: &Sight| sight.version == *version || (held && blurred(sight));
                view.sight.as_ref().is_some_and(shown)
            }
        };
        require!(self, paired, "I4 version and body together";
            "{condition:?} is not what the newest answer showed");
    }

    /// The grace of S7 by what this session knows.
    fn grace_ms(&self, writer: &Writer) -> u64 {
        let config = writer.config;
        let longest_seen_ms = self.views[writer.look.session].longest_lease_ms;
        config
            .leader_timeout_ms
            .max(config.max_lease_ms)
            .max(config.store_skew_ms + 2_000)
            .max(longest_seen_ms)
    }

    /// S11: a single clock without a `Date` to check it against watches for longer.
    fn slack_ms(&self, writer: &Writer) -> u64 {
        let blind = self.views[writer.look.session].single && !self.contract.dated;
        if blind { writer.config.store_skew_ms } else { 0 }
    }

    /// S7: absence allows a record as long as the grace, and no authority.
    fn check_creation(&mut self, writer: &Writer, lease: &Lease) -> Option<Ground> {
        let grace_ms = self.grace_ms(writer);
        let long = lease.lease_ms >= Some(grace_ms) && !lease.parked && !lease.released();
        require!(self, long, "S7 creation";
            "leaseMs {:?} of a creation, the grace is {grace_ms}", lease.lease_ms);
        self.check_new_term(writer, lease, 0);
        Some(Ground::Absent)
    }

    fn check_new_term(&mut self, writer: &Writer, lease: &Lease, before: u64) {
        let session = writer.look.session;
        let view = &self.views[session];
        let term = lease.term.unwrap_or(0);
        let least = (before + 1)
            .max(view.highest_term + 1)
            .max(writer.config.term_floor)
            .max(if self.contract.late_dates { 0 } else { view.storage_ms() });
        require!(self, term >= least, "S2 a new term";
            "term {term} where at least {least} was due");
        let none = writer.authority.is_none();
        require!(self, none, "S9 a claim under authority";
            "term {term} is claimed while {:?} has authority", writer.authority);
    }

    /// A token over a record without a term is not ahead of what any front end says, so that a deletion
    /// can't lower it.
    fn check_not_ahead(&mut self, writer: &Writer, lease: &Lease) {
        let session = writer.look.session;
        let skew_ms = writer.config.store_skew_ms;
        // Where a proxy makes up the time of a change, only the `Date`s of two front ends bound it.
        let doubt_ms = if self.contract.changes_made_up { skew_ms + 1_000 } else { 0 };
        let latest_ms = EPOCH_MS + self.true_ms + skew_ms + 2_000 + doubt_ms;
        let View { highest_term, sent_term, .. } = self.views[session];
        let most = latest_ms.max(highest_term.max(sent_term) + 1);
        let holds = lease.term <= Some(most.max(writer.config.term_floor));
        let judged = self.contract.always_dated && self.contract.clocks;
        require!(self, holds || !judged, "S2 no token ahead of storage time";
            "term {:?}, at most {most}", lease.term);
    }

    fn check_claim(&mut self, writer: &Writer, lease: &Lease, version: &Version) -> Option<Ground> {
        let session = writer.look.session;
        let shown = match &self.views[session].sight {
            Some(sight) if sight.version == *version => sight.shown.clone(),
            _ => return None,
        };
        self.rests_on_revived(session, version);
        let over_creation = shown.lease().is_some_and(Lease::is_creation);
        let healing = lease.in_grace() && (over_creation || matches!(shown, Shown::Other(_)));
        let own_lease = match healing {
            // It may land late, on the same bytes put again under a leader (S7).
            true => lease.lease_ms >= Some(self.grace_ms(writer)),
            false => {
                let own_ms = writer.config.leader_timeout_ms;
                let longest_ms = self.grace_ms(writer);
                // What rests on the store's clock alone is waited for as long, should that be wrong (S6 (b)).
                let waited_ms = match &shown {
                    // One that names no lease counts as long as the settings said when it was waited for.
                    Shown::Lease(before) => {
                        before.lease_ms.map_or((own_ms, longest_ms), |ms| (ms, ms))
                    }
                    Shown::Other(_) => (longest_ms, longest_ms),
                };
                let (least_ms, most_ms) = (own_ms.max(waited_ms.0), own_ms.max(waited_ms.1));
                lease.lease_ms.is_some_and(|ms| ms == own_ms || (least_ms..=most_ms).contains(&ms))
            }
        };
        let covers = writer.trigger.is_some() && lease.slot_done == Some(true);
        // Nobody waits for the lease of a tombstone, which may be that of earlier settings.
        let own_lease = own_lease || (covers && lease.released());
        let plain = own_lease && !lease.parked && (!lease.released() || covers);
        require!(self, plain, "S5 a claim's own lease";
            "leaseMs {:?}, parked {}", lease.lease_ms, lease.parked);
        match shown {
            Shown::Other(Reading::Closed(closed)) => {
                self.broke("S7 a closed record is never claimed", format!("over {closed:?}"));
                None
            }
            Shown::Other(reading) => {
                let read = match reading {
                    Reading::Unreadable(_, told) => told.term,
                    _ => None,
                };
                let reserved = lease.in_grace() && lease.term == read;
                if !reserved {
                    self.check_new_term(writer, lease, 0);
                }
                // The same may be put there again, and what takes it may be long under way (S4).
                let due = writer.trigger.is_none();
                require!(self, reserved || !due, "S2 a reservation"; "{read:?} became {lease:?}");
                self.check_age(writer, self.grace_ms(writer), true);
                Some(Ground::Healed)
            }
            Shown::Lease(before) => {
                if lease.acquired.is_some() {
                    self.check_new_term(writer, lease, before.term.unwrap_or(0));
                    if before.term.is_none() {
                        self.check_not_ahead(writer, lease);
                    }
                } else {
                    let bare = before.released() && before.term.is_none() && lease.in_grace();
                    let made =
                        before.is_creation() && lease.in_grace() && lease.term == before.term;
                    require!(self, bare || made, "S2 a reservation"; "{before:?} became {lease:?}");
                }
                // A copy may have brought it back since it was shown.
                let reserves = lease.in_grace() && lease.reserved;
                require!(self, reserves || !before.is_creation(), "S7 a creation is reserved";
                    "{before:?} became {lease:?}");
                self.check_pause(writer, &before);
                let kept = before.extra == lease.extra;
                require!(self, kept, "S12 unknown fields are kept";
                    "{:?} became {:?}", before.extra, lease.extra);
                Some(self.check_succession(writer, &before))
            }
        }
    }

    /// S6: one of the grounds on which a readable record may be succeeded.
    fn check_succession(&mut self, writer: &Writer, before: &Lease) -> Ground {
        let Look { session, now } = writer.look;
        let view = &self.views[session];
        if before.session.as_deref() == Some(view.name.as_str()) {
            if before.is_creation() {
                return Ground::GraceOver;
            }
            let Some((since, reserved_ms)) =
                view.grace.as_ref().map(|grace| (grace.since, grace.reserved_ms))
            else {
                return Ground::OwnLapsed;
            };
            let passed_ms = now.mono_ms.saturating_sub(since.mono_ms);
            if let Some(due_ms) = reserved_ms {
                require!(self, passed_ms >= due_ms, "S7 a reservation";
                    "claimed after {passed_ms} of {due_ms} ms");
                self.check_truth(session, since.true_ms, due_ms, "S7 a reservation in truth");
                return Ground::OwnLapsed;
            }
            let grace_ms = self.grace_ms(writer);
            let due_ms = grace_ms + self.slack_ms(writer);
            require!(self, passed_ms >= due_ms, "S7 the grace";
                "claimed after {passed_ms} of {due_ms} ms");
            self.check_truth(session, since.true_ms, grace_ms, "S7 the grace in truth");
            // Two held-up copies, one after the other, may have brought it back (docs/proof.md).
            let returned = self.shows_revived(session);
            if let Some(born_ms) = writer.born_ms.filter(|_| !(returned && writer.stale)) {
                let soon_ms = if returned { soon_ms(writer) } else { 0 };
                let due_ms = grace_ms.saturating_sub(soon_ms);
                self.check_truth(session, born_ms, due_ms, "S7 the grace in truth");
            }
            return Ground::GraceOver;
        }
        if before.released() {
            return Ground::Tombstone;
        }
        let named = !writer.config.server_id.is_empty();
        if before.parked && named && before.leader_id == writer.config.server_id {
            return Ground::Parked;
        }
        let lease_ms = before.lease_ms.unwrap_or(self.contract.shortest_lease_ms);
        self.check_age(writer, lease_ms, before.in_grace())
    }

    /// The age is proven by the answers (a) or (b), and is true; `came_back` for a record that a copy
    /// of its creation can have brought back.
    fn check_age(&mut self, writer: &Writer, age_ms: u64, came_back: bool) -> Ground {
        let Look { session, now } = writer.look;
        let Some(sight) = &self.views[session].sight else { return Ground::Watched };
        let proven_ms = i128::from(now.mono_ms) - sight.origin_ms;
        let ground = sight.ground(now, age_ms);
        let due_ms = age_ms + self.slack_ms(writer);
        let blind = sight.cached && self.views[session].single;
        let measured = !blind || sight.by_store_ms >= age_ms;
        require!(self, measured, "S11 a cache measures no wait";
            "a single clock claims by an age that only a cache has shown");
        require!(self, proven_ms >= i128::from(due_ms), "S6 age by the answers";
            "the answers prove {proven_ms} of {due_ms} ms");
        let truly = (!came_back || !writer.stale) && !writer.again;
        if let Some(born_ms) = writer.born_ms.filter(|_| truly) {
            let soon_ms = if came_back { soon_ms(writer) } else { 0 };
            let due_ms = age_ms.saturating_sub(soon_ms);
            self.check_truth(session, born_ms, due_ms, "S6 age in truth");
        }
        ground
    }

    /// A wait was long enough by true time, for any clock within the contract.
    fn check_truth(&mut self, session: usize, since_ms: u64, due_ms: u64, check: &'static str) {
        if !self.contract.clocks || self.contract.late_dates || self.retries_revived(session) {
            return;
        }
        let passed_ms = self.true_ms - since_ms;
        let stretched_ms = passed_ms * (1_000_000 + self.contract.worst_ppm) / 1_000_000;
        require!(self, stretched_ms + ROUNDING_MS >= due_ms, check;
            "{passed_ms} ms had passed, {due_ms} were due");
    }

    /// A renewal, a tombstone, a parked lease: over our own newest record and nothing else.
    fn check_own_write(&mut self, writer: &Writer, lease: &Lease, version: &Version, aim: Aim) {
        let session = writer.look.session;
        let Some(held) = self.own_deed(session, version) else {
            let text = format!("{aim:?} over {}, which it did not write", version.0);
            return self.broke("S12 only over the own version", text);
        };
        let term = lease.term.unwrap_or(0);
        let (held, graced) = (self.deeds[held].lease.clone(), self.deeds[held].graced);
        require!(self, !graced, "S7 nothing in the grace";
            "{aim:?} over a record created from absence");
        let renews = aim == Aim::Renew;
        // A parked lease lasts as long as the group's longest: a late trigger loses less.
        let lease_ms = match aim {
            Aim::Park => Some(writer.config.max_lease_ms),
            _ => held.lease_ms,
        };
        let kept = (renews
            || (lease_ms, &held.leader_addr) == (lease.lease_ms, &lease.leader_addr))
            && (&held.leader_id, held.term, &held.session)
                == (&lease.leader_id, lease.term, &lease.session)
            && (held.acquired, held.transitions) == (lease.acquired, lease.transitions)
            && held.extra == lease.extra;
        require!(self, kept, "S12 every other field kept"; "{held:?} became {lease:?}");
        self.check_past_kept(&held, lease);
        self.check_obeyed(&held, lease, aim);
        self.check_slot(writer, Some(&held), lease, aim);
        if aim == Aim::Renew {
            // A held clock hides the authority for a moment; its earlier anchor only shortens the
            // lease.
            let hidden = self.views[session].single && self.views[session].announced == Some(term);
            let held = hidden || writer.authority == Some(term);
            require!(self, held, "S9 a renewal without authority";
                "term {term} is renewed with authority {:?}", writer.authority);
        } else {
            let yields = term > self.views[session].yielded_term || aim != Aim::Park;
            require!(self, yields, "S12 who resigned releases"; "term {term} is parked");
            let quiet = writer.authority.is_none() && !writer.working;
            require!(self, quiet, "S12 work ends before the release";
                "authority {:?}, working {}", writer.authority, writer.working);
        }
    }
}

/// Within this time nobody can see by `Last-Modified` that a creation was gone and came back: whole
/// seconds of front ends that differ. It is shorter than any grace, so that nobody's term was
/// between.
fn soon_ms(writer: &Writer) -> u64 {
    writer.config.store_skew_ms + 2_000
}
