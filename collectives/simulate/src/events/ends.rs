//! When the next flow of each route ends: a heap in which a route has one entry, which moves.
//!
//! Rates change far more often than flows end, and each change moves the ends of all routes that
//! share a link. A heap that only grows would be full of times that hold no more.

use super::Ordered;

/// The place of a route that has no entry.
const NOWHERE: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Ends {
    /// A binary heap, the earliest first.
    heap: Vec<(Ordered, u32)>,
    /// For each route its place in the heap.
    places: Vec<u32>,
}

impl Ends {
    pub(super) fn new(routes: usize) -> Self {
        Self {
            heap: Vec::new(),
            places: vec![NOWHERE; routes],
        }
    }

    /// The earliest end; of equal ones that of the route with the least number.
    pub(super) fn first(&self) -> Option<(Ordered, u32)> {
        self.heap.first().copied()
    }

    pub(super) fn set(&mut self, route: u32, time: f64) {
        let entry = (Ordered(time), route);
        let mut place = self.places[route as usize] as usize;
        if place == NOWHERE as usize {
            place = self.heap.len();
            self.heap.push(entry);
        }
        self.settle(place, entry);
    }

    pub(super) fn remove(&mut self, route: u32) {
        let place = std::mem::replace(&mut self.places[route as usize], NOWHERE);
        if place == NOWHERE {
            return;
        }
        let last = self.heap.pop();
        if let Some(last) = last.filter(|&(_, moved)| moved != route) {
            self.settle(place as usize, last);
        }
    }

    /// Puts an entry where it belongs, from a place that is its own or nobody's.
    fn settle(&mut self, mut place: usize, entry: (Ordered, u32)) {
        while place > 0 && entry < self.heap[(place - 1) / 2] {
            self.put(place, self.heap[(place - 1) / 2]);
            place = (place - 1) / 2;
        }
        loop {
            let left = 2 * place + 1;
            let right = left + 1;
            let Some(&first) = self.heap.get(left) else {
                break;
            };
            let (child, least) = match self.heap.get(right) {
                Some(&second) if second < first => (right, second),
                _ => (left, first),
            };
            if entry <= least {
                break;
            }
            self.put(place, least);
            place = child;
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: (Ordered, u32)) {
        self.heap[place] = entry;
        self.places[entry.1 as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Beside a list that is searched.
    #[test]
    fn the_earliest_end_comes_first_however_ends_move() {
        const ROUTES: u32 = 40;
        let mut ends = Ends::new(ROUTES as usize);
        let mut known: Vec<Option<f64>> = vec![None; ROUTES as usize];
        let mut chance = 1u64;
        for _ in 0..20_000 {
            chance = chance
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let route = (chance >> 33) as u32 % ROUTES;
            let time = ((chance >> 40) % 97) as f64;
            if chance >> 62 == 0 {
                ends.remove(route);
                known[route as usize] = None;
            } else {
                ends.set(route, time);
                known[route as usize] = Some(time);
            }
            let listed = (0..).zip(&known);
            let least = listed
                .filter_map(|(route, time)| Some((Ordered((*time)?), route)))
                .min();
            assert_eq!(ends.first(), least);
        }
    }
}
