//! Events.

use unisono_emulator_cuda::event::{
    cuEventCreate, cuEventDestroy_v2, cuEventQuery, cuEventRecord, cuStreamWaitEvent,
};

use crate::answer::{from, hip};

hip! {
    current fn hipEventCreateWithFlags(event: *mut u64, flags: u32) {
        // SAFETY: the caller's.
        from(unsafe { cuEventCreate(event, flags) })
    }

    current fn hipEventDestroy(event: u64) {
        // SAFETY: the caller's.
        from(unsafe { cuEventDestroy_v2(event) })
    }

    current fn hipEventRecord(event: u64, stream: u64) {
        // SAFETY: the caller's.
        from(unsafe { cuEventRecord(event, stream) })
    }

    current fn hipEventQuery(event: u64) {
        // SAFETY: the caller's.
        from(unsafe { cuEventQuery(event) })
    }

    current fn hipStreamWaitEvent(stream: u64, event: u64, flags: u32) {
        // SAFETY: the caller's.
        from(unsafe { cuStreamWaitEvent(stream, event, flags) })
    }
}
