//! One member of a group in native Rust, in a process of its own; reports on stdout in JSON lines, obeys
//! `resign` and `stop` on stdin, and answers its peers on loopback. What work that waits for leadership looks
//! like is shown by `ten_lines.rs`.

mod host;

use std::convert::Infallible;
use std::error::Error;
use std::io::Write;
use std::process::exit;

use edgelect::probe::judge;
use edgelect::store::Fault;
use edgelect::{Event, Handle, Host, Input, S3Store, new_election, peer, run, status, vars};
use http::header;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::LocalSet;

use crate::host::Native;

const STATUS_EVERY_MS: u64 = 500;

type Failure = Box<dyn Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if let Some(argument) = std::env::args().nth(1) {
        print!("{}", help());
        exit(if ["--help", "-h"].contains(&argument.as_str()) { 0 } else { 2 });
    }
    // What is driven here is not Send: one thread does it all.
    let ended = LocalSet::new().run_until(member()).await;
    if let Err(error) = &ended {
        eprintln!("edgelect: {error}");
    }
    // Not a return, which would wait for the thread that reads stdin.
    exit(i32::from(ended.is_err()));
}

fn help() -> String {
    let mut text = "A member of a group. It reads `resign` and `stop` from stdin and ends with it.\n\n\
        EDGELECT_ENDPOINT             the store's address; AWS in EDGELECT_REGION if left out\n\
        EDGELECT_BUCKET               the bucket\n\
        EDGELECT_REGION               the region that signatures name\n\
        EDGELECT_PATH_STYLE           true if the bucket is the first part of the path\n\
        EDGELECT_ACCESS_KEY_ID        or AWS_ACCESS_KEY_ID\n\
        EDGELECT_SECRET_ACCESS_KEY    or AWS_SECRET_ACCESS_KEY\n\
        EDGELECT_SESSION_TOKEN        or AWS_SESSION_TOKEN\n\
        EDGELECT_FORMAT               how the lease is written down: native or kubernetes\n\
        EDGELECT_PORT                 where it answers its peers on loopback; any free port if left out\n"
        .to_owned();
    for (variable, option) in vars::options() {
        text.push_str(&format!("{variable:<30}{option}\n"));
    }
    text
}

async fn member() -> Result<(), Failure> {
    let get = |name: &str| std::env::var(name).ok();
    let listener = TcpListener::bind(("127.0.0.1", port(get("EDGELECT_PORT"))?)).await?;
    let mut settings = vars::settings(get)?;
    let own_addr = listener.local_addr()?.to_string();
    settings.server_addr = settings.server_addr.or(Some(own_addr));
    let config = vars::config(&settings)?;
    let host = Native::new()?;
    let store = S3Store::from_vars(get, &config.lockfile_path, host.clone())?;
    let handle = Handle::new(new_election(&host, config)?);
    tokio::select! {
        ended = drive(&handle, &store, &host) => ended?,
        // The one who asked for us is gone, so nobody will ever ask us to stop.
        () = obey(&handle) => {}
        never = report_status(&handle, &host) => match never {},
        never = serve(&listener, &handle, &host) => match never {},
    }
    Ok(())
}

fn port(given: Option<String>) -> Result<u16, Failure> {
    let text = given.filter(|text| !text.is_empty()).unwrap_or_else(|| "0".to_owned());
    text.parse().map_err(|_| format!("EDGELECT_PORT = {text:?}: must be a port number").into())
}

async fn drive(handle: &Handle, store: &S3Store<Native>, host: &Native) -> Result<(), Fault> {
    // `lead` would do this by itself; `run` trusts the store.
    if let Err(fault) = judge(handle, store, host).await {
        report(host, "error", json!({ "error": fault.message }));
        return Err(fault);
    }
    let mut failure = None;
    run(handle, store, host, |event| match event {
        Event::Acquired { term } => {
            let remaining_ms = handle.authority(host.now()).map(|authority| authority.remaining_ms);
            report(host, "acquired", json!({ "term": term, "remainingMs": remaining_ms }));
        }
        Event::Lost { term, reason } => {
            report(host, "lost", json!({ "term": term, "reason": reason.name() }));
            // There is no work here that would have to stop first.
            handle.tell(Input::WorkEnded { term });
        }
        Event::NewLeader { leader_id } => {
            report(host, "leader", json!({ "leaderId": leader_id }));
        }
        Event::Failed(fault) => {
            report(host, "error", json!({ "error": fault.message }));
            failure = Some(fault);
        }
        Event::GivenUp | Event::SlotClosed { .. } | Event::SlotsOver(_) => {}
    })
    .await;
    if let Some(fault) = failure {
        return Err(fault);
    }
    report(host, "stopped", json!({}));
    Ok(())
}

async fn obey(handle: &Handle) {
    let (tell, mut lines) = mpsc::unbounded_channel();
    // A thread of its own: reading stdin blocks.
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if tell.send(line).is_err() {
                return;
            }
        }
    });
    while let Some(line) = lines.recv().await {
        match line.trim() {
            "resign" => handle.tell(Input::Resign),
            "stop" => handle.tell(Input::Stop { park: false }),
            _ => {}
        }
    }
}

async fn report_status(handle: &Handle, host: &Native) -> Infallible {
    loop {
        host.sleep(STATUS_EVERY_MS).await;
        let (now, requests) = (host.now(), handle.requests());
        let status = handle.with(|election| status::status(election, now, requests));
        let mut status: Value = serde_json::from_str(&status).unwrap_or_default();
        if let Some(fields) = status.as_object_mut() {
            let told = ["role", "term", "remainingMs", "requests", "leaderId", "error"];
            fields.retain(|name, _| told.contains(&name.as_str()));
        }
        report(host, "status", status);
    }
}

fn report(host: &Native, event: &str, mut more: Value) {
    more["event"] = event.into();
    more["atMs"] = host.now().wall_ms.into();
    // Who no longer listens has closed our stdin as well, and that ends us.
    let _ = writeln!(std::io::stdout(), "{more}");
}

async fn serve(listener: &TcpListener, handle: &Handle, host: &Native) -> Infallible {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors: others have to end first.
            host.sleep(STATUS_EVERY_MS).await;
            continue;
        };
        let (handle, host) = (handle.clone(), host.clone());
        let answer = service_fn(move |request| {
            let answer = health(&request, &handle, &host);
            async move { answer }
        });
        // What a peer does wrong ends its connection and nothing else.
        tokio::task::spawn_local(
            http1::Builder::new().serve_connection(TokioIo::new(stream), answer),
        );
    }
}

fn health(
    request: &http::Request<Incoming>,
    handle: &Handle,
    host: &Native,
) -> http::Result<http::Response<String>> {
    if request.uri().path() != peer::PATH {
        return http::Response::builder().status(404).body(r#"{"error":"not found"}"#.to_owned());
    }
    let answer = match *request.method() {
        http::Method::GET => handle.with(|election| peer::answer(election, host.now())),
        _ => peer::HealthAnswer::wrong_method(),
    };
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
    response.body(answer.body)
}
