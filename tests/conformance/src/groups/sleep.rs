//! Sleeping for streams.

use std::time::Duration;

use unisono_abi::{command_kind, stream_can};
use unisono_hal::{Device, MemoryKind, MemoryRequest, Queue, SleepWays, State, Stream};

use crate::case::Case;
use crate::check::Check;
use crate::flags::Flags;
use crate::outcome::{Checked, Stop, ensure};
use crate::queue;
use crate::sleep::{Sleeper, offered};

const G: &str = "sleep";

/// Rounds of the race between a sleeper and a signaller, shared by the ways to sleep.
const ROUNDS: u64 = 10_000;

pub(super) const CHECKS: &[Check] = &[
    Check::one(
        G,
        "ready",
        "A stream that can go on is not slept on.",
        ready,
    ),
    Check::one(
        G,
        "ends",
        "A signal ends a sleep, in each way that is offered.",
        ends,
    ),
    Check::one(
        G,
        "no_lost_wake_up",
        "No wake-up is lost to a racing signaller, in 10 000 rounds.",
        race,
    ),
    Check::one(
        G,
        "disarmed",
        "After disarm the waker is never called.",
        disarmed,
    ),
    Check::one(
        G,
        "no_way",
        "Where no way is allowed, arm does not block.",
        no_way,
    ),
    Check::one(G, "abort_ends", "An abort ends a sleep.", abort_ends),
    Check::one(
        G,
        "dropped_armed",
        "An armed stream may be destroyed.",
        dropped_armed,
    ),
];

fn device(case: &Case) -> Checked<Device> {
    case.needs(&[("stream", "arm")])?;
    case.streams(command_kind::WAIT)
}

/// The bell that signals of this device ring for sleepers of this process, 0 if it has none.
fn bell(device: &Device) -> Checked<u64> {
    if !device.info().streams_can(stream_can::RINGS) {
        return Ok(0);
    }
    let request = MemoryRequest::new(MemoryKind::Bell, 64);
    Ok(device.alloc(&request.exportable())?.base())
}

/// A stream that waits for its flag, polled until it says so.
fn waiting(device: &Device, flags: &Flags) -> Checked<Stream> {
    let mut stream = device.stream(0)?;
    let mut batch = queue::batch();
    batch.wait(flags.flag(0), flags.counter(0), None);
    queue::submit(&mut stream, &mut batch)?;
    queue::until("waiting", || {
        Ok(stream.poll(queue::BUDGET)?.state == State::Waiting)
    })?;
    Ok(stream)
}

/// Signals the first flag by another stream, as the contract wants it.
fn signal(device: &Device, flags: &Flags) -> Checked {
    let mut stream = device.stream(0)?;
    let mut batch = queue::batch();
    batch.signal(flags.flag(0), flags.counter(1), bell(device)?, None);
    queue::run(&mut stream, &mut batch)
}

fn ready(case: &Case) -> Checked {
    let device = device(case)?;
    let flags = Flags::new(&device, 2)?;
    let mut stream = waiting(&device, &flags)?;
    let ways = offered(&mut stream)?;
    signal(&device, &flags)?;
    let sleeper = Sleeper::new();
    for (way, _) in ways {
        sleeper.sleep(&mut stream, way)?;
    }
    queue::drain(&mut stream).map(|_| ())
}

fn ends(case: &Case) -> Checked {
    let device = device(case)?;
    let ways = offered(&mut waiting(&device, &Flags::new(&device, 2)?)?)?;
    for (way, name) in ways {
        let flags = Flags::new(&device, 2)?;
        let mut stream = waiting(&device, &flags)?;
        std::thread::scope(|scope| {
            let signaller = scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                signal(&device, &flags)
            });
            let slept = Sleeper::new().drain(&mut stream, way);
            signaller
                .join()
                .map_err(|_| Stop::failed("a thread panicked"))??;
            slept.map_err(|e| e.at(format!("by {name}")))
        })?;
    }
    Ok(())
}

fn race(case: &Case) -> Checked {
    let device = device(case)?;
    let ways = offered(&mut waiting(&device, &Flags::new(&device, 2)?)?)?;
    let rounds = ROUNDS / ways.len() as u64 + 1;
    for (way, name) in ways {
        // Two streams on two threads pass a token, each asleep while the other has it.
        let (flags, bell) = (Flags::new(&device, 4)?, bell(&device)?);
        let side = |own: u64, other: u64, first: bool| -> Checked {
            let mut stream = device.stream(0)?;
            let sleeper = Sleeper::new();
            let mut batch = queue::batch();
            if first {
                batch.signal(flags.flag(other), flags.counter(own), bell, None);
                batch.wait(flags.flag(own), flags.counter(2 + own), None);
            } else {
                batch.wait(flags.flag(own), flags.counter(2 + own), None);
                batch.signal(flags.flag(other), flags.counter(own), bell, None);
            }
            for round in 0..rounds {
                batch.rewind();
                queue::submit(&mut stream, &mut batch)?;
                let slept = sleeper.drain(&mut stream, way);
                slept.map_err(|e| e.at(format!("round {round} by {name}")))?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(|| side(1, 0, false));
            let ours = side(0, 1, true);
            let theirs = other
                .join()
                .map_err(|_| Stop::failed("a thread panicked"))?;
            ours.and(theirs)
        })?;
    }
    Ok(())
}

fn disarmed(case: &Case) -> Checked {
    let device = device(case)?;
    for _ in 0..200 {
        let flags = Flags::new(&device, 2)?;
        let mut stream = waiting(&device, &flags)?;
        let sleeper = Sleeper::new();
        let ways = offered(&mut stream)?;
        if !ways.iter().any(|(way, _)| *way == SleepWays::WAKER) {
            return Err(Stop::unsupported("its streams call no waker"));
        }
        stream.arm(SleepWays::WAKER, sleeper.waker())?;
        stream.disarm();
        let before = sleeper.wakes();
        flags.set(0, 1, [0; 3]);
        queue::drain(&mut stream)?;
        let after = sleeper.wakes();
        ensure!(
            before == after,
            "the waker was called {} times after disarm",
            after - before
        );
    }
    Ok(())
}

fn no_way(case: &Case) -> Checked {
    let device = device(case)?;
    let flags = Flags::new(&device, 2)?;
    let mut stream = waiting(&device, &flags)?;
    let sleeper = Sleeper::new();
    match stream.arm(SleepWays::NONE, sleeper.waker()) {
        Ok(sleep) => ensure!(
            sleep == unisono_hal::Sleep::Ready,
            "it says to sleep: {sleep:?}"
        ),
        Err(error) => ensure!(!error.message.is_empty(), "it is refused without a message"),
    }
    stream.disarm();
    signal(&device, &flags)?;
    queue::drain(&mut stream).map(|_| ())
}

fn abort_ends(case: &Case) -> Checked {
    let device = device(case)?;
    let ways = offered(&mut waiting(&device, &Flags::new(&device, 2)?)?)?;
    for (way, name) in ways {
        let flags = Flags::new(&device, 2)?;
        let mut stream = waiting(&device, &flags)?;
        let aborter = stream.aborter();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            aborter.abort();
        });
        let slept = Sleeper::new().drain(&mut stream, way);
        thread
            .join()
            .map_err(|_| Stop::failed("a thread panicked"))?;
        let Err(Stop::Failed(what)) = slept else {
            return Err(Stop::failed(format!(
                "by {name}: an aborted stream became idle"
            )));
        };
        ensure!(what.contains("abort"), "by {name}: {what}");
    }
    Ok(())
}

fn dropped_armed(case: &Case) -> Checked {
    let device = device(case)?;
    let ways = offered(&mut waiting(&device, &Flags::new(&device, 2)?)?)?;
    for (way, _) in ways {
        for _ in 0..50 {
            // A stream that goes while it waits may release its flag, which is then ahead for good.
            let flags = Flags::new(&device, 2)?;
            let sleeper = Sleeper::new();
            let mut stream = waiting(&device, &flags)?;
            stream.arm(way, sleeper.waker())?;
            drop(stream);
        }
    }
    Ok(())
}
