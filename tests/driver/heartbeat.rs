//! Heartbeats between two members: both sides tell of silence and of its end, and nothing else changes.

use edgelect::clock::Now;
use edgelect::config::PeerSettings;
use edgelect::peer::{Desk, Question};
use edgelect::proof::Secrets;

use crate::driver::Told;
use crate::driver::prelude::*;

/// A host from which one other member can be asked.
fn street(time: &Virtual, other: Option<Handle>, cut: &Rc<Cell<bool>>) -> Virtual {
    let (asked, cut) = (time.clone(), Rc::clone(cut));
    time.asking(move |request| {
        let (asked, cut, other) = (asked.clone(), cut.get(), other.clone());
        async move {
            if cut {
                return std::future::pending().await;
            }
            let query = request.uri().query().unwrap_or("");
            let answer = other.ok_or("nobody is there")?.answer_peer(&asked, query).await;
            let body = answer.body.as_bytes().into();
            request::answer(answer.status, [], body).map_err(|error| error.to_string())
        }
    })
}

struct Pair {
    machine: Machine,
    cut: Rc<Cell<bool>>,
    leader: (Handle, Told),
    follower: (Handle, Told),
}

/// A leader and a follower that sends it a heartbeat every 500 ms.
fn pair(heartbeat_ms: Option<u64>) -> Pair {
    let machine = Machine::default();
    let store = Hanging::with_group(&machine.host);
    let cut = Rc::<Cell<bool>>::default();
    let member = |name: &str, other: Option<Handle>| {
        let settings = Settings {
            server_id: Some(name.to_owned()),
            server_addr: Some(format!("{name}.example:8443")),
            peer_mode: Some(true),
            peers: PeerSettings { heartbeat_ms, ..PeerSettings::default() },
            ..Settings::default()
        };
        let handle = Handle::new(Election::new(config_of(settings), format!("of {name}"), 1));
        let host = street(&machine.host, other, &cut);
        let told = Told::default();
        machine.elect(&handle, store.clone(), &host, told.note(&machine.host));
        (handle, told)
    };
    let leader = member("a", None);
    let follower = member("b", Some(leader.0.clone()));
    Pair { machine, cut, leader, follower }
}

/// What a member was told of the other's heartbeats, and when.
fn beats(told: &Told) -> Vec<(u64, String)> {
    told.of(|at_ms, event| match event {
        Event::Suspected { .. } | Event::Recovered { .. } => Some((at_ms, format!("{event:?}"))),
        _ => None,
    })
}

#[test]
fn silence_is_told_on_both_sides_after_1500_ms_and_so_is_its_end() {
    let mut pair = pair(Some(500));
    pair.machine.pass(20_000);
    assert_eq!((beats(&pair.leader.1), beats(&pair.follower.1)), (vec![], vec![]));
    let peers = pair.follower.0.requests();
    pair.cut.set(true);
    pair.machine.pass(5_000);
    for ((_, told), who) in [(&pair.leader, "b"), (&pair.follower, "a")] {
        let [(at_ms, text)] = &beats(told)[..] else { panic!("{:?}", beats(told)) };
        assert_eq!(*text, format!("Suspected {{ server_id: {who:?} }}"));
        assert!((21_000..=22_100).contains(at_ms), "{at_ms}");
    }
    pair.cut.set(false);
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
fn whoever_was_never_asked_for_a_heartbeat_or_never_heard_of_is_not_suspected() {
    for (heartbeat_ms, heard_ms) in [(None, 20_000), (Some(500), 0)] {
        let mut pair = pair(heartbeat_ms);
        if heard_ms > 0 {
            pair.machine.pass(heard_ms);
        }
        pair.cut.set(true);
        pair.machine.pass(60_000);
        assert_eq!((beats(&pair.leader.1), beats(&pair.follower.1)), (vec![], vec![]));
    }
}

#[test]
fn a_question_is_kept_as_a_heartbeat_only_where_one_is_awaited_from_a_name_of_the_group() {
    let beats = Some(500);
    for (heartbeat_ms, query, kept) in [
        (beats, "from=a", 1),
        (None, "from=a", 0),
        (beats, "from=a&group=other", 0),
        (beats, "from=a%0Ab", 0),
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
