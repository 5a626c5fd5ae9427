//! Where device memory lies: which copies go between devices.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

/// Memory of another process, whose device is not known here.
pub(crate) const ELSEWHERE: i32 = -1;

/// Blocks by their first address: bytes, and the device that they are memory of.
static BLOCKS: RwLock<BTreeMap<u64, (u64, i32)>> = RwLock::new(BTreeMap::new());

/// Notes a block.
pub(crate) fn insert(base: u64, bytes: u64, device: i32) {
    let mut blocks = BLOCKS.write().unwrap_or_else(PoisonError::into_inner);
    blocks.insert(base, (bytes, device));
}

/// Forgets a block.
pub(crate) fn remove(base: u64) {
    let mut blocks = BLOCKS.write().unwrap_or_else(PoisonError::into_inner);
    blocks.remove(&base);
}

/// Whether two addresses are memory of devices, and of two of them.
pub(crate) fn apart(a: u64, b: u64) -> bool {
    let blocks = BLOCKS.read().unwrap_or_else(PoisonError::into_inner);
    let device = |address: u64| {
        let (base, (bytes, device)) = blocks.range(..=address).next_back()?;
        (address - base < *bytes).then_some(*device)
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
    }
}
