//! What a batch comes down to: work that is handed to a native stream, in order.
#![allow(
    unsafe_code,
    reason = "calls the runtime with the addresses of commands"
)]

use unisono_plugin::Result;
use unisono_plugin::abi::{CommandCopy, CommandReduce, CommandScale};

use crate::{FlagCommand, FlagKernel, MemoryOperation, Runtime};

/// One piece of work.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// A write to memory, or a wait for it.
    Memory(MemoryOperation),
    /// Compares the words of a flag that was waited for.
    Check(FlagCommand),
    /// A copy.
    Copy(CommandCopy),
    /// A reduction.
    Reduce(CommandReduce),
    /// A multiplication.
    Scale(CommandScale),
}

/// Steps that are written down and not handed over.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) steps: Vec<Step>,
    pub(super) purpose: Purpose,
}

/// What steps are written down for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Only to see what they are: nothing is noted or advanced for them.
    Trial,
    /// To launch a graph.
    Graph,
    /// To do short ones together.
    Together,
}

impl Step {
    /// Hands it over.
    ///
    /// # Safety
    /// Its addresses were checked, and whoever submitted its command keeps them until that is complete.
    pub(super) unsafe fn run<R: Runtime>(&self, runtime: &R, stream: R::Stream) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::Memory(operation) => runtime.operate(stream, &[*operation]),
                Self::Check(on) => runtime.flag(stream, FlagKernel::Check, on),
                Self::Copy(copy) if copy.repeat == 1 => {
                    runtime.copy(stream, copy.dst, copy.src, copy.bytes)
                }
                Self::Copy(copy) => runtime.copy_pieces(stream, copy),
                Self::Reduce(reduce) => runtime.reduce(stream, reduce),
                Self::Scale(scale) => runtime.scale(stream, scale),
            }
        }
    }

    /// Hands it over to a stream that records: as [`run`](Self::run), but for copies, which some runtimes
    /// record in another way. Writes, waits and comparisons are recorded as a table
    /// (`table`), never by this.
    ///
    /// # Safety
    /// As for [`run`](Self::run), for as long as the recording is run.
    pub(super) unsafe fn record<R: Runtime>(&self, runtime: &R, stream: R::Stream) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::Copy(copy) if copy.repeat == 1 => {
                    runtime.record_copy(stream, copy.dst, copy.src, copy.bytes)
                }
                step => step.run(runtime, stream),
            }
        }
    }
}
