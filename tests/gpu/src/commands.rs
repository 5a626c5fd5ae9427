//! What single commands cost a stream of the device: what every plan is made of.
#![allow(unsafe_code, reason = "hands addresses to streams")]

use std::time::{Duration, Instant};

use unisono::hal::{Batch, Device, MemoryKind, MemoryRequest};
use unisono_emulated_tests::Values;

use crate::Scale;
use crate::collectives::median;
use crate::copies::{add, finish, start};

/// Repeats of each measurement.
const ROUNDS: usize = 15;
/// Bytes from one flag or counter to the next.
const LINE: u64 = 64;

/// Lines of signal memory: the gate, a flag that is raised ahead, one that is only raised, and their counters.
#[derive(Clone, Copy)]
enum At {
    Gate,
    GateRaised,
    GateAwaited,
    Ahead,
    AheadRaised,
    AheadAwaited,
    Told,
    ToldRaised,
}

/// What is measured: a command, or some that follow each other.
#[derive(Clone, Copy)]
enum What {
    Copy(u64),
    Reduce(u64),
    Signal,
    Piece(u64),
}

impl What {
    fn name(self) -> String {
        let size = |bytes: u64| match bytes >> 20 {
            0 => format!("{} KiB", bytes >> 10),
            mib => format!("{mib} MiB"),
        };
        match self {
            Self::Copy(bytes) => format!("a copy of {}", size(bytes)),
            Self::Reduce(bytes) => format!("a reduction of {}", size(bytes)),
            Self::Signal => "a signal".to_owned(),
            Self::Piece(bytes) => {
                format!("a wait that is over, a copy of {}, a signal", size(bytes))
            }
        }
    }
}

/// What one takes.
pub struct Cost {
    pub what: String,
    /// The stream, one behind the other.
    pub run: Duration,
    /// The host, to hand it over.
    pub hand_over: Duration,
}

struct Bench<'a> {
    device: &'a Device,
    signals: unisono::hal::Memory,
    from: Values<u8>,
    to: Values<u8>,
}

impl Bench<'_> {
    fn line(&self, at: At) -> u64 {
        self.signals.base() + at as u64 * LINE
    }

    fn add(&self, batch: &mut Batch, what: What) {
        let (to, from) = (self.to.address(), self.from.address());
        match what {
            What::Copy(bytes) => batch.copy(to, from, bytes),
            What::Reduce(bytes) => add(batch, to, from, bytes / 4),
            What::Signal => batch.signal(self.line(At::Told), self.line(At::ToldRaised), 0, None),
            What::Piece(bytes) => {
                batch.wait(self.line(At::Ahead), self.line(At::AheadAwaited), None);
                batch.copy(to, from, bytes);
                batch.signal(self.line(At::Told), self.line(At::ToldRaised), 0, None);
            }
        }
    }

    /// So many, behind a gate that is opened when all are handed over: how long that took, and how long they ran.
    fn run(&self, what: What, count: usize) -> [Duration; 2] {
        let mut stream = self.device.stream(0).expect("a stream");
        let mut opener = self.device.stream(0).expect("a stream");
        // SAFETY: memory of this bench's, which waits for all that uses it.
        let (mut batch, mut open) = unsafe { (Batch::new(), Batch::new()) };
        for _ in 0..count {
            open.signal(self.line(At::Ahead), self.line(At::AheadRaised), 0, None);
        }
        let ahead = start(&mut opener, &mut open);
        finish(&mut opener, ahead);
        batch.wait(self.line(At::Gate), self.line(At::GateAwaited), None);
        for _ in 0..count {
            self.add(&mut batch, what);
        }
        let since = start(&mut stream, &mut batch);
        let handed_over = since.elapsed();
        // SAFETY: as above.
        let mut open = unsafe { Batch::new() };
        open.signal(self.line(At::Gate), self.line(At::GateRaised), 0, None);
        let opened = Instant::now();
        start(&mut opener, &mut open);
        let ran = finish(&mut stream, opened);
        finish(&mut opener, opened);
        [handed_over, ran]
    }

    /// The difference between twice as many and so many.
    fn cost(&self, what: What, count: usize) -> Cost {
        let times = |count, which: usize| {
            median((0..ROUNDS).map(|_| self.run(what, count)[which]).collect())
        };
        let each = |which| {
            let more = times(2 * count, which).saturating_sub(times(count, which));
            more / count as u32
        };
        Cost {
            what: what.name(),
            run: each(1),
            hand_over: each(0),
        }
    }
}

/// What commands take.
pub fn costs(device: &Device, scale: Scale) -> Vec<Cost> {
    let request = MemoryRequest::new(MemoryKind::Signal, 8 * LINE);
    let longest = 16 << 20;
    let bench = Bench {
        device,
        signals: device.alloc(&request).expect("signal memory"),
        from: Values::new(device, longest),
        to: Values::new(device, longest),
    };
    let sizes = [4 << 10, 128 << 10, 1 << 20, 16 << 20];
    let copies = sizes.map(What::Copy);
    let reductions = sizes.map(What::Reduce);
    let others = [
        What::Signal,
        What::Piece(4 << 10),
        What::Piece(128 << 10),
        What::Piece(1 << 20),
    ];
    let all = copies.into_iter().chain(reductions).chain(others);
    all.map(|what| bench.cost(what, scale.commands)).collect()
}
