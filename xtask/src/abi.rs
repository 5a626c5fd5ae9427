//! Files that follow from the plugin contract.

use anyhow::Result;

use crate::run::{cargo, run};

/// Writes the layout table for plugins in C anew.
pub fn write() -> Result<()> {
    run(&mut cargo(&[
        "run",
        "--quiet",
        "--package",
        "unisono-abi-tests",
        "--bin",
        "generate-layout",
    ]))
}
