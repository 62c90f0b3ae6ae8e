//! Questions between members: those that this one answers, and those that it asks.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use futures::future::{Either, select};
use http::Method;

use super::{Handle, Host};
use crate::clock::Now;
use crate::config::Config;
use crate::election::{Election, Event, PeerAnswer, Step};
use crate::heartbeat::Watch;
use crate::peer::{self, Desk, HealthAnswer, Heard, PROOF, Question, Reply};
use crate::request;

/// After how many leases without a heartbeat a follower is watched no more.
const FORGOTTEN_AFTER: u64 = 10;

/// How long a heartbeat may take at least, in milliseconds.
const MIN_BEAT_MS: u64 = 100;

impl Handle {
    /// Takes a question of a peer to `GET /health/leadership`, the query of its URL: answers it, or says for how long it may be
    /// held. `chance` is any number.
    pub fn asked(&self, now: Now, query: &str, chance: u64) -> Asked {
        let election = self.inner.election.borrow();
        let (question, proven) = Question::read(query, &election.config().peers.secrets);
        let mut desk = self.inner.desk.borrow_mut();
        match desk.ask(&election, now, (&question, proven), chance) {
            Reply::Now(answer) => Asked::Answered(answer),
            Reply::Hold { for_ms } => {
                let number = self.inner.questions.get();
                self.inner.questions.set(number + 1);
                self.inner.holders.borrow_mut().insert(number, None);
                let held = Held { handle: self.clone(), question, proven, number };
                Asked::Held { held, for_ms }
            }
        }
    }

    /// Answers a question of a peer to `GET /health/leadership`, the query of its URL. It may wait for as long as the asker has
    /// said, until something has changed; dropping the future is fine at any time.
    pub async fn answer_peer<H: Host>(&self, host: &H, query: &str) -> HealthAnswer {
        let chance =
            host.random().map_or(0, |bytes| u64::from(bytes[0]) << 8 | u64::from(bytes[1]));
        match self.asked(host.now(), query, chance) {
            Asked::Answered(answer) => answer,
            Asked::Held { held, for_ms } => {
                let changed = poll_fn(|context| held.poll_changed(host, context));
                select(pin!(changed), pin!(host.sleep(for_ms))).await;
                held.answer(host.now())
            }
        }
    }

    /// How many questions of peers are held.
    pub fn questions_held(&self) -> u64 {
        self.inner.desk.borrow().held()
    }

    /// The term about which questions are held: those about another one have their answer now.
    pub fn steady_term(&self, now: Now) -> Option<u64> {
        self.inner.election.borrow().steady_term(now)
    }

    /// Wakes those who hold questions, where there may be something new to tell.
    pub(super) fn wake_holders(&self, steady: Option<u64>) {
        if self.inner.steady.replace(steady) == steady {
            return;
        }
        let mut holders = self.inner.holders.borrow_mut();
        let wakers: Vec<Waker> = holders.values_mut().filter_map(Option::take).collect();
        drop(holders);
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// What becomes of a question of a peer.
#[must_use]
pub enum Asked {
    /// It is answered.
    Answered(HealthAnswer),
    /// It is held.
    Held {
        /// The question; dropping it makes room for another one.
        held: Held,
        /// For how many milliseconds at most.
        for_ms: u64,
    },
}

/// A question of a peer that is held.
#[must_use]
pub struct Held {
    handle: Handle,
    question: Question,
    proven: bool,
    number: u64,
}

impl Held {
    /// Whether there is something new to tell.
    pub fn has_changed(&self, now: Now) -> bool {
        !Desk::is_steady(&self.handle.inner.election.borrow(), now, &self.question)
    }

    /// The answer.
    pub fn answer(self, now: Now) -> HealthAnswer {
        let inner = &self.handle.inner;
        let question = (&self.question, self.proven);
        inner.desk.borrow_mut().answer(&inner.election.borrow(), now, question)
    }

    fn poll_changed<H: Host>(&self, host: &H, context: &Context<'_>) -> Poll<()> {
        if self.has_changed(host.now()) {
            return Poll::Ready(());
        }
        let waker = Some(context.waker().clone());
        self.handle.inner.holders.borrow_mut().insert(self.number, waker);
        Poll::Pending
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.handle.inner.holders.borrow_mut().remove(&self.number);
        self.handle.inner.desk.borrow_mut().leave();
    }
}

/// A question to a peer.
pub(super) struct Ask<'a> {
    pub(super) addr: &'a str,
    pub(super) term: Option<u64>,
    pub(super) wait_ms: u64,
    /// Who asks, in a heartbeat.
    pub(super) from: &'a str,
    pub(super) timeout_ms: u64,
}

/// Asks a peer; silence is an answer too.
pub(super) async fn ask<H: Host>(host: &H, ask: &Ask<'_>, config: &Config) -> PeerAnswer {
    let Ask { addr, term, wait_ms, from, timeout_ms } = *ask;
    let answer = async {
        let proven = config.peers.secrets.is_set();
        let nonce = if proven { hex::encode(host.random()?) } else { String::new() };
        let question = Question {
            group: config.lockfile_path.clone(),
            nonce,
            term,
            wait_ms,
            relay: config.server_addr.clone(),
            from: from.to_owned(),
        };
        let url = peer::url(addr, config).ok_or_else(|| "not to be asked".to_owned())?;
        let url = format!("{url}?{}", question.to_query(&config.peers.secrets));
        let request = request::new(Method::GET, &url, &[], Vec::new());
        let request = request.map_err(|error| error.to_string())?;
        let answer = host.ask_peer(request, peer::MAX_ANSWER_BYTES + 1).await?;
        let heard = Heard {
            status: answer.status().as_u16(),
            proof: request::text(answer.headers(), PROOF),
            body: &answer.body().bytes,
        };
        Ok::<_, String>(peer::judge(&heard, &question, &config.peers))
    };
    match select(pin!(answer), pin!(host.sleep(timeout_ms))).await {
        Either::Left((answer, _)) => answer.unwrap_or(PeerAnswer::Silent),
        Either::Right(_) => PeerAnswer::Silent,
    }
}

/// The heartbeats of one session: sent by followers, counted by both sides. They read the election and never change it.
#[derive(Default)]
pub(super) struct Heart {
    watch: RefCell<Watch>,
    /// When the next one is due, on the monotonic clock.
    next_ms: Cell<u64>,
}

impl Heart {
    /// Sends and counts heartbeats until there is something to tell.
    pub(super) async fn next<H: Host>(&self, handle: &Handle, host: &H) -> Vec<Event> {
        let is_on = || handle.with(|election| election.config().peers.heartbeat_ms.is_some());
        loop {
            // Polled again with each turn of the driver, which new settings begin.
            let recovered = poll_fn(|_| match is_on() {
                true => Poll::Ready(Vec::new()),
                false => Some(self.end(handle))
                    .filter(|told| !told.is_empty())
                    .map_or(Poll::Pending, Poll::Ready),
            });
            let recovered = recovered.await;
            if !recovered.is_empty() {
                return recovered;
            }
            let left_ms = self.next_ms.get().saturating_sub(host.now().mono_ms);
            if left_ms > 0 {
                host.sleep(left_ms).await;
            }
            let events = self.beat(handle, host).await;
            if !events.is_empty() {
                return events;
            }
        }
    }

    /// The last that it tells, once the election has finished.
    pub(super) fn end_at(&self, step: &Step, handle: &Handle) -> Vec<Event> {
        if *step == Step::Finished { self.end(handle) } else { Vec::new() }
    }

    /// Watches nobody any more: whoever is suspected counts as recovered.
    fn end(&self, handle: &Handle) -> Vec<Event> {
        handle.inner.desk.borrow_mut().take_heartbeats();
        self.watch.borrow_mut().keep(|_, _| false)
    }

    async fn beat<H: Host>(&self, handle: &Handle, host: &H) -> Vec<Event> {
        let now = host.now();
        let (config, leader) =
            handle.with(|election| (election.config().clone(), election.leader_to_ask()));
        let after_ms = config.peers.suspect_after_ms;
        self.next_ms.set(now.mono_ms + config.peers.heartbeat_ms.unwrap_or(after_ms));
        let mut events = self.take(handle, now);
        if let (Some((addr, term, leader_id)), None) = (leader, handle.authority(now)) {
            // Before somebody is suspected no answer may come too late to tell of the silence in time.
            let heard_ms = self.watch.borrow().trusted_since_ms(&leader_id);
            let silent_ms = heard_ms.map_or(0, |heard_ms| now.mono_ms.saturating_sub(heard_ms));
            let timeout_ms = after_ms.saturating_sub(silent_ms).max(MIN_BEAT_MS);
            let from = handle.with(|election| election.server_id().to_owned());
            let one = Ask { addr: &addr, term, wait_ms: 0, from: &from, timeout_ms };
            let mut requests = handle.inner.requests.get();
            requests.peer += 1;
            handle.inner.requests.set(requests);
            // Whoever leads by now, or follows another one, waits for no answer. Polled again with each turn of the driver.
            let follows = || {
                let leader = handle.with(Election::leader_to_ask);
                handle.authority(host.now()).is_none()
                    && leader.is_some_and(|(_, _, now)| now == leader_id)
            };
            let over = poll_fn(|_| if follows() { Poll::Pending } else { Poll::Ready(()) });
            // It is there in whatever term: it may lead in a newer one than the record that was read last.
            if let Either::Left((PeerAnswer::Alive { leader_id: told, own: true, .. }, _)) =
                select(pin!(ask(host, &one, &config)), pin!(over)).await
                && told == leader_id
            {
                events.extend(self.watch.borrow_mut().heard(&leader_id, host.now().mono_ms));
            }
            events.extend(self.take(handle, host.now()));
        }
        events.extend(self.watch.borrow_mut().check(host.now().mono_ms, after_ms));
        events
    }

    /// Takes the heartbeats that have come. A follower watches its leader alone, who may have sent one before it led, and a leader
    /// watches those who send them.
    fn take(&self, handle: &Handle, now: Now) -> Vec<Event> {
        let heard = handle.inner.desk.borrow_mut().take_heartbeats();
        let leads = handle.authority(now).is_some();
        let (max_lease_ms, leader) =
            handle.with(|election| (election.config().max_lease_ms, election.leader_to_ask()));
        let leader = leader.as_ref().map(|(_, _, leader_id)| leader_id.as_str());
        // A follower that is gone for good is not told again and again.
        let since_ms = now.mono_ms.saturating_sub(FORGOTTEN_AFTER * max_lease_ms);
        let mut watch = self.watch.borrow_mut();
        let follows = |server_id: &str| !leads && leader == Some(server_id);
        let mut events =
            watch.keep(|server_id, heard_ms| follows(server_id) || (leads && heard_ms >= since_ms));
        let followers = heard.iter().filter(|(server_id, _)| leads || follows(server_id));
        events.extend(followers.filter_map(|(server_id, at_ms)| watch.heard(server_id, *at_ms)));
        events
    }
}
