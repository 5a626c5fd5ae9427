//! Paths of files: where relative ones lead, and what about the secret's.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::model::Cluster;
use crate::problem::{Findings, ProblemKind};
use crate::tree::{Kind, Node};
use crate::validate::Places;

/// The word for doing without a calibration.
const NO_FILE: &str = "none";

/// Makes relative paths of the file absolute, from the file's folder. In variables and code they are
/// findings: what they lead to would depend on the current folder.
pub(crate) fn resolve(cluster: &mut Cluster, places: &Places, found: &mut Findings) {
    let mut absolute = |path: &mut PathBuf, key: String| {
        if path.is_absolute() {
            return;
        }
        let place = places.at(&key);
        match place.source.folder() {
            Some(folder) if !path.as_os_str().is_empty() => *path = folder.join(&*path),
            _ => {
                let message = format!("`{key}` is `{}`, which is no absolute path", path.display());
                let help = "give the path from `/` on; only those of the cluster file may be relative, to its folder";
                found.problem(ProblemKind::UnknownValue, &key, &place, message, help);
            }
        }
    };
    for (index, folder) in cluster.plugin_path.iter_mut().enumerate() {
        absolute(folder, format!("plugin_path[{index}]"));
    }
    for (index, plugin) in cluster.plugins.iter_mut().enumerate() {
        if let Some(path) = &mut plugin.path {
            absolute(path, format!("plugins[{index}].path"));
        }
    }
    if let Some(path) = &mut cluster.calibration
        && path.as_os_str() != NO_FILE
    {
        absolute(path, "calibration".to_owned());
    }
    if let Some(path) = &mut cluster.security.secret_file {
        absolute(path, "security.secret_file".to_owned());
    }
}

/// `secret` and `secret_file` are two ways to say one thing: a later layer that gives one of them
/// takes away the other from those before. Both in one layer is a contradiction, found later.
pub(crate) fn prefer_later_secret(layers: &mut [Node]) {
    let mut given = false;
    for layer in layers.iter_mut().rev() {
        let Kind::Map(entries) = &mut layer.kind else {
            continue;
        };
        let security = entries.iter_mut().find(|entry| entry.key == "security");
        let Some(Kind::Map(keys)) = security.map(|entry| &mut entry.value.kind) else {
            continue;
        };
        let is_secret = |key: &str| key == "secret" || key == "secret_file";
        if given {
            keys.retain(|entry| !is_secret(&entry.key));
        }
        given |= keys.iter().any(|entry| is_secret(&entry.key));
    }
}

/// Warns of a secret in a file that others can read.
pub(crate) fn exposed_secret(layer: &Node, path: &Path, found: &mut Findings) {
    let child = |node: &Node, key: &str| match &node.kind {
        Kind::Map(entries) => entries
            .iter()
            .find(|entry| entry.key == key)
            .map(|entry| entry.value.clone()),
        _ => None,
    };
    let Some(secret) = child(layer, "security").and_then(|security| child(&security, "secret"))
    else {
        return;
    };
    let others_read = std::fs::metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.mode() & 0o077 != 0);
    if others_read && !matches!(secret.kind, Kind::Null) {
        let message = "the file holds the job's secret, and other users can read it";
        let help = format!(
            "chmod 600 {}, or move the secret to a `secret_file`",
            path.display()
        );
        found.warning("security.secret", &secret.place, message, help);
    }
}
