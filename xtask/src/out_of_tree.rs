//! Proof that the speed lives behind the contract: a renamed copy of the host plugin, built outside
//! the workspace against `include/` and the SDK alone, against the original.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::machine::{commit, machine, today};
use crate::run::{cargo, run, watch};
use crate::{root, target};

const NAME: &str = "hostcopy";

/// The copy may take so many times as long, at any size.
const LIMIT: &str = "1.05";

pub fn compare(dry: bool) -> Result<()> {
    run(&mut cargo(&[
        "build",
        "--release",
        "--quiet",
        "--package",
        "unisono-cli",
        "--package",
        "unisono-plugin-host-so",
    ]))?;
    let folder = root().join("target/out-of-tree");
    let library = build(&folder)?;
    println!("built {}", library.display());
    let cli = target(false).join("unisono");
    let mut bench = Command::new(&cli);
    bench
        .args(["bench", "all_reduce,broadcast", "--ranks", "2"])
        .args(["-b", "8", "-e", "64M", "-f", "128"])
        .args([
            "--plugin",
            "host",
            "--against-plugin",
            NAME,
            "--ratio-limit",
            LIMIT,
        ])
        .arg("--plugin-path")
        .arg(library.parent().context("the library lies in a folder")?);
    let watched = watch(&mut bench)?;
    let measured = watched
        .lines
        .iter()
        .any(|line| line.contains("geometric mean"));
    if measured && !dry {
        write_page(&watched.lines, watched.success)?;
    }
    if !watched.success {
        bail!("the copy is slower than the original beyond {LIMIT}, or wrong: see above");
    }
    Ok(())
}

/// What the benchmark said, with where and when.
fn write_page(lines: &[String], passed: bool) -> Result<()> {
    // Paths are of this machine alone.
    let shown = lines.iter().filter(|line| !line.starts_with("#  Plugin "));
    let table: Vec<&str> = shown.map(String::as_str).collect();
    let text = format!(
        "# The host plugin against its copy from outside the workspace\n\n{} on {}.\n\n\
         - commit: {}\n- machine: {}\n- command: `cargo xtask out-of-tree`\n\n\
         `{NAME}` is the host plugin's source under another name, built in a folder of its own against\n\
         `include/` and the SDK alone. Both are measured in the same processes, round against round, who\n\
         goes first alternating; six times all memory is taken anew, the other one first every second\n\
         time. A ratio is the median of the rounds' ratios, with its 95 % interval (bootstrap over\n\
         sessions and rounds). The command fails where an interval lies wholly above {LIMIT}.\n\n\
         ```text\n{}\n```\n",
        if passed { "Passed" } else { "FAILED" },
        today(),
        commit(),
        machine(),
        table.join("\n"),
    );
    let page = root().join("vendor-docs/results/out-of-tree.md");
    fs::write(&page, text).with_context(|| format!("writing {}", page.display()))
}

/// Copies the plugin's sources, renames it, and builds it as a vendor would.
pub fn build(folder: &Path) -> Result<std::path::PathBuf> {
    let sources = root().join("plugins/host");
    let _ = fs::remove_dir_all(folder.join("src"));
    copy_tree(&sources.join("src"), &folder.join("src"))?;
    rename(&folder.join("src"))?;
    let sdk = root().join("hal/sdk");
    let manifest = fs::read_to_string(sources.join("Cargo.toml"))?;
    let manifest = stand_alone(&manifest, &sdk)?;
    fs::write(folder.join("Cargo.toml"), manifest)?;
    let built = Command::new("cargo")
        .current_dir(folder)
        .args(["build", "--release", "--quiet"])
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .status()?;
    if !built.success() {
        bail!(
            "building the copy in {} ended with {built}",
            folder.display()
        );
    }
    let library = folder.join(format!("target/release/libunisono_plugin_{NAME}.so"));
    if !library.exists() {
        bail!("{} was not built", library.display());
    }
    Ok(library)
}

/// Gives the copy another name, and the symbol that a plugin exports.
fn rename(sources: &Path) -> Result<()> {
    let plugin = sources.join("plugin.rs");
    let text = fs::read_to_string(&plugin)?;
    let own = "const NAME: &'static str = \"host\";";
    if !text.contains(own) {
        bail!("{} does not name the plugin by `{own}`", plugin.display());
    }
    fs::write(&plugin, text.replace(own, &own.replace("host", NAME)))?;
    let library = sources.join("lib.rs");
    let text = fs::read_to_string(&library)?;
    fs::write(
        &library,
        format!("{text}\nunisono_plugin::export_plugin!(HostPlugin);\n"),
    )?;
    Ok(())
}

fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// A manifest of its own, with no word of the workspace but the path of the SDK.
fn stand_alone(manifest: &str, sdk: &Path) -> Result<String> {
    let workspace = fs::read_to_string(root().join("Cargo.toml"))?;
    let mut out = String::new();
    out.push_str(&format!(
        "[workspace]\n[package]\nname = \"unisono-plugin-{NAME}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
         [lib]\nname = \"unisono_plugin_{NAME}\"\ncrate-type = [\"cdylib\"]\n\
         [lints.rust]\nunexpected_cfgs = {{ level = \"warn\", check-cfg = ['cfg(loom)', 'cfg(tsan)'] }}\n\
         [dependencies]\nunisono-plugin = {{ path = {:?} }}\n",
        sdk.display().to_string()
    ));
    let dependencies = manifest
        .split("[dependencies]")
        .nth(1)
        .context("the plugin has dependencies")?;
    for line in dependencies
        .lines()
        .skip(1)
        .take_while(|line| !line.starts_with('['))
    {
        let Some(name) = line.split(['.', ' ', '=']).next().filter(|n| !n.is_empty()) else {
            continue;
        };
        if name == "unisono-plugin" || line.trim_start().starts_with('#') {
            continue;
        }
        let prefix = format!("{name} = ");
        let version = workspace.lines().find(|l| l.starts_with(&prefix));
        let version =
            version.with_context(|| format!("{name} is a dependency of the workspace"))?;
        out.push_str(&with_features(version, line));
        out.push('\n');
    }
    Ok(out)
}

/// The workspace's line for a dependency, with the features that the plugin's own line adds.
fn with_features(version: &str, own: &str) -> String {
    let features = |line: &str| {
        let (_, rest) = line.split_once("features = [")?;
        Some(rest.split(']').next()?.to_owned())
    };
    match (features(version), features(own)) {
        (Some(all), Some(more)) => version.replace(&all, &format!("{all}, {more}")),
        _ => version.to_owned(),
    }
}
