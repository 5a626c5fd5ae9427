//! Numbers as people read them. Nothing decides on these texts.

/// A bandwidth in bytes a second, with decimal prefixes: `12.5 GB/s`.
pub fn bandwidth(bytes_per_second: u64) -> String {
    format!(
        "{}B/s",
        scaled(bytes_per_second, 1000, &["", "k", "M", "G", "T", "P"])
    )
}

/// A size in bytes, with binary prefixes: `80 GiB`.
pub fn size(bytes: u64) -> String {
    format!(
        "{}B",
        scaled(bytes, 1024, &["", "Ki", "Mi", "Gi", "Ti", "Pi"])
    )
}

/// A latency in nanoseconds: `700 ns`, `1.2 µs`.
pub fn latency(nanoseconds: u64) -> String {
    format!("{}s", scaled(nanoseconds, 1000, &["n", "µ", "m", ""]))
}

/// Three digits at most, then a space and the prefix. Integers only, so that it is the same
/// everywhere; halves round up.
fn scaled(value: u64, base: u64, prefixes: &[&str]) -> String {
    let mut unit = 1u128;
    let value = u128::from(value);
    for (place, prefix) in prefixes.iter().enumerate() {
        let last = place + 1 == prefixes.len();
        // Tenths of a unit; above ten units, whole ones.
        let tenths = (value * 10 + unit / 2) / unit;
        let whole = (value + unit / 2) / unit;
        if last || whole < u128::from(base) {
            return if tenths < 1000 && !tenths.is_multiple_of(10) {
                format!("{}.{} {prefix}", tenths / 10, tenths % 10)
            } else {
                format!("{whole} {prefix}")
            };
        }
        unit *= u128::from(base);
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_short_and_round_well() {
        assert_eq!(bandwidth(1), "1 B/s");
        assert_eq!(bandwidth(999), "999 B/s");
        assert_eq!(bandwidth(12_500_000_000), "12.5 GB/s");
        assert_eq!(bandwidth(999_960_000), "1 GB/s");
        assert_eq!(bandwidth(99_960_000), "100 MB/s");
        assert_eq!(bandwidth(450_000_000_000), "450 GB/s");
        assert_eq!(bandwidth(u64::MAX), "18447 PB/s");
        assert_eq!(latency(700), "700 ns");
        assert_eq!(latency(1_200), "1.2 µs");
        assert_eq!(latency(5_000_000_000), "5 s");
        assert_eq!(size(0), "0 B");
        assert_eq!(size(80 << 30), "80 GiB");
        assert_eq!(size(1536), "1.5 KiB");
    }
}
