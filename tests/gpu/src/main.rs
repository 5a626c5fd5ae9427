//! Several ranks on one device: the conformance suite, processes that share memory by the driver's own
//! means, and a benchmark against the device's copy bandwidth. `cargo xtask gpu` starts it.
//!
//! The libraries of a vendor are found when a process starts: this one prepares the environment, and
//! starts itself again to measure.

mod captured;
mod collectives;
mod commands;
mod copies;
mod overlap;
mod processes;
mod report;
mod results;

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, ValueEnum};
use unisono::{InitOptions, PluginRequest};
use unisono_emulated_tests::{Emulated, built};

/// The plugin that is measured.
const PLUGIN: &str = "cuda";

/// Hardware queues of a device. Eight ranks that are threads of one process have more streams than the
/// usual eight, and streams that share a queue wait for each other.
const CONNECTIONS: &str = "CUDA_DEVICE_MAX_CONNECTIONS";
/// The same of the emulator.
const QUEUES: &str = "queues: 32\n";

/// Ranks on one device, tried and measured.
#[derive(Parser)]
struct Arguments {
    /// On the emulator: to see that all of it runs. Its figures say nothing.
    #[arg(long)]
    emulated: bool,
    /// Measure: the environment is prepared.
    #[arg(long, hide = true)]
    measure: bool,
    /// Measure these alone, and leave the conformance suite out; may be repeated.
    #[arg(long, value_enum)]
    only: Vec<Part>,
    #[command(flatten)]
    settings: Settings,
    /// This process is a rank, of so many, of this job.
    #[arg(long, hide = true, num_args = 3)]
    rank: Option<Vec<String>>,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Whether results are right.
    Results,
    /// What single commands of a stream cost.
    Commands,
    /// Long messages against the device's copy bandwidth.
    Long,
    /// Short messages between threads.
    Short,
    /// Short messages between processes.
    Processes,
    /// A computation beside a collective.
    Overlap,
}

/// What is other than by default.
#[derive(Args, Clone, Debug, Default)]
struct Settings {
    /// Bytes of a slot.
    #[arg(long)]
    slot: Option<u64>,
    /// Batches that are repeated become graphs.
    #[arg(long)]
    graphs: bool,
    /// Bytes of a long message.
    #[arg(long)]
    long: Option<usize>,
    /// Measure so many ranks alone; may be repeated.
    #[arg(long)]
    ranks: Vec<u32>,
    /// Seconds that a call may take.
    #[arg(long)]
    patience: Option<u64>,
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

impl Settings {
    /// The arguments of a process that is to have the same.
    fn arguments(&self) -> Vec<String> {
        let slot = self.slot.iter().map(|slot| format!("--slot={slot}"));
        let graphs = self.graphs.then(|| "--graphs".to_owned());
        let long = self.long.iter().map(|bytes| format!("--long={bytes}"));
        let ranks = self.ranks.iter().map(|ranks| format!("--ranks={ranks}"));
        let patience = self.patience.iter();
        let patience = patience.map(|seconds| format!("--patience={seconds}"));
        let all = slot.chain(graphs).chain(long).chain(ranks);
        all.chain(patience).collect()
    }

    /// Of these counts of ranks those that are wanted.
    fn ranks(&self, all: &[u32]) -> Vec<u32> {
        match self.ranks.is_empty() {
            true => all.to_vec(),
            false => self.ranks.clone(),
        }
    }

    /// Those of this process.
    fn own() -> &'static Self {
        SETTINGS.get_or_init(Self::default)
    }
}

/// How much is measured: the same steps on silicon and on the emulator.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// Bytes of a long message.
    long: usize,
    /// Repeats of a short one.
    short_repeats: usize,
    /// Repeats of a long one.
    long_repeats: usize,
    /// Commands that are handed over at once.
    commands: usize,
    /// Lengths of messages whose results are looked at.
    lengths: usize,
    /// Random calls whose results are looked at.
    random_calls: u64,
}

impl Scale {
    fn of(emulated: bool, settings: &Settings) -> Self {
        let scale = Self::by_default(emulated);
        Self {
            long: settings.long.unwrap_or(scale.long),
            ..scale
        }
    }

    const fn by_default(emulated: bool) -> Self {
        if emulated {
            Self {
                long: 1 << 20,
                short_repeats: 20,
                long_repeats: 2,
                commands: 10,
                lengths: 1,
                random_calls: 20,
            }
        } else {
            Self {
                long: 256 << 20,
                short_repeats: 2000,
                long_repeats: 10,
                commands: 10,
                lengths: 3,
                random_calls: 200,
            }
        }
    }
}

/// Every rank on the first device.
fn first_device(options: &mut InitOptions) {
    let settings = Settings::own();
    let mut plugin = PluginRequest::named(PLUGIN);
    if settings.graphs {
        plugin.params = vec![("graphs".to_owned(), "true".to_owned())];
    }
    if let Some(slot) = settings.slot {
        options.memory.slot = Some(slot);
        options.memory.budget = 4 << 30;
    }
    if let Some(seconds) = settings.patience {
        options.timeouts.op = Duration::from_secs(seconds);
    }
    options.plugins = vec![plugin];
    options.device = Some((PLUGIN.to_owned(), 0));
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let settings = SETTINGS.get_or_init(|| arguments.settings.clone());
    let scale = Scale::of(arguments.emulated, settings);
    if let Some(rank) = &arguments.rank {
        return processes::rank(rank, scale);
    }
    if arguments.measure {
        return report::measure(scale, arguments.emulated, &arguments.only);
    }
    let machine = if arguments.emulated {
        let machine = Emulated::new("gpu", "h100x8", |text| text + QUEUES);
        Some(machine.context("the kernels of the emulator cannot be compiled: install clang-19")?)
    } else {
        None
    };
    let environment = match &machine {
        Some(machine) => machine.environment(),
        None => vec![("UNISONO_PLUGIN_PATH", built().display().to_string())],
    };
    if arguments.only.is_empty() {
        conformance(&environment)?;
    }
    let mut measure = Command::new(std::env::current_exe()?);
    measure
        .arg("--measure")
        .args(settings.arguments())
        .env(CONNECTIONS, "32")
        .envs(environment);
    if arguments.emulated {
        measure.arg("--emulated");
    }
    for part in &arguments.only {
        let name = part.to_possible_value().context("a part without a name")?;
        measure.args(["--only", name.get_name()]);
    }
    ended_well(&mut measure, "measuring")
}

/// The suite against the plugin; what it says it does not support is skipped.
fn conformance(environment: &[(&'static str, String)]) -> Result<()> {
    let program = built().join("unisono-conformance");
    let plugin: PathBuf = built().join(format!("libunisono_plugin_{PLUGIN}.so"));
    let mut command = Command::new(program);
    command.arg(plugin).envs(environment.iter().cloned());
    command.stderr(Stdio::inherit());
    let output = command.output().context("starting unisono-conformance")?;
    let text = String::from_utf8_lossy(&output.stdout);
    // On an emulator of the newest driver, and on silicon, all that is claimed must hold.
    if !output.status.success() {
        bail!("the conformance suite fails:\n{text}");
    }
    println!("Conformance: {}.", text.lines().last().unwrap_or("nothing"));
    Ok(())
}

/// Runs a command to its end.
fn ended_well(command: &mut Command, what: &str) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("starting {what}"))?;
    if !status.success() {
        bail!("{what} ended with {status}");
    }
    Ok(())
}
