//! `rocm-smi`: devices are numbers, in an order of its own.
#![allow(unsafe_code, reason = "looks up and calls C functions")]

use unisono_plugin::Result;
use unisono_plugin_accelerator::{library_functions, open_library};

use super::{Told, check, missing, slot, unknown};

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
pub(crate) struct RocmSmi {
    functions: Functions,
    /// Slots by the library's numbers.
    slots: Vec<u64>,
}

impl RocmSmi {
    /// Opens it.
    ///
    /// # Errors
    /// It is not there, or does not start.
    pub(super) fn open() -> Result<Self> {
        let library = open_library(&NAMES)?;
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
        let wanted = slot(pci).map(packed);
        let mut slots = self.slots.iter();
        let found = slots.position(|slot| Some(masked(*slot)) == wanted);
        let index = found.and_then(|at| u32::try_from(at).ok());
        index.ok_or_else(|| unknown(pci))
    }

    /// What it says of the way between the devices in two slots; none if that is not over xGMI.
    ///
    /// # Errors
    /// It does not know the devices, or does not say how they are joined.
    pub(super) fn between(&self, from: &str, to: &str) -> Result<Option<Told>> {
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
        let (mut least, mut most) = (0, 0);
        // SAFETY: writes numbers.
        let code = unsafe { (self.functions.rates)(from, to, &raw mut least, &raw mut most) };
        Ok(Some(Told {
            weight,
            megabytes_per_second: (code == 0).then_some(most),
        }))
    }
}

impl Drop for RocmSmi {
    fn drop(&mut self) {
        // SAFETY: it was started once by this.
        let _ = unsafe { (self.functions.shut_down)() };
    }
}

/// Domain, bus, device and function; newer libraries put the number of a part between.
const fn masked(slot: u64) -> u64 {
    slot & 0xffff_ffff_0000_ffff
}

/// A slot as the library packs it.
const fn packed([domain, bus, device, function]: [u64; 4]) -> u64 {
    domain << 32 | bus << 8 | device << 3 | function
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_compared_without_the_numbers_of_parts() {
        assert_eq!(slot("0001:c1:02.3").map(packed), Some(0x1_0000_c113));
        assert_eq!(masked(0x1_1000_c113), 0x1_0000_c113);
    }
}
