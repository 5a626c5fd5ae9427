//! The plugin and one use of it.

use unisono_plugin::{
    Context, DeviceInfo, Error, Host, Instance, Level, LinkInfo, NoLink, Param, Plugin, Result, log,
};
use unisono_plugin_accelerator::{Accelerator, check_fork};

use crate::api::{Api, api};
use crate::device::Opened;
use crate::facts::{self, Facts};
use crate::params::{self, Options};
use crate::runtime::CudaRuntime;
use crate::topology;

/// The plugin.
#[derive(Debug)]
pub struct CudaPlugin;

/// One use of it.
#[derive(Debug)]
pub struct CudaInstance {
    api: &'static Api,
    options: Options,
    devices: Vec<Facts>,
    links: Vec<LinkInfo>,
    host: Host,
}

impl Plugin for CudaPlugin {
    type Instance = CudaInstance;
    const NAME: &'static str = "cuda";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const VENDOR: &'static str = "unisono";
    const PARAMS: &'static [Param] = params::TABLE;

    fn create(context: Context<'_>) -> Result<CudaInstance> {
        check_fork()?;
        let options = Options::parse(context.params)?;
        let api = api()?;
        let devices = facts::all(api)?;
        let found = topology::links(api, &devices, options.topology);
        let (links, why) = found;
        if let Some(why) = why {
            log!(
                context.host,
                Level::Warn,
                "links are guessed as PCIe: {why}"
            );
        }
        log!(
            context.host,
            Level::Info,
            "driver {} for CUDA {}, {} devices",
            api.path,
            version(api),
            devices.len()
        );
        Ok(CudaInstance {
            api,
            options,
            devices,
            links,
            host: context.host,
        })
    }
}

/// What the driver is made for, as its makers write it.
#[allow(unsafe_code, reason = "asks the driver for a number")]
fn version(api: &Api) -> String {
    let mut version = 0;
    // SAFETY: writes a number.
    let _ = unsafe { (api.driver_version)(&raw mut version) };
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

impl Instance for CudaInstance {
    type Device = Accelerator<CudaRuntime>;
    type Link = NoLink;

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        Ok(self
            .devices
            .iter()
            .map(|facts| facts.info.clone())
            .collect())
    }

    fn open(&self, index: u32) -> Result<Accelerator<CudaRuntime>> {
        let facts = self.devices.get(index as usize).ok_or_else(|| {
            let count = self.devices.len();
            Error::invalid(format!(
                "there is no device {index}: the driver has {count}"
            ))
        })?;
        Accelerator::open(index, &facts.info, self.options.depth, self.host, || {
            log!(self.host, Level::Debug, "opening {}", facts.info.name);
            let ids = self.devices.iter().map(|facts| facts.info.id).collect();
            let descriptors = self.options.descriptors;
            let opened = Opened::new(self.api, facts.clone(), ids, descriptors)?;
            CudaRuntime::open(opened, self.options)
        })
    }

    fn links(&self) -> Result<Vec<LinkInfo>> {
        Ok(self.links.clone())
    }
}
