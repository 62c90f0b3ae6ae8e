//! Edgelect's electors and stand-ins for S3lect's members in one group, under one seed; and what the store has accepted.

use super::member::{Rules, S3lect};
use crate::driver::prelude::*;
use crate::mixed::bucket::Bucket;
use crate::mixed::coordinator::Coordinator;
use crate::mixed::world::{Group, Member, World};

/// Of what a seed draws its course.
#[derive(Clone, Copy)]
pub struct Course {
    pub rules: Rules,
    /// How far a foreign wall clock may be from the store's.
    pub foreign_off_ms: u64,
    pub failing_per_mille: u64,
}

pub struct Place {
    pub bucket: Bucket,
    course: Course,
    pub dated: bool,
}

pub type Fleet = World<Place>;

pub fn fleet(seed: u64, course: Course) -> Fleet {
    let mut fleet = World::strict(100, seed, |time, chance| {
        let dated = !chance.borrow_mut().one_in(4);
        Place { bucket: Bucket::new(time, dated, chance), course, dated }
    });
    let bucket = fleet.place.bucket.clone();
    bucket.failing_per_mille.set(course.failing_per_mille);
    fleet.each_step = Box::new(move || bucket.arrive());
    fleet
}

impl Group for Place {
    /// An elector, which knows nothing of what was before.
    fn ours(fleet: &Fleet) -> Member {
        let name = format!("ours-{}", fleet.next_number());
        let host = fleet.host();
        let follow = Some(fleet.pick(&[Follow::Tight, Follow::Balanced, Follow::Frugal]));
        let settings = Settings { server_id: Some(name.clone()), follow, ..Settings::default() };
        let election = new_election(&host, config_of(settings)).expect("it has chance");
        let handle = Handle::new(election);
        let bucket = fleet.place.bucket.another_way();
        let cut_until_ms = Rc::clone(&bucket.cut_until_ms);
        fleet.elect(&name, handle.clone(), bucket, host, ());
        Member::ours(name, handle, cut_until_ms)
    }

    fn theirs(fleet: &Fleet) -> Option<Member> {
        let Coordinator { id, stops, lock, .. } = fleet.start_theirs();
        Some(Member::theirs(id, stops, lock.bucket.cut_until_ms))
    }

    fn ends(fleet: &mut Fleet) {
        fleet.place.bucket.failing_per_mille.set(0);
        fleet.run(180_000);
        let mut broken = stored(&fleet.place.bucket);
        if fleet.ours_leads().is_none() {
            broken.push("nobody leads in the end".to_owned());
        }
        fleet.observer.violations.borrow_mut().extend(broken);
    }
}

impl Fleet {
    fn off_ms(&self, most_ms: u64) -> i64 {
        self.below(2 * most_ms + 1) as i64 - most_ms as i64
    }

    /// A host whose clock is far from the store's. Without `Date` tokens stand on the own wall clock (S2).
    fn host(&self) -> Virtual {
        let ahead_ms = if self.place.dated { self.off_ms(3_600_000) } else { 0 };
        self.time.ahead(ahead_ms).drawing(&self.place.bucket.chance)
    }

    pub fn start_theirs(&self) -> Coordinator<S3lect> {
        let (rules, name) = (self.place.course.rules, format!("s3lect-{}", self.next_number()));
        let bucket = self.place.bucket.another_way();
        let offset_minutes = self.pick(&[0, 120, -570]);
        let (known, looks_ms) = Default::default();
        let lock = S3lect { rules, bucket, offset_minutes, known, looks_ms };
        let host = self.time.ahead(self.off_ms(self.place.course.foreign_off_ms));
        let Rules { grace_ms, leader_timeout_ms, frequent_ms, .. } = rules;
        self.coordinate(Coordinator {
            by_state: true,
            grace_ms,
            ..Coordinator::new(&name, lock, host, leader_timeout_ms, frequent_ms)
        })
    }
}

/// What is wrong with what the store has accepted, in its order: terms grow over every foreign record between.
fn stored(bucket: &Bucket) -> Vec<String> {
    let (mut before, mut broken) = (None::<(String, u64)>, Vec::new());
    for written in bucket.written.borrow().iter() {
        let Reading::Lease(lease) = lease::read(&written.body) else {
            broken.push(format!("{}: unreadable", written.at_ms));
            continue;
        };
        let (Some(session), Some(term)) = (lease.session, lease.term) else { continue };
        if before.as_ref().is_some_and(|(of, last)| term < *last + u64::from(*of != session)) {
            broken.push(format!("{}: stored term {term} after {before:?}", written.at_ms));
        }
        before = Some((session, term));
    }
    broken
}
