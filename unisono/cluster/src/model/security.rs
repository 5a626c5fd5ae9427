//! How the ranks of a job recognise each other, and a secret that is never printed.

use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// How the ranks of a job recognise each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Security {
    /// Whether ranks prove that they know the job's secret (default: secret).
    pub mode: SecurityMode,
    /// The secret itself, at least 32 random bytes as text. Only for files that nobody else can
    /// read; prefer `secret_file`.
    pub secret: Option<Secret>,
    /// A file that holds the secret and that only its owner can read. Relative paths are relative to
    /// the cluster file.
    pub secret_file: Option<PathBuf>,
}

/// Whether ranks authenticate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SecurityMode {
    /// Ranks prove that they know the job's secret. Without one, ranks of one machine check each
    /// other's user, and ranks of several machines refuse to start.
    #[default]
    Secret,
    /// Nobody proves anything: whoever reaches a port is believed. For closed networks only.
    None,
}

/// The job's secret as text. Wiped from memory when dropped; `Debug`, `Display` and `Serialize`
/// show `<redacted>`. Copies that the YAML parser and the layers made on the way are not wiped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// The fewest bytes that a secret may have.
    pub const MIN_BYTES: usize = 32;

    /// Takes a text as a secret. Its length is checked when a cluster is loaded.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(Zeroizing::new(text.into()))
    }

    /// The secret itself: hand it on, never print it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

const REDACTED: &str = "<redacted>";

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(REDACTED)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
        String::deserialize(deserializer).map(Secret::new)
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "minLength": Secret::MIN_BYTES,
            "writeOnly": true,
            "description": "at least 32 random bytes as text",
        })
    }
}
