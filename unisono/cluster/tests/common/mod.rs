//! A cluster file for a test, in a folder of its own.

use std::path::PathBuf;

use unisono_cluster::{Environment, LoadOptions, Overrides, Problem, Source};

/// A file that is removed when dropped.
pub struct File {
    folder: tempfile::TempDir,
}

impl File {
    pub fn new(text: &str) -> File {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = File { folder };
        std::fs::write(file.path(), text).expect("a file is written");
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o600))
            .expect("a mode is set");
        file
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("cluster.yaml")
    }

    /// Options that see this file and these variables alone.
    #[allow(dead_code, reason = "each test binary uses a part of this module")]
    pub fn options(&self, env: &[(&str, &str)]) -> LoadOptions {
        LoadOptions {
            path: Some(self.path()),
            env: env.iter().copied().collect::<Environment>(),
            code: Overrides::new(),
        }
    }
}

/// Line and column of a problem; 0 if it is not in a file.
#[allow(dead_code, reason = "each test binary uses a part of this module")]
pub fn place(source: &Source) -> (u32, u32) {
    match source {
        Source::File { line, column, .. } => (*line, *column),
        _ => (0, 0),
    }
}

#[allow(dead_code, reason = "each test binary uses a part of this module")]
pub fn describe(problems: &[Problem]) -> String {
    problems
        .iter()
        .map(|problem| format!("{problem}\n\n"))
        .collect()
}
