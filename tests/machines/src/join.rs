//! Joining with the links under test.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use unisono::{Communicator, Init, InitOptions, PluginRequest};

use crate::shared;

/// Which links, and how they are set.
#[derive(Clone, Debug, clap::Args)]
pub struct LinkArgs {
    /// The plugin whose links are tested.
    #[arg(long, value_name = "NAME", default_value = "tcp")]
    pub plugin: String,
    /// A parameter of it; of values between plus signs each rank takes its own.
    #[arg(long, value_name = "NAME=VALUE[+VALUE]", value_parser = parameter)]
    pub param: Vec<(String, String)>,
    /// Seconds that one call may take.
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub deadline: u64,
    /// Use this algorithm for everything.
    #[arg(long, value_name = "NAME")]
    pub algorithm: Option<String>,
    /// Let ranks of one node talk through shared memory.
    #[arg(long)]
    pub shared_memory: bool,
    /// At the end, each rank names the memory that it shares with other processes.
    #[arg(long)]
    pub shared: bool,
    /// Plugins and devices are those of the cluster file, instead of the CPU and `--plugin`.
    #[arg(long, conflicts_with_all = ["plugin", "param"])]
    pub as_configured: bool,
}

fn parameter(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl LinkArgs {
    /// The plugin's parameters on a rank.
    pub fn params(&self, rank: u32) -> Vec<(String, String)> {
        let own = |values: &str| {
            let values: Vec<_> = values.split('+').collect();
            values[rank as usize % values.len()].to_owned()
        };
        let params = self.param.iter();
        params
            .map(|(name, values)| (name.clone(), own(values)))
            .collect()
    }

    /// The library of a plugin: beside this program, where that is.
    pub fn library(name: &str) -> Result<Option<PathBuf>> {
        let program = env::current_exe().context("finding this program's file")?;
        let path = program.with_file_name(format!("libunisono_plugin_{name}.so"));
        Ok(path.exists().then_some(path))
    }

    /// What to join with, as the environment says.
    pub fn options(&self) -> Result<InitOptions> {
        let mut init = Init::from_env();
        if let Some(name) = &self.algorithm {
            init = init.set("algorithms", json!([{ "use": name }]));
        }
        let mut options = init.options()?;
        let request = |name: &str, params| -> Result<PluginRequest> {
            let mut request = PluginRequest::named(name);
            request.path = Self::library(name)?;
            request.params = params;
            Ok(request)
        };
        if !self.as_configured {
            let params = self.params(options.rank);
            options.plugins = vec![request("host", Vec::new())?, request(&self.plugin, params)?];
        }
        if !self.shared_memory {
            options.without_links = vec!["shm".to_owned()];
        }
        options.timeouts.op = Duration::from_secs(self.deadline);
        Ok(options)
    }

    /// Names the memory that this process shares with others, if it is asked to. It is there until all
    /// have looked.
    pub fn tell_shared(&self, world: &Communicator) -> Result<()> {
        if self.shared {
            for name in shared::mappings()? {
                println!("shared {name}");
            }
            println!("shared memory is named");
            world.barrier()?;
        }
        Ok(())
    }

    /// Joins.
    pub fn join(&self) -> Result<Communicator> {
        Ok(Communicator::init(self.options()?)?)
    }
}
