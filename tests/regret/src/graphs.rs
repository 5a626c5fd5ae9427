//! The graphs: those of the fixtures and subsets of them where they are at hand, and families.

use std::path::Path;

use anyhow::{Context, Result};
use unisono_graph::LinkGraph;
use unisono_network::{Builder, Network};
use unisono_plan::Op;
use unisono_planner::{Request, plan};

const GB: u64 = 1_000_000_000;

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

/// The two factors of a number that are nearest to each other, the smaller first.
fn sides(ranks: u32) -> (u32, u32) {
    let root = ranks.isqrt();
    let a = (1..=root).rev().find(|a| ranks.is_multiple_of(*a));
    let a = a.unwrap_or(1);
    (a, ranks / a)
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

fn ring(ranks: u32) -> Result<Network> {
    let mut builder = Builder::new(ranks);
    for rank in 0..ranks {
        // Two ranks have one link, not two.
        if ranks > 2 || rank == 0 {
            builder.duplex(rank, (rank + 1) % ranks, 50 * GB, 1000);
        }
    }
    Ok(builder.build()?)
}

fn mesh(ranks: u32) -> Result<Network> {
    let mut builder = Builder::new(ranks);
    for one in 0..ranks {
        for other in 0..one {
            builder.duplex(one, other, 28 * GB, 1500);
        }
    }
    Ok(builder.build()?)
}

fn torus(a: u32, b: u32) -> Result<Network> {
    let mut builder = Builder::new(a * b);
    let at = |x: u32, y: u32| (x % a) * b + y % b;
    for x in 0..a {
        for y in 0..b {
            if a > 2 || x == 0 {
                builder.duplex(at(x, y), at(x + 1, y), 50 * GB, 700);
            }
            if b > 2 || y == 0 {
                builder.duplex(at(x, y), at(x, y + 1), 50 * GB, 700);
            }
        }
    }
    Ok(builder.build()?)
}

/// Leaves of some hosts each, and half as much bandwidth above them as below.
fn fat_tree(leaves: u32, hosts: u32) -> Result<Network> {
    let mut builder = Builder::new(leaves * hosts);
    let spines = [builder.switch(false), builder.switch(false)];
    for number in 0..leaves {
        let leaf = builder.switch(false);
        for host in 0..hosts {
            builder.duplex(number * hosts + host, leaf, 25 * GB, 1000);
        }
        for spine in spines {
            builder.duplex(leaf, spine, 25 * GB * u64::from(hosts) / 4, 1000);
        }
    }
    Ok(builder.build()?)
}

/// Boxes with a switch each, and a rail for each place in a box.
fn boxes(count: u32, each: u32) -> Result<Network> {
    let mut builder = Builder::new(count * each);
    let rails: Vec<u32> = (0..each).map(|_| builder.switch(false)).collect();
    for number in 0..count {
        let switch = builder.switch(false);
        for (place, &rail) in (0..each).zip(&rails) {
            builder.duplex(number * each + place, switch, 450 * GB, 700);
            builder.duplex(number * each + place, rail, 50 * GB, 3000);
        }
    }
    Ok(builder.build()?)
}
