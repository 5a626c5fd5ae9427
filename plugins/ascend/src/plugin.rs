//! The plugin and one use of it.
#![allow(unsafe_code, reason = "asks the runtime for its version")]

use unisono_plugin::{
    Context, DeviceInfo, Error, Host, Instance, Level, LinkInfo, NoLink, Param, Plugin, Result, log,
};
use unisono_plugin_accelerator::{Accelerator, check_fork};

use crate::api::{Api, api};
use crate::device::Opened;
use crate::facts::{self, Facts};
use crate::params::{self, Options};
use crate::runtime::AscendRuntime;
use crate::topology;

/// The plugin.
#[derive(Debug)]
pub struct AscendPlugin;

/// One use of it.
#[derive(Debug)]
pub struct AscendInstance {
    api: &'static Api,
    options: Options,
    devices: Vec<Facts>,
    links: Vec<LinkInfo>,
    host: Host,
}

impl Plugin for AscendPlugin {
    type Instance = AscendInstance;
    const NAME: &'static str = "ascend";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const VENDOR: &'static str = "unisono";
    const PARAMS: &'static [Param] = params::TABLE;

    fn create(context: Context<'_>) -> Result<AscendInstance> {
        check_fork()?;
        let options = Options::parse(context.params)?;
        let api = api()?;
        let devices = facts::all(api)?;
        let (links, guessed) = topology::links(api, &devices, options.hccs);
        if guessed {
            log!(
                context.host,
                Level::Warn,
                "links are guessed as PCIe: this runtime has no aclrtGetDevicesTopo"
            );
        }
        log!(
            context.host,
            Level::Info,
            "runtime {} {}, {} devices",
            api.path,
            version(api),
            devices.len()
        );
        Ok(AscendInstance {
            api,
            options,
            devices,
            links,
            host: context.host,
        })
    }
}

/// The runtime's own version.
fn version(api: &Api) -> String {
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    let ask = api.version.map(|ask| {
        // SAFETY: writes three numbers.
        unsafe { ask(&raw mut major, &raw mut minor, &raw mut patch) }
    });
    if ask == Some(0) {
        format!("{major}.{minor}.{patch}")
    } else {
        "of no known version".to_owned()
    }
}

impl Instance for AscendInstance {
    type Device = Accelerator<AscendRuntime>;
    type Link = NoLink;

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        Ok(self
            .devices
            .iter()
            .map(|facts| facts.info.clone())
            .collect())
    }

    fn open(&self, index: u32) -> Result<Accelerator<AscendRuntime>> {
        let facts = self.devices.get(index as usize).ok_or_else(|| {
            let count = self.devices.len();
            Error::invalid(format!(
                "there is no device {index}: the runtime has {count}"
            ))
        })?;
        let device = Accelerator::open(index, &facts.info, self.options.depth, self.host, || {
            log!(self.host, Level::Debug, "opening {}", facts.info.name);
            let ids = self.devices.iter().map(|facts| facts.info.id).collect();
            let opened = Opened::new(self.api, facts.clone(), self.options)?;
            Ok(AscendRuntime::new(opened, ids))
        })?;
        if !device.runtime().has_values() {
            log!(
                self.host,
                Level::Info,
                "streams of {} cannot wait for numbers in host memory: a thread opens notifies for them",
                facts.info.name
            );
        }
        Ok(device)
    }

    fn links(&self) -> Result<Vec<LinkInfo>> {
        Ok(self.links.clone())
    }
}
