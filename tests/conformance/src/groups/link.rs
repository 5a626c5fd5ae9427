//! Posted links: what a put is.

use unisono_abi::NO_WINDOW;
use unisono_hal::Put;

use super::copy::pattern;
use crate::case::Case;
use crate::check::Check;
use crate::ends::{DATA_BYTES, Ends};
use crate::outcome::{Checked, ensure};
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
    Check::two(G, "large", "64 MiB in one put are whole.", large),
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
