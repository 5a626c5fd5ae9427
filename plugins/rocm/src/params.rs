//! What the cluster file may set.

use unisono_plugin::{Param, Params, Result};

/// The table.
pub(crate) const TABLE: &[Param] = &[
    Param::int(
        "stream_depth",
        "Operations that one stream may have in the device's queues; more wait in the plugin.",
        "112",
        16,
        1024,
    ),
    Param::bool(
        "uncached",
        "Memory that others map is uncached; else fine-grained, which the device's caches keep coherent.",
        false,
    ),
    Param::bool(
        "dma_copies",
        "Copies between devices go by the DMA engines, which leave the compute units alone.",
        true,
    ),
    Param::bool(
        "write_by_kernel",
        "Streams write to memory by a kernel; else by the runtime's own operation.",
        false,
    ),
    Param::bool(
        "graphs",
        "Batches that come again and again run as graphs, one call each, where the runtime can. Off: no \
         device has shown yet whether it is faster.",
        false,
    ),
    Param::bool(
        "topology",
        "Ask the management library for links; else the runtime, which knows no rates.",
        true,
    ),
];

/// The values of one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) depth: u64,
    pub(crate) uncached: bool,
    pub(crate) dma_copies: bool,
    pub(crate) write_by_kernel: bool,
    pub(crate) graphs: bool,
    pub(crate) topology: bool,
}

impl Options {
    pub(crate) fn parse(params: Params<'_>) -> Result<Self> {
        Ok(Self {
            depth: params.int("stream_depth")?.unsigned_abs(),
            uncached: params.bool("uncached")?,
            dma_copies: params.bool("dma_copies")?,
            write_by_kernel: params.bool("write_by_kernel")?,
            graphs: params.bool("graphs")?,
            topology: params.bool("topology")?,
        })
    }
}
