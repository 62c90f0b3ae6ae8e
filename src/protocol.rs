//! A store as requests and answers over HTTP, without a fetch: what `remote.rs` joins to a host.

use crate::request::{Request, Response};
use crate::sigv4::Credentials;
use crate::store::{Answer, Fault, Operation, Version};

/// What follows an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Ask [`Protocol::request`] again and send that.
    Again,
    /// Get fresh credentials, then as [`Next::Again`]. Said once in an exchange.
    Refresh,
    /// The operation has ended.
    Done(Answer),
}

/// One record in a store that is asked over HTTP. An operation is an exchange: a request, its answer, perhaps another
/// request, until [`Next::Done`].
///
/// A request is sent again inside one exchange only after an answer that shows that it did nothing, or if it changes
/// nothing. Everything else is for the election to judge: a write is
/// [`Outcome::Rejected`](crate::store::Outcome::Rejected) only where the store itself says so; where an answer may come
/// from something in between, it is [`Outcome::Unknown`](crate::store::Outcome::Unknown) (S8).
pub trait Protocol {
    /// One operation on its way.
    type Exchange;

    /// How much of an answer's body is read, in bytes.
    const ANSWER_LIMIT: usize;

    /// Begins an operation.
    fn begin(&self, operation: Operation) -> Self::Exchange;

    /// The signed request to send now. `wall_ms` is the own wall clock in milliseconds since the Unix epoch.
    /// `Host` and `Content-Length` are left to whoever sends it.
    ///
    /// # Errors
    /// Nothing can be sent; see [`Protocol::unsent`].
    fn request(
        &self,
        exchange: &mut Self::Exchange,
        credentials: &Credentials,
        wall_ms: u64,
    ) -> Result<Request, Fault>;

    /// What an answer means. `wall_ms` is the own wall clock when it came.
    fn answer(&self, exchange: &mut Self::Exchange, response: Response, wall_ms: u64) -> Next;

    /// No answer came to the last request, and why: nobody knows whether it took effect. What the operation has come to.
    fn silence(&self, exchange: &mut Self::Exchange, cause: Fault) -> Answer;

    /// The next request could not be made or signed, and why: no bytes of it left. What the operation has come to; where an
    /// earlier request of the exchange may have taken effect, this is no rejection.
    fn unsent(&self, _: &mut Self::Exchange, fault: Fault) -> Answer {
        Answer::rejected(fault)
    }

    /// As [`Store::beside`](crate::store::Store::beside).
    fn beside(&self, _key: &str) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// See [`Store::condition_covers_version`](crate::store::Store::condition_covers_version).
    fn condition_covers_version(&self) -> bool {
        true
    }

    /// As [`Store::near_misses`](crate::store::Store::near_misses).
    fn near_misses(&self, _version: &Version) -> Vec<Version> {
        Vec::new()
    }

    /// As [`Store::keeps_any_body`](crate::store::Store::keeps_any_body).
    fn keeps_any_body(&self) -> bool {
        false
    }

    /// As [`Store::writes_apart_ms`](crate::store::Store::writes_apart_ms).
    fn writes_apart_ms(&self) -> u64 {
        0
    }

    /// As [`Store::complaint`](crate::store::Store::complaint).
    fn complaint(&self) -> Option<Fault> {
        None
    }

    /// The name for errors and status, such as `S3 bucket "jobs" at https://…`. No secret is in it.
    fn describe(&self) -> String;
}
