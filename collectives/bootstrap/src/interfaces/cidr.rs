//! A range of addresses, `10.0.0.0/8` or `fd00::/8`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::error::BootstrapError;

/// All addresses that share the first `bits` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    bits: u8,
}

impl Cidr {
    /// Whether `address` lies in the range. One family never lies in a range of the other.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                same_prefix(a.to_bits().into(), b.to_bits().into(), 32, self.bits)
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => same_prefix(a.to_bits(), b.to_bits(), 128, self.bits),
            _ => false,
        }
    }
}

fn same_prefix(a: u128, b: u128, width: u32, bits: u8) -> bool {
    let differing = a ^ b;
    bits == 0 || differing >> (width - u32::from(bits)) == 0
}

impl FromStr for Cidr {
    type Err = BootstrapError;

    fn from_str(text: &str) -> Result<Cidr, BootstrapError> {
        let bad = |why: &str| BootstrapError::BadOption {
            option: "interfaces",
            why: format!("{text:?}: {why}"),
        };
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| bad("not an address"))?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => width,
            Some(bits) => bits
                .parse()
                .ok()
                .filter(|&bits| bits <= width)
                .ok_or_else(|| bad("prefix out of range"))?,
        };
        Ok(Cidr { address, bits })
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_compared_by_bit() {
        let contains = |range: &str, address: &str| {
            range
                .parse::<Cidr>()
                .unwrap()
                .contains(address.parse().unwrap())
        };
        assert!(contains("10.0.0.0/9", "10.127.255.255") && !contains("10.0.0.0/9", "10.128.0.0"));
        assert!(contains("0.0.0.0/0", "255.1.1.1") && !contains("0.0.0.0/0", "::1"));
        assert!(
            contains("::/0", "fd00::1")
                && contains("fd00::/8", "fdff::1")
                && !contains("fd00::/8", "fe00::1")
        );
        assert!(contains("10.1.1.1", "10.1.1.1") && !contains("10.1.1.1/32", "10.1.1.0"));
        for bad in [
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "10.0.0.0/",
            "10.0.0.0/-1",
            "/8",
        ] {
            assert!(bad.parse::<Cidr>().is_err(), "{bad}");
        }
    }
}
