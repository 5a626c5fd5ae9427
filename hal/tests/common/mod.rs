//! Compiles C plugins as a vendor would: `cc -shared`, with only the headers on the path.
#![allow(dead_code, reason = "each test uses a part")]

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use unisono_hal::{Loader, SearchPath};

/// The repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// A folder for libraries, and the compiler.
pub struct Workshop {
    pub folder: TempDir,
}

impl Workshop {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    /// Compiles one of `tests/bad-plugins` under the name of its file.
    pub fn bad(&self, stem: &str) -> PathBuf {
        self.bad_with(stem, stem, &[])
    }

    /// The same, with another name and more arguments for the compiler.
    pub fn bad_with(&self, stem: &str, name: &str, more: &[String]) -> PathBuf {
        let source = root().join(format!("tests/bad-plugins/{stem}.c"));
        self.compile(&source, name, more)
    }

    /// Compiles a source to `libunisono_plugin_NAME.so`.
    pub fn compile(&self, source: &Path, name: &str, more: &[String]) -> PathBuf {
        let library = self.path(&format!("libunisono_plugin_{name}.so"));
        let done = Command::new("cc")
            .args(["-std=c11", "-D_GNU_SOURCE", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"])
            // The corpus replaces initialisers on purpose, and dereferences bad addresses.
            .args(["-Wno-override-init", "-Wno-unused-function", "-Wno-array-bounds"])
            .args(["-Wno-infinite-recursion", "-Wno-unused-variable"])
            .arg("-I")
            .arg(root().join("include"))
            .arg(format!("-DPLUGIN_NAME=\"{name}\""))
            .arg(source)
            .args(more)
            .arg("-o")
            .arg(&library)
            .output()
            .expect("a C compiler");
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{}: {errors}", source.display());
        library
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// A loader that looks nowhere: for plugins given by path.
pub fn loader() -> Loader {
    Loader::new(SearchPath::empty())
}
