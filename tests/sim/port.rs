//! One operation of the real store code, request by request: what it sends comes out here, and what comes back goes in.
//! And what comes back, piece by piece.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, UNIX_EPOCH};

use edgelect::clock::Now;
use edgelect::driver::Host;
use edgelect::protocol::Protocol;
use edgelect::remote::{Provide, perform};
use edgelect::request::{self, Body, Request, Response};
use edgelect::store::{Answer, Operation};
use http::HeaderValue;

/// Where requests leave and answers come in, one at a time. Clones are one port.
#[derive(Clone, Default)]
struct Port {
    outbox: Rc<RefCell<Option<Request>>>,
    inbox: Rc<RefCell<Option<Result<Response, String>>>>,
    now: Rc<Cell<Now>>,
}

impl Host for Port {
    fn now(&self) -> Now {
        self.now.get()
    }

    async fn sleep(&self, _ms: u64) {
        std::future::pending().await
    }

    fn random(&self) -> Result<[u8; 16], String> {
        Err("chance comes from the seed".to_owned())
    }

    async fn fetch(&self, request: Request, limit: usize) -> Result<Response, String> {
        *self.outbox.borrow_mut() = Some(request);
        let answer = poll_fn(|_| match self.inbox.borrow_mut().take() {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        });
        answer.await.map(|mut response| {
            let body = response.body_mut();
            body.truncated = body.bytes.len() > limit;
            body.bytes.truncate(limit);
            response
        })
    }
}

/// An operation under way.
pub struct Conversation {
    port: Port,
    future: Pin<Box<dyn Future<Output = Answer>>>,
}

/// What the store code does next.
pub enum Move {
    Sends(Box<Request>),
    Ends(Box<Answer>),
}

impl Conversation {
    pub fn begin(
        protocol: Rc<impl Protocol + 'static>,
        keys: impl Provide + 'static,
        operation: Operation,
    ) -> Self {
        let port = Port::default();
        let host = port.clone();
        let future = Box::pin(async move { perform(&*protocol, &host, &keys, operation).await });
        Self { port, future }
    }

    /// Goes on until the next request leaves or the operation ends. `answer` is what came back.
    pub fn go_on(&mut self, now: Now, answer: Option<Result<Response, String>>) -> Move {
        self.port.now.set(now);
        *self.port.inbox.borrow_mut() = answer;
        match self.future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Move::Ends(Box::new(answer)),
            Poll::Pending => {
                Move::Sends(Box::new(self.port.outbox.borrow_mut().take().expect("it awaits one")))
            }
        }
    }
}

/// As HTTP writes a time.
pub fn http_date(unix_ms: u64) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(unix_ms))
}

/// Adds a header to those that are there.
pub fn add(response: &mut Response, name: &'static str, value: &str) {
    let value: HeaderValue = value.parse().expect("a header's value");
    response.headers_mut().append(name, value);
}

pub fn answer(status: u16, bytes: Vec<u8>) -> Response {
    request::answer(status, [], Body { bytes, truncated: false }).expect("an answer")
}

pub fn error(status: u16, code: &str) -> Response {
    error_with(status, code, "")
}

/// An error with more elements than its code.
pub fn error_with(status: u16, code: &str, more: &str) -> Response {
    let text = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code>{more}</Error>");
    answer(status, text.into_bytes())
}
