//! A graph's fingerprint: SHA-256 over a byte form that does not depend on host or architecture.
//!
//! Every number is written as 64 bits, low byte first, and every text with its length before it,
//! so that no two graphs share a byte form.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::graph::Parts;
use crate::{Link, LinkType, Source, Vertex, VertexKind};

/// A fingerprint of a graph: equal graphs have equal ones, others do not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GraphHash(pub [u8; 32]);

impl fmt::Display for GraphHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for GraphHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GraphHash({self})")
    }
}

pub(crate) fn hash(parts: &Parts) -> GraphHash {
    let mut writer = Writer(Sha256::new());
    writer.text("unisono-link-graph 1");
    writer.list(&parts.nodes, |w, node| {
        w.raw(&node.id.0);
        w.text(&node.name);
        w.number(node.memory_bytes);
    });
    writer.list(&parts.vertices, Writer::vertex);
    writer.list(&parts.groups, |w, group| {
        w.text(&group.name);
        w.number(group.bytes_per_second);
    });
    writer.list(&parts.links, Writer::link);
    GraphHash(writer.0.finalize().into())
}

struct Writer(Sha256);

impl Writer {
    fn raw(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn number(&mut self, number: impl Into<u64>) {
        self.raw(&number.into().to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.raw(text.as_bytes());
    }

    fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.number(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
    }

    fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.number(items.len() as u64);
        items.iter().for_each(|item| write(self, item));
    }

    fn vertex(&mut self, vertex: &Vertex) {
        self.text(&vertex.name);
        self.option(vertex.node, |w, node| w.raw(&node.0));
        match &vertex.kind {
            VertexKind::Device(device) => {
                self.number(0u8);
                self.raw(&device.id.0);
                self.text(&device.plugin);
                self.text(device.class.as_str());
                self.option(device.rank, Self::number);
                self.option(device.numa, Self::number);
                self.option(device.pci.as_deref(), Self::text);
                self.number(device.memory_bytes);
            }
            VertexKind::Nic(nic) => {
                self.number(1u8);
                self.text(nic.class.as_str());
                self.option(nic.bytes_per_second, Self::number);
                self.option(nic.numa, Self::number);
                self.number(nic.up);
            }
            VertexKind::Switch(switch) => {
                self.number(2u8);
                self.number(switch.reduces);
            }
            VertexKind::Numa(numa) => {
                self.number(3u8);
                self.number(numa.index);
                self.option(numa.socket, Self::number);
                self.number(numa.cores);
                self.number(numa.threads);
                self.number(numa.memory_bytes);
            }
        }
    }

    fn link(&mut self, link: &Link) {
        self.number(link.from.0);
        self.number(link.to.0);
        self.text(&link.plugin);
        self.text(&link.kind);
        match (link.link_type, link.written_bytes_per_second) {
            (LinkType::Mapped, None) => self.number(0u8),
            (LinkType::Posted, _) => self.number(1u8),
            (LinkType::Mapped, Some(written)) => {
                self.number(2u8);
                self.number(written);
            }
        }
        self.number(link.bytes_per_second);
        self.number(link.latency_ns);
        self.option(link.shared, |w, group| w.number(group.0));
        self.number(link.rail);
        match &link.source {
            Source::Plugin => self.number(0u8),
            Source::Given => self.number(1u8),
            Source::Overlay(origin) => {
                self.number(2u8);
                self.text(origin);
            }
        }
    }
}
