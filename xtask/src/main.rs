//! The project's own tasks: `cargo xtask demo`, `cargo xtask test`, `cargo xtask soak`,
//! `cargo xtask dist`.

mod abi;
mod conformance;
mod demo;
mod dist;
mod gpu;
mod growth;
mod instructions;
mod kernels;
mod machine;
mod out_of_tree;
mod peers;
mod reduction;
mod regret;
mod run;
mod soak;
mod test;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Tasks of the unisono project.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build everything and run four ranks of this machine through the collectives, checked.
    Demo {
        /// Ranks to start.
        #[arg(long, default_value_t = 4)]
        ranks: u32,
    },
    /// Run every test at its reduced count, as an ordinary user, without a network.
    Test {
        /// Treat a skipped test as a failure, save those that need a vendor's silicon, or large tools that
        /// only a soak demands.
        #[arg(long, env = "CI")]
        strict: Option<String>,
        /// Only the tests whose name contains this.
        filter: Option<String>,
    },
    /// Run the suites at the full counts that the project promises, and write their summary.
    Soak {
        /// Only the suites whose name contains this.
        suite: Option<String>,
        /// Do not write the summary to vendor-docs/results.
        #[arg(long)]
        dry: bool,
    },
    /// Build and install headers, library, plugins and command, with files for pkg-config and CMake.
    Dist {
        /// Where to; target/dist without it. The folder may be moved later.
        #[arg(long)]
        prefix: Option<PathBuf>,
        /// Build without optimisation, as for tests.
        #[arg(long)]
        debug: bool,
        /// Install what cargo has built before, as it is.
        #[arg(long)]
        built: bool,
    },
    /// Compare the choice of plans with every candidate in every cut, and with other libraries'
    /// published rules, and write the table.
    Regret {
        /// All graphs, operations and sizes, not only the small ones.
        #[arg(long)]
        full: bool,
        /// Stop after so many seconds: what was compared by then is a random sample of all.
        #[arg(long, default_value_t = 600)]
        seconds: u64,
        /// The order in which cells are compared, so that another run looks at others.
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Compare only on the graph of this name, as the page has it ("torus 16 x 24"); may be given more than once.
        #[arg(long = "graph", value_name = "NAME")]
        graphs: Vec<String>,
        /// Do not write the table to vendor-docs/results.
        #[arg(long)]
        dry: bool,
        /// Handed on: `--file`, `--op` and `--bytes` choose what is compared. The table is then printed, not written.
        #[arg(last = true)]
        rest: Vec<String>,
    },
    /// Run the conformance suite against a plugin's library: what a vendor runs.
    Conformance {
        /// The library.
        #[arg(long)]
        plugin: PathBuf,
        /// What the plugin does not support and what is known to fail, as YAML; a pass of what it
        /// names fails, too. Without it, the `conformance.yaml` of the plugin's source, which is looked
        /// for in plugins/NAME and above the library; without any, whatever the plugin says it does not
        /// support is skipped. May be given more than once.
        #[arg(long)]
        expect: Vec<PathBuf>,
        /// Arguments of the suite's own: --only, --param, --seconds, --json, --list.
        #[arg(last = true)]
        rest: Vec<String>,
    },
    /// Try and measure the cuda plugin on this machine's GPU: conformance, ranks that are threads and
    /// processes on one device, bandwidth, latency, overlap; and write the page.
    Gpu {
        /// On the emulator: to see that all of it runs. Nothing is written.
        #[arg(long)]
        emulated: bool,
        /// Build nothing: `unisono-gpu`, `unisono-conformance` and the plugin lie in this folder, as on a machine without a
        /// toolchain. The page is written there, too.
        #[arg(long, value_name = "FOLDER", conflicts_with = "emulated")]
        built: Option<PathBuf>,
        /// The commit that they were built from, where git cannot say.
        #[arg(long, value_name = "ID", requires = "built")]
        commit: Option<String>,
    },
    /// Count the instructions of a call under valgrind: fails where one takes more than its budget.
    Instructions {
        /// Write the table to vendor-docs/results.
        #[arg(long)]
        page: bool,
    },
    /// Measure what joining, communicators, calls and plans cost as ranks become more, check what is promised
    /// of memory, and write the page.
    Growth {
        /// Do not write the page to vendor-docs/results, but print it.
        #[arg(long)]
        dry: bool,
        /// The numbers of ranks; 1,2,4,8,16,32,64 without it.
        #[arg(long, value_delimiter = ',')]
        ranks: Vec<u32>,
        /// Handed on; `-- --help` lists what can be chosen.
        #[arg(last = true)]
        rest: Vec<String>,
    },
    /// Compile the devices' kernels anew from plugins/kernels/sources.
    Kernels {
        /// Write nothing, and fail if what is committed is not what the sources give.
        #[arg(long)]
        check: bool,
    },
    /// Compare with other collective libraries that are installed here; `-- --help` lists what can
    /// be chosen, `--quick` takes a minute.
    Peers {
        /// Handed on.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Measure the host plugin's reductions of every type beside a plain loop that adds, and write the page.
    Reduction {
        /// How long each cell is measured, in milliseconds; there are 172.
        #[arg(long, default_value_t = 1000)]
        cell_ms: u64,
        /// Do not write the page to vendor-docs/results, but print it.
        #[arg(long)]
        dry: bool,
    },
    /// Write include/unisono_plugin_layout.h anew from hal/abi.
    Abi,
    /// Compare a renamed copy of the host plugin, built outside the workspace, with the original:
    /// fails if any size is surely more than 5 % slower.
    OutOfTree {
        /// Do not write the table to vendor-docs/results.
        #[arg(long)]
        dry: bool,
    },
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Demo { ranks } => demo::demo(ranks),
        Task::Test { strict, filter } => test::test(
            strict.is_some_and(|s| s == "true" || s == "1"),
            filter.as_deref(),
        ),
        Task::Soak { suite, dry } => soak::soak(suite.as_deref(), dry),
        Task::Dist {
            prefix,
            debug,
            built,
        } => dist::dist(prefix, debug, built),
        Task::Regret {
            full,
            seconds,
            seed,
            graphs,
            dry,
            rest,
        } => {
            let dry = dry || !rest.is_empty();
            regret::regret(full, seconds, seed, &graphs, &rest, dry)
        }
        Task::Conformance {
            plugin,
            expect,
            rest,
        } => conformance::conformance(&plugin, &expect, &rest),
        Task::Gpu {
            emulated,
            built,
            commit,
        } => match built {
            Some(folder) => gpu::built(&folder, commit),
            None => gpu::gpu(emulated),
        },
        Task::Instructions { page } => instructions::instructions(page),
        Task::Growth { dry, ranks, rest } => growth::growth(&ranks, &rest, dry),
        Task::Kernels { check } => kernels::kernels(check),
        Task::Peers { arguments } => peers::peers(&arguments),
        Task::Reduction { cell_ms, dry } => reduction::reduction(cell_ms, dry),
        Task::Abi => abi::write(),
        Task::OutOfTree { dry } => out_of_tree::compare(dry),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Where cargo puts what it builds with a profile.
fn target(debug: bool) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let profile = if debug { "debug" } else { "release" };
    root().join(target).join(profile)
}

/// The top of the workspace.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), PathBuf::from)
}
