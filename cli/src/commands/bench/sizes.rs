//! The sizes of a sweep.

use anyhow::{Result, bail};

/// From one size to the next.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// So many times as large.
    Times(u64),
    /// So many bytes more.
    Add(u64),
}

/// The most sizes of a sweep.
const MOST: usize = 100_000;

/// From `min` to `max`, both included.
pub fn sizes(min: u64, max: u64, step: Step) -> Result<Vec<u64>> {
    let mut sizes = Vec::new();
    let mut size = min;
    while size < max {
        sizes.push(size);
        if sizes.len() > MOST {
            bail!("more than {MOST} sizes; choose a larger step");
        }
        let next = match step {
            Step::Times(factor) => size.max(1).saturating_mul(factor),
            Step::Add(bytes) => size.saturating_add(bytes.max(1)),
        };
        size = next;
    }
    sizes.push(max);
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_measured() {
        assert_eq!(sizes(8, 64, Step::Times(2)).unwrap(), [8, 16, 32, 64]);
        assert_eq!(sizes(8, 100, Step::Times(8)).unwrap(), [8, 64, 100]);
        assert_eq!(sizes(0, 3, Step::Times(2)).unwrap(), [0, 2, 3]);
        assert_eq!(sizes(4, 10, Step::Add(4)).unwrap(), [4, 8, 10]);
        assert_eq!(sizes(7, 7, Step::Add(0)).unwrap(), [7]);
        assert!(sizes(0, 1 << 40, Step::Add(1)).is_err());
    }
}
