//! `unisono plugin`: what plugins there are, whether they are sound, and what they can be told.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use unisono::hal::probe::{self, Helper, Report, Verdict};
use unisono::hal::{Found, Loader, Plugin};

use crate::join::JoinArgs;
use crate::{output, units};

/// List and check plugins, and show their parameters
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the plugins in the search path; each is asked in a process of its own
    List {
        #[command(flatten)]
        ask: Ask,
    },
    /// Say whether a plugin can be used, and if not, why; it cannot harm this process
    Check {
        /// A plugin's name, or the path of a library or manifest.
        #[arg(value_name = "NAME|PATH", required = true)]
        wanted: Vec<String>,
        #[command(flatten)]
        ask: Ask,
    },
    /// Show the parameters that a plugin takes in the cluster file
    Params {
        /// A plugin's name, or the path of a library or manifest.
        #[arg(value_name = "NAME|PATH")]
        wanted: String,
        #[command(flatten)]
        join: Box<JoinArgs>,
    },
    /// Asks one plugin, for the process that started this one
    #[command(hide = true)]
    Probe { path: PathBuf },
}

#[derive(Debug, clap::Args)]
struct Ask {
    /// How long a plugin may take to answer.
    #[arg(long, value_name = "TIME", value_parser = units::time, default_value = "10s")]
    limit: Duration,
    #[command(flatten)]
    join: Box<JoinArgs>,
}

/// Does what was asked.
pub fn run(args: Args) -> Result<ExitCode> {
    match args.command {
        Command::List { ask } => list(&ask),
        Command::Check { wanted, ask } => check(&wanted, &ask),
        Command::Params { wanted, join } => params(&wanted, &join),
        Command::Probe { path } => Ok(ExitCode::from(probe::child_main(&path) as u8)),
    }
}

fn list(ask: &Ask) -> Result<ExitCode> {
    let loader = loader(&ask.join)?;
    let found = loader.list();
    if found.is_empty() {
        output::line("no plugins in the search path:");
        for (origin, place) in loader.search().places() {
            output::line(&format!("  {} ({origin})", place.display()));
        }
        return Ok(ExitCode::FAILURE);
    }
    let mut rows =
        vec![["NAME", "VERSION", "CONTRACT", "VENDOR", "DEVICES", "PATH"].map(String::from)];
    let mut notes = Vec::new();
    for plugin in &found {
        let (row, note) = row(plugin, ask)?;
        rows.push(row);
        notes.extend(note);
    }
    let mut text = columns(&rows);
    for note in notes {
        text.push_str(&note);
        text.push('\n');
    }
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn row(plugin: &Found, ask: &Ask) -> Result<([String; 6], Option<String>)> {
    let path = plugin.path.display().to_string();
    let none = || "-".to_owned();
    if let Some(by) = &plugin.shadowed_by {
        let note = format!("{}: not used, {} comes first", path, by.display());
        return Ok((
            [plugin.name.clone(), none(), none(), none(), none(), path],
            Some(note),
        ));
    }
    let report = in_child(&plugin.path, ask.limit)?;
    Ok(match &report.verdict {
        Verdict::Sound(summary) => {
            let devices = match &summary.no_driver {
                Some(_) => "no driver".to_owned(),
                None => summary.devices.len().to_string(),
            };
            let row = [
                summary.name.clone(),
                summary.version.clone(),
                format!("{}.{}", summary.abi.0, summary.abi.1),
                summary.vendor.clone(),
                devices,
                path.clone(),
            ];
            let told = summary.no_driver.iter().chain(&summary.told);
            let note: Vec<_> = told.map(|words| format!("{path}: {words}")).collect();
            (row, (!note.is_empty()).then(|| note.join("\n")))
        }
        refused => {
            let row = [
                plugin.name.clone(),
                none(),
                none(),
                none(),
                "refused".to_owned(),
                path.clone(),
            ];
            (row, Some(format!("{path}: {refused}")))
        }
    })
}

fn check(plugins: &[String], ask: &Ask) -> Result<ExitCode> {
    let loader = loader(&ask.join)?;
    let mut sound = true;
    for plugin in plugins {
        let report = in_child(&locate(&loader, plugin)?, ask.limit)?;
        sound &= report.verdict.is_sound();
        output::print(&described(&report))?;
    }
    Ok(if sound {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn described(report: &Report) -> String {
    let mut text = format!("{report}\n");
    let mut line = |what: &str, value: &str| {
        if !value.is_empty() {
            text.push_str(&format!("  {what:10} {value}\n"));
        }
    };
    if let Verdict::Sound(summary) = &report.verdict {
        line("vendor", &summary.vendor);
        line("build", &summary.build_id);
        for words in &summary.told {
            line("told", words);
        }
        for device in &summary.devices {
            let mut words = format!("{} ({})", device.name, device.kind);
            if !device.pci.is_empty() {
                words.push_str(&format!(" at {}", device.pci));
            }
            line("device", &words);
        }
        line("links", &summary.links.join(", "));
        line("parameters", &summary.params.join(", "));
        line("without", &summary.unsupported.join(", "));
        line("driver", summary.no_driver.as_deref().unwrap_or_default());
    }
    for printed in report.output.lines() {
        line("it printed", printed);
    }
    line("took", &format!("{:.1?}", report.elapsed));
    text
}

fn params(plugin: &str, join: &JoinArgs) -> Result<ExitCode> {
    let loader = loader(join)?;
    let plugin: Plugin = if is_path(plugin) {
        loader.load_path(plugin)?
    } else {
        loader.load(plugin)?
    };
    if plugin.params().is_empty() {
        output::print(&format!("plugin {} takes no parameters\n", plugin.name()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!(
        "# In the cluster file:\nplugins:\n  - name: {}\n    params:\n",
        plugin.name()
    );
    for spec in plugin.params() {
        let bounds = match spec.kind.name() {
            "bool" | "string" => String::new(),
            _ => format!(", {} to {}", spec.show(spec.min), spec.show(spec.max)),
        };
        let default = if spec.default.is_empty() {
            "\"\""
        } else {
            &spec.default
        };
        text.push_str(&format!(
            "      # {} ({}{bounds})\n      {}: {default}\n",
            spec.help,
            spec.kind.name(),
            spec.name
        ));
    }
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The places that a job with these settings would look at.
fn loader(join: &JoinArgs) -> Result<Loader> {
    // Who this rank is does not matter here.
    Ok(join.init()?.rank(0).size(1).options()?.loader)
}

fn in_child(path: &Path, limit: Duration) -> Result<Report> {
    let helper = Helper {
        program: std::env::current_exe().context("finding this program's file")?,
        args: vec!["plugin".into(), "probe".into()],
    };
    Ok(probe::check_in_child(path, &helper, limit))
}

fn is_path(text: &str) -> bool {
    text.contains('/') || Path::new(text).extension().is_some()
}

fn locate(loader: &Loader, plugin: &str) -> Result<PathBuf> {
    if is_path(plugin) {
        return Ok(std::path::absolute(plugin)?);
    }
    let all = loader.list();
    let known = all
        .iter()
        .find(|found| found.name == plugin && found.shadowed_by.is_none());
    if let Some(found) = known {
        return Ok(found.path.clone());
    }
    let mut names: Vec<&str> = all.iter().map(|found| found.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    bail!(
        "no plugin `{plugin}` in the search path; there are: {}",
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        }
    )
}

/// Rows as columns, aligned; the last one is not padded.
fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut text = String::new();
    for row in rows {
        for (cell, width) in row.iter().zip(&widths).take(N - 1) {
            text.push_str(&format!("{cell:width$}  "));
        }
        text.push_str(&row[N - 1]);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_paths_are_told_apart() {
        assert!(!is_path("host"));
        assert!(is_path("./host") && is_path("libunisono_plugin_host.so") && is_path("/a/host"));
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [["A", "B"], ["long", "x"]].map(|row| row.map(String::from));
        assert_eq!(columns(&rows), "A     B\nlong  x\n");
    }
}
