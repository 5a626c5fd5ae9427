//! Overlays, one after the other, on a graph taken apart.

use super::{Endpoint, Overlay, OverlayAction};
use crate::{Builder, CapacityGroup, GraphError, GroupId, LinkGraph, NewLink, Source, VertexId};

pub(super) fn apply(graph: &LinkGraph, overlays: &[Overlay]) -> Result<LinkGraph, GraphError> {
    let mut builder = Builder::from(graph);
    for overlay in overlays {
        let from = find(graph, overlay, &overlay.from)?;
        let to = find(graph, overlay, &overlay.to)?;
        change(&mut builder, overlay, from, to, "")?;
        if overlay.both_directions {
            change(&mut builder, overlay, to, from, "/back")?;
        }
    }
    builder.build()
}

/// Changes one direction, which is called `way` in the names of shared capacities.
fn change(
    builder: &mut Builder,
    overlay: &Overlay,
    from: VertexId,
    to: VertexId,
    way: &str,
) -> Result<(), GraphError> {
    let meant = |link: &NewLink| link.from == from && link.to == to && link.kind == overlay.kind;
    let source = Source::Overlay(overlay.origin.clone());
    match &overlay.action {
        OverlayAction::Set {
            plugin,
            link_type,
            bytes_per_second,
            latency_ns,
            shared,
        } => {
            let shared = group(builder, shared.as_deref(), way, *bytes_per_second)?;
            let links = builder.links_mut();
            links.retain(|link| !meant(link));
            links.push(NewLink {
                from,
                to,
                plugin: plugin.clone(),
                kind: overlay.kind.clone(),
                link_type: *link_type,
                bytes_per_second: *bytes_per_second,
                written_bytes_per_second: None,
                latency_ns: *latency_ns,
                shared,
                rail: 0,
                source,
            });
        }
        OverlayAction::Adjust {
            bytes_per_second,
            latency_ns,
            shared,
        } => {
            let Some(reported) = builder.links_mut().iter().find(|link| meant(link)) else {
                return Err(nothing(overlay, "adjust"));
            };
            let rate = bytes_per_second.unwrap_or(reported.bytes_per_second);
            let shared = group(builder, shared.as_deref(), way, rate)?;
            for link in builder.links_mut().iter_mut().filter(|link| meant(link)) {
                if let Some(rate) = *bytes_per_second {
                    // Who moves the bytes faster stays so, by as much.
                    let in_proportion = |written: u64| {
                        let scaled = u128::from(written) * u128::from(rate);
                        (scaled / u128::from(link.bytes_per_second.max(1))) as u64
                    };
                    let written = link.written_bytes_per_second.map(in_proportion);
                    link.written_bytes_per_second =
                        written.filter(|written| (1..rate).contains(written));
                    link.bytes_per_second = rate;
                }
                link.latency_ns = latency_ns.unwrap_or(link.latency_ns);
                link.shared = shared.or(link.shared);
                link.source = source.clone();
            }
        }
        OverlayAction::Remove => {
            let links = builder.links_mut();
            let before = links.len();
            links.retain(|link| !meant(link));
            if links.len() == before {
                return Err(nothing(overlay, "remove"));
            }
        }
    }
    Ok(())
}

/// The capacity of this name, made if there is none yet.
fn group(
    builder: &mut Builder,
    name: Option<&str>,
    way: &str,
    bytes_per_second: u64,
) -> Result<Option<GroupId>, GraphError> {
    let Some(name) = name.map(|name| format!("{name}{way}")) else {
        return Ok(None);
    };
    match builder.find_group(&name) {
        None => Ok(Some(builder.capacity_group(CapacityGroup {
            name,
            bytes_per_second,
        }))),
        Some((id, there)) if there == bytes_per_second => Ok(Some(id)),
        Some((_, there)) => Err(GraphError::CapacityGroup {
            group: name,
            problem: format!(
                "it is {there} B/s already, and a link that shares it has {bytes_per_second}: give \
                 all of them the same"
            ),
        }),
    }
}

fn nothing(overlay: &Overlay, verb: &'static str) -> GraphError {
    let link = format!("{} -> {} ({})", overlay.from, overlay.to, overlay.kind);
    GraphError::NothingToChange {
        origin: overlay.origin.clone(),
        link,
        verb,
    }
}

fn find(graph: &LinkGraph, overlay: &Overlay, endpoint: &Endpoint) -> Result<VertexId, GraphError> {
    let found: Vec<VertexId> = match endpoint {
        Endpoint::Rank(rank) => graph.rank(*rank).into_iter().collect(),
        Endpoint::Device(node, id) => graph
            .vertex_ids()
            .filter(|(_, v)| v.node == Some(*node) && v.device().is_some_and(|d| d.id == *id))
            .map(|(id, _)| id)
            .collect(),
        Endpoint::Named { host, name } => graph
            .vertex_ids()
            .filter(|(_, v)| v.name == *name)
            .filter(|(_, v)| match host {
                Some(host) => v
                    .node
                    .and_then(|id| graph.node(id))
                    .is_some_and(|n| n.name == *host),
                None => true,
            })
            .map(|(id, _)| id)
            .collect(),
    };
    match found[..] {
        [id] => Ok(id),
        _ => Err(GraphError::Endpoint {
            origin: overlay.origin.clone(),
            endpoint: endpoint.to_string(),
            found: found.len(),
        }),
    }
}
