//! Finding the driver's library: the one that the process has already, or the system's.
#![allow(unsafe_code, reason = "opens a shared library")]

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use unisono_plugin::{Error, Status};

/// Names of the driver's library. The one without a number belongs to development packages, and may be
/// a stub that answers nothing but errors: it comes last.
const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// Opens only what is loaded already.
const RTLD_NOLOAD: i32 = 4;

/// The driver's library.
pub(crate) fn open() -> Result<Library, Error> {
    let mut why = String::new();
    for flags in [RTLD_NOLOAD, 0] {
        for name in NAMES {
            // SAFETY: the vendor's library; its constructors are what any program that uses it runs.
            match unsafe { Library::open(Some(name), flags | RTLD_NOW | RTLD_LOCAL) } {
                Ok(library) => return Ok(library),
                Err(error) if flags == 0 && why.is_empty() => why = error.to_string(),
                Err(_) => {}
            }
        }
    }
    Err(Error::new(
        Status::NoDriver,
        format!(
            "no driver: neither {} nor {} opens ({why})",
            NAMES[0], NAMES[1]
        ),
    ))
}
