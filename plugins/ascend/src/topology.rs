//! Links between devices: each pair's own, as the runtime tells of it.
#![allow(unsafe_code, reason = "calls the runtime")]

use unisono_plugin::LinkInfo;
use unisono_plugin_accelerator::{local_link, mapped_link};

use crate::api::Api;
use crate::facts::{Facts, can_access, is_first_generation};

/// Bits of a pair's topology: the vendor's own link, directly, inside a package, through a switch.
const BY_HCCS: u64 = 0x1;
const BY_SIO: u64 = 0x20;
const BY_SWITCH: u64 = 0x40;

/// What a small message takes: a write over the link, and the flag in host memory.
const HCCS_LATENCY: u64 = 3_000;
const PCIE_LATENCY: u64 = 5_000;
const LOCAL_LATENCY: u64 = 2_000;

/// What a link of a pair carries each way, in bytes a second. Of 28 GB/s by the data sheet (half of what counts both
/// ways) the project's notes have so much as measured on a 910B: see `vendor-docs/ascend.md`.
const HCCS: Rates = Rates {
    written: 19_300_000_000,
    read: 25_700_000_000,
};
/// After the data sheets, as nothing was measured: what leaves by a switch, and links of the first generation.
const HCCS_SWITCHED: Rates = Rates::one(28_000_000_000);
const HCCS_FIRST: Rates = Rates::one(15_000_000_000);
/// Through the host's bus, after the protocol: fourth generation, or third.
const PCIE_RATE: u64 = 24_000_000_000;
const PCIE_FIRST_RATE: u64 = 12_000_000_000;

/// What a link carries each way, in bytes a second; 0 if it is not known, or reads are no faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rates {
    /// Where the sender writes.
    pub(crate) written: u64,
    /// Where the receiver reads.
    pub(crate) read: u64,
}

impl Rates {
    /// The same whoever moves the bytes.
    const fn one(rate: u64) -> Self {
        Self {
            written: rate,
            read: 0,
        }
    }

    /// What was given, or else what is known.
    fn or(self, known: Self) -> Self {
        match self {
            Self {
                written: 0,
                read: 0,
            } => known,
            Self { written: 0, read } => Self { read, ..known },
            given => given,
        }
    }
}

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
    if bits & (BY_HCCS | BY_SIO) != 0 {
        Joined::Pair
    } else if bits & BY_SWITCH != 0 {
        Joined::Switch
    } else {
        Joined::Bus
    }
}

/// The links of all pairs that can access each other; `given` are a vendor link's rates, where they were. And
/// whether they are guessed, as this runtime tells of none.
pub(crate) fn links(api: &Api, devices: &[Facts], given: Rates) -> (Vec<LinkInfo>, bool) {
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
                    given,
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

fn link(a: &Facts, b: &Facts, how: Joined, sender: u32, given: Rates) -> LinkInfo {
    let first = is_first_generation(&a.model);
    let known = match how {
        _ if first => HCCS_FIRST,
        Joined::Switch => HCCS_SWITCHED,
        Joined::Pair | Joined::Bus => HCCS,
    };
    let rates = given.or(known);
    let own = |to| LinkInfo {
        // What is no faster is not said.
        read_bytes_per_second: Some(rates.read)
            .filter(|read| *read > rates.written)
            .unwrap_or(0),
        ..mapped_link(to, "hccs", rates.written, HCCS_LATENCY)
    };
    let bus = if first { PCIE_FIRST_RATE } else { PCIE_RATE };
    let (from, to) = (a.info.id, b.info.id);
    match how {
        Joined::Pair => own((from, to)),
        // What leaves a device for all others shares its way out.
        Joined::Switch => LinkInfo {
            shared: sender,
            ..own((from, to))
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
    fn what_is_given_stands_before_what_is_known() {
        let rates = |written, read| Rates { written, read };
        assert_eq!(rates(0, 0).or(HCCS), HCCS);
        assert_eq!(rates(9, 0).or(HCCS), rates(9, 0));
        assert_eq!(rates(0, 30).or(HCCS), rates(HCCS.written, 30));
        assert_eq!(rates(9, 10).or(HCCS), rates(9, 10));
    }

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
