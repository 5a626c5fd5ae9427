//! PMIx, through the library that the launcher's packages install.
//!
//! Only what is needed of its C interface stands here; the layouts are those of PMIx 2 to 5, which that project keeps
//! for programs that were built against any of them. Its calls may block for as long as another process does not
//! call, so each runs on a thread of its own, which is left behind where there is no more time.

#![allow(unsafe_code, reason = "a C library that is found at run time")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::mpsc::{RecvTimeoutError, channel};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::{Store, failed, late};
use crate::environment::Lookup;
use crate::error::{BootstrapError, Result};
use crate::wait::Wait;

const NAME: &str = "PMIx";
/// What it is called; the first that is there.
const FILES: [&str; 2] = ["libpmix.so.2", "libpmix.so"];

const SUCCESS: c_int = 0;
const STRING: u16 = 3;
const GLOBAL: u8 = 3;
/// All ranks of a namespace.
const WILDCARD: u32 = u32::MAX - 1;

/// `pmix_proc_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Proc {
    namespace: [c_char; 256],
    rank: u32,
}

/// `pmix_value_t`; its union is no larger than what is reserved.
#[repr(C)]
struct Value {
    kind: u16,
    string: *mut c_char,
    reserved: [u64; 6],
}

type Init = unsafe extern "C" fn(*mut Proc, *mut c_void, usize) -> c_int;
type Finalize = unsafe extern "C" fn(*const c_void, usize) -> c_int;
type Put = unsafe extern "C" fn(u8, *const c_char, *mut Value) -> c_int;
type Commit = unsafe extern "C" fn() -> c_int;
type Fence = unsafe extern "C" fn(*const Proc, usize, *const c_void, usize) -> c_int;
type Get = unsafe extern "C" fn(
    *const Proc,
    *const c_char,
    *const c_void,
    usize,
    *mut *mut Value,
) -> c_int;

/// The functions that are used.
#[derive(Clone, Copy)]
struct Calls {
    init: Init,
    finalize: Finalize,
    put: Put,
    commit: Commit,
    fence: Fence,
    get: Get,
}

/// A client of the launcher's server.
pub(super) struct Pmix {
    calls: Calls,
    own: Proc,
}

/// Whether the launcher serves PMIx, and its library is here.
pub(super) fn is_named(environment: Lookup<'_>) -> bool {
    let set = |name| environment(name).is_some_and(|text| !text.trim().is_empty());
    set("PMIX_NAMESPACE") && set("PMIX_RANK") && library().is_some()
}

/// The library, which stays for the process's life: it has threads.
fn library() -> Option<&'static Library> {
    static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
    // SAFETY: the library's constructors set up itself and nothing else, as every program linked to it relies on.
    let load = |file| unsafe { Library::open(Some(file), RTLD_NOW | RTLD_LOCAL) };
    let found = LIBRARY.get_or_init(|| FILES.into_iter().find_map(|file| load(file).ok()));
    found.as_ref()
}

impl Calls {
    fn load() -> Result<Calls> {
        let library =
            library().ok_or_else(|| failed(NAME, format!("no {}", FILES.join(" and no "))))?;
        let missing = |error: libloading::Error| failed(NAME, error.to_string());
        // SAFETY: the functions have these types in every version of the library of this name.
        unsafe {
            Ok(Calls {
                init: *library.get(b"PMIx_Init\0").map_err(missing)?,
                finalize: *library.get(b"PMIx_Finalize\0").map_err(missing)?,
                put: *library.get(b"PMIx_Put\0").map_err(missing)?,
                commit: *library.get(b"PMIx_Commit\0").map_err(missing)?,
                fence: *library.get(b"PMIx_Fence\0").map_err(missing)?,
                get: *library.get(b"PMIx_Get\0").map_err(missing)?,
            })
        }
    }
}

/// Runs a call of the library's, for as long as there is time.
fn bounded<T: Send + 'static>(
    wait: &Wait,
    call: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let (done, result) = channel();
    std::thread::Builder::new()
        .name("unisono-pmix".to_owned())
        .spawn(move || {
            // Nobody may be left to hear it.
            let _ = done.send(call());
        })
        .map_err(|e| BootstrapError::io("starting a thread for PMIx", e))?;
    loop {
        if wait.abort.is_raised() {
            let what = "an answer of the launcher's (PMIx)".to_owned();
            return Err(BootstrapError::Cancelled { what });
        }
        if wait.is_over() {
            return Err(late(NAME));
        }
        match result.recv_timeout(wait.slice()) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(failed(NAME, "its thread has ended"));
            }
        }
    }
}

fn check(call: &str, status: c_int) -> Result<()> {
    match status {
        SUCCESS => Ok(()),
        status => Err(failed(NAME, format!("{call} answers {status}"))),
    }
}

impl Pmix {
    /// Introduces this process to its launcher.
    pub(super) fn connect(wait: &Wait) -> Result<Pmix> {
        let calls = Calls::load()?;
        let own = bounded(wait, move || {
            let mut own = Proc {
                namespace: [0; 256],
                rank: 0,
            };
            // SAFETY: a good place for the answer, and no options.
            let status = unsafe { (calls.init)(&raw mut own, std::ptr::null_mut(), 0) };
            check("PMIx_Init", status).map(|()| own)
        })?;
        leave_at_exit(calls.finalize);
        Ok(Pmix { calls, own })
    }

    fn of(&self, rank: u32) -> Proc {
        Proc { rank, ..self.own }
    }
}

impl Store for Pmix {
    fn put(&mut self, key: &str, value: &str, wait: &Wait) -> Result<()> {
        let (key, text) = (c_string(key)?, c_string(value)?);
        let calls = self.calls;
        bounded(wait, move || {
            let mut value = Value {
                kind: STRING,
                string: text.as_ptr().cast_mut(),
                reserved: [0; 6],
            };
            // SAFETY: the library copies key and value, which live until it returns.
            check("PMIx_Put", unsafe {
                (calls.put)(GLOBAL, key.as_ptr(), &raw mut value)
            })?;
            // SAFETY: the library was initialised.
            check("PMIx_Commit", unsafe { (calls.commit)() })
        })
    }

    fn fence(&mut self, wait: &Wait) -> Result<()> {
        let (calls, all) = (self.calls, self.of(WILDCARD));
        bounded(wait, move || {
            // SAFETY: one process's name, which stands for all; no options.
            check("PMIx_Fence", unsafe {
                (calls.fence)(&raw const all, 1, std::ptr::null(), 0)
            })
        })
    }

    fn get(&mut self, key: &str, wait: &Wait) -> Result<String> {
        let (calls, root, key) = (self.calls, self.of(0), c_string(key)?);
        bounded(wait, move || {
            let mut value: *mut Value = std::ptr::null_mut();
            // SAFETY: good names and a good place for the answer.
            check("PMIx_Get", unsafe {
                (calls.get)(
                    &raw const root,
                    key.as_ptr(),
                    std::ptr::null(),
                    0,
                    &raw mut value,
                )
            })?;
            // SAFETY: the library has given the value to this caller.
            unsafe { taken(value) }.ok_or_else(|| failed(NAME, "PMIx_Get answers with no text"))
        })
    }
}

/// The text of a value, which is freed.
///
/// # Safety
/// The library gave it to the caller, or it is null.
unsafe fn taken(value: *mut Value) -> Option<String> {
    if value.is_null() {
        return None;
    }
    // SAFETY: the caller says that it is a value; a text is a C string of the value's own. Both came from malloc.
    unsafe {
        let is_text = (*value).kind == STRING && !(*value).string.is_null();
        let text = is_text.then(|| {
            let text = CStr::from_ptr((*value).string)
                .to_string_lossy()
                .into_owned();
            libc::free((*value).string.cast());
            text
        });
        libc::free(value.cast());
        text
    }
}

fn c_string(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| failed(NAME, "a text with a NUL"))
}

/// The launcher takes a process that was initialised and ends without finalizing for dead, and ends the job.
fn leave_at_exit(finalize: Finalize) {
    static FINALIZE: OnceLock<(Finalize, u32)> = OnceLock::new();
    extern "C" fn leave() {
        // A forked child's end is not the rank's.
        if let Some((finalize, owner)) = FINALIZE.get()
            && *owner == std::process::id()
        {
            // SAFETY: the library was initialised by this process, once for this call.
            unsafe { finalize(std::ptr::null(), 0) };
        }
    }
    if FINALIZE.set((finalize, std::process::id())).is_ok() {
        // SAFETY: the function may run at any time before the end, and does not unwind.
        unsafe { libc::atexit(leave) };
    }
}
