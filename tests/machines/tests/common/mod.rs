//! Running the scripts that make machines.

use std::path::Path;
use std::process::{Command, Stdio};

use unisono_tests::{skip, soaking};

/// What a script ends with that cannot run here; its last line says why.
const SKIPPED: i32 = 77;

/// The build that these tests are of: a soak's is the release build.
fn binaries() -> &'static Path {
    let program = Path::new(env!("CARGO_BIN_EXE_unisono-machines"));
    program.parent().expect("a program is in a folder")
}

/// Runs a script of `tests/`, which must succeed; its lines are shown, and kept by a soak.
pub fn script(test: &str, path: &str, arguments: &[&str], environment: &[(&str, &str)]) {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let output = Command::new(tests.join(path))
        .args(arguments)
        .env("UNISONO_TEST_BINARIES", binaries())
        .env("UNISONO_TEST_FULL", if soaking() { "1" } else { "0" })
        .envs(environment.iter().copied())
        .stderr(Stdio::inherit())
        .output()
        .unwrap_or_else(|error| panic!("{path}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout);
    if output.status.code() == Some(SKIPPED) {
        let why = text.lines().last().unwrap_or("it does not say why");
        let why = why.trim_start_matches("skipped: ");
        if soaking() {
            println!("soak: skipped: {test}: {why}");
        }
        return skip(test, why);
    }
    for line in text.lines() {
        // A soak's summary has the lines that begin so.
        let mark = if soaking() { "soak: " } else { "" };
        println!("{mark}{line}");
    }
    assert!(output.status.success(), "{path}: {}\n{text}", output.status);
}
