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
    let driver = std::fs::read_to_string(DRIVER).unwrap_or_default();
    let there = !driver.is_empty() && Path::new("/dev/nvidia0").exists();
    if !emulated && !there {
        bail!(
            "no GPU: {DRIVER} or /dev/nvidia0 is not there. Run this on a machine with an NVIDIA device \
             and its driver, or add --emulated to see that all of it runs"
        );
    }
    let mut build = vec!["build", "--quiet"];
    if !emulated {
        build.push("--release");
    }
    build.extend(["-p", "unisono-gpu", "-p", "unisono-conformance"]);
    build.extend(["-p", "unisono-plugin-cuda-so"]);
    if emulated {
        build.extend(["-p", "unisono-emulator-cuda", "-p", "unisono-emulator-nvml"]);
        build.extend(["-p", "unisono-emulator-hip", "-p", "unisono-emulator-rsmi"]);
        build.extend(["-p", "unisono-emulator-acl"]);
    }
    run(&mut cargo(&build))?;
    let mut command = Command::new(target(emulated).join("unisono-gpu"));
    command.current_dir(root());
    if emulated {
        command.arg("--emulated");
    }
    let watched = watch(&mut command)?;
    if !watched.success {
        bail!("the ranks on one device failed; what they said is above");
    }
    if emulated {
        println!("emulated: nothing is written to vendor-docs/results");
        return Ok(());
    }
    let page = root().join("vendor-docs/results/gpu.md");
    let driver = driver.lines().next().unwrap_or_default();
    let text = format!(
        "# Ranks on one GPU\n\nCommit {}, {}, on {}.\n\n{driver}\n\n{}\n",
        commit(),
        today(),
        machine(),
        watched.lines.join("\n")
    );
    std::fs::write(&page, text).with_context(|| format!("writing {}", page.display()))?;
    println!("written: {}", page.display());
    Ok(())
}
