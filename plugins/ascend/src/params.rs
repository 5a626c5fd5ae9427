//! What the cluster file may set.

use unisono_plugin::{Param, Params, Result};

use crate::topology::Rates;

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
        "values",
        "Let streams write and wait for numbers in host memory, where a trial at opening shows that \
         they can; else a thread of the plugin does it for them.",
        true,
    ),
    Param::bool(
        "allow_list",
        "Ask the maker of memory to allow each process that maps it; else any process may that knows \
         its key. Processes in different network namespaces cannot ask.",
        true,
    ),
    Param::int(
        "hccs_bytes_per_second",
        "What one link between two devices carries each way where the sender writes; 0: what is known of \
         the model.",
        "0",
        0,
        1_000_000_000_000,
    ),
    Param::int(
        "hccs_read_bytes_per_second",
        "The same where the receiver reads; 0: no faster than where the sender writes, or what is known of \
         the model if the other is 0 as well.",
        "0",
        0,
        1_000_000_000_000,
    ),
];

/// The values of one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) depth: u64,
    pub(crate) values: bool,
    pub(crate) allow_list: bool,
    pub(crate) hccs: Rates,
}

impl Options {
    pub(crate) fn parse(params: Params<'_>) -> Result<Self> {
        Ok(Self {
            depth: params.int("stream_depth")?.unsigned_abs(),
            values: params.bool("values")?,
            allow_list: params.bool("allow_list")?,
            hccs: Rates {
                written: params.int("hccs_bytes_per_second")?.unsigned_abs(),
                read: params.int("hccs_read_bytes_per_second")?.unsigned_abs(),
            },
        })
    }
}
