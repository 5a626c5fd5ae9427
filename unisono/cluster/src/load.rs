//! From files, variables and code to one checked cluster.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::find;
use crate::layers::{self, Environment, Overrides};
use crate::model::Cluster;
use crate::paths;
use crate::problem::{Findings, LoadError, Place, Problem, ProblemKind, SourceText, Warning};
use crate::source::Source;
use crate::tree::Node;
use crate::validate::{self, Places};
use crate::yaml;

/// The largest file that is read: it bounds the time and memory that a load takes.
const MAX_FILE: u64 = 4 << 20;

/// What a load looks at.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The cluster file. Without one, it is looked for: `UNISONO_CLUSTER_FILE`, then
    /// `$XDG_CONFIG_HOME/unisono/cluster.yaml` (or under `~/.config`), then
    /// `/etc/unisono/cluster.yaml`; never in the current folder. It is fine if there is none.
    pub path: Option<PathBuf>,
    /// The variables that are seen.
    pub env: Environment,
    /// Values from the program.
    pub code: Overrides,
}

impl Default for LoadOptions {
    /// No file named, the process's variables, no values from code.
    fn default() -> LoadOptions {
        LoadOptions {
            path: None,
            env: Environment::process(),
            code: Overrides::new(),
        }
    }
}

/// A cluster as it is in effect, and where each value comes from.
#[derive(Debug)]
#[non_exhaustive]
pub struct Effective {
    /// The cluster. Relative paths of the file are made absolute.
    pub cluster: Cluster,
    /// The file that was read, if there was one.
    pub file: Option<PathBuf>,
    /// What is likely not meant.
    pub warnings: Vec<Warning>,
    places: Places,
}

impl Effective {
    /// Where a value comes from, by its path, such as `timeouts.op` or `links[2].bandwidth`. `None`
    /// if no layer gave it, so that it is what its type documents; items of lists have such values.
    pub fn source(&self, path: &str) -> Option<&Source> {
        self.places.exact(path).map(|place| &place.source)
    }
}

/// Loads a cluster: defaults, then the file, then `UNISONO_*` variables, then values from code, the
/// later ones winning key by key. Lists are replaced whole.
///
/// Reads files and nothing else; it may be called from any thread.
///
/// # Errors
/// All problems that were found, each with its place and what to do about it.
pub fn load(options: &LoadOptions) -> Result<Effective, LoadError> {
    let mut found = Findings::default();
    let mut text = SourceText::default();
    let file = find::find(options.path.as_deref(), &options.env);
    let file_layer = file
        .as_ref()
        .and_then(|file| read(file, &mut text, &mut found));
    let env_layer = layers::env_layer(&options.env, &mut found);
    let given = [file_layer, Some(env_layer), Some(options.code.layer())];
    let (cluster, places) = combine(given.into_iter().flatten(), &mut found);
    let warnings = found
        .finish(&text)
        .map_err(|problems| LoadError { problems })?;
    Ok(Effective {
        cluster,
        file: file.map(|file| file.path),
        warnings,
        places,
    })
}

/// Checks a file by itself: no variables, no values from code.
///
/// # Errors
/// All problems that were found, in the order of the file.
pub fn check(path: &Path) -> Result<Vec<Warning>, Vec<Problem>> {
    let options = LoadOptions {
        path: Some(path.to_owned()),
        env: Environment::empty(),
        code: Overrides::new(),
    };
    match load(&options) {
        Ok(effective) => Ok(effective.warnings),
        Err(error) => Err(error.problems),
    }
}

/// The file's layer. A file that cannot be read is a finding, pointed at where it was named.
fn read(file: &find::Found, text: &mut SourceText, found: &mut Findings) -> Option<Node> {
    let content = match read_text(&file.path) {
        Ok(content) => content,
        Err(why) => {
            let path: Arc<Path> = file.path.as_path().into();
            let source = file.named_by.clone().unwrap_or(Source::File {
                path,
                line: 1,
                column: 1,
            });
            let message = format!(
                "the cluster file {} cannot be read: {why}",
                file.path.display()
            );
            let help = match &file.named_by {
                Some(Source::Env { variable }) => format!("check the path, or unset {variable}"),
                _ => "check the path and its permissions".to_owned(),
            };
            found.problem(
                ProblemKind::Unreadable,
                "",
                &Place::of(source),
                message,
                help,
            );
            return None;
        }
    };
    *text = SourceText::new(&content);
    let path = file.path.as_path().into();
    let layer = yaml::parse_file(&content, &path, found);
    if let Some(layer) = &layer {
        paths::exposed_secret(layer, &file.path, found);
    }
    layer
}

fn read_text(path: &Path) -> Result<String, String> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut content = String::new();
    file.take(MAX_FILE + 1)
        .read_to_string(&mut content)
        .map_err(|error| error.to_string())?;
    if content.len() as u64 > MAX_FILE {
        return Err(format!("it has more than {} MiB", MAX_FILE >> 20));
    }
    Ok(content)
}

/// Checks the layers, merges what is right of them, and checks what they come to. What it gives is
/// only of use if nothing was found.
fn combine(given: impl Iterator<Item = Node>, found: &mut Findings) -> (Cluster, Places) {
    let mut checked: Vec<Node> = given
        .filter_map(|layer| validate::shape(layer, found))
        .collect();
    paths::prefer_later_secret(&mut checked);
    let defaults = serde_json::to_value(Cluster::default()).unwrap_or_default();
    let defaults = validate::shape(Node::from_json(&defaults, &Source::Default), found);
    let merged = layers::merge(defaults.into_iter().chain(checked));
    let result = merged.and_then(|layers::Merged { config, origins }| {
        let values = config::Source::collect(&config)?;
        Ok((
            config.try_deserialize::<Cluster>()?,
            Places::of(&values, &origins),
        ))
    });
    match result {
        Ok((mut cluster, places)) => {
            paths::resolve(&mut cluster, &places, found);
            validate::meaning(&cluster, &places, found);
            (cluster, places)
        }
        Err(_) => {
            // No text of the error: it may quote a secret.
            let message = "what passed the check of the layers cannot be read as a cluster";
            let help = "this is a fault of the library: please report it, with the file but without its secret";
            found.problem(
                ProblemKind::Internal,
                "",
                &Place::of(Source::Default),
                message,
                help,
            );
            (Cluster::default(), Places::default())
        }
    }
}
