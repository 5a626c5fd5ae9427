//! The management library, for what the runtime does not tell: the rates of links.
//!
//! `rocm-smi` is asked, not `amd-smi`, which has given its types of links other numbers in other releases.
#![allow(unsafe_code, reason = "looks up and calls C functions")]

use unisono_plugin::{Error, Result, Status};
use unisono_plugin_accelerator::{library_functions, open_library};

/// Names of the library, the newest first.
const NAMES: [&str; 5] = [
    "librocm_smi64.so.7",
    "librocm_smi64.so.6",
    "librocm_smi64.so.5",
    "librocm_smi64.so.1",
    "librocm_smi64.so",
];
/// `RSMI_IOLINK_TYPE_XGMI`.
const XGMI: u32 = 2;
/// Weights of a way of one hop; the library gives its rates only for those.
const ONE_HOP: [u64; 3] = [13, 15, 41];

library_functions! {
    /// The functions.
    struct Functions -> u32;
    needed {
        init = "rsmi_init": fn(u64);
        shut_down = "rsmi_shut_down": fn();
        count = "rsmi_num_monitor_devices": fn(*mut u32);
        pci = "rsmi_dev_pci_id_get": fn(u32, *mut u64);
        link_type = "rsmi_topo_get_link_type": fn(u32, u32, *mut u64, *mut u32);
        weight = "rsmi_topo_get_link_weight": fn(u32, u32, *mut u64);
        rates = "rsmi_minmax_bandwidth_get": fn(u32, u32, *mut u64, *mut u64);
    }
    wished {}
}

/// The library, in use.
#[derive(Debug)]
pub(crate) struct Management {
    functions: Functions,
    /// Slots by the library's numbers.
    slots: Vec<u64>,
}

/// The way between two devices over the vendor's own links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Xgmi {
    /// Links one after another.
    pub(crate) hops: u32,
    /// What it carries each way, 0 if unknown.
    pub(crate) bytes_per_second: u64,
}

fn check(call: &str, code: u32) -> Result<()> {
    match code {
        0 => Ok(()),
        code => {
            let error = Error::new(Status::Device, format!("{call} answers {code}"));
            Err(error.with_vendor_code(code.into()))
        }
    }
}

impl Management {
    /// Opens it.
    ///
    /// # Errors
    /// It is not there, or does not start.
    pub(crate) fn open() -> Result<Self> {
        let library = open_library(&NAMES)?;
        let missing = |symbol: &str| {
            let what = format!("the management library has no {symbol}");
            Error::new(Status::NoDriver, what)
        };
        // SAFETY: the types are those of the library's manual; it is kept for ever.
        let functions = unsafe { Functions::look_up(&library, missing) }?;
        std::mem::forget(library);
        // SAFETY: flags that ask for nothing.
        check("rsmi_init", unsafe { (functions.init)(0) })?;
        let mut this = Self {
            functions,
            slots: Vec::new(),
        };
        let mut count = 0;
        // SAFETY: writes a number.
        let code = unsafe { (this.functions.count)(&raw mut count) };
        check("rsmi_num_monitor_devices", code)?;
        for index in 0..count {
            let mut slot = 0;
            // SAFETY: writes a number.
            let code = unsafe { (this.functions.pci)(index, &raw mut slot) };
            check("rsmi_dev_pci_id_get", code)?;
            this.slots.push(slot);
        }
        Ok(this)
    }

    /// The library's number of the device in a slot.
    fn index(&self, pci: &str) -> Result<u32> {
        let wanted = slot(pci);
        let mut slots = self.slots.iter();
        let found = slots.position(|slot| Some(masked(*slot)) == wanted);
        found.and_then(|at| u32::try_from(at).ok()).ok_or_else(|| {
            let what = format!("the management library has no device {pci}");
            Error::new(Status::Device, what)
        })
    }

    /// The way between the devices in two slots; none if it is not over the vendor's own links.
    ///
    /// # Errors
    /// The library does not know the devices, or does not say how they are joined.
    pub(crate) fn between(&self, from: &str, to: &str) -> Result<Option<Xgmi>> {
        let (from, to) = (self.index(from)?, self.index(to)?);
        let (mut hops, mut kind, mut weight) = (0, 0, 0);
        // SAFETY: writes numbers.
        let code = unsafe { (self.functions.link_type)(from, to, &raw mut hops, &raw mut kind) };
        check("rsmi_topo_get_link_type", code)?;
        if kind != XGMI {
            return Ok(None);
        }
        // SAFETY: writes a number.
        let code = unsafe { (self.functions.weight)(from, to, &raw mut weight) };
        check("rsmi_topo_get_link_weight", code)?;
        // The library says one hop of every way over these links: only the weight tells.
        let one = ONE_HOP.contains(&weight);
        let (mut least, mut most) = (0, 0);
        // SAFETY: writes numbers.
        let code = unsafe { (self.functions.rates)(from, to, &raw mut least, &raw mut most) };
        let megabytes = if code == 0 && one { most } else { 0 };
        Ok(Some(Xgmi {
            hops: if one { 1 } else { 2 },
            bytes_per_second: megabytes.saturating_mul(1_000_000),
        }))
    }
}

impl Drop for Management {
    fn drop(&mut self) {
        // SAFETY: it was started once by this.
        let _ = unsafe { (self.functions.shut_down)() };
    }
}

/// Domain, bus, device and function; newer libraries put the number of a part between.
const fn masked(slot: u64) -> u64 {
    slot & 0xffff_ffff_0000_ffff
}

/// "0000:1b:00.0" as the library packs it.
fn slot(pci: &str) -> Option<u64> {
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (domain, rest) = pci.split_once(':')?;
    let (bus, rest) = rest.split_once(':')?;
    let (device, function) = rest.split_once('.')?;
    Some(hex(domain)? << 32 | hex(bus)? << 8 | hex(device)? << 3 | hex(function)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_compared_without_the_numbers_of_parts() {
        assert_eq!(slot("0001:c1:02.3"), Some(0x1_0000_c113));
        assert_eq!(masked(0x1_1000_c113), 0x1_0000_c113);
        assert_eq!(slot("c1:00.0"), None);
    }
}
