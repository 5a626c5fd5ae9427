//! What a device's copy engine does with elements on their way: the types that it has, and no more.

use half::{bf16, f16};
use unisono_emulator::Fold;

/// Kinds.
const SUM: i32 = 10;
const MAX: i32 = 11;
const MIN: i32 = 12;

/// Folds bytes as elements of a type.
fn each<const N: usize, T>(
    to: &mut [u8],
    from: &[u8],
    read: fn([u8; N]) -> T,
    write: fn(T) -> [u8; N],
    how: fn(T, T) -> T,
) {
    let (to, _) = to.as_chunks_mut::<N>();
    let (from, _) = from.as_chunks::<N>();
    for (to, from) in to.iter_mut().zip(from) {
        *to = write(how(read(*to), read(*from)));
    }
}

macro_rules! integer {
    ($type:ty, $kind:expr) => {
        match $kind {
            SUM => |to, from| {
                let (read, write) = (<$type>::from_ne_bytes, <$type>::to_ne_bytes);
                each(to, from, read, write, <$type>::wrapping_add)
            },
            MAX => |to, from| {
                each(
                    to,
                    from,
                    <$type>::from_ne_bytes,
                    <$type>::to_ne_bytes,
                    Ord::max,
                )
            },
            MIN => |to, from| {
                each(
                    to,
                    from,
                    <$type>::from_ne_bytes,
                    <$type>::to_ne_bytes,
                    Ord::min,
                )
            },
            _ => return None,
        }
    };
}

/// Least and greatest keep the number where one is NaN: nothing is said of it, so nobody may rely on
/// more.
macro_rules! float {
    ($type:ty, $kind:expr) => {
        match $kind {
            SUM => |to, from| {
                let (read, write) = (<$type>::from_ne_bytes, <$type>::to_ne_bytes);
                each(to, from, read, write, |a, b| a + b)
            },
            MAX => |to, from| {
                each(
                    to,
                    from,
                    <$type>::from_ne_bytes,
                    <$type>::to_ne_bytes,
                    <$type>::max,
                )
            },
            MIN => |to, from| {
                each(
                    to,
                    from,
                    <$type>::from_ne_bytes,
                    <$type>::to_ne_bytes,
                    <$type>::min,
                )
            },
            _ => return None,
        }
    };
}

/// How elements of a type are folded, and their size. The first generation has fewer types.
pub fn of(dtype: i32, kind: i32, first: bool) -> Option<(Fold, u64)> {
    let found: (Fold, u64) = match dtype {
        0 => (float!(f32, kind), 4),
        1 => (float!(f16, kind), 2),
        2 if !first => (integer!(i8, kind), 1),
        3 => (integer!(i32, kind), 4),
        6 => (integer!(i16, kind), 2),
        27 if !first => (float!(bf16, kind), 2),
        _ => return None,
    };
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_folded_in_place() {
        let (fold, size) = of(3, SUM, false).unwrap();
        let mut to = [1_i32, i32::MAX].map(i32::to_ne_bytes).concat();
        fold(&mut to, &[5_i32, 1].map(i32::to_ne_bytes).concat());
        assert_eq!(to, [6_i32, i32::MIN].map(i32::to_ne_bytes).concat());
        assert_eq!(size, 4);
    }

    #[test]
    fn what_it_has_not_is_none() {
        assert!(of(9, SUM, false).is_none(), "i64");
        assert!(of(27, SUM, true).is_none(), "bf16 on the first generation");
        assert!(of(0, 13, false).is_none(), "a product");
    }
}
