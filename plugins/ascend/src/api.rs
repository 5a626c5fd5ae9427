//! The runtime's functions, looked up by name.
#![allow(unsafe_code, reason = "looks up C functions by their documented types")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Deref;
use std::sync::OnceLock;

use libloading::os::unix::Library;
use unisono_plugin::{Error, Result, Status, without_signals};
use unisono_plugin_accelerator::{library_functions, library_path, open_library};

use crate::error::name;

/// The runtime's answer.
pub(crate) type Code = c_int;
/// A handle of the runtime's.
pub(crate) type Handle = *mut c_void;

/// Names of the runtime's library.
const NAMES: [&str; 1] = ["libascendcl.so"];

/// Codes that are looked for.
pub(crate) mod code {
    pub(crate) const REPEAT_INITIALIZE: i32 = 100_002;
    pub(crate) const NOT_SUPPORTED: i32 = 207_000;
    pub(crate) const OUT_OF_MEMORY: i32 = 207_001;
    pub(crate) const NO_EVENT: i32 = 207_007;
    pub(crate) const NO_STREAM: i32 = 207_008;
    pub(crate) const NO_NOTIFY: i32 = 207_009;
    pub(crate) const LINK: i32 = 507_056;
    pub(crate) const REMOTE_LINK: i32 = 507_057;
}

/// Directions of a copy.
pub(crate) mod kind {
    pub(crate) const HOST_TO_DEVICE: i32 = 1;
    pub(crate) const DEVICE_TO_HOST: i32 = 2;
    pub(crate) const DEVICE_TO_DEVICE: i32 = 3;
}

/// `aclrtPtrAttributes`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PointerAttributes {
    pub(crate) device: u32,
    /// 0 is the host's, 1 a device's.
    pub(crate) place: c_int,
    pub(crate) page: u32,
    pub(crate) reserved: [u32; 4],
}

library_functions! {
    /// The functions.
    pub(crate) struct Functions -> Code;
    needed {
        init = "aclInit": fn(*const c_char);
        device_count = "aclrtGetDeviceCount": fn(*mut u32);
        set_device = "aclrtSetDevice": fn(i32);
        get_context = "aclrtGetCurrentContext": fn(*mut Handle);
        set_context = "aclrtSetCurrentContext": fn(Handle);
        alloc = "aclrtMalloc": fn(*mut Handle, usize, c_int);
        free = "aclrtFree": fn(Handle);
        alloc_host = "aclrtMallocHost": fn(*mut Handle, usize);
        free_host = "aclrtFreeHost": fn(Handle);
        copy = "aclrtMemcpyAsync": fn(Handle, usize, *const c_void, usize, c_int, Handle);
        fill = "aclrtMemsetAsync": fn(Handle, usize, i32, usize, Handle);
        reduce = "aclrtReduceAsync":
            fn(Handle, *const c_void, u64, c_int, c_int, Handle, Handle);
        stream_create = "aclrtCreateStreamWithConfig": fn(*mut Handle, u32, u32);
        stream_destroy = "aclrtDestroyStream": fn(Handle);
        stream_query = "aclrtStreamQuery": fn(Handle, *mut c_int);
        stream_synchronize = "aclrtSynchronizeStreamWithTimeout": fn(Handle, i32);
        event_create = "aclrtCreateEventExWithFlag": fn(*mut Handle, u32);
        event_destroy = "aclrtDestroyEvent": fn(Handle);
        event_record = "aclrtRecordEvent": fn(Handle, Handle);
        event_query = "aclrtQueryEventStatus": fn(Handle, *mut c_int);
        stream_wait_event = "aclrtStreamWaitEvent": fn(Handle, Handle);
        notify_create = "aclrtCreateNotify": fn(*mut Handle, u64);
        notify_destroy = "aclrtDestroyNotify": fn(Handle);
        notify_record = "aclrtRecordNotify": fn(Handle, Handle);
        notify_wait = "aclrtWaitAndResetNotify": fn(Handle, Handle, u32);
        can_access_peer = "aclrtDeviceCanAccessPeer": fn(*mut i32, i32, i32);
        enable_peer = "aclrtDeviceEnablePeerAccess": fn(i32, u32);
        ipc_export = "aclrtIpcMemGetExportKey": fn(Handle, usize, *mut c_char, usize, u64);
        ipc_import = "aclrtIpcMemImportByKey": fn(*mut Handle, *const c_char, u64);
        ipc_close = "aclrtIpcMemClose": fn(*const c_char);
        ipc_allow = "aclrtIpcMemSetImportPid": fn(*const c_char, *mut i32, usize);
        process_id = "aclrtDeviceGetBareTgid": fn(*mut i32);
    }
    wished {
        value_write = "aclrtValueWrite": fn(Handle, u64, u32, Handle);
        value_wait = "aclrtValueWait": fn(Handle, u64, u32, Handle);
        register = "aclrtHostRegister": fn(Handle, u64, c_int, *mut Handle);
        unregister = "aclrtHostUnregister": fn(Handle);
        topology = "aclrtGetDevicesTopo": fn(u32, u32, *mut u64);
        physical_device = "aclrtGetPhyDevIdByLogicDevId": fn(i32, *mut i32);
        address_range = "aclrtMemGetAddressRange": fn(Handle, *mut Handle, *mut usize);
        pointer = "aclrtPointerGetAttributes": fn(*const c_void, *mut PointerAttributes);
        version = "aclrtGetVersion": fn(*mut i32, *mut i32, *mut i32);
    }
}

/// The runtime.
#[derive(Debug)]
pub(crate) struct Api {
    functions: Functions,
    texts: Texts,
    /// Where the library was found.
    pub(crate) path: String,
}

impl Deref for Api {
    type Target = Functions;

    fn deref(&self) -> &Functions {
        &self.functions
    }
}

static API: OnceLock<Result<Api>> = OnceLock::new();

/// Functions that give a text.
#[derive(Debug)]
struct Texts {
    last_error: Option<unsafe extern "C" fn() -> *const c_char>,
    model: Option<unsafe extern "C" fn() -> *const c_char>,
}

fn too_old(symbol: &str) -> Error {
    Error::new(
        Status::NoDriver,
        format!("the runtime's library has no {symbol}: CANN 8.1 or later is needed"),
    )
}

/// The runtime, opened once and kept.
///
/// # Errors
/// No driver, too old a runtime, or one that does not start.
pub(crate) fn api() -> Result<&'static Api> {
    let found = API.get_or_init(|| {
        let library = open_library(&NAMES)?;
        // SAFETY: the types are those of the runtime's manual; the library is never closed.
        let functions = unsafe { Functions::look_up(&library, too_old) }?;
        let api = Api {
            functions,
            texts: Texts::look_up(&library),
            path: library_path(&library, "aclInit"),
        };
        // SAFETY: no configuration; it may be called again and again.
        let code = without_signals(|| unsafe { (api.init)(std::ptr::null()) });
        if code != 0 && code != code::REPEAT_INITIALIZE {
            let what = format!(
                "the runtime {} does not start: aclInit: {}",
                api.path,
                name(code)
            );
            return Err(Error::new(Status::NoDriver, what).with_vendor_code(code.into()));
        }
        // Others of the process may use it: it is neither finalised nor closed.
        std::mem::forget(library);
        Ok(api)
    });
    found.as_ref().map_err(Clone::clone)
}

impl Texts {
    fn look_up(library: &Library) -> Self {
        // SAFETY: the types are those of the runtime's manual; the library is never closed.
        unsafe {
            let get = |name: &[u8]| library.get(name).ok().map(|symbol| *symbol);
            Self {
                last_error: get(b"aclGetRecentErrMsg\0"),
                model: get(b"aclrtGetSocName\0"),
            }
        }
    }
}

fn text(ask: Option<unsafe extern "C" fn() -> *const c_char>) -> Option<String> {
    // SAFETY: no arguments; the text lives until this thread's next call.
    unsafe {
        let text = ask?();
        (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
    }
}

fn texts() -> Option<&'static Texts> {
    API.get()?.as_ref().ok().map(|api| &api.texts)
}

/// What the runtime says of this thread's last error: its first line.
pub(crate) fn last_error() -> Option<String> {
    let text = text(texts()?.last_error)?;
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    Some(line.trim().to_owned())
}

/// What devices are called: "Ascend910B2".
pub(crate) fn model() -> Option<String> {
    text(texts()?.model).filter(|model| !model.is_empty())
}
