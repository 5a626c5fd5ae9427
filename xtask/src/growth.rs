//! What the library costs as jobs grow, and the page with its tables.

use std::process::Command;

use anyhow::Result;

use crate::machine::{commit, machine, today};
use crate::run::{cargo, run};
use crate::{root, target};

/// Builds what is measured and measures it; writes vendor-docs/results/growth.md, or prints it. Fails if a
/// promise of memory is broken.
pub fn growth(ranks: &[u32], arguments: &[String], dry: bool) -> Result<()> {
    let mut build = vec!["build", "--release", "--quiet"];
    for package in [
        "unisono-growth",
        "unisono-cli",
        "unisono-plugin-host-so",
        "unisono-plugin-tcp-so",
    ] {
        build.extend(["--package", package]);
    }
    run(&mut cargo(&build))?;
    let about = format!("Commit {}, {}, on {}.", commit(), today(), machine());
    // Not by `cargo run`: for one package alone it would choose other features and build anew.
    let mut command = Command::new(target(false).join("unisono-growth"));
    command.current_dir(root());
    command.args(["--about", &about]).args(arguments);
    if !ranks.is_empty() {
        let ranks: Vec<String> = ranks.iter().map(u32::to_string).collect();
        command.args(["--ranks", &ranks.join(",")]);
    }
    if !dry {
        let page = root().join("vendor-docs/results/growth.md");
        command.arg("--output").arg(page);
    }
    run(&mut command)
}
