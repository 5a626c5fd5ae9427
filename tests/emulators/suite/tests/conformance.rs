//! The conformance suite, through the vendors' plugins, on emulated machines.

use unisono_emulated_tests::{Emulated, conforms};

#[test]
fn cuda_on_eight_h100() {
    let test = "cuda_on_eight_h100";
    let Some(machine) = Emulated::new(test, "h100x8", |text| text) else {
        return;
    };
    conforms(&machine, "cuda", None, &[]);
}

/// An older driver: no memory apart from addresses, no pools; and a host address is not the device's.
#[test]
fn cuda_on_an_older_driver() {
    let test = "cuda_on_an_older_driver";
    let lacking = |text: String| text + "lacks: [virtual_memory, pools, host_pointer, dmabuf]\n";
    let Some(machine) = Emulated::new(test, "h100x8", lacking) else {
        return;
    };
    // Such a driver's handle keeps no memory alive that its maker frees.
    let besides = "
unsupported:
  device/flush: this driver has none
fails:
  share/alive_after_export: a handle keeps nothing alive
";
    conforms(&machine, "cuda", Some(besides), &[]);
}

/// Everything late, in a few queues; with graphs.
#[test]
fn cuda_with_every_operation_delayed() {
    let test = "cuda_with_every_operation_delayed";
    let slow = |text: String| text + "delays: {one_in: 6, longest_us: 60}\n";
    let Some(machine) = Emulated::new(test, "h100x8", slow) else {
        return;
    };
    conforms(&machine, "cuda", None, &["graphs=true"]);
}

/// As an operator has it who wants no kernels that wait.
#[test]
fn cuda_with_each_step_by_itself() {
    let test = "cuda_with_each_step_by_itself";
    let Some(machine) = Emulated::new(test, "h100x8", |text| text) else {
        return;
    };
    conforms(&machine, "cuda", None, &["together=false"]);
}

#[test]
fn rocm_on_eight_mi300x() {
    let test = "rocm_on_eight_mi300x";
    let Some(machine) = Emulated::new(test, "mi300x8", |text| text) else {
        return;
    };
    conforms(&machine, "rocm", None, &[]);
}

/// A runtime of ROCm 5, on which the host's addresses are not the device's; flags raised by kernels.
#[test]
fn rocm_on_an_older_runtime() {
    let test = "rocm_on_an_older_runtime";
    let lacking = |text: String| text + "lacks: [host_pointer, management]\n";
    let Some(machine) = Emulated::new(test, "mi250x4", lacking) else {
        return;
    };
    conforms(&machine, "rocm", None, &["write_by_kernel=true"]);
}

/// Everything late, in a few queues; uncached memory, copies by the compute units, graphs.
#[test]
fn rocm_with_every_operation_delayed() {
    let test = "rocm_with_every_operation_delayed";
    let slow = |text: String| text + "delays: {one_in: 6, longest_us: 60}\n";
    let Some(machine) = Emulated::new(test, "mi300x8", slow) else {
        return;
    };
    conforms(
        &machine,
        "rocm",
        None,
        &["uncached=true", "dma_copies=false", "graphs=true"],
    );
}
