//! The addresses of a port. On Ethernet they are IP addresses, each there once for each version of
//! RoCE.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A global identifier: 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Gid(pub(crate) [u8; 16]);

/// What an entry of a port's table is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GidType {
    /// InfiniBand, or RoCE version 1 on Ethernet, which no router forwards.
    First,
    /// RoCE version 2: UDP.
    RoceV2,
}

/// One entry of a port's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GidEntry {
    pub(crate) index: u8,
    pub(crate) gid: Gid,
    pub(crate) gid_type: GidType,
    /// The network interface that it belongs to, on Ethernet.
    pub(crate) interface: String,
}

impl Gid {
    pub(crate) fn is_zero(self) -> bool {
        self.0 == [0; 16]
    }

    /// The IP address that it stands for, on Ethernet.
    pub(crate) fn ip(self) -> IpAddr {
        let v6 = Ipv6Addr::from(self.0);
        v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4)
    }

    pub(crate) fn is_ipv4(self) -> bool {
        self.ip().is_ipv4()
    }

    /// Good on one link only: it says nothing of which.
    pub(crate) fn is_link_local(self) -> bool {
        match self.ip() {
            IpAddr::V4(v4) => v4.is_link_local(),
            IpAddr::V6(v6) => v6.is_unicast_link_local(),
        }
    }
}

impl From<IpAddr> for Gid {
    fn from(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(v4) => Self(v4.to_ipv6_mapped().octets()),
            IpAddr::V6(v6) => Self(v6.octets()),
        }
    }
}

impl From<Ipv4Addr> for Gid {
    fn from(ip: Ipv4Addr) -> Self {
        IpAddr::V4(ip).into()
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ip().fmt(f)
    }
}

/// As sysfs writes it: "fe80:0000:0000:0000:0202:c9ff:fe07:2f3c".
impl FromStr for Gid {
    type Err = std::net::AddrParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.trim().parse::<Ipv6Addr>().map(|ip| Self(ip.octets()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_sysfs_writes_them() {
        let mapped: Gid = "0000:0000:0000:0000:0000:ffff:0a07:0001\n".parse().unwrap();
        assert_eq!(mapped.to_string(), "10.7.0.1");
        assert!(mapped.is_ipv4() && !mapped.is_link_local());
        assert_eq!(mapped, Gid::from(Ipv4Addr::new(10, 7, 0, 1)));
        let local: Gid = "fe80:0000:0000:0000:0202:c9ff:fe07:2f3c".parse().unwrap();
        assert!(!local.is_ipv4() && local.is_link_local());
        assert!("fe80".parse::<Gid>().is_err());
        assert!("".parse::<Gid>().is_err());
        assert!(Gid::default().is_zero());
    }
}
