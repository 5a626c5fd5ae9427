//! Devices' memory that links read and write by themselves: the optional table `unisono.dmabuf`.

use std::ffi::c_void;
use std::os::fd::BorrowedFd;

use unisono_abi as abi;

use crate::{Error, HostRange, Instance, Result, Status, raw};

/// An instance whose links read and write devices' memory. Offered from [`Instance::interface`] by
/// [`dmabuf_interface`]. Any thread may call, at any time; both may block.
pub trait DmabufInstance: Instance {
    /// Makes memory known. From then on windows and sources of puts may lie in it.
    ///
    /// # Errors
    /// Unsupported where a card or its driver cannot; invalid if it is known already.
    fn add_dmabuf(&self, memory: Dmabuf<'_>) -> Result<()>;

    /// Forgets what was added at an address. No window and no put is in it any more.
    ///
    /// # Errors
    /// Invalid if nothing was added there.
    fn remove_dmabuf(&self, address: u64) -> Result<()>;
}

/// Memory of a device.
#[derive(Clone, Copy, Debug)]
pub struct Dmabuf<'a> {
    /// The dma-buf; the host may close it afterwards.
    pub fd: BorrowedFd<'a>,
    /// Where the memory begins in it.
    pub offset: u64,
    /// By what addresses commands and windows name it.
    pub range: HostRange,
    /// What to call between the end of writes and the flags that came with them.
    pub flush: Option<Flush>,
}

/// Makes finished writes visible to the device. Any thread may call it, until the memory is removed.
#[derive(Clone, Copy, Debug)]
pub struct Flush {
    function: unsafe extern "C" fn(*mut c_void) -> abi::Status,
    context: *mut c_void,
}

#[allow(unsafe_code, reason = "a function of the host's with its context")]
// SAFETY: the contract lets any thread that polls a link call it.
unsafe impl Send for Flush {}
#[allow(unsafe_code, reason = "as above")]
// SAFETY: as above.
unsafe impl Sync for Flush {}

impl Flush {
    /// # Safety
    /// The function may be called with the context by any thread, until the memory is removed.
    #[allow(unsafe_code, reason = "a function of the host's with its context")]
    #[must_use]
    pub const unsafe fn from_raw(
        function: unsafe extern "C" fn(*mut c_void) -> abi::Status,
        context: *mut c_void,
    ) -> Self {
        Self { function, context }
    }

    /// Calls it, not from within the host's call that removes the memory.
    ///
    /// # Errors
    /// What the device says: the link that was written over cannot go on.
    #[allow(unsafe_code, reason = "calls the host")]
    pub fn call(&self) -> Result<()> {
        // SAFETY: the promise of `from_raw`.
        let status = unsafe { (self.function)(self.context) };
        if status == abi::status::OK {
            return Ok(());
        }
        Err(Error::new(
            Status::Device,
            format!("the device cannot flush what was written to its memory (status {status})"),
        ))
    }
}

/// The table of such an instance, if that is what `id` asks for; else NULL.
#[must_use]
pub fn dmabuf_interface<I: DmabufInstance>(id: &str) -> *const c_void {
    if id == abi::DMABUF_INTERFACE {
        (&raw const *raw::dmabuf::table::<I>()).cast()
    } else {
        std::ptr::null()
    }
}
