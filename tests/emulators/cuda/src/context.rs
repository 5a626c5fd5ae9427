//! Initialisation, primary contexts, and each thread's stack of current ones.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Once, OnceLock};

use unisono_emulator::{Device, Machine};

use crate::answer::{Answer, driver, give};
use crate::code;

static READY: AtomicBool = AtomicBool::new(false);
/// How often each device's primary context is retained.
static RETAINED: OnceLock<Vec<AtomicU32>> = OnceLock::new();

/// Contexts are numbered by their devices.
const CONTEXT: u64 = 0x7ace_c000_0000;

thread_local! {
    static STACK: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// The machine, once the driver is initialised.
pub fn machine() -> Answer<&'static Machine> {
    if !READY.load(Ordering::Acquire) {
        return Err(code::NOT_INITIALIZED);
    }
    unisono_emulator::machine().map_err(|_| code::NO_DEVICE)
}

/// A device by its number.
pub fn device(index: i32) -> Answer<&'static Arc<Device>> {
    let index = u32::try_from(index).map_err(|_| code::INVALID_DEVICE)?;
    machine()?.device(index).ok_or(code::INVALID_DEVICE)
}

fn retained(device: u32) -> Answer<&'static AtomicU32> {
    let devices = machine()?.facts.devices;
    let all = RETAINED.get_or_init(|| (0..devices).map(|_| AtomicU32::new(0)).collect());
    all.get(device as usize).ok_or(code::INVALID_DEVICE)
}

/// The device of a context that is alive.
pub fn of(context: u64) -> Answer<&'static Arc<Device>> {
    let index = context.wrapping_sub(CONTEXT);
    let found = u32::try_from(index)
        .ok()
        .and_then(|i| machine().ok()?.device(i));
    let device = found.ok_or(code::INVALID_CONTEXT)?;
    if retained(device.index)?.load(Ordering::Acquire) == 0 {
        return Err(code::INVALID_CONTEXT);
    }
    Ok(device)
}

/// The context of a device.
pub const fn context_of(device: &Device) -> u64 {
    CONTEXT + device.index as u64
}

/// The device of the thread's current context, which must work.
pub fn current() -> Answer<&'static Arc<Device>> {
    machine()?;
    let context = STACK.with_borrow(|stack| stack.last().copied());
    let device = of(context.unwrap_or(0))?;
    match device.broken() {
        Some(broken) => Err(code::of(broken)),
        None => Ok(device),
    }
}

/// Blocks behind the current context's pending work, as freeing and registering do.
pub fn synchronise(call: &str) -> Answer {
    let device = current()?;
    device
        .synchronise(call)
        .map_err(|broken| broken.map_or(code::LAUNCH_TIMEOUT, code::of))
}

/// Blocks behind the pending work of all devices; those that are lost have none.
pub fn synchronise_all(call: &str) -> Answer {
    let own = current()?;
    for device in (0..machine()?.facts.devices).filter_map(|index| machine().ok()?.device(index)) {
        match device.synchronise(call) {
            Err(None) => return Err(code::LAUNCH_TIMEOUT),
            Err(Some(broken)) if device.index == own.index => return Err(code::of(broken)),
            Err(Some(_)) | Ok(()) => {}
        }
    }
    Ok(())
}

/// A thread of the driver's own. As the vendor's, it takes the signals that whoever makes it start takes.
fn driver_thread(name: &str) {
    let idle = || {
        loop {
            std::thread::park();
        }
    };
    let thread = std::thread::Builder::new().name(name.to_owned());
    // Without it nothing is lost: no call needs it.
    let _ = thread.spawn(idle);
}

driver! {
    fn cuInit(flags: u32) {
        if flags != 0 {
            return Err(code::INVALID_VALUE);
        }
        let machine = unisono_emulator::machine().map_err(|_| code::NO_DEVICE)?;
        if machine.facts.devices == 0 {
            return Err(code::NO_DEVICE);
        }
        READY.store(true, Ordering::Release);
        static THREAD: Once = Once::new();
        THREAD.call_once(|| driver_thread("cuda0000"));
        Ok(())
    }

    fn cuDriverGetVersion(version: *mut i32) {
        let machine = unisono_emulator::machine().map_err(|_| code::NO_DEVICE)?;
        // SAFETY: the caller's.
        unsafe { give(version, machine.facts.driver.cast_signed()) }
    }

    fn cuGetErrorName(error: u32, name: *mut *const std::ffi::c_char) {
        let (symbol, _) = code::text(error).ok_or(code::INVALID_VALUE)?;
        // SAFETY: the caller's.
        unsafe { give(name, symbol.as_ptr().cast()) }
    }

    fn cuGetErrorString(error: u32, text: *mut *const std::ffi::c_char) {
        let (_, sentence) = code::text(error).ok_or(code::INVALID_VALUE)?;
        // SAFETY: the caller's.
        unsafe { give(text, sentence.as_ptr().cast()) }
    }

    fn cuDevicePrimaryCtxRetain(context: *mut u64, index: i32) {
        let device = device(index)?;
        // SAFETY: the caller's.
        unsafe { give(context, context_of(device)) }?;
        retained(device.index)?.fetch_add(1, Ordering::AcqRel);
        static THREAD: Once = Once::new();
        THREAD.call_once(|| driver_thread("cuda-EvtHandlr"));
        Ok(())
    }

    fn cuDevicePrimaryCtxRelease_v2(index: i32) {
        let device = device(index)?;
        let less = |n: u32| n.checked_sub(1);
        let count = retained(device.index)?;
        count
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, less)
            .map(|_| ())
            .map_err(|_| code::INVALID_CONTEXT)
    }

    fn cuCtxPushCurrent_v2(context: u64) {
        of(context)?;
        STACK.with_borrow_mut(|stack| stack.push(context));
        Ok(())
    }

    fn cuCtxPopCurrent_v2(context: *mut u64) {
        machine()?;
        let popped = STACK.with_borrow_mut(Vec::pop).ok_or(code::INVALID_CONTEXT)?;
        if !context.is_null() {
            // SAFETY: the caller's.
            unsafe { context.write(popped) };
        }
        Ok(())
    }

    fn cuCtxSetCurrent(context: u64) {
        machine()?;
        if context != 0 {
            of(context)?;
        }
        STACK.with_borrow_mut(|stack| {
            stack.pop();
            if context != 0 {
                stack.push(context);
            }
        });
        Ok(())
    }

    fn cuCtxGetCurrent(context: *mut u64) {
        machine()?;
        let current = STACK.with_borrow(|stack| stack.last().copied()).unwrap_or(0);
        // SAFETY: the caller's.
        unsafe { give(context, current) }
    }

    fn cuCtxGetDevice(index: *mut i32) {
        let device = current()?;
        // SAFETY: the caller's.
        unsafe { give(index, device.index.cast_signed()) }
    }

    fn cuCtxSynchronize() {
        synchronise("cuCtxSynchronize")
    }

    fn cuDeviceCanAccessPeer(can: *mut i32, from: i32, to: i32) {
        let (from, to) = (device(from)?, device(to)?);
        let peers = machine()?.facts.reaches(from.index, to.index);
        // SAFETY: the caller's.
        unsafe { give(can, i32::from(peers)) }
    }

    fn cuCtxEnablePeerAccess(peer: u64, flags: u32) {
        let (device, peer) = (current()?, of(peer)?);
        if flags != 0 {
            return Err(code::INVALID_VALUE);
        }
        if device.index == peer.index {
            return Err(code::INVALID_DEVICE);
        }
        if !machine()?.facts.reaches(device.index, peer.index) {
            return Err(code::PEER_ACCESS_UNSUPPORTED);
        }
        let bit = 1 << device.index;
        if peer.peers.fetch_or(bit, Ordering::AcqRel) & bit != 0 {
            return Err(code::PEER_ACCESS_ALREADY_ENABLED);
        }
        crate::memory::let_peer(peer.index, bit);
        Ok(())
    }
}
