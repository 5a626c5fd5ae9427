//! One use of a plugin by one process.

use std::ffi::c_void;

use crate::{Device, DeviceInfo, Error, Host, Link, LinkInfo, LinkRequest, Params, Result};

/// What an instance is made from.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The parameters, all present, checked against the plugin's table.
    pub params: Params<'a>,
    /// The host's services; they stay valid until the instance is dropped.
    pub host: Host,
}

/// One use of the plugin by one process. Any thread may call, at any time.
pub trait Instance: Send + Sync + 'static {
    /// Its devices, [`NoDevice`](crate::NoDevice) if it has none.
    type Device: Device;
    /// Its posted links, [`NoLink`](crate::NoLink) if it has none.
    type Link: Link;

    /// The devices on this node that this process can open.
    ///
    /// # Errors
    /// What the driver says.
    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        Ok(Vec::new())
    }

    /// Opens the device at a place in [`devices`](Self::devices).
    ///
    /// # Errors
    /// What the driver says; invalid if there is no such device.
    fn open(&self, index: u32) -> Result<Self::Device> {
        Err(Error::unsupported(format!(
            "there is no device {index}: this plugin has none"
        )))
    }

    /// The links that this plugin brings, mapped and posted, for the link graph.
    ///
    /// # Errors
    /// What the driver says.
    fn links(&self) -> Result<Vec<LinkInfo>> {
        Ok(Vec::new())
    }

    /// Where peers of posted links reach this instance: 256 bytes at most.
    ///
    /// # Errors
    /// Unsupported where there are no posted links.
    fn address(&self) -> Result<Vec<u8>> {
        Err(Error::unsupported(
            "this plugin has no posted links, so no address",
        ))
    }

    /// Makes this end of a posted link; both ends do. Returns at once: `poll` connects. The lower
    /// rank dials.
    ///
    /// # Errors
    /// Unsupported where there are no posted links.
    fn create_link(&self, request: LinkRequest<'_>) -> Result<Self::Link> {
        Err(Error::unsupported(format!(
            "no link to rank {}: this plugin has no posted links",
            request.peer
        )))
    }

    /// An optional table by name, NULL if there is none. It must live as long as the process.
    fn interface(&self, id: &str) -> *const c_void {
        let _ = id;
        std::ptr::null()
    }
}
