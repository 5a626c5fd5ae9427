//! Devices, contexts and protection domains.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, RawFd};
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::Arc;

use rustix::fs::OFlags;

use super::{Maker, checked, destroyed, last_error};
use crate::sys::Library;
use crate::sys::abi;

/// A device that the library sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeviceEntry {
    /// "mlx5_0", "rxe0".
    pub(crate) name: String,
    /// Its folder in sysfs.
    pub(crate) folder: PathBuf,
    /// Ports, as far as the device says.
    pub(crate) node_type: i32,
}

/// The list of devices, freed with it.
struct List {
    library: Library,
    first: *mut *mut abi::Device,
    count: usize,
}

impl List {
    fn get(library: Library) -> io::Result<Self> {
        let mut count = 0;
        // SAFETY: `count` lives through the call.
        let first = unsafe { (library.get_device_list)(&raw mut count) };
        if first.is_null() {
            return Err(last_error());
        }
        Ok(Self {
            library,
            first,
            count: usize::try_from(count).unwrap_or(0),
        })
    }

    fn iter(&self) -> impl Iterator<Item = (NonNull<abi::Device>, DeviceEntry)> + '_ {
        (0..self.count).filter_map(|index| {
            // SAFETY: the list has `count` entries and lives as long as `self`; the strings in an
            // entry end in NUL.
            unsafe {
                let device = NonNull::new(*self.first.add(index))?;
                let raw = device.as_ptr();
                let text =
                    |at: *const std::ffi::c_char| CStr::from_ptr(at).to_string_lossy().into_owned();
                let entry = DeviceEntry {
                    name: text((&raw const (*raw).name).cast()),
                    folder: text((&raw const (*raw).ibdev_path).cast()).into(),
                    node_type: (*raw).node_type,
                };
                Some((device, entry))
            }
        })
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: it came from `get_device_list` and is freed once. Devices that are open stay so.
        unsafe { (self.library.free_device_list)(self.first) };
    }
}

/// The devices that the library sees; none where the kernel has no RDMA.
pub(crate) fn devices(library: Library) -> io::Result<Vec<DeviceEntry>> {
    match List::get(library) {
        Ok(list) => Ok(list.iter().map(|(_, entry)| entry).collect()),
        // The kernel has no RDMA at all.
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// An open device.
pub(crate) struct Context {
    library: Library,
    raw: NonNull<abi::Context>,
    maker: Maker,
}

// SAFETY: verbs may be called from any thread; what is not is behind `&mut` of the queues.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// What a port says of itself now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    pub(crate) active: bool,
    /// As an `ibv_mtu`: 1 is 256 bytes, 5 is 4096.
    pub(crate) mtu: u8,
    pub(crate) lid: u16,
    pub(crate) link_layer: u8,
    /// The longest message, in bytes.
    pub(crate) message_max: u32,
}

/// News of a device that no queue brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AsyncEvent {
    PortUp(u8),
    PortDown(u8),
    Addresses,
    Fatal,
    Other(i32),
}

impl Context {
    pub(crate) fn open(library: Library, name: &str) -> io::Result<Arc<Self>> {
        let list = List::get(library)?;
        let (device, _) = list
            .iter()
            .find(|(_, entry)| entry.name == name)
            .ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))?;
        // SAFETY: the device is in the list, which lives through the call.
        let raw = unsafe { (library.open_device)(device.as_ptr()) };
        let raw = NonNull::new(raw).ok_or_else(last_error)?;
        let context = Self {
            library,
            raw,
            maker: Maker::here(),
        };
        // News is read where nobody may block.
        let fd = context.async_fd();
        let flags = rustix::fs::fcntl_getfl(fd)?;
        rustix::fs::fcntl_setfl(fd, flags | OFlags::NONBLOCK)?;
        Ok(Arc::new(context))
    }

    pub(crate) const fn library(&self) -> Library {
        self.library
    }

    pub(super) const fn raw(&self) -> *mut abi::Context {
        self.raw.as_ptr()
    }

    /// The operations that the header's inline functions call.
    pub(super) fn operations(&self) -> &abi::ContextOps {
        // SAFETY: the context is open as long as `self`; its operations do not change.
        unsafe { &(*self.raw.as_ptr()).ops }
    }

    fn async_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: open as long as the context.
        unsafe { BorrowedFd::borrow_raw((*self.raw.as_ptr()).async_fd as RawFd) }
    }

    pub(crate) fn port(&self, number: u8) -> io::Result<Port> {
        let mut attr = MaybeUninit::<abi::PortAttr>::zeroed();
        // SAFETY: the struct is at least as large as the one that this symbol fills, and zero where
        // an older library does not write.
        let attr = unsafe {
            checked((self.library.query_port)(
                self.raw(),
                number,
                attr.as_mut_ptr(),
            ))?;
            attr.assume_init()
        };
        Ok(Port {
            active: attr.state == abi::PORT_ACTIVE,
            mtu: u8::try_from(attr.active_mtu).unwrap_or(0),
            lid: attr.lid,
            link_layer: attr.link_layer,
            message_max: attr.max_msg_sz,
        })
    }

    pub(crate) fn limits(&self) -> io::Result<abi::DeviceAttr> {
        let mut attr = MaybeUninit::<abi::DeviceAttr>::zeroed();
        // SAFETY: the struct is the one that the function fills.
        unsafe {
            checked((self.library.query_device)(self.raw(), attr.as_mut_ptr()))?;
            Ok(attr.assume_init())
        }
    }

    /// The next piece of news, if there is any.
    pub(crate) fn news(&self) -> Option<AsyncEvent> {
        let mut raw = abi::AsyncEvent {
            element: 0,
            event_type: 0,
        };
        // SAFETY: the event lives through both calls, and is acknowledged once.
        unsafe {
            if (self.library.get_async_event)(self.raw(), &raw mut raw) != 0 {
                return None;
            }
            (self.library.ack_async_event)(&raw mut raw);
        }
        let port = raw.element as u8; // a port's number, where the event is a port's
        Some(match raw.event_type {
            abi::event::PORT_ACTIVE => AsyncEvent::PortUp(port),
            abi::event::PORT_ERR => AsyncEvent::PortDown(port),
            abi::event::GID_CHANGE => AsyncEvent::Addresses,
            abi::event::DEVICE_FATAL => AsyncEvent::Fatal,
            other => AsyncEvent::Other(other),
        })
    }

    /// A completion status in the library's words.
    pub(crate) fn status_text(&self, status: i32) -> String {
        // SAFETY: the answer is a static string, or NULL.
        unsafe {
            let text = (self.library.wc_status_str)(status);
            if text.is_null() {
                return format!("status {status}");
            }
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.maker.is_here() {
            // SAFETY: all that was made in it holds it alive, so nothing is left.
            destroyed(unsafe { (self.library.close_device)(self.raw()) });
        }
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Context")
    }
}

/// A protection domain: keys of regions in it are good for queue pairs in it.
pub(crate) struct Pd {
    context: Arc<Context>,
    raw: NonNull<abi::Pd>,
    maker: Maker,
}

// SAFETY: as for `Context`.
unsafe impl Send for Pd {}
// SAFETY: as for `Context`.
unsafe impl Sync for Pd {}

impl Pd {
    pub(crate) fn new(context: &Arc<Context>) -> io::Result<Arc<Self>> {
        // SAFETY: the context is open.
        let raw = unsafe { (context.library.alloc_pd)(context.raw()) };
        Ok(Arc::new(Self {
            context: Arc::clone(context),
            raw: NonNull::new(raw).ok_or_else(last_error)?,
            maker: Maker::here(),
        }))
    }

    pub(crate) const fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(super) const fn raw(&self) -> *mut abi::Pd {
        self.raw.as_ptr()
    }
}

impl Drop for Pd {
    fn drop(&mut self) {
        if self.maker.is_here() {
            // SAFETY: regions and queue pairs hold it alive, so none is left.
            destroyed(unsafe { (self.context.library.dealloc_pd)(self.raw()) });
        }
    }
}

impl std::fmt::Debug for Pd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pd")
    }
}
