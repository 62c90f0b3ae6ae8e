//! What is counted, and what it says.

/// Requests that members have made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// GETs that showed the record, or that there is none.
    pub reads: u64,
    /// GETs that were answered by 304.
    pub unchanged: u64,
    /// GETs of the member that leads, which are counted above as well.
    pub leader_gets: u64,
    /// PUTs of a leader: renewals and tombstones.
    pub renewals: u64,
    /// PUTs of members that want to lead.
    pub claims: u64,
    /// Questions to peers.
    pub questions: u64,
    /// Those of them that reached the member that leads.
    pub leader_questions: u64,
}

impl Requests {
    pub fn gets(&self) -> u64 {
        self.reads + self.unchanged
    }

    pub fn puts(&self) -> u64 {
        self.renewals + self.claims
    }
}

/// Why a group needs another leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The leader's machine is gone: no peer gets an answer.
    Crash,
    /// The leader resigns.
    Resign,
    /// Somebody deletes the record.
    Delete,
}

/// One failover.
#[derive(Clone, Copy, Debug)]
pub struct Failover {
    /// From the cause to the next leader's authority, in milliseconds.
    pub took_ms: u64,
    /// PUTs of members that wanted to lead, up to a lease after the next leader began.
    pub claims: u64,
    /// The next leader's renewals in the lease after it began, those counted that the store did not take.
    pub renewals: u64,
    /// Whether it leads at the end of that lease.
    pub leads_on: bool,
    /// Writes that the store did not take because there were too many.
    pub throttled: u64,
}

/// The value below which so many of a hundred lie.
pub fn percentile(values: impl IntoIterator<Item = u64>, percent: usize) -> u64 {
    let mut values: Vec<u64> = values.into_iter().collect();
    values.sort_unstable();
    let place = (values.len() * percent).div_ceil(100).max(1) - 1;
    values.get(place).copied().unwrap_or(0)
}
