//! A stand-in for a member of S3lect's own make, by the rules of its document and by nothing else: it judges by its
//! own wall clock, renews by a Get and a PutIfMatch, and marks a resignation by the zero time.

use std::cell::Cell;
use std::rc::Rc;

use edgelect::Host;
use edgelect::store::Version;

use super::go::{self, Record, Time};
use crate::mixed::bucket::Bucket;
use worlds::virtual_time::Virtual;

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
    pub bug: Option<Bug>,
}

/// What a member may do wrong, so that the oracle can be seen to notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A failed update does not end its leadership.
    NeverResigns,
    /// It writes without a condition.
    Unconditional,
    /// It acts until its resignation is written, and goes on for a while.
    ActsAfterResigning,
}

impl Rules {
    pub const DOCUMENT: Self = Self {
        frequent_ms: 5_000,
        infrequent_ms: 30_000,
        leader_timeout_ms: 15_000,
        grace_ms: 15_000,
        request_timeout_ms: 1_000,
        bug: None,
    };

    /// The longest that it acts after its last update landed: the answer, an interval, a Get and a PutIfMatch of
    /// three attempts each.
    pub fn longest_unrenewed_ms(&self) -> u64 {
        self.request_timeout_ms + self.frequent_ms + 2 * (3 * self.request_timeout_ms + 1_100)
    }
}

/// What others may see and tell.
#[derive(Clone, Default)]
pub struct Seen {
    /// Since when it is the leader, on the virtual clock.
    pub leader_since_ms: Rc<Cell<Option<u64>>>,
    /// It is to resign and to end.
    pub stop: Rc<Cell<bool>>,
    /// How many leaderships it took.
    pub taken: Rc<Cell<u64>>,
    pub name: String,
    /// Until then nothing of it reaches the store.
    pub cut_until_ms: Rc<Cell<u64>>,
}

impl Seen {
    pub fn acts(&self, rules: &Rules, now_ms: u64) -> bool {
        self.leader_since_ms.get().is_some_and(|since_ms| now_ms >= since_ms + rules.grace_ms)
    }
}

pub struct S3lect {
    pub id: String,
    pub rules: Rules,
    pub bucket: Bucket,
    /// Its wall clock may be off from the store's.
    pub time: Virtual,
    pub offset_minutes: i64,
    pub seen: Seen,
    /// Called when it begins to act.
    pub begins: Rc<dyn Fn()>,
}

type Found = Option<(Record, Version)>;

impl S3lect {
    fn wall_ms(&self) -> i64 {
        i64::try_from(self.time.wall_ms()).expect("it is 2026")
    }

    /// Follows and leads until it is told to stop.
    pub async fn run(&self) {
        let mut known: Option<String> = None;
        while !self.seen.stop.get() {
            let pause_ms = match self.get().await {
                Ok(found) => self.follow(found, &mut known).await,
                Err(()) => self.rules.frequent_ms,
            };
            self.pause(pause_ms).await;
        }
    }

    /// One look of a follower; then how long it waits for the next.
    async fn follow(&self, found: Found, known: &mut Option<String>) -> u64 {
        let etag = match found {
            None => None,
            Some((record, etag)) if self.has_failed(record.last_updated) => Some(etag),
            Some((record, _)) => {
                let stable = known.as_ref() == Some(&record.leader_id);
                *known = Some(record.leader_id);
                return if stable { self.rules.infrequent_ms } else { self.rules.frequent_ms };
            }
        };
        *known = None;
        if self.put(self.now(), etag).await {
            self.lead().await;
        }
        self.rules.frequent_ms
    }

    fn has_failed(&self, updated: Time) -> bool {
        let age_ms = self.wall_ms() - updated.unix_ms;
        updated.is_zero() || age_ms > i64::try_from(self.rules.leader_timeout_ms).expect("short")
    }

    async fn lead(&self) {
        let since_ms = self.time.now_ms.get();
        self.seen.leader_since_ms.set(Some(since_ms));
        self.seen.taken.set(self.seen.taken.get() + 1);
        let acts_from_ms = since_ms + self.rules.grace_ms;
        let mut began = false;
        loop {
            let due_ms = self.time.now_ms.get() + self.rules.frequent_ms;
            if !began && acts_from_ms <= due_ms {
                self.pause(acts_from_ms.saturating_sub(self.time.now_ms.get())).await;
                if !self.seen.stop.get() {
                    (self.begins)();
                    began = true;
                }
            }
            self.pause(due_ms.saturating_sub(self.time.now_ms.get())).await;
            if self.seen.stop.get() {
                break;
            }
            let renewed = self.renew(self.now()).await;
            if !renewed && self.rules.bug != Some(Bug::NeverResigns) {
                self.seen.leader_since_ms.set(None);
                return;
            }
        }
        self.resign().await;
    }

    async fn resign(&self) {
        let late = self.rules.bug == Some(Bug::ActsAfterResigning);
        if !late {
            self.seen.leader_since_ms.set(None);
        }
        self.renew(Time::ZERO).await;
        if late {
            self.time.sleep(self.rules.leader_timeout_ms).await;
            self.seen.leader_since_ms.set(None);
        }
    }

    /// An update of its own record: the ETag is that of a Get which still names it.
    async fn renew(&self, updated: Time) -> bool {
        match self.get().await {
            Ok(Some((record, etag))) if record.leader_id == self.id => {
                self.put(updated, Some(etag)).await
            }
            _ => false,
        }
    }

    fn now(&self) -> Time {
        let nanoseconds = u32::try_from(self.time.now_ms.get() * 7_919 % 1_000_000).expect("small");
        Time { unix_ms: self.wall_ms(), nanoseconds, offset_minutes: self.offset_minutes }
    }

    async fn get(&self) -> Result<Found, ()> {
        for pause_ms in [0, 100, 1_000] {
            self.time.sleep(pause_ms).await;
            if let Some(Ok(found)) =
                self.time.within(self.rules.request_timeout_ms, self.bucket.get()).await
            {
                let read = |(body, etag): (Vec<u8>, Version)| Some((go::unmarshal(&body)?, etag));
                return match found {
                    None => Ok(None),
                    Some(found) => read(found).map(Some).ok_or(()),
                };
            }
        }
        Err(())
    }

    async fn put(&self, last_updated: Time, etag: Option<Version>) -> bool {
        let record = Record {
            leader_id: self.id.clone(),
            leader_addr: format!("{}.example:8443", self.id),
            last_updated,
        };
        let body = go::marshal(&record);
        if self.rules.bug == Some(Bug::Unconditional) {
            self.bucket.memory.overwrite(Some(body));
            return true;
        }
        for pause_ms in [0, 100, 1_000] {
            self.time.sleep(pause_ms).await;
            let put = self.bucket.put_if_match(body.clone(), etag.clone());
            if let Some(Ok(written)) = self.time.within(self.rules.request_timeout_ms, put).await {
                return written;
            }
        }
        false
    }

    /// A wait that a stop ends.
    async fn pause(&self, ms: u64) {
        self.time.sleep_until_or(self.time.now_ms.get() + ms, &self.seen.stop).await;
    }
}
