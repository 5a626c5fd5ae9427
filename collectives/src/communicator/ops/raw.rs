//! The raw form of every collective, for callers with their own addresses: C, Python, devices.
#![allow(unsafe_code, reason = "takes addresses")]

use std::sync::Arc;

use unisono_plan::Op;
use unisono_plan::geometry::Sizes;

use crate::communicator::asked::{Asked, Ends};
use crate::communicator::{Communicator, Work};
use crate::error::{Error, Result};
use crate::signature::CallKind;
use crate::{DataType, Reduction};

/// A call by addresses.
#[derive(Clone, Debug)]
pub struct RawCall<'a> {
    /// What is called.
    pub op: Op,
    /// The address of the input; any where this rank has none.
    pub input: u64,
    /// The address of the output; any where this rank has none.
    pub output: u64,
    /// How long the message is. [`Sizes::Parts`] makes an all_gather, reduce_scatter or all_to_all
    /// the form with unequal blocks.
    pub sizes: Sizes<'a>,
    /// The type of the elements; of no meaning for a barrier.
    pub dtype: DataType,
    /// How contributions are combined, for operations that combine.
    pub reduction: Option<Reduction>,
}

impl Communicator {
    /// Runs a call; returns when it is complete.
    ///
    /// # Safety
    /// `input` and `output` are addresses that this communicator's device can read and write for
    /// as many elements as the op says (see [`Op::holds`]); nothing else writes them, nor reads
    /// the output, until the call returns. They may overlap only in the way of an in-place call.
    ///
    /// # Errors
    /// As the safe forms.
    pub unsafe fn call_raw(&self, call: RawCall<'_>) -> Result<()> {
        let asked = self.asked(&call)?;
        self.shared
            .run(self.request(asked, call.dtype, call.reduction))
    }

    /// [`Communicator::call_raw`] that returns at once; the call is complete when the work is. Any thread; of a call of
    /// up to 32 KiB what needs no peer may be done by this one.
    ///
    /// # Safety
    /// As there, until the work is complete.
    ///
    /// # Errors
    /// As the safe forms.
    pub unsafe fn start_raw(&self, call: RawCall<'_>) -> Result<Work> {
        let asked = self.asked(&call)?;
        let request = self.request(asked, call.dtype, call.reduction);
        let number = self.shared.start(request, None)?;
        Ok(Work::new(Arc::clone(&self.shared), number))
    }

    pub(in crate::communicator) fn asked<'a>(&self, call: &RawCall<'a>) -> Result<Asked<'a>> {
        let (op, name) = (call.op, call.op.name());
        let kind = match call.sizes {
            Sizes::Equal(count) => {
                let ranks = u64::from(self.size());
                if op.has_block_per_rank() && !count.is_multiple_of(ranks) {
                    return Err(Error::invalid(
                        name,
                        format!("{count} elements are no multiple of {ranks} ranks"),
                    ));
                }
                CallKind::of(op)
            }
            Sizes::Parts(parts) => {
                let wanted = op.parts(self.size()) as usize;
                if parts.len() != wanted {
                    return Err(Error::invalid(
                        name,
                        format!("{} counts, not {wanted}", parts.len()),
                    ));
                }
                self.here().fit(op, parts)?;
                CallKind::with_parts(op).ok_or_else(|| {
                    Error::invalid(name, "it has no form with blocks of unequal lengths")
                })?
            }
        };
        if op.reduces() != call.reduction.is_some() {
            return Err(Error::invalid(
                name,
                if op.reduces() {
                    "it needs a reduction"
                } else {
                    "it combines nothing, so it takes no reduction"
                },
            ));
        }
        Ok(Asked {
            op,
            kind,
            sizes: call.sizes,
            ends: Ends {
                input: call.input,
                output: call.output,
            },
        })
    }
}
