//! What the user says about links, laid upon what the plugins reported.

use unisono_graph::{
    Builder, Endpoint, GraphError, LinkGraph, Overlay, Switch, Vertex, VertexKind,
};

/// The graph with the overlays that concern it. One file may describe a whole fleet: what is said
/// about nodes or ranks that are not in this job is passed over. Switches that only the file knows
/// are added.
pub(crate) fn apply(graph: &LinkGraph, overlays: &[Overlay]) -> Result<LinkGraph, GraphError> {
    let ours: Vec<Overlay> = (overlays.iter())
        .filter(|overlay| is_here(graph, &overlay.from) && is_here(graph, &overlay.to))
        .cloned()
        .collect();
    if ours.is_empty() {
        return Ok(graph.clone());
    }
    with_switches(graph, &ours)?.overlay(&ours)
}

/// Whether an end is on a node of this job, or on none.
fn is_here(graph: &LinkGraph, end: &Endpoint) -> bool {
    match end {
        Endpoint::Rank(rank) => graph.rank(*rank).is_some(),
        Endpoint::Device(node, _) => graph.node(*node).is_some(),
        Endpoint::Named { host: None, .. } => true,
        Endpoint::Named {
            host: Some(host), ..
        } => graph.nodes().iter().any(|node| node.name == *host),
    }
}

fn with_switches(graph: &LinkGraph, overlays: &[Overlay]) -> Result<LinkGraph, GraphError> {
    let mut builder = Builder::from(graph);
    let mut names: Vec<&String> = overlays
        .iter()
        .flat_map(|overlay| [&overlay.from, &overlay.to])
        .filter_map(|end| match end {
            Endpoint::Named { host: None, name } => Some(name),
            _ => None,
        })
        .filter(|name| graph.vertices().iter().all(|v| v.name != **name))
        .collect();
    names.sort();
    names.dedup();
    for name in names {
        builder.vertex(Vertex {
            name: name.clone(),
            node: None,
            kind: VertexKind::Switch(Switch::default()),
        });
    }
    builder.build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use unisono_graph::{LinkType, OverlayAction};

    fn set(from: Endpoint, to: Endpoint) -> Overlay {
        Overlay {
            origin: "test".to_owned(),
            from,
            to,
            both_directions: true,
            kind: "fabric".to_owned(),
            action: OverlayAction::Set {
                plugin: "fabric".to_owned(),
                link_type: LinkType::Posted,
                bytes_per_second: 1_000_000_000,
                latency_ns: 2_000,
                shared: None,
            },
        }
    }

    const TWO_RANKS: &str = r#"{
        "nodes": [{"id": 0, "compute": true}, {"id": 1, "compute": true}],
        "edges": [
            {"src": 0, "dst": 1, "GBps": 1.0, "latency_us": 9.0},
            {"src": 1, "dst": 0, "GBps": 1.0, "latency_us": 9.0}
        ]
    }"#;

    fn switch() -> Endpoint {
        Endpoint::Named {
            host: None,
            name: "leaf0".to_owned(),
        }
    }

    #[test]
    fn a_switch_of_the_file_joins_two_ranks_and_the_absent_are_passed_over() {
        let graph = LinkGraph::from_json(TWO_RANKS).unwrap();
        assert!(graph.ways(0, 1).iter().all(|way| way.kind != "fabric"));
        let absent = Endpoint::Named {
            host: Some("elsewhere".to_owned()),
            name: "gpu0".to_owned(),
        };
        let changed = apply(
            &graph,
            &[
                set(Endpoint::Rank(0), switch()),
                set(Endpoint::Rank(1), switch()),
                set(Endpoint::Rank(7), switch()),
                set(absent, switch()),
            ],
        )
        .unwrap();
        let ways = changed.ways(0, 1);
        assert!(ways.iter().any(|way| way.kind == "fabric"), "{ways:?}");
    }

    #[test]
    fn without_overlays_nothing_changes() {
        let graph = LinkGraph::from_json(TWO_RANKS).unwrap();
        assert_eq!(apply(&graph, &[]).unwrap().hash(), graph.hash());
    }
}
