//! The suites at full counts, and the summary that is committed with what it vouches for.

use std::fs;

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
}

const SUITES: &[Suite] = &[
    Suite {
        name: "random",
        arguments: &[
            "test",
            "--release",
            "--package",
            "unisono-tests",
            "--test",
            "random",
            "--",
            "--nocapture",
        ],
        environment: &[],
    },
    Suite {
        name: "death",
        arguments: &[
            "test",
            "--release",
            "--package",
            "unisono-tests",
            "--test",
            "death",
            "--",
            "--nocapture",
        ],
        environment: &[],
    },
    Suite {
        name: "strays",
        arguments: &[
            "test",
            "--release",
            "--package",
            "unisono-tests",
            "--test",
            "strays",
            "--",
            "--nocapture",
        ],
        environment: &[],
    },
    Suite {
        name: "progress",
        arguments: &[
            "test",
            "--release",
            "--package",
            "unisono-tests",
            "--test",
            "progress",
            "--",
            "--nocapture",
        ],
        environment: &[],
    },
    Suite {
        name: "plans",
        arguments: &["test", "--release", "--package", "unisono-plan"],
        environment: &[],
    },
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
            "threads",
            "--",
            "--nocapture",
        ],
        environment: &[
            ("RUSTFLAGS", "-Zsanitizer=thread --cfg tsan"),
            ("CARGO_TARGET_DIR", "target/tsan"),
        ],
    },
];

pub fn soak(filter: Option<&str>, dry: bool) -> Result<()> {
    let chosen: Vec<&Suite> = SUITES
        .iter()
        .filter(|suite| filter.is_none_or(|f| suite.name.contains(f)))
        .collect();
    if chosen.is_empty() {
        let names: Vec<_> = SUITES.iter().map(|s| s.name).collect();
        bail!("no such suite; there are {}", names.join(", "));
    }
    run(&mut cargo(&[
        "build",
        "--release",
        "--workspace",
        "--quiet",
    ]))?;
    let mut failed = Vec::new();
    for suite in chosen {
        println!("== {}", suite.name);
        let watched = if suite.arguments[0].starts_with('+') {
            // Another toolchain is chosen by rustup's own cargo.
            let mut command = std::process::Command::new("cargo");
            command.current_dir(root()).args(suite.arguments);
            command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
            command
                .envs(suite.environment.iter().copied())
                .env("UNISONO_SOAK", "1");
            watch(&mut command)?
        } else {
            let mut command = cargo(suite.arguments);
            command
                .envs(suite.environment.iter().copied())
                .env("UNISONO_SOAK", "1");
            watch(&mut command)?
        };
        let facts: Vec<&str> = watched
            .lines
            .iter()
            .filter_map(|line| {
                line.strip_prefix("soak: ")
                    .or_else(|| line.strip_prefix("test result: "))
            })
            .collect();
        let verdict = if watched.success { "passed" } else { "FAILED" };
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
        if !watched.success {
            failed.push(suite.name);
        }
    }
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}
