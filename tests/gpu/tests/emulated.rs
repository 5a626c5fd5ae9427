//! What `cargo xtask gpu` measures it measures on an emulated device too, to the end.

use std::process::Command;
use std::time::Duration;

use unisono_emulated_tests::Emulated;
use unisono_tests::watchdog;

#[test]
fn all_is_measured_on_an_emulated_device() {
    let test = "all_is_measured_on_an_emulated_device";
    // Where the emulator's kernels cannot be compiled it is skipped, and says so.
    let Some(machine) = Emulated::new(test, "h100x8", |text| text + "queues: 32\n") else {
        return;
    };
    let _limit = watchdog(test, Duration::from_secs(600));
    // `cargo xtask gpu --emulated` has eight as well.
    let ranks = [2, 4];
    // What it runs before, the conformance suite, has tests of its own.
    let program = Command::new(env!("CARGO_BIN_EXE_unisono-gpu"))
        .args(["--measure", "--emulated"])
        .args(ranks.iter().map(|ranks| format!("--ranks={ranks}")))
        .env("CUDA_DEVICE_MAX_CONNECTIONS", "32")
        .envs(machine.environment())
        .output()
        .expect("the program starts");
    let page = String::from_utf8_lossy(&program.stdout);
    let said = String::from_utf8_lossy(&program.stderr);
    assert!(program.status.success(), "{page}\n{said}");
    for part in [
        "An **emulated** ",
        "all elements right",
        "a copy of 4 KiB",
        "| all_gather |",
        "is hidden.",
    ] {
        assert!(page.contains(part), "no {part:?} in\n{page}");
    }
    for ranks in ranks {
        for how in [
            "threads",
            "threads, a graph of one call",
            "threads, one call of a graph of many",
            "processes",
        ] {
            let row = format!("| {ranks} | {how} | ");
            assert!(page.contains(&row), "no {row:?} in\n{page}");
        }
    }
}
