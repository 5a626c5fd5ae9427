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
