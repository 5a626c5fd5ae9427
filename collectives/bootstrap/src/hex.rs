//! Bytes as hex digits.

/// Lower-case digits.
pub(crate) fn print(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|b| {
            [
                DIGITS[(b >> 4) as usize] as char,
                DIGITS[(b & 15) as usize] as char,
            ]
        })
        .collect()
}

/// Exactly `N` bytes, digits of either case; `None` for anything else.
pub(crate) fn parse<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N {
        return None;
    }
    let mut out = [0; N];
    for (byte, pair) in out.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let digit = |c: u8| (c as char).to_digit(16);
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_and_back() {
        assert_eq!(super::print(&[0, 0xaf, 0x10]), "00af10");
        assert_eq!(super::parse::<3>("00AF10"), Some([0, 0xaf, 0x10]));
        assert_eq!(super::parse::<3>("00af1"), None);
        assert_eq!(super::parse::<3>("00af1g"), None);
        assert_eq!(super::parse::<1>("é"), None);
    }
}
