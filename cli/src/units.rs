//! Sizes and times on the command line.

use std::time::Duration;

use unisono::cluster::TimeSpan;

/// A size in bytes: `8`, `64M`, `128 KiB`. As in nccl-tests, K, M, G and T count in powers of 1024,
/// with or without `iB` or `B` behind them.
pub fn size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let unit = unit.trim().to_ascii_lowercase();
    let shift = match unit.trim_end_matches('b').trim_end_matches('i') {
        "" if unit != "i" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => {
            return Err(format!(
                "`{unit}` is no unit; known: B, K, M, G, T (powers of 1024)"
            ));
        }
    };
    let bad = || format!("`{text}` is no size; write for example 8, 64K, 1.5M or 128 MiB");
    let bytes = match number.split_once('.') {
        None => {
            let whole: u64 = number.parse().map_err(|_| bad())?;
            whole
                .checked_mul(1 << shift)
                .ok_or_else(|| format!("`{text}` is too large"))?
        }
        Some(_) => {
            let value: f64 = number.parse().map_err(|_| bad())?;
            let bytes = value * (1_u64 << shift) as f64;
            if bytes.fract() != 0.0 || bytes >= 9e15 {
                return Err(format!("`{text}` is no whole number of bytes"));
            }
            bytes as u64
        }
    };
    Ok(bytes)
}

/// A time, as in the cluster file: `30s`, `500 ms`, `2 min`.
pub fn time(text: &str) -> Result<Duration, String> {
    let span: TimeSpan = text
        .parse()
        .map_err(|e: unisono::cluster::UnitError| format!("{}; {}", e.message, e.help))?;
    Ok(span.as_duration())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_binary_as_in_nccl_tests() {
        for (text, bytes) in [
            ("0", 0),
            ("8", 8),
            ("8B", 8),
            ("64K", 64 << 10),
            ("64k", 64 << 10),
            ("64KiB", 64 << 10),
            ("128 KiB", 128 << 10),
            ("64M", 64 << 20),
            ("64MB", 64 << 20),
            ("1.5 G", 3 << 29),
            ("1T", 1 << 40),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "M",
            "-1",
            "1Q",
            "1i",
            "0.3",
            "1e3",
            "99999999999T",
            "1..5K",
        ] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_have_units() {
        assert_eq!(time("1.5s"), Ok(Duration::from_millis(1500)));
        assert!(time("5").unwrap_err().contains('5'));
    }
}
