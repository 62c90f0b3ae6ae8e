//! What a peer says beside what the store has shown.

use edgelect::election::PeerAnswer;
use edgelect::election::Step;
use edgelect::{Input, Settings};

use crate::alone::told::{Alone, record, settings};

#[test]
fn c66_a_leader_of_the_past_that_says_it_lives_saves_no_read() {
    let addressed = record("other", 1, ",\"leaderAddr\":\"other:80\"");
    let alive = |leader_id: &str, term| {
        let leader_id = leader_id.to_owned();
        Input::Peer(PeerAnswer::Alive { leader_id, term, sequence: 9, own: true })
    };
    let of_record = ("other", Some(5));
    for (name, term) in [of_record, ("before", Some(5)), ("other", Some(4)), ("other", None)] {
        let mut alone = Alone::new(&Settings { peer_mode: Some(true), ..settings() });
        alone.reads();
        alone.found("\"v\"", &addressed);
        assert!(matches!(alone.step(), Step::AskPeer { term: Some(5), .. }));
        let asked_ms = alone.ms;
        alone.tell(alive(name, term));
        let read = matches!(alone.step(), Step::Read { .. });
        assert_eq!(read, (name, term) != of_record, "{name}, {term:?}");
        assert!(!read || alone.ms <= asked_ms + 1, "{name}, {term:?}: at {} ms", alone.ms);
    }
}
