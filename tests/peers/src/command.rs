//! What the driver asks.

use anyhow::{Context, Result, bail};

use crate::call::Op;

/// One line from the driver.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Measure.
    Run(Cell),
    /// Leave.
    Quit,
}

/// One trial of one operation at one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The operation, absent if this program does not know it.
    pub op: Option<Op>,
    /// The operation as it was asked for.
    pub name: String,
    /// Bytes of the larger buffer.
    pub bytes: usize,
    /// Calls before the clock starts.
    pub warmup: u32,
    /// Calls that are timed.
    pub iters: u64,
    /// Fewer of them if they would take longer than this, in microseconds; 0 for no limit.
    pub cap_us: f64,
    /// Whether the result is checked.
    pub verify: bool,
}

impl Cell {
    /// How many calls are timed if one takes so many microseconds: no more than were asked for, and no fewer than `least`.
    pub fn iters_within(&self, usec: f64, least: u64) -> u64 {
        let iters = if self.cap_us > 0.0 && self.iters as f64 * usec > self.cap_us {
            (self.cap_us / usec) as u64
        } else {
            self.iters
        };
        iters.max(least)
    }
}

/// Reads one line.
pub fn parse(line: &str) -> Result<Command> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        ["quit"] => Ok(Command::Quit),
        ["run", op, bytes, warmup, iters, cap_us, verify] => Ok(Command::Run(Cell {
            op: Op::parse(op),
            name: (*op).to_owned(),
            bytes: bytes.parse().context("BYTES")?,
            warmup: warmup.parse().context("WARMUP")?,
            iters: iters.parse().context("ITERS")?,
            cap_us: cap_us.parse().context("CAP_US")?,
            verify: *verify != "0",
        })),
        _ => bail!("`{line}` is no command: run OP BYTES WARMUP ITERS CAP_US VERIFY, or quit"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read() {
        assert_eq!(parse("quit\n").unwrap(), Command::Quit);
        let Command::Run(cell) = parse("run all_reduce 1024 5 100 150000 1").unwrap() else {
            panic!("not a run");
        };
        assert_eq!((cell.op, cell.bytes), (Some(Op::AllReduce), 1024));
        assert_eq!((cell.warmup, cell.iters, cell.verify), (5, 100, true));
        let Command::Run(cell) = parse("run all_dance 1024 5 100 150000 0").unwrap() else {
            panic!("not a run");
        };
        assert_eq!((cell.op, cell.verify), (None, false));
        assert!(parse("run all_reduce x 5 100 1 1").is_err());
        assert!(parse("walk").is_err());
    }

    #[test]
    fn slow_calls_are_fewer() {
        let Command::Run(cell) = parse("run all_reduce 1024 5 1000 150000 1").unwrap() else {
            panic!("a run");
        };
        assert_eq!(cell.iters_within(10.0, 2), 1000);
        assert_eq!(cell.iters_within(1500.0, 2), 100);
        assert_eq!(cell.iters_within(1e6, 2), 2);
        let unlimited = Cell {
            cap_us: 0.0,
            ..cell
        };
        assert_eq!(unlimited.iters_within(1e6, 2), 1000);
    }
}
