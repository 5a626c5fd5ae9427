//! Sizes in bytes.

use std::fmt;
use std::str::FromStr;

use super::{UnitError, number};

/// A size in bytes: `128 KiB`, `4M`, `1.5 GB`, `4096`.
///
/// | unit | bytes |
/// |---|---|
/// | none, `B` | 1 |
/// | `K` `M` `G` `T` (or small), `KiB` `MiB` `GiB` `TiB` | powers of 1024; the single letters are as in nccl-tests |
/// | `KB` `MB` `GB` `TB` (or `kB`) | powers of 1000 |
///
/// `Kb`, `Mb` and their like would be bits and are refused. The [`Display`](fmt::Display) form is
/// exact and reads back as the same size.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

const EXAMPLE: &str = "128 KiB";

impl Bytes {
    /// A size in KiB (1024 bytes); the largest size if it does not fit.
    pub const fn kib(count: u64) -> Bytes {
        Bytes(count.saturating_mul(1 << 10))
    }

    /// A size in MiB (1024 KiB); the largest size if it does not fit.
    pub const fn mib(count: u64) -> Bytes {
        Bytes(count.saturating_mul(1 << 20))
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
}

fn factor(unit: &str) -> Option<u64> {
    Some(match unit {
        "" | "B" => 1,
        "K" | "k" | "KiB" => 1 << 10,
        "M" | "m" | "MiB" => 1 << 20,
        "G" | "g" | "GiB" => 1 << 30,
        "T" | "t" | "TiB" => 1 << 40,
        "KB" | "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return None,
    })
}

impl FromStr for Bytes {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Bytes, UnitError> {
        let (number, unit) = number::split(text, EXAMPLE)?;
        let factor = factor(unit).ok_or_else(|| unknown(unit))?;
        number.scale(text.trim(), factor, 1, "bytes").map(Bytes)
    }
}

fn unknown(unit: &str) -> UnitError {
    let letter = unit.chars().next().map(|c| c.to_ascii_uppercase());
    let help = match letter {
        Some(c @ ('K' | 'M' | 'G' | 'T')) if unit.len() <= 3 => {
            format!("write `{c}iB` for a power of 1024 or `{c}B` for a power of 1000")
        }
        _ => "use B, KiB, MiB, GiB, TiB (or K, M, G, T) for powers of 1024, KB, MB, GB, TB for powers of 1000".to_owned(),
    };
    UnitError::new(format!("`{unit}` is no unit of size"), help)
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 9] = [
            ("TiB", 1 << 40),
            ("GiB", 1 << 30),
            ("MiB", 1 << 20),
            ("KiB", 1 << 10),
            ("TB", 1_000_000_000_000),
            ("GB", 1_000_000_000),
            ("MB", 1_000_000),
            ("KB", 1_000),
            ("B", 1),
        ];
        f.write_str(&number::shortest(self.0, &UNITS))
    }
}

super::quantity!(
    Bytes,
    "unisono-bytes",
    "a size such as `128 KiB`; K, M, G, T and KiB, MiB, ... are powers of 1024, KB, MB, ... of 1000",
    r"^\s*[0-9]{1,20}(\.[0-9]{1,9})? ?(B|[KkMmGgTt]|[KMGT]iB|[KkMGT]B)?\s*$",
    serde_json::json!(["128 KiB", "4M", "1 GB", 4096]),
    true
);
