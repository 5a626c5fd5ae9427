//! Aborting streams.

use std::time::Duration;

use unisono_abi::{command_kind, stream_can};
use unisono_hal::{Queue, State, Status};

use crate::case::Case;
use crate::check::Check;
use crate::flags::Flags;
use crate::outcome::{Checked, Stop, ensure, refused};
use crate::queue;
use crate::store::Store;

const G: &str = "abort";

pub(super) const CHECKS: &[Check] = &[
    Check::one(
        G,
        "drops_what_waits",
        "An aborted stream fails and runs nothing more.",
        drops,
    ),
    Check::one(
        G,
        "from_another_thread",
        "Another thread may abort at any moment.",
        another,
    ),
    Check::one(
        G,
        "touches_nothing",
        "Once it says that it failed, memory is left alone.",
        touches,
    ),
    Check::one(
        G,
        "twice",
        "Aborting again, or an idle stream, does no harm.",
        twice,
    ),
    Check::one(
        G,
        "others_go_on",
        "Other streams of the device go on.",
        others,
    ),
];

fn drops(case: &Case) -> Checked {
    let device = case.streams(command_kind::WAIT)?;
    let (store, flags) = (Store::new(&device, 128)?, Flags::new(&device, 1)?);
    store.write(0, &[1; 64])?;
    let mut stream = device.stream(0)?;
    let mut batch = queue::batch();
    batch.wait(flags.flag(0), flags.counter(0), None);
    batch.copy(store.at() + 64, store.at(), 64);
    queue::submit(&mut stream, &mut batch)?;
    queue::settle(&mut stream)?;
    stream.aborter().abort();
    let error = queue::failure("an aborted stream", &mut stream)?;
    ensure!(
        error.status == Status::Aborted,
        "it fails as {}: {error}",
        error.status
    );
    quiet(&stream)?;
    let left = store.read(64, 64)?;
    // What a device was handed cannot be taken back: it ends once its waits are released.
    ensure!(
        left == [0; 64] || !device.info().streams_can(stream_can::POLLED),
        "the copy behind the wait ran"
    );
    flags.set(0, 1, [0; 3]);
    std::thread::sleep(Duration::from_millis(20));
    ensure!(
        store.read(64, 64)? == left,
        "the copy behind the wait ran after the stream said that it failed"
    );
    batch.rewind();
    refused(
        "a batch after an abort",
        stream.submit(&mut batch),
        &[Status::Aborted],
    )?;
    Ok(())
}

/// Waits until the stream says that nothing of it runs any more.
fn quiet(stream: &dyn Queue) -> Checked {
    queue::until("the end of an aborted stream", || {
        Ok(matches!(stream.state()?.state, State::Failed | State::Idle))
    })
}

fn another(case: &Case) -> Checked {
    let device = case.streams(command_kind::WAIT)?;
    for round in 0..50_u64 {
        let flags = Flags::new(&device, 1)?;
        let mut stream = device.stream(0)?;
        let mut batch = queue::batch();
        batch.wait(flags.flag(0), flags.counter(0), None);
        queue::submit(&mut stream, &mut batch)?;
        let aborter = stream.aborter();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(round * 20));
            aborter.abort();
        });
        let error = queue::failure("a stream aborted by another thread", &mut stream)?;
        thread
            .join()
            .map_err(|_| Stop::failed("a thread panicked"))?;
        ensure!(
            error.status == Status::Aborted,
            "it fails as {}",
            error.status
        );
    }
    Ok(())
}

fn touches(case: &Case) -> Checked {
    let device = case.streams(command_kind::COPY)?;
    let len = 8 << 20;
    let (src, dst) = (Store::new(&device, len)?, Store::new(&device, len)?);
    src.write(0, &vec![1; len as usize])?;
    // A copy that still runs comes there last: that it writes there is seen, however long the rest takes to be
    // written here.
    let end = len - 4096;
    let (before, after) = (vec![0; len as usize], vec![2; len as usize]);
    // Often, as the abort must come in the middle of a copy, and the thread that copies may have to wait
    // for a core.
    for round in 0..30 {
        dst.write(0, &before)?;
        let mut stream = device.stream(0)?;
        let mut batch = queue::batch();
        for _ in 0..4 {
            batch.copy(dst.at(), src.at(), len);
        }
        queue::submit(&mut stream, &mut batch)?;
        stream.poll(1 << 16)?;
        std::thread::sleep(Duration::from_micros(100 * (round % 10)));
        stream.aborter().abort();
        quiet(&stream)?;
        dst.write(end, &after[end as usize..])?;
        dst.write(0, &after[..end as usize])?;
        std::thread::sleep(Duration::from_millis(5));
        let now = dst.read(0, len)?;
        ensure!(
            now == after,
            "round {round}: byte {:?} was written after the stream said that it failed",
            now.iter().position(|byte| *byte != 2)
        );
    }
    Ok(())
}

fn twice(case: &Case) -> Checked {
    let device = case.streams(command_kind::COPY)?;
    let stream = device.stream(0)?;
    let aborter = stream.aborter();
    aborter.abort();
    aborter.abort();
    drop(stream);
    // The aborter keeps the stream alive.
    aborter.abort();
    Ok(())
}

fn others(case: &Case) -> Checked {
    let device = case.streams(command_kind::WAIT)?;
    let (store, flags) = (Store::new(&device, 128)?, Flags::new(&device, 1)?);
    store.write(0, &[3; 64])?;
    let mut aborted = device.stream(0)?;
    let mut other = device.stream(0)?;
    let mut batch = queue::batch();
    batch.wait(flags.flag(0), flags.counter(0), None);
    queue::submit(&mut aborted, &mut batch)?;
    aborted.aborter().abort();
    let mut batch = queue::batch();
    batch.copy(store.at() + 64, store.at(), 64);
    queue::run(&mut other, &mut batch)?;
    ensure!(
        store.read(64, 64)? == [3; 64],
        "the other stream's copy is wrong"
    );
    Ok(())
}
