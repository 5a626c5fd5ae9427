//! The conformance suite's program, run against a vendor's plugin on an emulated machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Emulated;

/// Runs the suite's program under a machine's environment: the vendor's libraries are found when a
/// process starts. The plugin's own list says what it does not support; `besides`, another list, what this
/// machine's driver lacks.
///
/// # Panics
/// If the plugin does not do what the lists say.
pub fn conforms(machine: &Emulated, plugin: &str, besides: Option<&str>, params: &[&str]) {
    let built = PathBuf::from(&machine.environment()[1].1);
    let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../plugins");
    let mut command = Command::new(built.join("unisono-conformance"));
    command
        .arg(built.join(format!("libunisono_plugin_{plugin}.so")))
        .arg("--expect")
        .arg(plugins.join(plugin).join("conformance.yaml"))
        .envs(machine.environment());
    let folder = tempfile::tempdir().expect("a folder");
    if let Some(besides) = besides {
        let path = folder.path().join("besides.yaml");
        std::fs::write(&path, besides).expect("a file");
        command.arg("--expect").arg(path);
    }
    for param in params {
        command.args(["--param", param]);
    }
    let output = command
        .output()
        .expect("the suite's program: build the workspace first");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    println!("{}", text.lines().last().unwrap_or_default());
    assert!(output.status.success(), "{text}\n{errors}");
}

/// What the program says of a plugin when it asks for an instance, without one variable.
///
/// # Panics
/// If the program is not there.
#[must_use]
pub fn answer(plugin: &str, environment: &[(&str, String)], without: Option<&str>) -> String {
    let of = |name: &str| environment.iter().find(|(key, _)| *key == name);
    let built = of("UNISONO_PLUGIN_PATH").map(|(_, path)| PathBuf::from(path));
    let built = built.expect("the folder of plugins");
    let mut command = Command::new(built.join("unisono-conformance"));
    command
        .arg(built.join(format!("libunisono_plugin_{plugin}.so")))
        .args(["--only", "instance/several"])
        .env_remove("LD_LIBRARY_PATH");
    for (name, value) in environment {
        if Some(*name) != without {
            command.env(name, value);
        }
    }
    let output = command
        .output()
        .expect("the suite's program: build the workspace first");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
