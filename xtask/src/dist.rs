//! What is installed: headers, the C library, plugins, the command, and how builds find them.
//!
//! The library is linked here from cargo's archive, and not by rustc, which gives shared libraries no
//! SONAME and takes no version script beside its own. What is installed is found by its place, so the
//! whole folder may be moved.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::run::{cargo, run};
use crate::{root, target};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Programs that were linked with one version run with all that have this name.
const SONAME: &str = concat!("libunisono.so.", env!("CARGO_PKG_VERSION_MAJOR"));

const HEADERS: [&str; 3] = ["unisono.h", "unisono_plugin.h", "unisono_plugin_layout.h"];
const PLUGINS: [&str; 6] = ["host", "tcp", "roce", "cuda", "rocm", "ascend"];

/// What the archive needs of the system.
const SYSTEM: &str = "-lgcc_s -lpthread -lrt -lm -ldl -lc";

/// Builds all (unless it is `built`), with optimisation unless it is for debugging, and installs it
/// in `prefix`.
pub fn dist(prefix: Option<PathBuf>, debug: bool, built: bool) -> Result<()> {
    let prefix = prefix.unwrap_or_else(|| root().join("target/dist"));
    let prefix = std::path::absolute(prefix)?;
    if !built {
        build(debug)?;
    }
    let built = target(debug);
    let folder = |name: &str| -> Result<PathBuf> {
        let folder = prefix.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        Ok(folder)
    };
    let include = folder("include")?;
    for header in HEADERS {
        copy(&root().join("include").join(header), &include.join(header))?;
    }
    link(&built, &folder("lib")?)?;
    let plugins = folder("lib/unisono/plugins")?;
    for plugin in PLUGINS {
        let file = format!("libunisono_plugin_{plugin}.so");
        copy(&built.join(&file), &plugins.join(&file))?;
    }
    copy(&built.join("unisono"), &folder("bin")?.join("unisono"))?;
    let cmake = folder("lib/cmake/unisono")?;
    for (file, folder, template) in [
        (
            "unisono.pc",
            folder("lib/pkgconfig")?,
            include_str!("../../packaging/unisono.pc.in"),
        ),
        (
            "unisono-config.cmake",
            cmake.clone(),
            include_str!("../../packaging/unisono-config.cmake.in"),
        ),
        (
            "unisono-config-version.cmake",
            cmake,
            include_str!("../../packaging/unisono-config-version.cmake.in"),
        ),
    ] {
        let text = fill(template);
        fs::write(folder.join(file), text).with_context(|| format!("writing {file}"))?;
    }
    println!("unisono {VERSION} is in {}", prefix.display());
    Ok(())
}

/// Builds what is installed.
fn build(debug: bool) -> Result<()> {
    let profile: &[&str] = if debug { &[] } else { &["--release"] };
    let plugins = PLUGINS.map(|plugin| format!("unisono-plugin-{plugin}-so"));
    let packages = ["unisono", "unisono-cli"].into_iter();
    let mut command = cargo(&["build", "--quiet"]);
    for package in packages.chain(plugins.iter().map(String::as_str)) {
        command.args(["--package", package]);
    }
    run(command.args(profile))
}

/// Links the library into `folder`, with the names that programs find it by.
fn link(built: &Path, folder: &Path) -> Result<()> {
    let file = format!("libunisono.so.{VERSION}");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let script = root().join("packaging/unisono.map");
    let mut linker = Command::new(compiler);
    linker.arg("-shared").arg("-o").arg(folder.join(&file));
    linker.arg(format!("-Wl,-soname,{SONAME}"));
    linker.arg(format!("-Wl,--version-script={}", script.display()));
    linker.args([
        "-Wl,--gc-sections,-z,defs,-z,relro,-z,now",
        "-Wl,--whole-archive",
    ]);
    linker.arg(built.join("libunisono.a"));
    linker.arg("-Wl,--no-whole-archive");
    run(linker.args(SYSTEM.split(' ')))?;
    for (name, to) in [(SONAME, file.as_str()), ("libunisono.so", SONAME)] {
        let name = folder.join(name);
        // One of an earlier run, or none.
        let _ = fs::remove_file(&name);
        symlink(to, &name).with_context(|| format!("linking {}", name.display()))?;
    }
    Ok(())
}

/// A template with this version's numbers.
fn fill(template: &str) -> String {
    template
        .replace("@VERSION@", VERSION)
        .replace("@MAJOR@", env!("CARGO_PKG_VERSION_MAJOR"))
        .replace("@SONAME@", SONAME)
}

/// Copies a file over one of an earlier run, which may be in use.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let _ = fs::remove_file(to);
    fs::copy(from, to)
        .map(|_| ())
        .with_context(|| format!("copying {} to {}", from.display(), to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled() {
        let version = fill(include_str!(
            "../../packaging/unisono-config-version.cmake.in"
        ));
        assert!(version.contains(&format!("set(PACKAGE_VERSION \"{VERSION}\")")));
        for text in [
            version,
            fill(include_str!("../../packaging/unisono-config.cmake.in")),
            fill(include_str!("../../packaging/unisono.pc.in")),
        ] {
            assert!(!text.contains('@'), "{text}");
        }
    }

    #[test]
    fn the_version_script_has_a_node_for_this_version() {
        let script = include_str!("../../packaging/unisono.map");
        let (major, minor) = (
            env!("CARGO_PKG_VERSION_MAJOR"),
            env!("CARGO_PKG_VERSION_MINOR"),
        );
        assert!(script.contains(&format!("UNISONO_{major}.{minor} {{")));
    }
}
