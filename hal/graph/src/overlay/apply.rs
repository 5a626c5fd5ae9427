//! Overlays, one after the other, on a graph taken apart.

use super::{Endpoint, Overlay, OverlayAction};
use crate::{Builder, GraphError, LinkGraph, NewLink, Source, VertexId};

pub(super) fn apply(graph: &LinkGraph, overlays: &[Overlay]) -> Result<LinkGraph, GraphError> {
    let mut builder = Builder::from(graph);
    for overlay in overlays {
        let from = find(graph, overlay, &overlay.from)?;
        let to = find(graph, overlay, &overlay.to)?;
        change(builder.links_mut(), overlay, from, to)?;
        if overlay.both_directions {
            change(builder.links_mut(), overlay, to, from)?;
        }
    }
    builder.build()
}

fn change(
    links: &mut Vec<NewLink>,
    overlay: &Overlay,
    from: VertexId,
    to: VertexId,
) -> Result<(), GraphError> {
    let meant = |link: &NewLink| link.from == from && link.to == to && link.kind == overlay.kind;
    let source = Source::Overlay(overlay.origin.clone());
    match &overlay.action {
        OverlayAction::Set {
            plugin,
            link_type,
            bytes_per_second,
            latency_ns,
        } => {
            links.retain(|link| !meant(link));
            links.push(NewLink {
                from,
                to,
                plugin: plugin.clone(),
                kind: overlay.kind.clone(),
                link_type: *link_type,
                bytes_per_second: *bytes_per_second,
                latency_ns: *latency_ns,
                shared: None,
                rail: 0,
                source,
            });
        }
        OverlayAction::Adjust {
            bytes_per_second,
            latency_ns,
        } => {
            let mut found = false;
            for link in links.iter_mut().filter(|link| meant(link)) {
                found = true;
                link.bytes_per_second = bytes_per_second.unwrap_or(link.bytes_per_second);
                link.latency_ns = latency_ns.unwrap_or(link.latency_ns);
                link.source = source.clone();
            }
            if !found {
                return Err(nothing(overlay, "adjust"));
            }
        }
        OverlayAction::Remove => {
            let before = links.len();
            links.retain(|link| !meant(link));
            if links.len() == before {
                return Err(nothing(overlay, "remove"));
            }
        }
    }
    Ok(())
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
