//! What the library costs as jobs grow, and the page with its tables.

use anyhow::Result;

use crate::root;
use crate::run::{built, run};

/// Builds what is measured and measures it; writes vendor-docs/results/growth.md, or prints it. Fails if a
/// promise of memory is broken.
pub fn growth(ranks: &[u32], arguments: &[String], dry: bool) -> Result<()> {
    let packages = [
        "unisono-growth",
        "unisono-cli",
        "unisono-plugin-host-so",
        "unisono-plugin-tcp-so",
    ];
    let mut command = built("unisono-growth", &packages)?;
    command.args(arguments);
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
