//! What a clean run under ThreadSanitizer is worth: the plugins that are loaded are instrumented,
//! and a race in one of them is reported.
#![cfg(tsan)]
#![allow(unsafe_code, reason = "a race is planted by giving raw addresses")]

use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::AtomicU32;

use unisono::hal::{Batch, Loader, Queue, Reduce, State};
use unisono_abi::{dtype, reduction, sanitizer};

/// In the process that races: which command does.
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
    if let Ok(command) = std::env::var(PLANT) {
        race(&command);
        return;
    }
    for command in ["copy", "reduce"] {
        let output = Command::new(std::env::current_exe().expect("the path of this binary"))
            .args(["--exact", "a_race_in_the_host_plugin_is_reported"])
            .env(PLANT, command)
            .env("TSAN_OPTIONS", format!("exitcode={RACED}"))
            .output()
            .expect("a process that races");
        let report = String::from_utf8_lossy(&output.stderr);
        assert!(
            report.contains("WARNING: ThreadSanitizer: data race")
                && report.contains("unisono_plugin_host"),
            "no race of a {command} was reported: {report}"
        );
        assert_eq!(output.status.code(), Some(RACED), "{report}");
        println!("soak: a planted race of a {command} in the host plugin: reported");
    }
}

/// Two streams, each polled by a thread of its own, write one place with nothing between them.
fn race(command: &str) {
    const COUNT: usize = 10_000;
    static RESULT: [AtomicU32; COUNT] = [const { AtomicU32::new(0) }; COUNT];
    let plugin = Loader::default().load("host").expect("the plugin");
    let instance = plugin.instantiate(&[]).expect("an instance");
    let device = instance.open(0).expect("the device");
    let input = vec![1_u32; COUNT];
    let (from, to) = (input.as_ptr() as u64, RESULT.as_ptr() as u64);
    let begin = Barrier::new(2);
    let run = || {
        let mut stream = device.stream(0).expect("a stream");
        // SAFETY: both addresses are good for all elements to the end of the process and of the
        // scope. That the other stream writes the result too breaks the contract: it is what shall
        // be reported, in a process that does nothing else, of values that are the same and that
        // nobody reads.
        let mut batch = unsafe { Batch::new() };
        match command {
            "copy" => batch.copy(to, from, (COUNT * 4) as u64),
            _ => batch.reduce(&Reduce {
                dst: to,
                a: from,
                b: from,
                elements: COUNT as u64,
                repeat: 1,
                dst_stride: 0,
                a_stride: 0,
                b_stride: 0,
                dtype: dtype::U32,
                reduction: reduction::SUM,
                divisor: 0,
                streaming: false,
            }),
        }
        begin.wait();
        stream.submit(&mut batch).expect("a submission");
        let polled = stream.poll(u64::MAX).expect("a poll");
        assert_eq!(polled.state, State::Idle);
        // Freed later: that takes locks, which would order the two.
        stream
    };
    std::thread::scope(|scope| {
        let threads = [scope.spawn(run), scope.spawn(run)];
        let _streams = threads.map(|thread| thread.join().expect("no panic"));
    });
}
