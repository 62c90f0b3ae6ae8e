//! An answer of a peer is worth no more than a record of this group that is held, and never grows
//! without bound.

use edgelect::config::{Config, Settings};
use edgelect::election::PeerAnswer;
use edgelect::json::Object;
use edgelect::lease::{self, Lease, MAX_RECORD_BYTES, Reading};
use edgelect::peer::{self, Heard, MAX_ANSWER_BYTES, Question};
use edgelect::store::Version;

use super::records;

/// What a member of this group makes of an answer, without a secret.
pub fn judge(status: u16, body: &[u8], group: &str) -> PeerAnswer {
    let settings = Settings { lockfile_path: Some("jobs".to_owned()), ..Settings::default() };
    let config = Config::new(&settings).expect("it is one");
    let (question, _) = Question::read("", &config.peers.secrets);
    let question = Question { group: group.to_owned(), ..question };
    let heard = Heard { status, proof: None, body };
    peer::judge(&heard, &question, &config.peers)
}

/// Any answer to our question.
pub fn judged(status: u16, body: &[u8], group: &str) {
    let PeerAnswer::Alive { leader_id, .. } = judge(status, body, group) else { return };
    assert!(status == 200 && body.len() <= MAX_ANSWER_BYTES);
    assert!(matches!(lease::read(body), Reading::Lease(lease) if lease.leader_id == leader_id));
    let fields = Object::read(body).expect("a record is an object");
    assert!(!records::is_tombstone(&fields), "who has released the lease does not lead");
    let text =
        |name| records::given(&fields, name).and_then(|json| serde_json::from_str(json).ok());
    assert_eq!(text("group"), Some(group.to_owned()), "another group's leader");
    assert_eq!(text("leaderID"), Some(leader_id));
}

/// Any record, given as an answer out of the store, is judged as what it is.
pub fn answered(lease: &Lease, group: &str) {
    let version = Version("\"v\"".to_owned());
    let given = |server_id, age_ms| {
        peer::answer_from_store(group, server_id, &version, lease, age_ms, 15_000)
    };
    let lease_ms = lease.lease_ms.unwrap_or(15_000);
    for dead in [given("nobody of that name", Some(0)), given(&lease.leader_id, Some(lease_ms))] {
        assert_eq!(dead.status, 404);
    }
    let alive = given(&lease.leader_id, Some(lease_ms - 1));
    if lease.released() || lease.parked || lease.in_grace() {
        assert_eq!(alive.status, 404);
        return;
    }
    assert_eq!((alive.status, alive.etag.as_ref()), (200, Some(&version)));
    judged(200, alive.body.as_bytes(), group);
    let shown = Object::read(alive.body.as_bytes()).expect("an answer is an object");
    for hidden in
        ["session", "slotResult"].into_iter().chain(lease.extra.iter().map(|field| field.0))
    {
        let added = ["group", "source"].contains(&hidden);
        assert!(added || records::given(&shown, hidden).is_none(), "{hidden} is shown to anybody");
    }
    if alive.body.len() <= MAX_RECORD_BYTES {
        let (leader_id, term) = (lease.leader_id.clone(), lease.term);
        let told = judge(200, alive.body.as_bytes(), group);
        let meant = PeerAnswer::Alive { leader_id, term, sequence: lease.sequence, own: false };
        assert_eq!(told, meant, "{}", alive.body);
    }
}
