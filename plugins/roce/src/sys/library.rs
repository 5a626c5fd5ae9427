//! Opening the library, and finding its functions.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::abi::{
    AsyncEvent, CompChannel, Context, Cq, Device, DeviceAttr, Mr, Pd, PortAttr, Qp, QpAttr,
    QpInitAttr,
};

/// An open libibverbs. It stays open for the life of the process: the library has threads' and
/// forks' handlers that must not vanish under them.
#[derive(Clone, Copy)]
pub struct Library(&'static Functions);

/// Why there is no library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// It is not on this machine, or cannot be loaded: the dynamic linker's words.
    NotFound {
        /// What was asked for.
        name: String,
        /// What the dynamic linker says.
        why: String,
    },
    /// It lacks a function.
    Symbol {
        /// What was asked for.
        name: String,
        /// The function.
        symbol: &'static str,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { name, why } => write!(
                f,
                "no RDMA: {name} was not found; install rdma-core ({why})"
            ),
            Self::Symbol { name, symbol } => {
                write!(f, "no RDMA: {name} has no {symbol}; update rdma-core")
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// The functions, by the names that they have in `verbs.h` without `ibv_`.
#[allow(missing_docs, reason = "as in verbs.h")]
pub struct Functions {
    pub get_device_list: unsafe extern "C" fn(*mut c_int) -> *mut *mut Device,
    pub free_device_list: unsafe extern "C" fn(*mut *mut Device),
    pub open_device: unsafe extern "C" fn(*mut Device) -> *mut Context,
    pub close_device: unsafe extern "C" fn(*mut Context) -> c_int,
    pub query_device: unsafe extern "C" fn(*mut Context, *mut DeviceAttr) -> c_int,
    pub query_port: unsafe extern "C" fn(*mut Context, u8, *mut PortAttr) -> c_int,
    pub alloc_pd: unsafe extern "C" fn(*mut Context) -> *mut Pd,
    pub dealloc_pd: unsafe extern "C" fn(*mut Pd) -> c_int,
    pub reg_mr: unsafe extern "C" fn(*mut Pd, *mut c_void, usize, c_int) -> *mut Mr,
    /// Newer than the rest; absent from old libraries.
    pub reg_dmabuf_mr:
        Option<unsafe extern "C" fn(*mut Pd, u64, usize, u64, c_int, c_int) -> *mut Mr>,
    pub dereg_mr: unsafe extern "C" fn(*mut Mr) -> c_int,
    pub create_comp_channel: unsafe extern "C" fn(*mut Context) -> *mut CompChannel,
    pub destroy_comp_channel: unsafe extern "C" fn(*mut CompChannel) -> c_int,
    pub create_cq:
        unsafe extern "C" fn(*mut Context, c_int, *mut c_void, *mut CompChannel, c_int) -> *mut Cq,
    pub destroy_cq: unsafe extern "C" fn(*mut Cq) -> c_int,
    pub get_cq_event:
        unsafe extern "C" fn(*mut CompChannel, *mut *mut Cq, *mut *mut c_void) -> c_int,
    pub ack_cq_events: unsafe extern "C" fn(*mut Cq, c_uint),
    pub create_qp: unsafe extern "C" fn(*mut Pd, *mut QpInitAttr) -> *mut Qp,
    pub modify_qp: unsafe extern "C" fn(*mut Qp, *mut QpAttr, c_int) -> c_int,
    pub destroy_qp: unsafe extern "C" fn(*mut Qp) -> c_int,
    pub get_async_event: unsafe extern "C" fn(*mut Context, *mut AsyncEvent) -> c_int,
    pub ack_async_event: unsafe extern "C" fn(*mut AsyncEvent),
    pub wc_status_str: unsafe extern "C" fn(c_int) -> *const c_char,
    pub fork_init: unsafe extern "C" fn() -> c_int,
}

impl Library {
    /// The library of this name or path, opened once in a process.
    ///
    /// # Errors
    /// If it is not there, or lacks a function.
    pub fn open(name: &str) -> Result<Self, LoadError> {
        static OPEN: Mutex<BTreeMap<String, Library>> = Mutex::new(BTreeMap::new());
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(library) = open.get(name) {
            return Ok(*library);
        }
        let library = Self::load(name)?;
        open.insert(name.to_owned(), library);
        Ok(library)
    }

    fn load(name: &str) -> Result<Self, LoadError> {
        let not_found = |why: String| LoadError::NotFound {
            name: name.to_owned(),
            why,
        };
        let path = CString::new(name).map_err(|_| not_found("the name has a NUL".to_owned()))?;
        // SAFETY: the path ends in NUL. Opening runs the library's constructors; the library is
        // the one that the user's configuration names, as the plugin itself is.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(not_found(last_error()));
        }
        let functions = Functions::find(handle).map_err(|symbol| LoadError::Symbol {
            name: name.to_owned(),
            symbol,
        })?;
        // Pages that are registered stay this process's when it forks. Kernels and libraries that
        // see to it themselves answer at once; where another user of the library came first, it is
        // their choice that counts, so an error changes nothing.
        // SAFETY: no arguments.
        let _ = unsafe { (functions.fork_init)() };
        Ok(Self(Box::leak(Box::new(functions))))
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Library")
    }
}

impl std::ops::Deref for Library {
    type Target = Functions;

    fn deref(&self) -> &Functions {
        self.0
    }
}

fn last_error() -> String {
    // SAFETY: the answer is NULL or a string that lives until this thread's next call of the kind.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            return "no reason given".to_owned();
        }
        CStr::from_ptr(text).to_string_lossy().into_owned()
    }
}

fn symbol(handle: *mut c_void, name: &'static CStr) -> Option<*mut c_void> {
    // SAFETY: the handle is open and the name ends in NUL. Of several versions of a symbol this
    // finds the newest, which is the one that the mirrored structs belong to.
    let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Finds one function, or leaves the surrounding function with its name.
macro_rules! find {
    ($handle:ident, $name:literal) => {{
        const NAME: &CStr = match CStr::from_bytes_with_nul(concat!("ibv_", $name, "\0").as_bytes())
        {
            Ok(name) => name,
            Err(_) => panic!("a name with a NUL"),
        };
        let found = symbol($handle, NAME).ok_or(concat!("ibv_", $name))?;
        // SAFETY: the library's function of this name has this type, by its header.
        unsafe { std::mem::transmute::<*mut c_void, _>(found) }
    }};
}

#[allow(
    clippy::missing_transmute_annotations,
    reason = "each field says its function's type, once"
)]
impl Functions {
    fn find(handle: *mut c_void) -> Result<Self, &'static str> {
        Ok(Self {
            get_device_list: find!(handle, "get_device_list"),
            free_device_list: find!(handle, "free_device_list"),
            open_device: find!(handle, "open_device"),
            close_device: find!(handle, "close_device"),
            query_device: find!(handle, "query_device"),
            query_port: find!(handle, "query_port"),
            alloc_pd: find!(handle, "alloc_pd"),
            dealloc_pd: find!(handle, "dealloc_pd"),
            reg_mr: find!(handle, "reg_mr"),
            reg_dmabuf_mr: symbol(handle, c"ibv_reg_dmabuf_mr").map(|found| {
                // SAFETY: as for the others.
                unsafe { std::mem::transmute::<*mut c_void, _>(found) }
            }),
            dereg_mr: find!(handle, "dereg_mr"),
            create_comp_channel: find!(handle, "create_comp_channel"),
            destroy_comp_channel: find!(handle, "destroy_comp_channel"),
            create_cq: find!(handle, "create_cq"),
            destroy_cq: find!(handle, "destroy_cq"),
            get_cq_event: find!(handle, "get_cq_event"),
            ack_cq_events: find!(handle, "ack_cq_events"),
            create_qp: find!(handle, "create_qp"),
            modify_qp: find!(handle, "modify_qp"),
            destroy_qp: find!(handle, "destroy_qp"),
            get_async_event: find!(handle, "get_async_event"),
            ack_async_event: find!(handle, "ack_async_event"),
            wc_status_str: find!(handle, "wc_status_str"),
            fork_init: find!(handle, "fork_init"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_missing_is_named_with_what_to_install() {
        let error = Library::open("libibverbs-that-is-not-there.so.1").unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with(
                "no RDMA: libibverbs-that-is-not-there.so.1 was not found; install rdma-core"
            ),
            "{text}"
        );
        assert!(Library::open("a\0b").is_err());
    }

    #[test]
    fn a_library_without_the_functions_is_refused_by_name() {
        // The C library is there on every machine that runs this.
        let error = Library::open("libc.so.6").unwrap_err();
        assert!(matches!(
            error,
            LoadError::Symbol {
                symbol: "ibv_get_device_list",
                ..
            }
        ));
    }
}
