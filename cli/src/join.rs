//! How the subcommands that form a communicator are told about it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use unisono::bootstrap::BootstrapError;
use unisono::{Communicator, Init, InitError, InitOptions};

use crate::launch::{Launch, Output};
use crate::logging;

/// Where plugins, links and settings come from.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Plugins and settings")]
pub struct JoinArgs {
    /// The cluster file, instead of the one that is found.
    #[arg(long, value_name = "FILE")]
    pub cluster_file: Option<PathBuf>,
    /// Another value for a key of the cluster file, such as timeouts.op=10s or algorithms='[{op: all_gather, use: ring}]';
    /// may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Use this plugin; may be repeated, in order of preference (default: those of the cluster file,
    /// else host and tcp).
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub plugin: Vec<String>,
    /// Look for plugins in this folder first; may be repeated.
    #[arg(long, value_name = "DIR")]
    pub plugin_path: Vec<PathBuf>,
    /// The device of each rank, as PLUGIN:NUMBER.
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Do without links of these kinds, separated by commas: `shm` leaves TCP.
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    pub without_links: Vec<String>,
    /// The same bits for the same inputs, whatever the links.
    #[arg(long)]
    pub deterministic: bool,
}

impl JoinArgs {
    /// As these arguments and the environment say.
    pub fn init(&self) -> Result<Init> {
        let mut init = Init::from_env().deterministic(self.deterministic);
        if let Some(path) = &self.cluster_file {
            init = init.cluster_file(path);
        }
        for pair in &self.set {
            let Some((key, value)) = pair.split_once('=') else {
                bail!("--set {pair}: write KEY=VALUE, such as timeouts.op=10s");
            };
            init = init.set(key.trim(), value_of(value.trim()));
        }
        for name in &self.plugin {
            init = init.plugin(name);
        }
        for folder in &self.plugin_path {
            init = init.plugin_path(folder);
        }
        for kind in &self.without_links {
            init = init.without_link(kind);
        }
        if let Some(device) = &self.device {
            init = init.device(device);
        }
        Ok(init)
    }

    /// What to join with. A rank without a launcher is alone, if `alone` says that this will do.
    pub fn options(&self, alone: bool) -> Result<InitOptions> {
        let mut init = self.init()?;
        logging::take_level(&init.cluster()?.cluster);
        match init.options() {
            Err(InitError::Bootstrap(BootstrapError::NoLauncher { .. })) if alone => {
                let job = format!("alone {}", std::process::id());
                init = init.rank(0).size(1).job(job);
                Ok(init.options()?)
            }
            Err(error @ InitError::Bootstrap(BootstrapError::NoLauncher { .. })) => {
                bail!("{error}; or add --ranks N to start N ranks on this machine")
            }
            options => Ok(options?),
        }
    }

    /// Joins.
    pub fn join(&self, alone: bool) -> Result<Communicator> {
        Ok(Communicator::init(self.options(alone)?)?)
    }
}

/// Numbers, truth values and lists as JSON writes them, lists and keys as YAML does too; everything else is a text.
fn value_of(text: &str) -> serde_json::Value {
    let value = serde_json::from_str(text).ok();
    let in_yaml = || match text.starts_with(['[', '{']) {
        true => serde_saphyr::from_str(text).ok(),
        false => None,
    };
    value.or_else(in_yaml).unwrap_or_else(|| text.into())
}

/// Whether a subcommand starts its ranks itself.
#[derive(Clone, Debug, clap::Args)]
pub struct RankArgs {
    /// Start this many ranks on this machine; without it, this process is one rank of a job that a
    /// launcher started.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub ranks: Option<u32>,
    /// This process was started by `--ranks`.
    #[arg(long, hide = true)]
    as_rank: bool,
}

impl RankArgs {
    /// Starts the ranks if that is asked for: each runs this command again, as one rank. `None` in
    /// a process that is a rank itself.
    pub fn launch(&self, default: Option<u32>) -> Result<Option<ExitCode>> {
        if self.as_rank {
            return Ok(None);
        }
        let Some(ranks) = self.ranks.or(default) else {
            return Ok(None);
        };
        let program = std::env::current_exe().context("finding this program's file")?;
        let mut args: Vec<OsString> = std::env::args_os().skip(1).collect();
        args.push("--as-rank".into());
        let mut launch = Launch::new(ranks, program.into(), args);
        launch.output = Output::Shared;
        launch.run().map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::value_of;
    use serde_json::json;

    #[test]
    fn values_are_what_a_cluster_file_would_say() {
        for (text, value) in [
            ("4", json!(4)),
            ("true", json!(true)),
            ("10s", json!("10s")),
            ("[a, b]", json!(["a", "b"])),
            (
                "[{op: all_gather, use: ring}]",
                json!([{"op": "all_gather", "use": "ring"}]),
            ),
            ("[{op: all_gather", json!("[{op: all_gather")),
            // Addresses are no lists.
            ("[::1]:29500", json!("[::1]:29500")),
        ] {
            assert_eq!(value_of(text), value, "{text}");
        }
    }
}
