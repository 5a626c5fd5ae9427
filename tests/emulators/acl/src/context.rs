//! Initialisation, and each thread's current context.

use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use unisono_emulator::{Device, Machine};
use unisono_emulator_cuda::context::{
    self as other, cuCtxGetCurrent, cuCtxSetCurrent, cuDevicePrimaryCtxRetain, cuInit,
};

use crate::answer::{
    Answer, CONTEXT_NULL, Code, INTERNAL, PARAM_INVALID, STREAM_CONTEXT, done, give, runtime,
};

static READY: AtomicBool = AtomicBool::new(false);

/// The machine, once the runtime is initialised.
pub fn machine() -> Answer<&'static Machine> {
    Ok(other::machine()?)
}

/// A device by its number.
pub fn device(index: i32) -> Answer<&'static Arc<Device>> {
    Ok(other::device(index)?)
}

/// The device of the thread's current context, which must work.
pub fn current() -> Answer<&'static Arc<Device>> {
    Ok(other::current()?)
}

/// Blocks behind the current device's pending work, as freeing does.
pub fn synchronise(call: &str) -> Answer {
    Ok(other::synchronise(call)?)
}

/// Refuses what belongs to another device than the thread's.
pub fn same(device: u32) -> Answer<&'static Arc<Device>> {
    let current = current()?;
    if current.index == device {
        Ok(current)
    } else {
        Err(STREAM_CONTEXT)
    }
}

runtime! {
    fn aclInit(_config: *const c_char) {
        let machine = unisono_emulator::machine().map_err(|_| INTERNAL)?;
        if !machine.facts.model.starts_with("Ascend") {
            return Err(INTERNAL);
        }
        if READY.swap(true, Ordering::AcqRel) {
            return Err(Code(100_002));
        }
        // SAFETY: 0 are the only flags.
        done(unsafe { cuInit(0) })
    }

    fn aclrtGetDeviceCount(count: *mut u32) {
        // SAFETY: the caller's.
        unsafe { give(count, machine()?.facts.devices) }
    }

    fn aclrtGetVersion(major: *mut i32, minor: *mut i32, patch: *mut i32) {
        let number = machine()?.facts.driver.cast_signed();
        // SAFETY: the caller's.
        unsafe {
            give(major, number / 10_000)?;
            give(minor, number / 100 % 100)?;
            give(patch, number % 100)
        }
    }

    /// Makes the device's default context, and makes it the thread's.
    fn aclrtSetDevice(index: i32) {
        let mut context = 0;
        // SAFETY: room for a handle; then that handle.
        unsafe {
            done(cuDevicePrimaryCtxRetain(&raw mut context, index))?;
            done(cuCtxSetCurrent(context))
        }
    }

    fn aclrtGetDevice(index: *mut i32) {
        // SAFETY: the caller's.
        unsafe { give(index, current()?.index.cast_signed()) }
    }

    fn aclrtGetCurrentContext(context: *mut u64) {
        let mut found = 0;
        // SAFETY: room for a handle.
        done(unsafe { cuCtxGetCurrent(&raw mut found) })?;
        if found == 0 {
            return Err(CONTEXT_NULL);
        }
        // SAFETY: the caller's.
        unsafe { give(context, found) }
    }

    fn aclrtSetCurrentContext(context: u64) {
        if context == 0 {
            return Err(PARAM_INVALID);
        }
        // SAFETY: a number that is no context is refused.
        done(unsafe { cuCtxSetCurrent(context) })
    }

    fn aclrtDeviceGetBareTgid(process: *mut i32) {
        machine()?;
        // SAFETY: the caller's.
        unsafe { give(process, std::process::id().cast_signed()) }
    }

    fn aclrtGetPhyDevIdByLogicDevId(index: i32, physical: *mut i32) {
        // SAFETY: the caller's.
        unsafe { give(physical, device(index)?.index.cast_signed()) }
    }
}

/// What devices are called. NULL where there is none.
#[unsafe(no_mangle)]
pub extern "C" fn aclrtGetSocName() -> *const c_char {
    use std::ffi::CString;
    use std::sync::OnceLock;
    static NAME: OnceLock<CString> = OnceLock::new();
    let Ok(machine) = machine() else {
        return std::ptr::null();
    };
    let name = NAME.get_or_init(|| CString::new(machine.facts.model.clone()).unwrap_or_default());
    name.as_ptr()
}

/// This emulator keeps no texts of errors.
#[unsafe(no_mangle)]
pub extern "C" fn aclGetRecentErrMsg() -> *const c_char {
    std::ptr::null::<c_void>().cast()
}
