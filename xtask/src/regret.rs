//! The regret of the choice of plans, and the page with its table.

use anyhow::Result;

use crate::machine::{commit, machine, today};
use crate::root;
use crate::run::{cargo, run};

/// Runs the comparison for so many seconds and writes vendor-docs/results/regret.md, or prints it.
pub fn regret(full: bool, seconds: u64, dry: bool) -> Result<()> {
    let seconds = seconds.to_string();
    let mut arguments = vec!["run", "--release", "--quiet", "-p", "unisono-regret", "--"];
    arguments.extend(["--seconds", &seconds]);
    if full {
        arguments.push("--full");
    }
    let about = format!("Commit {}, {}, on {}.", commit(), today(), machine());
    arguments.extend(["--about", &about]);
    let page = root().join("vendor-docs/results/regret.md");
    let page = page.display().to_string();
    if !dry {
        arguments.extend(["--output", &page]);
    }
    run(&mut cargo(&arguments))
}
