//! A request on its way out of a Worker: by `fetch`, or through the binding of another Worker.

use wasm_bindgen::prelude::*;
use worker::js_sys::futures::JsFuture;
use worker::js_sys::{Reflect, Uint8Array};
use worker::web_sys::{
    self, ReadableStream, ReadableStreamDefaultReader, RequestInit, RequestRedirect,
};
use worker::{AbortController, Fetch, Fetcher, Headers, ResponseBody, Result};

use crate::peer::PROOF;
use crate::request::{self, Body, Request, Response};
use crate::store::s3::ANSWER_HEADERS;

/// A request on its way; dropping it ends the connection, which dropping crate `worker`'s own future does not.
pub struct UnderWay(Option<AbortController>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(controller) = self.0.take() {
            controller.abort();
        }
    }
}

/// Sends a request; its answer may be read for as long as what comes with it lives. No redirect is followed.
pub async fn send<'a>(
    method: &str,
    url: &str,
    headers: impl Iterator<Item = (&'a str, &'a str)>,
    body: &[u8],
    through: Option<&Fetcher>,
) -> Result<(UnderWay, worker::Response)> {
    let controller = AbortController::default();
    let signal = controller.signal();
    let under_way = UnderWay(Some(controller));
    let own = Headers::new();
    for (name, value) in headers {
        own.append(name, value)?;
    }
    // Not crate `worker`'s, which takes no signal; a binding's request has to carry it.
    let init = RequestInit::new();
    init.set_method(method);
    init.set_headers(&own.0);
    init.set_redirect(RequestRedirect::Manual);
    init.set_signal(Some(&signal));
    if !body.is_empty() {
        // Bytes, because a text would grow a content type.
        init.set_body(&Uint8Array::from(body));
    }
    let request = web_sys::Request::new_with_str_and_init(url, &init)?.into();
    let answer = match through {
        Some(binding) => binding.fetch_request::<worker::Request, _>(request).await?,
        None => Fetch::Request(request).send_with_signal(&signal).await?,
    };
    Ok((under_way, answer))
}

/// Sends a store's or a peer's request and reads as much of its answer as is wanted.
pub async fn exchange(request: Request, limit: usize) -> Result<Response> {
    let method = request.method().as_str();
    let headers = request.headers().iter();
    let headers = headers.map(|(name, value)| (name.as_str(), value.to_str().unwrap_or_default()));
    // What is compressed on the way has another ETag, or a weak one.
    let headers = headers.chain([("accept-encoding", "identity")]);
    let url = request.uri().to_string();
    let (_under_way, answer) = send(method, &url, headers, request.body(), None).await?;
    let body = match answer.body() {
        ResponseBody::Stream(stream) => read(stream, limit).await?,
        ResponseBody::Body(_) | ResponseBody::Empty => Body::default(),
    };
    let mut headers = Vec::new();
    for name in ANSWER_HEADERS.into_iter().chain([PROOF]) {
        if let Some(value) = answer.headers().get(name)? {
            headers.push((name, value));
        }
    }
    let headers = headers.iter().map(|(name, value)| (*name, value.as_str()));
    request::answer(answer.status_code(), headers, body)
        .map_err(|_| worker::Error::from("an answer that is none"))
}

/// Piece by piece: crate `worker`'s stream takes a body that breaks off as aborted for one that is whole.
async fn read(stream: &ReadableStream, limit: usize) -> Result<Body> {
    let reader = stream.get_reader().unchecked_into::<ReadableStreamDefaultReader>();
    let mut body = Body::default();
    while !body.truncated {
        let read = JsFuture::from(reader.read()).await?;
        if Reflect::get(&read, &"done".into())?.is_truthy() {
            break;
        }
        let chunk = Reflect::get(&read, &"value".into())?.unchecked_into::<Uint8Array>();
        let room = limit - body.bytes.len();
        body.truncated = chunk.length() as usize > room;
        let kept = if body.truncated { chunk.subarray(0, room as u32) } else { chunk };
        body.bytes.extend_from_slice(&kept.to_vec());
    }
    Ok(body)
}
