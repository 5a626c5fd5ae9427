//! Streams write numbers to memory and wait for them, where the devices can.

use unisono_emulator::{Capability, Compare, Op};

use crate::answer::{Answer, FEATURE_NOT_SUPPORT, PARAM_INVALID, runtime};
use crate::context::machine;
use crate::stream;

fn checked(address: u64) -> Answer {
    let machine = machine()?;
    if !machine.facts.has(Capability::StreamMemory) {
        return Err(FEATURE_NOT_SUPPORT);
    }
    if !address.is_multiple_of(8) || machine.space.find(address).is_none() {
        return Err(PARAM_INVALID);
    }
    Ok(())
}

runtime! {
    fn aclrtValueWrite(address: u64, value: u64, flag: u32, handle: u64) {
        checked(address)?;
        if flag != 0 {
            return Err(PARAM_INVALID);
        }
        stream::submit(&stream::of(handle)?, Op::Write { address, value, wide: true })
    }

    fn aclrtValueWait(address: u64, value: u64, flag: u32, handle: u64) {
        checked(address)?;
        let compare = match flag {
            0 => Compare::GreaterOrEqual,
            1 => Compare::Equal,
            2 => Compare::And,
            3 => Compare::Nor,
            _ => return Err(PARAM_INVALID),
        };
        stream::submit(&stream::of(handle)?, Op::Wait { address, value, compare, wide: true })
    }
}
