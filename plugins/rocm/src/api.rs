//! The runtime's functions, looked up by name.
//!
//! Codes are plain numbers: a runtime may know more of them than this plugin. Functions that fill
//! `hipDeviceProp_t` or `hipPointerAttribute_t` are not used: under one name they have filled structs of
//! several layouts.
#![allow(unsafe_code, reason = "looks up C functions by their documented types")]

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ops::Deref;
use std::sync::OnceLock;

use unisono_plugin::{Error, Result, Status, without_signals};
use unisono_plugin_accelerator::{library_functions, library_path, open_library};

/// Names of the runtime's library, the newest first. The one without a number belongs to development
/// packages, but is all that some installations have.
const NAMES: [&str; 4] = [
    "libamdhip64.so.7",
    "libamdhip64.so.6",
    "libamdhip64.so.5",
    "libamdhip64.so",
];

/// The runtime's answer.
pub(crate) type Code = c_uint;
/// An opaque object of the runtime's.
pub(crate) type Handle = *mut c_void;
/// `hipIpcMemHandle_t`.
pub(crate) type IpcHandle = [u8; 64];
/// The name or the sentence of a code.
type Text = unsafe extern "C" fn(Code) -> *const c_char;

/// The code of success.
pub(crate) const SUCCESS: Code = 0;
/// `hipErrorInvalidValue`.
pub(crate) const INVALID_VALUE: Code = 1;
/// `hipErrorInvalidMemcpyDirection`.
pub(crate) const INVALID_DIRECTION: Code = 21;
/// `hipErrorNoDevice`.
const NO_DEVICE: Code = 100;
/// `hipErrorInvalidDevice`.
const INVALID_DEVICE: Code = 101;
/// `hipErrorNotReady`.
pub(crate) const NOT_READY: Code = 600;
/// `hipErrorPeerAccessAlreadyEnabled`.
pub(crate) const PEER_ALREADY_ENABLED: Code = 704;
/// `hipErrorHostMemoryAlreadyRegistered`.
pub(crate) const ALREADY_REGISTERED: Code = 712;

library_functions! {
    /// The functions.
    pub(crate) struct Functions -> Code;
    needed {
        init = "hipInit": fn(c_uint);
        runtime_version = "hipRuntimeGetVersion": fn(*mut c_int);
        device_count = "hipGetDeviceCount": fn(*mut c_int);
        peek_error = "hipPeekAtLastError": fn();
        take_error = "hipGetLastError": fn();
        get_device = "hipGetDevice": fn(*mut c_int);
        set_device = "hipSetDevice": fn(c_int);
        device_name = "hipDeviceGetName": fn(*mut c_char, c_int, c_int);
        device_memory = "hipDeviceTotalMem": fn(*mut usize, c_int);
        device_attribute = "hipDeviceGetAttribute": fn(*mut c_int, c_uint, c_int);
        device_pci = "hipDeviceGetPCIBusId": fn(*mut c_char, c_int, c_int);
        can_access_peer = "hipDeviceCanAccessPeer": fn(*mut c_int, c_int, c_int);
        enable_peer = "hipDeviceEnablePeerAccess": fn(c_int, c_uint);
        link_type = "hipExtGetLinkTypeAndHopCount": fn(c_int, c_int, *mut u32, *mut u32);
        stream_create = "hipStreamCreateWithPriority": fn(*mut Handle, c_uint, c_int);
        priority_range = "hipDeviceGetStreamPriorityRange": fn(*mut c_int, *mut c_int);
        stream_destroy = "hipStreamDestroy": fn(Handle);
        stream_query = "hipStreamQuery": fn(Handle);
        stream_flags = "hipStreamGetFlags": fn(Handle, *mut c_uint);
        stream_capturing = "hipStreamIsCapturing": fn(Handle, *mut c_uint);
        write_value = "hipStreamWriteValue64": fn(Handle, *mut c_void, u64, c_uint);
        event_create = "hipEventCreateWithFlags": fn(*mut Handle, c_uint);
        event_destroy = "hipEventDestroy": fn(Handle);
        event_record = "hipEventRecord": fn(Handle, Handle);
        event_query = "hipEventQuery": fn(Handle);
        stream_wait_event = "hipStreamWaitEvent": fn(Handle, Handle, c_uint);
        copy = "hipMemcpyAsync": fn(*mut c_void, *const c_void, usize, c_uint, Handle);
        fill = "hipMemsetAsync": fn(*mut c_void, c_int, usize, Handle);
        module_load = "hipModuleLoadData": fn(*mut Handle, *const c_void);
        module_unload = "hipModuleUnload": fn(Handle);
        module_function = "hipModuleGetFunction": fn(*mut Handle, Handle, *const c_char);
        launch = "hipModuleLaunchKernel": fn(
            Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle,
            *mut *mut c_void, *mut *mut c_void
        );
        alloc = "hipExtMallocWithFlags": fn(*mut *mut c_void, usize, c_uint);
        free = "hipFree": fn(*mut c_void);
        register = "hipHostRegister": fn(*mut c_void, usize, c_uint);
        unregister = "hipHostUnregister": fn(*mut c_void);
        host_address = "hipHostGetDevicePointer": fn(*mut *mut c_void, *mut c_void, c_uint);
        pointer = "hipPointerGetAttribute": fn(*mut c_void, c_uint, *mut c_void);
        range = "hipMemGetAddressRange": fn(*mut *mut c_void, *mut usize, *mut c_void);
        ipc_get = "hipIpcGetMemHandle": fn(*mut IpcHandle, *mut c_void);
        ipc_close = "hipIpcCloseMemHandle": fn(*mut c_void);
    }
    wished {
        device_uuid = "hipDeviceGetUuid": fn(*mut [u8; 16], c_int);
        stream_device = "hipStreamGetDevice": fn(Handle, *mut c_int);
        exchange_capture_mode = "hipThreadExchangeStreamCaptureMode": fn(*mut c_uint);
        capture_info = "hipStreamGetCaptureInfo": fn(Handle, *mut c_uint, *mut u64);
        begin_capture = "hipStreamBeginCapture": fn(Handle, c_uint);
        end_capture = "hipStreamEndCapture": fn(Handle, *mut Handle);
        instantiate_graph = "hipGraphInstantiate":
            fn(*mut Handle, Handle, *mut Handle, *mut c_char, usize);
        upload_graph = "hipGraphUpload": fn(Handle, Handle);
        launch_graph = "hipGraphLaunch": fn(Handle, Handle);
        destroy_graph = "hipGraphDestroy": fn(Handle);
        destroy_executable_graph = "hipGraphExecDestroy": fn(Handle);
    }
}

/// Passed by value: a struct, as C has no arrays as arguments.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ByValue(pub(crate) IpcHandle);

/// The runtime.
#[derive(Debug)]
pub(crate) struct Api {
    functions: Functions,
    /// `hipIpcOpenMemHandle`.
    pub(crate) ipc_open: unsafe extern "C" fn(*mut *mut c_void, ByValue, c_uint) -> Code,
    pub(crate) error_name: Option<Text>,
    pub(crate) error_string: Option<Text>,
    /// Where the library was found.
    pub(crate) path: String,
}

impl Deref for Api {
    type Target = Functions;

    fn deref(&self) -> &Functions {
        &self.functions
    }
}

impl Api {
    /// Calls, and leaves the thread's last error as the program finds it behind its own calls: what fails
    /// here is told by codes, and may be expected.
    pub(crate) fn quietly<T>(&self, call: impl FnOnce(&Self) -> T) -> T {
        // SAFETY: no arguments.
        let before = unsafe { (self.peek_error)() };
        let answer = call(self);
        if before == SUCCESS {
            // SAFETY: as above.
            let _ = unsafe { (self.take_error)() };
        }
        answer
    }
}

fn too_old(symbol: &str) -> Error {
    let what = format!("the runtime's library has no {symbol}: ROCm 5.2 or later is needed");
    Error::new(Status::NoDriver, what)
}

static API: OnceLock<Result<Api>> = OnceLock::new();

/// The runtime, opened once and kept.
///
/// # Errors
/// No runtime, too old a one, or one that finds no device.
pub(crate) fn api() -> Result<&'static Api> {
    let found = API.get_or_init(|| {
        let library = open_library(&NAMES)?;
        // SAFETY: the types are those of the runtime's manual; the library is never closed.
        let api = unsafe {
            let functions = Functions::look_up(&library, too_old)?;
            let ipc_open = library.get(b"hipIpcOpenMemHandle\0");
            let text = |name: &[u8]| library.get::<Text>(name).ok().map(|text| *text);
            Api {
                functions,
                ipc_open: *ipc_open.map_err(|_| too_old("hipIpcOpenMemHandle"))?,
                error_name: text(b"hipGetErrorName\0"),
                error_string: text(b"hipGetErrorString\0"),
                path: library_path(&library, "hipInit"),
            }
        };
        // Runtimes cannot be closed in order: the process keeps it.
        std::mem::forget(library);
        api.quietly(start)?;
        Ok(api)
    });
    found.as_ref().map_err(Clone::clone)
}

fn start(api: &Api) -> Result<()> {
    // SAFETY: no arguments; it may be called again and again.
    let code = without_signals(|| unsafe { (api.init)(0) });
    if code != SUCCESS {
        return Err(no_start(api, "hipInit", code));
    }
    let mut count = 0;
    // SAFETY: writes a number.
    let code = unsafe { (api.device_count)(&raw mut count) };
    if code != SUCCESS || count == 0 {
        let code = if code == SUCCESS { NO_DEVICE } else { code };
        return Err(no_start(api, "hipGetDeviceCount", code));
    }
    Ok(())
}

/// A runtime that does not start has no device, or its driver is broken: nothing to use in either case.
fn no_start(api: &Api, call: &str, code: Code) -> Error {
    let name = crate::error::name(api, code);
    let what = match code {
        // Releases differ in what they call it.
        NO_DEVICE | INVALID_DEVICE => "finds no device",
        _ => "does not start",
    };
    let what = format!(
        "the runtime {} {what}: {call}: {name} (is the amdgpu driver loaded, and may this user open \
         /dev/kfd?)",
        api.path
    );
    Error::new(Status::NoDriver, what).with_vendor_code(code.into())
}
