//! `NAME.plugin.json` beside a plugin's library: what it is, to be read without running it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::name::{RULE, is_name};
use crate::{HostVersion, Refusal};

/// What a manifest's file name ends in.
pub(crate) const SUFFIX: &str = ".plugin.json";
/// The largest manifest that is read, in bytes.
const SIZE_MAX: u64 = 64 << 10;

/// A manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The plugin's name.
    pub name: String,
    /// The file name of its library, in the manifest's own folder.
    pub library: String,
    /// The plugin's version.
    pub version: String,
    /// Who makes it.
    pub vendor: String,
    /// The contract's major version.
    pub abi_major: u16,
    /// The contract's minor version.
    pub abi_minor: u16,
    /// The SHA-256 of the library in hexadecimal. If given, another file is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn read(path: &Path) -> Result<Self, Refusal> {
        let mut text = String::new();
        let file = File::open(path).map_err(|e| Refusal::Unreadable(e.to_string()))?;
        let read = file.take(SIZE_MAX + 1).read_to_string(&mut text);
        read.map_err(|e| Refusal::Unreadable(e.to_string()))?;
        let wrong = |what: String| Refusal::Manifest(format!("{}: {what}", path.display()));
        if text.len() as u64 > SIZE_MAX {
            return Err(wrong(format!("it has more than {SIZE_MAX} bytes")));
        }
        let manifest: Self = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
        manifest.check().map_err(wrong)?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), String> {
        if !is_name(&self.name) {
            return Err(format!("the name {:?} is not {RULE}", self.name));
        }
        let plain = Path::new(&self.library)
            .file_name()
            .is_some_and(|f| *f == *self.library);
        if !plain {
            return Err(format!(
                "library {:?} is not a file name: the library lies beside its manifest",
                self.library
            ));
        }
        let hex = |d: &String| d.len() == 64 && d.bytes().all(|b| b.is_ascii_hexdigit());
        if self.sha256.as_ref().is_some_and(|d| !hex(d)) {
            return Err("sha256 is not 64 hexadecimal digits".into());
        }
        Ok(())
    }

    /// The library, given where the manifest is.
    #[must_use]
    pub fn library_path(&self, manifest: &Path) -> PathBuf {
        manifest.with_file_name(&self.library)
    }

    /// Whether a host can use the plugin, as far as the manifest tells.
    pub(crate) const fn check_version(&self, host: HostVersion) -> Result<(), Refusal> {
        if self.abi_major == host.major() {
            return Ok(());
        }
        let found = (self.abi_major, self.abi_minor);
        Err(Refusal::Major { found, host })
    }
}
