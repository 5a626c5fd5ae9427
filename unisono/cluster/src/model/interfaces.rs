//! Which network interfaces may be used.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which network interfaces may be used. Without any: all that are up, except loopback and the
/// bridges of containers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Interfaces {
    /// Only these, if there are any: the beginning of an interface's name, or a range of addresses.
    pub include: Vec<InterfacePattern>,
    /// Never these.
    pub exclude: Vec<InterfacePattern>,
}

/// The beginning of an interface's name (`eth`, `enp3s0`), or a range of addresses (`10.0.0.0/8`,
/// `fd00::/8`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum InterfacePattern {
    /// Interfaces whose name begins so.
    Name(String),
    /// Addresses whose first `prefix` bits are those of `address`.
    Range {
        /// The range's first address: all bits after the prefix are zero.
        address: IpAddr,
        /// How many bits count.
        prefix: u8,
    },
}

/// A text that names neither interfaces nor addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` {why}")]
pub struct InterfacePatternError {
    text: String,
    why: String,
}

/// The longest name that Linux gives an interface.
const MAX_NAME: usize = 15;

impl FromStr for InterfacePattern {
    type Err = InterfacePatternError;

    fn from_str(text: &str) -> Result<InterfacePattern, InterfacePatternError> {
        let error = |why: String| InterfacePatternError {
            text: text.escape_debug().to_string(),
            why,
        };
        if let Ok(address) = text.parse::<IpAddr>() {
            let prefix = bits(address);
            return Ok(InterfacePattern::Range { address, prefix });
        }
        if let Some((address, prefix)) = text.split_once('/') {
            let address: IpAddr = address.parse().map_err(|_| {
                error("does not begin with an address; write a range like 10.0.0.0/8".to_owned())
            })?;
            let prefix: u8 = prefix
                .parse()
                .ok()
                .filter(|prefix| *prefix <= bits(address))
                .ok_or_else(|| {
                    error(format!("has no prefix length from 0 to {}", bits(address)))
                })?;
            let first = first_address(address, prefix);
            if first != address {
                return Err(error(format!(
                    "has bits set after its prefix; write {first}/{prefix} for the range or {address} for the one address"
                )));
            }
            return Ok(InterfacePattern::Range { address, prefix });
        }
        let plain = |c: char| !c.is_whitespace() && !c.is_control();
        if text.is_empty()
            || text.len() > MAX_NAME
            || text.contains(':')
            || !text.chars().all(plain)
        {
            return Err(error(
                "is neither an interface's name nor a range of addresses like 10.0.0.0/8"
                    .to_owned(),
            ));
        }
        Ok(InterfacePattern::Name(text.to_owned()))
    }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn first_address(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            IpAddr::V4((v4.to_bits() & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            IpAddr::V6((v6.to_bits() & mask).into())
        }
    }
}

impl fmt::Display for InterfacePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InterfacePattern::Name(name) => f.write_str(name),
            InterfacePattern::Range { address, prefix } if *prefix == bits(*address) => {
                address.fmt(f)
            }
            InterfacePattern::Range { address, prefix } => write!(f, "{address}/{prefix}"),
        }
    }
}

/// Text in and out for a type with `FromStr` and `Display`: `Serialize`, `Deserialize`, `JsonSchema`.
macro_rules! text_form {
    ($name:ident, $format:literal, $title:literal, $pattern:expr, $examples:expr) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "format": $format,
                    "description": $title,
                    "pattern": $pattern,
                    "examples": $examples,
                })
            }
        }
    };
}
pub(super) use text_form;

text_form!(
    InterfacePattern,
    "unisono-interface",
    "the beginning of an interface's name, or a range of addresses",
    r"^\S+$",
    ["eth0", "10.0.0.0/8", "fd00::/8"]
);
