//! What links are called where people and programs read about them.

use serde_json::{Value, json};
use unisono_graph::LinkGraph;
use unisono_network::{EdgeId, Network};

/// The names of a network's edges, from the graph that it came from.
#[derive(Debug, Clone)]
pub struct Names {
    edges: Vec<Name>,
}

#[derive(Debug, Clone)]
struct Name {
    from: String,
    to: String,
    index: u32,
}

impl Names {
    /// Names of all edges.
    #[must_use]
    pub fn new(graph: &LinkGraph, network: &Network) -> Self {
        let name = |edge: EdgeId| {
            let link = network
                .link_of(edge)
                .and_then(|link| graph.links().get(link));
            match link {
                Some(link) => Name {
                    from: graph.vertex(link.from).name.clone(),
                    to: graph.vertex(link.to).name.clone(),
                    index: link.index,
                },
                None => {
                    let edge = network.edge(edge);
                    Name {
                        from: edge.from.to_string(),
                        to: edge.to.to_string(),
                        index: 0,
                    }
                }
            }
        };
        let edges = 0..network.edges().len() as EdgeId;
        Self {
            edges: edges.map(name).collect(),
        }
    }

    /// An edge as text: `0 -> sw`, and its number if it is one of several.
    #[must_use]
    pub fn text(&self, edge: EdgeId) -> String {
        let name = &self.edges[edge as usize];
        match name.index {
            0 => format!("{} -> {}", name.from, name.to),
            index => format!("{} -> {} ({index})", name.from, name.to),
        }
    }

    /// An edge as JSON: its two ends, numbers where they are numbers, and its number if it is one
    /// of several.
    #[must_use]
    pub fn json(&self, edge: EdgeId) -> Value {
        let name = &self.edges[edge as usize];
        let end = |name: &str| match name.parse::<i64>() {
            Ok(number) if number.to_string() == name => json!(number),
            _ => json!(name),
        };
        match name.index {
            0 => json!([end(&name.from), end(&name.to)]),
            index => json!([end(&name.from), end(&name.to), index]),
        }
    }
}
