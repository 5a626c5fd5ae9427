//! Network interfaces.

use std::path::Path;

use super::{NicReport, names, number, text};
use crate::NicClass;

/// `ARPHRD_LOOPBACK`: what `type` says of the loopback interface.
const LOOPBACK: u32 = 772;
/// One Mbit/s, the unit of `speed`, in bytes a second.
const MEGABIT: u64 = 125_000;

pub(super) fn nics(root: &Path) -> Vec<NicReport> {
    let folder = root.join("sys/class/net");
    let is_interface = |name: &String| folder.join(name).join("type").exists();
    names(&folder)
        .into_iter()
        .filter(is_interface)
        .map(|name| nic(&folder, name))
        .collect()
}

fn nic(folder: &Path, name: String) -> NicReport {
    let folder = folder.join(&name);
    let class = if number(&folder.join("type")) == Some(LOOPBACK) {
        NicClass::Loopback
    } else if folder.join("device").exists() {
        NicClass::Physical
    } else {
        NicClass::Virtual
    };
    // An interface that is down, or that does not know its speed, refuses the read or says -1 or 0;
    // some drivers say 2^32-1.
    let speed: Option<u64> =
        number(&folder.join("speed")).filter(|&mbit| mbit > 0 && mbit < u64::from(u32::MAX));
    // Some drivers, and loopback, never leave "unknown": then the carrier says it.
    let state = text(&folder.join("operstate"));
    let up = match state.as_deref() {
        Some("up") => true,
        Some("unknown") | None => number::<u8>(&folder.join("carrier")) == Some(1),
        Some(_) => false,
    };
    NicReport {
        name,
        class,
        bytes_per_second: speed.map(|mbit| mbit * MEGABIT),
        numa: number(&folder.join("device/numa_node")),
        up,
    }
}
