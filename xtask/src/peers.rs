//! unisono beside other collective libraries on this machine.

use std::process::Command;

use anyhow::Result;

use crate::machine::{commit, machine, today};
use crate::run::{cargo, run};
use crate::{root, target};

/// Builds what is measured and starts the comparison with these arguments.
pub fn peers(arguments: &[String]) -> Result<()> {
    let mut build = vec!["build", "--release", "--quiet"];
    for package in [
        "unisono-peers",
        "unisono-cli",
        "unisono-plugin-host-so",
        "unisono-plugin-tcp-so",
    ] {
        build.extend(["--package", package]);
    }
    run(&mut cargo(&build))?;
    let about = format!("Commit {}, {}, on {}.", commit(), today(), machine());
    // Not by `cargo run`: for one package alone it would choose other features and build anew.
    let mut command = Command::new(target(false).join("unisono-beside"));
    command.current_dir(root());
    command.args(["--about", &about]).args(arguments);
    run(&mut command)
}
