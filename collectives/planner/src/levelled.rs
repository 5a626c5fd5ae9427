//! Plans over levels of islands: with equal shares, and with shares by what ranks can carry.

use std::sync::Arc;

use unisono_network::levels::{Shared, Way};
use unisono_network::{EdgeId, Network, Router};
use unisono_pack::Levels;
use unisono_plan::template::{Hierarchical, Level};
use unisono_plan::{Algorithm, Template};

/// The most ranks whose ways are looked at, each to each.
const MOST_RANKS: u32 = 256;

/// What all levels run.
const ALGORITHMS: [Algorithm; 3] = [
    Algorithm::MeshOneShot,
    Algorithm::Ring,
    Algorithm::HalvingDoubling,
];

/// The templates of the levels that were found; none if there is but one level.
pub(crate) fn levelled(network: &Network, found: &Levels) -> Vec<Template> {
    let count = found.levels().len();
    if count < 2 {
        return Vec::new();
    }
    let with = |algorithm: Algorithm, weights: Option<&Vec<Vec<u32>>>| {
        let level = |level: usize| Level {
            weights: weights.map_or_else(Arc::default, |weights| weights[level].clone().into()),
            ..Level::new(found.group_of(level), algorithm)
        };
        let levels: Vec<Level> = (0..count).map(level).collect();
        Hierarchical::new(levels).ok().map(Arc::new)
    };
    let mut all: Vec<Arc<Hierarchical>> = (ALGORITHMS.into_iter())
        .filter_map(|algorithm| with(algorithm, None))
        .collect();
    let equal = all.first().cloned();
    if let Some(equal) = equal.filter(|_| network.ranks() <= MOST_RANKS) {
        let ways = ways(network);
        let way = |from: u32, to: u32| ways[(from * network.ranks() + to) as usize].clone();
        let weights = [false, true].map(|exchanges| found.weights(exchanges, way));
        for algorithm in ALGORITHMS {
            let exchanges = algorithm == Algorithm::MeshOneShot;
            let by_rate = weights[usize::from(exchanges)].as_ref();
            let by_rate = by_rate.and_then(|weights| with(algorithm, Some(weights)));
            all.extend(by_rate.filter(|levels| levels.is_about_as_coarse_as(&equal)));
        }
    }
    all.into_iter().map(Template::Hierarchical).collect()
}

/// The way from each rank to each other: what its narrowest part carries, and all its parts.
fn ways(network: &Network) -> Vec<Way> {
    let mut router = Router::new(network);
    let ranks = network.ranks();
    let mut ways = Vec::with_capacity((ranks * ranks) as usize);
    for from in 0..ranks {
        for to in 0..ranks {
            let path = router.path(from, to).unwrap_or_default();
            let shared: Vec<Shared> = path.iter().flat_map(|&edge| parts(network, edge)).collect();
            let narrowest = shared.iter().map(|part| part.bytes_per_second).min();
            ways.push(Way {
                bytes_per_second: narrowest.unwrap_or(0),
                shared,
            });
        }
    }
    ways
}

/// An edge, and the capacity that it shares.
fn parts(network: &Network, id: EdgeId) -> impl Iterator<Item = Shared> + '_ {
    let edge = network.edge(id);
    let own = Shared {
        id: u64::from(id),
        bytes_per_second: edge.bytes_per_second,
    };
    let group = edge.group.map(|group| Shared {
        id: u64::from(group) + network.edges().len() as u64,
        bytes_per_second: network.groups()[group as usize].bytes_per_second,
    });
    [own].into_iter().chain(group)
}
