//! Posted links: what a put is.

use unisono_abi::NO_WINDOW;
use unisono_hal::{Put, Queue, State, Status};

use super::copy::pattern;
use crate::case::Case;
use crate::check::Check;
use crate::ends::{DATA, DATA_BYTES, Ends, FLAGS, posted};
use crate::flags::LINE;
use crate::outcome::{Checked, ensure, refused};
use crate::queue;

const G: &str = "link";

pub(super) const CHECKS: &[Check] = &[
    Check::two(
        G,
        "connects",
        "Two processes make a link, and bytes go both ways.",
        connects,
    ),
    Check::two(
        G,
        "sizes",
        "Any number of bytes arrives where it should, and nothing beside it.",
        sizes,
    ),
    Check::two(G, "words", "A put's words arrive with its signal.", words),
    Check::two(G, "empty", "A put without bytes signals.", empty),
    Check::two(
        G,
        "no_signal",
        "A put without a signal writes and does not signal.",
        no_signal,
    ),
    Check::two(
        G,
        "gather",
        "Pieces are gathered from their strides.",
        gather,
    ),
    Check::two(
        G,
        "done",
        "The local signal comes once the source may be reused.",
        done,
    ),
    Check::two(
        G,
        "wait",
        "Nothing behind a WAIT is sent before its flag is there.",
        wait,
    ),
    Check::two(
        G,
        "replay",
        "One batch, played 100 times, does the same each time.",
        replay,
    ),
    Check::two(
        G,
        "abort_step",
        "A signal is added: it does not undo an abort of the flag.",
        abort_step,
    ),
    Check::two(G, "large", "64 MiB in one put are whole.", large),
    Check::two(
        G,
        "several",
        "Links of several channels between two processes stay apart.",
        several,
    ),
    Check::two(
        G,
        "statistics",
        "A link counts what it sent and received.",
        statistics,
    ),
    Check::two(
        G,
        "window_ids",
        "A window's number is taken once, and free again when it is closed.",
        window_ids,
    ),
    Check::two(
        G,
        "bounds",
        "A put outside of a window is refused whole.",
        bounds,
    ),
    Check::two(
        G,
        "refused_whole",
        "Of a batch with an unsupported command nothing is taken.",
        refused_whole,
    ),
];

fn connects(case: &Case) -> Checked {
    let mut ends = Ends::connect(case, 1)?;
    for value in 1..=20 {
        ends.put_one(value)?;
    }
    ends.part()
}

fn sizes(case: &Case) -> Checked {
    let mut ends = Ends::connect(case, 1)?;
    let bytes = pattern(DATA_BYTES as usize, 1);
    ends.source.write(0, &bytes);
    let mut expected = vec![0; DATA_BYTES as usize];
    let sizes = [
        1_u64, 2, 7, 63, 64, 65, 4095, 4096, 70_001, 131_072, 500_003,
    ];
    for (round, size) in (1..).zip(sizes) {
        let (from, to) = (size % 61, size % 127 + 1);
        let mut batch = queue::batch();
        batch.put(&ends.put(from, size, to, 0));
        ends.submit(&mut batch)?;
        ends.await_flag(0, round)?;
        expected[to as usize..(to + size) as usize]
            .copy_from_slice(&bytes[from as usize..(from + size) as usize]);
        ensure!(
            ends.data.read(0, DATA_BYTES) == expected,
            "{size} bytes are wrong"
        );
        ends.drain()?;
        ends.meet(round)?;
    }
    ends.part()
}

fn words(case: &Case) -> Checked {
    let mut ends = Ends::connect(case, 1)?;
    for n in 1..=50 {
        let mut batch = queue::batch();
        let mut put = ends.put(0, n, 0, 2);
        put.words = Some([n, n << 40, !n]);
        batch.put(&put);
        ends.submit(&mut batch)?;
        ends.await_flag(2, n)?;
        let found = ends.flags.words(2);
        ensure!(
            found == [n, n << 40, !n],
            "put {n} brought the words {found:?}"
        );
        // The peer's next put would overwrite them.
        ends.meet(n)?;
    }
    ends.part()
}

fn empty(case: &Case) -> Checked {
    let mut ends = Ends::connect(case, 1)?;
    for n in 1..=50 {
        let mut batch = queue::batch();
        let mut put = ends.put(0, 0, 0, 1);
        if n % 2 == 0 {
            (put.dst_window, put.src) = (NO_WINDOW, 0);
        }
        batch.put(&put);
        ends.submit(&mut batch)?;
        ends.await_flag(1, n)?;
    }
    ensure!(
        ends.flags.value(0) == 0 && ends.flags.value(2) == 0,
        "other flags were signalled"
    );
    ends.part()
}

fn no_signal(case: &Case) -> Checked {
    let mut ends = Ends::connect(case, 1)?;
    ends.source.write(0, &[9; 64]);
    let mut batch = queue::batch();
    batch.put(&Put {
        signal: None,
        ..ends.put(0, 64, 64, 0)
    });
    batch.put(&ends.put(0, 0, 0, 3));
    ends.submit(&mut batch)?;
    // Puts of a link land in order.
    ends.await_flag(3, 1)?;
    ensure!(ends.data.read(64, 64) == [9; 64], "the bytes are not there");
    for line in [0, 1, 2] {
        ensure!(ends.flags.value(line) == 0, "flag {line} was signalled");
    }
    ends.part()
}

fn gather(case: &Case) -> Checked {
    let mut ends = Ends::connect(case, 1)?;
    let bytes = pattern(DATA_BYTES as usize, 2);
    ends.source.write(0, &bytes);
    let shapes = [
        (1_u64, 100_u64, 3_u64),
        (5, 17, 64),
        (1000, 40, 1001),
        (4096, 30, 8192),
    ];
    for (round, (len, repeat, stride)) in (1..).zip(shapes) {
        let mut batch = queue::batch();
        let mut put = ends.put(7, len, 32, 0);
        (put.repeat, put.src_stride) = (repeat, stride);
        batch.put(&put);
        ends.submit(&mut batch)?;
        ends.await_flag(0, round)?;
        let piece = |i: u64| {
            let from = (7 + i * stride) as usize;
            bytes[from..from + len as usize].iter().copied()
        };
        let expected: Vec<u8> = (0..repeat).flat_map(piece).collect();
        let found = ends.data.read(32, len * repeat);
        ensure!(
            found == expected,
            "{repeat} pieces of {len} bytes, {stride} apart, are wrong"
        );
        ends.meet(round)?;
    }
    ends.part()
}

fn done(case: &Case) -> Checked {
    let mut ends = Ends::connect(case, 1)?;
    let size = 100_000;
    for n in 1..=40_u64 {
        ends.source.write(0, &pattern(size, n));
        let mut batch = queue::batch();
        let mut put = ends.put(0, size as u64, 0, 0);
        put.done = Some((ends.local.flag(0), ends.local.counter(0)));
        batch.put(&put);
        ends.submit(&mut batch)?;
        queue::until("the local signal", || {
            ends.link.poll(queue::BUDGET)?;
            Ok(ends.local.value(0) >= n)
        })?;
        ensure!(ends.local.value(0) == n, "it signals more than once");
        ensure!(
            ends.local.counted(0).0 == n,
            "its counter is {:?}",
            ends.local.counted(0)
        );
        // Now the source may be reused: what was sent must be what was there.
        ends.source.write(0, &vec![0xff; size]);
        ends.await_flag(0, n)?;
        let right = ends.data.read(0, size as u64) == pattern(size, n);
        ensure!(
            right,
            "round {n}: the source was read after its local signal"
        );
        ends.meet(n)?;
    }
    ends.part()
}

fn wait(case: &Case) -> Checked {
    let mut ends = Ends::connect(case, 1)?;
    for n in 1..=20 {
        let mut batch = queue::batch();
        batch.wait(ends.local.flag(1), ends.local.counter(1), None);
        batch.put(&ends.put(0, 8, 0, 0));
        ends.submit(&mut batch)?;
        let state = queue::settle(&mut ends.link)?;
        ensure!(
            state.state == State::Waiting,
            "before the flag it is {:?}",
            state.state
        );
        ends.meet(2 * n)?;
        ensure!(
            ends.flags.value(0) == n - 1,
            "the put was sent before its flag"
        );
        ends.source.write(0, &n.to_le_bytes());
        ends.meet(2 * n + 1)?;
        ends.local.set(1, n, [0; 3]);
        ends.await_flag(0, n)?;
        ensure!(
            ends.data.read(0, 8) == n.to_le_bytes(),
            "it sent what was there before"
        );
        ends.drain()?;
        ends.meet(1000 + n)?;
    }
    ends.part()
}

fn replay(case: &Case) -> Checked {
    let mut ends = Ends::connect(case, 1)?;
    let mut batch = queue::batch();
    let mut put = ends.put(0, 4096, 0, 0);
    put.done = Some((ends.local.flag(0), ends.local.counter(0)));
    put.words = Some([1, 2, 3]);
    batch.put(&put);
    // The link waits for its own local signal, by another counter.
    batch.wait(ends.local.flag(0), ends.local.counter(1), None);
    batch.put(&ends.put(0, 16, 8192, 1));
    for n in 1..=100 {
        ends.source.write(0, &pattern(4096, n));
        batch.rewind();
        ends.submit(&mut batch)?;
        ends.await_flag(1, n)?;
        ensure!(
            ends.flags.value(0) == n,
            "round {n}: flag 0 is {}",
            ends.flags.value(0)
        );
        ensure!(
            ends.data.read(0, 4096) == pattern(4096, n),
            "round {n}: other bytes"
        );
        ends.drain()?;
        ends.meet(n)?;
    }
    ends.part()
}

fn abort_step(case: &Case) -> Checked {
    let mut ends = Ends::connect(case, 1)?;
    ends.flags.add(0, unisono_abi::ABORT_STEP);
    ends.meet(1)?;
    let mut batch = queue::batch();
    batch.put(&ends.put(0, 8, 0, 0));
    batch.put(&ends.put(0, 8, 0, 1));
    ends.submit(&mut batch)?;
    ends.await_flag(1, 1)?;
    let value = ends.flags.value(0);
    ensure!(
        value > unisono_abi::ABORT_AHEAD,
        "after a signal the aborted flag is {value:#x}"
    );
    ends.part()
}

fn large(case: &Case) -> Checked {
    let size = 64 << 20;
    let mut ends = Ends::connect_with(case, 1, size)?;
    let bytes = pattern(size as usize, u64::from(ends.role()));
    ends.source.write(0, &bytes);
    let mut batch = queue::batch();
    batch.put(&ends.put(0, size, 0, 0));
    ends.submit(&mut batch)?;
    ends.await_flag(0, 1)?;
    let expected = pattern(size as usize, 1 - u64::from(ends.role()));
    ensure!(
        ends.data.read(0, size) == expected,
        "{size} bytes are wrong"
    );
    ends.part()
}

fn several(case: &Case) -> Checked {
    let instance = posted(case)?;
    let mut all = Vec::new();
    for id in 1..=3 {
        all.push(Ends::of(case, &instance, id, 4096)?);
    }
    for round in 1..=20 {
        for (index, ends) in (0..).zip(&mut all) {
            ends.put_one(round * 3 + index)?;
        }
    }
    for ends in all {
        ends.part()?;
    }
    Ok(())
}

fn statistics(case: &Case) -> Checked {
    case.needs(&[("link", "statistics")])?;
    let mut ends = Ends::connect(case, 1)?;
    let before = ends.link.statistics()?;
    ensure!(
        before.connections >= 1,
        "a link that is up has no connection"
    );
    ensure!(
        (before.puts_sent, before.puts_received) == (0, 0),
        "it starts at {before:?}"
    );
    let mut batch = queue::batch();
    for _ in 0..10 {
        batch.put(&ends.put(0, 1000, 0, 0));
    }
    ends.submit(&mut batch)?;
    ends.await_flag(0, 10)?;
    ends.drain()?;
    let after = ends.link.statistics()?;
    let puts = (after.puts_sent, after.puts_received);
    ensure!(
        puts == (10, 10),
        "after 10 puts each way it counts {puts:?}"
    );
    let bytes = (after.bytes_sent, after.bytes_received);
    ensure!(
        bytes.0 >= 10_000 && bytes.1 >= 10_000,
        "after 10 000 bytes each way: {bytes:?}"
    );
    ends.part()
}

#[allow(unsafe_code, reason = "exports a window")]
fn window_ids(case: &Case) -> Checked {
    let mut ends = Ends::connect(case, 1)?;
    let (at, len) = (ends.source.host(), ends.source.len());
    // SAFETY: the source outlives the link, and nobody has the token.
    let again = unsafe { ends.link.export_window(DATA, at, len) };
    refused("a window's number used twice", again, &[])?;
    refused(
        "closing a window that is none",
        ends.link.close_window(77),
        &[],
    )?;
    // SAFETY: as above.
    unsafe { ends.link.export_window(5, at, len) }?;
    ends.link.close_window(5)?;
    // SAFETY: as above.
    unsafe { ends.link.export_window(5, at, len) }?;
    refused(
        "a token of rubbish",
        ends.link.import_window(9, &[0xff; 300]),
        &[],
    )?;
    ends.put_one(3)?;
    ends.part()
}

fn bounds(case: &Case) -> Checked {
    let mut ends = Ends::connect(case, 1)?;
    let (len, lines) = (ends.data.len(), ends.flags.region().len());
    let good = ends.put(0, 64, 0, 0);
    let bad = [
        (
            "one byte past the end",
            Put {
                dst_offset: len - 63,
                ..good
            },
        ),
        (
            "behind the end",
            Put {
                dst_offset: len + 64,
                ..good
            },
        ),
        (
            "an offset that wraps",
            Put {
                dst_offset: u64::MAX - 31,
                ..good
            },
        ),
        (
            "pieces past the end",
            Put {
                repeat: len,
                ..good
            },
        ),
        (
            "pieces that wrap",
            Put {
                bytes: 1 << 40,
                repeat: 1 << 40,
                ..good
            },
        ),
        (
            "a window that is none",
            Put {
                dst_window: 55,
                ..good
            },
        ),
        (
            "a signal past the end",
            Put {
                signal: Some((FLAGS, lines)),
                ..good
            },
        ),
        (
            "a signal across the end",
            Put {
                signal: Some((FLAGS, lines - LINE / 2)),
                ..good
            },
        ),
        (
            "a signal in no window",
            Put {
                signal: Some((55, 0)),
                ..good
            },
        ),
        ("no piece at all", Put { repeat: 0, ..good }),
    ];
    for (what, put) in bad {
        let mut batch = queue::batch();
        batch.put(&good);
        batch.put(&put);
        refused(what, ends.link.submit(&mut batch), &[Status::Invalid])?;
    }
    let state = queue::settle(&mut ends.link)?;
    ensure!(
        state.accepted == 0,
        "{} commands of refused batches were taken",
        state.accepted
    );
    ends.meet(1)?;
    ensure!(ends.flags.value(0) == 0, "a put of a refused batch arrived");
    ends.meet(2)?;
    ends.put_one(4)?;
    ends.part()
}

fn refused_whole(case: &Case) -> Checked {
    let mut ends = Ends::connect(case, 1)?;
    let mut batch = queue::batch();
    batch.put(&ends.put(0, 8, 0, 0));
    batch.copy(ends.source.at(), ends.source.at() + 64, 8);
    refused(
        "COPY on a link",
        ends.link.submit(&mut batch),
        &[Status::Unsupported],
    )?;
    let mut batch = queue::batch();
    batch.put(&ends.put(0, 8, 0, 0));
    batch.signal(ends.local.flag(0), ends.local.counter(0), 0, None);
    refused(
        "SIGNAL on a link",
        ends.link.submit(&mut batch),
        &[Status::Unsupported],
    )?;
    ends.meet(1)?;
    ensure!(ends.flags.value(0) == 0, "a put of a refused batch arrived");
    ends.meet(2)?;
    ends.put_one(4)?;
    ends.part()
}
