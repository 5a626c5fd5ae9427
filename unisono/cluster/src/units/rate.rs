//! Rates in bytes a second.

use std::fmt;
use std::str::FromStr;

use super::{UnitError, number};

/// A rate in bytes a second: `50 GB/s`, `400 Gbit/s`, `12.5 GiB/s`.
///
/// Bytes: `B/s`, `KB/s` to `TB/s` (powers of 1000), `KiB/s` to `TiB/s` (powers of 1024).
/// Bits, as networks count: `bit/s`, `Kbit/s` to `Tbit/s` or `Kbps` to `Tbps` (powers of 1000).
/// `Gb/s` is refused, since some mean bits by it and some bytes. A bare number is refused too.
/// The [`Display`](fmt::Display) form is exact and reads back as the same rate.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub u64);

const EXAMPLE: &str = "50 GB/s";

impl Rate {
    /// Bytes a second.
    pub const fn bytes_per_second(self) -> u64 {
        self.0
    }
}

/// The unit as bytes a second: numerator and denominator.
fn factor(unit: &str) -> Option<(u64, u64)> {
    let power = |letter: &str, base: u64| {
        let exponent = match letter {
            "" => 0,
            "K" | "k" => 1,
            "M" => 2,
            "G" => 3,
            "T" => 4,
            _ => return None,
        };
        Some(base.pow(exponent))
    };
    let bits = unit
        .strip_suffix("bit/s")
        .or_else(|| unit.strip_suffix("bps"));
    if let Some(letter) = bits {
        return Some((power(letter, 1000)?, 8));
    }
    if let Some(letter) = unit.strip_suffix("iB/s") {
        return (!letter.is_empty()).then_some((power(letter, 1024)?, 1));
    }
    Some((power(unit.strip_suffix("B/s")?, 1000)?, 1))
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Rate, UnitError> {
        let (number, unit) = number::split(text, EXAMPLE)?;
        let (numerator, denominator) = factor(unit).ok_or_else(|| unknown(text.trim(), unit))?;
        number
            .scale(text.trim(), numerator, denominator, "bytes a second")
            .map(Rate)
    }
}

fn unknown(text: &str, unit: &str) -> UnitError {
    if unit.is_empty() {
        return UnitError::new(
            format!("`{text}` has no unit"),
            format!("write a rate such as `{EXAMPLE}` or `400 Gbit/s`"),
        );
    }
    let help = match unit.strip_suffix("b/s") {
        Some(letter) => {
            format!("write `{letter}bit/s` for bits or `{letter}B/s` for bytes a second")
        }
        None => "use GB/s (powers of 1000), GiB/s (powers of 1024) or Gbit/s, with K, M, G or T"
            .to_owned(),
    };
    UnitError::new(format!("`{unit}` is no unit of bandwidth"), help)
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 9] = [
            ("TB/s", 1_000_000_000_000),
            ("GB/s", 1_000_000_000),
            ("MB/s", 1_000_000),
            ("KB/s", 1_000),
            ("TiB/s", 1 << 40),
            ("GiB/s", 1 << 30),
            ("MiB/s", 1 << 20),
            ("KiB/s", 1 << 10),
            ("B/s", 1),
        ];
        f.write_str(&number::shortest(self.0, &UNITS))
    }
}

super::quantity!(
    Rate,
    "unisono-rate",
    "a rate such as `50 GB/s`, `25 GiB/s` or `400 Gbit/s`",
    r"^\s*[0-9]{1,20}(\.[0-9]{1,9})? ?([KkMGT]?B/s|[KkMGT]iB/s|[KkMGT]?(bit/s|bps))\s*$",
    ["50 GB/s", "400 Gbit/s"],
    false
);
