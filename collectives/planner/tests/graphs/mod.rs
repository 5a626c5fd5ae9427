//! Small graphs, as files in the short format.

use std::fmt::Write as _;

/// Nodes by number, ranks first, and edges both ways: (a, b, GB/s, latency in us).
fn file(ranks: u32, switches: u32, edges: &[(u32, u32, f64, f64)]) -> (u32, String) {
    let mut text = String::from("{\"nodes\": [");
    for node in 0..ranks + switches {
        let comma = if node > 0 { ", " } else { "" };
        let _ = write!(
            text,
            "{comma}{{\"id\": {node}, \"compute\": {}}}",
            node < ranks
        );
    }
    text.push_str("], \"edges\": [");
    let both = edges
        .iter()
        .flat_map(|&(a, b, g, l)| [(a, b, g, l), (b, a, g, l)]);
    for (place, (from, to, gigabytes, latency)) in both.enumerate() {
        let comma = if place > 0 { ", " } else { "" };
        let _ = write!(
            text,
            "{comma}{{\"src\": {from}, \"dst\": {to}, \"GBps\": {gigabytes}, \"latency_us\": {latency}}}"
        );
    }
    text.push_str("]}");
    (ranks, text)
}

/// A cycle.
pub fn ring(ranks: u32, latency: f64) -> (u32, String) {
    let edges: Vec<_> = (0..ranks)
        .map(|r| (r, (r + 1) % ranks, 50.0, latency))
        .collect();
    file(ranks, 0, &edges)
}

/// Everybody joined to everybody.
pub fn mesh(ranks: u32, latency: f64) -> (u32, String) {
    let pairs = (0..ranks).flat_map(|a| (0..a).map(move |b| (b, a, 28.0, latency)));
    file(ranks, 0, &pairs.collect::<Vec<_>>())
}

/// Everybody at one switch.
pub fn star(ranks: u32, latency: f64) -> (u32, String) {
    let edges: Vec<_> = (0..ranks).map(|r| (r, ranks, 100.0, latency)).collect();
    file(ranks, 1, &edges)
}

/// Two islands of unequal size, each with a switch, joined by a narrow link.
pub fn islands(a: u32, b: u32, latency: f64) -> (u32, String) {
    let ranks = a + b;
    let mut edges: Vec<_> = (0..a).map(|r| (r, ranks, 100.0, latency)).collect();
    edges.extend((a..ranks).map(|r| (r, ranks + 1, 60.0, latency)));
    edges.push((ranks, ranks + 1, 20.0, 5.0 * latency));
    file(ranks, 2, &edges)
}

/// Three islands of unequal size, interleaved, and two rails.
pub fn interleaved() -> (u32, String) {
    let island_of = [1, 1, 0, 0, 2, 2, 1, 1, 1, 2, 2, 2, 0, 0, 1];
    let rail_of = [0, 1, 0, 1, 1, 1, 0, 1, 1, 0, 0, 0, 1, 0, 0];
    let mut edges = Vec::new();
    for ((rank, island), rail) in (0..).zip(island_of).zip(rail_of) {
        edges.push((rank, 17 + island, 100.0, 0.0));
        edges.push((rank, 15 + rail, 12.5, 0.0));
    }
    file(15, 5, &edges)
}

/// Parallel links, and one that is narrower.
pub fn odd() -> (u32, String) {
    let edges = [
        (0, 1, 10.0, 1.0),
        (0, 1, 10.0, 2.0),
        (1, 2, 7.0, 0.5),
        (2, 3, 20.0, 0.5),
        (3, 0, 5.0, 3.0),
    ];
    file(4, 0, &edges)
}

/// Some of each.
pub fn all() -> Vec<(u32, String)> {
    vec![
        odd(),
        islands(3, 2, 1.0),
        ring(5, 0.0),
        star(4, 2.0),
        mesh(6, 1.5),
        ring(2, 1.0),
        islands(4, 4, 0.0),
        star(7, 0.5),
        interleaved(),
    ]
}
