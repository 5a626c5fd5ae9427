//! unisono beside other collective libraries on this machine.

use anyhow::Result;

use crate::run::{built, run};

/// Builds what is measured and starts the comparison with these arguments.
pub fn peers(arguments: &[String]) -> Result<()> {
    let packages = [
        "unisono-peers",
        "unisono-cli",
        "unisono-plugin-host-so",
        "unisono-plugin-tcp-so",
    ];
    let mut command = built("unisono-beside", &packages)?;
    command.args(arguments);
    run(&mut command)
}
