//! The driver's functions, looked up by name.
//!
//! Codes are plain numbers: a driver may know more of them than this plugin.
#![allow(unsafe_code, reason = "looks up C functions by their documented types")]

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ops::Deref;
use std::sync::OnceLock;

use cudarc::driver::sys::{
    CUcontext, CUdeviceptr, CUevent, CUfunction, CUipcMemHandle, CUmemAccessDesc,
    CUmemAllocationProp, CUmemGenericAllocationHandle, CUmodule, CUstream, CUuuid,
};
use unisono_plugin::{Error, Result, Status, without_signals};
use unisono_plugin_accelerator::{library_functions, library_path, open_library};

/// Names of the driver's library. The one without a number belongs to development packages, and may be
/// a stub that answers nothing but errors: it comes last.
const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// A driver's answer.
pub(crate) type Code = c_uint;

/// One operation of `cuStreamBatchMemOp`: kind, address, value, flags, alias, nothing. Each has the room
/// of a `u64`; kind and flags are the low halves.
pub(crate) type BatchOperation = [u64; 6];

/// The driver.
#[derive(Debug)]
pub(crate) struct Api {
    functions: Functions,
    /// Where the library was found.
    pub(crate) path: String,
}

impl Deref for Api {
    type Target = Functions;

    fn deref(&self) -> &Functions {
        &self.functions
    }
}

fn too_old(symbol: &str) -> Error {
    Error::new(
        Status::NoDriver,
        format!("the driver's library has no {symbol}: CUDA 11.7 or later is needed"),
    )
}

library_functions! {
    /// The functions.
    pub(crate) struct Functions -> Code;
    needed {
        init = "cuInit": fn(c_uint);
        driver_version = "cuDriverGetVersion": fn(*mut c_int);
        error_name = "cuGetErrorName": fn(Code, *mut *const c_char);
        error_string = "cuGetErrorString": fn(Code, *mut *const c_char);
        device_count = "cuDeviceGetCount": fn(*mut c_int);
        device_get = "cuDeviceGet": fn(*mut c_int, c_int);
        device_name = "cuDeviceGetName": fn(*mut c_char, c_int, c_int);
        device_uuid = "cuDeviceGetUuid_v2": fn(*mut CUuuid, c_int);
        device_memory = "cuDeviceTotalMem_v2": fn(*mut usize, c_int);
        device_attribute = "cuDeviceGetAttribute": fn(*mut c_int, c_uint, c_int);
        device_pci = "cuDeviceGetPCIBusId": fn(*mut c_char, c_int, c_int);
        can_access_peer = "cuDeviceCanAccessPeer": fn(*mut c_int, c_int, c_int);
        retain_context = "cuDevicePrimaryCtxRetain": fn(*mut CUcontext, c_int);
        release_context = "cuDevicePrimaryCtxRelease_v2": fn(c_int);
        push_context = "cuCtxPushCurrent_v2": fn(CUcontext);
        pop_context = "cuCtxPopCurrent_v2": fn(*mut CUcontext);
        enable_peer = "cuCtxEnablePeerAccess": fn(CUcontext, c_uint);
        stream_create = "cuStreamCreateWithPriority": fn(*mut CUstream, c_uint, c_int);
        priority_range = "cuCtxGetStreamPriorityRange": fn(*mut c_int, *mut c_int);
        stream_destroy = "cuStreamDestroy_v2": fn(CUstream);
        stream_query = "cuStreamQuery": fn(CUstream);
        stream_context = "cuStreamGetCtx": fn(CUstream, *mut CUcontext);
        stream_capturing = "cuStreamIsCapturing": fn(CUstream, *mut c_uint);
        batch = "cuStreamBatchMemOp_v2": fn(CUstream, c_uint, *mut BatchOperation, c_uint);
        event_create = "cuEventCreate": fn(*mut CUevent, c_uint);
        event_destroy = "cuEventDestroy_v2": fn(CUevent);
        event_record = "cuEventRecord": fn(CUevent, CUstream);
        event_query = "cuEventQuery": fn(CUevent);
        stream_wait_event = "cuStreamWaitEvent": fn(CUstream, CUevent, c_uint);
        copy = "cuMemcpyAsync": fn(CUdeviceptr, CUdeviceptr, usize, CUstream);
        fill = "cuMemsetD8Async": fn(CUdeviceptr, u8, usize, CUstream);
        module_load = "cuModuleLoadData": fn(*mut CUmodule, *const c_void);
        module_unload = "cuModuleUnload": fn(CUmodule);
        module_function = "cuModuleGetFunction": fn(*mut CUfunction, CUmodule, *const c_char);
        launch = "cuLaunchKernel": fn(
            CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream,
            *mut *mut c_void, *mut *mut c_void
        );
        alloc = "cuMemAlloc_v2": fn(*mut CUdeviceptr, usize);
        free = "cuMemFree_v2": fn(CUdeviceptr);
        register = "cuMemHostRegister_v2": fn(*mut c_void, usize, c_uint);
        unregister = "cuMemHostUnregister": fn(*mut c_void);
        host_address = "cuMemHostGetDevicePointer_v2": fn(*mut CUdeviceptr, *mut c_void, c_uint);
        pointer = "cuPointerGetAttribute": fn(*mut c_void, c_uint, CUdeviceptr);
        ipc_get = "cuIpcGetMemHandle": fn(*mut CUipcMemHandle, CUdeviceptr);
        ipc_open = "cuIpcOpenMemHandle_v2": fn(*mut CUdeviceptr, CUipcMemHandle, c_uint);
        ipc_close = "cuIpcCloseMemHandle": fn(CUdeviceptr);
        granularity = "cuMemGetAllocationGranularity":
            fn(*mut usize, *const CUmemAllocationProp, c_uint);
        reserve = "cuMemAddressReserve": fn(*mut CUdeviceptr, usize, usize, CUdeviceptr, u64);
        unreserve = "cuMemAddressFree": fn(CUdeviceptr, usize);
        make = "cuMemCreate":
            fn(*mut CUmemGenericAllocationHandle, usize, *const CUmemAllocationProp, u64);
        release = "cuMemRelease": fn(CUmemGenericAllocationHandle);
        map = "cuMemMap": fn(CUdeviceptr, usize, usize, CUmemGenericAllocationHandle, u64);
        unmap = "cuMemUnmap": fn(CUdeviceptr, usize);
        set_access = "cuMemSetAccess": fn(CUdeviceptr, usize, *const CUmemAccessDesc, usize);
        export = "cuMemExportToShareableHandle":
            fn(*mut c_void, CUmemGenericAllocationHandle, c_uint, u64);
        import = "cuMemImportFromShareableHandle":
            fn(*mut CUmemGenericAllocationHandle, *mut c_void, c_uint);
    }
    wished {
        range_handle = "cuMemGetHandleForAddressRange":
            fn(*mut c_void, CUdeviceptr, usize, c_uint, u64);
        flush = "cuFlushGPUDirectRDMAWrites": fn(c_uint, c_uint);
        alloc_async = "cuMemAllocAsync": fn(*mut CUdeviceptr, usize, CUstream);
        free_async = "cuMemFreeAsync": fn(CUdeviceptr, CUstream);
        exchange_capture_mode = "cuThreadExchangeStreamCaptureMode": fn(*mut c_uint);
        capture_info = "cuStreamGetCaptureInfo_v2": fn(
            CUstream, *mut c_uint, *mut u64, *mut *mut c_void, *mut *mut c_void, *mut usize
        );
        begin_capture = "cuStreamBeginCapture_v2": fn(CUstream, c_uint);
        end_capture = "cuStreamEndCapture": fn(CUstream, *mut *mut c_void);
        instantiate_graph = "cuGraphInstantiateWithFlags": fn(*mut *mut c_void, *mut c_void, u64);
        upload_graph = "cuGraphUpload": fn(*mut c_void, CUstream);
        launch_graph = "cuGraphLaunch": fn(*mut c_void, CUstream);
        destroy_graph = "cuGraphDestroy": fn(*mut c_void);
        destroy_executable_graph = "cuGraphExecDestroy": fn(*mut c_void);
    }
}

static API: OnceLock<Result<Api>> = OnceLock::new();

/// The driver, opened once and kept.
///
/// # Errors
/// No driver, too old a driver, or one that does not start.
pub(crate) fn api() -> Result<&'static Api> {
    let found = API.get_or_init(|| {
        let library = open_library(&NAMES)?;
        // SAFETY: the types are those of the driver API's manual; the library is never closed.
        let functions = unsafe { Functions::look_up(&library, too_old) }?;
        let path = library_path(&library, "cuInit");
        let api = Api { functions, path };
        // SAFETY: no arguments; it may be called again and again.
        let code = without_signals(|| unsafe { (api.init)(0) });
        if code != 0 {
            return Err(no_start(&api, code));
        }
        // Drivers cannot be closed in order: the process keeps it.
        std::mem::forget(library);
        Ok(api)
    });
    found.as_ref().map_err(Clone::clone)
}

/// A driver that does not start has no device, or is broken: both mean that there is nothing to use.
fn no_start(api: &Api, code: Code) -> Error {
    let name = crate::error::name(api, code);
    Error::new(
        Status::NoDriver,
        format!("the driver {} does not start: cuInit: {name}", api.path),
    )
    .with_vendor_code(code.into())
}
