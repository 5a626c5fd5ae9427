//! The full format, read: every reference is checked where it stands.

use std::collections::BTreeMap;

use super::File;
use crate::json::place::Step;
use crate::json::{error, parse, wrong};
use crate::{
    Builder, CapacityGroup, Device, GroupId, JsonError, LinkGraph, NewLink, Nic, Node, NodeId,
    Numa, Switch, Vertex, VertexId, VertexKind,
};

/// A graph in the making, and what the file calls its parts.
struct Reader<'a> {
    text: &'a str,
    builder: Builder,
    nodes: Vec<NodeId>,
    vertices: BTreeMap<u32, VertexId>,
    ranks: BTreeMap<u32, usize>,
    groups: BTreeMap<String, GroupId>,
}

pub(in crate::json) fn read(text: &str) -> Result<LinkGraph, JsonError> {
    let file: File = parse(text)?;
    let mut reader = Reader {
        text,
        builder: Builder::new(),
        nodes: Vec::new(),
        vertices: BTreeMap::new(),
        ranks: BTreeMap::new(),
        groups: BTreeMap::new(),
    };
    for (index, node) in file.nodes.into_iter().enumerate() {
        let node = Node {
            id: node.id,
            name: node.name,
            memory_bytes: node.memory_bytes,
        };
        Builder::check_node(&node)
            .map_err(wrong(text, &[Step::Key("nodes"), Step::Index(index)]))?;
        if reader.nodes.contains(&node.id) {
            let path = [Step::Key("nodes"), Step::Index(index), Step::Key("id")];
            return Err(error(
                text,
                &path,
                format!("a second node {}: ids must differ", node.id),
            ));
        }
        reader.nodes.push(node.id);
        reader.builder.node(node);
    }
    reader.all_vertices(file.devices, file.nics, file.switches, file.numa)?;
    for (name, bytes_per_second) in file.capacity_groups {
        let group = CapacityGroup {
            name: name.clone(),
            bytes_per_second,
        };
        let path = [Step::Key("capacity_groups"), Step::Key(&name)];
        Builder::check_group(&group).map_err(wrong(text, &path))?;
        reader
            .groups
            .insert(name.clone(), reader.builder.capacity_group(group));
    }
    for (index, link) in file.links.into_iter().enumerate() {
        reader.link(index, link)?;
    }
    reader.builder.build().map_err(wrong(text, &[]))
}

impl Reader<'_> {
    fn all_vertices(
        &mut self,
        devices: Vec<super::FileDevice>,
        nics: Vec<super::FileNic>,
        switches: Vec<super::FileSwitch>,
        numa: Vec<super::FileNuma>,
    ) -> Result<(), JsonError> {
        for (index, file) in devices.into_iter().enumerate() {
            let kind = VertexKind::Device(Device {
                id: file.id,
                plugin: file.plugin,
                class: file.class,
                rank: file.rank,
                numa: file.numa,
                pci: file.pci,
                memory_bytes: file.memory_bytes,
            });
            self.vertex(
                "devices",
                index,
                file.vertex,
                Vertex {
                    name: file.name,
                    node: file.node,
                    kind,
                },
            )?;
        }
        for (index, file) in nics.into_iter().enumerate() {
            let kind = VertexKind::Nic(Nic {
                class: file.class,
                bytes_per_second: file.bytes_per_second,
                numa: file.numa,
                up: file.up,
            });
            self.vertex(
                "nics",
                index,
                file.vertex,
                Vertex {
                    name: file.name,
                    node: file.node,
                    kind,
                },
            )?;
        }
        for (index, file) in switches.into_iter().enumerate() {
            let kind = VertexKind::Switch(Switch {
                reduces: file.reduces,
            });
            self.vertex(
                "switches",
                index,
                file.vertex,
                Vertex {
                    name: file.name,
                    node: file.node,
                    kind,
                },
            )?;
        }
        for (index, file) in numa.into_iter().enumerate() {
            let kind = VertexKind::Numa(Numa {
                index: file.index,
                socket: file.socket,
                cores: file.cores,
                threads: file.threads,
                memory_bytes: file.memory_bytes,
            });
            self.vertex(
                "numa",
                index,
                file.vertex,
                Vertex {
                    name: file.name,
                    node: file.node,
                    kind,
                },
            )?;
        }
        Ok(())
    }

    fn vertex(
        &mut self,
        list: &'static str,
        index: usize,
        number: u32,
        vertex: Vertex,
    ) -> Result<(), JsonError> {
        let fail = |key, message| {
            Err(error(
                self.text,
                &[Step::Key(list), Step::Index(index), Step::Key(key)],
                message,
            ))
        };
        if let Some(node) = vertex.node.filter(|node| !self.nodes.contains(node)) {
            return fail(
                "node",
                format!("there is no node {node}: add it to `nodes`"),
            );
        }
        if let Some(rank) = vertex.rank()
            && let Some(other) = self.ranks.insert(rank, index)
        {
            return fail(
                "rank",
                format!("rank {rank} is on devices[{other}] already: a rank uses one"),
            );
        }
        Builder::check_vertex(&vertex)
            .map_err(wrong(self.text, &[Step::Key(list), Step::Index(index)]))?;
        if self
            .vertices
            .insert(number, self.builder.vertex(vertex))
            .is_some()
        {
            return fail(
                "vertex",
                format!("a second vertex {number}: numbers must differ over all lists"),
            );
        }
        Ok(())
    }

    fn link(&mut self, index: usize, link: super::FileLink) -> Result<(), JsonError> {
        let at = |key| [Step::Key("links"), Step::Index(index), Step::Key(key)];
        let end = |key, number| {
            let found = self.vertices.get(&number).copied();
            found.ok_or_else(|| error(self.text, &at(key), format!("there is no vertex {number}")))
        };
        let shared = match &link.shared {
            None => None,
            Some(name) => Some(self.groups.get(name).copied().ok_or_else(|| {
                error(
                    self.text,
                    &at("shared"),
                    format!("there is no capacity group `{name}`"),
                )
            })?),
        };
        let link = NewLink {
            from: end("from", link.from)?,
            to: end("to", link.to)?,
            plugin: link.plugin,
            kind: link.kind,
            link_type: link.link_type,
            bytes_per_second: link.bytes_per_second,
            written_bytes_per_second: link.written_bytes_per_second,
            latency_ns: link.latency_ns,
            shared,
            rail: link.rail,
            source: link.source,
        };
        let path = [Step::Key("links"), Step::Index(index)];
        self.builder
            .check_link(&link)
            .map_err(wrong(self.text, &path))?;
        self.builder.link(link);
        Ok(())
    }
}
