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
        "share_by_descriptor",
        "Share memory by descriptors, which outlive their maker; else by handles of 64 bytes.",
        true,
    ),
    Param::bool(
        "together",
        "A stream that has nothing under way does a batch of short steps by one kernel. Else each step is a call of the \
         driver.",
        true,
    ),
    Param::bool(
        "graphs",
        "Batches that come again and again run as graphs, one call each, where the driver can. Off: no \
         device has shown yet whether it is faster.",
        false,
    ),
    Param::bool(
        "topology",
        "Ask the management library for links; else devices count as joined by PCIe.",
        true,
    ),
];

/// The values of one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) depth: u64,
    pub(crate) descriptors: bool,
    pub(crate) together: bool,
    pub(crate) graphs: bool,
    pub(crate) topology: bool,
}

impl Options {
    pub(crate) fn parse(params: Params<'_>) -> Result<Self> {
        Ok(Self {
            depth: params.int("stream_depth")?.unsigned_abs(),
            descriptors: params.bool("share_by_descriptor")?,
            together: params.bool("together")?,
            graphs: params.bool("graphs")?,
            topology: params.bool("topology")?,
        })
    }
}
