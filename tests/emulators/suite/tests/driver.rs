//! A machine without the driver, or with one that does not start: a clear answer, and no harm.

use std::path::PathBuf;
use std::process::Command;

use unisono_emulated_tests::Emulated;

/// What the conformance program says when it asks for an instance.
fn answer(environment: &[(&str, String)], without: Option<&str>) -> String {
    let of = |name: &str| environment.iter().find(|(key, _)| *key == name);
    let built = of("UNISONO_PLUGIN_PATH").map(|(_, path)| PathBuf::from(path));
    let built = built.expect("the folder of plugins");
    let mut command = Command::new(built.join("unisono-conformance"));
    command
        .arg(built.join("libunisono_plugin_cuda.so"))
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

#[test]
fn no_driver_is_said_clearly() {
    let test = "no_driver_is_said_clearly";
    let Some(machine) = Emulated::new(test, "h100x8", |text| text) else {
        return;
    };
    let environment = machine.environment();
    let said = answer(&environment, Some("LD_LIBRARY_PATH"));
    if std::path::Path::new("/proc/driver/nvidia").exists() {
        unisono_tests::skip(test, "this machine has a driver");
        return;
    }
    assert!(said.contains("no driver: none of libcuda.so.1"), "{said}");
    assert!(!said.contains("signal"), "the process lives: {said}");
    // The same libraries, with no device behind them.
    let said = answer(&environment, Some(unisono_emulator::BOX));
    assert!(
        said.contains("does not start: cuInit: CUDA_ERROR_NO_DEVICE"),
        "{said}"
    );
    // And with all of it.
    let said = answer(&environment, None);
    assert!(said.contains("1 pass"), "{said}");
}
