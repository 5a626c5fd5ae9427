//! The flows of each source, and the shifts that even them out.

use super::incoming::Incoming;
use super::price::Prices;
use crate::collapse::Collapse;
use crate::paths::Paths;
use crate::problem::Problem;

/// What each source sends over each arc: one unit to every other rank.
pub(super) struct Flows {
    incoming: Incoming,
    /// One rank of each class, and how many there are.
    sources: Vec<(u32, u32)>,
    ranks: u32,
    /// For each source, the flow at each place.
    shares: Vec<f32>,
    /// For each source, the vertices in an order in which all its flows go forward.
    orders: Vec<Vec<u32>>,
    labels: Labels,
    /// Where a shift takes flow from and brings it to: places, with a sign.
    shift: Vec<(u32, f64)>,
}

/// What is known of vertices while one source is looked at.
struct Labels {
    position: Vec<u32>,
    /// The price of the cheapest way from the source and its last place, if there is a way.
    cheap: Vec<f64>,
    cheap_by: Vec<u32>,
    /// The price of the dearest way that is used, and its last place, if any is.
    dear: Vec<f64>,
    dear_by: Vec<u32>,
}

const NONE: u32 = u32::MAX;
/// Ways that differ by less are left alone.
const SAME: f64 = 1e-5;
/// Flows smaller than that are dropped.
const TINY: f64 = 1e-6;

impl Flows {
    /// Flows along shortest paths, each source seeing the loads of those before it.
    pub(super) fn new(
        problem: &Problem,
        collapse: &Collapse,
        paths: &mut Paths,
        prices: &mut Prices,
    ) -> Self {
        let vertices = problem.vertices as usize;
        let sources = collapse.ranks(problem);
        let incoming = Incoming::new(problem, collapse);
        let arcs = incoming.tails.len();
        let mut shares = vec![0.0; arcs * sources.len()];
        let mut orders = Vec::with_capacity(sources.len());
        let mut lengths = Vec::new();
        for (source, &(rank, times)) in sources.iter().enumerate() {
            if source % 8 == 0 {
                prices.set_power(2);
                lengths = prices
                    .now
                    .iter()
                    .map(|price| 1 + ((price + 0.05) * 1e9) as u64)
                    .collect();
            }
            paths.from(rank, |arc| lengths[collapse.arcs.of(arc) as usize]);
            orders.push(paths.order().to_vec());
            let own = &mut shares[source * arcs..][..arcs];
            paths.uses(|arc, ranks| {
                own[incoming.places[arc as usize] as usize] = ranks as f32;
                prices.loads[collapse.arcs.of(arc) as usize] += f64::from(ranks) * f64::from(times);
            });
        }
        Self {
            incoming,
            sources,
            ranks: problem.ranks,
            shares,
            orders,
            labels: Labels {
                position: vec![0; vertices],
                cheap: vec![0.0; vertices],
                cheap_by: vec![NONE; vertices],
                dear: vec![0.0; vertices],
                dear_by: vec![NONE; vertices],
            },
            shift: Vec::new(),
        }
    }

    /// How many flows there are.
    pub(super) fn len(&self) -> usize {
        self.shares.len()
    }

    /// One pass: each source in turn shifts its flows from dear ways to cheap ones.
    pub(super) fn even_out(&mut self, prices: &mut Prices) {
        for source in 0..self.sources.len() {
            self.reorder(source, prices);
            self.label(source, prices);
            for at in (1..self.orders[source].len()).rev() {
                let vertex = self.orders[source][at];
                self.shift_at(source, vertex, prices);
            }
        }
    }

    fn own(&self, source: usize) -> &[f32] {
        let arcs = self.incoming.tails.len();
        &self.shares[source * arcs..][..arcs]
    }

    /// Puts the vertices of a source in the order of the dearest used ways, which grow along every
    /// flow. Arcs that go forward in this order may be used without making a circle.
    fn reorder(&mut self, source: usize, prices: &Prices) {
        let arcs = self.incoming.tails.len();
        let own = &self.shares[source * arcs..][..arcs];
        let (labels, order) = (&mut self.labels, &mut self.orders[source]);
        for (position, &vertex) in (0..).zip(&*order) {
            labels.position[vertex as usize] = position;
        }
        labels.dear[order[0] as usize] = 0.0;
        for &vertex in &order[1..] {
            let (mut dearest, mut nearest) = (-1.0, f64::INFINITY);
            for place in self.incoming.of(vertex) {
                let tail = self.incoming.tails[place] as usize;
                if labels.position[tail] >= labels.position[vertex as usize] {
                    continue;
                }
                let price = labels.dear[tail] + prices.now[self.incoming.classes[place] as usize];
                nearest = f64::min(nearest, price);
                if own[place] > 0.0 {
                    dearest = f64::max(dearest, price);
                }
            }
            labels.dear[vertex as usize] = if dearest < 0.0 { nearest } else { dearest };
        }
        // Where prices are so far apart that sums do not show the small ones, the order stays.
        order[1..].sort_by(|one, other| {
            labels.dear[*one as usize].total_cmp(&labels.dear[*other as usize])
        });
    }

    /// Finds the cheapest way and the dearest used one to each vertex.
    fn label(&mut self, source: usize, prices: &Prices) {
        let arcs = self.incoming.tails.len();
        let own = &self.shares[source * arcs..][..arcs];
        let (labels, order) = (&mut self.labels, &self.orders[source]);
        for (position, &vertex) in (0..).zip(order) {
            labels.position[vertex as usize] = position;
        }
        let root = order[0] as usize;
        (labels.cheap[root], labels.dear[root]) = (0.0, 0.0);
        (labels.cheap_by[root], labels.dear_by[root]) = (NONE, NONE);
        for &vertex in &order[1..] {
            let (mut cheap, mut cheap_by) = (f64::INFINITY, NONE);
            let (mut dear, mut dear_by) = (-1.0, NONE);
            for place in self.incoming.of(vertex) {
                let tail = self.incoming.tails[place] as usize;
                if labels.position[tail] >= labels.position[vertex as usize] {
                    continue;
                }
                let price = prices.now[self.incoming.classes[place] as usize];
                if labels.cheap[tail] + price < cheap {
                    (cheap, cheap_by) = (labels.cheap[tail] + price, place as u32);
                }
                if own[place] > 0.0 && labels.dear[tail] + price > dear {
                    (dear, dear_by) = (labels.dear[tail] + price, place as u32);
                }
            }
            let vertex = vertex as usize;
            (labels.cheap[vertex], labels.cheap_by[vertex]) = (cheap, cheap_by);
            (labels.dear[vertex], labels.dear_by[vertex]) = if dear_by == NONE {
                (cheap, NONE)
            } else {
                (dear, dear_by)
            };
        }
    }

    /// Shifts flow at a vertex from the dearest used way to the cheapest, back to where they part.
    fn shift_at(&mut self, source: usize, vertex: u32, prices: &mut Prices) {
        let labels = &self.labels;
        let (cheap, dear) = (labels.cheap[vertex as usize], labels.dear[vertex as usize]);
        if labels.dear_by[vertex as usize] == NONE || dear - cheap <= SAME * dear {
            return;
        }
        let Some(limit) = self.trace(source, vertex) else {
            return;
        };
        let times = f64::from(self.sources[source].1);
        let amount = self.amount(limit, times, prices);
        if amount < TINY {
            return;
        }
        let arcs = self.incoming.tails.len();
        let own = &mut self.shares[source * arcs..][..arcs];
        for &(place, sign) in &self.shift {
            let class = self.incoming.classes[place as usize] as usize;
            let before = f64::from(own[place as usize]);
            let after = before + sign * amount;
            own[place as usize] = if after < TINY { 0.0 } else { after as f32 };
            prices.loads[class] = (prices.loads[class] + sign * amount * times).max(0.0);
            prices.now[class] = prices.at(class, prices.loads[class]);
        }
    }

    /// Collects the two ways to a vertex, back to where they meet. Gives the least flow on the dear
    /// one; `None` if the two are one.
    fn trace(&mut self, source: usize, vertex: u32) -> Option<f64> {
        let arcs = self.incoming.tails.len();
        let own = &self.shares[source * arcs..][..arcs];
        let labels = &self.labels;
        self.shift.clear();
        let (mut cheap, mut dear) = (vertex as usize, vertex as usize);
        let mut limit = f64::INFINITY;
        loop {
            if cheap == dear && !self.shift.is_empty() {
                return Some(limit);
            }
            let step_dear = labels.position[dear] >= labels.position[cheap];
            let step_cheap = labels.position[cheap] >= labels.position[dear];
            let (by_cheap, by_dear) = (labels.cheap_by[cheap], labels.dear_by[dear]);
            if cheap == dear && by_cheap == by_dear {
                // The same last arc: they part further back, if at all.
                if by_cheap == NONE {
                    return None;
                }
                cheap = self.incoming.tails[by_cheap as usize] as usize;
                dear = cheap;
                continue;
            }
            if step_cheap {
                if by_cheap == NONE {
                    return None;
                }
                self.shift.push((by_cheap, 1.0));
                cheap = self.incoming.tails[by_cheap as usize] as usize;
            }
            if step_dear {
                if by_dear == NONE {
                    return None;
                }
                self.shift.push((by_dear, -1.0));
                limit = limit.min(f64::from(own[by_dear as usize]));
                dear = self.incoming.tails[by_dear as usize] as usize;
            }
        }
    }

    /// How much to shift so that both ways cost the same, by Newton's method.
    fn amount(&self, limit: f64, times: f64, prices: &Prices) -> f64 {
        let mut amount = 0.0;
        for _ in 0..4 {
            let (mut difference, mut slope) = (0.0, f64::MIN_POSITIVE);
            for &(place, sign) in &self.shift {
                let class = self.incoming.classes[place as usize] as usize;
                let load = (prices.loads[class] + sign * amount * times).max(0.0);
                let price = prices.at(class, load);
                difference += sign * price;
                slope += prices.slope(class, load, price) * times;
            }
            let next = (amount - difference / slope).clamp(0.0, limit);
            let near = (next - amount).abs() <= 1e-3 * next;
            amount = next;
            if near {
                break;
            }
        }
        amount
    }

    /// Counts the loads anew from what flows, with flows that add up: shares at a vertex are taken as
    /// parts of what it needs.
    pub(super) fn recount(&mut self, prices: &mut Prices) {
        prices.loads.fill(0.0);
        let mut needs = vec![0.0f64; self.labels.position.len()];
        for (source, &(rank, times)) in self.sources.iter().enumerate() {
            for &vertex in &self.orders[source] {
                needs[vertex as usize] = if vertex < self.ranks && vertex != rank {
                    1.0
                } else {
                    0.0
                };
            }
            for &vertex in self.orders[source][1..].iter().rev() {
                let need = needs[vertex as usize];
                if need == 0.0 {
                    continue;
                }
                let own = self.own(source);
                let sum: f64 = self
                    .incoming
                    .of(vertex)
                    .map(|place| f64::from(own[place]))
                    .sum();
                for place in self.incoming.of(vertex) {
                    if own[place] > 0.0 {
                        let amount = need * f64::from(own[place]) / sum;
                        needs[self.incoming.tails[place] as usize] += amount;
                        prices.loads[self.incoming.classes[place] as usize] +=
                            amount * f64::from(times);
                    }
                }
            }
        }
    }
}
