//! Paths for many steps at once.
//!
//! Among the shortest ways by switches (or, where there is none, through other ranks), each step
//! takes the one whose busiest link is the least busy with the step on it. So steps fill wide links
//! before narrow ones, and spread over links that are alike.

use unisono_network::{EdgeId, Network, VertexId};

use crate::error::PackError;

/// Whether a step may lead through other ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relays {
    /// It must not.
    Never,
    /// It may, where no way leads by switches alone.
    IfNeeded,
}

/// Paths for steps between ranks, by source, destination and weight.
///
/// # Errors
/// If some step has no path.
pub(crate) fn beside(
    network: &Network,
    steps: &[(u32, u32, u64)],
    relays: Relays,
) -> Result<Vec<Vec<EdgeId>>, PackError> {
    let mut order: Vec<usize> = (0..steps.len()).collect();
    order.sort_by_key(|&step| steps[step].0);
    let mut paths = vec![Vec::new(); steps.len()];
    let mut finder = Finder::new(network);
    for same in order.chunk_by(|&one, &other| steps[one].0 == steps[other].0) {
        let from = steps[same[0]].0;
        let mut left = same.to_vec();
        for through in [false, true] {
            if left.is_empty() || through && relays == Relays::Never {
                break;
            }
            finder.ways.search(network, from, through);
            left.retain(|&step| {
                let (_, to, weight) = steps[step];
                let reached = finder.ways.hops[to as usize] != u32::MAX;
                if reached {
                    paths[step] = finder.path(to, weight);
                }
                !reached
            });
        }
        if let Some(&step) = left.first() {
            return Err(PackError::unreachable(from, steps[step].1));
        }
    }
    Ok(paths)
}

struct Finder<'a> {
    network: &'a Network,
    /// How long each edge is busy, in seconds for each unit of weight.
    busy: Vec<f64>,
    ways: Ways,
    /// For each vertex on a shortest way, how busy the busiest link up to it would be, and the last
    /// edge.
    best: Vec<(f64, EdgeId)>,
}

impl<'a> Finder<'a> {
    fn new(network: &'a Network) -> Self {
        let vertices = network.vertices().len();
        Self {
            network,
            busy: vec![0.0; network.edges().len()],
            ways: Ways {
                hops: vec![u32::MAX; vertices],
                arrival: vec![(EdgeId::MAX, 0); vertices],
                through: false,
            },
            best: vec![(f64::INFINITY, EdgeId::MAX); vertices],
        }
    }

    /// The path to a rank that was reached; it is busy with so much more then.
    fn path(&mut self, to: VertexId, weight: u64) -> Vec<EdgeId> {
        // The vertices on shortest ways, from the end.
        let mut on_the_way = vec![to];
        self.best[to as usize].0 = 0.0;
        let mut head = 0;
        while let Some(&at) = on_the_way.get(head) {
            head += 1;
            for edge in self.ways.shortest(self.network, at) {
                let from = self.network.edge(edge).from as usize;
                if self.best[from].0.is_infinite() {
                    self.best[from].0 = 0.0;
                    on_the_way.push(from as VertexId);
                }
            }
        }
        for &at in on_the_way.iter().rev() {
            let least = self.ways.shortest(self.network, at).map(|edge| {
                let from = self.network.edge(edge).from as usize;
                (self.best[from].0.max(self.busy_with(edge, weight)), edge)
            });
            let least = least.min_by(|one, other| one.0.total_cmp(&other.0));
            self.best[at as usize] = least.unwrap_or((0.0, EdgeId::MAX));
        }
        let mut path = Vec::new();
        let mut at = to;
        while self.ways.hops[at as usize] > 0 {
            let edge = self.best[at as usize].1;
            self.busy[edge as usize] = self.busy_with(edge, weight);
            path.push(edge);
            at = self.network.edge(edge).from;
        }
        path.reverse();
        for at in on_the_way {
            self.best[at as usize] = (f64::INFINITY, EdgeId::MAX);
        }
        path
    }

    fn busy_with(&self, edge: EdgeId, weight: u64) -> f64 {
        self.busy[edge as usize] + weight as f64 / self.network.edge(edge).bytes_per_second as f64
    }
}

/// Shortest ways from one rank.
struct Ways {
    hops: Vec<u32>,
    /// For each vertex an edge by which a shortest way reaches it, and how many there are.
    arrival: Vec<(EdgeId, u32)>,
    /// Whether they may lead through other ranks.
    through: bool,
}

impl Ways {
    /// The fewest hops to all vertices, through other ranks or not.
    fn search(&mut self, network: &Network, from: VertexId, through: bool) {
        self.through = through;
        self.hops.fill(u32::MAX);
        self.hops[from as usize] = 0;
        let mut queue = vec![from];
        let mut head = 0;
        while let Some(&at) = queue.get(head) {
            head += 1;
            let next = self.hops[at as usize] + 1;
            for &edge in network.out_edges(at) {
                let to = network.edge(edge).to;
                if self.hops[to as usize] == u32::MAX {
                    self.hops[to as usize] = next;
                    self.arrival[to as usize] = (edge, 1);
                    if through || network.rank_of(to).is_none() {
                        queue.push(to);
                    }
                } else if self.hops[to as usize] == next {
                    self.arrival[to as usize].1 += 1;
                }
            }
        }
    }

    /// The edges by which shortest ways reach a vertex.
    fn shortest<'a>(
        &'a self,
        network: &'a Network,
        to: VertexId,
    ) -> impl Iterator<Item = EdgeId> + 'a {
        let hops = self.hops[to as usize];
        let (arrival, count) = self.arrival[to as usize];
        let only = (hops > 0 && count == 1).then_some(arrival);
        let some: &[EdgeId] = match hops > 0 && count > 1 {
            true => network.in_edges(to),
            false => &[],
        };
        let some = some.iter().copied().filter(move |&edge| {
            let from = network.edge(edge).from;
            let before = self.hops[from as usize];
            let open = before == 0 || self.through || network.rank_of(from).is_none();
            open && before != u32::MAX && before + 1 == hops
        });
        only.into_iter().chain(some)
    }
}
