//! The cluster file's links, as changes to the link graph.

use unisono_cluster::{Cluster, Effective, Link, LinkEnd, Source, Transport};
use unisono_graph::{Endpoint, LinkType, Overlay, OverlayAction};

use super::InitError;

/// What the file says about links, the same on every rank that reads the same file.
pub(super) fn overlays(effective: &Effective) -> Result<Vec<Overlay>, InitError> {
    let cluster = &effective.cluster;
    let mut overlays = Vec::with_capacity(cluster.links.len());
    for (index, link) in cluster.links.iter().enumerate() {
        let origin = match effective.source(&format!("links[{index}].from")) {
            // Without the column, which says nothing to people here; nor the folder, which may
            // differ between machines, while graphs must not.
            Some(Source::File { path, line, .. }) => {
                let file = path.file_name().unwrap_or_default().to_string_lossy();
                format!("{file}:{line}")
            }
            _ => format!("links[{index}]"),
        };
        overlays.push(overlay(cluster, link, origin)?);
    }
    Ok(overlays)
}

fn overlay(cluster: &Cluster, link: &Link, origin: String) -> Result<Overlay, InitError> {
    Ok(Overlay {
        from: endpoint(cluster, &link.from, &origin)?,
        to: endpoint(cluster, &link.to, &origin)?,
        both_directions: link.both_ways,
        kind: link.kind.clone(),
        action: action(link, &origin)?,
        origin,
    })
}

fn action(link: &Link, origin: &str) -> Result<OverlayAction, InitError> {
    if link.remove {
        return Ok(OverlayAction::Remove);
    }
    let rate = link.bandwidth.map(unisono_cluster::Rate::bytes_per_second);
    let latency = link.latency.map(unisono_cluster::TimeSpan::nanos);
    let Some(plugin) = &link.plugin else {
        return Ok(OverlayAction::Adjust {
            bytes_per_second: rate,
            latency_ns: latency,
            shared: link.shared.clone(),
        });
    };
    let missing = |key: &str| {
        let why = format!("a link with `plugin` is added, which needs `{key}`");
        InitError::setting(origin, why)
    };
    Ok(OverlayAction::Set {
        plugin: plugin.clone(),
        link_type: match link.transport {
            Some(Transport::Mapped) => LinkType::Mapped,
            Some(Transport::Posted) => LinkType::Posted,
            _ => return Err(missing("transport")),
        },
        bytes_per_second: rate.ok_or_else(|| missing("bandwidth"))?,
        latency_ns: latency.unwrap_or(0),
        shared: link.shared.clone(),
    })
}

fn endpoint(cluster: &Cluster, end: &LinkEnd, origin: &str) -> Result<Endpoint, InitError> {
    let (node, device) = match end {
        LinkEnd::Rank(rank) => return Ok(Endpoint::Rank(*rank)),
        LinkEnd::Switch(name) => {
            return Ok(Endpoint::Named {
                host: None,
                name: name.clone(),
            });
        }
        LinkEnd::Device { node, device } => (node, device),
    };
    let described = cluster.nodes.iter().find(|n| n.name == *node);
    let id = described.and_then(|n| {
        let device = n.devices.iter().find(|d| d.name == *device)?;
        device.id.as_ref()
    });
    let Some(id) = id else {
        return Ok(Endpoint::Named {
            host: Some(node.clone()),
            name: device.clone(),
        });
    };
    let bad = |e: unisono_graph::ParseIdError| InitError::setting(origin, e.to_string());
    let Some(node_id) = described.and_then(|n| n.id.as_ref()) else {
        let why = format!(
            "{node}/{device} is found by its id, for which its node needs an `id` too (`unisono topo` shows it)"
        );
        return Err(InitError::setting(origin, why));
    };
    Ok(Endpoint::Device(
        node_id.parse().map_err(bad)?,
        id.parse().map_err(bad)?,
    ))
}
