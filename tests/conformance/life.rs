//! A whole life of one key, led by real elections: the tokens grow through claim, renewal, release, a crash, a deletion.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use edgelect::election::Input;
use edgelect::lease::Lease;
use edgelect::store::{Store, Version};
use edgelect::{Config, Event, Handle, Host, Settings, driver};

/// Leases are short, because the life waits for one to run out, and for a grace.
const LEASE_MS: u64 = 4_500;

/// A machine that is busy may cost a member its term before it can release.
const MOST_TRIES: usize = 3;

fn config(server_id: &str) -> Config {
    let settings = Settings {
        lockfile_path: Some("life".to_owned()),
        server_id: Some(server_id.to_owned()),
        leader_timeout_ms: Some(LEASE_MS),
        frequent_interval_ms: Some(500),
        store_skew_ms: Some(0),
        ..Settings::default()
    };
    Config::new(&settings).expect("the settings keep every rule")
}

/// How a member ends.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Releases,
    /// Without a word.
    Crashes,
}

/// The tokens of the members, in order. `delete` deletes the record behind everybody's back, if the store can.
///
/// # Panics
/// A token does not grow, or the record does not say it.
pub async fn tokens_grow<S: Store, H: Host>(
    store: &S,
    host: &H,
    delete: Option<impl Future<Output = ()>>,
) -> Vec<u64> {
    driver::init(store, host, &config("operator")).await.expect("a new group");
    let mut tokens = Vec::new();
    let members =
        [("a", End::Releases), ("b", End::Releases), ("a", End::Crashes), ("b", End::Crashes)];
    for (server_id, end) in members {
        serve(store, host, server_id, end, &mut tokens).await;
    }
    if let Some(delete) = delete {
        delete.await;
        let back = driver::read_back(store, host, 5_000).await;
        assert!(back.is_none(), "it is deleted");
        serve(store, host, "c", End::Releases, &mut tokens).await;
    }
    let grow = tokens.windows(2).all(|pair| pair[0] < pair[1]);
    assert!(grow && tokens.len() >= members.len(), "{}: {tokens:?}", store.describe());
    tokens
}

/// What is stored. A read changes nothing, so one that a busy machine leaves unanswered is made again.
async fn read_back<S: Store, H: Host>(store: &S, host: &H) -> (Version, Lease) {
    for _ in 0..MOST_TRIES {
        if let Some(found) = driver::read_back(store, host, 5_000).await {
            return found;
        }
    }
    panic!("{}: there is no record", store.describe())
}

/// Members of this name, until one has ended as it should.
async fn serve<S: Store, H: Host>(
    store: &S,
    host: &H,
    server_id: &str,
    end: End,
    tokens: &mut Vec<u64>,
) {
    for _ in 0..MOST_TRIES {
        let terms = member(store, host, server_id, end).await;
        let (_, lease) = read_back(store, host).await;
        assert_eq!((lease.term, lease.leader_id.as_str()), (terms.last().copied(), server_id));
        tokens.extend(terms);
        if lease.released() == (end == End::Releases) {
            return;
        }
    }
    panic!("{}: nobody releases in time", store.describe());
}

/// Leads once at least, renews twice, and ends; the tokens of its terms.
async fn member<S: Store, H: Host>(store: &S, host: &H, server_id: &str, end: End) -> Vec<u64> {
    let election = driver::new_election(host, config(server_id)).expect("the host has randomness");
    let handle = Handle::new(election);
    let tokens = Rc::new(Cell::new(Vec::new()));
    let since = Cell::new(None);
    let running = edgelect::run(&handle, store, host, |event| match event {
        Event::Acquired { term } => {
            let mut all = tokens.take();
            all.push(term);
            tokens.set(all);
            since.set(Some(handle.requests().write));
        }
        Event::Lost { term, .. } => {
            since.set(None);
            handle.tell(Input::WorkEnded { term });
        }
        Event::Failed(fault) => panic!("{}", fault.message),
        _ => {}
    });
    let mut running = pin!(running);
    let mut stopping = false;
    poll_fn(|context| {
        let ended = running.as_mut().poll(context).is_ready();
        let renewed = since.get().is_some_and(|writes| handle.requests().write >= writes + 3);
        if !renewed || stopping {
            return if ended { Poll::Ready(()) } else { Poll::Pending };
        }
        if end == End::Crashes {
            return Poll::Ready(());
        }
        stopping = true;
        handle.tell(Input::Stop { park: false });
        running.as_mut().poll(context)
    })
    .await;
    tokens.take()
}
