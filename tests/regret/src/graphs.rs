//! The graphs: those of the fixtures and subsets of them where they are at hand, and families.

use std::path::Path;

use anyhow::{Context, Result};
use unisono_graph::LinkGraph;
use unisono_network::Network;
use unisono_plan::Op;
use unisono_planner::{Request, plan};
use unisono_regret::families::{boxes, fat_tree, mesh, ring, sides, torus};

/// A graph with its name and its family.
pub struct Graph {
    pub family: &'static str,
    pub name: String,
    pub network: Network,
}

/// All graphs; without `full` the small ones.
pub fn all(full: bool) -> Result<Vec<Graph>> {
    let mut graphs = fixtures()?;
    let few: &[u32] = &[2, 3, 4, 6, 8, 12, 16];
    let many: Vec<u32> = (2..=17).chain([24, 48, 100, 384, 1024]).collect();
    for &ranks in if full { &many[..] } else { few } {
        let mut add = |family: &'static str, name: String, network| {
            graphs.push(Graph {
                family,
                name,
                network,
            });
        };
        add("ring", format!("ring of {ranks}"), ring(ranks)?);
        // A full mesh of many more has more links than machines have.
        if ranks <= 48 {
            add("mesh", format!("mesh of {ranks}"), mesh(ranks)?);
        }
        let (a, b) = sides(ranks);
        if a > 1 {
            add("torus", format!("torus {a} x {b}"), torus(a, b)?);
            add("fat-tree", format!("fat-tree {a} x {b}"), fat_tree(a, b)?);
            add("boxes", format!("{a} boxes of {b}"), boxes(a, b)?);
        }
    }
    Ok(graphs)
}

/// The graph of a file.
pub fn of_file(file: &Path) -> Result<Graph> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).with_context(|| format!("reading {name}"))?;
    let graph = LinkGraph::from_json(&text).with_context(|| format!("in {name}"))?;
    let network = Network::from_graph(&graph).with_context(|| format!("in {name}"))?;
    Ok(Graph {
        family: "files",
        name,
        network,
    })
}

/// Every fixture at its own size, and its first half.
fn fixtures() -> Result<Vec<Graph>> {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/known_answers.json");
    let Ok(text) = std::fs::read_to_string(&file) else {
        return Ok(Vec::new());
    };
    let known: serde_json::Value = serde_json::from_str(&text)?;
    let mut graphs = Vec::new();
    for one in known["graphs"].as_array().into_iter().flatten() {
        let name = one["name"].as_str().unwrap_or("nameless").to_owned();
        let mut graph = one["graph"].clone();
        // They come without latencies, so that short messages would all be alike.
        for edge in graph["edges"].as_array_mut().into_iter().flatten() {
            edge["latency_us"] = 1.0.into();
        }
        let graph = LinkGraph::from_json(&graph.to_string()).context(name.clone())?;
        let network = Network::from_graph(&graph).context(name.clone())?;
        let half: Vec<u32> = (0..network.ranks() / 2).collect();
        // Half of the ranks need not reach each other without the others.
        if half.len() > 1
            && let Ok(network) = network.restrict(&half)
            && plan(&network, &Request::new(Op::AllGather, 4096)).is_ok()
        {
            graphs.push(Graph {
                family: "fixtures",
                name: format!("first half of {name}"),
                network,
            });
        }
        graphs.push(Graph {
            family: "fixtures",
            name,
            network,
        });
    }
    Ok(graphs)
}
