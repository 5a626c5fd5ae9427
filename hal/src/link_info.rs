//! What a plugin reports of its links.

use unisono_abi as abi;

use crate::DeviceId;
use crate::error::text;

/// One entry of a plugin's report: a link, or a class of links, that it can make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkInfo {
    /// How bytes are moved over it.
    pub link_type: LinkType,
    /// What it joins.
    pub scope: Scope,
    /// Links with the same number, not 0, share one capacity.
    pub shared: u32,
    /// The device bytes leave; for [`Scope::Node`] and [`Scope::Network`] all zero for any device.
    pub from: DeviceId,
    /// The device bytes reach, in the same way.
    pub to: DeviceId,
    /// Its kind, as in the cluster file.
    pub kind: String,
    /// Bandwidth from `from` to `to`, in bytes a second; of a mapped link as `from` writes.
    pub bytes_per_second: u64,
    /// The same as `to` reads, where that is faster; else 0.
    pub read_bytes_per_second: u64,
    /// Latency in nanoseconds.
    pub latency_ns: u64,
    /// The rail, 0 if there are none.
    pub rail: u32,
}

/// How bytes are moved over a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// Memory of one end is imported by the other, and stream commands write to it.
    Mapped,
    /// The link moves the bytes, by puts.
    Posted,
}

/// What a link joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Processes of this node.
    Node,
    /// Nodes.
    Network,
    /// The two devices named.
    Pair,
}

impl LinkInfo {
    /// # Errors
    /// What is wrong with the entry.
    pub(crate) fn from_raw(raw: &abi::LinkInfo) -> Result<Self, String> {
        Ok(Self {
            link_type: match raw.link_type {
                abi::link_type::MAPPED => LinkType::Mapped,
                abi::link_type::POSTED => LinkType::Posted,
                other => return Err(format!("the link type {other}, which is none")),
            },
            scope: match raw.scope {
                abi::scope::NODE => Scope::Node,
                abi::scope::NETWORK => Scope::Network,
                abi::scope::PAIR => Scope::Pair,
                other => return Err(format!("the scope {other}, which is none")),
            },
            shared: raw.shared,
            from: raw.from,
            to: raw.to,
            kind: text(&raw.kind),
            bytes_per_second: raw.bytes_per_second,
            read_bytes_per_second: raw.read_bytes_per_second,
            latency_ns: raw.latency_ns,
            rail: raw.rail,
        })
    }
}
