//! The plugins that tests of whole jobs need.

use std::io::Write;
use std::path::{Path, PathBuf};

/// The plugins of this build, or why there are none. They are other packages' libraries, which
/// cargo does not build for this one's tests.
pub fn plugins() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_BIN_EXE_unisono"))
        .parent()
        .expect("a folder");
    let missing = ["host", "tcp"]
        .map(|name| folder.join(format!("libunisono_plugin_{name}.so")))
        .into_iter()
        .find(|path| !path.exists());
    match missing {
        None => Ok(folder.to_owned()),
        Some(path) => Err(format!("{} is not built", path.display())),
    }
}

/// Notes that a test is skipped, and why: `cargo xtask test` counts them.
pub fn skip(test: &str, why: &str) {
    println!("skipped: {test}: {why}");
    let Some(path) = std::env::var_os("UNISONO_SKIP_LOG") else {
        return;
    };
    let file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path);
    if let Ok(mut file) = file {
        // One write a line: tests of several processes append to it.
        let _ = file.write_all(format!("{test}: {why}\n").as_bytes());
    }
}
