//! The plugin's facts and its instances.

use std::ffi::c_void;
use std::sync::Arc;

use unisono_plugin::abi::CommandReduce;
use unisono_plugin::{
    Combiner, Context, CpuInstance, DeviceId, DeviceInfo, Error, Instance, LinkInfo, LinkType,
    NoLink, Param, Plugin, Result, Scope, cpu_interface,
};

use crate::bell;
use crate::config::{Config, PARAMS};
use crate::device::{self, HostDevice};
use crate::fork;
use crate::stream;

/// The host plugin.
#[derive(Clone, Copy, Debug)]
pub struct HostPlugin;

impl Plugin for HostPlugin {
    type Instance = HostInstance;
    const NAME: &'static str = "host";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const VENDOR: &'static str = "unisono";
    const PARAMS: &'static [Param] = PARAMS;

    fn create(context: Context<'_>) -> Result<HostInstance> {
        fork::own()?;
        Ok(HostInstance {
            config: Arc::new(Config::new(&context.params)?),
        })
    }
}

/// One use of the host plugin.
#[derive(Debug)]
pub struct HostInstance {
    config: Arc<Config>,
}

impl Instance for HostInstance {
    type Device = HostDevice;
    type Link = NoLink;

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        fork::check()?;
        Ok(vec![device::info(&self.config)])
    }

    fn interface(&self, id: &str) -> *const c_void {
        cpu_interface::<Self>(id)
    }

    fn open(&self, index: u32) -> Result<HostDevice> {
        if index != 0 {
            return Err(Error::invalid(format!(
                "there is no device {index}: the host has one"
            )));
        }
        HostDevice::open(Arc::clone(&self.config))
    }

    /// Shared memory between any two processes of the node. Its figures are parameters, not
    /// measurements: a plan must not depend on how busy a machine was when it started.
    fn links(&self) -> Result<Vec<LinkInfo>> {
        fork::check()?;
        Ok(vec![LinkInfo {
            link_type: LinkType::Mapped,
            scope: Scope::Node,
            shared: 0,
            from: DeviceId::default(),
            to: DeviceId::default(),
            kind: "shm".to_owned(),
            bytes_per_second: self.config.shm_bandwidth,
            read_bytes_per_second: 0,
            latency_ns: u64::try_from(self.config.shm_latency.as_nanos()).unwrap_or(u64::MAX),
            rail: 0,
        }])
    }
}

#[allow(unsafe_code, reason = "takes addresses")]
impl CpuInstance for HostInstance {
    #[inline]
    unsafe fn ring(&self, bells: &[u64]) {
        // SAFETY: the caller's promise.
        unsafe { bell::ring_all(bells) };
    }

    #[inline]
    unsafe fn reduce(&self, command: &CommandReduce) -> bool {
        // SAFETY: the caller's promise.
        unsafe { stream::reduce_at_once(command, &self.config) }
    }

    fn combiner(&self, dtype: u16, reduction: u16) -> Option<Combiner> {
        let kernel = self.config.kernel(dtype, reduction)?;
        // SAFETY: the kernel is the function's, which only reads it, and stays where it is for as long as the instance lives.
        Some(unsafe { Combiner::new(stream::combine, (&raw const *kernel).cast_mut().cast()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reports_one_device_and_shared_memory_between_processes() {
        let instance = HostInstance {
            config: Arc::new(Config::for_tests()),
        };
        let devices = instance.devices().unwrap();
        assert_eq!(devices.len(), 1);
        assert!(instance.open(0).is_ok());
        assert!(instance.open(1).is_err());
        let links = instance.links().unwrap();
        assert_eq!(links.len(), 1);
        assert_eq!(
            (links[0].kind.as_str(), links[0].scope, links[0].latency_ns),
            ("shm", Scope::Node, 200)
        );
    }
}
