//! Capacities between pairs of vertices, and the physical edges that they are made of.

use unisono_network::EdgeId;

/// Some capacity along one physical path.
#[derive(Clone, Debug)]
pub(crate) struct Strand {
    /// The edges, in order.
    pub(crate) path: Vec<EdgeId>,
    pub(crate) capacity: i64,
}

/// For each ordered pair of vertices, the strands that join them.
#[derive(Clone, Debug)]
pub(crate) struct Strands {
    n: usize,
    between: Vec<Vec<Strand>>,
}

impl Strands {
    pub(crate) fn new(n: usize) -> Self {
        Self {
            n,
            between: vec![Vec::new(); n * n],
        }
    }

    pub(crate) fn add(&mut self, from: usize, to: usize, strand: Strand) {
        let strands = &mut self.between[from * self.n + to];
        match strands.iter_mut().find(|one| one.path == strand.path) {
            Some(one) => one.capacity += strand.capacity,
            None => strands.push(strand),
        }
    }

    /// How much can flow from one vertex to another without a third.
    pub(crate) fn capacity(&self, from: usize, to: usize) -> i64 {
        let strands = &self.between[from * self.n + to];
        strands.iter().map(|strand| strand.capacity).sum()
    }

    /// The widest strand that is left, short ones first among equals.
    pub(crate) fn widest(&self, from: usize, to: usize) -> Option<&Strand> {
        self.between[from * self.n + to]
            .iter()
            .max_by_key(|strand| (strand.capacity, std::cmp::Reverse(strand.path.len())))
    }

    /// Takes capacity off the strand with this path, which must have it.
    pub(crate) fn take(&mut self, from: usize, to: usize, path: &[EdgeId], capacity: i64) {
        let strands = &mut self.between[from * self.n + to];
        if let Some(strand) = strands.iter_mut().find(|strand| strand.path == path) {
            strand.capacity -= capacity;
        }
        strands.retain(|strand| strand.capacity > 0);
    }

    /// Takes capacity off in whichever pieces it comes, widest first.
    fn cut(&mut self, from: usize, to: usize, mut capacity: i64) -> Vec<Strand> {
        let mut pieces = Vec::new();
        while capacity > 0 {
            let Some(strand) = self.widest(from, to).cloned() else {
                break;
            };
            let piece = capacity.min(strand.capacity);
            self.take(from, to, &strand.path, piece);
            capacity -= piece;
            pieces.push(Strand {
                path: strand.path,
                capacity: piece,
            });
        }
        pieces
    }

    /// Joins capacity of `from` to `by` with as much of `by` to `to`: it passes by without a stop.
    /// If the ends are the same vertex, the capacity is given up.
    pub(crate) fn join(&mut self, from: usize, by: usize, to: usize, capacity: i64) {
        let mut ins = self.cut(from, by, capacity);
        let mut outs = self.cut(by, to, capacity);
        if from == to {
            return;
        }
        while let (Some(first), Some(second)) = (ins.last_mut(), outs.last_mut()) {
            let piece = first.capacity.min(second.capacity);
            let path = [first.path.as_slice(), second.path.as_slice()].concat();
            self.add(
                from,
                to,
                Strand {
                    path,
                    capacity: piece,
                },
            );
            first.capacity -= piece;
            second.capacity -= piece;
            ins.pop_if(|strand| strand.capacity == 0);
            outs.pop_if(|strand| strand.capacity == 0);
        }
    }
}
