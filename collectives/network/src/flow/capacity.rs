//! The integers that flow.

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// An unsigned integer that capacities are counted in: `u64`, or `u128` where sums could be larger.
///
/// Sums of capacities at one vertex must fit; nothing here checks that again.
pub trait Capacity:
    Copy
    + Debug
    + Default
    + Ord
    + Add<Output = Self>
    + AddAssign
    + Sub<Output = Self>
    + SubAssign
    + Into<u128>
    + sealed::Sealed
{
    /// Nothing.
    const ZERO: Self;
    /// A supply that never runs out.
    const UNLIMITED: Self;
}

impl Capacity for u64 {
    const ZERO: Self = 0;
    const UNLIMITED: Self = Self::MAX;
}

impl Capacity for u128 {
    const ZERO: Self = 0;
    const UNLIMITED: Self = Self::MAX;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for u128 {}
}
