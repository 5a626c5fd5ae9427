//! The regret of the choice of plans, and the page with its table.

use anyhow::Result;

use crate::machine::{commit, machine, today};
use crate::root;
use crate::run::{cargo, run};

/// Runs the comparison for so many seconds and writes vendor-docs/results/regret.md, or prints it. Of
/// the full set it goes on from the cells of vendor-docs/results/regret.tsv. Where graphs are named, only they are compared;
/// `rest` is handed on.
pub fn regret(
    full: bool,
    seconds: u64,
    seed: u64,
    graphs: &[String],
    rest: &[String],
    dry: bool,
) -> Result<()> {
    let seconds = seconds.to_string();
    let mut arguments = vec!["run", "--release", "--quiet", "-p", "unisono-regret", "--"];
    let seed = seed.to_string();
    arguments.extend(["--seconds", &seconds, "--seed", &seed]);
    if full {
        arguments.push("--full");
    }
    for graph in graphs {
        arguments.extend(["--graph", graph]);
    }
    arguments.extend(rest.iter().map(String::as_str));
    let about = format!("Commit {}, {}, on {}.", commit(), today(), machine());
    arguments.extend(["--about", &about]);
    let commit = commit();
    let results = root().join("vendor-docs/results");
    let page = results.join("regret.md").display().to_string();
    let cells = results.join("regret.tsv").display().to_string();
    if !dry {
        arguments.extend(["--output", &page, "--commit", &commit]);
        if full {
            arguments.extend(["--cells", &cells]);
        }
    }
    run(&mut cargo(&arguments))
}
