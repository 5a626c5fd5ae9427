//! The rule for plugins' names.

/// The rule, for errors.
pub(crate) const RULE: &str = "1 to 32 of a-z, 0-9, _ and -";

/// Whether a text can be the name of a plugin.
pub(crate) fn is_name(text: &str) -> bool {
    let ok = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
    (1..=32).contains(&text.len()) && text.bytes().all(ok)
}

/// Whether two names mean one plugin: file names of libraries often cannot hold a `-`.
pub(crate) fn same_name(a: &str, b: &str) -> bool {
    let plain = |c: char| if c == '-' { '_' } else { c };
    a.chars().map(plain).eq(b.chars().map(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for good in ["a", "some-name", "x_2", &"a".repeat(32)] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "A", "a b", "\u{e9}", "a/b", &"a".repeat(33)] {
            assert!(!is_name(bad), "{bad}");
        }
        assert!(same_name("a-b", "a_b") && !same_name("a-b", "ab"));
    }
}
