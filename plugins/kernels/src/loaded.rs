//! The kernels of one device, looked up by name once.

use std::collections::HashMap;

use crate::{REDUCTIONS, TYPES, reduction, scale};

/// Functions of a vendor's runtime, `F`, by what they do.
#[derive(Clone, Debug)]
pub struct Loaded<F> {
    reductions: HashMap<(u16, u16), F>,
    scales: HashMap<u16, F>,
    /// Copies pieces at strides.
    pub copy: F,
    /// Copies to several devices at once.
    pub copies: F,
    /// Compares words behind a wait.
    pub check: F,
    /// SIGNAL with its counter in memory.
    pub signal: F,
    /// WAIT with its counter in memory.
    pub wait: F,
    /// Writes to memory and waits for it.
    pub operate: F,
    /// The same, and comparisons of words, from a table in memory.
    pub replay: F,
}

impl<F: Copy> Loaded<F> {
    /// All of them, each by `get` of its name.
    ///
    /// # Errors
    /// The first that `get` gives.
    pub fn load<E>(mut get: impl FnMut(&str) -> Result<F, E>) -> Result<Self, E> {
        let (mut reductions, mut scales) = (HashMap::new(), HashMap::new());
        for dtype in 1..=TYPES.len() as u16 {
            for op in 1..=REDUCTIONS.len() as u16 {
                if let Some(name) = reduction(dtype, op) {
                    reductions.insert((dtype, op), get(&name)?);
                }
            }
            if let Some(name) = scale(dtype) {
                scales.insert(dtype, get(&name)?);
            }
        }
        Ok(Self {
            reductions,
            scales,
            copy: get("unisono_copy")?,
            copies: get("unisono_copies")?,
            check: get("unisono_check")?,
            signal: get("unisono_signal")?,
            wait: get("unisono_wait")?,
            operate: get("unisono_operate")?,
            replay: get("unisono_replay")?,
        })
    }

    /// The kernel for a reduction of a type, both by their numbers in the contract.
    #[must_use]
    pub fn reduction(&self, dtype: u16, reduction: u16) -> Option<F> {
        self.reductions.get(&(dtype, reduction)).copied()
    }

    /// The kernel that scales a type.
    #[must_use]
    pub fn scale(&self, dtype: u16) -> Option<F> {
        self.scales.get(&dtype).copied()
    }
}
