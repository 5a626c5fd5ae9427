//! The ports of a device, as sysfs shows them.

use std::path::Path;
use std::str::FromStr;

use super::gid::{Gid, GidEntry, GidType};

/// Entries of a port's table that are looked at: tables are long, and mostly empty.
const GIDS_MAX: u8 = 128;
/// Ports of a device that are looked at.
const PORTS_MAX: u8 = 16;

/// What a port's packets look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkLayer {
    InfiniBand,
    Ethernet,
}

/// A port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PortFacts {
    pub(crate) device: String,
    pub(crate) port: u8,
    pub(crate) link_layer: LinkLayer,
    pub(crate) active: bool,
    pub(crate) bytes_per_second: u64,
    pub(crate) numa: Option<u32>,
    pub(crate) gids: Vec<GidEntry>,
}

impl PortFacts {
    /// "mlx5_0", or "mlx5_0:2" for another port than the first.
    pub(crate) fn name(&self) -> String {
        match self.port {
            1 => self.device.clone(),
            port => format!("{}:{port}", self.device),
        }
    }
}

/// The ports of the device whose folder in sysfs this is.
pub(crate) fn read_ports(device: &str, folder: &Path) -> Vec<PortFacts> {
    let numa: Option<i32> = read(&folder.join("device/numa_node"));
    (1..=PORTS_MAX)
        .filter_map(|port| {
            let at = folder.join("ports").join(port.to_string());
            let link_layer = match text(&at.join("link_layer"))?.as_str() {
                "InfiniBand" => LinkLayer::InfiniBand,
                "Ethernet" => LinkLayer::Ethernet,
                _ => return None,
            };
            Some(PortFacts {
                device: device.to_owned(),
                port,
                link_layer,
                active: text(&at.join("state")).is_some_and(|s| s.ends_with("ACTIVE")),
                bytes_per_second: text(&at.join("rate")).and_then(|s| rate(&s)).unwrap_or(0),
                numa: numa.and_then(|node| u32::try_from(node).ok()),
                gids: gids(&at),
            })
        })
        .collect()
}

fn gids(port: &Path) -> Vec<GidEntry> {
    (0..GIDS_MAX)
        .filter_map(|index| {
            let entry = |kind: &str| text(&port.join(kind).join(index.to_string()));
            let gid: Gid = entry("gids")?.parse().ok()?;
            if gid.is_zero() {
                return None;
            }
            let gid_type = match entry("gid_attrs/types").as_deref() {
                Some("RoCE v2") => GidType::RoceV2,
                _ => GidType::First,
            };
            Some(GidEntry {
                index,
                gid,
                gid_type,
                interface: entry("gid_attrs/ndevs").unwrap_or_default(),
            })
        })
        .collect()
}

/// "100 Gb/sec (4X EDR)", "2.5 Gb/sec (1X SDR)": bytes per second.
fn rate(text: &str) -> Option<u64> {
    let (number, _) = text.split_once(" Gb/sec")?;
    let (whole, tenths) = number.split_once('.').unwrap_or((number, "0"));
    let whole: u64 = whole.parse().ok()?;
    let tenths: u64 = tenths.get(..1)?.parse().ok()?;
    (whole * 10 + tenths).checked_mul(100_000_000 / 8)
}

fn text(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

fn read<T: FromStr>(path: &Path) -> Option<T> {
    text(path)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn rates_are_bytes_a_second() {
        assert_eq!(rate("100 Gb/sec (4X EDR)"), Some(12_500_000_000));
        assert_eq!(rate("2.5 Gb/sec (1X SDR)"), Some(312_500_000));
        assert_eq!(rate("800 Gb/sec (4X XDR)"), Some(100_000_000_000));
        for bad in [
            "",
            "fast",
            " Gb/sec",
            "1. Gb/sec",
            "99999999999999999999 Gb/sec",
        ] {
            assert_eq!(rate(bad), None, "{bad}");
        }
    }

    #[test]
    fn ports_are_read_with_their_addresses_and_gaps_are_left_out() {
        let root = tempfile::tempdir().unwrap();
        let at = root.path();
        write(at, "device/numa_node", "1\n");
        write(at, "ports/1/link_layer", "Ethernet\n");
        write(at, "ports/1/state", "4: ACTIVE\n");
        write(at, "ports/1/rate", "25 Gb/sec (1X EDR)\n");
        write(
            at,
            "ports/1/gids/0",
            "fe80:0000:0000:0000:0000:0000:0000:0001\n",
        );
        write(
            at,
            "ports/1/gids/1",
            "0000:0000:0000:0000:0000:0000:0000:0000\n",
        );
        write(
            at,
            "ports/1/gids/3",
            "0000:0000:0000:0000:0000:ffff:0a07:0001\n",
        );
        write(at, "ports/1/gid_attrs/types/0", "IB/RoCE v1\n");
        write(at, "ports/1/gid_attrs/types/3", "RoCE v2\n");
        write(at, "ports/1/gid_attrs/ndevs/3", "eth0\n");
        write(at, "ports/2/link_layer", "InfiniBand\n");
        write(at, "ports/2/state", "1: DOWN\n");
        let ports = read_ports("mlx5_3", at);
        assert_eq!(ports.len(), 2);
        let first = &ports[0];
        assert_eq!((first.name().as_str(), first.numa), ("mlx5_3", Some(1)));
        assert_eq!(first.bytes_per_second, 3_125_000_000);
        assert!(first.active);
        let found: Vec<_> = first
            .gids
            .iter()
            .map(|g| (g.index, g.gid_type, g.interface.as_str()))
            .collect();
        assert_eq!(
            found,
            [(0, GidType::First, ""), (3, GidType::RoceV2, "eth0")]
        );
        let second = &ports[1];
        assert_eq!(second.name(), "mlx5_3:2");
        assert_eq!(second.link_layer, LinkLayer::InfiniBand);
        assert!(!second.active && second.gids.is_empty());
        assert!(read_ports("none", &at.join("nowhere")).is_empty());
    }
}
