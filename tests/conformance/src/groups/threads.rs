//! Spot checks of the thread rules.

use std::time::Duration;

use unisono_abi::command_kind;
use unisono_hal::State;

use super::batch::command;
use super::copy::pattern;
use crate::case::Case;
use crate::check::Check;
use crate::flags::Flags;
use crate::outcome::{Checked, Stop, ensure};
use crate::queue;
use crate::raw::RawStream;
use crate::store::Store;

const G: &str = "threads";

pub(super) const CHECKS: &[Check] = &[
    Check::one(
        G,
        "streams_at_once",
        "Streams of one device run on several threads at once.",
        at_once,
    ),
    Check::one(
        G,
        "query_while_polled",
        "Any thread asks for the state while another polls.",
        queried,
    ),
    Check::one(
        G,
        "moved",
        "A stream may be driven by one thread after another.",
        moved,
    ),
    Check::one(
        G,
        "signals",
        "A thread that the plugin starts takes no signals of the process.",
        signals,
    ),
];

fn at_once(case: &Case) -> Checked {
    let device = case.streams(command_kind::COPY)?;
    let work = |salt: u64| -> Checked {
        let store = Store::new(&device, 3 * 4096)?;
        let mut stream = device.stream(salt as i64)?;
        for round in 0..300 {
            let bytes = pattern(4096, salt * 1000 + round);
            store.write(0, &bytes)?;
            let mut batch = queue::batch();
            batch.copy(store.at() + 4096, store.at(), 4096);
            batch.copy(store.at() + 8192, store.at() + 4096, 4096);
            queue::run(&mut stream, &mut batch)?;
            ensure!(
                store.read(8192, 4096)? == bytes,
                "thread {salt}, round {round}: wrong bytes"
            );
        }
        Ok(())
    };
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|salt| scope.spawn(move || work(salt))).collect();
        for thread in threads {
            thread
                .join()
                .map_err(|_| Stop::failed("a thread panicked"))??;
        }
        Ok(())
    })
}

fn queried(case: &Case) -> Checked {
    const ROUNDS: u64 = 500;
    let device = case.streams(command_kind::COPY)?;
    let store = Store::new(&device, 128)?;
    let copy = [store.at() + 64, store.at(), 64, 1, 0, 0];
    let words = command(command_kind::COPY, 0, &copy);
    let mut stream = RawStream::new(case)?;
    let asked = stream.while_asked(|stream| {
        for _ in 0..ROUNDS {
            let (status, accepted, message) = stream.submit(&words, 1)?;
            ensure!(status >= 0 && accepted == 1, "status {status}: {message}");
            queue::until("a copy", || stream.is_idle())?;
        }
        // On a busy machine the other thread may come late.
        std::thread::sleep(Duration::from_millis(20));
        Ok(())
    })?;
    ensure!(asked > 0, "the other thread never asked");
    Ok(())
}

fn moved(case: &Case) -> Checked {
    let device = case.streams(command_kind::WAIT)?;
    let flags = Flags::new(&device, 1)?;
    let mut stream = device.stream(0)?;
    for n in 1..=20 {
        let mut batch = queue::batch();
        batch.wait(flags.flag(0), flags.counter(0), None);
        queue::submit(&mut stream, &mut batch)?;
        queue::settle(&mut stream)?;
        flags.set(0, n, [0; 3]);
        stream = std::thread::spawn(move || -> Checked<_> {
            let state = queue::drain(&mut stream)?;
            ensure!(state.state == State::Idle, "it is {:?}", state.state);
            Ok(stream)
        })
        .join()
        .map_err(|_| Stop::failed("a thread panicked"))??;
    }
    Ok(())
}

/// Signals that a thread leaves to others, from /proc.
fn blocked(task: &std::path::Path) -> Checked<u64> {
    let status = std::fs::read_to_string(task.join("status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
    let text = line.ok_or_else(|| Stop::failed("no SigBlk in /proc"))?;
    u64::from_str_radix(text.trim(), 16).map_err(|e| Stop::failed(e.to_string()))
}

fn tasks() -> Checked<Vec<std::path::PathBuf>> {
    let tasks = std::fs::read_dir("/proc/self/task")?;
    Ok(tasks.filter_map(|task| Some(task.ok()?.path())).collect())
}

fn signals(case: &Case) -> Checked {
    const TERM_INT_USR1: u64 = 1 << 14 | 1 << 1 | 1 << 9;
    let before = tasks()?;
    let device = case.streams(command_kind::COPY)?;
    let stream = device.stream(0)?;
    // A new thread blocks all signals while the system's library sets it up.
    std::thread::sleep(Duration::from_millis(50));
    for task in tasks()?.iter().filter(|task| !before.contains(task)) {
        let blocked = blocked(task)?;
        ensure!(
            blocked & TERM_INT_USR1 == TERM_INT_USR1,
            "a thread of the plugin takes signals of the process (SigBlk {blocked:016x})"
        );
    }
    drop(stream);
    Ok(())
}
