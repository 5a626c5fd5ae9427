//! Which of its addresses a port uses towards which of a peer's.
//!
//! Both must be of one family. Of several pairs the one counts whose source the system's routes would
//! take, then the one that shares the longest prefix, then IPv4 before IPv6 before link-local.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::gid::{Gid, GidEntry, GidType};
use super::port::LinkLayer;

/// Address families that may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Family {
    #[default]
    Any,
    V4,
    V6,
}

/// What the user wants of a port's addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) family: Family,
    /// An entry of the table, whatever it is.
    pub(crate) index: Option<u8>,
}

/// One end's candidates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side<'a>(pub(crate) &'a [GidEntry]);

/// A family that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FamilyError(String);

impl fmt::Display for FamilyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not one of auto, ipv4, ipv6", self.0)
    }
}

impl FromStr for Family {
    type Err = FamilyError;

    fn from_str(text: &str) -> Result<Self, FamilyError> {
        match text {
            "" | "auto" => Ok(Self::Any),
            "ipv4" => Ok(Self::V4),
            "ipv6" => Ok(Self::V6),
            other => Err(FamilyError(other.to_owned())),
        }
    }
}

impl Wish {
    /// The entries that may be used: on Ethernet those of RoCE v2, on InfiniBand the first.
    pub(crate) fn candidates(&self, layer: LinkLayer, all: &[GidEntry]) -> Vec<GidEntry> {
        let fits = |entry: &&GidEntry| match (self.index, layer) {
            (Some(index), _) => entry.index == index,
            (None, LinkLayer::InfiniBand) => entry.index == 0,
            (None, LinkLayer::Ethernet) => {
                entry.gid_type == GidType::RoceV2
                    && match self.family {
                        Family::Any => true,
                        Family::V4 => entry.gid.is_ipv4(),
                        Family::V6 => !entry.gid.is_ipv4(),
                    }
            }
        };
        all.iter().filter(fits).cloned().collect()
    }
}

/// The best pair of entries: places in the two lists. `source` tells which address of this machine
/// the system would send from to reach one of the peer's.
pub(crate) fn choose(
    ours: Side<'_>,
    theirs: Side<'_>,
    source: impl Fn(IpAddr) -> Option<IpAddr>,
) -> Option<(usize, usize)> {
    let mut best = None;
    for (there, peer) in theirs.0.iter().enumerate() {
        let routed = source(peer.gid.ip());
        for (here, own) in ours.0.iter().enumerate() {
            if own.gid.is_ipv4() != peer.gid.is_ipv4() {
                continue;
            }
            let rank = (
                routed == Some(own.gid.ip()),
                common_bits(own.gid, peer.gid),
                own.gid.is_ipv4(),
                !own.gid.is_link_local() && !peer.gid.is_link_local(),
            );
            // Of equals the first: tables begin with what was there first.
            if best.as_ref().is_none_or(|(known, _)| rank > *known) {
                best = Some((rank, (here, there)));
            }
        }
    }
    best.map(|(_, pair)| pair)
}

/// Bits that two addresses of one family begin with in common. What is link-local shares its prefix
/// with every other, which says nothing.
fn common_bits(a: Gid, b: Gid) -> u32 {
    if a.is_link_local() || b.is_link_local() {
        return 0;
    }
    let [a, b] = [a, b].map(|gid| u128::from_be_bytes(gid.0));
    // The prefix of mapped IPv4 addresses is no merit.
    let mapped = if (a >> 32) == 0xffff { 96 } else { 0 };
    (a ^ b).leading_zeros().saturating_sub(mapped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(index: u8, ip: &str, gid_type: GidType) -> GidEntry {
        GidEntry {
            index,
            gid: ip.parse::<IpAddr>().unwrap().into(),
            gid_type,
            interface: String::new(),
        }
    }

    fn v2(index: u8, ip: &str) -> GidEntry {
        entry(index, ip, GidType::RoceV2)
    }

    fn table() -> Vec<GidEntry> {
        vec![
            entry(0, "fe80::1", GidType::First),
            v2(1, "fe80::1"),
            entry(2, "10.7.0.1", GidType::First),
            v2(3, "10.7.0.1"),
            v2(5, "2001:db8::1"),
        ]
    }

    #[test]
    fn candidates_follow_version_family_and_override() {
        let indices = |wish: Wish, layer| -> Vec<u8> {
            wish.candidates(layer, &table())
                .iter()
                .map(|e| e.index)
                .collect()
        };
        let of = |family| Wish {
            family,
            index: None,
        };
        assert_eq!(indices(of(Family::Any), LinkLayer::Ethernet), [1, 3, 5]);
        assert_eq!(indices(of(Family::V4), LinkLayer::Ethernet), [3]);
        assert_eq!(indices(of(Family::V6), LinkLayer::Ethernet), [1, 5]);
        let forced = Wish {
            index: Some(2),
            ..of(Family::V6)
        };
        assert_eq!(indices(forced, LinkLayer::Ethernet), [2]);
        assert_eq!(indices(of(Family::V4), LinkLayer::InfiniBand), [0]);
        assert!("ipx".parse::<Family>().is_err());
    }

    #[test]
    fn the_route_counts_first_then_the_prefix_then_the_family() {
        let ours = [v2(1, "fe80::1"), v2(3, "10.7.0.1"), v2(5, "192.168.9.1")];
        let theirs = [v2(1, "fe80::2"), v2(2, "192.168.9.2"), v2(4, "10.7.0.2")];
        let no_route = |_| None;
        let pick =
            |ours: &[GidEntry], theirs: &[GidEntry], source: &dyn Fn(IpAddr) -> Option<IpAddr>| {
                choose(Side(ours), Side(theirs), source)
                    .map(|(a, b)| (ours[a].gid.to_string(), theirs[b].gid.to_string()))
            };
        let text = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
        // 10.7.0.1 and .2 share 30 bits, 192.168.9.1 and .2 as well: the first in the table.
        assert_eq!(
            pick(&ours, &theirs, &no_route),
            text("192.168.9.1", "192.168.9.2")
        );
        let route =
            |to: IpAddr| (to.to_string() == "10.7.0.2").then(|| "10.7.0.1".parse().unwrap());
        assert_eq!(pick(&ours, &theirs, &route), text("10.7.0.1", "10.7.0.2"));
        // Only link-local in common.
        assert_eq!(
            pick(&ours[..1], &theirs, &no_route),
            text("fe80::1", "fe80::2")
        );
        // A global IPv6 pair shares more than an IPv4 pair of other networks.
        let six = [v2(0, "2001:db8::1"), v2(1, "10.0.0.1")];
        let peer = [v2(0, "192.0.2.1"), v2(1, "2001:db8::2")];
        assert_eq!(
            pick(&six, &peer, &no_route),
            text("2001:db8::1", "2001:db8::2")
        );
        assert_eq!(pick(&six[..1], &peer[..1], &no_route), None);
        assert_eq!(pick(&[], &peer, &no_route), None);
    }
}
