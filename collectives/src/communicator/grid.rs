//! Named grids of ranks: `dp=2,pp=2,tp=4` for data, pipeline and tensor parallel groups.

use std::fmt;
use std::str::FromStr;

/// Axes with names and lengths, the last one running fastest: in `dp=2,tp=4` ranks 0 to 3 are one
/// line along `tp`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    axes: Vec<(String, u32)>,
}

/// Text that is no grid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no grid: {why}; write for example dp=2,pp=2,tp=4")]
pub struct ParseGridError {
    text: String,
    why: String,
}

impl Grid {
    /// Places in the grid.
    #[must_use]
    pub fn ranks(&self) -> u64 {
        self.axes.iter().map(|(_, len)| u64::from(*len)).product()
    }

    /// The axes' names in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.axes.iter().map(|(name, _)| name.as_str())
    }

    /// The number of the line along `axis` that `rank` is on, and its place there.
    #[must_use]
    pub fn line(&self, axis: usize, rank: u32) -> (u32, u32) {
        let after: u32 = self.axes[axis + 1..].iter().map(|(_, len)| len).product();
        let length = self.axes[axis].1;
        let place = rank / after % length;
        let line = rank / (after * length) * after + rank % after;
        (line, place)
    }
}

impl FromStr for Grid {
    type Err = ParseGridError;

    fn from_str(text: &str) -> Result<Self, ParseGridError> {
        let error = |why: String| ParseGridError {
            text: text.to_owned(),
            why,
        };
        let mut axes: Vec<(String, u32)> = Vec::new();
        for axis in text.split(',') {
            let (name, length) = axis
                .trim()
                .split_once('=')
                .ok_or_else(|| error(format!("`{axis}` has no `=`")))?;
            let (name, length) = (name.trim(), length.trim());
            let number = length.parse().ok().filter(|n| *n > 0);
            let number =
                number.ok_or_else(|| error(format!("`{length}` is no positive number")))?;
            if name.is_empty() || axes.iter().any(|(known, _)| known == name) {
                return Err(error(format!(
                    "axis name `{name}` is empty or stands twice"
                )));
            }
            axes.push((name.to_owned(), number));
        }
        let grid = Self { axes };
        let product = grid
            .axes
            .iter()
            .try_fold(1_u32, |p, (_, n)| p.checked_mul(*n));
        product
            .map(|_| grid)
            .ok_or_else(|| error("it is too large".to_owned()))
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, length)) in self.axes.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            write!(f, "{comma}{name}={length}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_axis_divides_the_ranks_into_lines() {
        let grid: Grid = "dp=2, pp=3, tp=4".parse().unwrap();
        assert_eq!(
            (grid.ranks(), grid.to_string()),
            (24, "dp=2,pp=3,tp=4".to_owned())
        );
        for (axis, length) in [(0, 2), (1, 3), (2, 4)] {
            let mut lines: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for rank in 0..24 {
                let (line, place) = grid.line(axis, rank);
                assert_eq!(place as usize, lines.entry(line).or_default().len());
                lines.get_mut(&line).unwrap().push(rank);
            }
            assert!(lines.values().all(|ranks| ranks.len() == length));
        }
        assert_eq!(grid.line(2, 5), (1, 1), "the last axis runs fastest");
        assert_eq!(grid.line(0, 13), (1, 1));
    }

    #[test]
    fn bad_grids_say_why() {
        for (text, why) in [
            ("dp", "no `=`"),
            ("dp=0", "positive"),
            ("dp=2,dp=2", "twice"),
            ("a=65536,b=65536", "too large"),
        ] {
            let error = text.parse::<Grid>().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
