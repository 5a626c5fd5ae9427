//! What is chosen over all sizes: the front of the candidates' times.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;

use crate::cost::{Fabric, Picoseconds};
use crate::ir::Op;

use super::{Candidate, Overrides, Plan, Request, select};

/// Sizes at which one plan is chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// From the first to the last size, in bytes of the whole message.
    pub bytes: RangeInclusive<u64>,
    /// The plan; none if nothing can run.
    pub plan: Option<Plan>,
    /// Its [`Template::label`](crate::Template::label), or why there is none.
    pub label: Cow<'static, str>,
    /// Whether over windows.
    pub windowed: bool,
    /// Into how many pieces the message is cut at the first and at the last size.
    pub pieces: (u64, u64),
    /// The expected times at the first and at the last size.
    pub times: (Picoseconds, Picoseconds),
}

/// The plans that are chosen, by size. Its `Display` is a table.
///
/// Sizes are looked at that double; where two neighbours differ, the size from which on the choice is
/// another one is found exactly. A plan that is best only between two sizes that agree is not seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Front {
    /// The operation.
    pub op: Op,
    /// Ranks of the communicator.
    pub ranks: u32,
    /// By size, without gaps.
    pub segments: Vec<Segment>,
}

impl Front {
    /// The front from one element (of each rank, where each has a block) to `largest` bytes. The
    /// bytes of the request don't matter.
    #[must_use]
    pub fn new(request: &Request, fabric: &Fabric, overrides: &Overrides, largest: u64) -> Self {
        let parts = match request.op.has_block_per_rank() {
            true => u64::from(fabric.ranks()),
            false => 1,
        };
        let unit = u64::from(request.element_bytes.max(1)) * parts;
        let at = |units: u64| -> Choice {
            let bytes = units.saturating_mul(unit);
            let chosen = select(&Request { bytes, ..*request }, fabric, overrides);
            chosen
                .map(|selection| selection.winner().clone())
                .map_err(|error| error.to_string())
        };
        let last = (largest / unit).max(1);
        let mut segments: Vec<Segment> = Vec::new();
        let mut below = (1, at(1));
        let mut start = below.clone();
        while below.0 < last {
            let next = below.0.saturating_mul(2).min(last);
            let above = (next, at(next));
            while !alike(&below.1, &above.1) {
                // Where the choice of `below` ends.
                let (mut low, mut high) = (below.clone(), above.clone());
                while high.0 - low.0 > 1 {
                    let middle = low.0 + (high.0 - low.0) / 2;
                    let choice = at(middle);
                    match alike(&low.1, &choice) {
                        true => low = (middle, choice),
                        false => high = (middle, choice),
                    }
                }
                segments.push(segment(&start, &low, unit));
                start = high.clone();
                below = high;
            }
            below = above;
        }
        segments.push(segment(&start, &below, unit));
        Self {
            op: request.op,
            ranks: fabric.ranks(),
            segments,
        }
    }

    /// The segment of a size; the last one for what is larger than all.
    #[must_use]
    pub fn at(&self, bytes: u64) -> Option<&Segment> {
        let found = (self.segments.iter()).find(|segment| bytes <= *segment.bytes.end());
        found.or(self.segments.last())
    }
}

/// What is chosen at a size, or why nothing is.
type Choice = Result<Candidate, String>;

fn alike(a: &Choice, b: &Choice) -> bool {
    match (a, b) {
        (Ok(a), Ok(b)) => (a.plan, a.windowed) == (b.plan, b.windowed),
        (Err(_), Err(_)) => true,
        _ => false,
    }
}

fn segment(first: &(u64, Choice), last: &(u64, Choice), unit: u64) -> Segment {
    let of = |choice: &Choice| match choice {
        Ok(candidate) => (candidate.pieces, candidate.expected()),
        Err(_) => (0, Picoseconds::default()),
    };
    let (a, b) = (of(&first.1), of(&last.1));
    let bytes = first.0.saturating_mul(unit)..=last.0.saturating_mul(unit);
    let (plan, label, windowed) = match &first.1 {
        Ok(found) => (Some(found.plan), found.label.clone(), found.windowed),
        Err(why) => (None, why.clone().into(), false),
    };
    Segment {
        bytes,
        plan,
        label,
        windowed,
        pieces: (a.0, b.0),
        times: (a.1, b.1),
    }
}

impl fmt::Display for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} on {} ranks, by size", self.op, self.ranks)?;
        let plans = self
            .segments
            .iter()
            .filter(|segment| segment.plan.is_some());
        let longest = plans.map(|segment| segment.label.len()).max();
        let width = longest.unwrap_or(0).max(22);
        write!(
            f,
            "{:>14} {:>14}  {:width$} {:>13} {:>12} {:>12}",
            "from bytes", "to bytes", "algorithm", "pieces", "time", "to"
        )?;
        for segment in &self.segments {
            let path = if segment.windowed {
                " over windows"
            } else {
                ""
            };
            let (from, to) = segment.pieces;
            let pieces = match from == to {
                true => from.to_string(),
                false => format!("{from} to {to}"),
            };
            write!(
                f,
                "\n{:>14} {:>14}  {:width$} {pieces:>13} {:>12} {:>12}",
                segment.bytes.start(),
                segment.bytes.end(),
                format!("{}{path}", segment.label),
                segment.times.0,
                segment.times.1
            )?;
        }
        Ok(())
    }
}
