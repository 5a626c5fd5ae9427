//! What a program does that has no kernels.

#![allow(unsafe_code, reason = "floats are read where bytes lie")]

/// `dst[i] = a[i] + b[i]` in `f32`, as the compiler makes it for any processor of the architecture.
///
/// Not inlined, so that every cell has the same code beside it.
#[inline(never)]
pub fn add(dst: &mut [u8], a: &[u8], b: &[u8]) {
    // SAFETY: any bytes are floats.
    let (dst, a, b) = unsafe {
        (
            dst.align_to_mut::<f32>().1,
            a.align_to::<f32>().1,
            b.align_to::<f32>().1,
        )
    };
    for ((dst, a), b) in dst.iter_mut().zip(a).zip(b) {
        *dst = a + b;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operands::Operands;
    use unisono_plugin_host::reduce::Dtype;

    #[test]
    fn every_element_is_added() {
        let mut operands = Operands::new(8192);
        operands.fill(Dtype::F32);
        let (dst, a, b) = operands.get();
        add(dst, a, b);
        let floats = |bytes: &[u8]| -> Vec<f32> {
            let four = bytes.chunks_exact(4);
            four.map(|four| f32::from_le_bytes(four.try_into().unwrap()))
                .collect()
        };
        let sums: Vec<f32> = floats(a)
            .iter()
            .zip(floats(b))
            .map(|(a, b)| a + b)
            .collect();
        assert_eq!(floats(dst), sums);
    }
}
