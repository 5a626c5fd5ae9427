//! A plugin that was found sound: its facts, its parameters and its functions.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use unisono_abi as abi;

use crate::check;
use crate::log_sink::{LogFacade, LogSink};
use crate::params::{ParamSpec, ParamValues};
use crate::tables::Tables;
use crate::{Error, HostVersion, Instance, LoadError, Result, Status};

/// A plugin. Cloning is free, and a plugin is never unloaded.
#[derive(Clone)]
pub struct Plugin(&'static PluginData);

/// The query of a plugin that is linked in, whose code somebody has answered for.
#[derive(Clone, Copy, Debug)]
pub struct QueryFn(abi::QueryFn);

/// Who a plugin is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its version.
    pub version: String,
    /// Who makes it.
    pub vendor: String,
    /// Which build of it this is. May be empty.
    pub build_id: String,
    /// The contract's major version.
    pub abi_major: u16,
    /// The contract's minor version.
    pub abi_minor: u16,
    /// The sanitizer that it was built with: one of [`unisono_abi::sanitizer`].
    pub sanitizer: u32,
    /// The library it was loaded from, `None` if it is linked in.
    pub path: Option<PathBuf>,
    /// Every function of the contract, and whether the plugin has it.
    pub functions: Vec<Function>,
}

/// One function of the contract, in one plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its table.
    pub table: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Whether the plugin has it.
    pub present: bool,
}

/// Sizes of the structs that a plugin writes as arrays, as that plugin knows them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strides {
    pub(crate) device_info: usize,
    pub(crate) link_info: usize,
    /// Not an array, but filled as large as the plugin knows it.
    pub(crate) link_statistics: usize,
}

pub(crate) struct PluginData {
    pub(crate) name: &'static str,
    pub(crate) facts: Facts,
    pub(crate) params: Vec<ParamSpec>,
    pub(crate) tables: Tables,
    pub(crate) strides: Strides,
}

impl PluginData {
    #[cold]
    pub(crate) fn null_handle(&self, call: &'static str) -> Error {
        let what = "the plugin answered OK and gave no handle";
        Error::host(self.name, call, Status::Invalid, what)
    }
}

impl Plugin {
    /// A plugin that is linked in. It is checked like any other.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn from_static(query: QueryFn) -> Result<Self, LoadError> {
        check::ask(query, HostVersion::CURRENT, None).map_err(LoadError::linked)
    }

    pub(crate) const fn new(data: &'static PluginData) -> Self {
        Self(data)
    }

    pub(crate) const fn data(&self) -> &'static PluginData {
        self.0
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.0.name
    }

    /// Who it is.
    #[must_use]
    pub const fn facts(&self) -> &'static Facts {
        &self.0.facts
    }

    /// The library it was loaded from, `None` if it is linked in.
    #[must_use]
    pub fn path(&self) -> Option<&'static Path> {
        self.0.facts.path.as_deref()
    }

    /// The parameters that it takes.
    #[must_use]
    pub fn params(&self) -> &'static [ParamSpec] {
        &self.0.params
    }

    /// Checks parameters, given as (name, text), against what the plugin takes. What is not given
    /// has its default.
    ///
    /// # Errors
    /// [`Status::Invalid`] for a name that the plugin does not have, one given twice, a text of
    /// the wrong type or unit, or a value out of bounds.
    pub fn parse_params(&self, given: &[(String, String)]) -> Result<ParamValues> {
        ParamValues::parse(&self.0.params, given)
            .map_err(|what| Error::host(self.0.name, "parameters", Status::Invalid, what))
    }

    /// Starts a use of the plugin, whose log goes to the `log` crate. May block: this opens
    /// drivers.
    ///
    /// # Errors
    /// As [`Plugin::parse_params`], and what the plugin says; [`Status::NoDriver`] if the vendor's
    /// library is missing.
    pub fn instantiate(&self, params: &[(String, String)]) -> Result<Instance> {
        self.instantiate_with_log(params, Arc::new(LogFacade))
    }

    /// As [`Plugin::instantiate`], with another place for the log.
    ///
    /// # Errors
    /// As there.
    pub fn instantiate_with_log(
        &self,
        params: &[(String, String)],
        log: Arc<dyn LogSink>,
    ) -> Result<Instance> {
        Instance::create(self, &self.parse_params(params)?, log)
    }
}

impl QueryFn {
    /// Takes a plugin's query.
    ///
    /// # Safety
    /// `query`, and every function of the tables that it gives, keeps the contract of
    /// `unisono_plugin.h`.
    #[must_use]
    #[allow(unsafe_code, reason = "the caller answers for the functions")]
    pub const unsafe fn new(query: abi::QueryFn) -> Self {
        Self(query)
    }

    pub(crate) const fn get(self) -> abi::QueryFn {
        self.0
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin")
            .field("name", &self.0.name)
            .field("facts", &self.0.facts)
            .finish_non_exhaustive()
    }
}
