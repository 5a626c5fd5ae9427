//! The plugin and one use of it.

use unisono_plugin::{
    Context, DeviceInfo, Error, Host, Instance, Level, LinkInfo, NoLink, Param, Plugin, Result, log,
};
use unisono_plugin_accelerator::{Accelerator, check_fork};

use crate::api::{Api, api};
use crate::device::Opened;
use crate::facts::{self, Facts};
use crate::params::{self, Options};
use crate::runtime::RocmRuntime;
use crate::topology;

/// The plugin.
#[derive(Debug)]
pub struct RocmPlugin;

/// One use of it.
#[derive(Debug)]
pub struct RocmInstance {
    api: &'static Api,
    options: Options,
    devices: Vec<Facts>,
    links: Vec<LinkInfo>,
    host: Host,
}

impl Plugin for RocmPlugin {
    type Instance = RocmInstance;
    const NAME: &'static str = "rocm";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const VENDOR: &'static str = "unisono";
    const PARAMS: &'static [Param] = params::TABLE;

    fn create(context: Context<'_>) -> Result<RocmInstance> {
        check_fork()?;
        let options = Options::parse(context.params)?;
        let api = api()?;
        let devices = api.quietly(facts::all)?;
        let (links, why) = api.quietly(|api| topology::links(api, &devices, options.topology));
        if let Some(why) = why {
            log!(
                context.host,
                Level::Warn,
                "rates of links are guessed: {why}"
            );
        }
        log!(
            context.host,
            Level::Info,
            "runtime {} of HIP {}, {} devices",
            api.path,
            version(api),
            devices.len()
        );
        Ok(RocmInstance {
            api,
            options,
            devices,
            links,
            host: context.host,
        })
    }
}

/// The runtime's version, as its makers write it.
#[allow(unsafe_code, reason = "asks the runtime for a number")]
fn version(api: &Api) -> String {
    let mut version = 0;
    // SAFETY: writes a number.
    let _ = unsafe { (api.runtime_version)(&raw mut version) };
    format!(
        "{}.{}.{}",
        version / 10_000_000,
        version / 100_000 % 100,
        version % 100_000
    )
}

impl Instance for RocmInstance {
    type Device = Accelerator<RocmRuntime>;
    type Link = NoLink;

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        Ok(self
            .devices
            .iter()
            .map(|facts| facts.info.clone())
            .collect())
    }

    fn open(&self, index: u32) -> Result<Accelerator<RocmRuntime>> {
        let facts = self.devices.get(index as usize).ok_or_else(|| {
            let count = self.devices.len();
            Error::invalid(format!(
                "there is no device {index}: the runtime has {count}"
            ))
        })?;
        Accelerator::open(index, &facts.info, self.options.depth, self.host, || {
            log!(self.host, Level::Debug, "opening {}", facts.info.name);
            RocmRuntime::open(Opened {
                api: self.api,
                facts: facts.clone(),
                options: self.options,
                ids: self.devices.iter().map(|facts| facts.info.id).collect(),
            })
        })
    }

    fn links(&self) -> Result<Vec<LinkInfo>> {
        Ok(self.links.clone())
    }
}
