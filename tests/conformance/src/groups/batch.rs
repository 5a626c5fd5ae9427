//! Batches: what is taken, counted, refused, replayed, and for how long a call may run.

use std::time::{Duration, Instant};

use unisono_abi::{command_kind, stream_can};
use unisono_hal::{Queue, State};

use super::copy::pattern;
use crate::case::Case;
use crate::check::Check;
use crate::flags::Flags;
use crate::outcome::{Checked, Stop, ensure};
use crate::queue;
use crate::raw::RawStream;
use crate::store::Store;

const G: &str = "batch";

pub(super) const CHECKS: &[Check] = &[
    Check::one(
        G,
        "counts",
        "A queue tells what it accepted and what is complete.",
        counts,
    ),
    Check::one(
        G,
        "partly_taken",
        "Of a batch that is too long the first commands are taken.",
        partly,
    ),
    Check::one(
        G,
        "replay",
        "One batch, played 100 times, does the same each time.",
        replay,
    ),
    Check::one(
        G,
        "submit_never_blocks",
        "A queue that waits refuses more and does not block.",
        never_blocks,
    ),
    Check::one(
        G,
        "budget",
        "A poll does about its budget, and says that there is more.",
        budget,
    ),
    Check::one(
        G,
        "longer_commands",
        "The tail of a longer command is left unread.",
        longer,
    ),
    Check::one(G, "empty", "An empty batch is taken.", empty),
];

fn counts(case: &Case) -> Checked {
    let device = case.streams(command_kind::COPY)?;
    let store = Store::new(&device, 128)?;
    let mut stream = device.stream(0)?;
    let state = stream.poll(queue::BUDGET)?;
    ensure!(
        (state.state, state.accepted, state.completed) == (State::Idle, 0, 0),
        "a new stream is {state:?}"
    );
    let mut batch = queue::batch();
    for n in 1..=10_u64 {
        batch.copy(store.at(), store.at() + 64, 64);
        batch.rewind();
        queue::submit(&mut stream, &mut batch)?;
        let state = queue::drain(&mut stream)?;
        let total = n * (n + 1) / 2;
        ensure!(
            (state.accepted, state.completed) == (total, total),
            "after {total} commands the poll tells {state:?}"
        );
        let asked = stream.state()?;
        ensure!(
            (asked.state, asked.accepted, asked.completed) == (State::Idle, total, total),
            "after {total} commands query tells {asked:?}"
        );
    }
    Ok(())
}

fn partly(case: &Case) -> Checked {
    // More than the longest queue of a vendor's that is known here: ROCm's, of 16,384 packets unless ROC_AQL_QUEUE_SIZE
    // says otherwise.
    const MANY: u64 = 40_000;
    let device = case.streams(command_kind::COPY)?;
    let store = Store::new(&device, 8 * (MANY + 1))?;
    store.write(0, &pattern(8, 9))?;
    let mut stream = device.stream(0)?;
    let mut batch = queue::batch();
    for i in 0..MANY {
        batch.copy(store.at() + 8 * (i + 1), store.at() + 8 * i, 8);
    }
    let before = batch.len();
    let taken = queue::prompt("submit", || stream.submit(&mut batch))?;
    ensure!(
        taken as usize == before - batch.len(),
        "the count of taken commands is wrong"
    );
    queue::submit(&mut stream, &mut batch)?;
    let state = queue::drain(&mut stream)?;
    ensure!(
        state.accepted == MANY,
        "{} of {MANY} commands were accepted",
        state.accepted
    );
    ensure!(
        store.read(8 * MANY, 8)? == pattern(8, 9),
        "a command was lost or came twice"
    );
    Ok(())
}

fn replay(case: &Case) -> Checked {
    let device = case.streams(command_kind::COPY)?;
    let (store, flags) = (Store::new(&device, 4096)?, Flags::new(&device, 2)?);
    let mut stream = device.stream(0)?;
    let mut batch = queue::batch();
    // Data, a signal to itself, the wait for it, data again.
    batch.copy(store.at() + 1024, store.at(), 1024);
    batch.signal(flags.flag(0), flags.counter(0), 0, Some([1, 2, 3]));
    batch.wait(flags.flag(0), flags.counter(1), Some([1, 2, 3]));
    batch.copy(store.at() + 2048, store.at() + 1024, 1024);
    for round in 0..100 {
        let bytes = pattern(1024, round);
        store.write(0, &bytes)?;
        batch.rewind();
        queue::run(&mut stream, &mut batch).map_err(|e| e.at(format!("round {round}")))?;
        ensure!(
            store.read(2048, 1024)? == bytes,
            "round {round} gave other bytes"
        );
        let counted = (flags.counted(0).0, flags.counted(1).0, flags.value(0));
        let n = round + 1;
        ensure!(
            counted == (n, n, n),
            "after round {n} the counters are {counted:?}"
        );
    }
    Ok(())
}

fn never_blocks(case: &Case) -> Checked {
    let device = case.streams(command_kind::WAIT)?;
    let (store, flags) = (Store::new(&device, 128)?, Flags::new(&device, 1)?);
    let mut stream = device.stream(0)?;
    let mut batch = queue::batch();
    batch.wait(flags.flag(0), flags.counter(0), None);
    queue::submit(&mut stream, &mut batch)?;
    let mut filler = queue::batch();
    for _ in 0..10_000 {
        filler.copy(store.at(), store.at() + 64, 8);
    }
    let mut taken = 1_u64;
    for _ in 0..1000 {
        filler.rewind();
        let now = queue::prompt("submit to a queue that waits", || {
            stream.submit(&mut filler)
        })?;
        let state = queue::prompt("poll of a queue that waits", || stream.poll(queue::BUDGET))?;
        ensure!(
            state.completed == 0,
            "a command behind the wait is complete"
        );
        ensure!(
            state.state == State::Waiting,
            "a queue that waits is {:?}",
            state.state
        );
        taken += u64::from(now);
        if now == 0 {
            break;
        }
    }
    flags.set(0, 1, [0; 3]);
    let state = queue::drain(&mut stream)?;
    ensure!(
        state.completed == taken,
        "{taken} were taken, {} are complete",
        state.completed
    );
    Ok(())
}

fn budget(case: &Case) -> Checked {
    let device = case.streams(command_kind::COPY)?;
    if !device.info().streams_can(stream_can::POLLED) {
        return Err(Stop::unsupported("its streams do no work in poll"));
    }
    let len = 16 << 20;
    let (src, dst) = (Store::new(&device, len)?, Store::new(&device, len)?);
    let bytes = pattern(len as usize, 6);
    src.write(0, &bytes)?;
    let mut stream = device.stream(0)?;
    let mut batch = queue::batch();
    batch.copy(dst.at(), src.at(), len);
    queue::submit(&mut stream, &mut batch)?;
    let small = 64 << 10;
    let mut polls = 0_u64;
    queue::until("a copy by small polls", || {
        let state = stream.poll(small)?;
        polls += 1;
        ensure!(
            matches!(state.state, State::Ready | State::Idle),
            "in the middle of a copy the stream is {:?}",
            state.state
        );
        ensure!(state.moved, "a poll that can move bytes moved none");
        Ok(state.state == State::Idle)
    })?;
    let fair = len / small;
    ensure!(
        polls >= fair / 4,
        "{polls} polls of {small} bytes moved {len}: each does far more than its budget"
    );
    ensure!(dst.read(0, len)? == bytes, "the copy is wrong");
    Ok(())
}

/// Words of a command: kind, size in words, flags, then the rest.
pub(super) fn command(kind: u16, flags: u32, rest: &[u64]) -> Vec<u64> {
    let size = (rest.len() as u64 + 1) * 8;
    let head = u64::from(kind) | size << 16 | u64::from(flags) << 32;
    let mut words = vec![u64::from_le(head)];
    words.extend_from_slice(rest);
    words
}

fn longer(case: &Case) -> Checked {
    let device = case.streams(command_kind::COPY)?;
    let store = Store::new(&device, 192)?;
    store.write(0, &[5; 64])?;
    let mut stream = RawStream::new(case)?;
    let tail = u64::MAX;
    let mut words = command(
        command_kind::COPY,
        0,
        &[store.at() + 64, store.at(), 64, 1, 0, 0, tail, tail],
    );
    words.extend(command(
        command_kind::COPY,
        0,
        &[store.at() + 128, store.at() + 64, 64, 1, 0, 0],
    ));
    let (status, accepted, message) = stream.submit(&words, 2)?;
    ensure!(status >= 0, "a longer command is refused: {message}");
    ensure!(accepted == 2, "of two commands {accepted} were taken");
    queue::until("two copies", || stream.is_idle())?;
    ensure!(
        store.read(128, 64)? == [5; 64],
        "a longer command did something else"
    );
    Ok(())
}

fn empty(case: &Case) -> Checked {
    case.streams(command_kind::COPY)?;
    let mut stream = RawStream::new(case)?;
    let start = Instant::now();
    let (status, accepted, message) = stream.submit(&[], 0)?;
    ensure!(
        status >= 0 && accepted == 0,
        "status {status}, {accepted} taken: {message}"
    );
    ensure!(start.elapsed() < Duration::from_secs(1), "it took long");
    Ok(())
}
