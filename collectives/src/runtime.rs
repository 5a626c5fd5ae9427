//! The plugins of this process: each is loaded once and used by every rank and communicator in it.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use unisono_hal::Instance;

use crate::error::{Error, Result};
use crate::options::{InitOptions, PluginRequest};

/// A plugin in use.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub name: String,
    pub instance: Instance,
}

/// Loads and instantiates the plugins that `options` name, or finds those that are there already.
pub(crate) fn plugins(options: &InitOptions) -> Result<Vec<Loaded>> {
    options
        .plugins
        .iter()
        .map(|request| load(options, request))
        .collect()
}

fn load(options: &InitOptions, request: &PluginRequest) -> Result<Loaded> {
    type Key = (String, Vec<(String, String)>, Option<std::path::PathBuf>);
    static INSTANCES: OnceLock<Mutex<HashMap<Key, Loaded>>> = OnceLock::new();
    let key = (
        request.name.clone(),
        request.params.clone(),
        request.path.clone(),
    );
    let mut instances = INSTANCES
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if let Some(loaded) = instances.get(&key) {
        return Ok(loaded.clone());
    }
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
    let loaded = Loaded {
        name: request.name.clone(),
        instance: plugin.instantiate(&request.params)?,
    };
    instances.insert(key, loaded.clone());
    Ok(loaded)
}
