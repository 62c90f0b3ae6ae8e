//! What the work of the terms changes: a resource that takes a fencing token with every write and
//! refuses each that is lower than the highest it has seen.

use std::collections::HashMap;

use super::oracle::Oracle;

/// Who was handed a token, and when the claim of its term took effect: a host that slept may hear
/// of its own long after.
#[derive(Clone, Copy)]
struct Holder {
    session: usize,
    landed_ms: u64,
}

#[derive(Default)]
pub struct Resource {
    highest_token: u64,
    /// When the latest term began of which a write was taken.
    latest_ms: u64,
    holders: HashMap<u64, Holder>,
}

impl Resource {
    /// A session was told that it leads.
    pub fn begins(&mut self, oracle: &mut Oracle, session: usize, token: u64) {
        let holder = Holder { session, landed_ms: oracle.granted_ms(session) };
        let before = self.holders.insert(token, holder);
        let tokens_hold = oracle.tokens_hold;
        require!(oracle, before.is_none() || !tokens_hold, "token of one term";
            "token {token} was handed out twice");
    }

    /// A write of the work arrives; whether it is taken.
    pub fn receives(&mut self, oracle: &mut Oracle, session: usize, token: u64) -> bool {
        if token < self.highest_token {
            return false;
        }
        self.highest_token = token;
        let Some(holder) = self.holders.get(&token) else { return false };
        let zombie = holder.landed_ms < self.latest_ms && holder.session == session;
        self.latest_ms = self.latest_ms.max(holder.landed_ms);
        let tokens_hold = oracle.tokens_hold;
        require!(oracle, !zombie || !tokens_hold, "token refuses zombies";
            "s{session} wrote with token {token} after a later term had");
        true
    }
}
