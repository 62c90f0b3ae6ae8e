//! Asking the leader, or who relays its answers, in place of the store.

use super::{
    Action, Election, LEASES_BY_PEER, MAX_RETRY_AFTER_MS, Outstanding, PeerAnswer, Plan, Seen, Step,
};
use crate::clock::Now;
use crate::config::Follow;
use crate::lease::{Lease, Reading};
use crate::planted::planted;

/// The shortest wait that is asked for after a held question was cut off, in milliseconds.
const MIN_WAIT_MS: u64 = 1_000;

/// How many relays are kept of those that a leader without room has named.
const MOST_RELAYS: usize = 4;

/// How many relays without room name others in turn before the store is read.
const MOST_HOPS: u8 = 4;

/// What is known of those who are asked in place of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Peers {
    /// Until when nobody is asked because the leader was silent, on the monotonic clock.
    pub(super) silent_until_ms: u64,
    /// Which leader, and in which term.
    silent_leader: Option<(String, Option<u64>)>,
    /// Until when the leader itself is not asked because it had no room.
    busy_until_ms: u64,
    /// The newest term and sequence that a peer has answered with, and when it first did.
    pub(super) moved: Option<Moved>,
    /// Until when the last answer may be repeated to those who ask this member.
    believed_until_ms: u64,
    /// Who relays the leader's answers; the first one is asked.
    relays: Vec<String>,
    /// How many of them had no room either since the leader had none.
    hops: u8,
    /// For how long a question may be held, where something on the way has cut off one that was held for longer.
    wait_limit_ms: Option<u64>,
    /// The record was new at a read that peers had put off for long, and no clock of the store's says how new: another read
    /// follows soon, before peers put off reads for long again.
    doubted: bool,
}

/// An answer that was newer than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Moved {
    term: Option<u64>,
    sequence: u64,
    since_ms: u64,
}

impl Peers {
    /// When a peer last said something new, on the monotonic clock.
    pub(super) fn moved_ms(&self) -> u64 {
        self.moved.as_ref().map_or(0, |moved| moved.since_ms)
    }
}

impl Election {
    pub(super) fn ask(&mut self, now: Now) -> Step {
        let (Some((addr, relays)), Seen::Record { reading: Reading::Lease(lease), .. }) =
            (self.peer_to_ask(now), &self.seen)
        else {
            return self.look(now);
        };
        let timeout_ms = self.config.peer_timeout_ms.min(self.blind_limit_ms(lease));
        let term = lease.term;
        // Only who has answered is waited for: an address may be stale. Who knows no terms can't tell when one has changed.
        let wait_ms = if self.waits_for_peer(now, term) { self.longest_wait_ms() } else { 0 };
        self.outstanding = Some(Outstanding::Peer { sent_ms: now.mono_ms, wait_ms, relays });
        Step::AskPeer { addr, term, wait_ms, timeout_ms: timeout_ms + wait_ms }
    }

    pub(super) fn on_peer(&mut self, now: Now, answer: PeerAnswer) {
        let Some(Outstanding::Peer { sent_ms, wait_ms, relays }) = self.outstanding else { return };
        self.outstanding = None;
        if sent_ms > now.mono_ms {
            // The clock has stepped since, and what was known of peers is forgotten: the store is read.
            return;
        }
        match answer {
            PeerAnswer::Alive { leader_id, term, sequence, .. }
                if self.peer_moves(now, &leader_id, term, sequence) =>
            {
                if let Seen::Record { observation, .. } = &mut self.seen
                    && planted!(PeerExtendsLease)
                {
                    observation.restart(&self.clocks, now);
                }
                self.plan_after_answer(now, term, (sent_ms, wait_ms), relays);
            }
            PeerAnswer::Busy { retry_after_ms, relays: named } if !relays => {
                self.on_busy_peer(now, retry_after_ms, named);
            }
            _ if relays => {
                self.peers.relays.remove(0);
                self.peers.believed_until_ms = 0;
                match answer {
                    PeerAnswer::Busy { relays: named, .. } if self.peers.hops < MOST_HOPS => {
                        self.peers.hops += 1;
                        self.ask_relays(now, named);
                    }
                    _ => self.await_turn_told(now, None),
                }
            }
            answer => {
                let waiting = match answer {
                    PeerAnswer::Over { waiting } => Some(waiting),
                    _ => None,
                };
                self.on_silent_peer(now);
                let took_ms = now.mono_ms.saturating_sub(sent_ms);
                if (MIN_WAIT_MS..wait_ms).contains(&took_ms) {
                    // A proxy may end connections that stay silent for a while.
                    self.peers.wait_limit_ms = Some((took_ms / 2).max(MIN_WAIT_MS));
                }
                if wait_ms > 0 {
                    // All who waited are told in the same moment.
                    self.await_turn_told(now, waiting);
                }
            }
        }
    }

    /// The leader goes on, as it said itself or somebody who relays for it. The question left at `sent_ms` and could be held
    /// for `wait_ms`.
    fn plan_after_answer(
        &mut self,
        now: Now,
        term: Option<u64>,
        (sent_ms, wait_ms): (u64, u64),
        relays: bool,
    ) {
        if !relays {
            self.peers.relays.clear();
        }
        let first = wait_ms == 0 && !self.waits_for_peer(now, term);
        let interval_ms = self.peer_interval_ms();
        // Who waits for the next answer may be asked by others meanwhile.
        let next_ms = if term.is_some() { self.longest_wait_ms() } else { 0 };
        let beyond_ms = wait_ms.max(next_ms).saturating_add(2 * self.config.peer_timeout_ms);
        self.peers.believed_until_ms = now.mono_ms + interval_ms + beyond_ms;
        if relays && self.peers.busy_until_ms < self.peers.believed_until_ms {
            // The leader is asked by its relays: all who are behind them would be sent back to them.
            self.peers.busy_until_ms = self.peers.believed_until_ms;
        }
        // Who holds questions is asked again at once, but where the wait is a short one; anybody else at intervals.
        let took_ms = now.mono_ms.saturating_sub(sent_ms);
        let held = wait_ms > 0 && took_ms >= wait_ms / 2;
        let short_ms = self.config.frequent_interval_ms.saturating_sub(took_ms);
        let pause_ms = match held {
            true => short_ms,
            false if first && self.waits_for_peer(now, term) => 0,
            false => interval_ms,
        };
        self.plan = Plan { at_ms: now.mono_ms + pause_ms, action: Action::Ask };
    }

    /// A peer that hangs must not blind us for longer than a lease.
    fn blind_limit_ms(&self, lease: &Lease) -> u64 {
        self.config.leader_timeout_ms.min(self.lease_to_wait_ms(lease))
    }

    /// For how long a question may be held.
    fn longest_wait_ms(&self) -> u64 {
        let Seen::Record { reading: Reading::Lease(lease), .. } = &self.seen else { return 0 };
        let limit_ms = self.blind_limit_ms(lease);
        let timeout_ms = self.config.peer_timeout_ms.min(limit_ms);
        let wait_ms = self.config.peers.wait_within_ms(limit_ms, timeout_ms);
        wait_ms.min(self.peers.wait_limit_ms.unwrap_or(u64::MAX))
    }

    /// Whether a question about this term may wait: the one who is asked has just answered one.
    fn waits_for_peer(&self, now: Now, term: Option<u64>) -> bool {
        let told = self.peers.moved.as_ref().is_some_and(|moved| moved.term == term);
        let waits = self.config.peers.wait_ms > 0 && term.is_some();
        waits && told && now.mono_ms < self.peers.believed_until_ms
    }

    /// The leader has no room: it is left alone for a while, and a relay is asked, or the store.
    fn on_busy_peer(&mut self, now: Now, retry_after_ms: u64, named: Vec<String>) {
        let pause_ms = retry_after_ms.clamp(1_000, MAX_RETRY_AFTER_MS);
        self.peers.busy_until_ms = now.mono_ms.saturating_add(pause_ms);
        (self.peers.hops, self.peers.relays) = (0, Vec::new());
        self.ask_relays(now, named);
    }

    /// Somebody without room has named others: they are asked after those that are known, or the store.
    fn ask_relays(&mut self, now: Now, named: Vec<String>) {
        let usable = |addr: &String| self.config.asks(addr) && *addr != self.config.server_addr;
        let mut new: Vec<String> = named.into_iter().filter(usable).collect();
        new.truncate(MOST_RELAYS);
        if !new.is_empty() {
            let first = self.random_below(new.len() as u64) as usize;
            new.rotate_left(first);
        }
        new.retain(|addr| !self.peers.relays.contains(addr));
        self.peers.relays.extend(new);
        self.peers.relays.truncate(MOST_RELAYS);
        self.plan_next(now);
        if self.peer_to_ask(now).is_some() {
            let at_ms = now.mono_ms + self.rank_ms();
            self.plan = Plan { at_ms, action: Action::Ask };
        }
    }

    /// Whether an answer is of the leader and the term that the record names, and of a leader that renews: one whose
    /// sequence has not grown for a lease is somebody's who repeats an old answer.
    pub(super) fn peer_moves(
        &mut self,
        now: Now,
        leader_id: &str,
        term: Option<u64>,
        sequence: u64,
    ) -> bool {
        let Seen::Record { reading: Reading::Lease(lease), .. } = &self.seen else { return false };
        if lease.leader_id != leader_id || lease.term != term {
            return false;
        }
        let grown = |before: &Moved| before.term != term || sequence > before.sequence;
        if self.peers.moved.as_ref().is_none_or(grown) {
            self.peers.moved = Some(Moved { term, sequence, since_ms: now.mono_ms });
            return true;
        }
        let since_ms = self.peers.moved.map_or(now.mono_ms, |moved| moved.since_ms);
        let still_ms = now.mono_ms.saturating_sub(since_ms);
        still_ms < self.lease_to_wait_ms(lease) || planted!(PeerReplayBelieved)
    }

    pub(super) fn on_silent_peer(&mut self, now: Now) {
        self.peers.silent_leader = match &self.seen {
            Seen::Record { reading: Reading::Lease(lease), .. } => {
                Some((lease.leader_id.clone(), lease.term))
            }
            _ => None,
        };
        self.peers.silent_until_ms = now.mono_ms + self.config.leader_timeout_ms;
        self.peers.believed_until_ms = 0;
        self.plan_look(now, 0);
    }

    pub(super) fn peer_interval_ms(&self) -> u64 {
        match self.config.follow {
            Follow::Tight => self.config.frequent_interval_ms,
            Follow::Balanced => self.config.leader_timeout_ms,
            Follow::Frugal => self.config.infrequent_interval_ms,
        }
    }

    /// The address to ask instead of the store, if peers are on and there is a usable one; and whether it only relays.
    pub(super) fn peer_to_ask(&self, now: Now) -> Option<(String, bool)> {
        let Seen::Record { reading: Reading::Lease(lease), .. } = &self.seen else { return None };
        let own = lease.session.as_deref() == Some(&self.session)
            || lease.leader_addr == self.config.server_addr;
        // No peer blinds a follower: some time the store is read whatever the peer says.
        let unread_ms = now.mono_ms.saturating_sub(self.seen_sent.mono_ms);
        let leases = if self.peers.doubted { 1 } else { LEASES_BY_PEER };
        let read = unread_ms < leases.saturating_mul(self.lease_to_wait_ms(lease))
            || planted!(PeerBelievedForEver);
        let usable = self.config.peer_mode
            && read
            && !own
            && !lease.parked
            && !lease.released()
            && now.mono_ms >= self.peers.silent_until_ms;
        if !usable {
            return None;
        }
        if now.mono_ms < self.peers.busy_until_ms {
            return self.peers.relays.first().map(|relay| (relay.clone(), true));
        }
        self.config.asks(&lease.leader_addr).then(|| (lease.leader_addr.clone(), false))
    }

    /// A read has shown a record that is new here, after so many milliseconds without a read.
    pub(super) fn note_read_for_peers(&mut self, unread_ms: u64, dated: bool) {
        let Seen::Record { reading: Reading::Lease(lease), .. } = &self.seen else { return };
        let lease_ms = self.lease_to_wait_ms(lease);
        let term = lease.term;
        self.peers.doubted = !dated && unread_ms > 2 * lease_ms;
        if self.peers.moved.is_none_or(|moved| moved.term != term) {
            self.peers.wait_limit_ms = None;
        }
        let same = |(leader_id, of): &(String, Option<u64>)| {
            *leader_id == lease.leader_id && *of == lease.term
        };
        if !self.peers.silent_leader.as_ref().is_some_and(same) {
            // It was another leader that was silent.
            self.peers.silent_until_ms = 0;
        }
    }

    /// The leader that the newest record names, where it may be asked: its address, its term and its `serverId`.
    pub fn leader_to_ask(&self) -> Option<(String, Option<u64>, String)> {
        let Seen::Record { reading: Reading::Lease(lease), .. } = &self.seen else { return None };
        let own = lease.session.as_deref() == Some(&self.session)
            || lease.leader_addr == self.config.server_addr;
        let leads = self.config.peer_mode && !own && !lease.parked && !lease.released();
        let asked = leads && self.config.asks(&lease.leader_addr);
        asked.then(|| (lease.leader_addr.clone(), lease.term, lease.leader_id.clone()))
    }

    /// The term of which this member has nothing new to tell: it leads in it, is about to write down that it gave it up, or
    /// repeats what its leader says. A question about this term may be held.
    pub fn steady_term(&self, now: Now) -> Option<u64> {
        match &self.term {
            Some(term) if term.ended => self.wind_down.is_some().then_some(term.number),
            Some(term) => self.lease_left(now).is_some().then_some(term.number),
            None => self.relayed(now).and_then(|lease| lease.term),
        }
    }

    /// The leader's record with the newest sequence that it has told, while this member believes it: what it may tell others.
    pub fn relayed(&self, now: Now) -> Option<Lease> {
        let (lease, Moved { sequence, .. }) = self.vouched(now)?;
        let sequence = sequence.max(lease.sequence);
        lease.term.is_some().then(|| Lease { sequence, ..lease.clone() })
    }

    fn vouched(&self, now: Now) -> Option<(&Lease, Moved)> {
        let Seen::Record { reading: Reading::Lease(lease), .. } = &self.seen else { return None };
        let believed = now.mono_ms < self.peers.believed_until_ms || planted!(RelayForEver);
        let moved = self.peers.moved.filter(|_| believed)?;
        let same = lease.term == moved.term && !lease.released() && !lease.parked;
        same.then_some((&**lease, moved))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, HostClock, Settings};
    use crate::election::Input;
    use crate::json::Object;
    use crate::store::{Answer, Facts, Outcome, Version};

    fn found(sequence: u64) -> Input {
        let lease = Lease {
            leader_addr: "10.0.0.1:80".to_owned(),
            term: Some(7),
            session: Some("s".to_owned()),
            sequence,
            lease_ms: Some(15_000),
            acquired: Some(1_795_244_280_000),
            ..Lease::bare("a", crate::lease::Stamp::At(1_795_244_292_345))
        };
        let reading = Reading::Lease(Box::new(lease));
        let outcome = Outcome::Found { version: Version(sequence.to_string()), reading };
        Input::Answer(Answer { outcome, facts: Facts::default() })
    }

    fn alive(sequence: u64) -> Input {
        let leader_id = "a".to_owned();
        Input::Peer(PeerAnswer::Alive { leader_id, term: Some(7), sequence, own: true })
    }

    /// A follower and the time, by one clock.
    struct Follower(Election, u64);

    impl Follower {
        fn new(options: &serde_json::Value) -> Self {
            let mut settings = Settings::from_json(&Object::of(options)).unwrap();
            settings.lockfile_path = Some("jobs".to_owned());
            settings.peer_mode = Some(true);
            settings.clock = HostClock::One;
            let config = Config::new(&settings).unwrap();
            let mut new = Self(Election::new(config, "b".to_owned(), 1), 1_795_244_292_345);
            assert!(matches!(new.step(), Step::Read { .. }));
            new.hears(found(1));
            new
        }

        fn step(&mut self) -> Step {
            loop {
                match self.0.poll(Now::new(self.1, self.1)) {
                    Step::Wait { until_ms } => self.1 = until_ms,
                    step => return step,
                }
            }
        }

        fn hears(&mut self, input: Input) {
            self.0.handle(Now::new(self.1, self.1), input);
        }
    }

    #[test]
    fn s11_a_question_from_before_a_step_of_the_clock_says_nothing() {
        let options = serde_json::json!({ "peerSecret": "0123456789abcdef" });
        for (back_ms, relay) in [(5_000, true), (500, true), (3_600_000, false)] {
            let mut follower = Follower::new(&options);
            assert!(matches!(follower.step(), Step::AskPeer { .. }));
            if relay {
                follower.hears(busy("10.0.0.2:80"));
                assert!(matches!(follower.step(), Step::AskPeer { .. }));
            }
            follower.1 += 1_000;
            follower.hears(Input::Tick);
            follower.1 -= back_ms;
            follower.hears(Input::Tick);
            follower.hears(if relay { Input::Peer(PeerAnswer::Silent) } else { alive(9) });
            let step = follower.step();
            assert!(matches!(step, Step::Read { .. }), "{back_ms}: {step:?}");
        }
    }

    #[test]
    fn what_the_leader_has_told_goes_to_members_and_not_to_a_load_balancer() {
        let mut follower = Follower::new(&serde_json::json!({ "peerSecret": "0123456789abcdef" }));
        assert!(matches!(follower.step(), Step::AskPeer { .. }));
        follower.hears(alive(9));
        let now = Now::new(follower.1, follower.1);
        let statuses =
            [true, false].map(|proven| crate::peer::answer(&follower.0, now, proven).status);
        assert_eq!(statuses, [200, 404]);
    }

    #[test]
    fn a_leader_without_room_is_no_sign_of_a_store_that_shows_nothing_new() {
        let options = serde_json::json!({ "peerSecret": "0123456789abcdef" });
        let mut follower = Follower::new(&options);
        let (began_ms, mut sequence) = (follower.1, 1);
        while follower.1 < began_ms + 80_000 {
            sequence += 1;
            match follower.step() {
                Step::AskPeer { .. } => follower.hears(alive(sequence)),
                _ => follower.hears(found(1)),
            }
        }
        assert!(matches!(follower.step(), Step::AskPeer { .. }));
        follower.hears(busy("10.0.0.2:80"));
        assert_eq!(follower.0.problem(), None);
    }

    fn busy(relay: &str) -> Input {
        let relays = vec![relay.to_owned()];
        Input::Peer(PeerAnswer::Busy { retry_after_ms: 9_000, relays })
    }

    #[test]
    fn a_relay_without_room_sends_its_askers_on_but_not_for_ever() {
        let options = serde_json::json!({ "peerSecret": "0123456789abcdef" });
        let mut follower = Follower::new(&options);
        let began_ms = follower.1;
        let mut asked = Vec::new();
        while let Step::AskPeer { addr, .. } = follower.step() {
            asked.push(addr);
            follower.hears(busy(&format!("10.0.0.{}:80", asked.len() + 1)));
        }
        assert_eq!(
            asked[1..],
            ["10.0.0.2:80", "10.0.0.3:80", "10.0.0.4:80", "10.0.0.5:80", "10.0.0.6:80"]
        );
        assert!(follower.1 < began_ms + 10_000, "{} ms", follower.1 - began_ms);
    }

    #[test]
    fn whoever_is_behind_a_relay_that_answers_leaves_the_leader_alone() {
        let options = serde_json::json!({ "peerSecret": "0123456789abcdef" });
        let mut follower = Follower::new(&options);
        let began_ms = follower.1;
        let (mut leader, mut relay, mut sequence) = (0, 0, 1);
        while follower.1 < began_ms + 120_000 {
            sequence += 1;
            match follower.step() {
                Step::AskPeer { addr, .. } if addr == "10.0.0.2:80" => {
                    relay += 1;
                    follower.hears(alive(sequence));
                }
                Step::AskPeer { .. } => {
                    leader += 1;
                    follower.hears(busy("10.0.0.2:80"));
                }
                _ => follower.hears(found(sequence)),
            }
        }
        assert!(
            leader == 1 && relay > 10,
            "{leader} questions to the leader, {relay} to its relay"
        );
    }

    #[test]
    fn of_those_who_are_told_at_once_the_fewer_there_are_the_sooner_each_looks() {
        let waits_ms = |waiting| {
            let mut follower = Follower::new(&serde_json::json!({}));
            assert!(matches!(follower.step(), Step::AskPeer { wait_ms: 0, .. }));
            follower.hears(alive(2));
            assert!(matches!(follower.step(), Step::AskPeer { wait_ms: 1.., .. }));
            let told_ms = follower.1;
            follower.hears(Input::Peer(PeerAnswer::Over { waiting }));
            assert!(matches!(follower.step(), Step::Read { .. }));
            follower.1 - told_ms
        };
        assert_eq!(waits_ms(1), 0);
        assert!(waits_ms(u64::MAX) > 400);
        let few_ms = waits_ms(2);
        assert!((1..=72).contains(&few_ms), "{few_ms} ms");
    }

    #[test]
    fn a_leader_that_never_answered_is_asked_once_a_lease_though_it_renews() {
        let mut follower = Follower::new(&serde_json::json!({ "follow": "frugal" }));
        let began_ms = follower.1;
        let (mut asked, mut read) = (0, 0);
        while follower.1 < began_ms + 120_000 {
            match follower.step() {
                Step::AskPeer { timeout_ms, .. } => {
                    follower.1 += timeout_ms;
                    asked += 1;
                    follower.hears(Input::Peer(PeerAnswer::Silent));
                }
                Step::Read { .. } => {
                    read += 1;
                    follower.hears(found(2 + read));
                }
                step => panic!("{step:?}"),
            }
        }
        // After 15 s of reads a question comes in their place, at the frugal interval.
        assert!((2..=3).contains(&asked) && read >= 8, "{asked} questions, {read} reads");
    }

    #[test]
    fn a_relay_is_believed_while_it_waits_for_its_second_answer() {
        let mut follower = Follower::new(&serde_json::json!({}));
        assert!(matches!(follower.step(), Step::AskPeer { wait_ms: 0, .. }));
        follower.hears(alive(2));
        let Step::AskPeer { wait_ms, timeout_ms, .. } = follower.step() else { panic!("it asks") };
        assert!(wait_ms > 0);
        follower.1 += timeout_ms - 1;
        assert!(follower.0.relayed(Now::new(follower.1, follower.1)).is_some());
    }

    #[test]
    fn a_short_wait_makes_no_hot_loop() {
        for wait_ms in [1, 10, 500] {
            let mut follower = Follower::new(&serde_json::json!({ "peerWait": wait_ms }));
            let (began_ms, mut asked) = (follower.1, 0);
            while follower.1 < began_ms + 60_000 {
                match follower.step() {
                    Step::AskPeer { wait_ms, .. } => follower.1 += wait_ms + 1,
                    Step::Read { .. } => {
                        follower.hears(found(2 + asked));
                        continue;
                    }
                    step => panic!("{step:?}"),
                }
                asked += 1;
                follower.hears(alive(2 + asked));
            }
            assert!(
                (8..=14).contains(&asked),
                "{asked} questions a minute with a wait of {wait_ms} ms"
            );
        }
    }
}
