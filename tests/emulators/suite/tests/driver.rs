//! A machine without the driver, or with one that does not start: a clear answer, and no harm.

use unisono_emulated_tests::{Emulated, answer};

#[test]
fn no_driver_is_said_clearly() {
    let test = "no_driver_is_said_clearly";
    let Some(machine) = Emulated::new(test, "h100x8", |text| text) else {
        return;
    };
    let environment = machine.environment();
    let said = answer("cuda", &environment, Some("LD_LIBRARY_PATH"));
    if std::path::Path::new("/proc/driver/nvidia").exists() {
        unisono_tests::skip(test, "this machine has a driver, and silicon behind it");
        return;
    }
    assert!(said.contains("no driver: none of libcuda.so.1"), "{said}");
    assert!(!said.contains("signal"), "the process lives: {said}");
    // The same libraries, with no device behind them.
    let said = answer("cuda", &environment, Some(unisono_emulator::BOX));
    assert!(
        said.contains("does not start: cuInit: CUDA_ERROR_NO_DEVICE"),
        "{said}"
    );
    // And with all of it.
    let said = answer("cuda", &environment, None);
    assert!(said.contains("1 pass"), "{said}");
}

/// Which library it is, and of what version, is what an operator asks first.
#[test]
fn the_librarys_version_is_told() {
    let test = "the_librarys_version_is_told";
    for (name, plugin, told) in [
        ("h100x8", "cuda", " for CUDA 12.8, 8 devices"),
        ("mi300x8", "rocm", " of HIP 6.3.42134, 8 devices"),
        ("ascend910bx8", "ascend", "libascendcl.so 1.8.0, 8 devices"),
    ] {
        let Some(machine) = Emulated::new(test, name, |text| text) else {
            return;
        };
        for command in [&["plugin", "check", plugin][..], &["plugin", "list"]] {
            let text = machine.command(command);
            assert!(text.contains(told), "{command:?}: {text}");
        }
    }
}
