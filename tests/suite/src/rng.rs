//! Random numbers from a printed seed: SplitMix64 (Steele, Lea and Flood, 2014).

/// A generator; all ranks that share a seed draw the same.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The seed of this run: `UNISONO_SEED`, else 1.
    #[must_use]
    pub fn seed() -> u64 {
        let text = std::env::var("UNISONO_SEED").ok();
        text.and_then(|text| text.parse().ok()).unwrap_or(1)
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound
    }

    /// One of a list.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len() as u64) as usize]
    }
}
