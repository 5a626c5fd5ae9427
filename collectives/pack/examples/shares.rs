//! Prints the share of its bound that each construction reaches.
use std::time::Instant;
use unisono_network::{Network, to_f64};

fn main() {
    for name in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&name).unwrap();
        let network = Network::from_json(&text).unwrap();
        let start = Instant::now();
        let packing = unisono_pack::all_gather(&network).unwrap();
        let took = start.elapsed();
        unisono_pack::check::packing(&network, &packing).unwrap();
        println!(
            "{name}: ag {:.4} trees {} depth {} weights {:?} {took:?}",
            to_f64(packing.bytes_per_second()) / 1e9,
            packing.trees.len(),
            packing.depth(),
            packing.trees.iter().map(|t| t.weight).max()
        );
        let start = Instant::now();
        if let Ok(packing) = unisono_pack::shallow_all_gather(&network) {
            let took = start.elapsed();
            unisono_pack::check::packing(&network, &packing).unwrap();
            println!(
                "{name}: sh {:.4} trees {} depth {} {took:?}",
                to_f64(packing.bytes_per_second()) / 1e9,
                packing.trees.len(),
                packing.depth()
            );
        }
        let start = Instant::now();
        let packing = unisono_pack::broadcast(&network, 0).unwrap();
        let took = start.elapsed();
        unisono_pack::check::packing(&network, &packing).unwrap();
        println!(
            "{name}: bc {:.4} trees {} depth {} weights {:?} {took:?}",
            to_f64(packing.bytes_per_second()) / 1e9,
            packing.trees.len(),
            packing.depth(),
            packing.trees.iter().map(|t| t.weight).max()
        );
        let start = Instant::now();
        let packing = unisono_pack::all_reduce(&network).unwrap();
        let took = start.elapsed();
        unisono_pack::check::pairs(&network, &packing).unwrap();
        println!(
            "{name}: ar {:.4} trees {} depth {} weights {:?} {took:?}",
            to_f64(packing.bytes_per_second()) / 1e9,
            packing.pairs.len(),
            packing
                .pairs
                .iter()
                .map(|p| p.distribute.depth().unwrap())
                .max()
                .unwrap(),
            packing.pairs.iter().map(|t| t.reduce.weight).max()
        );
        let start = Instant::now();
        let routing = unisono_pack::all_to_all(&network).unwrap();
        let took = start.elapsed();
        unisono_pack::check::routing(&network, &routing).unwrap();
        println!(
            "{name}: a2a {:.4} bound {:.4} share {:.4} routes {} a pair {:.2} weight {:?} {took:?}",
            to_f64(routing.bytes_per_second()) / 1e9,
            routing.bound / 1e9,
            to_f64(routing.bytes_per_second()) / routing.bound,
            routing.routes.len(),
            routing.routes.len() as f64 / (network.ranks() * (network.ranks() - 1)) as f64,
            routing.weight
        );
        let start = Instant::now();
        let levels = unisono_pack::levels(&network);
        println!(
            "{name}: levels {:?} {:?}",
            levels
                .levels()
                .iter()
                .map(|l| &l.groups)
                .collect::<Vec<_>>(),
            start.elapsed()
        );
        let start = Instant::now();
        let rings = unisono_pack::rings(&network).unwrap();
        let took = start.elapsed();
        unisono_pack::check::rings(&network, &rings).unwrap();
        println!(
            "{name}: rings {} rate {:.3} {:?} {took:?}",
            rings.rings.len(),
            to_f64(rings.bytes_per_second()) / 1e9,
            &rings.rings[0].order
        );
    }
}
