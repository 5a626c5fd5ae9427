//! Random numbers that a seed repeats.

/// SplitMix64 (Steele, Lea and Flood, 2014): small, and good enough to disturb an order.
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// A sequence of its own for each seed and each number of its user.
    #[must_use]
    pub const fn new(seed: u64, user: u64) -> Self {
        Self(seed ^ user.wrapping_mul(0xd134_2543_de82_ef95))
    }

    /// The next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A number below `bound`; 0 if that is 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next() % bound }
    }
}
