//! Where device memory lies: which copies go between devices.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

/// Memory of another process, whose device is not known here.
pub(crate) const ELSEWHERE: i32 = -1;

/// Blocks by their first address.
static BLOCKS: RwLock<BTreeMap<u64, Known>> = RwLock::new(BTreeMap::new());

struct Known {
    bytes: u64,
    /// The device that it is memory of.
    device: i32,
    /// Another process's memory may have one address for all devices that it is mapped for.
    count: u32,
}

/// Notes a block.
pub(crate) fn insert(base: u64, bytes: u64, device: i32) {
    let mut blocks = BLOCKS.write().unwrap_or_else(PoisonError::into_inner);
    let count = 0;
    let known = blocks.entry(base).or_insert(Known {
        bytes,
        device,
        count,
    });
    known.count += 1;
}

/// Forgets a block, as often as it was noted.
pub(crate) fn remove(base: u64) {
    let mut blocks = BLOCKS.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = blocks.get_mut(&base) {
        known.count -= 1;
        if known.count == 0 {
            blocks.remove(&base);
        }
    }
}

/// Whether two addresses are memory of devices, and of two of them.
pub(crate) fn apart(a: u64, b: u64) -> bool {
    let blocks = BLOCKS.read().unwrap_or_else(PoisonError::into_inner);
    let device = |address: u64| {
        let (base, known) = blocks.range(..=address).next_back()?;
        (address - base < known.bytes).then_some(known.device)
    };
    matches!((device(a), device(b)), (Some(a), Some(b)) if a != b || a == ELSEWHERE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_devices_are_apart() {
        insert(1000, 100, 0);
        insert(2000, 100, 1);
        insert(3000, 100, ELSEWHERE);
        assert!(apart(1000, 2099));
        assert!(apart(2000, 3000));
        assert!(!apart(1000, 1099), "one device");
        assert!(!apart(1000, 2100), "past its end: the host's");
        remove(2000);
        assert!(!apart(1000, 2099));
        insert(3000, 100, ELSEWHERE);
        remove(3000);
        assert!(apart(1000, 3099), "mapped once more");
        remove(3000);
        assert!(!apart(1000, 3099));
    }
}
