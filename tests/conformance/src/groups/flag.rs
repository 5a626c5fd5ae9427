//! SIGNAL and WAIT.

use unisono_abi::{ABORT_STEP, command_kind, stream_can};
use unisono_hal::{Queue, State, Status};

use crate::case::Case;
use crate::check::Check;
use crate::flags::Flags;
use crate::outcome::{Checked, Stop, ensure, refused};
use crate::queue;
use crate::store::Store;

const G: &str = "flag";

pub(super) const CHECKS: &[Check] = &[
    Check::one(
        G,
        "signal",
        "SIGNAL counts, writes its words and then the flag.",
        signal,
    ),
    Check::one(
        G,
        "wait_holds",
        "Nothing behind a WAIT runs before its flag is there.",
        holds,
    ),
    Check::one(
        G,
        "seen",
        "A WAIT's counter tells the last flag value that was read.",
        seen,
    ),
    Check::one(
        G,
        "ahead",
        "A flag that is ahead satisfies as many waits.",
        ahead,
    ),
    Check::one(G, "wraps", "Counters wrap around.", wraps),
    Check::one(
        G,
        "mismatch",
        "A WAIT that finds other words fails and tells them.",
        mismatch,
    ),
    Check::one(
        G,
        "words_not_asked",
        "A WAIT without words compares none.",
        not_asked,
    ),
    Check::one(
        G,
        "released",
        "A flag 2^62 ahead ends a wait, whatever its words.",
        released,
    ),
    Check::one(
        G,
        "two_streams",
        "Two streams hand each other data by flags.",
        two_streams,
    ),
];

fn signal(case: &Case) -> Checked {
    let device = case.streams(command_kind::SIGNAL)?;
    let flags = Flags::new(&device, 2)?;
    let mut stream = device.stream(0)?;
    for n in 1..=5 {
        let mut batch = queue::batch();
        batch.signal(flags.flag(0), flags.counter(0), 0, Some([n, n + 1, n + 2]));
        batch.signal(flags.flag(1), flags.counter(1), 0, None);
        queue::run(&mut stream, &mut batch)?;
        let found = (flags.value(0), flags.counted(0).0, flags.words(0));
        ensure!(
            found == (n, n, [n, n + 1, n + 2]),
            "signal {n} left {found:?}"
        );
        ensure!(
            flags.words(1) == [0; 3],
            "a signal without words wrote some"
        );
        ensure!(flags.value(1) == n, "a signal without words did not count");
    }
    Ok(())
}

fn holds(case: &Case) -> Checked {
    let device = case.streams(command_kind::WAIT)?;
    let (store, flags) = (Store::new(&device, 128)?, Flags::new(&device, 1)?);
    let mut stream = device.stream(0)?;
    for n in 1..=20_u8 {
        store.write(0, &[n; 64])?;
        let mut batch = queue::batch();
        batch.wait(flags.flag(0), flags.counter(0), None);
        batch.copy(store.at() + 64, store.at(), 64);
        queue::submit(&mut stream, &mut batch)?;
        let state = queue::settle(&mut stream)?;
        ensure!(
            state.state == State::Waiting,
            "before the signal it is {:?}",
            state.state
        );
        ensure!(
            store.read(64, 1)? == [n - 1],
            "the copy ran before signal {n}"
        );
        flags.set(0, n.into(), [0; 3]);
        queue::drain(&mut stream)?;
        ensure!(
            store.read(64, 64)? == [n; 64],
            "the copy after signal {n} is wrong"
        );
    }
    Ok(())
}

fn seen(case: &Case) -> Checked {
    let device = case.streams(command_kind::WAIT)?;
    let flags = Flags::new(&device, 1)?;
    let mut stream = device.stream(0)?;
    flags.set(0, 5, [0; 3]);
    let mut batch = queue::batch();
    batch.wait(flags.flag(0), flags.counter(0), None);
    queue::run(&mut stream, &mut batch)?;
    ensure!(
        flags.counted(0) == (1, 5),
        "after one wait on 5: {:?}",
        flags.counted(0)
    );
    Ok(())
}

fn ahead(case: &Case) -> Checked {
    let device = case.streams(command_kind::WAIT)?;
    let flags = Flags::new(&device, 1)?;
    let mut stream = device.stream(0)?;
    flags.set(0, 3, [0; 3]);
    let mut batch = queue::batch();
    for _ in 0..4 {
        batch.wait(flags.flag(0), flags.counter(0), None);
    }
    queue::submit(&mut stream, &mut batch)?;
    let state = queue::settle(&mut stream)?;
    ensure!(
        state.completed == 3,
        "a flag at 3 satisfied {} waits",
        state.completed
    );
    flags.set(0, 4, [0; 3]);
    queue::drain(&mut stream)?;
    Ok(())
}

fn wraps(case: &Case) -> Checked {
    let device = case.streams(command_kind::WAIT)?;
    let flags = Flags::new(&device, 2)?;
    let mut stream = device.stream(0)?;
    let start = u64::MAX - 2;
    flags.set(0, start, [0; 3]);
    flags.set_counter(0, start);
    flags.set_counter(1, start);
    let mut batch = queue::batch();
    for _ in 0..6 {
        batch.signal(flags.flag(0), flags.counter(0), 0, None);
        batch.wait(flags.flag(0), flags.counter(1), None);
    }
    queue::run(&mut stream, &mut batch)?;
    let found = (flags.value(0), flags.counted(1).0);
    ensure!(found == (3, 3), "six signals from 2^64 - 3 left {found:?}");
    Ok(())
}

fn words_checked(case: &Case) -> Checked<unisono_hal::Device> {
    let device = case.streams(command_kind::WAIT)?;
    if device.info().streams_can(stream_can::CHECKS_WORDS) {
        Ok(device)
    } else {
        Err(Stop::unsupported("its streams compare no words"))
    }
}

fn mismatch(case: &Case) -> Checked {
    let device = words_checked(case)?;
    for late in [false, true] {
        let flags = Flags::new(&device, 1)?;
        let mut stream = device.stream(0)?;
        let mut batch = queue::batch();
        batch.wait(flags.flag(0), flags.counter(0), Some([7, 8, 9]));
        if !late {
            flags.set(0, 1, [7, 8, 10]);
        }
        queue::submit(&mut stream, &mut batch)?;
        if late {
            queue::settle(&mut stream)?;
            flags.set(0, 1, [7, 8, 10]);
        }
        let mut found = None;
        queue::until("a mismatch", || {
            match stream.poll(queue::BUDGET) {
                Ok(state) => ensure!(state.state != State::Idle, "other words satisfied a wait"),
                Err(error) => found = Some(error),
            }
            Ok(found.is_some())
        })?;
        let error = found.ok_or_else(|| Stop::failed("no error"))?;
        ensure!(!error.message.is_empty(), "a mismatch has no message");
        ensure!(
            error.status == Status::Mismatch,
            "it fails as {}: {error}",
            error.status
        );
        ensure!(
            error.words == [7, 8, 10],
            "it tells the words {:?}",
            error.words
        );
        let again = stream.poll(queue::BUDGET);
        refused("a poll after a failure", again, &[])?;
        let mut more = queue::batch();
        more.signal(flags.flag(0), flags.counter(0), 0, None);
        refused(
            "more commands after a failure",
            stream.submit(&mut more),
            &[],
        )?;
        let state = stream.state()?.state;
        ensure!(state == State::Failed, "a stream that failed is {state:?}");
    }
    Ok(())
}

fn not_asked(case: &Case) -> Checked {
    let device = words_checked(case)?;
    let flags = Flags::new(&device, 1)?;
    let mut stream = device.stream(0)?;
    flags.set(0, 2, [7, 8, 10]);
    let mut batch = queue::batch();
    batch.wait(flags.flag(0), flags.counter(0), None);
    batch.wait(flags.flag(0), flags.counter(0), Some([7, 8, 10]));
    queue::run(&mut stream, &mut batch)
}

fn released(case: &Case) -> Checked {
    let device = words_checked(case)?;
    for late in [false, true] {
        let flags = Flags::new(&device, 1)?;
        let mut stream = device.stream(0)?;
        let mut batch = queue::batch();
        for _ in 0..3 {
            batch.wait(flags.flag(0), flags.counter(0), Some([1, 2, 3]));
        }
        if !late {
            flags.add(0, ABORT_STEP);
        }
        queue::submit(&mut stream, &mut batch)?;
        if late {
            queue::settle(&mut stream)?;
            flags.add(0, ABORT_STEP);
        }
        queue::drain(&mut stream)?;
    }
    Ok(())
}

fn two_streams(case: &Case) -> Checked {
    const ROUNDS: u64 = 2000;
    let device = case.streams(command_kind::WAIT)?;
    let (store, flags) = (Store::new(&device, 128)?, Flags::new(&device, 4)?);
    let mut streams = [device.stream(0)?, device.stream(0)?];
    // 0 fills and signals; 1 waits, copies back and gives the place back.
    let mut batches = [queue::batch(), queue::batch()];
    batches[0].copy(store.at() + 64, store.at(), 8);
    batches[0].signal(flags.flag(0), flags.counter(0), 0, Some([1; 3]));
    batches[0].wait(flags.flag(1), flags.counter(1), None);
    batches[1].wait(flags.flag(0), flags.counter(2), Some([1; 3]));
    batches[1].copy(store.at() + 8, store.at() + 64, 8);
    batches[1].signal(flags.flag(1), flags.counter(3), 0, None);
    for n in 0..ROUNDS {
        store.write(0, &n.to_le_bytes())?;
        for (stream, batch) in streams.iter_mut().zip(&mut batches) {
            batch.rewind();
            queue::submit(stream, batch)?;
        }
        queue::until("a round of two streams", || {
            let mut idle = true;
            for stream in &mut streams {
                idle &= stream.poll(queue::BUDGET)?.state == State::Idle;
            }
            Ok(idle)
        })?;
        ensure!(
            store.read(8, 8)? == n.to_le_bytes(),
            "round {n} gave other data"
        );
    }
    Ok(())
}
