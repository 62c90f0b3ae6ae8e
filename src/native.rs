//! The host of a native program: the machine's clocks and randomness, tokio's timers, reqwest's HTTP; and what a daemon
//! needs beside it. Feature `native`, natively only.
//!
//! ```no_run
//! use edgelect::{Handle, Native, lead, native, new_election};
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let host = Native::new()?;
//!     let config = native::config()?;
//!     let store = native::store(&config, &host)?;
//!     let elector = Handle::new(new_election(&host, config)?);
//!     let leading = lead(&elector, &store, &host, async |term| {
//!         println!("wrote as term {}", term.token);
//!     });
//!     native::stop_on_signals(&elector, leading)?.await?;
//!     Ok(())
//! }
//! ```
//!
//! The futures run on any tokio runtime that has its I/O and its time enabled. They are not [`Send`]: `block_on` of one thread
//! runs them, `tokio::spawn` does not.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error;
use std::future::{Future, poll_fn};
use std::io::{self, Write};
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use futures::FutureExt;
use futures::StreamExt;
use futures::future::{AbortHandle, abortable, select};
use futures::stream::FuturesUnordered;
use http::{Method, Uri, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

use crate::clock::Now;
use crate::config::{Config, ConfigError, MAX_WAIT_MS, Settings};
use crate::driver::{Handle, Host};
use crate::election::Input;
use crate::electors::Electors;
use crate::metrics::Sample;
use crate::peer::{self, HealthAnswer};
use crate::remote::S3Store;
use crate::request::{Body, Request, Response};
use crate::text::{first, quoted};
use crate::{metrics, page, status, vars};

/// How long a connection may take to open. An election's own time limits are shorter.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// How long one request may take with its whole answer, whoever sends it.
const REQUEST_LIMIT: Duration = Duration::from_secs(60);

/// How many connections are open beyond those whose questions are held. A newer one closes the oldest.
const MOST_CONNECTIONS: usize = 64;

/// How large the head of a request may be, in bytes, and so what one connection keeps of it: twice the longest query that is read.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// How long one connection of a peer is kept: as long as a question may be held, and some more.
const CONNECTION_LIMIT: Duration = Duration::from_millis(MAX_WAIT_MS + 10_000);

/// How long a connection may take to send the head of its request.
const HEAD_LIMIT: Duration = Duration::from_secs(10);

/// How long [`serve_health`] waits after a connection could not be accepted, in milliseconds.
const ACCEPT_PAUSE_MS: u64 = 500;

/// The machine. Cheap to clone; clones share the connections. All in one process have the same monotonic clock, so that an
/// election may be asked by any of them.
///
/// Requests over `https` go through the proxy that `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` name, as with every client of
/// reqwest. Requests over `http` go nowhere but to their address, which is on loopback. Certificates are judged by those that
/// the system trusts, or by those in `SSL_CERT_FILE`.
#[derive(Clone)]
pub struct Native {
    tunnelled: reqwest::Client,
    direct: reqwest::Client,
    /// For peers, where their certificates need one of their own.
    peers: Option<reqwest::Client>,
    /// Who hears of problems instead of standard error.
    hear: Option<Arc<Hear>>,
}

type Hear = dyn Fn(&str) + Send + Sync;

/// Of the monotonic clock. With one for each host, an election that is asked by another host would read a step of the clock.
static ORIGIN: OnceLock<Instant> = OnceLock::new();

impl Native {
    /// Sets up the HTTP clients. Where no cryptography has been chosen for rustls in this process, it chooses `ring`.
    ///
    /// # Errors
    /// The system's certificates cannot be loaded.
    pub fn new() -> Result<Self, String> {
        // Fails only where the program has chosen another provider before, which then serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = |builder: reqwest::ClientBuilder| {
            builder.build().map_err(|error| format!("no HTTP client: {}", innermost(error)))
        };
        let (tunnelled, direct) = (client(builder())?, client(builder().no_proxy())?);
        Ok(Self { tunnelled, direct, peers: None, hear: None })
    }

    /// The same, without a line on standard error when a problem lasts and when it is over: for programs that show
    /// [`Election::problem`](crate::election::Election::problem) in a way of their own.
    pub fn quiet(self) -> Self {
        self.heard_by(|_| {})
    }

    /// The same, with these lines given to `hear` instead of standard error: for programs with a log of their own.
    pub fn heard_by(self, hear: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { hear: Some(Arc::new(hear)), ..self }
    }

    /// The same, with questions to peers sent by a client of the program's own: one that trusts their authority, or shows a
    /// certificate. `build` gets a builder that follows no redirects and repeats nothing, as questions need it.
    ///
    /// # Errors
    /// The client cannot be built.
    pub fn with_peers(
        self,
        build: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
    ) -> Result<Self, String> {
        let peers = build(builder().no_proxy()).build();
        let peers = peers.map_err(|error| format!("no HTTP client: {}", innermost(error)))?;
        Ok(Self { peers: Some(peers), ..self })
    }

    fn client_for(&self, uri: &Uri) -> &reqwest::Client {
        if uri.scheme_str() == Some("https") { &self.tunnelled } else { &self.direct }
    }

    async fn send(
        client: &reqwest::Client,
        request: Request,
        limit: usize,
    ) -> Result<Response, reqwest::Error> {
        let mut answer = client.execute(request.try_into()?).await?;
        let mut body = Body::default();
        while let Some(chunk) = answer.chunk().await? {
            let room = limit - body.bytes.len();
            body.bytes.extend_from_slice(&chunk[..room.min(chunk.len())]);
            if chunk.len() > room {
                body.truncated = true;
                break;
            }
        }
        let mut response = Response::new(body);
        *response.status_mut() = answer.status();
        *response.headers_mut() = std::mem::take(answer.headers_mut());
        Ok(response)
    }
}

fn builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        // Neither follows a redirect nor repeats a request on its own: a write that was sent twice may land twice (S8).
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        // Whatever features of reqwest another part of the program has: what is compressed on the way has another ETag, and
        // the connection of a request that was given up must not carry the next one.
        .http1_only()
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .connect_timeout(CONNECT_LIMIT)
        .timeout(REQUEST_LIMIT)
}

impl Host for Native {
    #[allow(clippy::disallowed_methods)] // This is a host: here time comes from.
    fn now(&self) -> Now {
        // A wall clock before 1970 counts as 1970: what is held is then judged by the monotonic one.
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mono = ORIGIN.get_or_init(Instant::now).elapsed();
        Now::new(mono.as_millis() as u64, wall.as_millis() as u64)
    }

    async fn sleep(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    fn random(&self) -> Result<[u8; 16], String> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
        Ok(bytes)
    }

    async fn fetch(&self, request: Request, limit: usize) -> Result<Response, String> {
        Self::send(self.client_for(request.uri()), request, limit).await.map_err(innermost)
    }

    async fn ask_peer(&self, request: Request, limit: usize) -> Result<Response, String> {
        let client = self.peers.as_ref().unwrap_or_else(|| self.client_for(request.uri()));
        Self::send(client, request, limit).await.map_err(innermost)
    }

    fn warn(&self, line: &str) {
        if let Some(hear) = &self.hear {
            return hear(line);
        }
        // Not `eprintln`, which panics where nobody reads standard error any more: a leader goes on without.
        let _ = writeln!(io::stderr(), "{line}");
    }
}

/// The innermost cause says it best ("Connection refused"); the address is the store's to tell.
fn innermost(error: reqwest::Error) -> String {
    let mut cause: &dyn Error = &error.without_url();
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// A variable of this process, as [`vars`] wants to be told of it. A value that is no Unicode counts as not set.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The options of an elector out of the `EDGELECT_*` variables of this process, for a program that adds some of its own before
/// [`vars::config`] checks them.
///
/// # Errors
/// The variable whose text is no value of its option; one whose name begins with `EDGELECT_` and that nobody reads.
pub fn settings() -> Result<Settings, ConfigError> {
    check_names()?;
    vars::settings(variable)
}

fn check_names() -> Result<(), ConfigError> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let names: Vec<String> = names.collect();
    vars::check_names(names.iter().map(String::as_str))
}

/// The settings of an elector out of the `EDGELECT_*` variables of this process.
///
/// # Errors
/// The variable that is missing or cannot be used, and why; one whose name begins with `EDGELECT_` and that nobody reads.
pub fn config() -> Result<Config, ConfigError> {
    vars::config(&settings()?)
}

/// The group's lease object in the bucket that the variables of this process name, with the credentials that they name; see
/// [`S3Store::from_vars`].
///
/// # Errors
/// The variable that is missing or cannot be used, and why; `EDGELECT_STORE` if it names another kind of store; one whose name
/// begins with `EDGELECT_` and that nobody reads.
pub fn store(config: &Config, host: &Native) -> Result<S3Store<Native>, ConfigError> {
    check_names()?;
    let other = variable("EDGELECT_STORE").filter(|name| !["", "s3"].contains(&name.as_str()));
    if let Some(name) = other {
        let rule = "names another store than a bucket, and two stores make two leaders: this program opens a bucket only";
        return Err(ConfigError::new("EDGELECT_STORE", quoted(first(&name, 60)), rule));
    }
    S3Store::from_vars(variable, &config.lockfile_path, host.clone())
}

/// `leading` (the future of [`lead`](crate::lead::lead) or [`run`](crate::driver::run)), which a SIGTERM or a Ctrl-C stops: the work is
/// dropped, the lease is released, and `leading` comes to its own end, for which it takes no longer than the requests of a
/// release may. Signals are caught from this call on and for the rest of the process; later ones change nothing.
///
/// Work that blocks its thread keeps the stop waiting until it returns.
///
/// # Errors
/// The signals cannot be caught.
///
/// # Panics
/// This is no tokio runtime whose I/O is enabled.
pub fn stop_on_signals<F: Future>(
    elector: &Handle,
    leading: F,
) -> io::Result<impl Future<Output = F::Output>> {
    let signal = first_signal()?;
    Ok(async move {
        let mut leading = pin!(leading);
        tokio::select! {
            // What has ended by itself needs no stop.
            biased;
            ended = &mut leading => return ended,
            () = signal => elector.tell(Input::Stop { park: false }),
        }
        leading.await
    })
}

#[cfg(unix)]
fn first_signal() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(windows)]
fn first_signal() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        interrupt.recv().await;
    })
}

/// Answers peers: `GET /health/leadership`, as `EDGELECT_PEER_MODE` needs it; people: `GET /status.json`; and monitors:
/// `GET /metrics`. It is plain HTTP and never ends; publish it by
/// `EDGELECT_SERVER_ADDR`, behind what speaks TLS where it is not on loopback. Run it beside the election, in one `select!`.
///
/// It keeps 64 connections, and one more for each question that is held, each for 65 s. A newer one closes the oldest whose
/// question is not held, so that nobody keeps others out by saying nothing; a peer that is not answered reads the store.
/// Questions are held for `maxPeers` askers at most; see [`Electors::most_held`].
pub async fn serve_health(
    listener: &TcpListener,
    electors: &impl Answers,
    host: &Native,
) -> Infallible {
    serve(listener, electors, host, false).await
}

/// The same, and a page for people at `/`.
pub async fn serve_page(
    listener: &TcpListener,
    electors: &impl Answers,
    host: &Native,
) -> Infallible {
    serve(listener, electors, host, true).await
}

/// Who answers at the paths of a server: one elector, or the groups of an [`Electors`].
#[allow(async_fn_in_trait)] // Hosts here have one thread.
pub trait Answers {
    /// The answer to a peer's question, the query of its URL.
    async fn to_peer(&self, host: &Native, query: &str) -> HealthAnswer;

    /// What anybody may see, as JSON.
    fn to_people(&self, host: &Native) -> String;

    /// Metrics, in OpenMetrics.
    fn to_monitor(&self, host: &Native) -> String;

    /// How many questions of peers are held now.
    fn questions_held(&self) -> u64;
}

impl Answers for Handle {
    async fn to_peer(&self, host: &Native, query: &str) -> HealthAnswer {
        self.answer_peer(host, query).await
    }

    fn to_people(&self, host: &Native) -> String {
        self.with(|election| status::public(election, host.now(), self.requests()))
    }

    fn to_monitor(&self, host: &Native) -> String {
        metrics::text([Sample::of(self, host.now())])
    }

    fn questions_held(&self) -> u64 {
        self.questions_held()
    }
}

impl Answers for Electors<Native> {
    async fn to_peer(&self, _host: &Native, query: &str) -> HealthAnswer {
        self.answer_peer(query).await
    }

    fn to_people(&self, _host: &Native) -> String {
        self.public_status()
    }

    fn to_monitor(&self, _host: &Native) -> String {
        self.metrics()
    }

    fn questions_held(&self) -> u64 {
        self.questions_held()
    }
}

/// The connections whose questions are not held, by their numbers, the oldest first; and what closes each.
#[derive(Default)]
struct Open(RefCell<BTreeMap<u64, AbortHandle>>);

impl Open {
    /// Whether there was one.
    fn close_oldest(&self) -> bool {
        let oldest = self.0.borrow_mut().pop_first();
        oldest.map(|(_, close)| close.abort()).is_some()
    }

    /// No newer connection closes this one meanwhile.
    async fn held<T>(&self, number: u64, holding: impl Future<Output = T>) -> T {
        let close = self.0.borrow_mut().remove(&number);
        let held = holding.await;
        self.0.borrow_mut().extend(close.map(|close| (number, close)));
        held
    }
}

/// Whether as many connections are open as may be beside those whose questions are held. Those that could be held do not
/// count: whoever opens connections and asks nothing would have the descriptors that renewals need.
fn is_full(connections: usize, electors: &impl Answers) -> bool {
    let held = usize::try_from(electors.questions_held()).unwrap_or(usize::MAX);
    connections >= MOST_CONNECTIONS.saturating_add(held)
}

async fn serve(
    listener: &TcpListener,
    electors: &impl Answers,
    host: &Native,
    has_page: bool,
) -> Infallible {
    let (open, mut numbers) = (Open::default(), 0..);
    let mut served = FuturesUnordered::new();
    loop {
        let full = is_full(served.len(), electors);
        let closable = !open.0.borrow().is_empty();
        tokio::select! {
            biased;
            Some(()) = served.next() => {}
            accepted = listener.accept(), if !full || closable => match accepted {
                Ok((stream, _)) => {
                    if is_full(served.len(), electors) {
                        // Of many that came at once nobody has read what they ask: it may be held, or be over at once.
                        tokio::task::yield_now().await;
                        while let Some(Some(())) = served.next().now_or_never() {}
                        if is_full(served.len(), electors) && open.close_oldest() {
                            served.next().await;
                        }
                    }
                    let number = numbers.next().unwrap_or(u64::MAX);
                    let asked = Asked { electors, host, has_page, open: &open, number };
                    let (serving, close) = abortable(serve_one(stream, asked));
                    open.0.borrow_mut().insert(number, close);
                    served.push(async { _ = serving.await });
                }
                // Out of file descriptors: others have to end first, and go on meanwhile.
                Err(_) => {
                    let others = async { while served.next().await.is_some() {} ; std::future::pending::<()>().await };
                    let _ = select(pin!(host.sleep(ACCEPT_PAUSE_MS)), pin!(others)).await;
                }
            },
        }
    }
}

/// Whom a connection asks, and which of the connections it is.
struct Asked<'a, A> {
    electors: &'a A,
    host: &'a Native,
    has_page: bool,
    open: &'a Open,
    number: u64,
}

async fn serve_one(stream: TcpStream, asked: Asked<'_, impl Answers>) {
    let stream = RefCell::new(stream);
    let answer = service_fn(async |request| answer(&request, &asked, &stream).await);
    // One question a connection: its time is over at a known moment, and no question is cut off while it is held.
    let serving = http1::Builder::new()
        .keep_alive(false)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(Shared(&stream)), answer);
    // What a peer does wrong ends its connection and nothing else.
    let _ = tokio::time::timeout(CONNECTION_LIMIT, serving).await;
    asked.open.0.borrow_mut().remove(&asked.number);
}

async fn answer(
    request: &http::Request<Incoming>,
    asked: &Asked<'_, impl Answers>,
    stream: &RefCell<TcpStream>,
) -> http::Result<http::Response<String>> {
    let Asked { electors, host, has_page, open, number } = *asked;
    let path = request.uri().path();
    let is_page = has_page && path == page::PATH;
    if ![peer::PATH, status::PATH, metrics::PATH].contains(&path) && !is_page {
        return http::Response::builder().status(404).body(r#"{"error":"not found"}"#.to_owned());
    }
    if *request.method() != Method::GET {
        return response(HealthAnswer::wrong_method());
    }
    match path {
        status::PATH => response(HealthAnswer::of(200, electors.to_people(host))),
        metrics::PATH => http::Response::builder()
            .header(header::CONTENT_TYPE, metrics::CONTENT_TYPE)
            .header(header::CACHE_CONTROL, "no-store")
            .body(electors.to_monitor(host)),
        page::PATH => {
            let builder = page::headers()
                .into_iter()
                .fold(http::Response::builder(), |builder, (name, value)| {
                    builder.header(name, value)
                });
            builder.body(page::HTML.to_owned())
        }
        _ => {
            let query = request.uri().query().unwrap_or("");
            let answered = open.held(number, electors.to_peer(host, query));
            tokio::select! {
                biased;
                answer = answered => response(answer),
                () = comes_more(stream) => {
                    response(HealthAnswer::of(400, r#"{"error":"bytes behind the question"}"#.to_owned()))
                }
            }
        }
    }
}

/// Ends when a stream has ended, or more than the question has come. hyper sees no end behind bytes that it does not read, so
/// the place of a question that is held would not be given back; and nobody who waits for an answer sends more.
async fn comes_more(stream: &RefCell<TcpStream>) {
    poll_fn(|context| {
        let mut byte = [0];
        stream.borrow().poll_peek(context, &mut ReadBuf::new(&mut byte)).map(drop)
    })
    .await;
}

/// A stream at which a question that is held looks, too.
struct Shared<'a>(&'a RefCell<TcpStream>);

impl AsyncRead for Shared<'_> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_read(context, buffer)
    }
}

impl AsyncWrite for Shared<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_write(context, buffer)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_shutdown(context)
    }
}

/// An answer of [`Handle::answer_peer`] for a server on crate `http`'s types, such as hyper. The future of that answer stays on
/// its thread, so that a router which moves requests between threads, such as axum's, can't await it.
///
/// # Errors
/// None that an answer of this crate makes.
pub fn response(answer: HealthAnswer) -> http::Result<http::Response<String>> {
    let mut response = http::Response::builder()
        .status(answer.status)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::CACHE_CONTROL, "no-store");
    if answer.status == 405 {
        response = response.header(header::ALLOW, "GET");
    }
    if let Some(version) = answer.etag {
        response = response.header(header::ETAG, version.0);
    }
    if let Some(seconds) = answer.retry_after_s {
        response = response.header(header::RETRY_AFTER, seconds);
    }
    if let Some(proof) = answer.proof {
        response = response.header(peer::PROOF, proof);
    }
    response.body(answer.body)
}
