//! The conformance suite, through the vendors' plugins, on emulated machines.

use std::process::Command;

use unisono_emulated_tests::Emulated;

/// Runs the suite's program under a machine's environment: the vendor's libraries are found when a
/// process starts.
fn conforms(machine: &Emulated, plugin: &str, unsupported: &str, params: &[&str]) {
    let built = std::path::PathBuf::from(&machine.environment()[1].1);
    let folder = tempfile::tempdir().expect("a folder");
    let expected = folder.path().join("expected.yaml");
    std::fs::write(&expected, unsupported).expect("a file");
    let mut command = Command::new(built.join("unisono-conformance"));
    command
        .arg(built.join(format!("libunisono_plugin_{plugin}.so")))
        .arg("--expect")
        .arg(&expected)
        .envs(machine.environment());
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

const CUDA: &str = "
unsupported:
  memory/bell: a device rings no bells
  share/bells: a device rings no bells
  reduce/f8e4m3fn: no 8-bit floats yet
  reduce/f8e5m2: no 8-bit floats yet
  reduce/scale: no SCALE yet
  reduce/call: the processor cannot touch its memory
  batch/budget: poll moves nothing
  report/address: its links are mapped
  link: its links are mapped
  flow: its links are mapped
  fault: its links are mapped
  link_sleep: its links are mapped
  leaks/links: its links are mapped
  leaks/unconnected_links: its links are mapped
";

#[test]
fn cuda_on_eight_h100() {
    let test = "cuda_on_eight_h100";
    let Some(machine) = Emulated::new(test, "h100x8", |text| text) else {
        return;
    };
    conforms(&machine, "cuda", CUDA, &[]);
}

/// An older driver: no memory apart from addresses, no pools; and a host address is not the device's.
#[test]
fn cuda_on_an_older_driver() {
    let test = "cuda_on_an_older_driver";
    let lacking = |text: String| text + "lacks: [virtual_memory, pools, host_pointer, dmabuf]\n";
    let Some(machine) = Emulated::new(test, "h100x8", lacking) else {
        return;
    };
    // A handle keeps no memory alive that its maker frees.
    let older = CUDA.to_owned()
        + "  device/flush: this driver has none
fails:
  share/alive_after_export: a handle keeps nothing alive
";
    conforms(&machine, "cuda", &older, &[]);
}

/// Everything late, in a few queues.
#[test]
fn cuda_with_every_operation_delayed() {
    let test = "cuda_with_every_operation_delayed";
    let slow = |text: String| text + "delays: {one_in: 3, longest_us: 60}\n";
    let Some(machine) = Emulated::new(test, "h100x8", slow) else {
        return;
    };
    conforms(&machine, "cuda", CUDA, &[]);
}
