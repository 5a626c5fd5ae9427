//! Memory: the device's in its kinds, the host's, and others' by handles.

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

use unisono_emulator::Capability;
use unisono_emulator_cuda::answer::{Answer, give};
use unisono_emulator_cuda::code;
use unisono_emulator_cuda::host::{
    cuMemFreeHost, cuMemHostAlloc, cuMemHostGetDevicePointer_v2, cuMemHostRegister_v2,
    cuMemHostUnregister,
};
use unisono_emulator_cuda::ipc::{
    Handle, cuIpcCloseMemHandle, cuIpcGetMemHandle, cuIpcOpenMemHandle_v2,
};
use unisono_emulator_cuda::memory::{cuMemAlloc_v2, cuMemFree_v2};
use unisono_emulator_cuda::pointer::{cuMemGetAddressRange_v2, cuPointerGetAttribute};

use crate::answer::{from, hip};
use crate::device::{machine, release};

/// Kinds of `hipExtMallocWithFlags`.
const COARSE: u32 = 0;
const FINE: u32 = 1;
const SIGNAL: u32 = 2;
const UNCACHED: u32 = 3;

/// Words that streams may wait for.
static SIGNALS: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

fn signals() -> MutexGuard<'static, BTreeSet<u64>> {
    SIGNALS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a stream may wait for what lies there.
pub fn is_signal(address: u64) -> bool {
    signals().contains(&address)
}

/// A word of the host's that devices reach by the same address.
unsafe fn alloc_signal(to: *mut u64, bytes: usize) -> Answer {
    if bytes != 8 || !machine()?.facts.has(Capability::HostPointer) {
        return Err(code::INVALID_VALUE);
    }
    let mut word = std::ptr::null_mut();
    // SAFETY: room for an address; the caller's.
    unsafe {
        from(cuMemHostAlloc(&raw mut word, 8, 3))?;
        give(to, word as u64)?;
    }
    signals().insert(word as u64);
    Ok(())
}

unsafe fn alloc(to: *mut u64, bytes: usize, flags: u32) -> Answer {
    match flags {
        // SAFETY: the caller's.
        COARSE | FINE | UNCACHED => from(unsafe { cuMemAlloc_v2(to, bytes) }),
        // SAFETY: the caller's.
        SIGNAL => unsafe { alloc_signal(to, bytes) },
        _ => Err(code::INVALID_VALUE),
    }
}

/// Flags of the host's memory that this interface shares; the rest are hints on coherence.
const fn shared(flags: u32) -> u32 {
    // Memory is mapped and portable unless it is asked for otherwise.
    if flags & 3 == 0 { 3 } else { flags & 3 }
}

hip! {
    current fn hipMalloc(to: *mut u64, bytes: usize) {
        // SAFETY: the caller's.
        unsafe { alloc(to, bytes, COARSE) }
    }

    current fn hipExtMallocWithFlags(to: *mut u64, bytes: usize, flags: u32) {
        // SAFETY: the caller's.
        unsafe { alloc(to, bytes, flags) }
    }

    current fn hipFree(address: u64) {
        let signal = signals().remove(&address);
        // SAFETY: the caller's.
        from(unsafe {
            if signal {
                cuMemFreeHost(address as usize as *mut c_void)
            } else {
                cuMemFree_v2(address)
            }
        })
    }

    current fn hipHostMalloc(to: *mut *mut c_void, bytes: usize, flags: u32) {
        // SAFETY: the caller's.
        from(unsafe { cuMemHostAlloc(to, bytes, shared(flags)) })
    }

    current fn hipHostFree(host: *mut c_void) {
        // SAFETY: the caller's.
        from(unsafe { cuMemFreeHost(host) })
    }

    current fn hipHostRegister(host: *mut c_void, bytes: usize, flags: u32) {
        // IoMemory is not supported; 8 is coarse-grained.
        if flags & !0xb != 0 {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's.
        from(unsafe { cuMemHostRegister_v2(host, bytes, shared(flags)) })
    }

    current fn hipHostUnregister(host: *mut c_void) {
        // SAFETY: the caller's.
        from(unsafe { cuMemHostUnregister(host) })
    }

    current fn hipHostGetDevicePointer(address: *mut u64, host: *mut c_void, flags: u32) {
        // SAFETY: the caller's.
        from(unsafe { cuMemHostGetDevicePointer_v2(address, host, flags) })
    }

    current fn hipMemGetAddressRange(base: *mut u64, bytes: *mut usize, address: u64) {
        // SAFETY: the caller's.
        from(unsafe { cuMemGetAddressRange_v2(base, bytes, address) })
    }

    /// Kinds of memory were counted from 0 before ROCm 6.
    current fn hipPointerGetAttribute(to: *mut c_void, which: u32, address: u64) {
        // SAFETY: the caller's: room for the attribute's type.
        unsafe {
            from(cuPointerGetAttribute(to, which, address))?;
            if which == 2 && release()? < 6 {
                *to.cast::<u32>() -= 1;
            }
        }
        Ok(())
    }

    current fn hipIpcGetMemHandle(handle: *mut Handle, address: u64) {
        // SAFETY: the caller's.
        from(unsafe { cuIpcGetMemHandle(handle, address) })
    }

    /// `hipIpcMemLazyEnablePeerAccess` was 0 before ROCm 6.
    current fn hipIpcOpenMemHandle(address: *mut u64, handle: Handle, flags: u32) {
        if flags != u32::from(release()? >= 6) {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's.
        from(unsafe { cuIpcOpenMemHandle_v2(address, handle, 1) })
    }

    current fn hipIpcCloseMemHandle(address: u64) {
        // SAFETY: the caller's.
        from(unsafe { cuIpcCloseMemHandle(address) })
    }
}
