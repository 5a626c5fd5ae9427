//! What an instance tells its peers: where it can be reached, and by what name.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::filter::same_network;
use super::{Interface, Node};

/// Bytes of an encoded address, at most (the contract's `UNISONO_EXPORT_MAX`).
pub const ADDRESS_BYTES_MAX: usize = 256;
const VERSION: u8 = 1;
const HEAD: usize = 36;
const FLAG_ENCRYPT: u8 = 1;
const KIND_V4: u8 = 4;
const KIND_V6: u8 = 6;

/// Where an instance listens. Loopback addresses are in it too, but only a process of the same
/// [`Node`] uses them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The listener's port.
    pub port: u16,
    /// Whether its links are encrypted.
    pub encrypt: bool,
    /// Where the instance runs.
    pub node: Node,
    /// The instance's own random name: a dialer names it, so that whoever else listens at one of
    /// these addresses is not taken for it.
    pub instance: [u8; 16],
    /// Candidates, best first.
    pub ips: Vec<IpAddr>,
}

/// Bytes that are no address of this plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressError;

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an address of the tcp plugin: both ends must run the same plugin version")
    }
}

impl std::error::Error for AddressError {}

impl Address {
    /// As it is published; candidates that do not fit are left out, the last first.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(ADDRESS_BYTES_MAX);
        out.push(VERSION);
        out.push(u8::from(self.encrypt) * FLAG_ENCRYPT);
        out.extend(self.port.to_le_bytes());
        out.extend(self.node.bytes());
        out.extend(self.instance);
        for ip in &self.ips {
            let room = ADDRESS_BYTES_MAX - out.len();
            match ip {
                IpAddr::V4(v4) if room >= 5 => {
                    out.push(KIND_V4);
                    out.extend(v4.octets());
                }
                IpAddr::V6(v6) if room >= 17 => {
                    out.push(KIND_V6);
                    out.extend(v6.octets());
                }
                _ => {}
            }
        }
        out
    }

    /// Reads what a peer published.
    ///
    /// # Errors
    /// If it is something else.
    pub fn decode(bytes: &[u8]) -> Result<Self, AddressError> {
        if bytes.len() > ADDRESS_BYTES_MAX {
            return Err(AddressError);
        }
        let (head, mut rest) = bytes.split_first_chunk::<HEAD>().ok_or(AddressError)?;
        let [VERSION, flags @ 0..=FLAG_ENCRYPT, port0, port1, names @ ..] = head else {
            return Err(AddressError);
        };
        let (node, instance) = names.split_first_chunk::<16>().ok_or(AddressError)?;
        let mut ips = Vec::new();
        while let Some((kind, tail)) = rest.split_first() {
            let ip: IpAddr;
            (ip, rest) = match *kind {
                KIND_V4 => {
                    let (v4, tail) = tail.split_first_chunk::<4>().ok_or(AddressError)?;
                    (Ipv4Addr::from(*v4).into(), tail)
                }
                KIND_V6 => {
                    let (v6, tail) = tail.split_first_chunk::<16>().ok_or(AddressError)?;
                    (Ipv6Addr::from(*v6).into(), tail)
                }
                _ => return Err(AddressError),
            };
            ips.push(ip);
        }
        Ok(Self {
            port: u16::from_le_bytes([*port0, *port1]),
            encrypt: *flags & FLAG_ENCRYPT != 0,
            node: Node::from_bytes(*node),
            instance: instance.try_into().map_err(|_| AddressError)?,
            ips,
        })
    }

    /// Where to dial this address from here, in the order to try: loopback first on the same node
    /// and never on another; then what shares a network with us; IPv4 before IPv6. What leads back
    /// to this machine (both have a bridge of that address), or may, comes last: whoever listens
    /// there knows by the instance's name that it is not meant.
    ///
    /// And how many of them, the first, are rails: each by a card of ours of its own.
    pub fn targets(&self, node: Node, local: &[Interface]) -> (Vec<SocketAddr>, usize) {
        let same = self.node.is_same(node);
        let mut ips: Vec<IpAddr> = self.ips.clone();
        let unknown = node == Node::UNKNOWN || self.node == Node::UNKNOWN;
        ips.retain(|ip| same || unknown || !ip.is_loopback());
        let is_ours = |ip: &IpAddr| ip.is_loopback() || local.iter().any(|l| l.address == *ip);
        let near = |ip: &IpAddr| {
            let shared = |l: &&Interface| same_network(l.address, *ip, l.bits);
            local.iter().find(shared).map(|l| l.name.as_str())
        };
        ips.sort_by_key(|ip| {
            let ours = is_ours(ip) && !same;
            (ours, !ip.is_loopback(), near(ip).is_none(), ip.is_ipv6())
        });
        ips.dedup();
        let port = |ip| SocketAddr::new(ip, self.port);
        // Loopback leads to the same node whatever becomes of its cards.
        if ips.first().is_some_and(IpAddr::is_loopback) {
            return (ips.into_iter().map(port).collect(), 1);
        }
        let (mut rails, mut others, mut cards) = (Vec::new(), Vec::new(), Vec::new());
        for ip in ips {
            match near(&ip) {
                Some(card) if !is_ours(&ip) && !cards.contains(&card) => {
                    cards.push(card);
                    rails.push(ip);
                }
                _ => others.push(ip),
            }
        }
        let count = rails.len().max(1);
        rails.append(&mut others);
        (rails.into_iter().map(port).collect(), count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn address(ips: &[&str]) -> Address {
        Address {
            port: 4711,
            encrypt: true,
            node: Node::from_bytes([1; 16]),
            instance: [2; 16],
            ips: ips.iter().map(|t| ip(t)).collect(),
        }
    }

    fn local(address: &str) -> Interface {
        Interface {
            name: "eth0".to_owned(),
            address: ip(address),
            bits: 24,
            loopback: false,
        }
    }

    #[test]
    fn an_address_survives_the_wire() {
        let sent = address(&["10.0.0.1", "2001:db8::1", "127.0.0.1"]);
        assert_eq!(Address::decode(&sent.encode()), Ok(sent));
    }

    #[test]
    fn too_many_candidates_are_cut_not_refused() {
        let mut sent = address(&[]);
        sent.ips = (0..99u16)
            .map(|i| Ipv6Addr::from(u128::from(i)).into())
            .collect();
        let bytes = sent.encode();
        assert!(bytes.len() <= ADDRESS_BYTES_MAX);
        assert_eq!(Address::decode(&bytes).unwrap().ips, sent.ips[..12]);
    }

    #[test]
    fn loopback_is_first_at_home_and_never_abroad() {
        let theirs = address(&[
            "2001:db8::1",
            "172.17.0.1",
            "198.51.100.1",
            "192.0.2.9",
            "127.0.0.1",
        ]);
        let ours = [local("192.0.2.2"), local("172.17.0.1")];
        let order = |node| -> Vec<String> {
            theirs
                .targets(node, &ours)
                .0
                .iter()
                .map(|t| t.ip().to_string())
                .collect()
        };
        assert_eq!(
            order(Node::from_bytes([1; 16])),
            [
                "127.0.0.1",
                "172.17.0.1",
                "192.0.2.9",
                "198.51.100.1",
                "2001:db8::1"
            ]
        );
        assert_eq!(
            order(Node::from_bytes([9; 16])),
            ["192.0.2.9", "198.51.100.1", "2001:db8::1", "172.17.0.1"]
        );
        assert_eq!(
            order(Node::UNKNOWN)[3..],
            ["127.0.0.1", "172.17.0.1"],
            "where nothing is known of the node, all is tried"
        );
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), valid in any::<bool>()) {
            let mut bytes = bytes;
            if valid && bytes.len() >= 2 {
                bytes[..2].copy_from_slice(&[VERSION, 0]);
            }
            if let Ok(address) = Address::decode(&bytes) {
                prop_assert_eq!(address.encode(), bytes);
            }
        }
    }
}
