//! Who is at the bytes of a device's memory right now: what finds reads and writes that nothing orders.
//!
//! An operation notes each range for as long as it touches it. Two that touch one byte at once, one of
//! them writing, are ordered by nothing: had the program ordered them, one would have ended before the
//! other began. So there are no false alarms; what by chance does not overlap is missed, hence
//! operations linger now and then. The notes lie behind the memory in its own file, so that those of
//! other processes count.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::process::{Pid, test_kill_process};

/// Notes at once: more are not looked at.
const NOTES: usize = 32;
/// Looks at a lock that somebody holds, perhaps a process that was killed.
const PATIENCE: u32 = 10_000;

/// The notes of one memory. All zero is none.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Accesses {
    lock: AtomicU32,
    reserved: u32,
    notes: [Note; NOTES],
}

#[repr(C)]
#[derive(Debug)]
struct Note {
    /// Of what operation, 0 if of none: the process above, its number below.
    of: AtomicU64,
    from: AtomicU64,
    to: AtomicU64,
    writes: AtomicU64,
}

/// What an operation touches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touched {
    pub of: u64,
    /// Offsets in the memory.
    pub from: u64,
    pub to: u64,
    pub writes: bool,
}

/// An operation's number, unique on this machine.
pub(crate) fn operation(number: u64) -> u64 {
    u64::from(std::process::id()) << 32 | number & 0xffff_ffff
}

fn is_alive(of: u64) -> bool {
    let pid = (of >> 32) as u32;
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid == std::process::id() || process.is_some_and(|pid| test_kill_process(pid).is_ok())
}

impl Accesses {
    /// Notes what is touched until [`end`](Self::end) of the answer; `None` if there is no room. An error
    /// if another operation is at it that writes, or that this one would overwrite.
    pub(crate) fn begin(&self, touched: Touched) -> Result<Option<usize>, Touched> {
        if !self.lock() {
            return Ok(None);
        }
        let found = self.find(touched);
        if let Ok(Some(at)) = found {
            let note = &self.notes[at];
            note.from.store(touched.from, Ordering::Relaxed);
            note.to.store(touched.to, Ordering::Relaxed);
            note.writes.store(touched.writes.into(), Ordering::Relaxed);
            note.of.store(touched.of, Ordering::Relaxed);
        }
        self.lock.store(0, Ordering::Release);
        found
    }

    /// The operation is over.
    pub(crate) fn end(&self, at: usize) {
        self.notes[at].of.store(0, Ordering::Release);
    }

    /// A free place, unless another operation is at it.
    fn find(&self, touched: Touched) -> Result<Option<usize>, Touched> {
        let mut free = None;
        for (at, note) in self.notes.iter().enumerate() {
            let other = Touched {
                of: note.of.load(Ordering::Acquire),
                from: note.from.load(Ordering::Relaxed),
                to: note.to.load(Ordering::Relaxed),
                writes: note.writes.load(Ordering::Relaxed) != 0,
            };
            let meets = other.from < touched.to && touched.from < other.to;
            let races = meets && other.of != touched.of && (other.writes || touched.writes);
            match other.of {
                0 => free = Some(at),
                of if races && is_alive(of) => return Err(other),
                _ => {}
            }
        }
        Ok(free)
    }

    fn lock(&self) -> bool {
        (0..PATIENCE).any(|_| {
            std::hint::spin_loop();
            self.lock
                .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Kind;
    use crate::{Backing, BoxFile, Broken, Event, Machine, Op};
    use std::sync::Arc;

    fn touched(number: u64, from: u64, to: u64, writes: bool) -> Touched {
        Touched {
            of: operation(number),
            from,
            to,
            writes,
        }
    }

    #[test]
    fn only_a_write_beside_another_operation_is_a_race() {
        let memory = Backing::new(0, 8192).unwrap();
        let all = memory.accesses();
        let read = all.begin(touched(1, 0, 100, false)).unwrap().unwrap();
        assert!(all.begin(touched(2, 50, 150, false)).is_ok(), "two read");
        assert!(all.begin(touched(1, 0, 50, true)).is_ok(), "in place");
        all.begin(touched(3, 200, 300, true)).unwrap();
        let race = all.begin(touched(4, 299, 310, false)).unwrap_err();
        assert_eq!((race.from, race.writes), (200, true));
        assert!(all.begin(touched(5, 120, 130, true)).is_err(), "2 reads it");
        all.end(read);
        // Who noted more than there is room for is not looked at, and nothing is lost.
        for number in 10..100 {
            assert!(all.begin(touched(number, 4000, 4001, false)).is_ok());
        }
    }

    /// Two streams: one writes what the other reads, so many times, or until that breaks the device.
    fn two_streams(ordered: bool) -> Option<Broken> {
        const BYTES: u64 = 1 << 20;
        let text = include_str!("../boxes/h100x8.yaml").to_owned();
        let text = text + "delays: {one_in: 3, longest_us: 300}\n";
        let facts = BoxFile::parse(&text).unwrap();
        let machine: &'static Machine =
            Box::leak(Box::new(Machine::new(facts, 1, None, None).unwrap()));
        let device = machine.device(0).unwrap();
        let at = machine.space.take(3 * BYTES, 4096).unwrap();
        let backing = Arc::new(Backing::new(0, 3 * BYTES).unwrap());
        machine.space.put(at, 3 * BYTES, Kind::Own(backing), 1);
        let copy = |from: u64, to: u64| Op::Copy {
            dst: at + to * BYTES,
            src: at + from * BYTES,
            bytes: BYTES,
            rows: 1,
            dst_pitch: 0,
            src_pitch: 0,
        };
        let [a, b] = [(); 2].map(|()| device.stream(machine).unwrap());
        let [there, back] = [(); 2].map(|()| Arc::new(Event::default()));
        for _ in 0..100 {
            let (written, read) = (there.record(), back.last());
            let mut ops = vec![(&a, copy(0, 1)), (&b, copy(1, 2))];
            if ordered {
                ops.insert(0, (&a, Op::Await(back.clone(), read)));
                ops.insert(2, (&a, Op::Record(there.clone(), written)));
                ops.insert(3, (&b, Op::Await(there.clone(), written)));
                ops.push((&b, Op::Record(back.clone(), back.record())));
            }
            // Once the device is broken it takes no more.
            let taken = ops
                .into_iter()
                .all(|(stream, op)| stream.submit(op).is_ok());
            if !taken {
                break;
            }
        }
        let _ = device.synchronise("test");
        device.broken()
    }

    #[test]
    fn a_read_that_nothing_orders_breaks_the_device() {
        assert_eq!(two_streams(true), None);
        assert_eq!(two_streams(false), Some(Broken::Launch));
    }

    #[test]
    fn a_process_that_is_gone_is_at_nothing() {
        let memory = Backing::new(0, 4096).unwrap();
        let gone = Touched {
            of: u64::from(u32::MAX >> 2) << 32 | 1,
            ..touched(0, 0, 64, true)
        };
        memory.accesses().begin(gone).unwrap();
        assert!(memory.accesses().begin(touched(1, 0, 64, false)).is_ok());
    }
}
