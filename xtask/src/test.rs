//! Every test, at its reduced count.
//!
//! Many tests wait more than they work, and cargo runs one test binary after the other: a core is idle at the end of each.
//! cargo-nextest, if it is installed, runs the tests of all of them side by side, in less than half of the time: as many as
//! there are cores, where two that wait count as one (`.config/nextest.toml`).

use std::fs;
use std::num::NonZero;
use std::process::{Command, Stdio};
use std::thread::available_parallelism;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};

use crate::root;
use crate::run::{cargo, run, watch, watch_errors};

/// How a test is marked that other tests run.
const PART: &str = " ... ignored, run by ";

/// What a reason says that counts where no test may be skipped: that nobody here has what is missing, or
/// that a soak demands it, since it is too large to be installed for each change.
const TOLERABLE: [&str; 2] = ["silicon", "a soak demands it"];

/// What came of the tests of one command.
#[derive(Default)]
struct Count {
    passed: u64,
    failed: u64,
    ignored: u64,
}

pub fn test(strict: bool, filter: Option<&str>) -> Result<()> {
    let seed = std::env::var("UNISONO_SEED").unwrap_or_else(|_| fresh_seed().to_string());
    println!("seed {seed} (UNISONO_SEED repeats it)");
    // Multi-process tests start binaries and plugins by their paths. What tests need is named with them: their
    // dependencies turn features on, and without those nearly everything would be compiled a second time.
    run(&mut cargo(&[
        "build",
        "--workspace",
        "--lib",
        "--bins",
        "--tests",
        "--examples",
        "--quiet",
    ]))?;

    let skips = root().join("target/skipped.txt");
    let _ = fs::remove_file(&skips);
    let prepare = |mut command: Command| {
        command.args(filter);
        command
            .env("UNISONO_SEED", &seed)
            .env("UNISONO_SKIP_LOG", &skips);
        command
    };
    let Ran {
        count,
        success,
        elapsed,
    } = match has_nextest() {
        true => side_by_side(prepare)?,
        false => one_by_one(prepare)?,
    };

    let skipped = fs::read_to_string(&skips).unwrap_or_default();
    let skipped: Vec<&str> = skipped.lines().collect();
    for line in &skipped {
        println!("skipped: {line}");
    }
    println!("took {elapsed:.0?}");
    println!(
        "{} passed, {} failed, {} skipped",
        count.passed - (skipped.len() as u64).min(count.passed),
        count.failed,
        skipped.len() as u64 + count.ignored
    );
    let intolerable: Vec<&&str> = skipped
        .iter()
        .filter(|line| !TOLERABLE.iter().any(|reason| line.contains(reason)))
        .collect();
    let intolerable = intolerable.len() as u64 + count.ignored;
    if strict && intolerable > 0 {
        bail!("{intolerable} tests were skipped where none may be");
    }
    if !success || count.failed > 0 {
        bail!("tests failed");
    }
    if count.passed == 0 {
        bail!("no test ran");
    }
    Ok(())
}

/// What running the tests came to.
struct Ran {
    count: Count,
    success: bool,
    elapsed: Duration,
}

fn has_nextest() -> bool {
    let mut ask = cargo(&["nextest", "--version"]);
    let ask = ask.stdout(Stdio::null()).stderr(Stdio::null());
    ask.status().is_ok_and(|status| status.success())
}

fn one_by_one(prepare: impl Fn(Command) -> Command) -> Result<Ran> {
    let tests = cargo(&["test", "--workspace", "--no-fail-fast"]);
    let watched = watch(&mut prepare(tests))?;
    Ok(Ran {
        count: count(&watched.lines),
        success: watched.success,
        elapsed: watched.elapsed,
    })
}

/// The profile of `.config/nextest.toml` that says how many places a test takes, and how many a core has.
const PROFILE: &str = "side-by-side";
const PLACES: usize = 2;

fn side_by_side(prepare: impl Fn(Command) -> Command) -> Result<Ran> {
    let cores = available_parallelism().map_or(1, NonZero::get);
    let places = (PLACES * cores).to_string();
    let tests = cargo(&[
        "nextest",
        "run",
        "--profile",
        PROFILE,
        "--test-threads",
        &places,
        "--workspace",
        "--no-fail-fast",
        "--no-tests",
        "pass",
    ]);
    let tests = watch_errors(&mut prepare(tests))?;
    let of_docs = watch(&mut prepare(cargo(&[
        "test",
        "--workspace",
        "--doc",
        "--no-fail-fast",
    ])))?;
    let mut all = count_side_by_side(&tests.lines);
    let in_docs = count(&of_docs.lines);
    all.passed += in_docs.passed;
    all.failed += in_docs.failed;
    all.ignored += in_docs.ignored;
    Ok(Ran {
        count: all,
        success: tests.success && of_docs.success,
        elapsed: tests.elapsed + of_docs.elapsed,
    })
}

fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |t| t.as_nanos() as u64)
}

/// Adds up the lines "test result: ok. 3 passed; 0 failed; 1 ignored; …". A test that is ignored
/// because others run it, as their other process, is a part of those and not skipped.
fn count(lines: &[String]) -> Count {
    let mut count = Count::default();
    let parts = lines.iter().filter(|line| line.contains(PART)).count() as u64;
    for line in lines
        .iter()
        .filter_map(|line| line.strip_prefix("test result: "))
    {
        for part in line.split([';', '.']) {
            let mut words = part.split_whitespace();
            let (Some(number), Some(what)) = (words.next(), words.next()) else {
                continue;
            };
            let Ok(number) = number.parse::<u64>() else {
                continue;
            };
            match what {
                "passed" => count.passed += number,
                "failed" => count.failed += number,
                "ignored" => count.ignored += number,
                _ => {}
            }
        }
    }
    count.ignored = count.ignored.saturating_sub(parts);
    count
}

/// Reads "Summary [ 155.943s] 379 tests run: 376 passed (2 leaky), 2 failed, 1 timed out, 2 skipped". What it skips are parts
/// alone (see the test below), since it does not say why it skips something.
fn count_side_by_side(lines: &[String]) -> Count {
    let mut count = Count::default();
    let summary = lines
        .iter()
        .rev()
        .find(|line| line.trim_start().starts_with("Summary ["));
    let Some((_, results)) = summary.and_then(|line| line.split_once("run:")) else {
        return count;
    };
    for result in results.split(", ") {
        let mut words = result.split_whitespace();
        let number = words.next().and_then(|number| number.parse::<u64>().ok());
        match (number, words.next()) {
            (Some(number), Some("passed")) => count.passed += number,
            (Some(number), Some("failed" | "timed")) => count.failed += number,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_summary_is_read() {
        let lines = [
            "    Starting 379 tests across 60 binaries (2 tests skipped)".to_owned(),
            "     Summary [ 155.943s] 379 tests run: 376 passed (1 slow, 2 leaky), 2 failed, 1 timed out, 2 skipped".to_owned(),
            "        FAIL [   0.150s] (303/379) a_test".to_owned(),
        ];
        let count = count_side_by_side(&lines);
        assert_eq!((count.passed, count.failed, count.ignored), (376, 3, 0));
    }

    #[test]
    fn every_test_that_is_ignored_is_run_by_another() {
        let mut folders = vec![root()];
        let mark = concat!("#[ig", "nore");
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a folder").flatten() {
                let path = entry.path();
                let is_built = |path: &Path| path.ends_with("target") || path.ends_with(".git");
                if path.is_dir() && !path.is_symlink() && !is_built(&path) {
                    folders.push(path);
                } else if path.extension().is_some_and(|name| name == "rs") {
                    let text = fs::read_to_string(&path).expect("a source");
                    for line in text.lines().filter(|line| line.contains(mark)) {
                        let why = format!("{mark} = \"run by ");
                        assert!(line.contains(&why), "{}: {line}", path.display());
                    }
                }
            }
        }
    }

    #[test]
    fn results_add_up() {
        let lines = [
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s".to_owned(),
            "test a_part ... ignored, run by `whole`".to_owned(),
            "test no_part ... ignored".to_owned(),
            "test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out".to_owned(),
        ];
        let count = count(&lines);
        assert_eq!((count.passed, count.failed, count.ignored), (5, 1, 1));
    }
}
