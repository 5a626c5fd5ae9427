//! Files that follow from the plugin contract.

use anyhow::Result;

use crate::run::{cargo, run};

/// Writes the layout table for plugins in C anew.
pub fn write() -> Result<()> {
    run(
        cargo(&["test", "--quiet", "--package", "unisono-abi-tests"])
            .env("UNISONO_WRITE_LAYOUT", "1"),
    )
}
