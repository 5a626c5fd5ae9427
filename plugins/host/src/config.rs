//! Parameters, and what an instance derives from them once.

use std::time::Duration;

use unisono_plugin::{Param, Params, Result};

use crate::cpu::Isa;
use crate::reduce::{Dtype, Kernel, Reduction};

/// The plugin's parameter table.
pub(crate) const PARAMS: &[Param] = &[
    Param::int(
        "spin",
        "How often a poll looks at a flag before it says that it waits.",
        "20",
        1,
        100_000,
    ),
    Param::bytes(
        "queue_bytes",
        "Bytes of commands that a stream holds; submit takes no more than fit.",
        "64KiB",
        1024,
        1 << 30,
    ),
    Param::bytes(
        "streaming_threshold",
        "From this size on, pieces marked as streaming are stored past the caches.",
        "32KiB",
        0,
        i64::MAX,
    ),
    Param::bytes(
        "shm_bandwidth",
        "Bytes per second that the link graph assumes between two processes of a node.",
        "10000000000",
        1,
        i64::MAX,
    ),
    Param::duration(
        "shm_latency",
        "What the link graph assumes that a signal takes between two processes of a node.",
        "200ns",
        0,
        1_000_000_000,
    ),
    Param::bytes(
        "reduce_bandwidth",
        "Bytes of result per second that the link graph assumes of one reduction.",
        "10000000000",
        1,
        i64::MAX,
    ),
];

/// An instance's settings.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) spin: u32,
    pub(crate) queue_words: usize,
    pub(crate) streaming_threshold: u64,
    pub(crate) shm_bandwidth: u64,
    pub(crate) shm_latency: Duration,
    pub(crate) reduce_bandwidth: u64,
    kernels: Vec<Option<Kernel>>,
}

impl Config {
    /// Reads the parameters and picks the kernels for this CPU.
    pub(crate) fn new(params: &Params<'_>) -> Result<Self> {
        Ok(Self {
            spin: u32::try_from(params.int("spin")?).unwrap_or(u32::MAX),
            queue_words: usize::try_from(params.bytes("queue_bytes")? / 8).unwrap_or(usize::MAX),
            streaming_threshold: params.bytes("streaming_threshold")?,
            shm_bandwidth: params.bytes("shm_bandwidth")?,
            shm_latency: params.duration("shm_latency")?,
            reduce_bandwidth: params.bytes("reduce_bandwidth")?,
            kernels: kernels(Isa::best()),
        })
    }

    /// The kernel for the codes of a command, `None` if they name none.
    pub(crate) fn kernel(&self, dtype: u16, reduction: u16) -> Option<&Kernel> {
        let (dtype, reduction) = (Dtype::from_code(dtype)?, Reduction::from_code(reduction)?);
        self.kernels.get(index(dtype, reduction))?.as_ref()
    }
}

fn index(dtype: Dtype, reduction: Reduction) -> usize {
    (dtype as usize) * 8 + reduction as usize
}

fn kernels(isa: Isa) -> Vec<Option<Kernel>> {
    let mut kernels = Vec::new();
    for &dtype in Dtype::ALL {
        for &reduction in Reduction::ALL {
            let at = index(dtype, reduction);
            kernels.resize(kernels.len().max(at + 1), None);
            kernels[at] = Kernel::new(isa, dtype, reduction);
        }
    }
    kernels
}

#[cfg(test)]
impl Config {
    /// Settings for tests, which need no host.
    pub(crate) fn for_tests() -> Self {
        Self {
            spin: 10,
            queue_words: 1024,
            streaming_threshold: 4096,
            shm_bandwidth: 1,
            shm_latency: Duration::from_nanos(200),
            reduce_bandwidth: 1,
            kernels: kernels(Isa::best()),
        }
    }
}
