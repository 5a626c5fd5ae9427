//! What a file in the search path is, by its name and its manifest.

use std::fs;
use std::path::{Path, PathBuf};

use super::Origin;
use super::manifest::{self, Manifest};
use crate::Refusal;

/// What the file name of a plugin's library starts with.
const PREFIX: &str = "libunisono_plugin_";

/// A plugin that was found, and not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its name, by its manifest or its file name.
    pub name: String,
    /// Its library.
    pub path: PathBuf,
    /// Its manifest.
    pub manifest: Option<Manifest>,
    /// Which part of the search path it is in.
    pub origin: Origin,
    /// The library that is used instead, as its place comes earlier.
    pub shadowed_by: Option<PathBuf>,
}

/// What a file is by its name or, if it is a manifest, by what that says.
pub(super) fn file_as_found(origin: Origin, path: &Path) -> Result<Found, Refusal> {
    let exists = |path: &Path| {
        let meta = fs::metadata(path);
        meta.map_err(|e| Refusal::Unreadable(e.to_string()))
    };
    exists(path)?;
    let found = |name: String, path: PathBuf, manifest| Found {
        name,
        path,
        manifest,
        origin,
        shadowed_by: None,
    };
    if is_manifest(path) {
        let manifest = Manifest::read(path)?;
        let library = manifest.library_path(path);
        exists(&library)
            .map_err(|e| Refusal::Manifest(format!("its library {} {e}", library.display())))?;
        return Ok(found(manifest.name.clone(), library, Some(manifest)));
    }
    let stem = || path.file_stem().unwrap_or_default().to_string_lossy();
    let name = name_of_library(path).unwrap_or_else(|| stem().into_owned());
    Ok(found(name, path.to_owned(), None))
}

pub(super) fn is_manifest(path: &Path) -> bool {
    path.to_str().is_some_and(|p| p.ends_with(manifest::SUFFIX))
}

/// `NAME` of `libunisono_plugin_NAME.so`.
pub(super) fn name_of_library(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_prefix(PREFIX)?.strip_suffix(".so")?;
    (!name.is_empty()).then(|| name.to_owned())
}
