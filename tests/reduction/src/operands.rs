//! The memory that is reduced.

use unisono_plugin_host::reduce::Dtype;

/// Two operands, and where the result goes.
pub struct Operands {
    /// Bytes of each.
    pub size: usize,
    a: Pages,
    b: Pages,
    dst: Pages,
}

impl Operands {
    /// Three of this many bytes, each written once so that it is there.
    pub fn new(size: usize) -> Self {
        let pages = || Pages::new(size);
        Self {
            size,
            a: pages(),
            b: pages(),
            dst: pages(),
        }
    }

    /// Fills both with values of a type: floats from 1 to 2, which neither overflow nor underflow, as those take
    /// some processors longer.
    pub fn fill(&mut self, dtype: Dtype) {
        fill(self.a.get(), dtype, 1);
        fill(self.b.get(), dtype, 2);
    }

    /// The result, then both operands.
    pub fn get(&mut self) -> (&mut [u8], &[u8], &[u8]) {
        (self.dst.get(), self.a.get(), self.b.get())
    }
}

/// Bytes that begin with a page.
struct Pages {
    bytes: Vec<u8>,
    at: usize,
    size: usize,
}

impl Pages {
    fn new(size: usize) -> Self {
        let bytes = vec![1; size + 4096];
        let at = bytes.as_ptr().align_offset(4096);
        Self { bytes, at, size }
    }

    fn get(&mut self) -> &mut [u8] {
        &mut self.bytes[self.at..self.at + self.size]
    }
}

fn fill(to: &mut [u8], dtype: Dtype, seed: u64) {
    let (ones, mantissa) = bits(dtype);
    let width = dtype.bytes();
    let mut state = seed;
    for element in to.chunks_exact_mut(width) {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let value = ones | (state >> (64 - mantissa));
        element.copy_from_slice(&value.to_le_bytes()[..width]);
    }
}

/// The bits of 1.0, and how many below them are free; all of an integer are.
fn bits(dtype: Dtype) -> (u64, u32) {
    match dtype {
        Dtype::F64 => (1.0_f64.to_bits(), 52),
        Dtype::F32 => (1.0_f32.to_bits().into(), 23),
        Dtype::Bf16 => (0x3f80, 7),
        Dtype::F16 => (0x3c00, 10),
        Dtype::F8e4m3 => (0x38, 3),
        Dtype::F8e5m2 => (0x3c, 2),
        integer => (0, 8 * integer.bytes() as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_lie_between_one_and_two() {
        let mut bytes = [0; 4096];
        fill(&mut bytes, Dtype::F32, 1);
        let floats = bytes
            .chunks_exact(4)
            .map(|four| f32::from_le_bytes(four.try_into().unwrap()));
        assert!(floats.clone().all(|value| (1.0..2.0).contains(&value)));
        assert!(floats.clone().any(|value| value > 1.5) && floats.clone().any(|value| value < 1.5));
    }
}
