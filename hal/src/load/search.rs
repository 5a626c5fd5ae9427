//! Where plugins are looked for, in order. Never in the current folder.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};

use super::library;

/// Folders of the system, in order.
const SYSTEM: &[&str] = &["/usr/local/lib/unisono", "/usr/lib/unisono"];

/// The environment variable with more folders or files, separated by colons.
pub(crate) const VARIABLE: &str = "UNISONO_PLUGIN_PATH";

/// An ordered list of places: folders that hold plugins, and files of plugins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchPath {
    places: Vec<(Origin, PathBuf)>,
}

/// Why a place is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The program names it.
    Program,
    /// The cluster file names it.
    ClusterFile,
    /// `UNISONO_PLUGIN_PATH` names it.
    Environment,
    /// The user's own folder.
    User,
    /// A folder of the system.
    System,
    /// The folder of this library or program.
    Own,
}

impl SearchPath {
    /// No place at all.
    #[must_use]
    pub const fn empty() -> Self {
        Self { places: Vec::new() }
    }

    /// The places of this process: `UNISONO_PLUGIN_PATH`, the user's folder
    /// (`$XDG_DATA_HOME/unisono/plugins`), the system's folders, and the folder of this library.
    #[must_use]
    pub fn standard() -> Self {
        let mut path = Self::empty();
        if let Some(list) = env::var_os(VARIABLE) {
            for place in env::split_paths(&list).filter(|p| !p.as_os_str().is_empty()) {
                path = path.then(Origin::Environment, place);
            }
        }
        if let Some(folder) = user_folder() {
            path = path.then(Origin::User, folder);
        }
        for folder in SYSTEM {
            path = path.then(Origin::System, *folder);
        }
        for folder in own_folders() {
            path = path.then(Origin::Own, folder);
        }
        path
    }

    /// The same, with a place before all others.
    #[must_use]
    pub fn first(mut self, origin: Origin, place: impl Into<PathBuf>) -> Self {
        self.places.insert(0, (origin, place.into()));
        self
    }

    /// The same, with a place after all others.
    #[must_use]
    pub fn then(mut self, origin: Origin, place: impl Into<PathBuf>) -> Self {
        self.places.push((origin, place.into()));
        self
    }

    /// The places, in order.
    #[must_use]
    pub fn places(&self) -> &[(Origin, PathBuf)] {
        &self.places
    }
}

impl Default for SearchPath {
    fn default() -> Self {
        Self::standard()
    }
}

fn user_folder() -> Option<PathBuf> {
    let absolute = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|p| p.is_absolute())
    };
    let data =
        absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))?;
    Some(data.join("unisono/plugins"))
}

/// The folders of this library and of the program; in a build tree, where tests lie in `deps`,
/// also the folder above.
fn own_folders() -> Vec<PathBuf> {
    let files = [library::own_file(), env::current_exe().ok()];
    let mut folders: Vec<PathBuf> = Vec::new();
    let mut add = |folder: &Path| {
        if folder.is_absolute() && !folders.iter().any(|f| f == folder) {
            folders.push(folder.to_owned());
        }
    };
    for folder in files.iter().flatten().filter_map(|file| file.parent()) {
        add(folder);
        add(&folder.join("plugins"));
        // As installed: libraries in lib, programs in bin beside it.
        add(&folder.join("unisono/plugins"));
        if folder.ends_with("bin")
            && let Some(above) = folder.parent()
        {
            add(&above.join("lib/unisono/plugins"));
        }
        if folder.ends_with("deps")
            && let Some(above) = folder.parent()
        {
            add(above);
        }
    }
    folders
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Program => "named by the program",
            Self::ClusterFile => "named by the cluster file",
            Self::Environment => "named by UNISONO_PLUGIN_PATH",
            Self::User => "the user's folder",
            Self::System => "the system's folder",
            Self::Own => "this library's folder",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_places_are_absolute_and_in_order() {
        let path = SearchPath::standard();
        let rank = |origin: &Origin| match origin {
            Origin::Program => 0,
            Origin::ClusterFile => 1,
            Origin::Environment => 2,
            Origin::User => 3,
            Origin::System => 4,
            Origin::Own => 5,
        };
        let ranks: Vec<_> = path.places().iter().map(|(o, _)| rank(o)).collect();
        assert!(ranks.is_sorted());
        assert!(ranks.contains(&4) && ranks.contains(&5));
        let folder = std::env::current_exe()
            .unwrap()
            .parent()
            .unwrap()
            .to_owned();
        assert!(path.places().contains(&(Origin::Own, folder)));
        let mut unnamed = path
            .places()
            .iter()
            .filter(|(o, _)| *o != Origin::Environment);
        assert!(unnamed.all(|(_, p)| p.is_absolute()));
    }

    #[test]
    fn the_cluster_file_comes_before_the_rest() {
        let path = SearchPath::standard().first(Origin::ClusterFile, "/a");
        assert_eq!(path.places()[0], (Origin::ClusterFile, "/a".into()));
    }
}
