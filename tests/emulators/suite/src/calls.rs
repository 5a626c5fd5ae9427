//! What a process has asked of its emulated runtime.
#![allow(unsafe_code, reason = "calls the emulator")]

use std::ffi::{CString, c_char};

use libloading::Library;

/// The emulator of this process.
#[derive(Debug)]
pub struct Calls(Library);

/// Functions that hand work to a stream, by how their names begin.
const WORK: [&str; 10] = [
    "cuLaunchKernel",
    "cuMemcpyAsync",
    "cuStreamBatchMemOp",
    "cuGraphLaunch",
    "hipModuleLaunchKernel",
    "hipMemcpyAsync",
    "hipStreamWriteValue",
    "hipStreamWaitValue",
    "hipGraphLaunch",
    "hipMemsetAsync",
];

impl Calls {
    /// That of a plugin, which has opened it already.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn of(plugin: &str) -> Self {
        let library = match plugin {
            "rocm" => "libamdhip64.so.6",
            _ => "libcuda.so.1",
        };
        // SAFETY: the plugin has opened it already.
        Self(unsafe { Library::new(library) }.expect("the runtime"))
    }

    /// Calls so far of all functions whose names begin so.
    ///
    /// # Panics
    /// If the library is no emulator.
    #[must_use]
    pub fn count(&self, begin: &str) -> u64 {
        let text = CString::new(begin).expect("a name");
        // SAFETY: the emulator's function has this type, and the text ends with a NUL.
        unsafe {
            let function = self
                .0
                .get::<unsafe extern "C" fn(*const c_char) -> u64>(b"unisono_emulator_calls\0");
            function.expect("an emulator")(text.as_ptr())
        }
    }

    /// Calls so far that handed work to streams. Emulators of one vendor call those of another: of each
    /// work only the outer call counts.
    #[must_use]
    pub fn work(&self, plugin: &str) -> u64 {
        let outer = if plugin == "rocm" { "hip" } else { "cu" };
        let all = WORK.iter().filter(|name| name.starts_with(outer));
        all.map(|name| self.count(name)).sum()
    }
}
