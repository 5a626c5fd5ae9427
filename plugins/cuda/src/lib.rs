//! The cuda plugin of unisono: NVIDIA's devices through the driver API.
use unisono_plugin::{Context, Error, Instance, NoDevice, NoLink, Plugin, Result, Status};

/// The plugin.
#[derive(Debug)]
pub struct CudaPlugin;

impl Plugin for CudaPlugin {
    type Instance = Self;
    const NAME: &'static str = "cuda";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const VENDOR: &'static str = "unisono";

    fn create(_: Context<'_>) -> Result<Self> {
        Err(Error::new(Status::NoDriver, "no driver"))
    }
}

impl Instance for CudaPlugin {
    type Device = NoDevice;
    type Link = NoLink;
}

unisono_plugin::plugin!(CudaPlugin);
