//! The machine of this process: made once, from the file that the environment names.

use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::kernel::Kernels;
use crate::space::Space;
use crate::{BoxFile, Broken, Device, FaultKind, Kernel, Traffic};

/// Devices, and what they share.
#[derive(Debug)]
pub struct Machine {
    /// What it is.
    pub facts: BoxFile,
    /// Device addresses.
    pub space: Space,
    /// Counts of bytes.
    pub traffic: Traffic,
    /// The seed of its scheduling.
    pub seed: u64,
    devices: Vec<Arc<Device>>,
    /// Where the kernels are. They are opened by the first library that runs one: several may hold a
    /// machine, and the kernels call the one that opened them.
    kernels_at: Option<PathBuf>,
    kernels: OnceLock<Option<Kernels>>,
    ids: AtomicU64,
    link_bytes: AtomicU64,
}

static MACHINE: OnceLock<Result<Machine, String>> = OnceLock::new();

/// The machine of this process.
///
/// # Errors
/// Why there is none, as a sentence; said once on standard error, as vendors' codes say little.
pub fn machine() -> Result<&'static Machine, &'static str> {
    let machine = MACHINE.get_or_init(|| {
        let made = make();
        if let Err(why) = &made {
            eprintln!("emulator: {why}");
        }
        made
    });
    machine.as_ref().map_err(String::as_str)
}

/// Ends a forked child that calls a driver: the real ones do not survive a fork, and each fails in its own
/// way.
pub fn refuse_child(call: &str) {
    static USER: OnceLock<u32> = OnceLock::new();
    let own = std::process::id();
    if *USER.get_or_init(|| own) != own {
        eprintln!("emulator: {call} in a forked child");
        std::process::abort();
    }
}

/// What a variable names for this library: a machine with devices of several vendors has a box for each,
/// and its libraries are told apart by their names.
fn path(variable: &str) -> Option<PathBuf> {
    let of_library = library().and_then(|name| {
        let name = name.to_uppercase();
        std::env::var_os(format!("{variable}_{name}"))
    });
    let named = of_library.or_else(|| std::env::var_os(variable));
    named.map(PathBuf::from)
}

/// The name of the library that this code is part of: `cuda` of `libunisono_emulator_cuda.so`, by
/// whatever link it was opened.
#[allow(unsafe_code, reason = "asks the loader where this code lies")]
fn library() -> Option<String> {
    // SAFETY: a struct of pointers, which the loader fills; what it names lives as long as the library.
    let file = unsafe {
        let mut found: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(library as *const libc::c_void, &raw mut found) == 0 {
            return None;
        }
        CStr::from_ptr(found.dli_fname).to_str().ok()?
    };
    let file = std::fs::canonicalize(file).ok()?;
    let name = file.file_stem()?.to_str()?;
    name.strip_prefix("libunisono_emulator_").map(str::to_owned)
}

fn make() -> Result<Machine, String> {
    let file = path(crate::BOX).ok_or_else(|| format!("{} names no file", crate::BOX))?;
    let seed = match std::env::var(crate::SEED) {
        Ok(text) => text
            .parse()
            .map_err(|_| format!("{}={text} is no number", crate::SEED))?,
        Err(_) => SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| time.subsec_nanos().into()),
    };
    Machine::new(
        BoxFile::read(&file)?,
        seed,
        path(crate::TRAFFIC).as_deref(),
        path(crate::KERNELS),
    )
}

impl Machine {
    pub(crate) fn new(
        facts: BoxFile,
        seed: u64,
        traffic: Option<&Path>,
        kernels_at: Option<PathBuf>,
    ) -> Result<Self, String> {
        Ok(Self {
            space: Space::new().map_err(|e| format!("no address space: {e}"))?,
            traffic: Traffic::open(traffic).map_err(|e| format!("no counts: {e}"))?,
            seed,
            devices: (0..facts.devices)
                .map(|i| Arc::new(Device::new(i)))
                .collect(),
            kernels_at,
            kernels: OnceLock::new(),
            ids: AtomicU64::new(1),
            link_bytes: AtomicU64::new(0),
            facts,
        })
    }

    /// A device by its number.
    #[must_use]
    pub fn device(&self, index: u32) -> Option<&Arc<Device>> {
        self.devices.get(index as usize)
    }

    /// A kernel by its name, if there is a library of kernels and it has one.
    #[must_use]
    pub fn kernel(&self, name: &str) -> Option<Kernel> {
        let kernels = self.kernels.get_or_init(|| {
            let path = self.kernels_at.as_ref()?;
            let opened = Kernels::open(path);
            if let Err(error) = &opened {
                eprintln!("emulator: {}: {error}", path.display());
            }
            opened.ok()
        });
        kernels.as_ref()?.get(name)
    }

    /// A number that nothing else of this process has.
    pub fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether a device can map another's memory.
    #[must_use]
    pub fn can_map(&self, device: u32, owner: u32) -> bool {
        let refused = self.facts.faults.iter().any(|fault| {
            let ends = (fault.device, fault.peer);
            fault.kind == FaultKind::Mapping && (ends == (device, owner) || ends == (owner, device))
        });
        device == owner || self.facts.reaches(device, owner) && !refused
    }

    /// An operation begins: a device may be lost by it.
    pub(crate) fn count_op(&self, device: &Device) {
        if self.facts.faults.is_empty() {
            return;
        }
        let ops = device.ops.fetch_add(1, Ordering::Relaxed);
        let lost = self.facts.faults.iter().any(|fault| {
            fault.kind == FaultKind::Lost && fault.device == device.index && ops >= fault.after
        });
        if lost {
            device.break_down(Broken::Lost);
        }
    }

    /// Bytes go over a link: whether it fails.
    pub(crate) fn link_is_broken(&self, from: u32, to: u32, bytes: u64) -> bool {
        let faults = self.facts.faults.iter();
        let mut faults = faults.filter(|fault| {
            let ends = (fault.device, fault.peer);
            fault.kind == FaultKind::Link && (ends == (from, to) || ends == (to, from))
        });
        faults.any(|fault| {
            let before = self.link_bytes.fetch_add(bytes, Ordering::Relaxed);
            before + bytes > fault.after
        })
    }
}
