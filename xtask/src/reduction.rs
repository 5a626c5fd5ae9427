//! The speed of the host plugin's reductions, and the page with its tables.

use anyhow::Result;

use crate::machine::{commit, machine, today};
use crate::root;
use crate::run::{cargo, run};

/// Measures, and writes vendor-docs/results/kernels.md, or prints it.
pub fn reduction(cell_ms: u64, dry: bool) -> Result<()> {
    let mut arguments = vec![
        "run",
        "--release",
        "--quiet",
        "-p",
        "unisono-reduction",
        "--",
    ];
    let cell_ms = cell_ms.to_string();
    arguments.extend(["--cell-ms", &cell_ms]);
    let about = format!("Commit {}, {}, on {}.", commit(), today(), machine());
    arguments.extend(["--about", &about]);
    let page = root().join("vendor-docs/results/kernels.md");
    let page = page.display().to_string();
    if !dry {
        arguments.extend(["--output", &page]);
    }
    run(&mut cargo(&arguments))
}
