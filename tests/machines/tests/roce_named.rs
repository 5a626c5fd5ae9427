//! The suites of the virtual machine on devices by name (`tests/roce-vm/run on`), as somebody runs them
//! who has cards: here with the stand-in for libibverbs. A file of its own: the stand-in's devices are
//! named by the process's environment.

mod common;

#[path = "../../../plugins/roce/tests/common/devices.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod devices;

use devices::Devices;

#[test]
fn the_suites_run_on_devices_by_name() {
    let _devices = Devices::ethernet(2);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().to_str().expect("a plain path");
    let library = format!("library={}", devices::library());
    common::script(
        "the_suites_run_on_devices_by_name",
        "roce-vm/run",
        &["on", "fake0", "fake1"],
        &[
            ("UNISONO_ROCE_VM_SUITE", "conformance collectives"),
            ("UNISONO_ROCE_VM_FOLDER", folder),
            ("UNISONO_ROCE_PARAMS", &library),
        ],
    );
}
