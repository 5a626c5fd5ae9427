//! Links between devices: xGMI as the management library or the runtime tells it, else PCIe.
#![allow(unsafe_code, reason = "asks the runtime for the kind of a link")]

use unisono_plugin::{DeviceId, LinkInfo};
use unisono_plugin_accelerator::{local_link, mapped_link};

use crate::api::{Api, SUCCESS};
use crate::facts::{Facts, can_access};
use crate::management::{Management, Xgmi};

/// The runtime's number of the vendor's own links (`HSA_AMD_LINK_INFO_TYPE_XGMI`).
const RUNTIME_XGMI: u32 = 4;
/// What one link carries each way where nobody says: the slowest that there is.
const ONE_LINK: u64 = 50_000_000_000;
/// What a slot of PCIe 4 with 16 lanes carries each way, after the protocol.
const SLOT: u64 = 24_000_000_000;
/// What a small message takes: a write over the link, and the flag in host memory.
const HOP_LATENCY: u64 = 500;
const XGMI_LATENCY: u64 = 2_000;
const PCIE_LATENCY: u64 = 3_000;
const LOCAL_LATENCY: u64 = 1_500;

/// The links of all pairs that can access each other; and why their rates are guessed, if they are.
pub(crate) fn links(api: &Api, devices: &[Facts], ask: bool) -> (Vec<LinkInfo>, Option<String>) {
    let (management, mut why) = match ask.then(Management::open) {
        Some(Ok(management)) => (Some(management), None),
        Some(Err(error)) => (None, Some(error.to_string())),
        None => (None, None),
    };
    let mut links = Vec::new();
    for a in devices {
        links.push(local_link(&a.info, LOCAL_LATENCY));
        for b in devices {
            if a.device == b.device || !can_access(api, a.device, b.device) {
                continue;
            }
            let told = management
                .as_ref()
                .map(|management| management.between(&a.info.pci, &b.info.pci));
            let way = match told {
                Some(Ok(way)) => way,
                Some(Err(error)) => {
                    why.get_or_insert_with(|| error.to_string());
                    by_runtime(api, a, b)
                }
                None => by_runtime(api, a, b),
            };
            links.push(link((a.device, a.info.id), b.info.id, way));
        }
    }
    (links, why)
}

/// What the runtime knows of the way between two devices.
fn by_runtime(api: &Api, a: &Facts, b: &Facts) -> Option<Xgmi> {
    let (mut kind, mut hops) = (0, 0);
    // SAFETY: writes numbers.
    let code = unsafe { (api.link_type)(a.device, b.device, &raw mut kind, &raw mut hops) };
    (code == SUCCESS && kind == RUNTIME_XGMI).then_some(Xgmi {
        hops: hops.max(1),
        bytes_per_second: 0,
    })
}

/// A pair. A way of several hops passes others' links, so all such ways of a device count as one.
fn link((device, a): (i32, DeviceId), b: DeviceId, way: Option<Xgmi>) -> LinkInfo {
    let shared = device.unsigned_abs() + 1;
    match way {
        Some(Xgmi {
            hops: 0 | 1,
            bytes_per_second,
        }) => {
            let known = bytes_per_second > 0;
            let rate = if known { bytes_per_second } else { ONE_LINK };
            mapped_link((a, b), "xgmi", rate, XGMI_LATENCY)
        }
        Some(Xgmi { hops, .. }) => {
            let latency = XGMI_LATENCY + HOP_LATENCY * u64::from(hops - 1);
            LinkInfo {
                shared,
                ..mapped_link((a, b), "xgmi", ONE_LINK / u64::from(hops), latency)
            }
        }
        None => LinkInfo {
            shared,
            ..mapped_link((a, b), "pcie", SLOT, PCIE_LATENCY)
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(way: Option<Xgmi>) -> LinkInfo {
        link((2, DeviceId([1; 16])), DeviceId([2; 16]), way)
    }

    fn xgmi(hops: u32, bytes_per_second: u64) -> Option<Xgmi> {
        Some(Xgmi {
            hops,
            bytes_per_second,
        })
    }

    #[test]
    fn one_hop_is_a_link_of_its_own_with_the_rate_that_is_told() {
        let found = of(xgmi(1, 200_000_000_000));
        assert_eq!((found.bytes_per_second, found.shared), (200_000_000_000, 0));
        assert_eq!(of(xgmi(1, 0)).bytes_per_second, ONE_LINK);
        assert_eq!(found.kind, "xgmi");
    }

    #[test]
    fn several_hops_share_and_are_slower() {
        let found = of(xgmi(2, 0));
        assert_eq!((found.bytes_per_second, found.shared), (ONE_LINK / 2, 3));
        assert!(found.latency_ns > of(xgmi(1, 0)).latency_ns);
    }

    #[test]
    fn without_links_it_is_pcie() {
        assert_eq!(of(None).kind, "pcie");
        assert_eq!(of(None).shared, 3);
    }
}
