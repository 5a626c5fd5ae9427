//! Texts that are numbers, exactly: no floats, nothing rounded.

const SIZES: &[(&str, u64)] = &[
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

const TIMES: &[(&str, u64)] = &[
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("ns", 1),
];

pub(super) fn boolean(text: &str) -> Result<i64, String> {
    match text.trim() {
        "true" | "yes" | "on" | "1" => Ok(1),
        "false" | "no" | "off" | "0" => Ok(0),
        _ => Err("is neither true nor false".into()),
    }
}

pub(super) fn integer(text: &str) -> Result<i64, String> {
    let digits = text.trim().replace('_', "");
    digits
        .parse()
        .map_err(|_| "is no whole number of 64 bits".into())
}

/// A size; a number alone is bytes.
pub(super) fn bytes(text: &str) -> Result<i64, String> {
    with_unit(text, SIZES, Some(1), "a size, like 4096, 128 KiB or 1.5 GB")
}

/// A duration; only 0 needs no unit.
pub(super) fn duration(text: &str) -> Result<i64, String> {
    with_unit(text, TIMES, None, "a duration, like 20 us, 5 ms or 1.5 s")
}

fn with_unit(
    text: &str,
    units: &[(&str, u64)],
    bare: Option<u64>,
    example: &str,
) -> Result<i64, String> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(text.len());
    let (number, unit) = (text[..end].replace('_', ""), text[end..].trim());
    let (whole, part) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() || (number.contains('.') && part.is_empty()) || part.contains('.') {
        return Err(format!("is not {example}"));
    }
    let scale = if unit.is_empty() {
        let zero = number.bytes().all(|b| b == b'0');
        match bare {
            Some(scale) => scale,
            None if zero => 1,
            None => return Err(format!("has no unit: give {example}")),
        }
    } else {
        let found = units.iter().find(|(name, _)| *name == unit);
        let Some((_, scale)) = found else {
            let names: Vec<_> = units.iter().map(|(name, _)| *name).collect();
            let names = names.join(", ");
            return Err(format!("has the unit `{unit}`, which is none of {names}"));
        };
        *scale
    };
    let too_large = || String::from("is too large");
    let places = u32::try_from(part.len()).map_err(|_| too_large())?;
    let tenths = 10u128.checked_pow(places).ok_or_else(too_large)?;
    let digits: u128 = format!("{whole}{part}").parse().map_err(|_| too_large())?;
    let scaled = digits.checked_mul(scale.into()).ok_or_else(too_large)?;
    if !scaled.is_multiple_of(tenths) {
        return Err("is finer than its smallest unit".into());
    }
    i64::try_from(scaled / tenths).map_err(|_| too_large())
}

pub(super) fn show_bytes(number: i64) -> String {
    show(number, &SIZES[..4], "B")
}

pub(super) fn show_duration(number: i64) -> String {
    show(number, TIMES, "ns")
}

/// In the largest unit that divides it.
fn show(number: i64, units: &[(&str, u64)], smallest: &str) -> String {
    let fits = units
        .iter()
        .find(|(_, scale)| number != 0 && number.unsigned_abs().is_multiple_of(*scale));
    match fits {
        Some((name, scale)) => format!("{} {name}", number / *scale as i64),
        None => format!("{number} {smallest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let good = [
            ("0", 0),
            ("4096", 4096),
            ("128 KiB", 128 << 10),
            ("1.5GiB", 3 << 29),
            ("64 kB", 64_000),
            ("1_000 B", 1000),
        ];
        for (text, value) in good {
            assert_eq!(bytes(text), Ok(value), "{text}");
        }
        for text in [
            "",
            "KiB",
            "1.",
            ".5 KiB",
            "1..5",
            "-1",
            "1 K",
            "0.3 B",
            "9 EiB",
            "99999999 TiB",
        ] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations() {
        let good = [
            ("20us", 20_000),
            ("20 µs", 20_000),
            ("1.5 s", 1_500_000_000),
            ("2min", 120_000_000_000),
            ("0", 0),
        ];
        for (text, value) in good {
            assert_eq!(duration(text), Ok(value), "{text}");
        }
        for text in ["20", "20 seconds", "1.5 ns", "s"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shown_as_they_would_be_written() {
        assert_eq!(show_bytes(128 << 10), "128 KiB");
        assert_eq!(show_bytes(1000), "1000 B");
        assert_eq!(show_bytes(0), "0 B");
        assert_eq!(show_duration(20_000), "20 us");
        assert_eq!(show_duration(1_500_000_000), "1500 ms");
    }
}
