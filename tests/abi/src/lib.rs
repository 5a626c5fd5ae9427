//! Tests of the plugin contract: the header against its Rust mirror, and plugins in C as a vendor
//! would build them.
//!
//! Other crates' tests use this one to get shared libraries: [`compile_plugin`] with the path of
//! [`example`] or of a [`fixture`].

use std::path::{Path, PathBuf};
use std::process::Command;

mod generate;

pub use generate::layout_header;

/// A path inside the repository.
#[must_use]
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

/// The source of the example plugin.
#[must_use]
pub fn example() -> PathBuf {
    repository("plugins/example-c/example.c")
}

/// The source of a fixture: `minor_1_0`, a plugin of the first minor; `minor_1_10`, one newer than
/// this host.
#[must_use]
pub fn fixture(name: &str) -> PathBuf {
    repository("tests/abi/fixtures")
        .join(name)
        .with_extension("c")
}

/// Compiles a plugin as a vendor would: `cc -shared`, only `include/` on the path, no warnings.
///
/// # Errors
/// What the compiler says, or that there is none.
pub fn compile_plugin(source: &Path, output: &Path) -> Result<(), String> {
    let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    cc.args([
        "-std=c11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread",
    ])
    .arg("-I")
    .arg(repository("include"))
    .arg("-o")
    .arg(output)
    .arg(source);
    run(&mut cc).map(|_| ())
}

/// Runs a command: its standard output.
///
/// # Errors
/// Its command line and standard error, if it cannot start or fails.
pub fn run(command: &mut Command) -> Result<String, String> {
    let result = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if !result.status.success() {
        let words = String::from_utf8_lossy(&result.stderr).into_owned();
        return Err(format!("{command:?}: {}\n{words}", result.status));
    }
    Ok(String::from_utf8_lossy(&result.stdout).into_owned())
}
