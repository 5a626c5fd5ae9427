//! The optional table `unisono.cpu`: what the calling thread may do by itself.

#![allow(unsafe_code, reason = "answers for the addresses that it gives")]

use unisono_abi::{command_kind, dtype, stream_can};
use unisono_hal::{Cpu, Device, Memory, MemoryKind, MemoryRequest, Queue, Reduce, State};

use super::reduce::{Fixture, OPS, claims};
use crate::case::Case;
use crate::check::Check;
use crate::flags::Flags;
use crate::outcome::{Checked, Stop, ensure};
use crate::queue;
use crate::sleep::{Sleeper, offered};
use crate::store::Store;

const G: &str = "cpu";

/// Rounds of the race between a sleeper and a thread that rings, shared by the ways to sleep.
const ROUNDS: u64 = 4000;

pub(super) const CHECKS: &[Check] = &[
    Check::one(
        G,
        "same_bits",
        "A reduction at once gives the bits that the stream's gives, for every type and reduction.",
        same_bits,
    ),
    Check::one(
        G,
        "refused",
        "What the streams do not reduce is refused at once too, and nothing is written.",
        is_refused,
    ),
    Check::one(
        G,
        "combiner",
        "A function that combines gives the bits of a REDUCE, in place as well, and is there for what streams reduce alone.",
        combiner,
    ),
    Check::one(
        G,
        "ring",
        "Ringing wakes who sleeps for a flag that was raised by a store.",
        ring,
    ),
    Check::one(
        G,
        "no_lost_wake_up",
        "No wake-up is lost to a thread that raises a flag and rings, in 4000 rounds.",
        race,
    ),
];

/// A device with streams, and what may be done beside them.
fn cpu(case: &Case, command: u16) -> Checked<(Device, Cpu)> {
    let device = case.streams(command)?;
    let cpu = Cpu::of(&device);
    let cpu = cpu.ok_or_else(|| Stop::unsupported("the plugin has no table `unisono.cpu`"))?;
    Ok((device, cpu))
}

fn every_type() -> impl Iterator<Item = u16> {
    dtype::I8..=dtype::F8E5M2
}

fn contents(store: &Store) -> Checked<Vec<u8>> {
    store.read(0, store.memory().len())
}

fn clear(store: &Store) -> Checked {
    store.write(0, &vec![0x5a; store.memory().len() as usize])
}

/// One reduction by the calling thread.
fn at_once(cpu: &Cpu, reduce: &Reduce) -> unisono_hal::Result<()> {
    // SAFETY: checks give addresses of a fixture's stores, whose stream is idle.
    unsafe { cpu.reduce(reduce) }
}

fn same_bits(case: &Case) -> Checked {
    let (device, cpu) = cpu(case, command_kind::COPY)?;
    let mut compared = 0;
    for dtype in every_type() {
        let mut fixture = Fixture::new(&device, dtype)?;
        for op in OPS.into_iter().filter(|&op| claims(&device, dtype, op)) {
            for (divisor, streaming, pieces) in
                [(0, false, 1), (1, false, 7), (3, true, 1), (8, false, 1)]
            {
                let mut reduce = fixture.command(op);
                reduce.divisor = divisor;
                reduce.streaming = streaming;
                reduce.elements /= pieces;
                reduce.repeat = pieces;
                let stride = reduce.elements * fixture.element_bytes();
                (reduce.dst_stride, reduce.a_stride, reduce.b_stride) = (stride, stride, stride);
                clear(&fixture.dst)?;
                fixture.run(&reduce)?;
                let wanted = contents(&fixture.dst)?;
                clear(&fixture.dst)?;
                at_once(&cpu, &reduce)?;
                ensure!(
                    contents(&fixture.dst)? == wanted,
                    "reduction {op} of type {dtype}, divided by {divisor}, in {pieces} pieces gives \
                     other bits at once than by a stream"
                );
                compared += 1;
            }
        }
    }
    ensure!(
        compared > 0,
        "there is a table, and `supports` claims no reduction"
    );
    Ok(())
}

/// Types and reductions that streams do not reduce, some of which are none.
fn unclaimed(device: &Device) -> Checked<Vec<(u16, u16)>> {
    let claimed = OPS.into_iter().find(|&op| claims(device, dtype::I32, op));
    let some = claimed.ok_or_else(|| Stop::unsupported("`supports` claims no reduction of i32"))?;
    let pairs = every_type().flat_map(|dtype| OPS.map(|op| (dtype, op)));
    let mut unknown: Vec<(u16, u16)> = pairs
        .filter(|&(dtype, op)| !claims(device, dtype, op))
        .collect();
    unknown.extend([(0, some), (0x7fff, some), (u16::MAX, some)]);
    unknown.extend([
        (dtype::I32, 0),
        (dtype::I32, 0x7fff),
        (dtype::I32, u16::MAX),
    ]);
    Ok(unknown)
}

fn combiner(case: &Case) -> Checked {
    let (device, cpu) = cpu(case, command_kind::COPY)?;
    let mut compared = 0;
    for dtype in every_type() {
        let mut fixture = Fixture::new(&device, dtype)?;
        for op in OPS.into_iter().filter(|&op| claims(&device, dtype, op)) {
            let Some(combiner) = cpu.combiner(dtype, op) else {
                continue;
            };
            let apart = fixture.command(op);
            let (dst, a, b) = (apart.dst, apart.a, apart.b);
            for (a, b, place) in [
                (a, b, "a place of its own"),
                (dst, b, "the first operand's place"),
                (a, dst, "the second operand's place"),
            ] {
                let reduce = Reduce { a, b, ..apart };
                fixture.prepare([a, b].map(|operand| operand == dst))?;
                fixture.run(&reduce)?;
                let wanted = contents(&fixture.dst)?;
                fixture.prepare([a, b].map(|operand| operand == dst))?;
                // SAFETY: addresses of a fixture's stores, whose stream is idle.
                unsafe { combiner.combine(dst, a, b, reduce.elements) };
                ensure!(
                    contents(&fixture.dst)? == wanted,
                    "the function for reduction {op} of type {dtype} gives other bits in {place} than \
                     a stream"
                );
            }
            compared += 1;
        }
    }
    for (dtype, op) in unclaimed(&device)? {
        ensure!(
            cpu.combiner(dtype, op).is_none(),
            "there is a function for reduction {op} of type {dtype}, which streams do not reduce"
        );
    }
    match compared {
        0 => Err(Stop::unsupported("`combiner` has no function")),
        _ => Ok(()),
    }
}

fn is_refused(case: &Case) -> Checked {
    let (device, cpu) = cpu(case, command_kind::COPY)?;
    let fixture = Fixture::new(&device, dtype::I32)?;
    let unknown = unclaimed(&device)?;
    clear(&fixture.dst)?;
    let before = contents(&fixture.dst)?;
    for (dtype, op) in unknown {
        let mut reduce = fixture.command(op);
        reduce.dtype = dtype;
        // Eight bytes an element lie inside, whatever the type.
        reduce.elements = 8;
        let answer = at_once(&cpu, &reduce);
        ensure!(
            answer.is_err(),
            "reduction {op} of type {dtype} was not refused"
        );
        ensure!(
            contents(&fixture.dst)? == before,
            "reduction {op} of type {dtype} was refused, and yet something was written"
        );
    }
    Ok(())
}

/// The bell of this process, none where streams ring none.
fn bell(device: &Device) -> Checked<Option<Memory>> {
    if !device.info().streams_can(stream_can::RINGS) {
        return Ok(None);
    }
    let request = MemoryRequest::new(MemoryKind::Bell, 64);
    Ok(Some(device.alloc(&request.exportable())?))
}

/// Raises a flag by plain stores, then rings.
fn raise(cpu: &Cpu, flags: &Flags, line: u64, value: u64, bell: Option<&Memory>) {
    flags.set(line, value, [0; 3]);
    let bells: Vec<u64> = bell.iter().map(|bell| bell.base()).collect();
    // SAFETY: the bell, if any, is alive.
    unsafe { cpu.ring(&bells) }
}

fn ring(case: &Case) -> Checked {
    let (device, cpu) = cpu(case, command_kind::WAIT)?;
    case.needs(&[("stream", "arm")])?;
    let bell = bell(&device)?;
    for (way, name) in ways(&device)? {
        let flags = Flags::new(&device, 1)?;
        let mut stream = waiting(&device, &flags)?;
        let sleeper = Sleeper::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(20));
                raise(&cpu, &flags, 0, 1, bell.as_ref());
            });
            let slept = sleeper.drain(&mut stream, way);
            slept.map_err(|stop| stop.at(format!("by {name}")))
        })?;
    }
    Ok(())
}

/// A stream that waits for the first flag, polled until it says so.
fn waiting(device: &Device, flags: &Flags) -> Checked<unisono_hal::Stream> {
    let mut stream = device.stream(0)?;
    let mut batch = queue::batch();
    batch.wait(flags.flag(0), flags.counter(0), None);
    queue::submit(&mut stream, &mut batch)?;
    queue::until("waiting", || {
        Ok(stream.poll(queue::BUDGET)?.state == State::Waiting)
    })?;
    Ok(stream)
}

/// The ways in which a waiting stream may be slept on.
fn ways(device: &Device) -> Checked<Vec<(unisono_hal::SleepWays, &'static str)>> {
    let flags = Flags::new(device, 1)?;
    let mut stream = waiting(device, &flags)?;
    let ways = offered(&mut stream)?;
    flags.set(0, 1, [0; 3]);
    queue::drain(&mut stream)?;
    Ok(ways)
}

/// A stream on this thread waits asleep for the first flag and answers by the second; another
/// thread raises the first by itself and waits for the answer.
fn race(case: &Case) -> Checked {
    let (device, cpu) = cpu(case, command_kind::WAIT)?;
    case.needs(&[("stream", "arm")])?;
    let bell = bell(&device)?;
    let ways = ways(&device)?;
    let rounds = ROUNDS / ways.len() as u64 + 1;
    for (way, name) in ways {
        let flags = Flags::new(&device, 2)?;
        let answered = |round| queue::until("an answer", || Ok(flags.value(1) >= round));
        std::thread::scope(|scope| {
            let other = scope.spawn(|| -> Checked {
                for round in 1..=rounds {
                    raise(&cpu, &flags, 0, round, bell.as_ref());
                    answered(round)?;
                }
                Ok(())
            });
            let mut stream = device.stream(0)?;
            let sleeper = Sleeper::new();
            let mut batch = queue::batch();
            batch.wait(flags.flag(0), flags.counter(0), None);
            let mut ours = Ok(());
            for round in 1..=rounds {
                batch.rewind();
                ours = queue::submit(&mut stream, &mut batch)
                    .and_then(|()| sleeper.drain(&mut stream, way))
                    .map_err(|stop| stop.at(format!("round {round} by {name}")));
                // Also after a failure, so that the other thread ends.
                flags.set(1, if ours.is_ok() { round } else { rounds }, [0; 3]);
                if ours.is_err() {
                    break;
                }
            }
            let theirs = other
                .join()
                .map_err(|_| Stop::failed("a thread panicked"))?;
            ours.and(theirs)
        })?;
    }
    Ok(())
}
