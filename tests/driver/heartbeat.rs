//! Heartbeats between two members: both sides tell of silence and of its end, and nothing else changes.

use edgelect::clock::Now;
use edgelect::config::PeerSettings;
use edgelect::peer::{Desk, Question};
use edgelect::proof::Secrets;

use crate::driver::Told;
use crate::driver::prelude::*;

/// A heartbeat of `a`.
const BEAT: &str = "from=a&group=leader/test.json";

/// What is wrong between the two.
#[derive(Clone, Copy, Default, PartialEq)]
enum Way {
    #[default]
    Open,
    /// Nothing arrives.
    Cut,
    /// The process of who is asked has begun anew, without a session, and reads the record for those who ask.
    Restarted,
    /// Who is asked leads in a newer term than the asker has read of.
    NewTerm,
}

/// A host from which one other member can be asked, on a way that takes so long.
fn street(time: &Virtual, other: Option<Handle>, way: &Rc<Cell<Way>>, way_ms: u64) -> Virtual {
    let (asked, way) = (time.clone(), Rc::clone(way));
    time.asking(move |request| {
        let (asked, way, other) = (asked.clone(), way.get(), other.clone());
        async move {
            asked.sleep(way_ms).await;
            if way == Way::Cut {
                return std::future::pending().await;
            }
            let query = request.uri().query().unwrap_or("");
            let answer = other.ok_or("nobody is there")?.answer_peer(&asked, query).await;
            let body = match way {
                Way::Restarted => answer.body.replacen('{', "{\"source\":\"store\",", 1),
                Way::NewTerm => answer.body.replacen("\"term\":", "\"term\":9", 1),
                _ => answer.body,
            };
            request::answer(answer.status, [], body.as_bytes().into())
                .map_err(|error| error.to_string())
        }
    })
}

struct Pair {
    machine: Machine,
    way: Rc<Cell<Way>>,
    leader: (Handle, Told),
    follower: (Handle, Told),
}

fn settings(name: &str, heartbeat_ms: Option<u64>) -> Settings {
    Settings {
        server_id: Some(name.to_owned()),
        server_addr: Some(format!("{name}.example:8443")),
        peer_mode: Some(true),
        peers: PeerSettings { heartbeat_ms, ..PeerSettings::default() },
        ..Settings::default()
    }
}

/// A leader and a follower that sends it a heartbeat every 500 ms.
fn pair(heartbeat_ms: Option<u64>) -> Pair {
    pair_apart(heartbeat_ms, 0)
}

fn pair_apart(heartbeat_ms: Option<u64>, way_ms: u64) -> Pair {
    let machine = Machine::default();
    let store = Hanging::with_group(&machine.host);
    let way = Rc::<Cell<Way>>::default();
    let member = |name: &str, other: Option<Handle>| {
        let config = config_of(settings(name, heartbeat_ms));
        let handle = Handle::new(Election::new(config, format!("session of {name}"), 1));
        let host = street(&machine.host, other, &way, way_ms);
        let told = Told::default();
        machine.elect(&handle, store.clone(), &host, told.note(&machine.host));
        (handle, told)
    };
    let leader = member("a", None);
    let follower = member("b", Some(leader.0.clone()));
    Pair { machine, way, leader, follower }
}

/// What a member was told of the other's heartbeats, and when.
fn beats(told: &Told) -> Vec<(u64, String)> {
    told.of(|at_ms, event| match event {
        Event::Suspected { .. } | Event::Recovered { .. } => Some((at_ms, format!("{event:?}"))),
        _ => None,
    })
}

/// The same without the times.
fn texts(told: &Told) -> Vec<String> {
    beats(told).into_iter().map(|(_, text)| text).collect()
}

#[test]
fn silence_is_told_on_both_sides_after_1500_ms_and_so_is_its_end() {
    let mut pair = pair(Some(500));
    pair.machine.pass(20_000);
    assert_eq!((beats(&pair.leader.1), beats(&pair.follower.1)), (vec![], vec![]));
    let peers = pair.follower.0.requests();
    assert!(peers.peer >= 39, "each of 39 heartbeats is a request to a peer: {peers:?}");
    pair.way.set(Way::Cut);
    pair.machine.pass(5_000);
    for ((_, told), who) in [(&pair.leader, "b"), (&pair.follower, "a")] {
        let [(at_ms, text)] = &beats(told)[..] else { panic!("{:?}", beats(told)) };
        assert_eq!(*text, format!("Suspected {{ server_id: {who:?} }}"));
        assert!((21_000..=22_100).contains(at_ms), "{at_ms}");
    }
    pair.way.set(Way::Open);
    pair.machine.pass(3_000);
    for ((_, told), who) in [(&pair.leader, "b"), (&pair.follower, "a")] {
        let [_, (_, text)] = &beats(told)[..] else { panic!("{:?}", beats(told)) };
        assert_eq!(*text, format!("Recovered {{ server_id: {who:?} }}"));
    }
    let after = pair.follower.0.requests();
    assert_eq!(after.write, peers.write, "nobody has claimed anything for it");
    assert!(pair.leader.0.authority(pair.machine.host.now()).is_some());
}

#[test]
fn what_somebody_else_knows_of_the_leader_is_no_heartbeat_of_it() {
    let mut pair = pair(Some(500));
    pair.machine.pass(20_000);
    assert_eq!(texts(&pair.follower.1), Vec::<String>::new());
    pair.way.set(Way::Restarted);
    pair.machine.pass(3_000);
    assert_eq!(texts(&pair.follower.1), [r#"Suspected { server_id: "a" }"#]);
}

#[test]
fn a_leader_that_answers_of_a_newer_term_is_heard_of() {
    let mut pair = pair(Some(500));
    pair.machine.pass(10_000);
    pair.way.set(Way::NewTerm);
    pair.machine.pass(5_000);
    assert_eq!(beats(&pair.follower.1), vec![]);
}

#[test]
fn a_leader_on_a_slow_way_is_trusted_again_after_the_way_was_cut() {
    let mut pair = pair_apart(Some(500), 150);
    pair.machine.pass(20_000);
    pair.way.set(Way::Cut);
    pair.machine.pass(3_000);
    pair.way.set(Way::Open);
    pair.machine.pass(4_000);
    for ((_, told), who) in [(&pair.leader, "b"), (&pair.follower, "a")] {
        let events = ["Suspected", "Recovered"].map(|of| format!("{of} {{ server_id: {who:?} }}"));
        assert_eq!(texts(told), events);
    }
}

#[test]
fn who_comes_to_lead_while_its_heartbeat_has_no_answer_hears_its_followers() {
    let mut pair = pair(Some(5_000));
    pair.machine.pass(19_000);
    pair.way.set(Way::Cut);
    pair.machine.pass(2_000);
    // The old leader follows now, as another session.
    pair.leader.0.tell(Input::Stop { park: false });
    for _ in 0..5 {
        pair.machine.pass(3_000);
        let now = pair.machine.host.now();
        assert!(pair.follower.0.authority(now).is_some());
        let _ = pair.follower.0.asked(now, BEAT, 0);
    }
    assert_eq!(beats(&pair.follower.1), vec![]);
}

#[test]
fn a_heartbeat_of_before_it_led_is_a_sign_of_a_leader_too() {
    let mut pair = pair(Some(500));
    pair.machine.pass(10_000);
    pair.way.set(Way::Cut);
    for _ in 0..4 {
        pair.machine.pass(1_000);
        let _ = pair.follower.0.asked(pair.machine.host.now(), BEAT, 0);
    }
    assert_eq!(texts(&pair.follower.1), Vec::<String>::new());
    pair.machine.pass(2_100);
    assert_eq!(texts(&pair.follower.1), ["Suspected { server_id: \"a\" }"]);
}

#[test]
fn whoever_is_suspected_counts_as_recovered_when_heartbeats_or_the_session_end() {
    for stops in [false, true] {
        let mut pair = pair(Some(500));
        pair.machine.pass(20_000);
        pair.way.set(Way::Cut);
        pair.machine.pass(3_000);
        for ((handle, _), name) in [(&pair.leader, "a"), (&pair.follower, "b")] {
            handle.tell(match stops {
                true => Input::Stop { park: false },
                false => Input::Configure(Box::new(config_of(settings(name, None)))),
            });
        }
        pair.way.set(Way::Open);
        pair.machine.pass(5_000);
        let ends = |told: &Told, who: &str| {
            texts(told).last() == Some(&format!("Recovered {{ server_id: {who:?} }}"))
        };
        assert!(ends(&pair.leader.1, "b") && ends(&pair.follower.1, "a"), "stopped: {stops}");
        let before = (texts(&pair.leader.1).len(), texts(&pair.follower.1).len());
        assert_eq!(before, (2, 2), "stopped: {stops}");
    }
}

#[test]
fn heartbeats_that_were_off_for_a_while_are_no_silence() {
    let mut pair = pair(Some(500));
    pair.machine.pass(20_000);
    for heartbeat_ms in [None, Some(500)] {
        for ((handle, _), name) in [(&pair.leader, "a"), (&pair.follower, "b")] {
            handle.tell(Input::Configure(Box::new(config_of(settings(name, heartbeat_ms)))));
        }
        pair.machine.pass(5_000);
    }
    assert_eq!((beats(&pair.leader.1), beats(&pair.follower.1)), (vec![], vec![]));
}

#[test]
fn whoever_was_never_asked_for_a_heartbeat_or_never_heard_of_is_not_suspected() {
    for (heartbeat_ms, heard_ms) in [(None, 20_000), (Some(500), 0)] {
        let mut pair = pair(heartbeat_ms);
        if heard_ms > 0 {
            pair.machine.pass(heard_ms);
        }
        pair.way.set(Way::Cut);
        pair.machine.pass(60_000);
        assert_eq!((beats(&pair.leader.1), beats(&pair.follower.1)), (vec![], vec![]));
    }
}

#[test]
fn a_question_is_kept_as_a_heartbeat_only_where_one_is_awaited_from_a_name_of_the_group() {
    let beats = Some(500);
    for (heartbeat_ms, query, kept) in [
        (beats, BEAT, 1),
        (None, BEAT, 0),
        (beats, "from=a", 0),
        (beats, "from=a&group=other", 0),
        (beats, "from=a%0Ab&group=leader/test.json", 0),
    ] {
        let peers = PeerSettings { heartbeat_ms, ..PeerSettings::default() };
        let settings = Settings { peers, peer_mode: Some(true), ..Settings::default() };
        let election = Election::new(config_of(settings), "b".repeat(32), 1);
        let (question, proven) = Question::read(query, &Secrets::default());
        let mut desk = Desk::default();
        desk.ask(&election, Now::new(1, 1), (&question, proven), 0);
        assert_eq!(desk.take_heartbeats().len(), kept, "{heartbeat_ms:?} {query}");
    }
}
