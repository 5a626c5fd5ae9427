//! Sets of ranks: each set exists once, so that those of equal sums are one number.
//!
//! A set is a list of spans, since what ranks add up are mostly neighbours: the partial sums of a
//! ring of a thousand ranks are a million sets of one or two spans.

use super::hash::Map;

/// A set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Set(u32);

/// Neighbouring ranks, from the first to behind the last.
type Span = (u32, u32);

#[derive(Debug)]
pub(super) struct Sets {
    spans: Vec<Box<[Span]>>,
    numbers: Map<Box<[Span]>, Set>,
    unions: Map<(Set, Set), Set>,
}

impl Sets {
    pub(super) fn new() -> Self {
        Self {
            spans: Vec::new(),
            numbers: Map::default(),
            unions: Map::default(),
        }
    }

    pub(super) fn one(&mut self, rank: u32) -> Set {
        self.intern([(rank, rank + 1)].into())
    }

    /// The ranks of two sets, or one that is in both.
    pub(super) fn union(&mut self, a: Set, b: Set) -> Result<Set, u32> {
        if let Some(&known) = self.unions.get(&(a, b)) {
            return Ok(known);
        }
        let (mut x, mut y) = (
            self.spans(a).iter().peekable(),
            self.spans(b).iter().peekable(),
        );
        let mut all: Vec<Span> = Vec::new();
        loop {
            let next = match (x.peek(), y.peek()) {
                (Some(&&a), Some(&&b)) if a <= b => x.next(),
                (_, Some(_)) => y.next(),
                (Some(_), None) => x.next(),
                (None, None) => break,
            };
            let Some(&(start, end)) = next else { break };
            match all.last_mut() {
                Some(last) if start < last.1 => return Err(start),
                Some(last) if start == last.1 => last.1 = end,
                _ => all.push((start, end)),
            }
        }
        let union = self.intern(all.into());
        self.unions.insert((a, b), union);
        Ok(union)
    }

    /// How many ranks are in a set.
    pub(super) fn len(&self, set: Set) -> u32 {
        self.spans(set).iter().map(|(start, end)| end - start).sum()
    }

    /// The ranks below `ranks` that are not in a set.
    pub(super) fn missing(&self, set: Set, ranks: u32) -> impl Iterator<Item = u32> {
        let spans = self.spans(set);
        let starts = [0].into_iter().chain(spans.iter().map(|span| span.1));
        let ends = spans.iter().map(|span| span.0).chain([ranks]);
        starts.zip(ends).flat_map(|(start, end)| start..end)
    }

    fn spans(&self, set: Set) -> &[Span] {
        &self.spans[set.0 as usize]
    }

    fn intern(&mut self, spans: Box<[Span]>) -> Set {
        if let Some(&known) = self.numbers.get(&spans) {
            return known;
        }
        let set = Set(self.spans.len() as u32);
        self.spans.push(spans.clone());
        self.numbers.insert(spans, set);
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unions_are_one_set_however_they_came_about() {
        let mut sets = Sets::new();
        let one: Vec<Set> = (0..5).map(|rank| sets.one(rank)).collect();
        let low = sets.union(one[0], one[1]).unwrap();
        let ends = sets.union(low, one[4]).unwrap();
        let other = sets.union(one[4], one[1]).unwrap();
        assert_eq!(sets.union(one[0], other), Ok(ends));
        assert_eq!(sets.len(ends), 3);
        assert_eq!(sets.missing(ends, 6).collect::<Vec<_>>(), [2, 3, 5]);
        assert_eq!(sets.union(other, low), Err(1));
        assert_eq!(sets.union(ends, ends), Err(0));
    }
}
