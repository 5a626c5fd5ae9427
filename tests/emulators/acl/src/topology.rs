//! How devices are joined.

use unisono_emulator::{BoxFile, End};

use crate::answer::{PARAM_INVALID, give, runtime};
use crate::context::{device, machine};

/// Bits.
const HCCS: u64 = 0x1;
const PHB: u64 = 0x8;
const SYS: u64 = 0x10;
const HCCS_SWITCHED: u64 = 0x40;

fn joined(facts: &BoxFile, a: u32, b: u32) -> u64 {
    let up = |from, to| {
        let mut lanes = facts.lanes_of(from).into_iter().filter(|lane| lane.up);
        lanes.any(|lane| lane.end == End::Device(to))
    };
    let switched = |of| {
        let mut lanes = facts.lanes_of(of).into_iter().filter(|lane| lane.up);
        lanes.any(|lane| matches!(lane.end, End::Switch(_)))
    };
    if up(a, b) && up(b, a) {
        HCCS
    } else if switched(a) && switched(b) {
        HCCS_SWITCHED
    } else if facts.numa_of(a) == facts.numa_of(b) {
        PHB
    } else {
        SYS
    }
}

runtime! {
    fn aclrtGetDevicesTopo(a: u32, b: u32, bits: *mut u64) {
        let (a, b) = (device(a.cast_signed())?, device(b.cast_signed())?);
        if a.index == b.index {
            return Err(PARAM_INVALID);
        }
        // SAFETY: the caller's.
        unsafe { give(bits, joined(&machine()?.facts, a.index, b.index)) }
    }
}
