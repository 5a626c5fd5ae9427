//! Recording streams, and running what was recorded.

use std::ffi::{c_char, c_void};

use unisono_emulator_cuda::code;
use unisono_emulator_cuda::graph::{
    cuGraphDestroy, cuGraphExecDestroy, cuGraphInstantiateWithFlags, cuGraphLaunch, cuGraphUpload,
    cuStreamBeginCapture_v2, cuStreamEndCapture, cuStreamGetCaptureInfo, cuStreamIsCapturing,
    cuThreadExchangeStreamCaptureMode,
};

use crate::answer::{from, hip};

hip! {
    current fn hipThreadExchangeStreamCaptureMode(mode: *mut u32) {
        // SAFETY: the caller's.
        from(unsafe { cuThreadExchangeStreamCaptureMode(mode) })
    }

    current fn hipStreamBeginCapture(stream: u64, mode: u32) {
        // SAFETY: the caller's.
        from(unsafe { cuStreamBeginCapture_v2(stream, mode) })
    }

    current fn hipStreamEndCapture(stream: u64, graph: *mut u64) {
        // SAFETY: the caller's.
        from(unsafe { cuStreamEndCapture(stream, graph) })
    }

    current fn hipStreamIsCapturing(stream: u64, status: *mut u32) {
        // SAFETY: the caller's.
        from(unsafe { cuStreamIsCapturing(stream, status) })
    }

    current fn hipStreamGetCaptureInfo(stream: u64, status: *mut u32, id: *mut u64) {
        // SAFETY: the caller's.
        from(unsafe { cuStreamGetCaptureInfo(stream, status, id) })
    }

    /// The node and the log of what is wrong are not given.
    current fn hipGraphInstantiate(
        runnable: *mut u64,
        graph: u64,
        _node: *mut *mut c_void,
        log: *mut c_char,
        room: usize,
    ) {
        if log.is_null() && room > 0 {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's.
        from(unsafe { cuGraphInstantiateWithFlags(runnable, graph, 0) })
    }

    current fn hipGraphUpload(runnable: u64, stream: u64) {
        // SAFETY: the caller's.
        from(unsafe { cuGraphUpload(runnable, stream) })
    }

    current fn hipGraphLaunch(runnable: u64, stream: u64) {
        // SAFETY: the caller's.
        from(unsafe { cuGraphLaunch(runnable, stream) })
    }

    current fn hipGraphDestroy(graph: u64) {
        // SAFETY: the caller's.
        from(unsafe { cuGraphDestroy(graph) })
    }

    current fn hipGraphExecDestroy(runnable: u64) {
        // SAFETY: the caller's.
        from(unsafe { cuGraphExecDestroy(runnable) })
    }
}
