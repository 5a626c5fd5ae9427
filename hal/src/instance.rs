//! One use of a plugin by this process.

#![allow(unsafe_code, reason = "calls the plugin's function pointers")]

use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use unisono_abi as abi;

use crate::error::{call, call_done};
use crate::log_sink::{HostServices, LogSink};
use crate::params::ParamValues;
use crate::plugin::PluginData;
use crate::{Device, DeviceInfo, Error, Link, LinkInfo, LinkRequest, Plugin, Result, Status};

/// The most devices or links that a plugin may report.
const REPORT_MAX: u32 = 65_536;

/// One use of a plugin. Clones share it; the last one, or the last handle made from it, ends it.
/// Any thread.
#[derive(Clone)]
pub struct Instance(Arc<Inner>);

struct Inner {
    raw: abi::Instance,
    plugin: Plugin,
    /// Lives until the instance is destroyed, as the contract promises to the plugin.
    _host: Arc<HostServices>,
}

// SAFETY: an instance handle may be used from any thread ([any] in the contract).
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: the last reference to a live handle.
        unsafe { (self.plugin.data().tables.instance.destroy)(self.raw) }
    }
}

impl Instance {
    pub(crate) fn create(
        plugin: &Plugin,
        values: &ParamValues,
        sink: Arc<dyn LogSink>,
    ) -> Result<Self> {
        let data = plugin.data();
        let host = HostServices::new(data.name, sink);
        let params = values.raw(&data.params);
        let info = abi::InstanceInfo {
            struct_size: size_of::<abi::InstanceInfo>() as u32,
            param_count: params.len() as u32,
            params: params.as_ptr(),
            host: host.raw(),
        };
        let mut raw = abi::Instance::NULL;
        call_done(data.name, "instance.create", |error| {
            // SAFETY: the parameters are borrowed for the call; the host's services live until the
            // instance is destroyed.
            unsafe { (data.tables.instance.create)(&raw const info, &raw mut raw, error) }
        })?;
        if raw == abi::Instance::NULL {
            return Err(data.null_handle("instance.create"));
        }
        Ok(Self(Arc::new(Inner {
            raw,
            plugin: plugin.clone(),
            _host: host,
        })))
    }

    pub(crate) fn raw(&self) -> abi::Instance {
        self.0.raw
    }

    pub(crate) fn data(&self) -> &'static PluginData {
        self.0.plugin.data()
    }

    /// The plugin.
    #[must_use]
    pub fn plugin(&self) -> &Plugin {
        &self.0.plugin
    }

    /// The devices, in the order of their index.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn devices(&self) -> Result<Vec<DeviceInfo>> {
        let data = self.data();
        let stride = data.strides.device_info;
        let rows = self.rows("instance.devices", stride, |out, cap, count, error| {
            // SAFETY: the instance is live; `out` has room for `cap` entries of the plugin's size.
            unsafe { (data.tables.instance.devices)(self.raw(), out.cast(), cap, count, error) }
        })?;
        let infos = rows.chunks_exact(stride).zip(0..).map(|(row, index)| {
            let mut raw = abi::DeviceInfo::zeroed();
            // SAFETY: a plain C struct without padding that matters, every bit pattern is valid.
            unsafe { copy_row(&mut raw, row) };
            DeviceInfo::from_raw(index, &raw)
        });
        Ok(infos.collect())
    }

    /// Opens a device.
    ///
    /// # Errors
    /// What the plugin says; [`Status::Invalid`] if there is no such device.
    pub fn open(&self, index: u32) -> Result<Device> {
        let mut devices = self.devices()?;
        if index as usize >= devices.len() {
            let (there, name) = (devices.len(), self.data().name);
            let what = format!("there is no device {index}: the plugin has {there}");
            return Err(Error::host(name, "device.open", Status::Invalid, what));
        }
        Device::open(self, devices.swap_remove(index as usize))
    }

    /// The links that the plugin can make. None if it makes no links.
    ///
    /// # Errors
    /// What the plugin says; [`Status::Invalid`] if the report is not sound.
    pub fn link_report(&self) -> Result<Vec<LinkInfo>> {
        let data = self.data();
        let stride = data.strides.link_info;
        let rows = self.rows("link.report", stride, |out, cap, count, error| {
            // SAFETY: the instance is live; `out` has room for `cap` entries of the plugin's size.
            unsafe { (data.tables.link.report)(self.raw(), out.cast(), cap, count, error) }
        });
        let rows = match rows {
            Err(error) if error.status == Status::Unsupported => return Ok(Vec::new()),
            rows => rows?,
        };
        let infos = rows.chunks_exact(stride).zip(0..).map(|(row, index)| {
            let mut raw = abi::LinkInfo::zeroed();
            // SAFETY: a plain C struct, every bit pattern is valid.
            unsafe { copy_row(&mut raw, row) };
            LinkInfo::from_raw(&raw).map_err(|what| {
                let what = format!("link {index} of the report has {what}");
                Error::host(data.name, "link.report", Status::Invalid, what)
            })
        });
        infos.collect()
    }

    /// Where peers of posted links reach this instance; `None` if it has no such links.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn address(&self) -> Result<Option<Vec<u8>>> {
        let data = self.data();
        let (mut out, mut len) = (vec![0u8; abi::EXPORT_MAX], 0u64);
        let answer = call(data.name, "link.address", |error| {
            let (at, cap) = (out.as_mut_ptr().cast(), abi::EXPORT_MAX as u64);
            // SAFETY: the instance is live; the buffer has the room that it says.
            unsafe { (data.tables.link.address)(self.raw(), at, cap, &raw mut len, error) }
        });
        match answer {
            Err(error) if error.status == Status::Unsupported => return Ok(None),
            answer => answer?,
        };
        if len > abi::EXPORT_MAX as u64 {
            let what = format!(
                "the plugin gave an address of {len} bytes, at most {} are allowed",
                abi::EXPORT_MAX
            );
            return Err(Error::host(
                data.name,
                "link.address",
                Status::Invalid,
                what,
            ));
        }
        out.truncate(len as usize);
        Ok(Some(out))
    }

    /// Makes a posted link. Returns at once; polling it connects.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn connect(&self, request: LinkRequest<'_>) -> Result<Link> {
        Link::create(self, request)
    }

    /// An optional table by name, `None` if the plugin has none. It lives as long as the process.
    #[must_use]
    pub fn interface(&self, id: &str) -> Option<NonNull<c_void>> {
        let id = abi::Str {
            ptr: id.as_ptr().cast(),
            len: id.len() as u64,
        };
        // SAFETY: the instance is live; the name is borrowed for the call.
        let table = unsafe { (self.data().tables.instance.get_interface)(self.raw(), id) };
        NonNull::new(table.cast_mut())
    }

    /// Asks for an array whose length only the plugin knows, as bytes of `stride` an entry: an
    /// entry has the size that it has in the plugin, older or newer than the host.
    fn rows(
        &self,
        name: &'static str,
        stride: usize,
        function: impl Fn(*mut u8, u32, *mut u32, &mut abi::Error) -> abi::Status,
    ) -> Result<Vec<u8>> {
        let data = self.data();
        let mut cap = 16u32;
        // The number may change between two calls, so a few are made.
        for _ in 0..8 {
            let words = stride.div_ceil(8) * cap as usize;
            let mut rows: Vec<u64> = vec![0; words];
            let at = rows.as_mut_ptr().cast::<u8>();
            for i in 0..cap as usize {
                // SAFETY: the row lies in `rows`, and starts with its `struct_size`.
                unsafe { at.add(i * stride).cast::<u32>().write(stride as u32) };
            }
            let mut count = 0;
            call_done(data.name, name, |error| {
                function(at, cap, &raw mut count, error)
            })?;
            if count <= cap {
                let len = count as usize * stride;
                // SAFETY: `len` bytes of `rows` are initialised.
                return Ok(unsafe { std::slice::from_raw_parts(at, len) }.to_vec());
            }
            if count > REPORT_MAX {
                let what =
                    format!("the plugin reports {count} entries, at most {REPORT_MAX} are taken");
                return Err(Error::host(data.name, name, Status::Invalid, what));
            }
            cap = count;
        }
        let what = "the number of entries grows with every call";
        Err(Error::host(data.name, name, Status::Invalid, what))
    }
}

/// Copies what both sides know of a struct.
///
/// # Safety
/// Every bit pattern is a valid `T`.
unsafe fn copy_row<T: Copy>(to: &mut T, row: &[u8]) {
    let len = row.len().min(size_of::<T>());
    // SAFETY: `len` bytes lie in both.
    unsafe { std::ptr::copy_nonoverlapping(row.as_ptr(), (&raw mut *to).cast(), len) };
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance")
            .field("plugin", &self.data().name)
            .finish_non_exhaustive()
    }
}
