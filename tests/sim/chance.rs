//! The one source of chance of a schedule: SplitMix64, so that a seed is a schedule.

/// A stream of pseudo-random numbers.
#[derive(Default)]
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        // Neighbouring seeds must not give neighbouring streams.
        let mut chance = Self(seed ^ 0x5851_F42D_4C95_7F2D);
        chance.next();
        Self(chance.next() ^ seed.rotate_left(32))
    }

    /// A stream from this state on.
    pub fn at(state: u64) -> Self {
        Self(state)
    }

    #[allow(clippy::should_implement_trait)] // Nobody iterates over what never ends.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 for a bound of 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next() % bound }
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub fn per_mille(&mut self, rate: u64) -> bool {
        rate > 0 && self.below(1_000) < rate
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// A duration up to `high`, short ones being likelier: faults that matter are often brief.
    pub fn span(&mut self, high: u64) -> u64 {
        let bound = self.between(0, high);
        self.between(0, bound)
    }
}
