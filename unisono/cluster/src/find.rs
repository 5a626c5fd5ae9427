//! Which file is the cluster file.

use std::path::{Path, PathBuf};

use crate::layers::Environment;
use crate::source::Source;

/// The system's cluster file.
const SYSTEM: &str = "/etc/unisono/cluster.yaml";

/// A file to read, and who named it; `None` if it was found by search.
pub(crate) struct Found {
    pub path: PathBuf,
    pub named_by: Option<Source>,
}

/// Looks for the cluster file: the one that the program names, then the one that
/// `UNISONO_CLUSTER_FILE` names, then the user's, then the system's; never the current folder. One
/// that is named need not exist here: reading it will tell.
pub(crate) fn find(explicit: Option<&Path>, environment: &Environment) -> Option<Found> {
    if let Some(path) = explicit {
        let named_by = Some(Source::Code);
        return Some(Found {
            path: path.to_owned(),
            named_by,
        });
    }
    if let Some(path) = environment.get("UNISONO_CLUSTER_FILE") {
        let variable = "UNISONO_CLUSTER_FILE".to_owned();
        let named_by = Some(Source::Env { variable });
        return Some(Found {
            path: path.into(),
            named_by,
        });
    }
    let path = search_path(environment)
        .into_iter()
        .find(|path| path.exists())?;
    Some(Found {
        path,
        named_by: None,
    })
}

/// The places that are searched when no file is named, in order.
pub(crate) fn search_path(environment: &Environment) -> Vec<PathBuf> {
    let absolute = |name: &str| {
        environment
            .get(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let user = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")));
    let user = user.map(|folder| folder.join("unisono/cluster.yaml"));
    user.into_iter().chain([PathBuf::from(SYSTEM)]).collect()
}
