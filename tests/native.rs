//! The host of feature `native` on real sockets: the probe over a real bucket, what the client must not do with a request, and
//! what it answers its peers. `npm test -- --only rust` starts the store and sets the variables.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use crate::conformance_live::real::{self, Between, Bucket, Native, config, native, random};
use edgelect::native::Answers;
use edgelect::peer::HealthAnswer;
use edgelect::request::{self, Body, Request, Response};
use edgelect::store::FaultKind;
use edgelect::store::epochs::Epochs;
use edgelect::store::memory::Memory;
use edgelect::store::{Operation, Outcome, Store};
use edgelect::{
    Config, Electors, EpochStore, Handle, Host, Limits, S3Config, S3Store, lead, native as daemon,
    new_election,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

fn variable(name: &str) -> Option<String> {
    std::env::var(name.replace("EDGELECT_", "EDGELECT_TEST_")).ok()
}

fn place(key: &str) -> S3Store<Native> {
    S3Store::from_vars(variable, key, native())
        .expect("a store is named: run this by `npm test -- --only rust`")
}

fn probe_config() -> Config {
    config("native/probed.json")
}

/// What a proxy does that knows the credentials, drops the conditions and signs anew.
fn drops(request: &mut Request) {
    let dropped = ["if-match", "if-none-match", "authorization"];
    let kept = request.headers().iter().filter(|(name, _)| {
        !dropped.contains(&name.as_str()) && !name.as_str().starts_with("x-amz-")
    });
    let kept = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
    *request.headers_mut() = kept;
    real::sign(request, &real::credentials(""), "us-east-1", native().now().wall_ms);
}

fn dropping() -> Between<fn(&mut Request)> {
    Between(native(), drops)
}

#[tokio::test]
async fn c09_c26_lead_over_a_bucket_behind_such_a_proxy_is_an_error_and_unjudged_it_trusts_it() {
    let host = dropping();
    let key = format!("native/judged-{}.json", random());
    let config = || config(&key);
    edgelect::init(&place(&key), &host.0, &config()).await.expect("a new group");
    let store = || S3Store::from_vars(variable, &key, dropping()).expect("a bucket");
    let handle = || Handle::new(new_election(&host, config()).expect("randomness"));
    let fault = lead(&handle(), &store(), &host, async |_| ()).await.expect_err("it lies");
    let named = "probe step \"update of an absent object\": it took a write";
    assert!(fault.message.starts_with("S3 bucket") && fault.message.contains(named), "{fault}");
    let led = lead(&handle(), &store().unjudged(), &host, async |term| term.token).await;
    assert!(led.expect("nobody has looked").is_some());
}

#[tokio::test]
async fn c09_epochs_are_judged_before_lead_trusts_them() {
    let folder = format!("native/judged-{}", random());
    let config = || config(&folder);
    let host = native();
    let bucket = Bucket::seaweed();
    let epochs = || Epochs::new(bucket.config(&folder)).expect("a good folder");
    let honest = EpochStore::of(epochs(), bucket.credentials.clone(), native());
    edgelect::init(&honest, &host, &config()).await.expect("a new group");
    let handle = || Handle::new(new_election(&host, config()).expect("randomness"));
    let led = lead(&handle(), &honest, &host, async |term| term.token).await;
    assert!(led.expect("it keeps its conditions").is_some());
    let lying = EpochStore::of(epochs(), bucket.credentials.clone(), dropping());
    let fault = lead(&handle(), &lying, &dropping(), async |_| ()).await;
    let message = fault.expect_err("it lies").message;
    assert!(message.contains("probe step \"create again\": it took a write"), "{message}");
}

async fn server() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound");
    (listener, format!("http://{address}"))
}

async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("the client sends a whole head"));
    }
    String::from_utf8(head).expect("heads are ASCII")
}

fn get(url: &str) -> Request {
    request::new(http::Method::GET, url, &[], Vec::new()).expect("the URL is one")
}

async fn answered(answer: &'static [u8], limit: usize) -> Result<Response, String> {
    let (listener, url) = server().await;
    let serving = async {
        let (mut stream, _) = listener.accept().await.expect("the client comes");
        read_request(&mut stream).await;
        stream.write_all(answer).await.expect("the client listens");
    };
    let host = native();
    let both = async { tokio::join!(host.fetch(get(&url), limit), serving).0 };
    tokio::time::timeout(Duration::from_secs(5), both).await.expect("it waits for nothing more")
}

#[tokio::test]
async fn a_body_is_read_as_far_as_its_bound_and_says_so() {
    let whole = b"HTTP/1.1 200 OK\r\netag: \"v\"\r\ncontent-length: 10\r\n\r\n0123456789";
    let endless = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n";
    for (answer, limit, expected, truncated) in [
        (&whole[..], 10, "0123456789", false),
        (whole, 9, "012345678", true),
        // Nobody waits for the rest.
        (endless, 4, "abcd", true),
    ] {
        let response = answered(answer, limit).await.expect("an answer");
        let Body { bytes, truncated: cut } = response.body();
        assert_eq!((bytes.as_slice(), *cut), (expected.as_bytes(), truncated), "{limit}");
        let etag = (answer == whole).then_some("\"v\"");
        assert_eq!(request::text(response.headers(), "etag"), etag);
    }
}

#[tokio::test]
async fn half_an_answer_is_none_and_a_redirect_is_not_followed() {
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n01234";
    assert!(answered(half, 100).await.is_err());
    let redirect =
        b"HTTP/1.1 307 Away\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n";
    let response = answered(redirect, 100).await.expect("an answer");
    let location = request::text(response.headers(), "location");
    assert_eq!((response.status().as_u16(), location), (307, Some("http://127.0.0.1:9/")));
}

/// A certificate that only who is given it trusts, and its key.
const OWN_AUTHORITY: &[u8] = include_bytes!("runtimes/self-signed.pem");

/// Sends whoever trusts the certificate somewhere else.
async fn redirect_over_tls(listener: &TcpListener) {
    let certificate = CertificateDer::from_pem_slice(OWN_AUTHORITY).expect("it has one");
    let key = PrivateKeyDer::from_pem_slice(OWN_AUTHORITY).expect("it has one");
    let config = ServerConfig::builder().with_no_client_auth();
    let config = config.with_single_cert(vec![certificate], key).expect("they belong together");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    loop {
        let (stream, _) = listener.accept().await.expect("the client comes");
        let Ok(mut stream) = acceptor.accept(stream).await else { continue };
        read_request(&mut stream).await;
        let away =
            b"HTTP/1.1 307 Away\r\nlocation: https://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(away).await.expect("the client listens");
    }
}

#[tokio::test]
async fn peers_are_asked_by_the_client_that_trusts_their_authority_and_nobody_else_is() {
    let (listener, url) = server().await;
    let url = url.replace("http:", "https:");
    let trusted = reqwest::Certificate::from_pem(OWN_AUTHORITY).expect("it is one");
    let host = native().with_peers(|client| client.tls_certs_only([trusted]));
    let host = host.expect("the client can be set up");
    let asking = async {
        assert!(native().ask_peer(get(&url), 10).await.is_err(), "nobody knows the authority");
        assert!(host.fetch(get(&url), 10).await.is_err(), "a store is no peer");
        let answer = host.ask_peer(get(&url), 10).await.expect("it is trusted");
        assert_eq!(answer.status().as_u16(), 307, "no redirect is followed");
    };
    tokio::select! {
        () = redirect_over_tls(&listener) => {}
        asked = tokio::time::timeout(Duration::from_secs(10), asking) => {
            asked.expect("it is answered in time");
        }
    }
}

#[tokio::test]
async fn s8_a_request_whose_connection_dies_is_not_sent_again() {
    let (listener, url) = server().await;
    let host = native();
    let serving = async {
        let (mut stream, _) = listener.accept().await.expect("the client comes");
        read_request(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.expect("sent");
        // The kept connection dies with the second request, of which nobody knows what became.
        let second = read_request(&mut stream).await;
        assert!(second.starts_with("GET /second"), "{second}");
        drop(stream);
        let again = tokio::time::timeout(Duration::from_millis(300), listener.accept()).await;
        assert!(again.is_err(), "it came again on another connection");
    };
    let asking = async {
        host.fetch(get(&url), 10).await.expect("an answer");
        host.fetch(get(&format!("{url}/second")), 10).await
    };
    let (second, ()) = tokio::join!(asking, serving);
    assert!(second.is_err());
}

#[tokio::test]
async fn a_dropped_fetch_closes_its_connection() {
    let (listener, url) = server().await;
    let host = native();
    let mut fetching = Box::pin(host.fetch(get(&url), 10));
    let mut stream = tokio::select! {
        accepted = listener.accept() => accepted.expect("the client comes").0,
        _ = &mut fetching => panic!("nobody has answered"),
    };
    tokio::select! {
        _ = read_request(&mut stream) => {}
        _ = &mut fetching => panic!("nobody has answered"),
    }
    drop(fetching);
    let closed = tokio::time::timeout(Duration::from_secs(5), stream.read_u8()).await;
    assert!(closed.expect("it closes at once").is_err(), "there is nothing more to read");
}

#[tokio::test]
async fn a_closed_port_is_unknown_in_one_line_without_a_secret() {
    let (listener, endpoint) = server().await;
    drop(listener);
    let config =
        S3Config { endpoint: Some(endpoint.clone()), ..worlds::bucket_with("leader.json") };
    let store = S3Store::new(config, worlds::credentials(), native()).expect("a configuration");
    let Outcome::Unknown { cause, .. } =
        store.perform(Operation::Read { unless: None }).await.outcome
    else {
        panic!("nobody answered");
    };
    assert_eq!(cause.kind, FaultKind::Network);
    let line = cause.message.replace(" (os error 111)", "");
    let expected = "no answer: Connection refused; check the endpoint and the network";
    assert_eq!(line, format!("S3 bucket \"jobs\" at {endpoint}: {expected}"));
}

async fn told_to(address: &str, line: &str) -> String {
    let head = format!("{line} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    let mut stream = open(address, &head).await;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it answers in text");
    answer
}

/// Each of these lines is answered with this status and all of this, while somebody else says nothing.
async fn are_answered(members: &impl daemon::Answers, page: bool, asked: &[(&str, u16, &[&str])]) {
    let (host, (listener, url)) = (native(), server().await);
    let address = url.trim_start_matches("http://");
    let asking = async {
        let _silent = TcpStream::connect(address).await.expect("it listens");
        for (line, status, said) in asked {
            let told = told_to(address, line).await;
            let begins = told.starts_with(&format!("HTTP/1.1 {status} "));
            assert!(begins && said.iter().all(|said| told.contains(said)), "{line}: {told}");
        }
    };
    let serving = async {
        match page {
            true => daemon::serve_page(&listener, members, &host).await,
            false => daemon::serve_health(&listener, members, &host).await,
        }
    };
    tokio::select! {
        never = serving => match never {},
        answered = tokio::time::timeout(Duration::from_secs(5), asking) => {
            answered.expect("a silent peer keeps nobody waiting");
        }
    }
}

/// Holds every question until its asker goes, and says how many it holds.
#[derive(Default)]
struct Holding(Cell<u64>);

impl Holding {
    async fn come_to(&self, held: u64) {
        while self.0.get() != held {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

struct Place<'a>(&'a Cell<u64>);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Answers for Holding {
    async fn to_peer(&self, _host: &Native, _query: &str) -> HealthAnswer {
        self.0.set(self.0.get() + 1);
        let _place = Place(&self.0);
        std::future::pending().await
    }

    fn to_people(&self, _host: &Native) -> String {
        "shown".to_owned()
    }

    fn to_monitor(&self, _host: &Native) -> String {
        String::new()
    }

    fn questions_held(&self) -> u64 {
        self.0.get()
    }
}

/// What is held where `asking` asks a server at an address.
async fn held_by_a_server(asking: impl AsyncFnOnce(&Holding, &str)) {
    let (host, holding, (listener, url)) = (native(), Holding::default(), server().await);
    let asking = asking(&holding, url.trim_start_matches("http://"));
    tokio::select! {
        never = daemon::serve_health(&listener, &holding, &host) => match never {},
        asked = tokio::time::timeout(Duration::from_secs(30), asking) => {
            asked.expect("who waits has a turn");
        }
    }
}

async fn open(address: &str, sent: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.write_all(sent.as_bytes()).await.expect("it reads");
    stream
}

async fn is_closed(stream: &mut TcpStream) -> bool {
    let read = tokio::time::timeout(Duration::from_millis(100), stream.read_u8()).await;
    read.is_ok_and(|read| read.is_err())
}

/// What people are shown, if it comes as soon as a peer has to answer.
async fn status_of(address: &str) -> Option<String> {
    let told = told_to(address, "GET /status.json");
    let told = tokio::time::timeout(Duration::from_secs(3), told).await.ok()?;
    told.rsplit_once("\r\n\r\n").map(|(_, body)| body.to_owned())
}

const QUESTION: &str = "GET /health/leadership HTTP/1.1\r\nhost: a\r\n";

#[tokio::test]
async fn a_server_keeps_a_connection_for_each_question_that_is_held_and_the_64_newest_others() {
    held_by_a_server(async |holding, address| {
        let mut held = Vec::new();
        for _ in 0..70 {
            held.push(open(address, &format!("{QUESTION}\r\n")).await);
        }
        holding.come_to(70).await;
        let mut silent = Vec::new();
        for _ in 0..64 {
            silent.push(open(address, "").await);
        }
        assert!(!is_closed(&mut silent[0]).await, "there is room for it");
        assert_eq!(status_of(address).await.as_deref(), Some("shown"));
        assert!(is_closed(&mut silent[0]).await && !is_closed(&mut silent[1]).await);
        // Nor does it help to go on with that.
        for _ in 0..100 {
            silent.push(open(address, "").await);
        }
        assert_eq!(status_of(address).await.as_deref(), Some("shown"));
        assert!(is_closed(&mut silent[100]).await && !is_closed(&mut silent[101]).await);
        assert_eq!(holding.0.get(), 70, "none of those that are held is closed");
        let long = format!("{QUESTION}x-long: {}\r\n\r\n", "x".repeat(20_000));
        let told = told_to(address, &long).await;
        assert!(told.starts_with("HTTP/1.1 431 "), "a head that is no question: {told}");
    })
    .await;
}

#[tokio::test]
async fn questions_that_are_held_all_at_once_keep_nobody_waiting() {
    held_by_a_server(async |holding, address| {
        let mut asked = Vec::new();
        for _ in 0..64 {
            asked.push(open(address, "").await);
        }
        // By then the server has all of them, and no room.
        tokio::time::sleep(Duration::from_millis(100)).await;
        for stream in &mut asked {
            stream.write_all(format!("{QUESTION}\r\n").as_bytes()).await.expect("it is there");
        }
        holding.come_to(64).await;
        assert_eq!(status_of(address).await.as_deref(), Some("shown"));
        assert_eq!(holding.0.get(), asked.len() as u64);
    })
    .await;
}

#[tokio::test]
async fn a_question_gives_its_place_back_when_its_asker_goes_whatever_it_has_sent() {
    held_by_a_server(async |holding, address| {
        for (head, behind, later) in [
            ("", "", ""),
            ("", "x", ""),
            ("", "", "x"),
            ("", "x", "x"),
            ("content-length: 9\r\n", "", ""),
            ("content-length: 9\r\n", "x", ""),
        ] {
            let mut asker = open(address, &format!("{QUESTION}{head}\r\n{behind}")).await;
            holding.come_to(1).await;
            asker.write_all(later.as_bytes()).await.expect("it is there");
            drop(asker);
            let left = tokio::time::timeout(Duration::from_secs(3), holding.come_to(0)).await;
            left.unwrap_or_else(|_| panic!("{head:?} {behind:?} {later:?}"));
        }
    })
    .await;
}

#[tokio::test]
async fn peers_monitors_and_people_are_answered_at_their_paths_and_nobody_elsewhere() {
    let host = native();
    let elector = Handle::new(new_election(&host, probe_config()).expect("randomness"));
    let asked: [(_, _, &[&str]); 4] = [
        ("GET /health/leadership", 404, &["no leader is known", "cache-control: no-store"]),
        ("GET /", 404, &["not found"]),
        ("POST /health/leadership", 405, &["allow: GET"]),
        ("nonsense\r\n\r\n", 400, &[]),
    ];
    are_answered(&elector, false, &asked).await;
    let metrics = "content-type: application/openmetrics-text; version=1.0.0";
    // The page names its own script alone.
    let script = "content-security-policy: default-src 'none'; script-src 'sha256-";
    let asked: [(_, _, &[&str]); 2] = [
        ("GET /metrics", 200, &[metrics, "\nedgelect_authority{group=", "\n# EOF\n"]),
        ("GET /", 200, &[script, "</html>\n"]),
    ];
    are_answered(&elector, true, &asked).await;
}

#[tokio::test]
async fn the_groups_of_a_process_share_a_server() {
    let electors = Electors::new(native(), Limits::default()).expect("limits");
    let of = |group: &str| Config { lockfile_path: group.to_owned(), ..probe_config() };
    let _members = ["one", "two"].map(|group| {
        electors.add(of(group), Memory::new(|| 0)).unwrap_or_else(|_| panic!("there is room"))
    });
    // Nobody leads them here.
    let asked: [(_, _, &[&str]); 4] = [
        ("GET /health/leadership", 400, &["which group?"]),
        ("GET /health/leadership?group=two", 404, &[]),
        ("GET /health/leadership?group=three", 404, &[]),
        ("GET /status.json", 200, &[r#""group":"one""#, r#""group":"two""#]),
    ];
    are_answered(&electors, false, &asked).await;
}
