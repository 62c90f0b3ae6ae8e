//! A locker as the store of elections: what holds without versions, whatever becomes of its calls, and what is refused.

use edgelect::peer;
use edgelect::status::public;
use edgelect::store::Record;
use edgelect::{
    LockerStore, Owner, Schedule, ScheduleSettings, UnfencedTerm, lead, lead_unfenced,
    new_schedule, run,
};
use futures::future::AbortHandle;
use futures::task::LocalSpawnExt;

use crate::driver::Told;
use crate::driver::backend::{Backend, Fault, Name};
use crate::driver::prelude::*;

const LEASE_MS: u64 = 15_000;
const MARGIN_MS: u64 = 1_500;

struct Member {
    handle: Handle,
    told: Told,
    end: AbortHandle,
}

fn elector(session: &str, config: Config) -> Handle {
    let seed = session.bytes().fold(7, |seed: u64, byte| seed * 31 + u64::from(byte));
    Handle::new(Election::new(config, session.to_owned(), seed))
}

/// A member that runs; the work of its terms stops so many milliseconds after they are lost.
fn member(machine: &Machine, backend: &Backend, session: &str, stops_ms: u64) -> Member {
    member_of(machine, backend, elector(session, config()), stops_ms)
}

fn member_of(machine: &Machine, backend: &Backend, handle: Handle, stops_ms: u64) -> Member {
    let store = LockerStore::new(backend.clone(), &handle).expect("nothing needs versions");
    let told = Told::default();
    let mut noted = told.note(&machine.host);
    let (host, running, tasks) = (machine.host.clone(), handle.clone(), machine.tasks());
    let end = machine.run(async move {
        let note = |event: Event| {
            if let Event::Lost { term, .. } = event {
                let (host, stopping) = (host.clone(), running.clone());
                let stopped = async move {
                    host.sleep(stops_ms).await;
                    stopping.tell(Input::WorkEnded { term });
                };
                tasks.spawn_local(stopped).expect("the pool is alive");
            }
            noted(event);
        };
        run(&running, &store, &host, note).await;
    });
    Member { handle, told, end }
}

impl Member {
    fn remaining_ms(&self, host: &Virtual) -> Option<u64> {
        self.handle.authority(host.now()).map(|authority| authority.remaining_ms)
    }
}

/// A member that leads for a second.
fn led() -> (Machine, Backend, Member) {
    let mut machine = Machine::default();
    let backend = Backend::new(&machine.host);
    let member = member(&machine, &backend, "a", 0);
    machine.pass(1_000);
    (machine, backend, member)
}

/// The next calls of this name fail so, so many times.
fn failing(backend: &Backend, name: Name, fault: Fault, times: u32) {
    let left = Cell::new(times);
    backend.failing(move |called| {
        (called == name && left.get() > 0).then(|| {
            left.set(left.get() - 1);
            fault
        })
    });
}

#[test]
fn an_owner_is_one_session_and_authority_ends_a_margin_before_the_lock_counted_from_before_the_call()
 {
    let mut machine = Machine::default();
    let backend = Backend::new(&machine.host);
    failing(&backend, Name::TryAcquire, Fault::Slow(700), 1);
    let member = member(&machine, &backend, "a", 0);
    machine.pass(700);
    let [call] = &backend.calls()[..] else { panic!("one call") };
    assert_eq!((call.owner_id.as_str(), call.ttl_ms, call.at_ms), ("a-1", LEASE_MS, 0));
    assert_eq!(member.remaining_ms(&machine.host), Some(LEASE_MS - MARGIN_MS - 700));
    backend.failing(|_| Some(Fault::Hang));
    machine.at(LEASE_MS - MARGIN_MS - 1);
    assert_eq!(member.remaining_ms(&machine.host), Some(1));
    machine.pass(1);
    assert_eq!(member.remaining_ms(&machine.host), None);
}

#[test]
fn s8_a_call_of_which_nobody_knows_what_became_is_found_out_by_renew_and_costs_no_term() {
    use Fault::{After, Before, Hang, Late, Slow};
    let claims = [Before, After, Hang, Slow(5_000), Late(900)].map(|fault| (fault, 0, 1));
    let renewals = [Before, After, Hang, Late(2_500)].map(|fault| (fault, 1_000, 2));
    for (fault, from_ms, times) in claims.into_iter().chain(renewals) {
        let mut machine = Machine::default();
        let backend = Backend::new(&machine.host);
        let name = if from_ms == 0 { Name::TryAcquire } else { Name::Renew };
        let member = member(&machine, &backend, "a", 0);
        if from_ms > 0 {
            machine.pass(from_ms);
        }
        failing(&backend, name, fault, times);
        for pass_ms in [6_000, 54_000] {
            machine.pass(pass_ms);
            assert!(member.remaining_ms(&machine.host).is_some(), "{name:?} {fault:?}");
            assert_eq!(
                (member.told.acquired(), member.told.reasons()),
                (1, vec![]),
                "{name:?} {fault:?}"
            );
        }
        assert!(backend.calls().iter().all(|call| call.owner_id == "a-1"), "{name:?} {fault:?}");
        assert_eq!(backend.holder().map(|(owner, _)| owner).as_deref(), Some("a-1"));
    }
}

#[test]
fn a_claim_that_lands_after_renew_did_not_find_it_is_found_before_its_lock_runs_out() {
    use Fault::{Before, Late, Slow};
    let mut machine = Machine::default();
    let backend = Backend::new(&machine.host);
    let times = Cell::new(0);
    backend.failing(move |_| {
        times.set(times.get() + 1);
        [Late(4_000), Before, Before, Slow(1_500)].get(times.get() - 1).copied()
    });
    let member = member(&machine, &backend, "a", 0);
    machine.pass(LEASE_MS);
    assert!(member.remaining_ms(&machine.host).is_some(), "{:?}", backend.calls());
}

#[test]
fn one_of_three_leads_and_renews_once_per_interval_and_the_others_try_about_as_often() {
    let mut machine = Machine::default();
    let backend = Backend::new(&machine.host);
    let members = ["a", "b", "c"].map(|session| member(&machine, &backend, session, 0));
    machine.pass(60_000);
    let before = backend.calls().len();
    machine.pass(1_000_000);
    let leads = |member: &&Member| member.remaining_ms(&machine.host).is_some();
    assert_eq!(members.iter().filter(leads).count(), 1);
    let calls = &backend.calls()[before..];
    let renewals = calls.iter().filter(|call| call.name == Name::Renew).count();
    assert!(renewals.abs_diff(200) <= 1, "{renewals} renewals");
    let tries = calls.len() - renewals;
    // Two followers, each once per interval and a tenth of one at most.
    assert!((360..=400).contains(&tries), "{tries} tries");
}

#[test]
fn a_backend_that_is_away_is_named_in_the_status_and_costs_the_term_at_its_fence_and_never_before()
{
    let (mut machine, backend, member) = led();
    backend.failing(|_| Some(Fault::Before));
    machine.at(LEASE_MS - MARGIN_MS - 1);
    assert_eq!(member.remaining_ms(&machine.host), Some(1));
    let told = status_of(&member.handle, &machine.host);
    let why = told["error"].as_str().expect("it is told");
    assert!(why.contains("locker, key \"leader/test.json\": Renew was cut off"), "{told}");
    let (now, requests) = (machine.host.now(), member.handle.requests());
    let told = member.handle.with(|election| public(election, now, requests));
    assert!(
        told.contains("key \\\"leader/test.json\\\": it failed") && !told.contains("Renew was"),
        "{told}"
    );
    machine.pass(60_000);
    assert_eq!(member.told.reasons(), [LostReason::Expired]);
    backend.failing(|_| None);
    machine.pass(30_000);
    assert!(member.remaining_ms(&machine.host).is_some());
    assert_eq!(member.told.acquired(), 2, "a term never resumes");
}

#[test]
fn a_lock_that_old_work_may_not_use_is_not_prolonged_by_a_look() {
    let mut machine = Machine::default();
    let backend = Backend::new(&machine.host);
    let busy = member(&machine, &backend, "a", 60_000);
    machine.pass(1_000);
    // What is sent takes effect, and nobody says so: the lock lasts a lease from the last of these on.
    backend.failing(|_| Some(Fault::After));
    machine.at(LEASE_MS);
    assert_eq!(busy.told.reasons(), [LostReason::Expired]);
    backend.failing(|_| None);
    let before = backend.calls().len();
    let other = member(&machine, &backend, "b", 0);
    machine.pass(LEASE_MS + 6_000);
    let calls = backend.calls();
    assert!(other.remaining_ms(&machine.host).is_some(), "{calls:?}");
    assert!(calls[before..].iter().all(|call| call.owner_id.starts_with('b')), "{calls:?}");
    let told = status_of(&busy.handle, &machine.host);
    assert!(told["error"].as_str().expect("it is told").contains("work"), "{told}");
}

#[test]
fn s5_a_new_lease_costs_no_term_and_counts_from_the_next_one_on() {
    let (mut machine, backend, member) = led();
    let leader_timeout_ms = Some(40_000);
    let longer = config_of(Settings { leader_timeout_ms, ..Settings::default() });
    member.handle.tell(Input::Configure(Box::new(longer)));
    machine.pass(60_000);
    assert!(backend.calls().iter().all(|call| call.ttl_ms == LEASE_MS));
    assert!(member.told.reasons().is_empty());
    member.handle.tell(Input::Resign);
    machine.pass(60_000);
    let calls = backend.calls();
    let last = calls.last().expect("it leads again");
    assert_eq!((last.owner_id.as_str(), last.ttl_ms, member.told.acquired()), ("a-2", 40_000, 2));
}

fn held_by(session: &str) -> Record {
    let (session, lease_ms) = (Some(session.to_owned()), Some(15_000));
    Lease { session, lease_ms, ..Lease::bare("a", Stamp::At(0)) }.into()
}

#[test]
fn what_a_read_shows_is_what_the_backend_said_last_and_a_write_on_anything_else_calls_nothing() {
    let host = Virtual::default();
    let backend = Backend::new(&host);
    let store = LockerStore::new(backend.clone(), &elector("a", config())).expect("a locker");
    let read = || block_on(store.perform(Operation::Read { unless: None })).outcome;
    let write = |version: &Version| {
        let condition = Condition::Match(version.clone());
        block_on(store.perform(Operation::Write { record: held_by("a"), condition })).outcome
    };
    let shown = || match read() {
        Outcome::Found { version, reading: Reading::Lease(lease) } => (version, lease),
        other => panic!("no record: {other:?}"),
    };
    let (free, lease) = shown();
    assert!(lease.released());
    let Outcome::Written { version: Some(held) } = write(&free) else { panic!("it is free") };
    assert_eq!(write(&free), Outcome::Refused);
    assert_eq!(backend.calls().len(), 1, "a write on an old version");
    failing(&backend, Name::Renew, Fault::Before, 1);
    assert!(matches!(write(&held), Outcome::Unknown { .. }));
    backend.steal(LEASE_MS);
    let (_, lease) = shown();
    assert_ne!(lease.session.as_deref(), Some("a"), "another owner has it");
}

#[test]
fn a_renewal_that_finds_another_owner_ends_the_term_and_does_not_release_what_is_not_its_own() {
    let (mut machine, backend, member) = led();
    backend.steal(LEASE_MS);
    machine.pass(5_000);
    assert_eq!(member.told.reasons(), [LostReason::Overtaken]);
    member.handle.tell(Input::Stop { park: false });
    machine.pass(5_000);
    assert_eq!(backend.holder().map(|(owner, _)| owner).as_deref(), Some("thief"));
}

#[test]
fn s12_a_stop_or_a_park_releases_after_the_work_has_stopped() {
    for park in [false, true] {
        let mut machine = Machine::default();
        let backend = Backend::new(&machine.host);
        let first = member(&machine, &backend, "a", 2_000);
        machine.pass(1_000);
        let second = member(&machine, &backend, "b", 0);
        first.handle.tell(Input::Stop { park });
        machine.pass(1_900);
        assert_eq!(first.remaining_ms(&machine.host), None);
        assert!(backend.holder().is_some_and(|(owner, _)| owner == "a-1"), "its work goes on");
        machine.pass(6_000);
        assert!(second.remaining_ms(&machine.host).is_some(), "parked: {park}");
    }
}

#[test]
fn what_needs_versions_is_refused_and_what_does_not_runs_without_a_token() {
    let mut machine = Machine::default();
    let (host, backend) = (machine.host.clone(), Backend::new(&machine.host));
    let peers = config_of(Settings { peer_mode: Some(true), ..Settings::default() });
    let refused = LockerStore::new(backend.clone(), &elector("a", peers)).err();
    assert_eq!(refused.map(|error| error.field).as_deref(), Some("peerMode"));
    let slot = ScheduleSettings { slot_ms: Some(60_000), ..ScheduleSettings::default() };
    let schedule = Schedule::new(&slot, &config()).expect("a schedule");
    let slots = Handle::new(new_schedule(&host, config(), schedule).expect("randomness"));
    assert_eq!(
        LockerStore::new(backend.clone(), &slots).err().map(|e| e.field).as_deref(),
        Some("slot")
    );

    let handle = elector("a", config());
    let store = LockerStore::new(backend.clone(), &handle).expect("nothing needs versions");
    let fault =
        block_on(lead(&handle, &store, &host, async |term| term.token)).expect_err("no token");
    assert!(fault.kind == FaultKind::Misconfigured && fault.message.contains("lead_unfenced"));
    assert_eq!(
        Owner::of(&handle, 1, "state").err().map(|e| e.field).as_deref(),
        Some("checkpoint")
    );
    let other = Operation::Write {
        record: held_by("b"),
        condition: Condition::Match(Version("\"1\"".to_owned())),
    };
    let Outcome::Rejected(fault) = block_on(store.perform(other)).outcome else {
        panic!("another session's lease")
    };
    assert!(fault.message.starts_with("locker, key \"leader/test.json\": "), "{fault}");
    assert!(backend.calls().is_empty());

    let seen = Rc::new(RefCell::new(None));
    let (leading, noted, clock) = (handle.clone(), Rc::clone(&seen), host.clone());
    machine.run(async move {
        let work = async |term: UnfencedTerm<'_, _>| {
            noted.replace(Some(term.remaining_ms()));
            clock.sleep(2_000).await;
        };
        let led = lead_unfenced(&leading, &store, &clock, work).await;
        assert_eq!(led, Ok(Some(())));
    });
    machine.pass(1_000);
    assert_eq!(*seen.borrow(), Some(LEASE_MS - MARGIN_MS));
    let told = status_of(&handle, &host);
    assert_eq!((&told["role"], &told["unfenced"]), (&"leader".into(), &true.into()));
    assert!(["term", "transitions", "parked"].iter().all(|name| told[name].is_null()), "{told}");
    let health = handle.with(|election| peer::answer(election, host.now(), false));
    assert_eq!((health.status, &health.etag), (200, &None));
    assert!(!health.body.contains("\"term\""), "{}", health.body);
    machine.pass(2_000);
    assert_eq!(backend.holder(), None, "released");
}

#[test]
fn whoever_waits_for_a_lock_reports_no_trouble() {
    let (mut machine, backend, _leader) = led();
    let waiting = member(&machine, &backend, "b", 0);
    machine.pass(10 * LEASE_MS);
    assert_eq!(waiting.told.troubles(), []);
    let told = status_of(&waiting.handle, &machine.host);
    assert!(told["error"].is_null(), "{told}");
    assert_eq!(told["waiting"]["reason"], "lease", "{told}");
    assert_eq!(backend.holder().map(|(owner_id, _)| owner_id).as_deref(), Some("a-1"));
}

/// Three members of one name, and whatever may become of their calls.
struct Storm {
    machine: Machine,
    backend: Backend,
    members: Vec<Member>,
    chance: Chance,
    sessions: u64,
    led_ms: u64,
}

const STEP_MS: u64 = 50;

fn one_name() -> Settings {
    Settings { server_id: Some("w".to_owned()), ..Settings::default() }
}

impl Storm {
    fn new(seed: u64) -> Self {
        use Fault::{After, Before, Hang, Held, Late, Slow};
        let machine = Machine::default();
        let backend = Backend::new(&machine.host);
        let mut drawn = Chance::new(seed ^ 0xFA17);
        let rate = drawn.pick(&[50, 150, 300]);
        backend.failing(move |_| {
            if !drawn.per_mille(rate) {
                return None;
            }
            let late = Late(drawn.span(60_000));
            let (late_ms, after_ms) = (drawn.span(4_000), drawn.span(1_000));
            let held = Held(late_ms, after_ms);
            Some(drawn.pick(&[Before, After, Hang, late, late, Slow(after_ms), held]))
        });
        let mut storm = Self {
            machine,
            backend,
            members: Vec::new(),
            chance: Chance::new(seed),
            sessions: 0,
            led_ms: 0,
        };
        for _ in 0..3 {
            storm.join();
        }
        storm
    }

    fn join(&mut self) {
        self.sessions += 1;
        let (session, stops_ms) = (format!("s{}", self.sessions), self.chance.span(3_000));
        let handle = elector(&session, config_of(one_name()));
        self.members.push(member_of(&self.machine, &self.backend, handle, stops_ms));
    }

    /// Something that an operator or a machine does.
    fn disturb(&mut self) {
        let at = self.chance.below(self.members.len() as u64) as usize;
        let handle = self.members[at].handle.clone();
        match self.chance.below(6) {
            0 | 1 => handle.tell(Input::Resign),
            2 => handle.tell(Input::Stop { park: self.chance.one_in(2) }),
            3 => {
                // It dies, and says nothing.
                self.members.swap_remove(at).end.abort();
                self.join();
            }
            4 => {
                let leader_timeout_ms = Some(self.chance.pick(&[2_000, 6_000, 15_000, 40_000]));
                let frequent_interval_ms = leader_timeout_ms.map(|ms| ms / 5);
                let settings = Settings { leader_timeout_ms, frequent_interval_ms, ..one_name() };
                handle.tell(Input::Configure(Box::new(config_of(settings))));
            }
            _ => handle.tell(Input::Tick),
        }
        self.members.retain(|member| !member.handle.with(Election::has_finished));
        while self.members.len() < 3 {
            self.join();
        }
    }

    /// At most one leads, and whoever leads holds the lock for longer than its authority lasts.
    fn look(&mut self, seed: u64) {
        let host = &self.machine.host;
        let holder = self.backend.holder();
        let mut leading = 0;
        for member in &self.members {
            let Some(left_ms) = member.remaining_ms(host) else { continue };
            leading += 1;
            let session = member.handle.with(|election| election.session().to_owned());
            let held =
                holder.as_ref().filter(|(owner, _)| owner.starts_with(&format!("w-{session}-")));
            let lock_ms = held.map(|(_, ms)| *ms);
            assert!(
                lock_ms.is_some_and(|ms| ms > left_ms),
                "seed {seed}, {} ms: {session} has {left_ms} ms of authority and the lock is {holder:?}",
                host.now_ms.get(),
            );
        }
        assert!(leading <= 1, "seed {seed}, {} ms: {leading} lead", host.now_ms.get());
        self.led_ms += leading * STEP_MS;
    }

    fn rage(&mut self, seed: u64, for_ms: u64) {
        for _ in 0..for_ms / STEP_MS {
            self.machine.pass(STEP_MS);
            self.look(seed);
            if self.chance.per_mille(4) {
                self.disturb();
            }
        }
    }
}

#[test]
fn s1_whatever_becomes_of_the_calls_of_a_locker_two_members_never_lead_at_once() {
    let (mut led_ms, mut whole_ms) = (0, 0);
    for seed in 0..200 {
        let mut storm = Storm::new(seed);
        storm.rage(seed, 300_000);
        (led_ms, whole_ms) = (led_ms + storm.led_ms, whole_ms + 300_000);
        // Once nothing fails any more somebody leads, and goes on.
        storm.backend.failing(|_| None);
        storm.members.drain(..).for_each(|member| member.end.abort());
        storm.join();
        storm.machine.pass(120_000);
        let led = storm.members[0].remaining_ms(&storm.machine.host);
        assert!(led.is_some(), "seed {seed}: nobody leads");
    }
    assert!(led_ms * 10 > whole_ms * 4, "somebody led for {led_ms} of {whole_ms} ms");
}
