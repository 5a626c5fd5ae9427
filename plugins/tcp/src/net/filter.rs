//! Which interfaces to use: names and networks, taken or left out.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::Interface;

/// A list such as `eth*,10.0.0.0/8,!docker0`: names (a `*` at the end matches any rest) and
/// networks; with `!` before it, an entry leaves out. With no entry that takes, all are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    take: Vec<Entry>,
    leave: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Name(String),
    Prefix(String),
    Network(IpAddr, u8),
}

/// An entry that is neither a name nor a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError(String);

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is neither an interface's name nor a network such as 10.0.0.0/8",
            self.0
        )
    }
}

impl std::error::Error for FilterError {}

impl Filter {
    /// Whether an interface's address may be used.
    pub fn takes(&self, interface: &Interface) -> bool {
        (self.take.is_empty() || self.take.iter().any(|e| e.matches(interface)))
            && !self.leaves_out(interface)
    }

    /// Whether it names nothing: neither what to take nor what to leave out.
    pub fn takes_all(&self) -> bool {
        self.take.is_empty() && self.leave.is_empty()
    }

    /// Whether an entry with `!` names this interface's address.
    pub fn leaves_out(&self, interface: &Interface) -> bool {
        self.leave.iter().any(|e| e.matches(interface))
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let mut filter = Self::default();
        for entry in text.split(',').map(str::trim).filter(|e| !e.is_empty()) {
            match entry.strip_prefix('!') {
                Some(rest) => filter.leave.push(rest.trim().parse()?),
                None => filter.take.push(entry.parse()?),
            }
        }
        Ok(filter)
    }
}

impl FromStr for Entry {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let error = || FilterError(text.to_owned());
        if let Some((address, bits)) = text.split_once('/') {
            let address: IpAddr = address.parse().map_err(|_| error())?;
            let bits: u8 = bits.parse().map_err(|_| error())?;
            let most = if address.is_ipv4() { 32 } else { 128 };
            return (bits <= most)
                .then_some(Self::Network(address, bits))
                .ok_or_else(error);
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            let all = if address.is_ipv4() { 32 } else { 128 };
            return Ok(Self::Network(address, all));
        }
        let (stem, prefix) = match text.strip_suffix('*') {
            Some(stem) => (stem, true),
            None => (text, false),
        };
        // IFNAMSIZ is 16 with the terminator.
        let fits = stem.len() <= 15 && (prefix || !stem.is_empty());
        let sane = stem
            .chars()
            .all(|c| c.is_ascii_graphic() && c != '*' && c != '!');
        if !fits || !sane {
            return Err(error());
        }
        Ok(if prefix {
            Self::Prefix(stem.to_owned())
        } else {
            Self::Name(stem.to_owned())
        })
    }
}

impl Entry {
    fn matches(&self, interface: &Interface) -> bool {
        match self {
            Self::Name(name) => *name == interface.name,
            Self::Prefix(stem) => interface.name.starts_with(stem.as_str()),
            Self::Network(network, bits) => same_network(*network, interface.address, *bits),
        }
    }
}

/// Whether two addresses agree in their first `bits` bits.
pub(super) fn same_network(a: IpAddr, b: IpAddr, bits: u8) -> bool {
    let shift = |width: u32| width - u32::from(bits).min(width);
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            let differ = u32::from(a) ^ u32::from(b);
            differ.checked_shr(shift(32)).unwrap_or(0) == 0
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            let differ = u128::from(a) ^ u128::from(b);
            differ.checked_shr(shift(128)).unwrap_or(0) == 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn interface(name: &str, address: &str) -> Interface {
        Interface {
            name: name.to_owned(),
            address: address.parse().unwrap(),
            bits: 24,
            loopback: false,
        }
    }

    #[test]
    fn names_networks_and_exclusions() {
        let filter: Filter = "eth*, 10.0.0.0/8,!eth3,!10.9.0.0/16,!fe80::/10"
            .parse()
            .unwrap();
        for (name, address, taken) in [
            ("eth0", "192.0.2.2", true),
            ("eth3", "192.0.2.3", false),
            ("ib0", "10.1.2.3", true),
            ("ib0", "10.9.2.3", false),
            ("ib0", "11.1.2.3", false),
            ("eth0", "fe80::1", false),
        ] {
            assert_eq!(
                filter.takes(&interface(name, address)),
                taken,
                "{name} {address}"
            );
        }
        assert!(Filter::default().takes(&interface("any0", "1.2.3.4")));
        let only_without: Filter = "!docker0".parse().unwrap();
        assert!(only_without.takes(&interface("eth0", "1.2.3.4")));
        assert!(!only_without.takes(&interface("docker0", "1.2.3.4")));
    }

    #[test]
    fn what_is_neither_is_an_error() {
        for text in [
            "10.0.0.0/33",
            "10.0.0/8",
            "a name",
            "!",
            "averyveryverylongname",
            "e*h",
        ] {
            assert!(text.parse::<Filter>().is_err(), "{text}");
        }
        assert_eq!(
            "x/9".parse::<Filter>().unwrap_err().to_string(),
            "`x/9` is neither an interface's name nor a network such as 10.0.0.0/8"
        );
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = text.parse::<Filter>();
        }

        #[test]
        fn networks_compare_by_their_first_bits(a in any::<u32>(), b in any::<u32>(), bits in 0u8..=32) {
            let expected = (0..bits).all(|i| (a >> (31 - i)) & 1 == (b >> (31 - i)) & 1);
            prop_assert_eq!(same_network(IpAddr::V4(a.into()), IpAddr::V4(b.into()), bits), expected);
        }
    }
}
