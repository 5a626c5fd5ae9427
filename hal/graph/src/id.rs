//! Identities of devices and nodes: 16 opaque bytes, shown as hex.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A text that is no identity: not 32 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an identity: give 32 hexadecimal digits")]
pub struct ParseIdError(String);

macro_rules! identity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; 16]);

        impl $name {
            /// Whether all bytes are zero: the value that names nothing in particular.
            pub fn is_zero(self) -> bool {
                self.0 == [0; 16]
            }

            /// The first eight hex digits, for people.
            pub fn short(self) -> String {
                self.to_string()[..8].to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                parse_hex(text).map(Self).ok_or_else(|| ParseIdError(text.to_owned()))
            }
        }

        /// Hex in formats for people, 16 plain bytes in others.
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    serializer.collect_str(self)
                } else {
                    self.0.serialize(serializer)
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                if deserializer.is_human_readable() {
                    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
                } else {
                    <[u8; 16]>::deserialize(deserializer).map(Self)
                }
            }
        }
    };
}

identity! {
    /// A device, as its plugin names it: opaque, stable on its node, the same in every process.
    ///
    /// It says nothing across nodes: a device is known by its node, its plugin and this.
    DeviceId
}

identity! {
    /// A node: one operating system image, with one set of namespaces.
    NodeId
}

fn parse_hex(text: &str) -> Option<[u8; 16]> {
    let digits = text.as_bytes();
    if digits.len() != 32 {
        return None;
    }
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let high = (pair[0] as char).to_digit(16)?;
        let low = (pair[1] as char).to_digit(16)?;
        *byte = u8::try_from(high * 16 + low).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_goes_out_and_comes_back() {
        let id = DeviceId(*b"\x00\x01\x7f\x80\xffabcdefghijk");
        assert_eq!(id.to_string(), "00017f80ff6162636465666768696a6b");
        assert_eq!(id.to_string().to_uppercase().parse(), Ok(id));
        assert_eq!(id.short(), "00017f80");
        assert!(!id.is_zero() && DeviceId::default().is_zero());
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            "",
            "00",
            &"0".repeat(33),
            &"g".repeat(32),
            &"é".repeat(16),
            &"+1".repeat(16),
        ] {
            assert!(text.parse::<NodeId>().is_err(), "{text}");
        }
    }
}
