//! Links between devices: each pair's own, as the runtime tells of it.
#![allow(unsafe_code, reason = "calls the runtime")]

use unisono_plugin::LinkInfo;
use unisono_plugin_accelerator::{local_link, mapped_link};

use crate::api::Api;
use crate::facts::{Facts, can_access, is_first_generation};

/// Bits of a pair's topology: the vendor's own link, directly, inside a package, through a switch.
const HCCS: u64 = 0x1;
const SIO: u64 = 0x20;
const HCCS_SWITCHED: u64 = 0x40;

/// What a small message takes: a write over the link, and the flag in host memory.
const HCCS_LATENCY: u64 = 3_000;
const PCIE_LATENCY: u64 = 5_000;
const LOCAL_LATENCY: u64 = 2_000;

/// What a link of a pair carries each way, after the data sheets; half of what counts both ways.
const HCCS_RATE: u64 = 28_000_000_000;
const HCCS_FIRST_RATE: u64 = 15_000_000_000;
/// Through the host's bus, after the protocol: fourth generation, or third.
const PCIE_RATE: u64 = 24_000_000_000;
const PCIE_FIRST_RATE: u64 = 12_000_000_000;

/// How two devices are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joined {
    /// By a link of their own.
    Pair,
    /// Through a switch of the vendor's.
    Switch,
    /// Through the host's bus.
    Bus,
}

fn joined(bits: u64) -> Joined {
    if bits & (HCCS | SIO) != 0 {
        Joined::Pair
    } else if bits & HCCS_SWITCHED != 0 {
        Joined::Switch
    } else {
        Joined::Bus
    }
}

/// The links of all pairs that can access each other. `rate` is a vendor link's, 0 for the model's.
/// And whether they are guessed, as this runtime tells of none.
pub(crate) fn links(api: &Api, devices: &[Facts], rate: u64) -> (Vec<LinkInfo>, bool) {
    let mut links = Vec::new();
    for (from, a) in devices.iter().enumerate() {
        links.push(local_link(&a.info, LOCAL_LATENCY));
        for b in devices {
            if a.device != b.device && can_access(api, a.device, b.device) {
                let how = ask(api, a.device, b.device);
                links.push(link(
                    a,
                    b,
                    how.unwrap_or(Joined::Bus),
                    from as u32 + 1,
                    rate,
                ));
            }
        }
    }
    (links, api.topology.is_none())
}

fn ask(api: &Api, from: i32, to: i32) -> Option<Joined> {
    let ask = api.topology?;
    let mut bits = 0;
    // SAFETY: writes a number.
    let code = unsafe { ask(from.unsigned_abs(), to.unsigned_abs(), &raw mut bits) };
    (code == 0).then(|| joined(bits))
}

fn link(a: &Facts, b: &Facts, how: Joined, sender: u32, rate: u64) -> LinkInfo {
    let first = is_first_generation(&a.model);
    let (own, bus) = if first {
        (HCCS_FIRST_RATE, PCIE_FIRST_RATE)
    } else {
        (HCCS_RATE, PCIE_RATE)
    };
    let own = if rate == 0 { own } else { rate };
    let (from, to) = (a.info.id, b.info.id);
    match how {
        Joined::Pair => mapped_link((from, to), "hccs", own, HCCS_LATENCY),
        // What leaves a device for all others shares its way out.
        Joined::Switch => LinkInfo {
            shared: sender,
            ..mapped_link((from, to), "hccs", own, HCCS_LATENCY)
        },
        Joined::Bus => LinkInfo {
            shared: sender,
            ..mapped_link((from, to), "pcie", bus, PCIE_LATENCY)
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_way_counts() {
        assert_eq!(joined(0x1), Joined::Pair);
        assert_eq!(joined(0x1 | 0x10), Joined::Pair);
        assert_eq!(joined(0x20), Joined::Pair);
        assert_eq!(joined(0x40 | 0x8), Joined::Switch);
        for bus in [0, 0x2, 0x4, 0x8, 0x10] {
            assert_eq!(joined(bus), Joined::Bus);
        }
    }
}
