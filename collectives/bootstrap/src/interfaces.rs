//! Which of this machine's addresses the other ranks are offered.

mod cidr;
mod sys;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

pub use cidr::Cidr;

use crate::error::{BootstrapError, Result};

/// One address of one interface that is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The interface's name.
    pub interface: String,
    /// The address.
    pub address: IpAddr,
}

/// What an include or exclude list names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterfacePattern {
    /// Interfaces whose name begins so.
    NamePrefix(String),
    /// Addresses in this range.
    Range(Cidr),
}

impl std::str::FromStr for InterfacePattern {
    type Err = BootstrapError;

    /// `eth0` or `10.0.0.0/8`.
    fn from_str(text: &str) -> Result<InterfacePattern> {
        let text = text.trim();
        if text.contains(['/', ':']) || text.parse::<IpAddr>().is_ok() {
            return text.parse().map(InterfacePattern::Range);
        }
        if text.is_empty() || text.len() > 15 || text.contains(char::is_whitespace) {
            let why =
                format!("{text:?} is neither an interface's name nor a range like 10.0.0.0/8");
            return Err(BootstrapError::BadOption {
                option: "interfaces",
                why,
            });
        }
        Ok(InterfacePattern::NamePrefix(text.to_owned()))
    }
}

/// As plugins' `interfaces` parameters want it: `eth*`, `10.0.0.0/8`.
impl fmt::Display for InterfacePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InterfacePattern::NamePrefix(prefix) => write!(f, "{prefix}*"),
            InterfacePattern::Range(range) => range.fmt(f),
        }
    }
}

impl InterfacePattern {
    fn matches(&self, candidate: &Candidate) -> bool {
        match self {
            InterfacePattern::NamePrefix(prefix) => {
                candidate.interface.starts_with(prefix.as_str())
            }
            InterfacePattern::Range(range) => range.contains(candidate.address),
        }
    }
}

/// Which interfaces may be used. The default takes all that are up, but loopback only where there is no other and
/// bridges of containers (`docker`, `virbr`, `veth`) not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceFilter {
    /// Only these, if there are any; loopback is taken if it is named here.
    pub include: Vec<InterfacePattern>,
    /// Never these.
    pub exclude: Vec<InterfacePattern>,
}

/// As plugins' `interfaces` parameters want it: entries separated by commas, `!` before those to leave out.
impl fmt::Display for InterfaceFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = (self.include.iter().map(|entry| ("", entry)))
            .chain(self.exclude.iter().map(|entry| ("!", entry)));
        for (number, (sign, entry)) in entries.enumerate() {
            let comma = if number > 0 { "," } else { "" };
            write!(f, "{comma}{sign}{entry}")?;
        }
        Ok(())
    }
}

impl InterfaceFilter {
    /// Loopback alone: for a job that never leaves this machine.
    pub fn loopback() -> InterfaceFilter {
        InterfaceFilter {
            include: vec![InterfacePattern::NamePrefix("lo".to_owned())],
            exclude: Vec::new(),
        }
    }

    /// The addresses of this machine that pass, best first: global IPv4, then global IPv6.
    ///
    /// # Errors
    /// If the filter leaves none although it names some to include, or the system does not list them.
    pub fn candidates(&self) -> Result<Vec<Candidate>> {
        let all = sys::addresses()?;
        let chosen = self.choose(&all);
        if chosen.is_empty() && !(self.include.is_empty() && self.exclude.is_empty()) {
            let have: Vec<String> = all
                .iter()
                .map(|c| format!("{} {}", c.interface, c.address))
                .collect();
            let why = format!(
                "no address of this machine passes; it has: {}",
                have.join(", ")
            );
            return Err(BootstrapError::BadOption {
                option: "interfaces",
                why,
            });
        }
        if chosen.is_empty() {
            let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
            return Ok(vec![Candidate {
                interface: "lo".to_owned(),
                address,
            }]);
        }
        Ok(chosen)
    }

    /// The pure half of [`InterfaceFilter::candidates`].
    pub(crate) fn choose(&self, all: &[Candidate]) -> Vec<Candidate> {
        const BRIDGES: [&str; 4] = ["docker", "virbr", "veth", "br-"];
        let any = |list: &[InterfacePattern], candidate: &Candidate| {
            list.iter().any(|p| p.matches(candidate))
        };
        let mut chosen: Vec<Candidate> = all
            .iter()
            .filter(|c| !is_link_local(c.address) && !any(&self.exclude, c))
            .filter(|c| match self.include.is_empty() {
                true => {
                    !c.address.is_loopback()
                        && !BRIDGES.iter().any(|bridge| c.interface.starts_with(bridge))
                }
                false => any(&self.include, c),
            })
            .cloned()
            .collect();
        chosen.sort_by_key(|candidate| {
            (candidate.address.is_loopback(), candidate.address.is_ipv6())
        });
        chosen.dedup();
        chosen
    }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Vec<Candidate> {
        [
            ("lo", "127.0.0.1"),
            ("lo", "::1"),
            ("eth0", "fd00::2"),
            ("eth0", "10.0.0.5"),
            ("eth0", "fe80::1"),
            ("docker0", "172.17.0.1"),
            ("ib0", "192.168.9.1"),
        ]
        .map(|(name, address)| Candidate {
            interface: name.to_owned(),
            address: address.parse().unwrap(),
        })
        .to_vec()
    }

    fn choose(include: &[&str], exclude: &[&str]) -> Vec<String> {
        let parse = |list: &[&str]| list.iter().map(|text| text.parse().unwrap()).collect();
        let filter = InterfaceFilter {
            include: parse(include),
            exclude: parse(exclude),
        };
        filter
            .choose(&machine())
            .iter()
            .map(|c| c.address.to_string())
            .collect()
    }

    #[test]
    fn names_and_ranges_choose() {
        assert_eq!(choose(&[], &[]), ["10.0.0.5", "192.168.9.1", "fd00::2"]);
        assert_eq!(choose(&["ib"], &[]), ["192.168.9.1"]);
        assert_eq!(
            choose(&["10.0.0.0/8", "lo"], &[]),
            ["10.0.0.5", "127.0.0.1", "::1"]
        );
        assert_eq!(choose(&[], &["192.168.0.0/16", "fd00::/8"]), ["10.0.0.5"]);
        assert_eq!(choose(&["docker0"], &[]), ["172.17.0.1"]);
    }

    #[test]
    fn as_a_plugin_s_parameter() {
        assert_eq!(InterfaceFilter::default().to_string(), "");
        assert_eq!(InterfaceFilter::loopback().to_string(), "lo*");
        let filter = InterfaceFilter {
            include: vec!["eth".parse().unwrap(), "10.0.0.0/8".parse().unwrap()],
            exclude: vec!["eth1".parse().unwrap()],
        };
        assert_eq!(filter.to_string(), "eth*,10.0.0.0/8,!eth1*");
    }

    #[test]
    fn bad_patterns_and_empty_choices_are_errors() {
        assert!("".parse::<InterfacePattern>().is_err());
        assert!("10.0.0.0/33".parse::<InterfacePattern>().is_err());
        let none = InterfaceFilter {
            include: vec!["nosuch0".parse().unwrap()],
            exclude: Vec::new(),
        };
        let error = none.candidates().unwrap_err().to_string();
        assert!(
            error.contains("127.0.0.1"),
            "the error lists what there is: {error}"
        );
    }

    #[test]
    fn this_machine_has_loopback() {
        assert!(
            InterfaceFilter::loopback()
                .candidates()
                .unwrap()
                .iter()
                .all(|c| c.address.is_loopback())
        );
        assert!(!InterfaceFilter::default().candidates().unwrap().is_empty());
    }
}
