//! The four sides of events.

use std::time::Duration;

use unisono_abi::command_kind;
use unisono_hal::{Device, Queue, Side, State, Status};

use crate::case::{Case, supports};
use crate::check::Check;
use crate::outcome::{Checked, Stop, ensure, refused};
use crate::queue;
use crate::sleep::{Sleeper, offered};
use crate::store::Store;

const G: &str = "event";

pub(super) const CHECKS: &[Check] = &[
    Check::one(G, "new", "A new event is not complete.", new),
    Check::one(
        G,
        "host_signal",
        "The host completes an event.",
        host_signal,
    ),
    Check::one(
        G,
        "device_signal",
        "RECORD completes an event once all before it is done.",
        device_signal,
    ),
    Check::one(
        G,
        "device_wait",
        "WAIT_EVENT holds a stream back.",
        device_wait,
    ),
    Check::one(
        G,
        "recorded_again",
        "An event recorded again is not complete.",
        again,
    ),
    Check::one(
        G,
        "between_streams",
        "A stream waits for another's event.",
        between,
    ),
    Check::one(
        G,
        "absent_sides",
        "A side that is absent is refused, and `supports` says so.",
        absent,
    ),
    Check::one(
        G,
        "wakes",
        "An event that the host completes ends a stream's sleep.",
        wakes,
    ),
    Check::one(
        G,
        "any_thread",
        "Events are completed and asked from any thread.",
        any_thread,
    ),
];

fn device(case: &Case) -> Checked<Device> {
    let device = case.device()?;
    case.needs(&[("event", "create")])?;
    Ok(device)
}

/// A device whose events have these sides.
fn with(case: &Case, sides: &[fn(&Device) -> Side]) -> Checked<Device> {
    let device = device(case)?;
    if sides.iter().any(|side| side(&device) == Side::Absent) {
        return Err(Stop::unsupported("it says that its events lack a side"));
    }
    Ok(device)
}

fn signalled_by_host(d: &Device) -> Side {
    d.info().events.host_signal
}
fn asked_by_host(d: &Device) -> Side {
    d.info().events.host_query
}
fn signalled_by_device(d: &Device) -> Side {
    d.info().events.device_signal
}
fn awaited_by_device(d: &Device) -> Side {
    d.info().events.device_wait
}

fn new(case: &Case) -> Checked {
    let device = with(case, &[asked_by_host])?;
    ensure!(!device.event()?.is_complete()?, "it is complete");
    Ok(())
}

fn host_signal(case: &Case) -> Checked {
    let device = with(case, &[signalled_by_host, asked_by_host])?;
    let event = device.event()?;
    queue::prompt("host_signal", || event.signal())?;
    ensure!(event.is_complete()?, "it is not complete after host_signal");
    event.signal()?;
    ensure!(event.is_complete()?, "signalled twice it is not complete");
    Ok(())
}

fn device_signal(case: &Case) -> Checked {
    let device = with(case, &[signalled_by_device, asked_by_host])?;
    let store = Store::new(&device, 2 << 20)?;
    store.write(0, &vec![4; 1 << 20])?;
    let event = device.event()?;
    let mut stream = device.stream(0)?;
    let mut batch = queue::batch();
    batch.copy(store.at() + (1 << 20), store.at(), 1 << 20);
    batch.record(&event);
    queue::submit(&mut stream, &mut batch)?;
    queue::until("an event", || {
        stream.poll(queue::BUDGET)?;
        Ok(event.is_complete()?)
    })?;
    let last = store.read((2 << 20) - 64, 64)?;
    ensure!(
        last == [4; 64],
        "the event is complete before what stands before it"
    );
    queue::drain(&mut stream).map(|_| ())
}

fn device_wait(case: &Case) -> Checked {
    let device = with(case, &[awaited_by_device, signalled_by_host])?;
    let store = Store::new(&device, 128)?;
    store.write(0, &[6; 64])?;
    let event = device.event()?;
    let mut stream = device.stream(0)?;
    let mut batch = queue::batch();
    batch.wait_event(&event);
    batch.copy(store.at() + 64, store.at(), 64);
    queue::submit(&mut stream, &mut batch)?;
    let state = queue::settle(&mut stream)?;
    ensure!(
        state.state == State::Waiting,
        "before the event it is {:?}",
        state.state
    );
    ensure!(
        store.read(64, 64)? == [0; 64],
        "the copy ran before the event"
    );
    event.signal()?;
    queue::drain(&mut stream)?;
    ensure!(
        store.read(64, 64)? == [6; 64],
        "the copy after the event is wrong"
    );
    Ok(())
}

fn again(case: &Case) -> Checked {
    let device = with(
        case,
        &[
            signalled_by_device,
            awaited_by_device,
            asked_by_host,
            signalled_by_host,
        ],
    )?;
    let (event, gate) = (device.event()?, device.event()?);
    let mut stream = device.stream(0)?;
    let mut first = queue::batch();
    first.record(&event);
    queue::run(&mut stream, &mut first)?;
    ensure!(event.is_complete()?, "a recorded event is not complete");
    let mut second = queue::batch();
    second.wait_event(&gate);
    second.record(&event);
    queue::submit(&mut stream, &mut second)?;
    ensure!(
        !event.is_complete()?,
        "it is complete from the recording before"
    );
    queue::settle(&mut stream)?;
    ensure!(
        !event.is_complete()?,
        "it is complete before the stream reached it"
    );
    gate.signal()?;
    queue::drain(&mut stream)?;
    ensure!(
        event.is_complete()?,
        "the second recording did not complete it"
    );
    Ok(())
}

fn between(case: &Case) -> Checked {
    let device = with(case, &[signalled_by_device, awaited_by_device])?;
    let store = Store::new(&device, 192)?;
    let event = device.event()?;
    let mut streams = [device.stream(0)?, device.stream(0)?];
    for n in 0..200_u8 {
        store.write(0, &[n; 64])?;
        let (mut record, mut wait) = (queue::batch(), queue::batch());
        record.copy(store.at() + 64, store.at(), 64);
        record.record(&event);
        wait.wait_event(&event);
        wait.copy(store.at() + 128, store.at() + 64, 64);
        queue::submit(&mut streams[0], &mut record)?;
        queue::submit(&mut streams[1], &mut wait)?;
        queue::until("two streams", || {
            let mut idle = true;
            for stream in &mut streams {
                idle &= stream.poll(queue::BUDGET)?.state == State::Idle;
            }
            Ok(idle)
        })?;
        ensure!(
            store.read(128, 64)? == [n; 64],
            "round {n}: the second stream did not wait"
        );
    }
    Ok(())
}

fn absent(case: &Case) -> Checked {
    let device = device(case)?;
    let (event, sides) = (device.event()?, device.info().events);
    if sides.host_signal == Side::Absent {
        refused("host_signal", event.signal(), &[Status::Unsupported])?;
    }
    if sides.host_query == Side::Absent {
        refused("host_query", event.is_complete(), &[Status::Unsupported])?;
    }
    for (command, side) in [
        (command_kind::RECORD, sides.device_signal),
        (command_kind::WAIT_EVENT, sides.device_wait),
    ] {
        let says = supports(&device, command);
        ensure!(
            says == (side != Side::Absent),
            "a side is {side:?} and `supports` says {says} to command kind {command}"
        );
    }
    Ok(())
}

fn wakes(case: &Case) -> Checked {
    case.needs(&[("stream", "arm")])?;
    let device = with(case, &[awaited_by_device, signalled_by_host])?;
    let mut probe = device.stream(0)?;
    let gate = device.event()?;
    let mut batch = queue::batch();
    batch.wait_event(&gate);
    queue::submit(&mut probe, &mut batch)?;
    queue::settle(&mut probe)?;
    let ways = offered(&mut probe)?;
    drop(probe);
    for (way, name) in ways {
        for round in 0..300_u64 {
            let event = device.event()?;
            let mut stream = device.stream(0)?;
            let mut batch = queue::batch();
            batch.wait_event(&event);
            queue::submit(&mut stream, &mut batch)?;
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_micros(round % 7 * 30));
                    event.signal()
                });
                let slept = Sleeper::new().drain(&mut stream, way);
                slept.map_err(|e| e.at(format!("round {round} by {name}")))
            })?;
        }
    }
    Ok(())
}

fn any_thread(case: &Case) -> Checked {
    let device = with(case, &[signalled_by_host, asked_by_host])?;
    for _ in 0..200 {
        let event = device.event()?;
        std::thread::scope(|scope| {
            scope.spawn(|| event.signal());
            queue::until("another thread's signal", || Ok(event.is_complete()?))
        })?;
    }
    Ok(())
}
