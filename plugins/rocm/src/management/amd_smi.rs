//! `amd-smi`: devices are handles, in sockets.
//!
//! Its releases differ in what nobody can see from outside. The struct of its version began with a year
//! until 25.3, which is the number of the release all the same; kinds of links got new numbers between
//! headers, and xGMI is 2 to this function in all that are known. A release that is not known is not
//! believed: who asked turns to the runtime.
#![allow(unsafe_code, reason = "looks up and calls C functions")]

use std::ffi::c_void;
use std::ops::RangeInclusive;
use std::ptr;

use unisono_plugin::{Error, Result, Status};
use unisono_plugin_accelerator::{library_functions, open_library};

use super::{Told, check, missing, slot, unknown};

/// Names of the library, the newest first.
const NAMES: [&str; 5] = [
    "libamd_smi.so.27",
    "libamd_smi.so.26",
    "libamd_smi.so.25",
    "libamd_smi.so.24",
    "libamd_smi.so",
];
/// Releases whose numbers are known: years of ROCm 6, then majors of ROCm 6.4 and later.
const KNOWN: RangeInclusive<u32> = 23..=27;
/// `AMDSMI_INIT_AMD_GPUS`.
const DEVICES: u64 = 1 << 1;
/// `AMDSMI_LINK_TYPE_XGMI`, and `AMDSMI_IOLINK_TYPE_XGMI` before it.
const XGMI: u32 = 2;
/// More sockets, and devices of one, than there are.
const MOST: u32 = 1024;

/// Of the library's: a socket, or a device.
type Handle = *mut c_void;

/// The library's version: three or four numbers and a text's address, by its release.
#[repr(C)]
#[derive(Debug, Default)]
struct Version {
    numbers: [u32; 4],
    rest: [u64; 6],
}

library_functions! {
    /// The functions.
    struct Functions -> u32;
    needed {
        init = "amdsmi_init": fn(u64);
        shut_down = "amdsmi_shut_down": fn();
        version = "amdsmi_get_lib_version": fn(*mut Version);
        sockets = "amdsmi_get_socket_handles": fn(*mut u32, *mut Handle);
        devices = "amdsmi_get_processor_handles": fn(Handle, *mut u32, *mut Handle);
        pci = "amdsmi_get_gpu_device_bdf": fn(Handle, *mut u64);
        link_type = "amdsmi_topo_get_link_type": fn(Handle, Handle, *mut u64, *mut u32);
        weight = "amdsmi_topo_get_link_weight": fn(Handle, Handle, *mut u64);
        rates = "amdsmi_get_minmax_bandwidth_between_processors":
            fn(Handle, Handle, *mut u64, *mut u64);
    }
    wished {}
}

/// The library, in use.
#[derive(Debug)]
pub(crate) struct AmdSmi {
    functions: Functions,
    /// Devices, and their slots as the library packs them.
    devices: Vec<(Handle, u64)>,
}

impl AmdSmi {
    /// Opens it.
    ///
    /// # Errors
    /// It is not there, does not start, or is of a release that is not known.
    pub(super) fn open() -> Result<Self> {
        let library = open_library(&NAMES)?;
        // SAFETY: the types are those of the library's manual; it is kept for ever.
        let functions = unsafe { Functions::look_up(&library, missing) }?;
        std::mem::forget(library);
        // SAFETY: flags that ask for devices alone.
        check("amdsmi_init", unsafe { (functions.init)(DEVICES) })?;
        // From here on it is shut down when this goes.
        let mut this = Self {
            functions,
            devices: Vec::new(),
        };
        let mut version = Version::default();
        // SAFETY: writes one of its structs, the longest of which is shorter.
        let code = unsafe { (this.functions.version)(&raw mut version) };
        check("amdsmi_get_lib_version", code)?;
        let [release, ..] = version.numbers;
        if !KNOWN.contains(&release) {
            let (first, last) = (KNOWN.start(), KNOWN.end());
            let what = format!("amd-smi is of release {release}: only {first} to {last} are known");
            return Err(Error::new(Status::NoDriver, what));
        }
        for socket in this.sockets()? {
            for device in this.devices_of(socket)? {
                let mut slot = 0;
                // SAFETY: a device that the library named; it writes a number.
                let code = unsafe { (this.functions.pci)(device, &raw mut slot) };
                check("amdsmi_get_gpu_device_bdf", code)?;
                this.devices.push((device, slot));
            }
        }
        Ok(this)
    }

    fn sockets(&self) -> Result<Vec<Handle>> {
        // SAFETY: it writes a number, and as many handles as it is told that there is room for.
        handles("amdsmi_get_socket_handles", |count, to| unsafe {
            (self.functions.sockets)(count, to)
        })
    }

    fn devices_of(&self, socket: Handle) -> Result<Vec<Handle>> {
        // SAFETY: a socket that the library named; as above.
        handles("amdsmi_get_processor_handles", |count, to| unsafe {
            (self.functions.devices)(socket, count, to)
        })
    }

    /// The device in a slot.
    fn device(&self, pci: &str) -> Result<Handle> {
        let wanted = slot(pci).map(packed);
        let mut devices = self.devices.iter();
        let found = devices.find(|(_, slot)| Some(*slot) == wanted);
        found.map(|(device, _)| *device).ok_or_else(|| unknown(pci))
    }

    /// What it says of the way between the devices in two slots; none if that is not over xGMI.
    ///
    /// # Errors
    /// It does not know the devices, or does not say how they are joined.
    pub(super) fn between(&self, from: &str, to: &str) -> Result<Option<Told>> {
        let (from, to) = (self.device(from)?, self.device(to)?);
        let (mut hops, mut kind, mut weight) = (0, 0, 0);
        // SAFETY: writes numbers.
        let code = unsafe { (self.functions.link_type)(from, to, &raw mut hops, &raw mut kind) };
        check("amdsmi_topo_get_link_type", code)?;
        if kind != XGMI {
            return Ok(None);
        }
        // SAFETY: writes a number.
        let code = unsafe { (self.functions.weight)(from, to, &raw mut weight) };
        check("amdsmi_topo_get_link_weight", code)?;
        let (mut least, mut most) = (0, 0);
        // SAFETY: writes numbers.
        let code = unsafe { (self.functions.rates)(from, to, &raw mut least, &raw mut most) };
        Ok(Some(Told {
            weight,
            megabytes_per_second: (code == 0).then_some(most),
        }))
    }
}

impl Drop for AmdSmi {
    fn drop(&mut self) {
        // SAFETY: it was started once by this.
        let _ = unsafe { (self.functions.shut_down)() };
    }
}

/// All handles that a function lists: it says how many there are, then which.
fn handles(call: &str, list: impl Fn(*mut u32, *mut Handle) -> u32) -> Result<Vec<Handle>> {
    let mut count = 0;
    check(call, list(&raw mut count, ptr::null_mut()))?;
    if count > MOST {
        let what = format!("{call} says that there are {count}");
        return Err(Error::new(Status::Device, what));
    }
    let mut found = vec![ptr::null_mut(); count as usize];
    check(call, list(&raw mut count, found.as_mut_ptr()))?;
    found.truncate(count as usize);
    Ok(found)
}

/// A slot as the library packs it.
const fn packed([domain, bus, device, function]: [u64; 4]) -> u64 {
    domain << 16 | bus << 8 | device << 3 | function
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_packed_in_another_way() {
        assert_eq!(slot("0001:c1:02.3").map(packed), Some(0x1_c113));
    }

    #[test]
    fn what_is_listed_is_bounded() {
        let many = |count: *mut u32, _| {
            // SAFETY: the number that it is asked for.
            unsafe { count.write(u32::MAX) };
            0
        };
        assert!(handles("list", many).is_err());
        assert!(handles("list", |_, _| 5).is_err());
    }
}
