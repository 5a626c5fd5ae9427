//! The suites at full counts, and the summary that is committed with what it vouches for.

use std::fs;
use std::process::Command;

use anyhow::{Result, bail};

use crate::machine::{commit, machine, today};
use crate::root;
use crate::run::{cargo, run, watch};

/// A suite and how it is run.
struct Suite {
    name: &'static str,
    /// Arguments of `cargo`.
    arguments: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
    /// Arguments of `cargo` for what must be built before, in the same environment; without any,
    /// the suite needs the workspace's release build.
    before: &'static [&'static str],
}

impl Suite {
    /// `cargo` with these arguments, in the suite's environment.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = if arguments[0].starts_with('+') {
            // Another toolchain is chosen by rustup's own cargo.
            let mut command = Command::new("cargo");
            command.current_dir(root()).args(arguments);
            command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
            command
        } else {
            cargo(arguments)
        };
        command
            .envs(self.environment.iter().copied())
            .env("UNISONO_SOAK", "1");
        command
    }
}

/// The test file of this name in `tests/suite`.
macro_rules! of_tests {
    ($name:literal) => {
        Suite {
            name: $name,
            arguments: &[
                "test",
                "--release",
                "--package",
                "unisono-tests",
                "--test",
                $name,
                "--",
                "--nocapture",
            ],
            environment: &[],
            before: &[],
        }
    };
}

/// The test file of this name in `tests/machines`.
macro_rules! of_machines {
    ($name:literal, $file:literal) => {
        Suite {
            name: $name,
            arguments: &[
                "test",
                "--release",
                "--package",
                "unisono-machines",
                "--test",
                $file,
                "--",
                "--nocapture",
                "--test-threads=1",
            ],
            environment: &[],
            before: &[],
        }
    };
}

const SUITES: &[Suite] = &[
    // Through Rust, and a part through C.
    Suite {
        name: "ops",
        arguments: &[
            "test",
            "--release",
            "--package",
            "unisono-tests",
            "--test",
            "ops",
            "--test",
            "c_api",
            "--test",
            "streams",
            "--",
            "--nocapture",
        ],
        environment: &[],
        before: &[],
    },
    of_tests!("random"),
    of_tests!("hands"),
    of_tests!("death"),
    of_tests!("strays"),
    of_tests!("progress"),
    of_tests!("sleep"),
    of_tests!("agnostic"),
    of_tests!("init"),
    of_tests!("large"),
    // Emulated devices, also such that do not reach each other, and CPUs beside them.
    Suite {
        name: "mixed",
        arguments: &[
            "test",
            "--release",
            "--package",
            "unisono-emulated-tests",
            "--test",
            "mixed",
            "--test",
            "fleet",
            "--test",
            "collectives",
            "--test",
            "ascend",
            "--",
            "--nocapture",
        ],
        environment: &[],
        before: &[],
    },
    // Collectives in graphs of the program's, replayed a thousand times.
    Suite {
        name: "capture",
        arguments: &[
            "test",
            "--release",
            "--package",
            "unisono-emulated-tests",
            "--test",
            "capture",
            "--",
            "--nocapture",
            "--test-threads=1",
        ],
        environment: &[],
        before: &[],
    },
    of_machines!("roce", "roce_vm"),
    of_machines!("hosts", "hosts"),
    of_machines!("launch", "launch"),
    // What comes from the wire, from launchers and from files, in bytes that nobody sent.
    Suite {
        name: "parsers",
        arguments: &[
            "test",
            "--release",
            "--package",
            "unisono-plugin-tcp",
            "--package",
            "unisono-plugin-roce",
            "--package",
            "unisono-plugin-host",
            "--package",
            "unisono-bootstrap",
            "--package",
            "unisono-cluster",
            "--package",
            "unisono-graph",
            "--package",
            "unisono-collectives",
            "--no-fail-fast",
            "--",
            "break",
            "panic",
            "harm",
            "total",
            "changed",
            "garbage",
            "length",
        ],
        environment: &[("PROPTEST_CASES", "20000")],
        before: &["build", "--release", "--package", "unisono-plugin-tcp"],
    },
    Suite {
        name: "recorded",
        arguments: &[
            "test",
            "--release",
            "--package",
            "unisono-recorded",
            "--",
            "--nocapture",
        ],
        environment: &[],
        before: &[],
    },
    Suite {
        name: "plans",
        arguments: &[
            "test",
            "--release",
            "--package",
            "unisono-plan",
            "--",
            "--nocapture",
        ],
        environment: &[],
        // It is pure, and needs no plugins.
        before: &["test", "--release", "--package", "unisono-plan", "--no-run"],
    },
    // All that runs ranks as threads, with the library, the plugins and the standard library
    // instrumented. `tsan` shows that the plugins are, and that a race in one would be reported.
    Suite {
        name: "threads-tsan",
        arguments: &[
            "+nightly",
            "test",
            "-Zbuild-std",
            "--target",
            "x86_64-unknown-linux-gnu",
            "--package",
            "unisono-tests",
            "--test",
            "random",
            "--test",
            "threads",
            "--test",
            "windows",
            "--test",
            "tsan",
            "--",
            "--nocapture",
        ],
        environment: &[
            // The sanitizer's runtime is linked into programs alone; they export it to the plugins
            // that they load, so that there is one in the process.
            (
                "RUSTFLAGS",
                "-Zsanitizer=thread --cfg tsan -Clink-arg=-Wl,--export-dynamic",
            ),
            // The plugins are found there: it is the tests' own folder.
            ("CARGO_TARGET_DIR", "target/tsan"),
        ],
        before: &[
            "+nightly",
            "build",
            "-Zbuild-std",
            "--target",
            "x86_64-unknown-linux-gnu",
            "--package",
            "unisono-plugin-host-so",
            "--package",
            "unisono-plugin-tcp-so",
        ],
    },
];

/// How a test that did not run begins its line.
const SKIPPED: &str = "skipped: ";

pub fn soak(filter: Option<&str>, dry: bool) -> Result<()> {
    let chosen: Vec<&Suite> = SUITES
        .iter()
        .filter(|suite| filter.is_none_or(|f| suite.name.contains(f)))
        .collect();
    if chosen.is_empty() {
        let names: Vec<_> = SUITES.iter().map(|s| s.name).collect();
        bail!("no such suite; there are {}", names.join(", "));
    }
    if chosen.iter().any(|suite| suite.before.is_empty()) {
        run(&mut cargo(&[
            "build",
            "--release",
            "--workspace",
            "--quiet",
        ]))?;
    }
    let mut failed = Vec::new();
    for suite in chosen {
        println!("== {}", suite.name);
        if !suite.before.is_empty() {
            run(&mut suite.command(suite.before))?;
        }
        let watched = watch(&mut suite.command(suite.arguments))?;
        let facts: Vec<&str> = watched.lines.iter().filter_map(|line| fact(line)).collect();
        let skipped = facts.iter().any(|fact| fact.starts_with(SKIPPED));
        let verdict = match (watched.success, skipped) {
            (false, _) => "FAILED",
            // What did not run vouches for nothing.
            (true, true) => "SKIPPED in part",
            (true, false) => "passed",
        };
        let mut text = format!(
            "# Soak: {}\n\n{verdict} in {:.0?} on {}.\n\n- commit: {}\n- machine: {}\n- command: `cargo xtask soak {}`\n\n",
            suite.name,
            watched.elapsed,
            today(),
            commit(),
            machine(),
            suite.name
        );
        for fact in facts {
            text.push_str(&format!("- {fact}\n"));
        }
        if !dry {
            let folder = root().join("vendor-docs/results");
            fs::create_dir_all(&folder)?;
            fs::write(folder.join(format!("soak-{}.md", suite.name)), text)?;
        }
        if !watched.success || skipped {
            failed.push(suite.name);
        }
    }
    if !failed.is_empty() {
        bail!("failed or skipped: {}", failed.join(", "));
    }
    Ok(())
}

/// What a line of a suite's says for the page, if it says something.
fn fact(line: &str) -> Option<&str> {
    // The first line of a test stands behind the test's name.
    let line = match line
        .strip_prefix("test ")
        .and_then(|rest| rest.split_once(" ... "))
    {
        Some((_, said)) => said,
        None => line,
    };
    // A file of which no test was asked for says nothing.
    let result = || {
        line.strip_prefix("test result: ")
            .filter(|result| !result.starts_with("ok. 0 passed;"))
    };
    line.strip_prefix("soak: ")
        .or_else(result)
        .or_else(|| line.starts_with(SKIPPED).then_some(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_test_says_first_counts_too() {
        assert_eq!(fact("soak: 3 right"), Some("3 right"));
        assert_eq!(fact("test a ... soak: 3 right"), Some("3 right"));
        assert_eq!(
            fact("test a ... soak: skipped: a: why"),
            Some("skipped: a: why")
        );
        assert_eq!(fact("test result: ok. 1 passed"), Some("ok. 1 passed"));
        assert_eq!(
            fact("test result: ok. 0 passed; 0 failed; 9 filtered out"),
            None
        );
        assert_eq!(fact("skipped: a: why"), Some("skipped: a: why"));
        assert_eq!(fact("test a ... ok"), None);
    }
}
