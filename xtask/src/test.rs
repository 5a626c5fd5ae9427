//! Every test, at its reduced count.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};

use crate::root;
use crate::run::{cargo, run, watch};

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
    let mut command = cargo(&["test", "--workspace", "--no-fail-fast"]);
    if let Some(filter) = filter {
        command.arg(filter);
    }
    command
        .env("UNISONO_SEED", &seed)
        .env("UNISONO_SKIP_LOG", &skips);
    let watched = watch(&mut command)?;
    let count = count(&watched.lines);

    let skipped = fs::read_to_string(&skips).unwrap_or_default();
    let skipped: Vec<&str> = skipped.lines().collect();
    for line in &skipped {
        println!("skipped: {line}");
    }
    println!("took {:.0?}", watched.elapsed);
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
    if !watched.success || count.failed > 0 {
        bail!("tests failed");
    }
    if count.passed == 0 {
        bail!("no test ran");
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

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
