//! A decimal number and the unit after it, read without floating point.

use super::UnitError;

/// Digits after the point that are read: enough for a nanosecond in a second.
const MAX_FRACTION_DIGITS: usize = 9;
/// Digits before the point that are read: as many as the largest `u64` has.
const MAX_WHOLE_DIGITS: usize = 20;

/// `mantissa / 10^fraction_digits`, not negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    mantissa: u128,
    fraction_digits: u32,
}

/// Takes `"1.5 GiB"` apart into `1.5` and `"GiB"`. One space is allowed between them.
pub(super) fn split<'a>(text: &'a str, example: &str) -> Result<(Number, &'a str), UnitError> {
    let text = text.trim();
    let help = || format!("write a number and a unit, such as `{example}`");
    if text.starts_with('-') {
        return Err(UnitError::new(format!("`{text}` is negative"), help()));
    }
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let dangling = digits.contains('.') && fraction.is_empty();
    if whole.is_empty() || dangling || fraction.contains('.') {
        return Err(UnitError::new(
            format!("`{text}` does not begin with a number"),
            help(),
        ));
    }
    if whole.len() > MAX_WHOLE_DIGITS || fraction.len() > MAX_FRACTION_DIGITS {
        return Err(UnitError::new(
            format!("`{text}` has too many digits"),
            format!(
                "give at most {MAX_WHOLE_DIGITS} before and {MAX_FRACTION_DIGITS} after the point"
            ),
        ));
    }
    let mantissa = format!("{whole}{fraction}")
        .parse()
        .map_err(|_| UnitError::new(format!("`{text}` is no number"), help()))?;
    let number = Number {
        mantissa,
        fraction_digits: fraction.len() as u32,
    };
    Ok((number, unit.strip_prefix(' ').unwrap_or(unit)))
}

impl Number {
    /// The number times `numerator / denominator`, if that is whole and fits.
    pub(super) fn scale(
        self,
        text: &str,
        numerator: u64,
        denominator: u64,
        base: &str,
    ) -> Result<u64, UnitError> {
        let too_large = || {
            UnitError::new(
                format!("`{text}` is too large"),
                format!("give at most {} {base}", u64::MAX),
            )
        };
        let product = self
            .mantissa
            .checked_mul(u128::from(numerator))
            .ok_or_else(too_large)?;
        let divisor = 10u128.pow(self.fraction_digits) * u128::from(denominator);
        if product % divisor != 0 {
            return Err(UnitError::new(
                format!("`{text}` is not a whole number of {base}"),
                "give a number that needs no rounding, or a smaller unit",
            ));
        }
        u64::try_from(product / divisor).map_err(|_| too_large())
    }
}

/// The shortest exact way to write `value` in one of `units`, largest first; the last has factor 1.
pub(super) fn shortest(value: u64, units: &[(&str, u64)]) -> String {
    units
        .iter()
        .filter(|(_, factor)| value.is_multiple_of(*factor) && (value > 0 || *factor == 1))
        .map(|(unit, factor)| format!("{} {unit}", value / factor))
        .min_by_key(String::len)
        .unwrap_or_else(|| value.to_string())
}
