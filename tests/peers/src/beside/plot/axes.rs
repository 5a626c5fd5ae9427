//! The axes of a panel: bytes across, on a logarithmic scale, a value upward.

use std::fmt::Write;

use crate::cell::size;

/// How values are laid out upward.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Powers of ten at equal distances.
    Log,
    /// From zero.
    Linear,
}

/// A range of sizes and one of values.
pub struct Axes {
    scale: Scale,
    bytes: Vec<f64>,
    low: f64,
    high: f64,
}

impl Axes {
    /// Around points of (bytes, value); none where there are none.
    pub fn around(points: &[(f64, f64)], scale: Scale) -> Option<Self> {
        let mut bytes: Vec<f64> = points.iter().map(|point| point.0).collect();
        bytes.sort_by(f64::total_cmp);
        bytes.dedup();
        let values = points.iter().map(|point| point.1);
        let least = values.clone().reduce(f64::min)?;
        let most = values.reduce(f64::max)?;
        let (low, high) = match scale {
            Scale::Log => (
                10_f64.powf(least.log10().floor()),
                10_f64.powf((most.log10() + 1e-9).ceil()),
            ),
            Scale::Linear => (0.0, step(most) * (most / step(most)).ceil()),
        };
        (high > low).then_some(Self {
            scale,
            bytes,
            low,
            high,
        })
    }

    /// Where a point lies in a plane of this width and height, whose first line is the highest.
    pub fn place(&self, (bytes, value): (f64, f64), width: f64, height: f64) -> (f64, f64) {
        let (first, last) = (self.bytes[0], self.bytes[self.bytes.len() - 1]);
        let across = if last > first {
            (bytes / first).ln() / (last / first).ln()
        } else {
            0.5
        };
        let up = match self.scale {
            Scale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
            Scale::Linear => value / self.high,
        };
        (across * width, height * (1.0 - up))
    }

    /// Lines and numbers.
    pub fn draw(&self, svg: &mut String, width: f64, height: f64) {
        let first = self.bytes[0];
        for value in self.marks() {
            let (_, y) = self.place((first, value), width, height);
            let _ = writeln!(
                svg,
                "<path d=\"M0 {y:.1}h{width}\" stroke=\"#e3e6ea\"/>\
                 <text x=\"-8\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                y + 4.0,
                number(value)
            );
        }
        // Numbers that would run into each other are left out.
        let mut free = f64::MIN;
        for &bytes in &self.bytes {
            let (x, _) = self.place((bytes, self.high), width, height);
            let _ = writeln!(svg, "<path d=\"M{x:.1} {height}v4\" stroke=\"#6b7280\"/>");
            if x >= free {
                let (y, text) = (height + 19.0, size(bytes as usize));
                let _ = writeln!(
                    svg,
                    "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{text}</text>"
                );
                free = x + 48.0;
            }
        }
        let _ = writeln!(svg, "<path d=\"M0 {height}h{width}\" stroke=\"#6b7280\"/>");
    }

    fn marks(&self) -> Vec<f64> {
        let mut marks = Vec::new();
        let mut value = self.low;
        // Half a step more than the end, since sums of steps are not exact.
        while value <= self.high * (1.0 + 1e-6) && marks.len() < 20 {
            marks.push(value);
            value = match self.scale {
                Scale::Log => value * 10.0,
                Scale::Linear => value + step(self.high),
            };
        }
        marks
    }
}

/// 1, 2 or 5 times a power of ten, so that there are four to ten steps up to `most`.
fn step(most: f64) -> f64 {
    let power = 10_f64.powf((most.max(1e-9) / 5.0).log10().floor());
    let steps = most / 5.0 / power;
    power
        * match steps {
            s if s < 2.0 => 1.0,
            s if s < 5.0 => 2.0,
            _ => 5.0,
        }
}

fn number(value: f64) -> String {
    match value {
        v if v >= 1000.0 => format!("{}k", v / 1000.0),
        v => format!("{}", (v * 1e6).round() / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_lie_inside_and_marks_are_few() {
        for scale in [Scale::Log, Scale::Linear] {
            for (least, most) in [(0.07, 19_000.0), (3.0, 3.0), (1.0, 10.0), (0.4, 47.3)] {
                let points = [(4.0, least), (4096.0, most)];
                let axes = Axes::around(&points, scale).unwrap();
                for point in points {
                    let (x, y) = axes.place(point, 300.0, 100.0);
                    assert!((0.0..=300.0).contains(&x) && (-1e-9..=100.1).contains(&y));
                }
                assert!((2..=11).contains(&axes.marks().len()), "{:?}", axes.marks());
            }
        }
        assert!(Axes::around(&[], Scale::Log).is_none());
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(number(0.1), "0.1");
        assert_eq!(number(10_000.0), "10k");
        assert_eq!(step(47.0), 5.0);
        assert_eq!(step(9.0), 1.0);
    }
}
