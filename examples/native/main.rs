//! One member of a group in native Rust, in a process of its own; reports on stdout in JSON lines, obeys
//! `resign` and `stop` on stdin, and answers its peers on loopback. What work that waits for leadership looks
//! like is shown by `ten_lines.rs`.

use std::convert::Infallible;
use std::error::Error;
use std::io::Write;
use std::process::exit;

use edgelect::probe::judge;
use edgelect::store::Fault;
use edgelect::{
    Event, Handle, Host, Input, Native, S3Store, native, new_election, run, status, vars,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

const STATUS_EVERY_MS: u64 = 500;

type Failure = Box<dyn Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if let Some(argument) = std::env::args().nth(1) {
        print!("{}", help());
        exit(if ["--help", "-h"].contains(&argument.as_str()) { 0 } else { 2 });
    }
    let ended = member().await;
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
    let port = port(native::variable("EDGELECT_PORT"))?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let mut settings = native::settings()?;
    let own_addr = listener.local_addr()?.to_string();
    settings.server_addr = settings.server_addr.or(Some(own_addr));
    let config = vars::config(&settings)?;
    // What it tells is reported here.
    let host = Native::new()?.quiet();
    let store = native::store(&config, &host)?;
    let handle = Handle::new(new_election(&host, config)?);
    // As a daemon ends: the lease is released first.
    let leading = native::stop_on_signals(&handle, drive(&handle, &store, &host))?;
    tokio::select! {
        ended = leading => ended?,
        // The one who asked for us is gone, so nobody will ever ask us to stop.
        () = obey(&handle) => {}
        never = report_status(&handle, &host) => match never {},
        never = native::serve_health(&listener, &handle, &host) => match never {},
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
        Event::Troubled(problem) => {
            report(host, "problem", json!({ "problem": problem.to_string() }));
        }
        Event::Solved => report(host, "solved", json!({})),
        Event::Suspected { server_id } => {
            report(host, "suspected", json!({ "serverId": server_id }))
        }
        Event::Recovered { server_id } => {
            report(host, "recovered", json!({ "serverId": server_id }))
        }
        Event::InGrace { left_ms } => report(host, "grace", json!({ "leftMs": left_ms })),
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
