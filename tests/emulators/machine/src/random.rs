//! Random numbers that a seed repeats.

/// SplitMix64 (Steele, Lea and Flood, 2014): small, and good enough to disturb an order.
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

/// Whose numbers they are. Each operation has a sequence of its own, so what is drawn for it hangs on nothing
/// that other threads do meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct User {
    /// Of a device,
    pub device: u32,
    /// of its streams, by the order in which they were made,
    pub stream: u32,
    /// of its operations, by the order in which they were handed over.
    pub operation: u64,
}

impl Random {
    /// The sequence of a user, under a seed.
    #[must_use]
    pub const fn new(seed: u64, user: User) -> Self {
        let stream = (user.device as u64) << 32 | user.stream as u64;
        let mut of_stream = Self(seed ^ stream.wrapping_mul(0xd134_2543_de82_ef95));
        Self(of_stream.next() ^ user.operation.wrapping_mul(0xd134_2543_de82_ef95))
    }

    /// What stands for all that was drawn: the same only if so much of the same sequence was.
    #[must_use]
    pub const fn drawn(mut self) -> u64 {
        self.next()
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
