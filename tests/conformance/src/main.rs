//! The program: runs the suite against a plugin, and prints a table.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use rustix::process::{Signal, set_parent_process_death_signal};
use unisono_conformance::{Expectations, Suite, all, find, worker};

/// Checks that a plugin keeps the contract of unisono_plugin.h.
///
/// Each check passes, fails, or is unsupported, where the plugin itself says that it does not do
/// this. Exit status: 0 if the plugin is as it should be, 1 if not, 2 if the suite could not run.
#[derive(Parser)]
#[command(name = "unisono-conformance", version)]
struct Arguments {
    /// The plugin's library.
    #[arg(required_unless_present = "list")]
    plugin: Option<PathBuf>,

    /// Run only this group, or this check as GROUP/NAME. May be given more than once.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,

    /// What may be skipped and what is known to fail: a YAML file with the maps `unsupported` (a
    /// group or a check, and why) and `fails` (a check, and why). What is not listed must pass.
    /// May be given more than once: what one of them names. Without it, whatever the plugin says it
    /// does not support is skipped.
    #[arg(long, value_name = "FILE")]
    expect: Vec<PathBuf>,

    /// A parameter for the plugin, as it would stand in the cluster file.
    #[arg(long, value_name = "NAME=TEXT", value_parser = pair)]
    param: Vec<(String, String)>,

    /// Another parameter for the second process of a check: with `--param devices=mlx5_0
    /// --peer-param devices=mlx5_1` the two are joined by what joins the cards.
    #[arg(long, value_name = "NAME=TEXT", value_parser = pair)]
    peer_param: Vec<(String, String)>,

    /// Seconds that one check may take.
    #[arg(long, default_value_t = 90)]
    seconds: u64,

    /// Print one JSON object a check.
    #[arg(long)]
    json: bool,

    /// List the checks and what each promises.
    #[arg(long)]
    list: bool,

    /// Run one check in this process; the answer goes to standard input, a socket.
    #[arg(long, hide = true)]
    worker: Option<String>,

    /// Which of a check's processes this is.
    #[arg(long, hide = true, default_value_t = 0)]
    role: u32,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it must be NAME=TEXT")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(what) => {
            eprintln!("unisono-conformance: {what}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: Arguments) -> Result<bool, String> {
    if arguments.list {
        for check in all() {
            println!("{:<42} {}", check.full_name(), check.promise);
        }
        return Ok(true);
    }
    let plugin = arguments
        .plugin
        .ok_or("which plugin? give the path of its library")?;
    if let Some(name) = arguments.worker {
        let check = find(&name).ok_or_else(|| format!("there is no check `{name}`"))?;
        // Whoever started this process ends it.
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(|e| e.to_string())?;
        let socket = std::io::stdin().as_fd().try_clone_to_owned();
        let socket = UnixStream::from(socket.map_err(|e| e.to_string())?);
        let (ours, theirs) = (arguments.param, &arguments.peer_param);
        worker::run(&check, arguments.role, plugin, ours, theirs, socket)
            .map_err(|e| format!("{name}: {e}"))?;
        return Ok(true);
    }
    let plugin = plugin
        .canonicalize()
        .map_err(|e| format!("{}: {e}", plugin.display()))?;
    let runner = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut suite = Suite::new(plugin, runner)
        .params(arguments.param)
        .peer_params(arguments.peer_param)
        .only(arguments.only)
        .limit(Duration::from_secs(arguments.seconds));
    if !arguments.expect.is_empty() {
        let mut all = Expectations::default();
        for path in &arguments.expect {
            all = all.and(Expectations::read(path)?);
        }
        suite = suite.expect(all);
    }
    let json = arguments.json;
    let report = suite.run(|row| {
        if json {
            // Rows hold nothing that JSON lacks.
            println!("{}", serde_json::to_string(row).unwrap_or_default());
        } else {
            println!("{}", row.line());
        }
    })?;
    if !json {
        println!("\n{}", report.summary());
    }
    Ok(report.is_good())
}
