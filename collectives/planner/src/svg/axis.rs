//! The axis of time, which all parts of a drawing share.

use super::paint::Paint;

/// About how many marks there are.
const MARKS: f64 = 8.0;

/// Moments as places.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    left: f64,
    width: f64,
    end_ps: f64,
}

impl Axis {
    pub(super) fn new(left: f64, width: f64, end_ps: f64) -> Self {
        Self {
            left,
            width,
            end_ps: end_ps.max(1.0),
        }
    }

    pub(super) fn left(&self) -> f64 {
        self.left
    }

    pub(super) fn width(&self) -> f64 {
        self.width
    }

    pub(super) fn end_ps(&self) -> f64 {
        self.end_ps
    }

    /// Where a moment is.
    pub(super) fn at(&self, ps: f64) -> f64 {
        self.left + ps / self.end_ps * self.width
    }

    /// Lines at round moments behind a part, with their times below it.
    pub(super) fn grid(&self, paint: &mut Paint, top: f64, height: f64) {
        let step = round(self.end_ps / MARKS);
        let marks = (self.end_ps / step * (1.0 + 1e-9)) as u32;
        for mark in 0..=marks {
            let ps = f64::from(mark) * step;
            let x = self.at(ps);
            paint.line((x, top), (x, top + height), "grid");
            paint.text_middle(x, top + height + 16.0, "mark", &time(ps));
        }
    }
}

/// The next 1, 2 or 5 times a power of ten.
fn round(ps: f64) -> f64 {
    let power = 10f64.powf(ps.max(1.0).log10().floor());
    let steps = [1.0, 2.0, 5.0].map(|step| step * power);
    let next = steps.into_iter().find(|step| *step >= ps);
    next.unwrap_or(10.0 * power)
}

/// A time with a unit that suits it, without zeros that say nothing.
pub(super) fn time(ps: f64) -> String {
    let (value, unit) = match ps {
        0.0 => return "0".into(),
        ps if ps < 1e6 => (ps / 1e3, "ns"),
        ps if ps < 1e9 => (ps / 1e6, "us"),
        ps if ps < 1e12 => (ps / 1e9, "ms"),
        ps => (ps / 1e12, "s"),
    };
    let digits = format!("{value:.3}");
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{digits} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_times_short() {
        assert_eq!(round(1.3e6), 2e6);
        assert_eq!(round(2e6), 2e6);
        assert_eq!(round(5.1e6), 1e7);
        assert_eq!(time(2_500_000.0), "2.5 us");
        assert_eq!(time(40_000.0), "40 ns");
        assert_eq!(time(0.0), "0");
        assert_eq!(time(1.5e13), "15 s");
    }
}
