//! The links, those that are alike in one row.

use std::collections::{BTreeMap, BTreeSet};

use super::columns::{Align, Columns};
use crate::draw::words;
use crate::{LinkGraph, LinkType, Source, VertexId, units};

/// What the links of one row have in common.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Class<'a> {
    plugin: &'a str,
    kind: &'a str,
    link_type: LinkType,
    bytes_per_second: std::cmp::Reverse<u64>,
    written: Option<u64>,
    latency_ns: u64,
    rail: u32,
    shared: bool,
    source: &'a Source,
    /// Links up to switches, down from them, and neither.
    way: u8,
}

pub(super) fn write(out: &mut String, graph: &LinkGraph) {
    if graph.links().is_empty() {
        return;
    }
    let mut classes: BTreeMap<Class<'_>, Vec<(VertexId, VertexId)>> = BTreeMap::new();
    for link in graph.links() {
        let device = |id| graph.vertex(id).device().is_some();
        let class = Class {
            plugin: &link.plugin,
            kind: &link.kind,
            link_type: link.link_type,
            bytes_per_second: std::cmp::Reverse(link.bytes_per_second),
            written: link.written_bytes_per_second,
            latency_ns: link.latency_ns,
            rail: link.rail,
            shared: link.shared.is_some(),
            source: &link.source,
            way: u8::from(device(link.from)) * 2 + u8::from(device(link.to)),
        };
        classes.entry(class).or_default().push((link.from, link.to));
    }
    use Align::{Left, Right};
    let mut columns = Columns::new(&[
        ("kind", Left),
        ("count", Right),
        ("plugin", Left),
        ("type", Left),
        ("bandwidth", Right),
        ("latency", Right),
        ("rail", Right),
        ("shared", Left),
        ("source", Left),
        ("joins", Left),
    ]);
    for (class, ends) in &classes {
        columns.row([
            class.kind.to_owned(),
            ends.len().to_string(),
            class.plugin.to_owned(),
            class.link_type.as_str().to_owned(),
            bandwidth(class),
            if class.latency_ns > 0 {
                units::latency(class.latency_ns)
            } else {
                String::new()
            },
            if class.rail > 0 {
                class.rail.to_string()
            } else {
                String::new()
            },
            if class.shared {
                "yes".to_owned()
            } else {
                String::new()
            },
            class.source.to_string(),
            joins(graph, ends),
        ]);
    }
    out.push_str("\nLinks\n");
    columns.write(out);
}

/// What they carry; also where senders write, if receivers read faster.
fn bandwidth(class: &Class<'_>) -> String {
    let best = units::bandwidth(class.bytes_per_second.0);
    match class.written {
        None => best,
        Some(written) => format!("{best} read, {} written", units::bandwidth(written)),
    }
}

/// Which vertices links join, in a few words.
fn joins(graph: &LinkGraph, ends: &[(VertexId, VertexId)]) -> String {
    let from: BTreeSet<VertexId> = ends.iter().map(|(from, _)| *from).collect();
    let to: BTreeSet<VertexId> = ends.iter().map(|(_, to)| *to).collect();
    let pairs: BTreeSet<_> = ends.iter().collect();
    let text = |ids| words::vertices(graph, ids);
    if from == to && pairs.len() == from.len() * (from.len() - 1) {
        return format!("{}, each to each", text(&from));
    }
    if from == to && pairs.iter().all(|(a, b)| pairs.contains(&(*b, *a))) {
        return format!("{}, {}", text(&from), words::count(pairs.len() / 2, "pair"));
    }
    if pairs.len() == from.len() * to.len() {
        return format!("{} to {}", text(&from), text(&to));
    }
    if from == to {
        return format!(
            "{}, {}",
            text(&from),
            words::count(pairs.len(), "ordered pair")
        );
    }
    format!(
        "{} to {}, {}",
        text(&from),
        text(&to),
        words::count(pairs.len(), "ordered pair")
    )
}
