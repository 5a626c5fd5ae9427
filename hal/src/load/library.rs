//! The system's loader: `dlopen`, `dlsym`, and where this library itself lies.

#![allow(unsafe_code, reason = "loads libraries and looks up symbols")]

use std::ffi::{CStr, OsStr};
use std::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use unisono_abi as abi;

use crate::{QueryFn, Refusal};

/// Loads a library with all of its symbols resolved, seen by nobody else, and never unloads it.
/// Gives its query. `needed` is what the file says that it needs.
pub(super) fn open(path: &Path, needed: &[String]) -> Result<QueryFn, Refusal> {
    // SAFETY: its initialisers run now. That is what loading a plugin means: whoever put the file
    // on the search path answers for it.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
    let library = ManuallyDrop::new(library.map_err(|e| refused(&e, needed))?);
    // SAFETY: the contract says what type the symbol has.
    let query = unsafe { library.get::<abi::QueryFn>(abi::QUERY_SYMBOL) };
    let query = query.map_err(|_| Refusal::NoSymbol)?;
    // SAFETY: a library that exports this symbol promises to keep the contract.
    Ok(unsafe { QueryFn::new(*query) })
}

fn refused(error: &libloading::Error, needed: &[String]) -> Refusal {
    let text = match error {
        libloading::Error::DlOpen { source } => source.to_string(),
        other => other.to_string(),
    };
    // glibc: "libx.so: cannot open shared object file: ..."; musl: "Error loading shared library
    // libx.so: ...". Both name the library, also one that is needed by one that is needed.
    let missing = text.contains("cannot open shared object") || text.contains("shared library");
    let named = needed.iter().find(|name| text.contains(name.as_str()));
    match named {
        Some(name) if missing => Refusal::NeedsLibrary {
            names: vec![name.clone()],
        },
        _ => Refusal::Dlopen(text),
    }
}

/// The file that this code lies in: the program, or the library that it was linked into.
pub(super) fn own_file() -> Option<PathBuf> {
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    let here = own_file as fn() -> Option<PathBuf> as *const ();
    // SAFETY: an address in this code, and a struct to write to.
    let found = unsafe { libc::dladdr(here.cast(), &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: a NUL-terminated name that lives as long as this code is loaded.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    // A program that was started by a relative path has one here; then `current_exe` knows better.
    let path = PathBuf::from(OsStr::from_bytes(name.to_bytes()));
    path.is_absolute().then_some(path)
}

/// The user that this process acts as.
pub(super) fn effective_user() -> u32 {
    // SAFETY: always succeeds.
    unsafe { libc::geteuid() }
}
