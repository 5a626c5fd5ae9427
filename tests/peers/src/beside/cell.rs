//! The grid: which operations at which sizes, and how often each is called.

use crate::arguments::Arguments;

/// Names of the operations, as in commands to the ranks.
pub const OPS: [&str; 8] = [
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "broadcast",
    "all_to_all",
    "reduce",
    "barrier",
    "send_recv",
];

const QUICK_OPS: [&str; 4] = ["all_reduce", "all_gather", "broadcast", "send_recv"];
const SIZES: [usize; 7] = [4, 64, 1 << 10, 16 << 10, 256 << 10, 4 << 20, 64 << 20];
const QUICK_SIZES: [usize; 4] = [4, 1 << 10, 64 << 10, 4 << 20];

/// What is asked of every library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// One of [`OPS`].
    pub op: &'static str,
    /// Bytes of the larger buffer.
    pub bytes: usize,
}

/// How often a cell is called in a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calls {
    pub warmup: u32,
    pub timed: u32,
    /// Fewer of them if they would take longer than this, in microseconds.
    pub cap_us: f64,
}

/// The cells of the grid for so many ranks, in the order in which they are visited.
pub fn cells(arguments: &Arguments, ranks: u32) -> Vec<Cell> {
    let ops: &[&'static str] = match &arguments.ops[..] {
        [] if arguments.quick => &QUICK_OPS,
        [] => &OPS,
        chosen => chosen,
    };
    let sizes = match &arguments.sizes[..] {
        [] if arguments.quick => &QUICK_SIZES[..],
        [] => &SIZES[..],
        chosen => chosen,
    };
    let mut cells = Vec::new();
    for &op in ops {
        match op {
            "send_recv" if ranks != 2 => {}
            "barrier" => cells.push(Cell { op, bytes: 0 }),
            _ => cells.extend(sizes.iter().map(|&bytes| Cell { op, bytes })),
        }
    }
    cells
}

impl Cell {
    /// Enough calls to be above the scheduler's noise, and no more than a fraction of a second. Of the shortest, which take
    /// 0.05 us, that is a millisecond, and of calls of more than 2.5 us what goes into 50 ms.
    pub fn calls(self, quick: bool) -> Calls {
        let cap_us: f64 = if quick { 40e3 } else { 150e3 };
        let (warmup, timed, cap_us) = match self.bytes {
            0..=16_384 => (5, 20_000, cap_us.min(50e3)),
            16_385..=262_144 => (5, 200, cap_us),
            262_145..=4_194_304 => (2, 20, cap_us),
            _ => (1, 4, 4.0 * cap_us),
        };
        Calls {
            warmup,
            timed,
            cap_us,
        }
    }
}

/// `16 KiB`.
pub fn size(bytes: usize) -> String {
    match bytes {
        b if b >= 1 << 20 && b % (1 << 20) == 0 => format!("{} MiB", b >> 20),
        b if b >= 1 << 10 && b % (1 << 10) == 0 => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

/// Reads `16K`, `4M` or plain bytes.
pub fn parse_bytes(text: &str) -> Result<usize, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        _ => (text, 0),
    };
    let number: usize = digits
        .parse()
        .map_err(|_| format!("`{text}` is no size: give bytes, or as 16K or 4M"))?;
    number
        .checked_shl(shift)
        .filter(|&bytes| (1..=1 << 30).contains(&bytes))
        .ok_or_else(|| format!("`{text}` is not between 1 byte and 1 GiB"))
}

/// One of [`OPS`].
pub fn parse_op(text: &str) -> Result<&'static str, String> {
    let found = OPS.into_iter().find(|op| *op == text);
    found.ok_or_else(|| format!("there are {}", OPS.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn the_grid_is_what_is_asked_for() {
        let grid = |line: &str, ranks| {
            cells(&Arguments::try_parse_from(line.split(' ')).unwrap(), ranks).len()
        };
        assert_eq!(grid("x", 2), 7 * SIZES.len() + 1);
        assert_eq!(grid("x", 4), 6 * SIZES.len() + 1);
        assert_eq!(grid("x --quick", 2), 4 * QUICK_SIZES.len());
        assert_eq!(grid("x --quick --ops barrier,reduce --sizes 8", 3), 2);
    }

    #[test]
    fn sizes_are_written_as_they_are_read() {
        assert_eq!(size(parse_bytes("16K").unwrap()), "16 KiB");
        assert_eq!(size(parse_bytes("64M").unwrap()), "64 MiB");
        assert_eq!(size(parse_bytes("100000").unwrap()), "100000 B");
        for bad in ["", "K", "0", "-1", "4000M", "1.5K"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
    }
}
