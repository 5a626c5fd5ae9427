//! What a vendor runs against a plugin.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::run::{cargo, run};

/// Builds the conformance suite and runs it against one library. Paths are taken from where the command
/// is called; `rest` goes to the suite as it is.
pub fn conformance(plugin: &Path, expect: Option<&Path>, rest: &[String]) -> Result<()> {
    let plugin = found(plugin)?;
    let mut command = cargo(&["run", "--quiet", "-p", "unisono-conformance", "--"]);
    command.arg(plugin);
    if let Some(expect) = expect {
        command.arg("--expect").arg(found(expect)?);
    }
    run(command.args(rest))
}

/// A file by its whole path.
fn found(path: &Path) -> Result<PathBuf> {
    path.canonicalize()
        .with_context(|| format!("{} is not there", path.display()))
}
