//! What a clean run under ThreadSanitizer is worth: the plugins that are loaded are instrumented,
//! and a race in one of them is reported.
#![cfg(tsan)]
#![allow(unsafe_code, reason = "a race is planted by giving raw addresses")]

use std::process::Command;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use unisono::hal::Loader;
use unisono::plan::Op;
use unisono::{DataType, ReduceOp};
use unisono_abi::sanitizer;
use unisono_tests::{threads, watchdog};

/// Set in the process that races.
const PLANT: &str = "UNISONO_TEST_PLANT";

/// What the sanitizer's runtime ends a process with that raced.
const RACED: i32 = 66;

#[test]
fn the_plugins_are_instrumented() {
    for name in ["host", "tcp"] {
        let plugin = Loader::default().load(name).expect("the plugin");
        let path = plugin.path().expect("it is loaded, not linked in");
        assert_eq!(
            plugin.facts().sanitizer,
            sanitizer::THREAD,
            "{} is not instrumented",
            path.display()
        );
        println!("soak: plugin {name}: loaded and instrumented");
    }
}

#[test]
fn a_race_in_the_host_plugin_is_reported() {
    if std::env::var_os(PLANT).is_some() {
        race();
        return;
    }
    let output = Command::new(std::env::current_exe().expect("the path of this binary"))
        .args(["--exact", "a_race_in_the_host_plugin_is_reported"])
        .env(PLANT, "1")
        .env("TSAN_OPTIONS", format!("exitcode={RACED}"))
        .output()
        .expect("a process that races");
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(
        report.contains("WARNING: ThreadSanitizer: data race")
            && report.contains("unisono_plugin_host"),
        "no race was reported: {report}"
    );
    assert_eq!(output.status.code(), Some(RACED), "{report}");
    println!("soak: a race planted in the host plugin: reported");
}

/// Two ranks put their results in one place.
fn race() {
    const COUNT: usize = 100_000;
    static RESULT: [AtomicU32; COUNT] = [const { AtomicU32::new(0) }; COUNT];
    let _limit = watchdog("a planted race", Duration::from_secs(120));
    threads(
        2,
        |_| {},
        |world| {
            let (input, output) = (vec![1_u32; COUNT], RESULT.as_ptr() as u64);
            for _ in 0..20 {
                // SAFETY: both addresses are good for all elements. That the other rank writes the
                // output too breaks the contract: it is what shall be reported, in a process that
                // does nothing else, of values that are the same and that nobody reads.
                let called = unsafe {
                    world.call_raw(
                        Op::AllReduce,
                        input.as_ptr() as u64,
                        output,
                        COUNT as u64,
                        DataType::U32,
                        Some(ReduceOp::Sum),
                    )
                };
                called.expect("an all_reduce");
            }
        },
    );
}
