//! Running commands: their output is seen as it comes, and kept where a task must read it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::machine::{commit, machine, today};
use crate::{root, target};

/// `cargo` with `arguments`, in the workspace.
pub fn cargo(arguments: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root()).args(arguments);
    command
}

/// A program of this workspace, built for release with what it starts or loads, and told of the commit and the machine.
/// Not by `cargo run`: for one package alone it would choose other features and build anew.
pub fn built(program: &str, packages: &[&str]) -> Result<Command> {
    let mut build = vec!["build", "--release", "--quiet"];
    for package in packages {
        build.extend(["--package", package]);
    }
    run(&mut cargo(&build))?;
    let about = format!("Commit {}, {}, on {}.", commit(), today(), machine());
    let mut command = Command::new(target(false).join(program));
    command.current_dir(root()).args(["--about", &about]);
    Ok(command)
}

/// Runs a command to its end; an error names it if it fails.
pub fn run(command: &mut Command) -> Result<()> {
    let text = describe(command);
    let status = command
        .status()
        .with_context(|| format!("starting {text}"))?;
    if !status.success() {
        bail!("{text} ended with {status}");
    }
    Ok(())
}

/// What a command that was watched came to.
pub struct Watched {
    pub success: bool,
    pub lines: Vec<String>,
    pub elapsed: Duration,
}

/// Runs a command, passing its standard output on line by line and keeping it.
pub fn watch(command: &mut Command) -> Result<Watched> {
    command.stdout(Stdio::piped());
    watch_by(command, |child| {
        child.stdout.take().map(|out| Box::new(out) as _)
    })
}

/// The same with its standard error, which is passed on to standard output.
pub fn watch_errors(command: &mut Command) -> Result<Watched> {
    command.stderr(Stdio::piped());
    watch_by(command, |child| {
        child.stderr.take().map(|out| Box::new(out) as _)
    })
}

fn watch_by(
    command: &mut Command,
    output: impl FnOnce(&mut Child) -> Option<Box<dyn Read>>,
) -> Result<Watched> {
    let text = describe(command);
    let since = Instant::now();
    let mut child = (command.spawn()).with_context(|| format!("starting {text}"))?;
    let output = output(&mut child).context("no output")?;
    let mut lines = Vec::new();
    for line in BufReader::new(output).lines() {
        let line = line.unwrap_or_else(|e| format!("(unreadable line: {e})"));
        println!("{line}");
        lines.push(line);
    }
    let status = child
        .wait()
        .with_context(|| format!("waiting for {text}"))?;
    Ok(Watched {
        success: status.success(),
        lines,
        elapsed: since.elapsed(),
    })
}

fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}
