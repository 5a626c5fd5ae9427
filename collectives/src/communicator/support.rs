//! What the devices of a communicator can compute, asked of each when it is formed.
//!
//! A call that one device cannot do is refused on every rank alike, before anything is sent: the ranks
//! tell each other what they can, and each looks at what all can.

use unisono_abi::command_kind::{CALL, REDUCE, SCALE};
use unisono_hal::{Device, Place, SupportQuery};

use super::wire::{Reader, put_bytes};
use crate::error::{Error, Result};
use crate::{DataType, ReduceOp, ReductionKind};

/// Reductions that are commands: an average is a sum.
const COMMANDS: [ReduceOp; 7] = [
    ReduceOp::Sum,
    ReduceOp::Prod,
    ReduceOp::Min,
    ReduceOp::Max,
    ReduceOp::And,
    ReduceOp::Or,
    ReduceOp::Xor,
];
/// Bits of each type: one a reduction, and one for scaling.
const BITS: u32 = COMMANDS.len() as u32 + 1;
/// The bit of a user's function, behind those of all types.
const FUNCTION: u32 = DataType::ALL.len() as u32 * BITS;

/// What one rank's device can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Support {
    /// Bits.
    can: u128,
    /// The device's name.
    device: String,
}

/// Something that a call needs of every device.
#[derive(Clone, Copy, Debug)]
enum Need {
    Reduce(DataType, ReduceOp),
    Scale(DataType),
    Function,
}

impl Need {
    fn bit(self) -> u32 {
        let place = |dtype: DataType| {
            let types = DataType::ALL.iter();
            types.take_while(|of| **of != dtype).count() as u32 * BITS
        };
        match self {
            Self::Reduce(dtype, op) => {
                let at = COMMANDS.iter().position(|of| of.code() == op.code());
                place(dtype) + at.unwrap_or(0) as u32
            }
            Self::Scale(dtype) => place(dtype) + BITS - 1,
            Self::Function => FUNCTION,
        }
    }

    /// What a device that lacks it does not do.
    fn lacks(self) -> String {
        match self {
            Self::Reduce(dtype, op) => format!("has no {op} of {dtype}"),
            Self::Scale(dtype) => format!("cannot multiply {dtype} by a factor"),
            Self::Function => {
                "cannot call a function of its process: a reduction of the user's own \
                               runs where the CPU computes"
                    .to_owned()
            }
        }
    }
}

impl Support {
    /// What a device says.
    pub(super) fn of(device: &Device) -> Self {
        let has = |command, dtype, reduction| {
            device.supports(&SupportQuery {
                command,
                dtype,
                reduction,
                source: Place::Device,
                destination: Place::Device,
            })
        };
        let mut can = 0;
        let mut note = |need: Need, has: bool| can |= u128::from(has) << need.bit();
        for dtype in DataType::ALL {
            for op in COMMANDS.into_iter().filter(|op| op.applies_to(dtype)) {
                let need = Need::Reduce(dtype, op);
                note(need, has(REDUCE, dtype.code(), op.code()));
            }
            note(Need::Scale(dtype), has(SCALE, dtype.code(), 0));
        }
        note(Need::Function, has(CALL, DataType::U8.code(), 0));
        Self {
            can,
            device: device.info().name.clone(),
        }
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_bytes(out, &self.can.to_le_bytes());
        put_bytes(out, self.device.as_bytes());
    }

    pub(super) fn parse(reader: &mut Reader<'_>) -> Option<Self> {
        let can = u128::from_le_bytes(reader.bytes()?.try_into().ok()?);
        let device = String::from_utf8_lossy(reader.bytes()?).into_owned();
        Some(Self { can, device })
    }
}

/// Refuses a call that a rank's device cannot do, on every rank with the same words. One rank alone
/// combines nothing.
pub(super) fn check(
    ranks: &[Support],
    call: &'static str,
    dtype: DataType,
    reduction: ReductionKind,
) -> Result<()> {
    let reduces = ranks.len() > 1;
    let needs = match reduction {
        ReductionKind::Op(ReduceOp::Avg) => {
            return check(ranks, call, dtype, ReductionKind::Op(ReduceOp::Sum));
        }
        ReductionKind::Op(op) => [reduces.then_some(Need::Reduce(dtype, op)), None],
        ReductionKind::ScaledSum => [
            Some(Need::Scale(dtype)),
            reduces.then_some(Need::Reduce(dtype, ReduceOp::Sum)),
        ],
        ReductionKind::User(_) => [reduces.then_some(Need::Function), None],
    };
    for need in needs.into_iter().flatten() {
        let lacking = ranks.iter().position(|of| of.can >> need.bit() & 1 == 0);
        if let Some(rank) = lacking {
            let (device, lacks) = (&ranks[rank].device, need.lacks());
            return Err(Error::Unsupported {
                call,
                why: format!("device `{device}` of rank {rank} {lacks}"),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use std::collections::BTreeSet;

    fn all_but(need: Option<Need>, device: &str) -> Support {
        let can = (1 << (FUNCTION + 1)) - 1;
        Support {
            can: need.map_or(can, |need| can & !(1 << need.bit())),
            device: device.to_owned(),
        }
    }

    #[test]
    fn each_need_has_a_bit_of_its_own() {
        let mut bits = BTreeSet::from([Need::Function.bit()]);
        for dtype in DataType::ALL {
            assert!(bits.insert(Need::Scale(dtype).bit()));
            for op in COMMANDS {
                assert!(bits.insert(Need::Reduce(dtype, op).bit()));
            }
        }
        assert!(bits.iter().all(|bit| *bit < 128));
    }

    #[test]
    fn what_one_lacks_all_refuse_by_its_name() {
        let lacks = Need::Reduce(DataType::F8E4M3, ReduceOp::Sum);
        let ranks = [all_but(None, "cpu"), all_but(Some(lacks), "npu")];
        let check = |dtype, how| check(&ranks, "all_reduce", dtype, how);
        let sum = ReductionKind::Op(ReduceOp::Sum);
        assert!(check(DataType::F32, sum).is_ok());
        assert!(check(DataType::F8E4M3, ReductionKind::Op(ReduceOp::Max)).is_ok());
        for how in [
            sum,
            ReductionKind::Op(ReduceOp::Avg),
            ReductionKind::ScaledSum,
        ] {
            let error = check(DataType::F8E4M3, how).unwrap_err().to_string();
            let why = "device `npu` of rank 1 has no sum of f8e4m3";
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn it_travels() {
        let sent = all_but(Some(Need::Function), "some device");
        let mut bytes = Vec::new();
        sent.put(&mut bytes);
        assert_eq!(Support::parse(&mut Reader(&bytes)), Some(sent));
        let cut = &bytes[..bytes.len() - 1];
        assert_eq!(Support::parse(&mut Reader(cut)), None);
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..80), length in 0..40_u32) {
            let _ = Support::parse(&mut Reader(&bytes));
            // The bits are 16 bytes: whatever a device is called, and however many it says there are.
            let bits = length.to_le_bytes().into_iter().chain(bytes);
            let bits: Vec<u8> = bits.collect();
            let parsed = Support::parse(&mut Reader(&bits));
            prop_assert!(length == 16 || parsed.is_none());
            if let Some(support) = parsed {
                let ranks = [support.clone(), support];
                for how in [ReductionKind::Op(ReduceOp::Sum), ReductionKind::ScaledSum] {
                    let _ = super::check(&ranks, "all_reduce", DataType::F32, how);
                }
            }
        }

        #[test]
        fn a_changed_bit_is_other_support_or_none(at: prop::sample::Index, bit in 0..8_u32) {
            let mut bytes = Vec::new();
            let sent = all_but(None, "some device");
            sent.put(&mut bytes);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert_ne!(Support::parse(&mut Reader(&bytes)), Some(sent));
        }
    }
}
