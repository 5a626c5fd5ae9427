//! A number for the data of a template, by which ranks see that they hold equal ones.

use std::hash::{Hash, Hasher};

use super::Template;

impl Template {
    /// The same for equal templates on every host and architecture; different ones have different
    /// numbers, as far as 64 bits can tell.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
        self.hash(&mut hasher);
        hasher.finish()
    }
}

/// FNV-1a over little-endian bytes. Lengths count 64 bits everywhere.
struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn write_u16(&mut self, number: u16) {
        self.write(&number.to_le_bytes());
    }

    fn write_u32(&mut self, number: u32) {
        self.write(&number.to_le_bytes());
    }

    fn write_u64(&mut self, number: u64) {
        self.write(&number.to_le_bytes());
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::algorithms::Algorithm;
    use crate::template::{Hierarchical, Level, Order};

    use super::*;

    #[test]
    fn equal_templates_have_one_number_and_others_another() {
        let in_runs = |ranks: [u32; 4], run| Template::Ordered {
            algorithm: Algorithm::Ring,
            order: Arc::new(Order::new(ranks).unwrap().in_runs(run)),
        };
        let order = |ranks| in_runs(ranks, 1);
        let top = Level::new([0, 0], Algorithm::Ring);
        let with = |low| {
            let levels = Hierarchical::new([low, top.clone()]).unwrap();
            Template::Hierarchical(Arc::new(levels))
        };
        let levels = |low: [u32; 4]| with(Level::new(low, Algorithm::Ring));
        let weighted = with(Level {
            weights: [2, 1, 1, 1].into(),
            ..Level::new([0, 0, 1, 1], Algorithm::Ring)
        });
        let all = [
            Template::Flat(Algorithm::Ring),
            Template::Flat(Algorithm::Nhr),
            order([0, 2, 1, 3]),
            order([0, 2, 3, 1]),
            in_runs([0, 2, 3, 1], 2),
            levels([0, 0, 1, 1]),
            levels([0, 1, 0, 1]),
            weighted,
        ];
        for (at, one) in all.iter().enumerate() {
            assert_eq!(one.digest(), one.clone().digest());
            for other in &all[at + 1..] {
                assert_ne!(one.digest(), other.digest(), "{one:?} {other:?}");
            }
        }
    }
}
