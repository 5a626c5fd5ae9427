//! Maximum flows on few vertices and many edges, thousands of times in a row.
//!
//! Capacities lie in a matrix, and for each vertex a set of bits says to whom there is room, so
//! that a search looks at 64 neighbours with one instruction. Packing asks whether *at least* so
//! much flows, which a search can answer early.

/// Capacities that are left, for each ordered pair of vertices.
#[derive(Clone, Debug)]
pub(crate) struct Residual {
    n: usize,
    words: usize,
    room: Vec<i64>,
    /// For each vertex the vertices to which there is room.
    open: Vec<u64>,
    search: Search,
    /// What was moved since [`begin`](Self::begin), if that was called.
    journal: Option<Vec<(u32, u32, i64)>>,
}

/// More than any sum of capacities.
pub(crate) const UNBOUNDED: i64 = i64::MAX / 4;

impl Residual {
    /// No capacity between any two of `n` vertices.
    pub(crate) fn new(n: usize) -> Self {
        let words = n.div_ceil(64);
        Self {
            n,
            words,
            room: vec![0; n * n],
            open: vec![0; n * words],
            search: Search::new(n),
            journal: None,
        }
    }

    /// From here on, remembers what is moved.
    pub(crate) fn begin(&mut self) {
        self.journal = Some(Vec::new());
    }

    /// Takes back what was moved since [`begin`](Self::begin).
    pub(crate) fn take_back(&mut self) {
        for (from, to, flow) in self.journal.take().unwrap_or_default().into_iter().rev() {
            self.push(to as usize, from as usize, flow);
        }
    }

    /// The vertices of a set, given as bits, to which there is room.
    pub(crate) fn open_to<'a>(
        &'a self,
        from: usize,
        set: &'a [u64],
    ) -> impl Iterator<Item = usize> + 'a {
        let row = &self.open[from * self.words..(from + 1) * self.words];
        (0..)
            .zip(row.iter().zip(set))
            .flat_map(|(word, (open, set))| {
                let mut both = open & set;
                std::iter::from_fn(move || {
                    let bit = both.trailing_zeros() as usize;
                    both = (both > 0).then(|| both & (both - 1))?;
                    Some(word * 64 + bit)
                })
            })
    }

    /// Words that searches have looked at.
    pub(crate) fn work(&self) -> u64 {
        self.search.work
    }

    /// How much room there is.
    pub(crate) fn room(&self, from: usize, to: usize) -> i64 {
        self.room[from * self.n + to]
    }

    /// Adds room, or takes it away. Room may be negative for a while: then more flows than fits.
    pub(crate) fn add(&mut self, from: usize, to: usize, room: i64) {
        let place = &mut self.room[from * self.n + to];
        *place += room;
        let bit = 1u64 << (to % 64);
        let word = &mut self.open[from * self.words + to / 64];
        if *place > 0 {
            *word |= bit;
        } else {
            *word &= !bit;
        }
    }

    /// Moves flow along one edge.
    pub(crate) fn push(&mut self, from: usize, to: usize, flow: i64) {
        self.add(from, to, -flow);
        self.add(to, from, flow);
        if let Some(journal) = &mut self.journal {
            journal.push((from as u32, to as u32, flow));
        }
    }

    /// Moves up to `wanted` from one vertex to another, along shortest paths first; how much moved.
    pub(crate) fn augment(&mut self, from: usize, to: usize, wanted: i64) -> i64 {
        let mut moved = 0;
        while moved < wanted && self.search.run(&self.open, self.words, from, to) {
            let mut most = wanted - moved;
            let mut at = to;
            while at != from {
                let before = self.search.before[at] as usize;
                most = most.min(self.room(before, at));
                at = before;
            }
            let mut at = to;
            while at != from {
                let before = self.search.before[at] as usize;
                self.push(before, at, most);
                at = before;
            }
            moved += most;
        }
        moved
    }
}

/// Breadth-first search.
#[derive(Clone, Debug)]
struct Search {
    unseen: Vec<u64>,
    before: Vec<u32>,
    queue: Vec<u32>,
    work: u64,
}

impl Search {
    fn new(n: usize) -> Self {
        Self {
            unseen: vec![0; n.div_ceil(64)],
            before: vec![0; n],
            queue: Vec::with_capacity(n),
            work: 0,
        }
    }

    /// Whether room leads from one vertex to another, by rows of bits.
    fn run(&mut self, open: &[u64], words: usize, from: usize, to: usize) -> bool {
        self.unseen.fill(u64::MAX);
        self.unseen[from / 64] &= !(1 << (from % 64));
        self.queue.clear();
        self.queue.push(from as u32);
        let mut head = 0;
        while head < self.queue.len() {
            let at = self.queue[head] as usize;
            head += 1;
            self.work += words as u64;
            let row = &open[at * words..(at + 1) * words];
            for (word, &open) in row.iter().enumerate() {
                let mut new = open & self.unseen[word];
                self.unseen[word] &= !new;
                while new != 0 {
                    let next = word * 64 + new.trailing_zeros() as usize;
                    new &= new - 1;
                    self.before[next] = at as u32;
                    if next == to {
                        return true;
                    }
                    self.queue.push(next as u32);
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_listed_within_a_set() {
        let mut residual = Residual::new(130);
        for to in [1, 63, 64, 100, 129] {
            residual.add(0, to, 1);
        }
        let set = [u64::MAX, 1 << 36, 2];
        let open: Vec<usize> = residual.open_to(0, &set).collect();
        assert_eq!(open, [1, 63, 100, 129]);
    }

    #[test]
    fn a_flow_turns_around_what_was_in_the_way() {
        // The short path 0-1-2-3 blocks both long ones until it is undone.
        let mut residual = Residual::new(6);
        for (from, to) in [(0, 1), (1, 2), (2, 3), (0, 4), (4, 2), (1, 5), (5, 3)] {
            residual.add(from, to, 2);
        }
        assert_eq!(residual.augment(0, 3, 1), 1);
        assert_eq!(residual.augment(0, 3, UNBOUNDED), 3);
        assert_eq!(residual.augment(0, 3, UNBOUNDED), 0);
    }

    #[test]
    fn more_than_64_vertices_are_searched() {
        let mut residual = Residual::new(130);
        for at in 0..129 {
            residual.add(at, at + 1, 7);
        }
        assert_eq!(residual.augment(0, 129, UNBOUNDED), 7);
        assert_eq!(residual.room(0, 1), 0);
    }
}
