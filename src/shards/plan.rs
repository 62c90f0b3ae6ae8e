//! Which shards a member claims and which it gives back: a state machine without I/O and without a clock.
//!
//! Nothing here makes anybody a leader: each shard has a lease of its own, and what is decided here is only whether this member
//! asks for it. So two members with different views may both ask, and one of them leads.
//!
//! **Who is alive** is what the leases say: whoever holds a shard is, until that lease has run out by this member's own clock. Who
//! holds none yet takes the *seat*, one more lease beside those of the shards, and is seen by that. So there is no list to keep,
//! and no store has to have one.
//!
//! **Shares** differ by one shard at most. A free shard is for the member that has the fewest. While two members are two or
//! more apart, the one that has the most gives a shard to the one that has the fewest; all members come to the same pairs,
//! because they count the same leases and break ties by the same hash. A shard is given after that has been so for a while, so
//! that a view that is a moment old moves nothing. Where shares are even nothing moves.

use std::collections::BTreeMap;

use crate::planted::planted;

/// Who holds a lease, as one member sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// The store has not been heard of, or not for long.
    Unknown,
    /// It may be claimed.
    Free,
    /// This member.
    Mine,
    /// This member, as soon as the grace of the record that it has made is over: it has to go on claiming it.
    Coming,
    /// It may be claimed by the others: this member gave it up a while ago.
    Barred,
    /// Nobody who counts: the holder gives it up just now, or has this member's own name.
    Unnamed,
    /// Another member.
    Other(String),
}

/// What a member does about the leases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// Of each shard, whether it may be claimed.
    pub competes: Vec<bool>,
    /// The shards to give back.
    pub gives: Vec<usize>,
    /// Whether the seat may be claimed.
    pub takes_seat: bool,
    /// Whether the seat is to be given back.
    pub gives_seat: bool,
}

/// For how many times its patience a member counts as unwilling that was free to take a shard and did not; and for how many times
/// a shard has to be unknown before others are given back without it.
const UNWILLING_FOR: u64 = 10;

/// What a member remembers from one look at the leases to the next.
#[derive(Clone, Debug)]
pub struct Plan {
    me: String,
    /// For how long a reason to give has to last, in milliseconds.
    settle_ms: u64,
    /// How long a free shard is left to whom it is for, in milliseconds.
    patience_ms: u64,
    /// Who held each shard when it was last seen held.
    holders: Vec<Option<String>>,
    /// Since when each shard is free, for the same member.
    free_since_ms: Vec<Option<u64>>,
    /// Whom each free shard was for.
    meant_for: Vec<Option<String>>,
    /// Who has just lost a shard, and until when they are not counted on.
    wavering: BTreeMap<String, u64>,
    /// Who let which shard lie that was for them, and until when that is not for them.
    unwilling: BTreeMap<String, BTreeMap<usize, u64>>,
    /// Which shards all have let lie.
    broken: Vec<bool>,
    /// Since when each shard is unknown.
    unknown_since_ms: Vec<Option<u64>>,
    /// Since when this member holds any shard at all.
    holds_since_ms: Option<u64>,
    /// Since when it holds a shard or the seat, by which the others know of it, now and then at least; and when it did last.
    shown_since_ms: Option<u64>,
    shown_at_ms: u64,
    /// Which shard this member claims first, since when, and which ones it has claimed in vain before.
    first: Option<(usize, u64)>,
    tried: Vec<usize>,
    /// When it decided last, and since when it has held none.
    decided_ms: u64,
    none_since_ms: Option<u64>,
    /// Since when there has been a reason to give.
    gives_since_ms: Option<u64>,
}

/// How many shards each living member holds.
type Shares = BTreeMap<String, usize>;

impl Plan {
    /// A member of this name. `look_ms` is how old its view of a lease may be, and `lease_ms` how long a lease lasts.
    pub fn new(me: impl Into<String>, shards: usize, look_ms: u64, lease_ms: u64) -> Self {
        let settle_ms = if planted!(ShardsGiveAtOnce) { 0 } else { look_ms.saturating_mul(2) };
        Self {
            me: me.into(),
            settle_ms,
            patience_ms: lease_ms.saturating_add(look_ms).saturating_mul(2),
            holders: vec![None; shards],
            free_since_ms: vec![None; shards],
            meant_for: vec![None; shards],
            unknown_since_ms: vec![None; shards],
            wavering: BTreeMap::new(),
            unwilling: BTreeMap::new(),
            broken: vec![false; shards],
            holds_since_ms: None,
            shown_since_ms: None,
            shown_at_ms: 0,
            first: None,
            tried: Vec::new(),
            decided_ms: 0,
            none_since_ms: None,
            gives_since_ms: None,
        }
    }

    /// What to do at this time of the monotonic clock, by what is seen of each shard and of the seat.
    pub fn decide(&mut self, now_ms: u64, shards: &[View], seat: &View) -> Orders {
        // The only clock of a machine may step back.
        let now_ms = now_ms.max(self.decided_ms);
        let passed_ms = now_ms - std::mem::replace(&mut self.decided_ms, now_ms);
        self.note(now_ms, shards, seat);
        let goes_on = |view: &View| *view == View::Coming && !planted!(MadeIsLeft);
        let competes = shards.iter().map(goes_on).collect();
        let mut orders = Orders { competes, takes_seat: goes_on(seat), ..Orders::default() };
        let unknown = self.unknown_since_ms.iter().flatten().map(|since_ms| now_ms - since_ms);
        let shortest_ms = unknown.min().unwrap_or(u64::MAX);
        if shortest_ms < self.patience_ms {
            self.gives_since_ms = None;
            // Nobody lets a shard lie of which it may not be sure that it is free: this time does not count.
            let wait = |since_ms: &mut u64| *since_ms = (*since_ms + passed_ms).min(now_ms);
            self.free_since_ms.iter_mut().flatten().for_each(wait);
            return orders;
        }
        let mut shares = self.shares(shards, seat);
        let own = shares[&self.me];
        let free: Vec<usize> = (0..shards.len())
            .filter(|shard| matches!(shards[*shard], View::Free | View::Barred))
            .collect();
        let meant = self.assign(shards, &free, &mut shares);
        self.note_unwilling(now_ms, &free, &meant, shares.len() as u64);
        self.claim(now_ms, own, shards, &free, &meant, &mut orders.competes);
        let most = shares.values().max().copied().unwrap_or(0);
        // Who sees a part of the shards cannot tell who has too many.
        if shortest_ms >= UNWILLING_FOR * self.patience_ms {
            orders.gives = self.give(now_ms, all(shards, &View::Mine), shares);
        }
        let willing = !self.lets_any_lie(&self.me);
        // What it has claimed for so long it may not get: the others have to see that it is there.
        let since_ms = self.none_since_ms.unwrap_or(now_ms);
        let in_vain = now_ms - since_ms >= self.patience_ms;
        let wanted = own == 0 && (free.is_empty() || in_vain) && most >= 2 && willing;
        orders.takes_seat |= wanted;
        // Until the others have seen its first shard, the seat shows them that it is there: without it they would claim what is
        // free for it.
        let seen = own > 0 && self.is_over(now_ms, self.holds_since_ms);
        let needless = most < 2 && free.is_empty();
        orders.gives_seat = *seat == View::Mine && (seen || needless || !willing);
        orders
    }

    /// Takes note of what has changed.
    fn note(&mut self, now_ms: u64, shards: &[View], seat: &View) {
        for (shard, view) in shards.iter().enumerate() {
            let since_ms = self.unknown_since_ms[shard].unwrap_or(now_ms);
            self.unknown_since_ms[shard] = (*view == View::Unknown).then_some(since_ms);
            if *view == View::Unknown {
                // What nobody knows for a moment, because this member's elector begins anew, was as free as before.
                if now_ms - since_ms >= self.patience_ms {
                    self.free_since_ms[shard] = None;
                }
                continue;
            }
            let holder = match view {
                View::Mine | View::Coming => Some(&self.me),
                View::Other(name) => Some(name),
                _ => None,
            };
            let before = &self.holders[shard];
            // Whoever gives a shard back, or whose work is over, has lost nothing, and takes another one.
            let gave = before.as_ref() == Some(&self.me)
                && matches!(view, View::Unnamed | View::Barred)
                && !planted!(OwnEndWavers);
            let lost = before.as_ref().filter(|before| Some(*before) != holder && !gave);
            if let Some(before) = lost {
                self.wavering.insert(before.clone(), now_ms + self.settle_ms);
            }
            if let Some(name) = holder.filter(|name| before.as_ref() != Some(*name)) {
                self.unwilling.entry(name.clone()).or_default().remove(&shard);
            }
            self.holders[shard] = holder.cloned();
            let since_ms = self.free_since_ms[shard].unwrap_or(now_ms);
            self.free_since_ms[shard] = match view {
                View::Free => Some(since_ms),
                // It has not been left to this member.
                View::Barred => Some(now_ms),
                _ => None,
            };
        }
        self.wavering.retain(|_, until_ms| *until_ms > now_ms);
        let names = self.shares(shards, seat);
        self.note_broken(shards, &names);
        self.unwilling.retain(|_, lie| {
            lie.retain(|_, until_ms| *until_ms > now_ms);
            !lie.is_empty()
        });
        let holds = shards.contains(&View::Mine) || shards.contains(&View::Coming);
        if holds {
            (self.first, self.tried) = (None, Vec::new());
        }
        let since_ms = self.none_since_ms.unwrap_or(now_ms);
        self.none_since_ms = (!holds).then_some(since_ms);
        self.holds_since_ms = holds.then(|| self.holds_since_ms.unwrap_or(now_ms));
        let shown = holds || matches!(seat, View::Mine | View::Coming);
        if shown {
            self.shown_at_ms = now_ms;
        }
        let lately = now_ms.saturating_sub(self.shown_at_ms) < self.patience_ms;
        let since_ms = self.shown_since_ms.filter(|_| lately);
        self.shown_since_ms = if shown { since_ms.or(Some(now_ms)) } else { since_ms };
    }

    /// A shard that all have let lie counts for nobody until somebody takes it: something else than a member is in its way.
    fn note_broken(&mut self, shards: &[View], names: &Shares) {
        for (shard, view) in shards.iter().enumerate() {
            match view {
                View::Unknown => {}
                View::Free | View::Barred => {
                    self.broken[shard] |= names.keys().all(|name| self.lets_lie(name, shard));
                }
                _ if self.broken[shard] => {
                    self.broken[shard] = false;
                    for lie in self.unwilling.values_mut() {
                        lie.remove(&shard);
                    }
                }
                _ => {}
            }
        }
    }

    fn shares(&self, shards: &[View], seat: &View) -> Shares {
        let mut shares = Shares::from([(self.me.clone(), 0)]);
        for view in shards {
            match view {
                View::Mine | View::Coming => *shares.entry(self.me.clone()).or_default() += 1,
                View::Other(name) => *shares.entry(name.clone()).or_default() += 1,
                _ => {}
            }
        }
        if let View::Other(name) = seat {
            shares.entry(name.clone()).or_default();
        }
        shares
    }

    /// Who may be given one more: not who has just lost one.
    fn takes(&self, name: &str) -> bool {
        !self.wavering.contains_key(name)
    }

    /// Whether a member lets a shard lie: its old work may bar just that one.
    fn lets_lie(&self, name: &str, shard: usize) -> bool {
        self.unwilling.get(name).is_some_and(|lie| lie.contains_key(&shard))
    }

    /// Whether a member lets one lie that others may have.
    fn lets_any_lie(&self, name: &str) -> bool {
        let lie = self.unwilling.get(name);
        lie.is_some_and(|lie| lie.keys().any(|shard| !self.broken[*shard]))
    }

    /// The member that has the fewest, of those that may be given one more.
    fn neediest(&self, shard: usize, barred: bool, shares: &Shares) -> Option<String> {
        let may = |name: &str| self.takes(name) && !(barred && name == self.me);
        let takers = shares.iter().filter(|(name, _)| may(name));
        // Where everybody has let it lie, what was in the way may be over.
        let neediest = takers
            .min_by_key(|(name, held)| (self.lets_lie(name, shard), **held, !weight(shard, name)));
        neediest.map(|(name, _)| name.clone())
    }

    /// The same for a shard that is given back: not who lets any lie.
    fn keenest(&self, shares: &Shares) -> Option<String> {
        let takers = shares.iter().filter(|(name, _)| self.takes(name) && !self.lets_any_lie(name));
        let keenest = takers.min_by_key(|(name, held)| (**held, !weight(0, name)));
        keenest.map(|(name, _)| name.clone())
    }

    /// Whom each free shard is for, who is then counted as its holder.
    fn assign(&self, shards: &[View], free: &[usize], shares: &mut Shares) -> Vec<Option<String>> {
        let mut held = shares.clone();
        let mut next = |shard: &usize| {
            let taker = self.neediest(*shard, shards[*shard] == View::Barred, &held)?;
            *held.entry(taker.clone()).or_default() += 1;
            *shares.entry(taker.clone()).or_default() += usize::from(!self.broken[*shard]);
            Some(taker)
        };
        free.iter().map(&mut next).collect()
    }

    /// Who lets a shard lie that is for them is not counted on for a while, so that somebody else takes it.
    fn note_unwilling(
        &mut self,
        now_ms: u64,
        free: &[usize],
        meant: &[Option<String>],
        members: u64,
    ) {
        for (shard, taker) in free.iter().zip(meant) {
            if self.meant_for[*shard] != *taker {
                self.meant_for[*shard].clone_from(taker);
                self.free_since_ms[*shard] = Some(now_ms);
            }
            // What it may not claim yet this member does not let lie.
            let waits =
                taker.as_ref() == Some(&self.me) && !self.is_over(now_ms, self.shown_since_ms);
            if waits {
                self.free_since_ms[*shard] = Some(now_ms);
            }
            let lies = self.lies_for_ms(now_ms, *shard) >= self.patience_ms;
            if let Some(taker) = taker.as_ref().filter(|_| lies) {
                // They are asked one after another.
                let until_ms = now_ms + (UNWILLING_FOR + members) * self.patience_ms;
                self.unwilling.entry(taker.clone()).or_default().insert(*shard, until_ms);
                self.free_since_ms[*shard] = Some(now_ms);
            }
        }
    }

    /// Whether the others have seen what has been so since then.
    fn is_over(&self, now_ms: u64, since_ms: Option<u64>) -> bool {
        since_ms.is_some_and(|since_ms| now_ms - since_ms >= self.settle_ms)
    }

    fn lies_for_ms(&self, now_ms: u64, shard: usize) -> u64 {
        self.free_since_ms[shard].map_or(0, |since_ms| now_ms.saturating_sub(since_ms))
    }

    /// The shard that a newcomer claims: the one for which it is preferred most, and after each patience another one, since that
    /// one may be barred by something that only a claim would show.
    fn first_choice(&mut self, now_ms: u64, shards: &[View], free: &[usize]) -> Option<usize> {
        let left = |tried: &[usize]| {
            let mine = free.iter().copied().filter(|shard| shards[*shard] == View::Free);
            mine.filter(|shard| !tried.contains(shard)).max_by_key(|shard| weight(*shard, &self.me))
        };
        let first = left(&self.tried).or_else(|| left(&[]))?;
        let since_ms = self.first.filter(|(shard, _)| *shard == first).map_or(now_ms, |(_, ms)| ms);
        self.first = Some((first, since_ms));
        if now_ms - since_ms < self.patience_ms {
            return Some(first);
        }
        self.tried.push(first);
        let next = left(&self.tried);
        if next.is_none() {
            self.tried.clear();
        }
        self.first = next.map(|shard| (shard, now_ms));
        next.or(Some(first))
    }

    /// A newcomer claims one shard, and what else is for it once the others have seen that it is there.
    fn claim(
        &mut self,
        now_ms: u64,
        own: usize,
        shards: &[View],
        free: &[usize],
        meant: &[Option<String>],
        competes: &mut [bool],
    ) {
        if planted!(ShardsClaimAll) {
            free.iter().for_each(|shard| competes[*shard] = true);
            return;
        }
        if !self.takes(&self.me) {
            return;
        }
        if !self.is_over(now_ms, self.shown_since_ms) {
            let first = if own == 0 { self.first_choice(now_ms, shards, free) } else { None };
            first.into_iter().for_each(|shard| competes[shard] = true);
            return;
        }
        for (shard, taker) in free.iter().zip(meant) {
            let free = shards[*shard] == View::Free;
            competes[*shard] = free && taker.as_ref() == Some(&self.me);
        }
    }

    /// The shards that this member gives back now, if it was clear for long enough that it has too many.
    fn give(&mut self, now_ms: u64, mut mine: Vec<usize>, mut shares: Shares) -> Vec<usize> {
        let mut gives = Vec::new();
        let apart = if planted!(ShardsEvenByOne) { 1 } else { 2 };
        while let Some(to) = self.keenest(&shares) {
            let most = shares.iter().max_by_key(|(name, held)| (**held, weight(0, name)));
            let Some((from, most)) = most.map(|(name, most)| (name.clone(), *most)) else { break };
            if most < shares[&to] + apart || mine.is_empty() || from == to {
                break;
            }
            if from == self.me {
                let best = mine.iter().enumerate().max_by_key(|(_, shard)| weight(**shard, &to));
                let at = best.map_or(0, |(at, _)| at);
                gives.push(mine.swap_remove(at));
            }
            shares.entry(from).and_modify(|held| *held -= 1);
            shares.entry(to).and_modify(|held| *held += 1);
            if planted!(ShardsEvenByOne) {
                break;
            }
        }
        if gives.is_empty() {
            self.gives_since_ms = None;
            return gives;
        }
        let since_ms = *self.gives_since_ms.get_or_insert(now_ms);
        if now_ms.saturating_sub(since_ms) < self.settle_ms {
            return Vec::new();
        }
        self.gives_since_ms = None;
        gives
    }
}

fn all(shards: &[View], view: &View) -> Vec<usize> {
    (0..shards.len()).filter(|shard| shards[*shard] == *view).collect()
}

/// How much a member is preferred for a shard, by rendezvous hashing: FNV-1a of the name, then SplitMix64.
fn weight(shard: usize, name: &str) -> u64 {
    let mut mixed = name.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    });
    mixed = mixed.wrapping_add((shard as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
