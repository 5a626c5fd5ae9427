//! Attributes of devices and pairs of them.

use cudarc::driver::sys::CUdevice_attribute_enum as A;
use unisono_emulator::{BoxFile, Capability, End};

/// The value of an attribute that the emulator knows.
pub fn value(facts: &BoxFile, device: u32, which: u32) -> Option<i32> {
    let has = |capability| i32::from(facts.has(capability));
    let (domain, bus) = facts.bus_of(device);
    let table = [
        (A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024),
        (A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 4),
        (A::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3),
        (A::CU_DEVICE_ATTRIBUTE_MAX_PITCH, i32::MAX),
        (A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, i32::MAX),
        (A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535),
        (A::CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1),
        (A::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, domain as i32),
        (A::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, bus as i32),
        (A::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0),
        (
            A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            facts.generation[0] as i32,
        ),
        (
            A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            facts.generation[1] as i32,
        ),
        (A::CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1),
        (
            A::CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
            has(Capability::HostPointer),
        ),
        (
            A::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS,
            has(Capability::StreamMemory),
        ),
        (A::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1),
        (
            A::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
            has(Capability::VirtualMemory),
        ),
        (
            A::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
            has(Capability::VirtualMemory),
        ),
        (
            A::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
            has(Capability::Pools),
        ),
        (
            A::CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED,
            has(Capability::Dmabuf),
        ),
        (
            A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED,
            has(Capability::Dmabuf),
        ),
        (
            A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
            has(Capability::Dmabuf),
        ),
        (
            A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS,
            has(Capability::Dmabuf) & has(Capability::Flush),
        ),
        (
            A::CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID,
            facts.numa_of(device) as i32,
        ),
    ];
    let mut rows = table.iter();
    let row = rows.find(|(attribute, _)| *attribute as u32 == which);
    row.map(|(_, value)| *value)
}

/// The value of an attribute of a pair: performance rank 0, access 1, atomics 2.
pub fn between(facts: &BoxFile, from: u32, to: u32, which: u32) -> Option<i32> {
    let mut lanes = facts.lanes_of(from).into_iter();
    let direct = lanes.any(|lane| match lane.end {
        End::Switch(_) => lane.up,
        End::Device(other) => lane.up && other == to,
    });
    let peers = facts.reaches(from, to);
    Some(match which {
        0 => i32::from(!direct),
        1 => i32::from(peers),
        2 => i32::from(peers && direct),
        _ => return None,
    })
}
