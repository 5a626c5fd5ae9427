//! What plans really took: measurements on one fabric, which selection prefers to predictions.
//!
//! A model of latency, bandwidth and reduction speed tells algorithms apart where they differ by
//! much. Where two are within some ten per cent of each other, caches, the scheduler and the way in
//! which messages meet decide, and only a measurement knows. So where a cluster has been measured,
//! the measured time stands in place of the predicted one.

use std::collections::BTreeMap;

use crate::ir::OpKind;

use super::rate::Picoseconds;

/// One measurement of one plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Bytes of the whole message, as in [`crate::ir`].
    pub bytes: u64,
    /// Bytes of the largest put with which the plan was fastest at this size.
    pub put_bytes: u64,
    /// The time of a call.
    pub time: Picoseconds,
}

/// Which plan.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlanName {
    /// The operation. What was measured with the first rank as the root stands for all roots; a plan
    /// that cannot run there counts as not measured.
    pub op: OpKind,
    /// Whether over windows.
    pub windowed: bool,
    /// The algorithm's name.
    pub algorithm: String,
}

/// Measured times of plans, by size.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Measurements {
    rows: BTreeMap<PlanName, Vec<Point>>,
}

impl Measurements {
    /// Adds a point; one of the same size is replaced.
    pub fn insert(&mut self, plan: PlanName, point: Point) {
        let row = self.rows.entry(plan).or_default();
        match row.binary_search_by_key(&point.bytes, |p| p.bytes) {
            Ok(at) => row[at] = point,
            Err(at) => row.insert(at, point),
        }
    }

    /// The point of a plan at the largest size that it was measured at.
    #[must_use]
    pub fn last(&self, plan: &PlanName) -> Option<&Point> {
        self.rows.get(plan)?.last()
    }

    /// Every plan with its points, by size.
    pub fn rows(&self) -> impl Iterator<Item = (&PlanName, &[Point])> {
        self.rows.iter().map(|(name, points)| (name, &points[..]))
    }

    /// Whether nothing was measured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether some plan of an operation was measured, over windows or over slots.
    #[must_use]
    pub fn covers(&self, op: OpKind, windowed: bool) -> bool {
        let any = |name: &PlanName| name.op == op && name.windowed == windowed;
        self.rows.keys().any(any)
    }

    /// The time of a plan at a size, and the puts to cut the message into.
    ///
    /// Between two points the time lies on the straight line through them, as latency and
    /// bandwidth would have it; below the first it is the first's, above the last it grows with
    /// the bytes. `None` where the plan was not measured, or was no longer measured at this size
    /// while others were, up to `largest` bytes: it was too far behind.
    #[must_use]
    pub fn at(&self, plan: &PlanName, bytes: u64, largest: u64) -> Option<Point> {
        let row = self.rows.get(plan)?;
        let (first, last) = (row.first()?, row.last()?);
        if bytes <= first.bytes {
            return Some(Point { bytes, ..*first });
        }
        if bytes >= last.bytes {
            let dropped = last.bytes < largest;
            if dropped && bytes > last.bytes {
                return None;
            }
            let time =
                last.time.0.saturating_mul(u128::from(bytes)) / u128::from(last.bytes.max(1));
            return Some(Point {
                bytes,
                time: Picoseconds(time),
                ..*last
            });
        }
        let above = row.partition_point(|point| point.bytes < bytes);
        let (low, high) = (&row[above - 1], &row[above]);
        let (part, whole) = (bytes - low.bytes, high.bytes - low.bytes);
        let between = |a: u128, b: u128| {
            let weighted = a * u128::from(whole - part) + b * u128::from(part);
            weighted / u128::from(whole)
        };
        let nearest = if part * 2 < whole { low } else { high };
        Some(Point {
            bytes,
            put_bytes: nearest.put_bytes,
            time: Picoseconds(between(low.time.0, high.time.0)),
        })
    }

    /// The largest size that any plan of an operation was measured at.
    #[must_use]
    pub fn largest(&self, op: OpKind, windowed: bool) -> u64 {
        (self.rows.iter())
            .filter(|(name, _)| name.op == op && name.windowed == windowed)
            .filter_map(|(_, points)| Some(points.last()?.bytes))
            .max()
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(algorithm: &str) -> PlanName {
        PlanName {
            op: OpKind::AllReduce,
            windowed: false,
            algorithm: algorithm.to_owned(),
        }
    }

    fn point(bytes: u64, time: u128) -> Point {
        Point {
            bytes,
            put_bytes: bytes,
            time: Picoseconds(time),
        }
    }

    #[test]
    fn times_between_points_lie_on_a_line() {
        let mut measured = Measurements::default();
        measured.insert(plan("ring"), point(1000, 50));
        measured.insert(plan("ring"), point(3000, 150));
        let at = |bytes| measured.at(&plan("ring"), bytes, 3000).unwrap();
        assert_eq!(at(8).time.0, 50);
        assert_eq!(at(1000).time.0, 50);
        assert_eq!((at(1500).time.0, at(1500).put_bytes), (75, 1000));
        assert_eq!((at(2500).time.0, at(2500).put_bytes), (125, 3000));
        assert_eq!(at(6000).time.0, 300);
        assert!(measured.at(&plan("nhr"), 8, 3000).is_none());
    }

    #[test]
    fn a_plan_that_was_dropped_has_no_time_beyond() {
        let mut measured = Measurements::default();
        measured.insert(plan("ring"), point(8, 50));
        measured.insert(plan("ring"), point(32, 60));
        measured.insert(plan("mesh_one_shot"), point(128, 60));
        let largest = measured.largest(OpKind::AllReduce, false);
        assert_eq!(largest, 128);
        assert!(measured.at(&plan("ring"), 32, largest).is_some());
        assert!(measured.at(&plan("ring"), 33, largest).is_none());
        assert!(measured.covers(OpKind::AllReduce, false));
        assert!(!measured.covers(OpKind::AllReduce, true));
        assert!(!measured.covers(OpKind::Barrier, false));
    }

    #[test]
    fn a_point_of_the_same_size_is_replaced() {
        let mut measured = Measurements::default();
        measured.insert(plan("ring"), point(8, 50));
        measured.insert(plan("ring"), point(8, 40));
        assert_eq!(
            measured
                .rows()
                .map(|(_, points)| points.len())
                .sum::<usize>(),
            1
        );
        assert_eq!(measured.at(&plan("ring"), 8, 8).unwrap().time.0, 40);
    }
}
