//! Finds plugins by name and loads them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::error::{Failure, LoadError, Step};
use super::found::{Found, file_as_found, is_manifest, name_of_library};
use super::{Origin, SearchPath, file, library, trust};
use crate::name::same_name;
use crate::suggest::closest;
use crate::{HostVersion, Plugin, Refusal, check};

/// Finds and loads plugins.
#[derive(Clone, Debug, Default)]
pub struct Loader {
    search: SearchPath,
    host: HostVersion,
    allow_writable: bool,
}

impl Loader {
    /// A loader for these places.
    #[must_use]
    pub const fn new(search: SearchPath) -> Self {
        Self {
            search,
            host: HostVersion::CURRENT,
            allow_writable: false,
        }
    }

    /// The same, as an older host. For tests of compatibility.
    #[must_use]
    pub const fn host_version(mut self, host: HostVersion) -> Self {
        self.host = host;
        self
    }

    /// The same, that also loads files which everybody may write to.
    #[must_use]
    pub const fn allow_writable(mut self, allow: bool) -> Self {
        self.allow_writable = allow;
        self
    }

    /// The places, in order.
    #[must_use]
    pub const fn search(&self) -> &SearchPath {
        &self.search
    }

    /// Loads a plugin by its name, from the first place that has it. If that one is refused, no
    /// other is taken in its stead.
    ///
    /// # Errors
    /// If no place has it, if it is refused, or if two in one place claim the name. The error
    /// holds every place that was looked at.
    pub fn load(&self, name: &str) -> Result<Plugin, LoadError> {
        let mut trace = Vec::new();
        let mut others = Vec::new();
        for (origin, place) in self.search.places() {
            let found = self.look(*origin, place, &mut trace);
            let (mut ours, rest): (Vec<_>, Vec<_>) =
                found.into_iter().partition(|f| same_name(&f.name, name));
            others.extend(rest.into_iter().map(|f| f.name));
            if let [first, second, ..] = &ours[..] {
                let (first, second) = (first.path.clone(), second.path.clone());
                return Err(LoadError::new(
                    name,
                    Failure::TwoOfOneName { first, second },
                    trace,
                ));
            }
            if let Some(found) = ours.pop() {
                return self.load_found(&found, name, trace);
            }
        }
        others.sort();
        others.dedup();
        let names: Vec<&str> = others.iter().map(String::as_str).collect();
        let near = closest(name, &names).map(str::to_owned);
        let there = others;
        let failure = Failure::NotFound { near, there };
        Err(LoadError::new(name, failure, trace))
    }

    /// Loads the plugin in a file: a library or a manifest.
    ///
    /// # Errors
    /// If it is refused, or another plugin of its name is loaded already.
    pub fn load_path(&self, path: impl AsRef<Path>) -> Result<Plugin, LoadError> {
        // A name without a slash would make the system's loader search where it likes.
        let path = std::path::absolute(&path).unwrap_or_else(|_| path.as_ref().to_owned());
        let path = path.as_path();
        let wanted = path.display().to_string();
        match file_as_found(Origin::Program, path) {
            Ok(found) => self.load_found(&found, &wanted, Vec::new()),
            Err(refusal) => Err(refused(&wanted, path, refusal, Vec::new())),
        }
    }

    /// Every plugin in the search path, by manifests and file names: no code of any is run.
    #[must_use]
    pub fn list(&self) -> Vec<Found> {
        let mut all: Vec<Found> = Vec::new();
        for (origin, place) in self.search.places() {
            for mut found in self.look(*origin, place, &mut Vec::new()) {
                let earlier = all.iter().find(|f| same_name(&f.name, &found.name));
                found.shadowed_by = earlier.map(|f| f.path.clone());
                all.push(found);
            }
        }
        all
    }

    /// The plugins in one place, with a step of the trace for it and for each that is unusable.
    fn look(&self, origin: Origin, place: &Path, trace: &mut Vec<Step>) -> Vec<Found> {
        let mut step = |path: &Path, found: String| {
            trace.push(Step {
                origin,
                path: path.to_owned(),
                found,
            });
        };
        if !place.is_absolute() {
            step(place, "is not an absolute path, so it is not used".into());
            return Vec::new();
        }
        if !place.is_dir() {
            return match file_as_found(origin, place) {
                Ok(found) => {
                    step(place, format!("plugin {}", found.name));
                    vec![found]
                }
                Err(refusal) => {
                    step(place, refusal.to_string());
                    Vec::new()
                }
            };
        }
        let entries = match fs::read_dir(place) {
            Ok(entries) => entries,
            Err(error) => {
                step(place, format!("cannot be read: {error}"));
                return Vec::new();
            }
        };
        // Others may be many, and what is held of them once stays with the process.
        let mut files: Vec<PathBuf> = (entries.flatten().map(|e| e.path()))
            .filter(|path| is_manifest(path) || name_of_library(path).is_some())
            .collect();
        files.sort();
        let mut found: Vec<Found> = Vec::new();
        for path in files.iter().filter(|p| is_manifest(p)) {
            match file_as_found(origin, path) {
                Ok(plugin) => found.push(plugin),
                Err(refusal) => step(path, refusal.to_string()),
            }
        }
        for path in files.iter().filter(|p| name_of_library(p).is_some()) {
            // A library that has a manifest is what that says it is.
            if !found.iter().any(|f| f.path == *path)
                && let Ok(plugin) = file_as_found(origin, path)
            {
                found.push(plugin);
            }
        }
        let names: Vec<&str> = found.iter().map(|f| f.name.as_str()).collect();
        let what = match &names[..] {
            [] => "no plugins".into(),
            names => format!("plugins {}", names.join(", ")),
        };
        step(place, what);
        found
    }

    fn load_found(
        &self,
        found: &Found,
        wanted: &str,
        mut trace: Vec<Step>,
    ) -> Result<Plugin, LoadError> {
        match self.open(found) {
            Ok(plugin) => claim(&plugin, &found.path, wanted, trace),
            Err(refusal) => {
                trace.push(Step {
                    origin: found.origin,
                    path: found.path.clone(),
                    found: refusal.to_string(),
                });
                Err(refused(wanted, &found.path, refusal, trace))
            }
        }
    }

    /// All checks, from those that run no code to those of the plugin's own answer.
    fn open(&self, found: &Found) -> Result<Plugin, Refusal> {
        let path = &found.path;
        if !self.allow_writable {
            trust::check(path)?;
        }
        let facts = file::check(path)?;
        if let Some(manifest) = &found.manifest {
            manifest.check_version(self.host)?;
            if let Some(wanted) = &manifest.sha256 {
                let found = file::sha256(path)?;
                if !found.eq_ignore_ascii_case(wanted) {
                    let wanted = wanted.clone();
                    return Err(Refusal::Digest { found, wanted });
                }
            }
        }
        let query = library::open(path, &facts.needed)?;
        let plugin = check::ask(query, self.host, Some(path.clone()))?;
        // A library without the usual file name and without a manifest may have any name.
        let any = found.manifest.is_none() && name_of_library(path).is_none();
        if !any && !same_name(plugin.name(), &found.name) {
            return Err(Refusal::OtherName {
                found: plugin.name().to_owned(),
                wanted: found.name.clone(),
            });
        }
        Ok(plugin)
    }
}

/// Refuses a second plugin of a name that another library of this process has.
fn claim(
    plugin: &Plugin,
    path: &Path,
    wanted: &str,
    trace: Vec<Step>,
) -> Result<Plugin, LoadError> {
    static CLAIMED: Mutex<Vec<(&'static str, PathBuf)>> = Mutex::new(Vec::new());
    // The same library by another path is the same plugin, and keeps its first path.
    let path = plugin.path().unwrap_or(path);
    let mut claimed = CLAIMED.lock().unwrap_or_else(|e| e.into_inner());
    match claimed.iter().find(|(name, _)| *name == plugin.name()) {
        Some((_, first)) if first != path => {
            let (first, second) = (first.clone(), path.to_owned());
            let failure = Failure::TwoOfOneName { first, second };
            return Err(LoadError::new(wanted, failure, trace));
        }
        Some(_) => {}
        None => claimed.push((plugin.name(), path.to_owned())),
    }
    Ok(plugin.clone())
}

fn refused(wanted: &str, path: &Path, refusal: Refusal, trace: Vec<Step>) -> LoadError {
    let path = path.to_owned();
    LoadError::new(wanted, Failure::Refused { path, refusal }, trace)
}
