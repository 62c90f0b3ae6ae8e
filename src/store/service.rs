//! What the services of AWS have in common that are not S3: an endpoint, a region, signatures, and how they say that those
//! were wrong.
//!
//! Sources: <https://docs.aws.amazon.com/general/latest/gr/rande.html>,
//! <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html>,
//! <https://docs.aws.amazon.com/Route53/latest/APIReference/CommonErrors.html>.

use std::cell::RefCell;

use http::Method;

use crate::config::ConfigError;
use crate::lease::{MAX_FOREIGN_LEASE_MS, MAX_LEASE_MS, Remains};
use crate::protocol::Next;
use crate::request::{self, Request, Response};
use crate::sigv4::{self, Coverage, Credentials, KeyCache, SignError};
use crate::store::heard;
use crate::store::s3::Reasked;
use crate::store::s3::address::{self, Address};
use crate::store::sentences::EXPIRED;
use crate::store::{Facts, Fault, FaultKind, Version};

/// How long after its second a time of shardcoordinator's may still be held, in seconds: that second itself, because it
/// renews while the time is not less than now and acquires once it is; and one by which its document lets clocks differ.
const FOREIGN_SLACK_S: u64 = 2;

/// How long what shardcoordinator holds until this second of its clock is still waited out at this storage time, in
/// milliseconds; 0 where that is over.
pub(super) fn foreign_ahead_ms(until_s: u64, storage_ms: u64) -> u64 {
    let until_ms = until_s.saturating_add(FOREIGN_SLACK_S).saturating_mul(1_000);
    until_ms.saturating_sub(storage_ms).min(MAX_FOREIGN_LEASE_MS)
}

/// By how much the own clock may be behind for it to count beside a `Date`, in milliseconds: AWS takes no signature of a
/// clock that is further off (<https://docs.aws.amazon.com/IAM/latest/UserGuide/create-signed-request.html>).
const SIGNED_WITHIN_MS: u64 = 300_000;

/// The time by which what they hold is judged: the earlier of the answer's `Date`, which something on the way may have set
/// ahead, and the own clock, because a wait that is a little too long costs less than a living lease.
pub(super) fn foreign_clock_ms(facts: &Facts, wall_ms: u64) -> u64 {
    let Some(date_ms) = facts.date_ms else { return wall_ms };
    wall_ms.clamp(date_ms.saturating_sub(SIGNED_WITHIN_MS), date_ms)
}

/// How long what another make holds is waited out, counted from the answer that first showed it, as its age is (S6).
#[derive(Clone, Debug, Default)]
pub(super) struct FirstSight(RefCell<Option<Sight>>);

#[derive(Clone, Debug)]
struct Sight {
    of: Version,
    /// The own wall clock at that answer.
    wall_ms: u64,
    ahead_ms: u64,
    /// What later answers can make of it: known once an answer had a `Date` of the service's own.
    most_ms: Option<u64>,
}

/// The longest step of a wall clock that is taken for time that passed, in milliseconds.
const DAY_MS: u64 = 86_400_000;

impl FirstSight {
    /// How long this version is waited out, in milliseconds, where it is `ahead_ms` ahead at this answer. The longest that any
    /// answer with a `Date` shows counts, because something on the way may have set another ahead. But such a clock may be
    /// behind, or stand still: later answers make it five minutes longer, or an hour in all. The own clock alone may be wrong
    /// by any time.
    pub fn lasts_ms(&self, version: &Version, ahead_ms: u64, facts: &Facts, wall_ms: u64) -> u64 {
        let known = self.0.take().filter(|known| known.of == *version);
        let dated = facts.date_ms.is_some() && !facts.cached;
        let most_of = |ahead_ms: u64| (ahead_ms + SIGNED_WITHIN_MS).max(MAX_LEASE_MS);
        let sight = match known {
            Some(known) if !dated => known,
            Some(known) => {
                let since_ms = wall_ms.saturating_sub(known.wall_ms).min(DAY_MS);
                let ahead_ms = if ahead_ms > 0 { ahead_ms + since_ms } else { 0 };
                let most_ms = known.most_ms.unwrap_or(most_of(ahead_ms));
                let ahead_ms = known.ahead_ms.max(ahead_ms).min(most_ms).min(MAX_FOREIGN_LEASE_MS);
                Sight { ahead_ms, most_ms: Some(most_ms), ..known }
            }
            None => {
                let most_ms = dated.then(|| most_of(ahead_ms));
                Sight { of: version.clone(), wall_ms, ahead_ms, most_ms }
            }
        };
        let lasts_ms = sight.ahead_ms;
        self.0.replace(Some(sight));
        lasts_ms
    }

    /// Whether this version is waited out: an answer that shows it again may show that it lasts longer.
    pub fn is_of(&self, version: &Version) -> bool {
        self.0.borrow().as_ref().is_some_and(|sight| sight.of == *version)
    }
}

/// What a time beside something unusable says: somebody holds the lease until then, of which an hour at most is waited out
/// (S7).
pub(super) fn foreign_remains(until_s: u64, storage_ms: u64) -> Remains {
    let ahead_ms = foreign_ahead_ms(until_s, storage_ms);
    // In milliseconds, or a mistake: nobody has so long a lease.
    let ahead_ms = Some(ahead_ms).filter(|ms| (1..MAX_FOREIGN_LEASE_MS).contains(ms));
    Remains { term: None, lease_ms: ahead_ms.map(|ms| ms.min(MAX_LEASE_MS)) }
}

/// Codes of a signature whose time the service did not like.
const WRONG_CLOCK: [&str; 3] =
    ["InvalidSignatureException", "RequestTimeTooSkewed", "SignatureDoesNotMatch"];

/// One service in one region, and what it taught us.
#[derive(Debug)]
pub struct Service {
    /// The name in signatures, such as `dynamodb`.
    name: &'static str,
    address: Address,
    region: String,
    learned: RefCell<Learned>,
}

#[derive(Debug, Default)]
struct Learned {
    /// What to add to the own wall clock for signing, in milliseconds. For nothing else: no lease knows it.
    clock_offset_ms: i64,
    keys: KeyCache,
    reasked: Reasked,
}

/// Why a request could not even be made.
pub(super) const NO_URL: &str = "nothing was sent: the address is no URL";

/// What one exchange has tried already.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tried {
    clock: bool,
    unlearned: bool,
    refreshed: bool,
}

impl Service {
    /// The service at `endpoint`, or where AWS has it: `host` says so for a region.
    ///
    /// # Errors
    /// The endpoint or the region can't be used, and why.
    pub fn new(
        name: &'static str,
        endpoint: Option<&str>,
        region: Option<&str>,
        host: impl Fn(&str) -> String,
    ) -> Result<Self, ConfigError> {
        let region = address::check_region(region)?;
        let address = match endpoint {
            Some(endpoint) => Address::endpoint(endpoint)?,
            None => Address::service(host(&region)),
        };
        Ok(Self { name, address, region, learned: RefCell::default() })
    }

    /// A request to a path with its leading slash, and query. `who` is the store's name for errors.
    ///
    /// # Errors
    /// The address is no URL.
    pub fn request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
        who: &str,
    ) -> Result<Request, Fault> {
        let unfit = |_| Fault::new(FaultKind::Misconfigured, format!("{who}: {NO_URL}"));
        request::new(method, &self.address.below(path), headers, body.into_bytes()).map_err(unfit)
    }

    /// Scheme, host and port, for people.
    pub fn origin(&self) -> String {
        self.address.origin("")
    }

    /// Signs a request: host and `x-amz-*`, and nothing that a host may rewrite on the way. `who` is the store's name for
    /// errors.
    ///
    /// # Errors
    /// Credentials that no header can carry.
    pub fn sign(
        &self,
        request: &mut Request,
        credentials: &Credentials,
        wall_ms: u64,
        who: &str,
    ) -> Result<(), Fault> {
        let Learned { clock_offset_ms, keys, .. } = &mut *self.learned.borrow_mut();
        let signing_ms = wall_ms.saturating_add_signed(*clock_offset_ms);
        let scope = [self.region.as_str(), self.name];
        let coverage = &Coverage::SERVICE;
        let signed = sigv4::sign(request, credentials, scope, signing_ms, keys, coverage);
        signed.map_err(|error| {
            let (kind, advice) = match error {
                SignError::NoCredentials | SignError::BadCredentials => {
                    (FaultKind::Denied, "; check the credentials")
                }
                SignError::NoHost | SignError::RawPath => (FaultKind::Misconfigured, ""),
            };
            Fault::new(kind, format!("{who}: nothing was sent: {}{advice}", error.text()))
        })
    }

    /// The answers after which the same request, signed otherwise, may do: each shows that the service did nothing.
    /// `code` is the service's own.
    pub fn recover(
        &self,
        tried: &mut Tried,
        code: &str,
        response: &Response,
        wall_ms: u64,
    ) -> Option<Next> {
        if !(400..500).contains(&response.status().as_u16()) {
            return None;
        }
        if WRONG_CLOCK.contains(&code) && !tried.clock {
            tried.clock = true;
            let date_ms = heard::facts(response).date_ms;
            let offset_ms = date_ms.and_then(|date_ms| date_ms.checked_signed_diff(wall_ms));
            // The same code is given to a wrong secret; a clock that is right has nothing to learn.
            let learned = &mut *self.learned.borrow_mut();
            if let Some(offset_ms) = offset_ms
                && offset_ms.abs_diff(learned.clock_offset_ms) > FAR_OFF_MS
            {
                learned.clock_offset_ms = offset_ms;
                return Some(Next::Again);
            }
        }
        let expired = EXPIRED.contains(&code);
        if !tried.refreshed && (expired || self.learned.borrow_mut().reasked.asks(code, wall_ms)) {
            tried.refreshed = true;
            return Some(Next::Refresh);
        }
        let learned = &mut *self.learned.borrow_mut();
        if WRONG_CLOCK.contains(&code) && !tried.unlearned && learned.clock_offset_ms != 0 {
            // Something on the way may set `Date`, and the own clock be right.
            (tried.unlearned, learned.clock_offset_ms) = (true, 0);
            return Some(Next::Again);
        }
        None
    }
}

/// From here on a clock may be why a signature was refused, in milliseconds; AWS refuses five minutes and more.
const FAR_OFF_MS: u64 = 60_000;
