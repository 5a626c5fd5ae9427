//! What the driver says of its devices.
#![allow(unsafe_code, reason = "calls the driver")]

use std::ffi::{CStr, c_char};

use cudarc::driver::sys::{CUdevice_attribute_enum as A, CUuuid};
use unisono_plugin::abi::{reach, stream_can};
use unisono_plugin::{DeviceId, DeviceInfo, DeviceKind, Result};
use unisono_plugin_accelerator::{EVENTS, numa_of, queues_from};

use crate::api::Api;
use crate::error::check;

/// Independent queues that the driver gives a process, unless the environment says otherwise.
const CONNECTIONS: u32 = 8;

/// What is asked of a device once.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// The driver's handle: its number in this process.
    pub(crate) device: i32,
    pub(crate) info: DeviceInfo,
    /// Multiprocessors.
    pub(crate) processors: u32,
    /// Memory apart from addresses, exported as descriptors.
    pub(crate) descriptors: bool,
    /// Stream-ordered pools.
    pub(crate) pools: bool,
    pub(crate) dmabuf: bool,
    /// 64-bit writes and waits.
    pub(crate) stream_memory: bool,
    /// How remote writes become visible.
    pub(crate) flush: Flush,
}

/// What makes remote writes visible to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flush {
    /// They are.
    Nothing,
    /// A call of the driver.
    Call,
    /// Nothing known does.
    Unsupported,
}

/// Fixed text of the driver's.
fn text(
    api: &Api,
    call: &str,
    fill: unsafe extern "C" fn(*mut c_char, i32, i32) -> u32,
    device: i32,
) -> Result<String> {
    let mut room = [0 as c_char; 128];
    // SAFETY: as much room as is said; NUL-terminated by the driver, and here in any case.
    let code = unsafe { fill(room.as_mut_ptr(), room.len() as i32 - 1, device) };
    check(api, call, code)?;
    room[room.len() - 1] = 0;
    // SAFETY: terminated above.
    let text = unsafe { CStr::from_ptr(room.as_ptr()) };
    Ok(text.to_string_lossy().into_owned())
}

/// An attribute, 0 if this driver does not know it.
pub(crate) fn attribute(api: &Api, which: A, device: i32) -> i32 {
    let mut value = 0;
    // SAFETY: writes a number.
    let code = unsafe { (api.device_attribute)(&raw mut value, which as u32, device) };
    if code == 0 { value } else { 0 }
}

/// All devices, in the driver's order.
pub(crate) fn all(api: &Api) -> Result<Vec<Facts>> {
    let mut count = 0;
    // SAFETY: writes a number.
    let code = unsafe { (api.device_count)(&raw mut count) };
    check(api, "cuDeviceGetCount", code)?;
    let devices: Vec<i32> = (0..count)
        .map(|ordinal| {
            let mut device = 0;
            // SAFETY: writes a number.
            let code = unsafe { (api.device_get)(&raw mut device, ordinal) };
            check(api, "cuDeviceGet", code).map(|()| device)
        })
        .collect::<Result<_>>()?;
    devices
        .iter()
        .map(|device| facts(api, *device, &devices))
        .collect()
}

/// Whether one device can access another's memory.
pub(crate) fn can_access(api: &Api, from: i32, to: i32) -> bool {
    let mut can = 0;
    // SAFETY: writes a number.
    let code = unsafe { (api.can_access_peer)(&raw mut can, from, to) };
    code == 0 && can != 0
}

fn facts(api: &Api, device: i32, all: &[i32]) -> Result<Facts> {
    let get = |which| attribute(api, which, device);
    let has = |which| get(which) != 0;
    let name = text(api, "cuDeviceGetName", api.device_name, device)?;
    let pci = text(api, "cuDeviceGetPCIBusId", api.device_pci, device)?.to_ascii_lowercase();
    let mut uuid = CUuuid { bytes: [0; 16] };
    // SAFETY: writes 16 bytes.
    let code = unsafe { (api.device_uuid)(&raw mut uuid, device) };
    check(api, "cuDeviceGetUuid", code)?;
    let mut memory = 0;
    // SAFETY: writes a number.
    let code = unsafe { (api.device_memory)(&raw mut memory, device) };
    check(api, "cuDeviceTotalMem", code)?;
    let descriptors = has(A::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)
        && has(A::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
    // What is shared by descriptor is made apart from its addresses, and not every device lets cards
    // reach that.
    let dmabuf = has(A::CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED)
        && api.range_handle.is_some()
        && (!descriptors || has(A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED));
    let peers = all
        .iter()
        .any(|other| *other != device && can_access(api, device, *other));
    let mut reached = reach::PROCESS;
    if peers {
        reached |= reach::PEER;
    }
    if dmabuf {
        reached |= reach::DMABUF;
    }
    // Two transfers a clock, read twice and written once.
    let clock = get(A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE).unsigned_abs();
    let width = get(A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH).unsigned_abs();
    let memory_rate = u64::from(clock) * 2000 * u64::from(width) / 8;
    Ok(Facts {
        device,
        processors: get(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT).unsigned_abs(),
        descriptors,
        pools: has(A::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)
            && api.alloc_async.is_some()
            && api.free_async.is_some(),
        dmabuf,
        stream_memory: has(A::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS),
        flush: flush(api, device),
        info: DeviceInfo {
            kind: DeviceKind::Gpu,
            id: DeviceId(uuid.bytes.map(|byte| byte.cast_unsigned())),
            name,
            numa: numa(api, device, &pci),
            pci,
            queues: queues_from("CUDA_DEVICE_MAX_CONNECTIONS", CONNECTIONS),
            memory_bytes: memory as u64,
            reach: reached,
            streams: stream_can::CHECKS_WORDS | stream_can::CAPTURE,
            reduce_bytes_per_second: memory_rate / 3,
            events: EVENTS,
            event_reach: 1,
        },
    })
}

fn flush(api: &Api, device: i32) -> Flush {
    if attribute(
        api,
        A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING,
        device,
    ) >= 100
    {
        return Flush::Nothing;
    }
    let options = attribute(
        api,
        A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS,
        device,
    );
    if options & 1 != 0 && api.flush.is_some() {
        Flush::Call
    } else {
        Flush::Unsupported
    }
}

/// The NUMA node, from the driver or from the system.
fn numa(api: &Api, device: i32, pci: &str) -> Option<u32> {
    let mut node = 0;
    let which = A::CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID as u32;
    // SAFETY: writes a number.
    if unsafe { (api.device_attribute)(&raw mut node, which, device) } == 0 {
        return u32::try_from(node).ok();
    }
    numa_of(pci)
}
