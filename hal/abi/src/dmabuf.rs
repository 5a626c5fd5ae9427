//! Devices' memory that links read and write by themselves.

use core::ffi::c_void;

use crate::{Error, Instance, Status};

use crate::layout::abi_struct;

/// The name of the optional table [`DmabufTable`].
pub const DMABUF_INTERFACE: &str = "unisono.dmabuf";

abi_struct! {
    /// `unisono_dmabuf`. Since 1.4: memory of a device that is made known to links.
    pub struct Dmabuf = "unisono_dmabuf" {
        /// Bytes of this struct, as its maker knows it.
        pub struct_size: u32,
        /// The caller's, which may close it once it is added.
        pub fd: i32,
        /// Of the memory in the dma-buf.
        pub offset: u64,
        /// How much of it.
        pub bytes: u64,
        /// Of its first byte, in commands and windows.
        pub address: u64,
        /// Called between the end of the peer's writes and a flag that came with them; may be absent.
        pub flush: Option<unsafe extern "C" fn(context: *mut c_void) -> Status>,
        /// To pass to `flush`.
        pub context: *mut c_void,
    }
}

abi_struct! {
    /// `unisono_dmabuf_table`. Since 1.4.
    pub struct DmabufTable = "unisono_dmabuf_table" {
        /// Bytes of this struct, as its maker knows it.
        pub struct_size: u32,
        /// Zero.
        pub reserved: u32,
        /// Makes memory known.
        pub add: Option<unsafe extern "C" fn(instance: Instance, memory: *const Dmabuf, error: *mut Error) -> Status>,
        /// Forgets what was added at an address.
        pub remove: Option<unsafe extern "C" fn(instance: Instance, address: u64, error: *mut Error) -> Status>,
    }
}
