//! Memory of devices, and access to another device's.

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use unisono_emulator_cuda::memory::{cuMemAlloc_v2, cuMemFree_v2, let_peer};

use crate::answer::{
    Answer, FEATURE_NOT_SUPPORT, INVALID_DEVICE, PARAM_INVALID, done, give, runtime,
};
use crate::context::{current, device, machine};

/// `aclrtPtrAttributes`.
#[repr(C)]
pub struct Attributes {
    device: u32,
    place: i32,
    page: u32,
    reserved: [u32; 4],
}

/// The memory that the runtime itself made around an address.
fn own(address: u64) -> Answer<(u64, u64, Option<u32>)> {
    let range = machine()?.space.find(address).ok_or(PARAM_INVALID)?;
    let owner = range.backing().map(|backing| backing.owner());
    Ok((range.base, range.bytes, owner))
}

runtime! {
    fn aclrtMalloc(address: *mut u64, bytes: usize, policy: i32) {
        if !(0..=5).contains(&policy) || bytes == 0 {
            return Err(PARAM_INVALID);
        }
        // SAFETY: the caller's.
        done(unsafe { cuMemAlloc_v2(address, bytes) })
    }

    fn aclrtFree(address: u64) {
        if address == 0 {
            return Err(PARAM_INVALID);
        }
        crate::ipc::refuse_exported(address)?;
        // SAFETY: a number that is no memory is refused.
        done(unsafe { cuMemFree_v2(address) })
    }

    fn aclrtMemGetAddressRange(address: u64, base: *mut u64, bytes: *mut usize) {
        let (start, length, owner) = own(address)?;
        owner.ok_or(PARAM_INVALID)?;
        // SAFETY: the caller's.
        unsafe {
            give(base, start)?;
            give(bytes, length as usize)
        }
    }

    fn aclrtPointerGetAttributes(address: *const c_void, attributes: *mut Attributes) {
        current()?;
        let (_, _, owner) = own(address as u64)?;
        let found = Attributes {
            device: owner.unwrap_or(0),
            place: i32::from(owner.is_some()),
            page: 4096,
            reserved: [0; 4],
        };
        // SAFETY: the caller's.
        unsafe { give(attributes, found) }
    }

    fn aclrtDeviceCanAccessPeer(can: *mut i32, from: i32, to: i32) {
        let (from, to) = (device(from)?, device(to)?);
        let peers = machine()?.facts.reaches(from.index, to.index);
        // SAFETY: the caller's.
        unsafe { give(can, i32::from(peers)) }
    }

    /// One way: the current device reaches the other's memory. Once more is no error.
    fn aclrtDeviceEnablePeerAccess(peer: i32, flags: u32) {
        let (device, peer) = (current()?, device(peer)?);
        if flags != 0 {
            return Err(PARAM_INVALID);
        }
        if device.index == peer.index {
            return Err(INVALID_DEVICE);
        }
        if !machine()?.facts.reaches(device.index, peer.index) {
            return Err(FEATURE_NOT_SUPPORT);
        }
        let bit = 1 << device.index;
        peer.peers.fetch_or(bit, Ordering::AcqRel);
        let_peer(peer.index, bit);
        Ok(())
    }
}
