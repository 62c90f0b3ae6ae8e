//! A stand-in for a member of S3lect's own make, by the rules of its document and by nothing else: it judges by its
//! own wall clock, renews by a Get and a PutIfMatch, and marks a resignation by the zero time.

use crate::driver::prelude::*;
use crate::mixed::bucket::Bucket;
use crate::mixed::coordinator::Lock;
use worlds::sim::go::{self, Record, Time};

/// The settings of the document, and what the document leaves to the code.
#[derive(Clone, Copy)]
pub struct Rules {
    pub frequent_ms: u64,
    pub infrequent_ms: u64,
    pub leader_timeout_ms: u64,
    /// The gap between becoming leader and acting as one.
    pub grace_ms: u64,
    /// The HTTP client's own.
    pub request_timeout_ms: u64,
}

impl Rules {
    pub const DOCUMENT: Self = Self {
        frequent_ms: 5_000,
        infrequent_ms: 30_000,
        leader_timeout_ms: 15_000,
        grace_ms: 15_000,
        request_timeout_ms: 1_000,
    };
}

/// Where it reads and writes, and by which rules. Clones are the same member's.
#[derive(Clone)]
pub struct S3lect {
    pub rules: Rules,
    pub bucket: Bucket,
    pub offset_minutes: i64,
    /// Whom it has seen lead, and when it looks again.
    pub known: Rc<RefCell<Option<String>>>,
    pub looks_ms: Rc<Cell<u64>>,
}

type Found = Option<(Record, Version)>;

impl Lock for S3lect {
    /// An update of a leader, or one look of a follower.
    async fn take(&self, id: &str, leads: bool, _lease_ms: u64, clock: &Virtual) -> Option<u64> {
        if leads {
            return self.renew(id, self.now(clock)).await.then_some(u64::MAX);
        }
        let began_ms = clock.now_ms.get();
        if began_ms < self.looks_ms.get() {
            return None;
        }
        let etag = match self.get().await.ok()? {
            None => None,
            Some((record, etag)) if self.has_failed(record.last_updated, clock) => Some(etag),
            Some((Record { leader_id, .. }, _)) => {
                if self.known.replace(Some(leader_id.clone())) == Some(leader_id) {
                    self.looks_ms.set(began_ms + self.rules.infrequent_ms);
                }
                return None;
            }
        };
        self.known.take();
        self.put(id, self.now(clock), etag).await.then_some(u64::MAX)
    }

    async fn release(&self, id: &str) {
        self.renew(id, Time::ZERO).await;
    }
}

impl S3lect {
    fn has_failed(&self, updated: Time, clock: &Virtual) -> bool {
        let age_ms = clock.wall_ms() as i64 - updated.unix_ms;
        updated.is_zero() || age_ms > self.rules.leader_timeout_ms as i64
    }

    /// An update of its own record: the ETag is that of a Get which still names it.
    async fn renew(&self, id: &str, updated: Time) -> bool {
        match self.get().await {
            Ok(Some((record, etag))) if record.leader_id == id => {
                self.put(id, updated, Some(etag)).await
            }
            _ => false,
        }
    }

    fn now(&self, clock: &Virtual) -> Time {
        let nanoseconds = (clock.now_ms.get() * 7_919 % 1_000_000) as u32;
        let unix_ms = clock.wall_ms() as i64;
        Time { unix_ms, nanoseconds, offset_minutes: self.offset_minutes }
    }

    /// What a request comes to in three attempts.
    async fn tried<T>(&self, request: impl AsyncFn() -> Result<T, String>) -> Option<T> {
        let time = &self.bucket.time;
        for pause_ms in [0, 100, 1_000] {
            time.sleep(pause_ms).await;
            if let Some(Ok(answer)) = time.within(self.rules.request_timeout_ms, request()).await {
                return Some(answer);
            }
        }
        None
    }

    async fn get(&self) -> Result<Found, ()> {
        match self.tried(async || self.bucket.get().await).await.ok_or(())? {
            None => Ok(None),
            Some((body, etag)) => go::unmarshal(&body).map(|read| Some((read, etag))).ok_or(()),
        }
    }

    async fn put(&self, id: &str, last_updated: Time, etag: Option<Version>) -> bool {
        let leader_addr = format!("{id}.example:8443");
        let body = go::marshal(&Record { leader_id: id.to_owned(), leader_addr, last_updated });
        let put = async || self.bucket.put_if_match(body.clone(), etag.clone()).await;
        self.tried(put).await == Some(true)
    }
}
