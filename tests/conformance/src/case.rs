//! What a check has to work with.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use unisono_hal::{Device, Instance, Loader, Plugin, SupportQuery};

use crate::outcome::{Checked, Stop, ensure};
use crate::peer::Peer;

/// A check in one of its processes.
pub struct Case {
    path: PathBuf,
    params: Vec<(String, String)>,
    role: u32,
    peer: Option<Peer>,
    killed: AtomicBool,
}

impl Case {
    /// Role 0 is the one that reports; `peer` is there if the check has two processes.
    #[must_use]
    pub fn new(
        path: PathBuf,
        params: Vec<(String, String)>,
        role: u32,
        peer: Option<Peer>,
    ) -> Self {
        Self {
            path,
            params,
            role,
            peer,
            killed: AtomicBool::new(false),
        }
    }

    /// The library.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Parameters that the author gave.
    #[must_use]
    pub fn params(&self) -> &[(String, String)] {
        &self.params
    }

    /// This process's role: 0 or 1.
    #[must_use]
    pub fn role(&self) -> u32 {
        self.role
    }

    /// The other process.
    ///
    /// # Errors
    /// If the check was listed as one of a single process.
    pub fn peer(&self) -> Checked<&Peer> {
        let peer = self.peer.as_ref();
        peer.ok_or_else(|| Stop::failed("this check is listed as one of a single process"))
    }

    /// Says that the other process is going to be killed by the check itself.
    pub fn expect_death(&self) {
        self.killed.store(true, Ordering::Release);
    }

    /// Whether the check kills the other process.
    #[must_use]
    pub fn was_killed(&self) -> bool {
        self.killed.load(Ordering::Acquire)
    }

    /// The plugin, as the host loads it.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn plugin(&self) -> Checked<Plugin> {
        let loaded = Loader::default().load_path(&self.path);
        loaded.map_err(|error| Stop::failed(error.to_string()))
    }

    /// Whether the plugin has a function of the contract.
    ///
    /// # Errors
    /// As [`Case::plugin`].
    pub fn has(&self, table: &str, name: &str) -> Checked<bool> {
        let plugin = self.plugin()?;
        let functions = &plugin.facts().functions;
        let found = functions
            .iter()
            .find(|f| f.table == table && f.name == name);
        ensure!(found.is_some(), "the contract has no {table}.{name}");
        Ok(found.is_some_and(|f| f.present))
    }

    /// Ends the check as unsupported unless the plugin has these functions.
    ///
    /// # Errors
    /// The first that it does not have.
    pub fn needs(&self, functions: &[(&str, &str)]) -> Checked {
        for (table, name) in functions {
            if !self.has(table, name)? {
                return Err(Stop::unsupported(format!(
                    "the plugin has no {table}.{name}"
                )));
            }
        }
        Ok(())
    }

    /// A use of the plugin.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn instance(&self) -> Checked<Instance> {
        Ok(self.plugin()?.instantiate(&self.params)?)
    }

    /// The plugin's first device, of a new instance.
    ///
    /// # Errors
    /// Unsupported if it has none.
    pub fn device(&self) -> Checked<Device> {
        let instance = self.instance()?;
        if instance.devices()?.is_empty() {
            return Err(Stop::unsupported("the plugin has no devices here"));
        }
        Ok(instance.open(0)?)
    }

    /// The plugin's first device, if its streams run this command.
    ///
    /// # Errors
    /// Unsupported if it has no device, no streams or not this command.
    pub fn streams(&self, command: u16) -> Checked<Device> {
        let device = self.device()?;
        self.needs(&[
            ("stream", "create"),
            ("stream", "submit"),
            ("stream", "poll"),
            ("memory", "alloc"),
        ])?;
        if supports(&device, command) {
            Ok(device)
        } else {
            Err(Stop::unsupported(format!(
                "`supports` says no to command kind {command}"
            )))
        }
    }
}

/// Whether streams of the device run a command that has no type, on its own memory.
#[must_use]
pub fn supports(device: &Device, command: u16) -> bool {
    let place = unisono_hal::Place::Device;
    device.supports(&SupportQuery {
        command,
        dtype: 0,
        reduction: 0,
        source: place,
        destination: place,
    })
}
