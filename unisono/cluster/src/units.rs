//! Quantities as people write them: sizes, rates and times.
//!
//! Each is an integer of its smallest unit (bytes, bytes a second, nanoseconds), so that hosts of
//! different architectures decide alike. A text that would need rounding is refused, never rounded.

mod bytes;
mod number;
mod rate;
mod time;

pub use bytes::Bytes;
pub use rate::Rate;
pub use time::TimeSpan;

/// Why a text is no quantity, and what would be one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}; {help}")]
pub struct UnitError {
    /// What is wrong, without a full stop.
    pub message: String,
    /// What to write instead.
    pub help: String,
}

impl UnitError {
    fn new(message: impl Into<String>, help: impl Into<String>) -> UnitError {
        UnitError {
            message: message.into(),
            help: help.into(),
        }
    }
}

/// Text in and out for a quantity: `Serialize`, `Deserialize`, `Debug`, `JsonSchema`.
macro_rules! quantity {
    ($name:ident, $format:literal, $title:literal, $pattern:expr, $examples:expr, $number:expr) => {
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                struct Visitor;
                impl serde::de::Visitor<'_> for Visitor {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($title)
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }

                    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<$name, E> {
                        number.to_string().parse().map_err(E::custom)
                    }

                    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<$name, E> {
                        number.to_string().parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(Visitor)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let types = if $number {
                    serde_json::json!(["string", "integer"])
                } else {
                    serde_json::json!("string")
                };
                let mut schema = schemars::json_schema!({
                    "format": $format,
                    "description": $title,
                    "type": types,
                    "pattern": $pattern,
                    "examples": $examples,
                });
                if $number {
                    schema.insert("minimum".to_owned(), 0.into());
                }
                schema
            }
        }
    };
}
use quantity;
