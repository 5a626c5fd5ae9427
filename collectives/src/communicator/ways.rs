//! What the cost model is told of the way between two ranks: who moves the bytes, and what the way shares
//! with others.

use std::collections::BTreeMap;

use unisono_graph::{
    DeviceClass, DeviceId, GroupId, Link, LinkGraph, LinkType, NodeId, VertexId, Way,
};
use unisono_plan::cost::{Port, Rate};

/// What a way of a device's shares.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Shared {
    /// A capacity that its plugin names.
    Group(GroupId),
    /// What leaves a device for switches, by the links' plugin, kind and rail.
    Out(VertexId, String, String, u32),
    /// The memory of a device that several ranks use.
    Memory(Option<NodeId>, String, DeviceId),
    /// A rank's way to the host's memory.
    Host(u32),
}

/// The ports of a graph, numbered as they are met.
pub(super) struct Ports<'g> {
    graph: &'g LinkGraph,
    numbers: BTreeMap<Shared, u32>,
}

impl<'g> Ports<'g> {
    pub(super) fn new(graph: &'g LinkGraph) -> Self {
        Self {
            graph,
            numbers: BTreeMap::new(),
        }
    }

    /// What the best way from one rank to another shares with other ways, if it does; of ways whose bytes
    /// a core moves that is the core, and of ways out of a node what leaves it in all.
    pub(super) fn of_way(&mut self, from: u32, to: u32, way: &Way) -> Option<Port> {
        let device = self.graph.vertex(self.graph.rank(from)?).device()?;
        if device.class == DeviceClass::Cpu || way.link_type != LinkType::Mapped {
            return None;
        }
        self.leaving(from, to, way)
    }

    /// What the best way from one rank to another shares with other ways where it leaves the rank,
    /// whoever moves the bytes.
    pub(super) fn leaving(&mut self, from: u32, to: u32, way: &Way) -> Option<Port> {
        let graph = self.graph;
        let (start, end) = (graph.rank(from)?, graph.rank(to)?);
        let (near, far) = (graph.vertex(start), graph.vertex(end));
        let (device, other) = (near.device()?, far.device()?);
        if (near.node, &device.plugin, device.id) == (far.node, &other.plugin, other.id) {
            let memory = Shared::Memory(near.node, device.plugin.clone(), device.id);
            return Some(self.port(memory, way.bytes_per_second));
        }
        let of_way = |link: &&Link| {
            (&link.plugin, &link.kind, link.rail) == (&way.plugin, &way.kind, way.rail)
        };
        let first: Vec<&Link> = (graph.links_from(start))
            .map(|(_, link)| link)
            .filter(of_way)
            .filter(|link| match way.hops {
                1 => link.to == end,
                _ => graph.vertex(link.to).device().is_none(),
            })
            .collect();
        let group = first.first()?.shared;
        if let Some(group) = group.filter(|_| first.iter().all(|link| link.shared == group)) {
            let rate = graph.capacity_group(group).bytes_per_second;
            return Some(self.port(Shared::Group(group), rate));
        }
        if way.hops == 1 {
            return None;
        }
        let rate = first.iter().map(|link| link.bytes_per_second);
        let rate = rate.fold(0, u64::saturating_add);
        let out = Shared::Out(start, way.plugin.clone(), way.kind.clone(), way.rail);
        Some(self.port(out, rate))
    }

    /// A device's way to the host's memory, by which it reaches what it cannot map.
    pub(super) fn of_host(&mut self, from: u32, bytes_per_second: u64) -> Option<Port> {
        (!self.is_cpu(from)).then(|| self.port(Shared::Host(from), bytes_per_second))
    }

    /// Whether a rank's device is the CPU: then its core moves what it sends over mapped links.
    pub(super) fn is_cpu(&self, rank: u32) -> bool {
        let vertex = self.graph.rank(rank).map(|at| self.graph.vertex(at));
        let device = vertex.and_then(|vertex| vertex.device());
        device.is_none_or(|device| device.class == DeviceClass::Cpu)
    }

    fn port(&mut self, shared: Shared, bytes_per_second: u64) -> Port {
        let next = self.numbers.len() as u32;
        let id = *self.numbers.entry(shared).or_insert(next);
        Port {
            id,
            rate: Rate::bytes_per_second(bytes_per_second),
        }
    }
}
