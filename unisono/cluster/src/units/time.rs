//! Times: latencies, timeouts.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{UnitError, number};

/// A span of time in nanoseconds: `2 us`, `30s`, `5 min`.
///
/// Units: `ns`, `us` (or `µs`), `ms`, `s` (or `sec`), `min`, `h`. A bare number is refused, and so
/// is `m`, which some take for minutes and some for milliseconds. The [`Display`](fmt::Display)
/// form is exact and reads back as the same time.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeSpan(pub u64);

const EXAMPLE: &str = "30s";

impl TimeSpan {
    /// A time in microseconds; the longest time if it does not fit.
    pub const fn micros(count: u64) -> TimeSpan {
        TimeSpan(count.saturating_mul(1_000))
    }

    /// A time in milliseconds; the longest time if it does not fit.
    pub const fn millis(count: u64) -> TimeSpan {
        TimeSpan(count.saturating_mul(1_000_000))
    }

    /// A time in seconds; the longest time if it does not fit.
    pub const fn secs(count: u64) -> TimeSpan {
        TimeSpan(count.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// As the standard library has it.
    pub const fn as_duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}

impl From<TimeSpan> for Duration {
    fn from(span: TimeSpan) -> Duration {
        span.as_duration()
    }
}

fn factor(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        // The micro sign and the Greek letter.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

impl FromStr for TimeSpan {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<TimeSpan, UnitError> {
        let (number, unit) = number::split(text, EXAMPLE)?;
        let factor = factor(unit).ok_or_else(|| unknown(text.trim(), unit))?;
        number
            .scale(text.trim(), factor, 1, "nanoseconds")
            .map(TimeSpan)
    }
}

fn unknown(text: &str, unit: &str) -> UnitError {
    match unit {
        "" => UnitError::new(
            format!("`{text}` has no unit"),
            format!("write a time such as `{text}s` or `{text} ms`"),
        ),
        "m" => UnitError::new(
            "`m` is ambiguous",
            "write `min` for minutes or `ms` for milliseconds",
        ),
        _ => UnitError::new(
            format!("`{unit}` is no unit of time"),
            "use ns, us, ms, s, min or h",
        ),
    }
}

impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 6] = [
            ("h", 3_600_000_000_000),
            ("min", 60_000_000_000),
            ("s", 1_000_000_000),
            ("ms", 1_000_000),
            ("us", 1_000),
            ("ns", 1),
        ];
        if self.0 == 0 {
            return f.write_str("0 s");
        }
        f.write_str(&number::shortest(self.0, &UNITS))
    }
}

super::quantity!(
    TimeSpan,
    "unisono-time",
    "a time such as `2 us`, `30s` or `5 min`",
    "^\\s*[0-9]{1,20}(\\.[0-9]{1,9})? ?(ns|us|\u{b5}s|\u{3bc}s|ms|s|sec|min|h)\\s*$",
    ["2 us", "30s", "5 min"],
    false
);
