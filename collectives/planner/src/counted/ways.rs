//! All shortest paths from one rank, and traffic spread over them.
//!
//! As in [`unisono_network::Router`], paths with switches only in between come first; through
//! other ranks goes only what reaches its end in no other way.

use unisono_network::{EdgeId, Network, VertexId};

const FAR: u32 = u32::MAX;

/// The ways from one rank.
pub(super) struct Ways<'n> {
    network: &'n Network,
    from: u32,
    switched: Fan,
    /// Grown when the first path needs it.
    relayed: Fan,
}

/// What a path is like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Facts {
    pub(super) latency_ps: f64,
    /// Of its narrowest edge, in bytes a second.
    pub(super) width: f64,
}

impl<'n> Ways<'n> {
    pub(super) fn new(network: &'n Network) -> Self {
        Self {
            network,
            from: 0,
            switched: Fan::new(network, true),
            relayed: Fan::new(network, false),
        }
    }

    /// Turns to the ways from another rank.
    pub(super) fn start_at(&mut self, from: u32) {
        self.from = from;
        self.switched.grow(self.network, from);
        self.relayed.grown = false;
    }

    /// Sends so many bytes to a rank, over the shortest path on which `loads` leave most room, and
    /// adds them there: what the path is like, and its edges from the end. None if none leads there.
    pub(super) fn send(
        &mut self,
        to: u32,
        bytes: f64,
        loads: &mut [f64],
    ) -> Option<(Facts, &[EdgeId])> {
        let network = self.network;
        let fan = self.fan(to)?;
        fan.choose(network, to, bytes, loads);
        let edges = fan.path.iter().map(|&id| network.edge(id));
        let width = edges.clone().map(|edge| edge.bytes_per_second).min();
        let latency: u64 = edges.map(|edge| edge.latency_ns).sum();
        for &edge in &fan.path {
            loads[edge as usize] += bytes;
        }
        let facts = Facts {
            latency_ps: latency as f64 * 1e3,
            width: width.unwrap_or(u64::MAX) as f64,
        };
        Some((facts, &fan.path))
    }

    /// Sends so many bytes to every other rank: what the longest and the narrowest path are like.
    pub(super) fn exchange(
        &mut self,
        bytes: f64,
        mut add: impl FnMut(EdgeId, f64),
    ) -> Result<Facts, u32> {
        let (network, from) = (self.network, self.from);
        let others = (0..network.ranks()).filter(|&rank| rank != from);
        let (near, far): (Vec<u32>, Vec<u32>) =
            others.partition(|&rank| self.switched.level[rank as usize] != FAR);
        let mut most = Facts {
            latency_ps: 0.0,
            width: f64::INFINITY,
        };
        for ends in [near, far] {
            let Some(&first) = ends.first() else { continue };
            let fan = self.fan(first).ok_or(first)?;
            for &to in &ends {
                if fan.level[to as usize] == FAR {
                    return Err(to);
                }
                let facts = fan.facts(to);
                most.latency_ps = most.latency_ps.max(facts.latency_ps);
                most.width = most.width.min(facts.width);
            }
            fan.carry(network, &ends, bytes, &mut add);
        }
        Ok(most)
    }

    /// The paths by which a rank is reached.
    fn fan(&mut self, to: u32) -> Option<&mut Fan> {
        if self.switched.level[to as usize] != FAR {
            return Some(&mut self.switched);
        }
        if !self.relayed.grown {
            self.relayed.grow(self.network, self.from);
        }
        (self.relayed.level[to as usize] != FAR).then_some(&mut self.relayed)
    }
}

/// Shortest paths to everything.
struct Fan {
    from: u32,
    /// Whether paths end at the first rank that they meet.
    switched: bool,
    grown: bool,
    level: Vec<u32>,
    latency_ns: Vec<u64>,
    width: Vec<u64>,
    /// The last edge of the only path to a vertex; none where there are several.
    only: Vec<EdgeId>,
    /// Bytes on their way; all 0 between calls.
    load: Vec<f64>,
    /// How busy the best path to a vertex is: its busiest edge, then all together; and its last edge.
    best: Vec<(f64, f64, EdgeId)>,
    /// Whether a vertex was met in the present search.
    met: Vec<bool>,
    /// What was reached, the nearest first.
    order: Vec<VertexId>,
    /// The path last chosen, from its end.
    path: Vec<EdgeId>,
}

impl Fan {
    fn new(network: &Network, switched: bool) -> Self {
        let count = network.vertices().len();
        Self {
            from: 0,
            switched,
            grown: false,
            level: vec![FAR; count],
            latency_ns: vec![0; count],
            width: vec![0; count],
            only: vec![EdgeId::MAX; count],
            load: vec![0.0; count],
            best: vec![(0.0, 0.0, EdgeId::MAX); count],
            met: vec![false; count],
            order: Vec::new(),
            path: Vec::new(),
        }
    }

    /// Finds everything from a rank.
    fn grow(&mut self, network: &Network, from: u32) {
        let fan = self;
        (fan.from, fan.grown) = (from, true);
        fan.level.fill(FAR);
        fan.latency_ns.fill(0);
        fan.width.fill(0);
        fan.level[from as usize] = 0;
        fan.width[from as usize] = u64::MAX;
        let mut order = std::mem::take(&mut fan.order);
        order.clear();
        order.push(from);
        let mut at = 0;
        while let Some(&vertex) = order.get(at) {
            at += 1;
            if !fan.may_pass(network, vertex) {
                continue;
            }
            for &id in network.out_edges(vertex) {
                let edge = network.edge(id);
                let to = edge.to as usize;
                let level = fan.level[vertex as usize] + 1;
                if fan.level[to] == FAR {
                    fan.level[to] = level;
                    order.push(edge.to);
                    let is_only = vertex == from || fan.only[vertex as usize] != EdgeId::MAX;
                    fan.only[to] = if is_only { id } else { EdgeId::MAX };
                } else if fan.level[to] != level {
                    continue;
                } else {
                    fan.only[to] = EdgeId::MAX;
                }
                let latency = fan.latency_ns[vertex as usize].saturating_add(edge.latency_ns);
                fan.latency_ns[to] = fan.latency_ns[to].max(latency);
                let width = fan.width[vertex as usize].min(edge.bytes_per_second);
                fan.width[to] = fan.width[to].max(width);
            }
        }
        fan.order = order;
    }

    fn may_pass(&self, network: &Network, vertex: VertexId) -> bool {
        vertex == self.from || !self.switched || network.rank_of(vertex).is_none()
    }

    fn facts(&self, to: u32) -> Facts {
        Facts {
            latency_ps: self.latency_ns[to as usize] as f64 * 1e3,
            width: self.width[to as usize].max(1) as f64,
        }
    }

    /// Whether shortest paths to the end of an edge come over it.
    fn is_last(&self, network: &Network, id: EdgeId) -> bool {
        let edge = network.edge(id);
        let level = self.level[edge.from as usize];
        level != FAR
            && level + 1 == self.level[edge.to as usize]
            && self.may_pass(network, edge.from)
    }

    /// The edges by which shortest paths come to a vertex.
    fn last_edges<'n>(
        &self,
        network: &'n Network,
        vertex: VertexId,
    ) -> impl Iterator<Item = EdgeId> + use<'_, 'n> {
        let edges = network.in_edges(vertex).iter().copied();
        edges.filter(|&id| self.is_last(network, id))
    }

    /// Finds the path on which most room is left.
    fn choose(&mut self, network: &Network, to: u32, bytes: f64, loads: &[f64]) {
        if self.only[to as usize] == EdgeId::MAX {
            self.compare(network, to, bytes, loads);
        }
        self.path.clear();
        let mut at = to;
        while at != self.from {
            let id = match self.only[at as usize] {
                EdgeId::MAX => self.best[at as usize].2,
                only => only,
            };
            self.path.push(id);
            at = network.edge(id).from;
        }
    }

    /// Finds the last edge of the best path to a vertex, and to all that it leads over.
    fn compare(&mut self, network: &Network, to: u32, bytes: f64, loads: &[f64]) {
        // All vertices on shortest paths, from the end.
        let mut order = vec![to];
        let mut at = 0;
        while let Some(&vertex) = order.get(at) {
            at += 1;
            for &id in network.in_edges(vertex) {
                let before = network.edge(id).from;
                if self.is_last(network, id)
                    && !std::mem::replace(&mut self.met[before as usize], true)
                {
                    order.push(before);
                }
            }
        }
        self.best[self.from as usize] = (0.0, 0.0, EdgeId::MAX);
        for &vertex in order.iter().rev().filter(|&&vertex| vertex != self.from) {
            let ways = self.last_edges(network, vertex).map(|id| {
                let edge = network.edge(id);
                let here = (loads[id as usize] + bytes) / edge.bytes_per_second as f64;
                let (worst, sum, _) = self.best[edge.from as usize];
                (worst.max(here), sum + here, id)
            });
            let least = ways.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
            if let Some(least) = least {
                self.best[vertex as usize] = least;
            }
        }
        for vertex in order {
            self.met[vertex as usize] = false;
        }
    }

    /// Carries so many bytes to each of some vertices, the farthest first.
    fn carry(
        &mut self,
        network: &Network,
        ends: &[u32],
        bytes: f64,
        mut add: impl FnMut(EdgeId, f64),
    ) {
        for &to in ends {
            self.load[to as usize] += bytes;
        }
        for place in (0..self.order.len()).rev() {
            let vertex = self.order[place];
            let load = std::mem::take(&mut self.load[vertex as usize]);
            if load == 0.0 || vertex == self.from {
                continue;
            }
            let width = |fan: &Self, id: EdgeId| {
                let edge = network.edge(id);
                edge.bytes_per_second.min(fan.width[edge.from as usize]) as f64
            };
            let wide: f64 = (self.last_edges(network, vertex))
                .map(|id| width(self, id))
                .sum();
            for &id in network.in_edges(vertex) {
                if self.is_last(network, id) {
                    let part = load * width(self, id) / wide;
                    add(id, part);
                    self.load[network.edge(id).from as usize] += part;
                }
            }
        }
    }
}
