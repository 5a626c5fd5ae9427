//! Finding a vendor's library: the one that the process has already, or the system's.
#![allow(unsafe_code, reason = "opens a shared library")]

use std::ffi::{CStr, CString, c_void};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use unisono_plugin::{Error, Result, Status};

/// Opens only what is loaded already.
const RTLD_NOLOAD: i32 = 4;

/// The first library of these names that opens: one that the process has loaded before all others.
///
/// # Errors
/// No driver, with the loader's reason for the first name.
pub fn open_library(names: &[&str]) -> Result<Library> {
    let mut why = String::new();
    for flags in [RTLD_NOLOAD, 0] {
        for name in names {
            // SAFETY: the vendor's library; its constructors are what any program that uses it runs.
            match unsafe { Library::open(Some(*name), flags | RTLD_NOW | RTLD_LOCAL) } {
                Ok(library) => return Ok(library),
                Err(error) if flags == 0 && why.is_empty() => why = error.to_string(),
                Err(_) => {}
            }
        }
    }
    Err(Error::new(
        Status::NoDriver,
        format!("no driver: none of {} opens ({why})", names.join(", ")),
    ))
}

/// Where a library lies, by one of its functions; empty if the loader does not say.
#[must_use]
pub fn library_path(library: &Library, symbol: &str) -> String {
    let Ok(symbol) = CString::new(symbol) else {
        return String::new();
    };
    // SAFETY: `dladdr` fills a struct of this frame, and its name lives as long as the library.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let found = library.get::<*const c_void>(symbol.as_bytes_with_nul());
        if let Ok(found) = found
            && libc::dladdr((*found).cast_mut().cast_const(), &raw mut info) != 0
            && !info.dli_fname.is_null()
        {
            return CStr::from_ptr(info.dli_fname)
                .to_string_lossy()
                .into_owned();
        }
    }
    String::new()
}

/// A struct of a library's functions, looked up one by one: `needed` are errors where they are missing,
/// `wished` are `None`. `look_up` takes the library and what to say of a missing function.
#[macro_export]
macro_rules! library_functions {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $Name:ident -> $Code:ty;
        needed { $($field:ident = $symbol:literal: fn($($arg:ty),* $(,)?);)+ }
        wished { $($wish:ident = $name:literal: fn($($warg:ty),* $(,)?);)* }
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        $visibility struct $Name {
            $($visibility $field: unsafe extern "C" fn($($arg),*) -> $Code,)+
            $($visibility $wish: Option<unsafe extern "C" fn($($warg),*) -> $Code>,)*
        }

        impl $Name {
            /// # Safety
            /// The functions are the vendor's, of these types; the library is never closed.
            unsafe fn look_up<E>(
                library: &libloading::os::unix::Library,
                missing: impl Fn(&str) -> E,
            ) -> Result<Self, E> {
                // SAFETY: the caller's promise.
                unsafe {
                    Ok(Self {
                        $($field: *library
                            .get(concat!($symbol, "\0").as_bytes())
                            .map_err(|_| missing($symbol))?,)+
                        $($wish: library
                            .get(concat!($name, "\0").as_bytes())
                            .ok()
                            .map(|symbol| *symbol),)*
                    })
                }
            }
        }
    };
}
