//! What a process has asked of its emulated runtime.
#![allow(unsafe_code, reason = "calls the emulator")]

use std::ffi::{CString, c_char};

use libloading::Library;

/// The emulator of this process.
#[derive(Debug)]
pub struct Calls {
    library: Library,
    /// How the names of the runtime's functions begin. Emulators of one vendor call those of another: of
    /// each call only the outer one counts.
    begin: &'static str,
}

/// Functions that hand work to a stream, by how their names begin behind the vendor's.
const WORK: [&str; 7] = [
    "LaunchKernel",
    "ModuleLaunchKernel",
    "MemcpyAsync",
    "StreamBatchMemOp",
    "StreamWriteValue",
    "StreamWaitValue",
    "GraphLaunch",
];

impl Calls {
    /// That of a plugin, which has opened it already.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn of(plugin: &str) -> Self {
        let (name, begin) = match plugin {
            "rocm" => ("libamdhip64.so.6", "hip"),
            _ => ("libcuda.so.1", "cu"),
        };
        // SAFETY: the plugin has opened it already.
        let library = unsafe { Library::new(name) }.expect("the runtime");
        Self { library, begin }
    }

    /// Calls so far of all functions whose names begin so, behind what they all begin with.
    ///
    /// # Panics
    /// If the library is no emulator.
    #[must_use]
    pub fn count(&self, begin: &str) -> u64 {
        let text = CString::new(format!("{}{begin}", self.begin)).expect("a name");
        // SAFETY: the emulator's function has this type, and the text ends with a NUL.
        unsafe {
            let function = self
                .library
                .get::<unsafe extern "C" fn(*const c_char) -> u64>(b"unisono_emulator_calls\0");
            function.expect("an emulator")(text.as_ptr())
        }
    }

    /// Calls so far that handed work to streams.
    #[must_use]
    pub fn work(&self) -> u64 {
        WORK.iter().map(|name| self.count(name)).sum()
    }

    /// Graphs launched so far.
    #[must_use]
    pub fn launches(&self) -> u64 {
        self.count("GraphLaunch")
    }

    /// Graphs that there are: made and not ended.
    #[must_use]
    pub fn graphs(&self) -> u64 {
        self.count("GraphInstantiate") - self.count("GraphExecDestroy")
    }
}
