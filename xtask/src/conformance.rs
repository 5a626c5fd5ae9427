//! What a vendor runs against a plugin.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::root;
use crate::run::{cargo, run};

/// What a plugin ships: what it does not support, and what is known to fail.
const LIST: &str = "conformance.yaml";

/// Builds the conformance suite and runs it against one library. Paths are taken from where the command
/// is called; `rest` goes to the suite as it is.
pub fn conformance(plugin: &Path, expect: &[PathBuf], rest: &[String]) -> Result<()> {
    let plugin = found(plugin)?;
    let lists = if expect.is_empty() {
        shipped(&plugin).into_iter().collect()
    } else {
        let lists = expect.iter().map(|path| found(path));
        lists.collect::<Result<Vec<_>>>()?
    };
    match &lists[..] {
        [] => eprintln!("no {LIST} beside the plugin: what it says it does not support is skipped"),
        lists => (lists.iter()).for_each(|list| eprintln!("judged by {}", list.display())),
    }
    let mut command = cargo(&["run", "--quiet", "-p", "unisono-conformance", "--"]);
    command.arg(plugin);
    for list in lists {
        command.arg("--expect").arg(list);
    }
    run(command.args(rest))
}

/// The list of a plugin of this repository, by the library's name; else the nearest above the library,
/// which is where a vendor's source has it that builds into its own folder.
fn shipped(plugin: &Path) -> Option<PathBuf> {
    let name = plugin.file_stem()?.to_str()?;
    let name = name.strip_prefix("libunisono_plugin_");
    let own = name.map(|name| root().join("plugins").join(name).join(LIST));
    let above = plugin.ancestors().skip(1).map(|folder| folder.join(LIST));
    own.into_iter().chain(above).find(|path| path.is_file())
}

/// A file by its whole path.
fn found(path: &Path) -> Result<PathBuf> {
    path.canonicalize()
        .with_context(|| format!("{} is not there", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_found_by_name_or_above_the_library() {
        let of = |name: &str| shipped(Path::new("/nowhere").join(name).as_path());
        let cuda = of("libunisono_plugin_cuda.so").expect("the cuda plugin's");
        assert!(cuda.ends_with("plugins/cuda/conformance.yaml"), "{cuda:?}");
        assert_eq!(of("libunisono_plugin_acme.so"), None);
        let vendor = tempfile::tempdir().expect("a folder");
        let built = vendor.path().join("target/release");
        std::fs::create_dir_all(&built).expect("a folder");
        let library = built.join("libunisono_plugin_acme.so");
        assert_eq!(shipped(&library), None);
        let list = vendor.path().join(LIST);
        std::fs::write(&list, "unsupported: {}").expect("a file");
        assert_eq!(shipped(&library), Some(list));
    }

    /// Every plugin of this repository says what it does not support.
    #[test]
    fn every_plugin_has_a_list() {
        for name in ["host", "tcp", "roce", "cuda", "rocm", "ascend", "example-c"] {
            let list = root().join("plugins").join(name).join(LIST);
            assert!(list.is_file(), "{}", list.display());
        }
    }
}
