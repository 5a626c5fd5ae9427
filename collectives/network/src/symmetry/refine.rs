//! Colour refinement: cells of vertices, split until all vertices of a cell have the same arcs, by
//! number and label, to every other cell.

use super::search::Graph;

/// Cells of the vertices of two copies of a graph. Vertex `v` of the second copy is `count + v`.
#[derive(Clone, Debug)]
pub(super) struct Cells {
    /// The vertices, cell by cell.
    order: Vec<u32>,
    /// Where each vertex is in `order`.
    place: Vec<u32>,
    /// For each place at which a cell begins, where it ends.
    end: Vec<u32>,
    /// For each vertex, where its cell begins.
    start: Vec<u32>,
    /// The arcs looked at, since cells were made: what the search has cost.
    pub(super) work: u64,
    /// What a vertex has to the cell that splits, as a sum of mixed labels; 0 for nothing.
    sum: Vec<u64>,
    touched: Vec<u32>,
}

impl Cells {
    /// One cell for each colour, both copies together.
    pub(super) fn new(colours: &[u64]) -> Self {
        let count = colours.len() as u32;
        let colour = |vertex: u32| colours[(vertex % count) as usize];
        let mut order: Vec<u32> = (0..2 * count).collect();
        order.sort_by_key(|vertex| (colour(*vertex), *vertex));
        let mut cells = Self {
            place: vec![0; order.len()],
            end: vec![0; order.len()],
            start: vec![0; order.len()],
            work: 0,
            sum: vec![0; order.len()],
            touched: Vec::new(),
            order,
        };
        let mut start = 0;
        for at in 0..cells.order.len() {
            let vertex = cells.order[at];
            if colour(vertex) != colour(cells.order[start]) {
                start = at;
            }
            cells.place[vertex as usize] = at as u32;
            cells.start[vertex as usize] = start as u32;
            cells.end[start] = at as u32 + 1;
        }
        cells
    }

    /// Where each cell begins, in order.
    pub(super) fn starts(&self) -> Vec<u32> {
        let mut starts = Vec::new();
        let mut at = 0;
        while at < self.order.len() as u32 {
            starts.push(at);
            at = self.end[at as usize];
        }
        starts
    }

    /// The vertices of the cell that begins at a place.
    pub(super) fn members(&self, start: u32) -> &[u32] {
        &self.order[start as usize..self.end[start as usize] as usize]
    }

    /// Where the cell of a vertex begins.
    pub(super) fn cell_of(&self, vertex: u32) -> u32 {
        self.start[vertex as usize]
    }

    /// Puts two vertices of one cell, one of each copy, into a cell of their own. Gives what must be
    /// looked at again.
    pub(super) fn single_out(&mut self, one: u32, other: u32) -> Vec<u32> {
        let start = self.start[one as usize];
        let end = self.end[start as usize];
        if end - start == 2 {
            return Vec::new();
        }
        self.swap(self.place[one as usize], start);
        self.swap(self.place[other as usize], start + 1);
        self.cut(start, start + 2, end);
        vec![start]
    }

    /// Splits cells until nothing splits any more, beginning with what some cells say of others.
    /// False as soon as a cell has more of one copy than of the other: the two do not match.
    pub(super) fn refine(&mut self, graph: &Graph, mut waiting: Vec<u32>) -> bool {
        let mut queued = vec![false; self.order.len()];
        for &start in &waiting {
            queued[start as usize] = true;
        }
        while let Some(start) = waiting.pop() {
            queued[start as usize] = false;
            for forward in [true, false] {
                if !self.split_by(graph, start, forward, &mut waiting, &mut queued) {
                    return false;
                }
            }
        }
        true
    }

    /// Splits all cells by their arcs from or to one cell.
    fn split_by(
        &mut self,
        graph: &Graph,
        start: u32,
        forward: bool,
        waiting: &mut Vec<u32>,
        queued: &mut [bool],
    ) -> bool {
        let mut touched = std::mem::take(&mut self.touched);
        for at in start..self.end[start as usize] {
            let vertex = self.order[at as usize];
            let (base, copy) = graph.base(vertex);
            for &(other, label) in graph.arcs(base, forward) {
                let other = other + copy;
                if self.sum[other as usize] == 0 {
                    touched.push(other);
                }
                let sum = &mut self.sum[other as usize];
                // Labels are odd and far apart; zero is kept for "nothing".
                *sum = sum.wrapping_add(label).max(1);
                self.work += 1;
            }
        }
        let key = |vertex: &u32| {
            (
                self.start[*vertex as usize],
                self.sum[*vertex as usize],
                *vertex,
            )
        };
        touched.sort_unstable_by_key(key);
        let mut balanced = true;
        let mut rest = &touched[..];
        while let (true, Some(&first)) = (balanced, rest.first()) {
            let cell = self.start[first as usize];
            let in_cell = rest.partition_point(|vertex| self.start[*vertex as usize] == cell);
            balanced = self.split(&rest[..in_cell], graph.count, waiting, queued);
            rest = &rest[in_cell..];
        }
        for vertex in touched.drain(..) {
            self.sum[vertex as usize] = 0;
        }
        self.touched = touched;
        balanced
    }

    /// Splits one cell by the sums of those of its vertices that have any, in their order. False if a
    /// part has more of one copy. What has none stays where it is: the cost is that of the others.
    fn split(
        &mut self,
        touched: &[u32],
        count: u32,
        waiting: &mut Vec<u32>,
        queued: &mut [bool],
    ) -> bool {
        let start = self.start[touched[0] as usize];
        let end = self.end[start as usize];
        let (first, last) = (touched[0], touched[touched.len() - 1]);
        let untouched = end - start - touched.len() as u32;
        if untouched == 0 && self.sum[first as usize] == self.sum[last as usize] {
            return true;
        }
        self.work += touched.len() as u64;
        let mut parts = Vec::new();
        let mut from = start + untouched;
        for (at, &vertex) in (from..end).zip(touched) {
            self.swap(self.place[vertex as usize], at);
        }
        if untouched > 0 {
            parts.push((start, from));
            self.end[start as usize] = from;
        }
        for part in touched.chunk_by(|&a, &b| self.sum[a as usize] == self.sum[b as usize]) {
            let second = part.iter().filter(|vertex| **vertex >= count).count();
            if second * 2 != part.len() {
                return false;
            }
            let to = from + part.len() as u32;
            parts.push((from, to));
            from = to;
        }
        let of_touched = parts.len() - usize::from(untouched > 0);
        for &(from, to) in &parts[parts.len() - of_touched..] {
            self.cut(from, to, to);
        }
        // One part, the largest, need not be looked at if the whole was not going to be.
        let skip = if queued[start as usize] {
            None
        } else {
            parts
                .iter()
                .max_by_key(|(from, to)| to - from)
                .map(|(from, _)| *from)
        };
        for (from, _) in parts {
            if Some(from) != skip && !std::mem::replace(&mut queued[from as usize], true) {
                waiting.push(from);
            }
        }
        true
    }

    /// Makes cells of `from..to` and `to..end`.
    fn cut(&mut self, from: u32, to: u32, end: u32) {
        for (from, to) in [(from, to), (to, end)] {
            if from < to {
                self.end[from as usize] = to;
                for at in from..to {
                    self.start[self.order[at as usize] as usize] = from;
                }
            }
        }
    }

    fn swap(&mut self, one: u32, other: u32) {
        self.order.swap(one as usize, other as usize);
        for at in [one, other] {
            self.place[self.order[at as usize] as usize] = at;
        }
    }
}
