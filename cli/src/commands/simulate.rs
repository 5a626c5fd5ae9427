//! `unisono simulate`: flows that share links, without a plan.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use unisono_simulate::fluid;

use crate::output;

/// Simulate flows that share links max-min fairly
///
/// The file holds a case, a list of cases, or an object with such a list under `fluid_cases`. A
/// case names links with their bandwidth in GB/s (10^9 bytes a second) and jobs, each of which
/// moves so many GB over all links of its route at once:
///
/// {"links_GBps": {"A": 10, "B": 4}, "jobs": {"f": {"route": ["A", "B"], "GB": 4, "start_s": 0}}}
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  unisono simulate --fluid cases.json
  unisono simulate --fluid cases.json --json | jq '.finish_s'")]
pub struct Args {
    /// The file of cases.
    #[arg(long, value_name = "FILE")]
    fluid: PathBuf,
    /// One JSON object for a case, a list of them for a list: name, rates_at_0_GBps, finish_s.
    #[arg(long)]
    json: bool,
}

/// Simulates every case of the file.
pub fn run(args: &Args) -> Result<ExitCode> {
    let file = args.fluid.display();
    let text = std::fs::read_to_string(&args.fluid).with_context(|| format!("reading {file}"))?;
    let (cases, list) = fluid::read(&text).with_context(|| format!("in {file}"))?;
    let mut answers = Vec::new();
    for (place, case) in cases.iter().enumerate() {
        let answer = fluid::run(case).with_context(|| match &case.name {
            Some(name) => format!("in {file}, case `{name}`"),
            None => format!("in {file}, case {place}"),
        })?;
        answers.push(answer);
    }
    let text = match (args.json, list, answers.first()) {
        (true, false, Some(answer)) => serde_json::to_string(answer)? + "\n",
        (true, ..) => serde_json::to_string(&answers)? + "\n",
        (false, ..) => answers.iter().map(table).collect(),
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn table(answer: &fluid::Answer) -> String {
    let mut text = String::new();
    if let Some(name) = &answer.name {
        let _ = writeln!(text, "{name}");
    }
    let longest = answer.finish_s.keys().map(String::len).max().unwrap_or(0);
    let width = longest.max("job".len());
    let _ = writeln!(
        text,
        "{:width$}  {:>12}  {:>12}",
        "job", "GB/s at 0", "end (s)"
    );
    for (job, end) in &answer.finish_s {
        let rate = match answer.rates.get(job) {
            Some(rate) => format!("{rate:.6}"),
            None => "-".into(),
        };
        let _ = writeln!(text, "{job:width$}  {rate:>12}  {end:>12.6}");
    }
    text
}
