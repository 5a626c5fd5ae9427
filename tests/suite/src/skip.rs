//! Tests that cannot run here say so, and are counted.

use std::fs::OpenOptions;
use std::io::Write;

/// Notes that a test is skipped, and why; the test then returns.
pub fn skip(test: &str, why: &str) {
    println!("skipped: {test}: {why}");
    let Some(path) = std::env::var_os("UNISONO_SKIP_LOG") else {
        return;
    };
    let file = OpenOptions::new().create(true).append(true).open(path);
    if let Ok(mut file) = file {
        // One write a line: tests of several processes append to it.
        let _ = file.write_all(format!("{test}: {why}\n").as_bytes());
    }
}
