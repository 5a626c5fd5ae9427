//! The fixed cost of a call, counted in instructions and held against its budget.

use std::fmt::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use unisono_instructions::{BUDGETS, Budget};

use crate::machine::{commit, machine, today};
use crate::root;
use crate::run::cargo;

/// The program by which the benchmark runs itself under valgrind.
const RUNNER: &str = "gungraun-runner";

/// Counts the instructions of every call that has a budget and prints them; with `page` it writes
/// vendor-docs/results/instructions.md, too. Fails where a call takes more than its budget.
pub fn instructions(page: bool) -> Result<()> {
    let valgrind = valgrind()?;
    runner()?;
    println!(
        "{} calls, each about two seconds under valgrind",
        BUDGETS.len()
    );
    let counted = count()?;
    let table = table(&counted);
    println!("{table}");
    let over: Vec<String> = counted
        .iter()
        .filter(|counted| is_over(counted))
        .map(|(budget, count)| format!("{} ({count} of {})", budget.id(), budget.instructions))
        .collect();
    ensure!(
        over.is_empty(),
        "above the budget: {}. Look at what grew with callgrind_annotate (target/gungraun has the profiles); the \
         budgets are in tests/instructions/src/lib.rs",
        over.join(", ")
    );
    if page {
        write(&table, &valgrind)?;
    }
    Ok(())
}

/// Valgrind's version.
fn valgrind() -> Result<String> {
    version("valgrind").context(
        "instructions are counted by valgrind: install the package valgrind of your distribution",
    )
}

/// The runner must be of the version of the crate, which says how they speak to each other.
fn runner() -> Result<()> {
    let id = said(&mut cargo(&["pkgid", "gungraun"]))?;
    let wanted = (id.rsplit(['@', '#']).next()).context("cargo pkgid names no version")?;
    let install = format!("cargo install {RUNNER} --version {wanted}");
    let found = version(RUNNER)
        .with_context(|| format!("the benchmark is started by {RUNNER}; install it: {install}"))?;
    ensure!(
        found.split_whitespace().last() == Some(wanted),
        "{found} is installed, but the benchmark is built for {wanted}; install that: {install}"
    );
    Ok(())
}

/// Runs the benchmark: every budget with what was counted.
fn count() -> Result<Vec<(Budget, u64)>> {
    let mut bench = cargo(&["bench", "--quiet", "-p", "unisono-instructions"]);
    bench.args(["--bench", "calls", "--", "--output-format=json"]);
    let output = (bench.stderr(Stdio::inherit()).output()).context("starting cargo bench")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let results = (text.lines())
        .filter(|line| line.starts_with('{'))
        .map(result)
        .collect::<Result<Vec<_>>>()?;
    let counted = BUDGETS.into_iter().map(|budget| {
        let id = budget.id();
        let found = results.iter().find(|(name, _)| *name == id);
        let (_, count) = found.with_context(|| {
            format!(
                "{id} has a budget and was not counted: cargo bench ended with {}",
                output.status
            )
        })?;
        Ok((budget, *count))
    });
    let counted = counted.collect::<Result<Vec<_>>>()?;
    // It fails where one is above its budget, which is told with the table; for nothing else.
    ensure!(
        output.status.success() || counted.iter().any(is_over),
        "cargo bench ended with {}, and no call is above its budget: what it said is above",
        output.status
    );
    Ok(counted)
}

fn is_over((budget, count): &(Budget, u64)) -> bool {
    *count > budget.instructions
}

/// The benchmark's name and its instructions, of one line of results.
fn result(line: &str) -> Result<(String, u64)> {
    let value: Value =
        serde_json::from_str(line).context("a result of the benchmark is no JSON")?;
    let id = value["id"].as_str();
    let count = value.pointer("/profiles/0/data/total/metrics/Ir/values/new");
    match (id, count.and_then(Value::as_u64)) {
        (Some(id), Some(count)) => Ok((id.to_owned(), count)),
        _ => bail!("a result of the benchmark has no name or no count: {line}"),
    }
}

fn table(counted: &[(Budget, u64)]) -> String {
    let mut out = String::from("| call | bytes | instructions | budget |\n|---|---:|---:|---:|\n");
    for (budget, count) in counted {
        let Budget {
            call,
            bytes,
            instructions,
        } = budget;
        let _ = writeln!(out, "| {call} | {bytes} | {count} | {instructions} |");
    }
    out
}

fn write(table: &str, valgrind: &str) -> Result<()> {
    let text = format!(
        "# Instructions of a call\n\n\
         Commit {}, {}, on {}; {}, {valgrind}. Repeat with `cargo xtask instructions --page`.\n\n\
         What the thread of one of two ranks on CPUs takes from its call to its return, when the other one is in\n\
         the call already: no waiting, and no instructions of the kernel's. `alone` is a world of one, `of_four` one of\n\
         four ranks on two cores, `tcp` goes over TCP within the machine. Bytes are those of a block. Valgrind's CPU has AVX2 at most. What is counted and why:\n\
         [`tests/instructions`](../../tests/instructions/benches/calls/main.rs).\n\n{table}",
        commit(),
        today(),
        machine(),
        version("rustc")?,
    );
    let page = root().join("vendor-docs/results/instructions.md");
    std::fs::write(&page, text).with_context(|| format!("writing {}", page.display()))?;
    println!("written: {}", page.display());
    Ok(())
}

/// What a program says of its version.
fn version(program: &str) -> Result<String> {
    said(Command::new(program).arg("--version"))
}

/// What a command prints, if it succeeds.
fn said(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = (command.output()).with_context(|| format!("starting {name}"))?;
    ensure!(
        output.status.success(),
        "{name} ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_has_a_name_and_a_count() {
        let total = r#"{"metrics":{"Ir":{"values":{"new":985,"old":990}}},"regressions":[]}"#;
        let line = format!(r#"{{"id":"send_4","profiles":[{{"data":{{"total":{total}}}}}]}}"#);
        assert_eq!(result(&line).unwrap(), ("send_4".to_owned(), 985));
        for wrong in ["{", r#"{"id":"send_4"}"#, r#"{"profiles":[]}"#] {
            result(wrong).unwrap_err();
        }
    }

    #[test]
    fn a_call_may_take_all_of_its_budget_and_no_more() {
        let budget = BUDGETS[0];
        assert!(!is_over(&(budget, budget.instructions)));
        assert!(is_over(&(budget, budget.instructions + 1)));
    }
}
