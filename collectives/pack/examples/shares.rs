//! Prints what share of its bound each construction reaches, how deep its trees are, and how long
//! it took. Arguments: graph files; without any, families of networks.

use std::time::Instant;

use unisono_bound::{Op, bound};
use unisono_network::{Network, Rational, to_f64};
use unisono_pack as pack;

#[path = "../tests/families/mod.rs"]
mod families;

fn main() {
    let files: Vec<String> = std::env::args().skip(1).collect();
    println!(
        "{:34} {:>16} {:>16} {:>16} {:>16} {:>16} {:>12} {:>12}",
        "share % / trees / depth / ms",
        "all_gather",
        "shallow",
        "reduce_scatter",
        "broadcast",
        "all_reduce",
        "all_to_all",
        "rings"
    );
    for name in &files {
        match std::fs::read_to_string(name)
            .map_err(|error| error.to_string())
            .and_then(|text| Network::from_json(&text).map_err(|error| error.to_string()))
        {
            Ok(network) => row(name.rsplit('/').next().unwrap_or(name), &network),
            Err(error) => println!("{name}: {error}"),
        }
    }
    if files.is_empty() {
        for (name, network) in families::small().into_iter().chain(families::large()) {
            row(&name, &network);
        }
    }
}

fn row(name: &str, network: &Network) {
    let n = i128::from(network.ranks());
    let limit = |op: Op| {
        bound(network, op)
            .ok()
            .and_then(|bound| bound.limit.high())
            .unwrap_or(Rational::from(1))
    };
    let gather = limit(Op::AllGather);
    print!("{name:34}");
    trees(gather, network, || pack::all_gather(network));
    trees(gather, network, || pack::shallow_all_gather(network));
    trees(limit(Op::ReduceScatter), network, || {
        pack::reduce_scatter(network)
    });
    trees(limit(Op::Broadcast { root: 0 }), network, || {
        pack::broadcast(network, 0)
    });
    let start = Instant::now();
    match pack::all_reduce(network) {
        Ok(packing) => {
            let time = start.elapsed();
            let whole = pack::check::pairs(network, &packing);
            let depths = packing
                .pairs
                .iter()
                .filter_map(|pair| pair.distribute.depth());
            cell(
                packing.bytes_per_second(),
                limit(Op::AllReduce { in_network: false }),
                packing.pairs.len(),
                depths.max(),
                time,
                whole,
            );
        }
        Err(_) => print!(" {:>16}", "-"),
    }
    let start = Instant::now();
    match pack::all_to_all(network) {
        Ok(routing) => {
            let time = start.elapsed();
            let whole = pack::check::routing(network, &routing);
            let rate = routing.bytes_per_second() * n;
            cell(
                rate,
                limit(Op::AllToAll),
                routing.routes.len(),
                None,
                time,
                whole,
            );
        }
        Err(_) => print!(" {:>12}", "-"),
    }
    let start = Instant::now();
    match pack::rings(network) {
        Ok(rings) => {
            let time = start.elapsed();
            let whole = pack::check::rings(network, &rings);
            let rate = rings.bytes_per_second() * n / (n - 1).max(1);
            cell(rate, gather, rings.rings.len(), None, time, whole);
        }
        Err(_) => print!(" {:>12}", "-"),
    }
    println!();
}

fn trees(
    limit: Rational,
    network: &Network,
    packing: impl Fn() -> Result<pack::Packing, pack::PackError>,
) {
    let start = Instant::now();
    match packing() {
        Ok(packing) => {
            let time = start.elapsed();
            let whole = pack::check::packing(network, &packing);
            cell(
                packing.bytes_per_second(),
                limit,
                packing.trees.len(),
                Some(packing.depth()),
                time,
                whole,
            );
        }
        Err(_) => print!(" {:>16}", "-"),
    }
}

fn cell(
    rate: Rational,
    limit: Rational,
    count: usize,
    depth: Option<u32>,
    time: std::time::Duration,
    whole: Result<(), pack::check::Flaw>,
) {
    if let Err(flaw) = whole {
        print!(" {flaw}");
        return;
    }
    let share = 100.0 * to_f64(rate) / to_f64(limit);
    let ms = time.as_secs_f64() * 1e3;
    match depth {
        Some(depth) => print!(" {share:5.1} {count:4} {depth:2} {ms:4.0}"),
        None => print!(" {share:5.1} {count:4} {ms:4.0}"),
    }
}
