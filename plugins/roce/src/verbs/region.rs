//! Registered memory.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use super::{Maker, Pd, destroyed, last_error};
use crate::sys::abi;

/// What may be done to registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// The device reads it: sources.
    Read,
    /// The device writes it too: receive buffers.
    Write,
    /// The peer writes it: windows.
    Remote,
}

impl Access {
    const fn flags(self) -> i32 {
        match self {
            Self::Read => 0,
            Self::Write => abi::access::LOCAL_WRITE,
            // Remote writing is only granted on top of local.
            Self::Remote => abi::access::LOCAL_WRITE | abi::access::REMOTE_WRITE,
        }
    }
}

/// Memory that a device may reach, for as long as this lives.
pub(crate) struct Region {
    pd: Arc<Pd>,
    raw: NonNull<abi::Mr>,
    maker: Maker,
}

// SAFETY: as for `Context`.
unsafe impl Send for Region {}
// SAFETY: as for `Context`.
unsafe impl Sync for Region {}

impl Region {
    /// Registers host memory: its pages are pinned until the answer is dropped.
    ///
    /// # Safety
    /// `[address, address + bytes)` is mapped, and stays so until the answer is dropped. What the
    /// device may write, nobody takes for constant.
    pub(crate) unsafe fn host(
        pd: &Arc<Pd>,
        address: u64,
        bytes: u64,
        access: Access,
    ) -> io::Result<Self> {
        let register = pd.context().library().reg_mr;
        // SAFETY: by the caller's promise.
        let raw = unsafe {
            register(
                pd.raw(),
                address as *mut std::ffi::c_void,
                bytes as usize,
                access.flags(),
            )
        };
        Self::of(pd, raw)
    }

    /// Registers a device's memory by its dma-buf: `bytes` at `offset` of it, which commands name by
    /// the address `at`.
    pub(crate) fn dmabuf(
        pd: &Arc<Pd>,
        fd: BorrowedFd<'_>,
        offset: u64,
        bytes: u64,
        at: u64,
    ) -> io::Result<Self> {
        let Some(register) = pd.context().library().reg_dmabuf_mr else {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        };
        let access = Access::Remote.flags();
        // SAFETY: the kernel holds the dma-buf as long as the registration; no address of this
        // process is touched.
        let raw = unsafe { register(pd.raw(), offset, bytes as usize, at, fd.as_raw_fd(), access) };
        Self::of(pd, raw)
    }

    fn of(pd: &Arc<Pd>, raw: *mut abi::Mr) -> io::Result<Self> {
        Ok(Self {
            pd: Arc::clone(pd),
            raw: NonNull::new(raw).ok_or_else(last_error)?,
            maker: Maker::here(),
        })
    }

    pub(crate) fn local_key(&self) -> u32 {
        // SAFETY: the handle lives as long as `self`.
        unsafe { (*self.raw.as_ptr()).lkey }
    }

    pub(crate) fn remote_key(&self) -> u32 {
        // SAFETY: as above.
        unsafe { (*self.raw.as_ptr()).rkey }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if self.maker.is_here() {
            let deregister = self.pd.context().library().dereg_mr;
            // SAFETY: made once, destroyed once.
            destroyed(unsafe { deregister(self.raw.as_ptr()) });
        }
    }
}

impl std::fmt::Debug for Region {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Region")
    }
}
