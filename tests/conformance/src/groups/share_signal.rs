//! Signals and bells between processes.

use unisono_abi::stream_can;
use unisono_hal::{Device, Memory, MemoryKind, MemoryRequest, Queue, State};

use super::copy::pattern;
use super::share::{export, exportable, sharing};
use crate::case::Case;
use crate::check::Check;
use crate::flags::Flags;
use crate::outcome::{Checked, Stop, ensure};
use crate::queue;
use crate::sleep::{Sleeper, offered};
use crate::store::Store;

const G: &str = "share";

pub(super) const CHECKS: &[Check] = &[
    Check::two(
        G,
        "signals",
        "Streams of two processes hand each other data by flags.",
        signals,
    ),
    Check::two(
        G,
        "bells",
        "A signal's bell wakes a sleeper of another process.",
        bells,
    ),
];

/// Own flags, and the peer's as they are seen here.
struct Pair {
    own: Flags,
    theirs: Memory,
}

impl Pair {
    fn new(case: &Case, device: &Device) -> Checked<Self> {
        let own = Flags::shared(device, 2)?;
        let description = case
            .peer()?
            .exchange(10, &export(own.region().memory()?)?)?;
        Ok(Self {
            own,
            theirs: device.import(&description)?,
        })
    }
}

fn signals(case: &Case) -> Checked {
    const ROUNDS: u64 = 2000;
    let (device, peer) = (sharing(case)?, case.peer()?);
    let pair = Pair::new(case, &device)?;
    let data = exportable(&device, 4096)?;
    let theirs = device.import(&peer.exchange(11, &export(&data)?)?)?;
    let data = Store::of(&device, data)?;
    let local = Store::new(&device, 4096)?;
    let mut stream = device.stream(0)?;
    let first = case.role() == 0;
    for round in 0..ROUNDS {
        let bytes = pattern(512, round * 2 + u64::from(!first));
        local.write(0, &bytes)?;
        let mut put = queue::batch();
        let words = Some([round, 1, 2]);
        put.copy(theirs.base(), local.at(), 512);
        put.signal(pair.theirs.base(), pair.own.counter(0), 0, words);
        let mut get = queue::batch();
        get.wait(pair.own.flag(0), pair.own.counter(1), words);
        get.copy(local.at() + 1024, data.at(), 512);
        let batches = if first {
            [&mut put, &mut get]
        } else {
            [&mut get, &mut put]
        };
        for batch in batches {
            queue::submit(&mut stream, batch)?;
        }
        queue::drain(&mut stream).map_err(|e| e.at(format!("round {round}")))?;
        let expected = pattern(512, round * 2 + u64::from(first));
        let right = local.read(1024, 512)? == expected;
        ensure!(right, "round {round}: the data came after its flag");
    }
    peer.meet(12)
}

fn bells(case: &Case) -> Checked {
    let (device, peer) = (sharing(case)?, case.peer()?);
    case.needs(&[("stream", "arm")])?;
    if !device.info().streams_can(stream_can::RINGS) {
        return Err(Stop::unsupported("its signals ring no bell"));
    }
    let pair = Pair::new(case, &device)?;
    let bell = device.alloc(&MemoryRequest::new(MemoryKind::Bell, 64).exportable())?;
    let theirs = device.import(&peer.exchange(13, &export(&bell)?)?)?;
    let mut probe = device.stream(0)?;
    let mut wait = queue::batch();
    wait.wait(pair.own.flag(1), pair.own.counter(1), None);
    queue::submit(&mut probe, &mut wait)?;
    queue::until("waiting", || {
        Ok(probe.poll(queue::BUDGET)?.state == State::Waiting)
    })?;
    let ways = offered(&mut probe)?;
    drop(probe);
    pair.own.set_counter(1, 0);
    let sleeper = Sleeper::new();
    for (way, name) in ways {
        let mut stream = device.stream(0)?;
        for round in 0..2000 {
            let mut batch = queue::batch();
            let signal = |batch: &mut unisono_hal::Batch| {
                batch.signal(pair.theirs.base(), pair.own.counter(0), theirs.base(), None);
            };
            if case.role() == 0 {
                signal(&mut batch);
            }
            batch.wait(pair.own.flag(0), pair.own.counter(1), None);
            if case.role() == 1 {
                signal(&mut batch);
            }
            queue::submit(&mut stream, &mut batch)?;
            let slept = sleeper.drain(&mut stream, way);
            slept.map_err(|e| e.at(format!("round {round} by {name}")))?;
        }
        peer.meet(14)?;
    }
    Ok(())
}
