//! The plugins of this process: each is loaded once and used by every rank and communicator in it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use unisono_hal::{Instance, ParamKind, ParamSpec, Plugin, Status};

use crate::error::{Error, Result};
use crate::options::{InitOptions, PluginRequest};

/// A plugin in use.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub name: String,
    pub instance: Instance,
}

/// The plugins that this rank uses, in their order, and those that are left out of them.
pub(crate) struct Plugins {
    pub loaded: Vec<Loaded>,
    pub left_out: Vec<LeftOut>,
}

/// A plugin whose driver is not on this machine.
pub(crate) struct LeftOut {
    pub name: String,
    /// How many of those that are used stand before it.
    pub before: usize,
    pub why: String,
}

/// The parameter that the contract lets the host fill in: the interfaces that may be used.
const INTERFACES: &str = "interfaces";

type Key = (String, Option<PathBuf>);

#[derive(Default)]
struct Known {
    plugins: HashMap<Key, Plugin>,
    instances: HashMap<(Key, Vec<(String, String)>), Loaded>,
}

/// Loads and instantiates the plugins that `options` name, or finds those that are there already. Hosts
/// of one job need not all have the drivers of all vendors: a plugin without its own is left out, unless
/// this rank's device is said to be one of its.
pub(crate) fn plugins(options: &InitOptions, interfaces: &str) -> Result<Plugins> {
    static KNOWN: OnceLock<Mutex<Known>> = OnceLock::new();
    let mut known = KNOWN
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let (mut loaded, mut left_out) = (Vec::new(), Vec::new());
    for request in &options.plugins {
        let is_meant = matches!(&options.device, Some((name, _)) if *name == request.name);
        match known.instance(options, request, interfaces) {
            Ok(plugin) => loaded.push(plugin),
            Err(Error::Plugin { source, .. }) if source.status == Status::NoDriver && !is_meant => {
                log::warn!("rank {} does without it: {source}", options.rank);
                left_out.push(LeftOut {
                    name: request.name.clone(),
                    before: loaded.len(),
                    why: source.to_string(),
                });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Plugins { loaded, left_out })
}

impl Known {
    fn instance(
        &mut self,
        options: &InitOptions,
        request: &PluginRequest,
        interfaces: &str,
    ) -> Result<Loaded> {
        let key = (request.name.clone(), request.path.clone());
        let plugin = match self.plugins.get(&key) {
            Some(plugin) => plugin.clone(),
            None => {
                let plugin = load(options, request)?;
                self.plugins.insert(key.clone(), plugin.clone());
                plugin
            }
        };
        let params = with_interfaces(&plugin, &request.params, interfaces);
        let key = (key, params);
        if let Some(loaded) = self.instances.get(&key) {
            return Ok(loaded.clone());
        }
        let loaded = Loaded {
            name: request.name.clone(),
            instance: plugin.instantiate(&key.1)?,
        };
        self.instances.insert(key, loaded.clone());
        Ok(loaded)
    }
}

/// The parameters of a request, with the interfaces where the plugin takes them and the request
/// says nothing of them.
fn with_interfaces(
    plugin: &Plugin,
    params: &[(String, String)],
    interfaces: &str,
) -> Vec<(String, String)> {
    let mut params = params.to_vec();
    let takes = |spec: &ParamSpec| spec.name == INTERFACES && spec.kind == ParamKind::String;
    let given = params.iter().any(|(name, _)| name == INTERFACES);
    if !given && plugin.params().iter().any(takes) {
        params.push((INTERFACES.to_owned(), interfaces.to_owned()));
    }
    params
}

fn load(options: &InitOptions, request: &PluginRequest) -> Result<Plugin> {
    let plugin = match (&request.linked, &request.path) {
        (Some(plugin), _) => plugin.clone(),
        (None, Some(path)) => options.loader.load_path(path)?,
        (None, None) => options.loader.load(&request.name)?,
    };
    if plugin.name() != request.name {
        return Err(Error::invalid(
            "init",
            format!(
                "plugin `{}` was asked for, but {} is plugin `{}`",
                request.name,
                plugin.path().map_or_else(
                    || "what is linked in".to_owned(),
                    |p| p.display().to_string()
                ),
                plugin.name()
            ),
        ));
    }
    Ok(plugin)
}
