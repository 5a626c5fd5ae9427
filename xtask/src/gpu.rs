//! The cuda plugin on a real device, and the page with what was measured.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::machine::{commit, machine, today};
use crate::run::{cargo, run, watch};
use crate::{root, target};

/// Says which driver there is.
const DRIVER: &str = "/proc/driver/nvidia/version";

/// Builds, and runs `unisono-gpu` on the first device; writes vendor-docs/results/gpu.md. On the emulator
/// all of it runs, too, and nothing is written.
pub fn gpu(emulated: bool) -> Result<()> {
    let driver = if emulated { String::new() } else { driver()? };
    let mut build = vec!["build", "--quiet"];
    if !emulated {
        build.push("--release");
    }
    build.extend(["-p", "unisono-gpu", "-p", "unisono-conformance"]);
    build.extend(["-p", "unisono-plugin-cuda-so"]);
    if emulated {
        build.extend(["-p", "unisono-emulator-cuda", "-p", "unisono-emulator-nvml"]);
        build.extend(["-p", "unisono-emulator-hip", "-p", "unisono-emulator-rsmi"]);
        build.extend(["-p", "unisono-emulator-amdsmi"]);
        build.extend(["-p", "unisono-emulator-acl"]);
    }
    run(&mut cargo(&build))?;
    let mut command = Command::new(target(emulated).join("unisono-gpu"));
    command.current_dir(root());
    if emulated {
        command.arg("--emulated");
        measured(&mut command)?;
        println!("emulated: nothing is written to vendor-docs/results");
        return Ok(());
    }
    let page = root().join("vendor-docs/results/gpu.md");
    write(&page, &commit(), &driver, &measured(&mut command)?)
}

/// Runs what was built elsewhere, of a commit, and writes the page beside it.
pub fn built(folder: &Path, of: Option<String>) -> Result<()> {
    let driver = driver()?;
    let folder = folder.canonicalize();
    let folder = folder.context("the folder with what was built")?;
    let lines = measured(&mut Command::new(folder.join("unisono-gpu")))?;
    let of = of.unwrap_or_else(commit);
    write(&folder.join("gpu.md"), &of, &driver, &lines)
}

/// What the driver says of itself; an error where there is no device.
fn driver() -> Result<String> {
    let driver = std::fs::read_to_string(DRIVER).unwrap_or_default();
    if driver.is_empty() || !Path::new("/dev/nvidia0").exists() {
        bail!(
            "no GPU: {DRIVER} or /dev/nvidia0 is not there. Run this on a machine with an NVIDIA device \
             and its driver, or add --emulated to see that all of it runs"
        );
    }
    Ok(driver)
}

/// Runs it; what it printed.
fn measured(command: &mut Command) -> Result<Vec<String>> {
    let watched = watch(command)?;
    if !watched.success {
        bail!("the ranks on one device failed; what they said is above");
    }
    Ok(watched.lines)
}

fn write(page: &Path, commit: &str, driver: &str, lines: &[String]) -> Result<()> {
    let text = format!(
        "# Ranks on one GPU\n\nCommit {commit}, {}, on {}.\n\n{}\n\n{}\n",
        today(),
        machine(),
        driver.lines().next().unwrap_or_default(),
        lines.join("\n")
    );
    std::fs::write(page, text).with_context(|| format!("writing {}", page.display()))?;
    println!("written: {}", page.display());
    Ok(())
}
