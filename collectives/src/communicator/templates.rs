//! The templates that suit a communicator: islands, orders, rings and trees, found on its links.
//!
//! Made from the frozen graph by integers, and rings and trees by what rounds alike everywhere
//! (`packed.rs`), so every rank finds the same; their digest is part of the signature of each call
//! besides.

use std::collections::BTreeMap;
use std::sync::Arc;

use unisono_network::levels::{Levels, Shared, Way, levels_of_pairs};
use unisono_plan::cost::{Link, Port, Templates};
use unisono_plan::template::{Family, Hierarchical, Level, Order};
use unisono_plan::{Algorithm, Template};

use super::packed::{Pair, packed};

/// What the levels of a hierarchical plan run, the lowest first; the last one on all that are left.
const WITHIN_AND_BETWEEN: [[Algorithm; 2]; 5] = [
    [Algorithm::MeshOneShot; 2],
    [Algorithm::Ring; 2],
    [Algorithm::HalvingDoubling; 2],
    [Algorithm::MeshOneShot, Algorithm::Ring],
    [Algorithm::MeshOneShot, Algorithm::HalvingDoubling],
];

/// The most ranks whose ways are looked at for shares by rate.
const MOST_WITH_RATES: usize = 512;

/// The templates for so many ranks that reach each other so.
pub(super) fn templates(ranks: u32, pair: impl Fn(u32, u32) -> Pair) -> Templates {
    let mut templates = Templates::default();
    levelled(&mut templates, ranks, &pair);
    match packed(ranks, pair) {
        Ok((rings, trees)) => {
            for (family, absent) in [
                (Family::Rings, rings.is_none()),
                (Family::Trees, trees.is_empty()),
            ] {
                if absent {
                    let why = format!("no {family} fit into the direct links");
                    templates.missing.push((family, why));
                }
            }
            templates.found.extend(rings.into_iter().chain(trees));
        }
        Err(why) => {
            for family in [Family::Rings, Family::Trees] {
                templates.missing.push((family, why.clone()));
            }
        }
    }
    let by_graph = "live communicators have none: ask `unisono plan` what it would be worth";
    templates
        .missing
        .push((Family::Routes, by_graph.to_owned()));
    templates
}

/// Adds islands, and algorithms in the order in which islands lie.
fn levelled(templates: &mut Templates, ranks: u32, pair: impl Fn(u32, u32) -> Pair) {
    let link = |from: u32, to: u32| pair(from, to).link;
    let found = levels_of_pairs(ranks, widths(ranks, link));
    match hierarchical(&found, &pair) {
        Ok(all) => templates.found.extend(all),
        Err(why) => templates.missing.push((Family::Hierarchical, why)),
    }
    let natural = found.order().iter().copied().eq(0..ranks);
    if !natural && let Ok(order) = Order::new(found.order()) {
        let order = Arc::new(order);
        let ordered = Algorithm::OVER_LINKS.map(|algorithm| Template::Ordered {
            algorithm,
            order: order.clone(),
        });
        templates.found.extend(ordered);
    }
}

/// How wide the link of two ranks is while all ranks send to all: of a port that it shares its share.
fn widths(ranks: u32, link: impl Fn(u32, u32) -> Link) -> impl Fn(u32, u32) -> u64 {
    let mut sharers: BTreeMap<u32, u64> = BTreeMap::new();
    let pairs = (0..ranks).flat_map(|from| (0..ranks).map(move |to| (from, to)));
    for (from, to) in pairs.filter(|(from, to)| from != to) {
        if let Some(port) = link(from, to).port {
            *sharers.entry(port.id).or_default() += 1;
        }
    }
    move |from, to| {
        let link = link(from, to);
        let rate = link.rate.get().unwrap_or(u64::MAX);
        let share = link.port.and_then(|port| {
            let sharers = sharers.get(&port.id)?;
            Some(port.rate.get()? / sharers)
        });
        share.map_or(rate, |share| rate.min(share.max(1)))
    }
}

/// Plans over islands, those with equal shares first; why there are none.
fn hierarchical(found: &Levels, pair: impl Fn(u32, u32) -> Pair) -> Result<Vec<Template>, String> {
    let count = found.levels().len();
    if count < 2 {
        return Err("its ranks are no islands: nobody is closer to somebody than the rest".into());
    }
    let with = |[within, between]: [Algorithm; 2], weights: Option<&Vec<Vec<u32>>>| {
        let level = |level: usize| Level {
            weights: weights.map_or_else(Arc::default, |weights| weights[level].clone().into()),
            ..Level::new(
                found.group_of(level),
                if level == 0 { within } else { between },
            )
        };
        let levels: Vec<Level> = (0..count).map(level).collect();
        Hierarchical::new(levels).map(Arc::new)
    };
    let equal: Result<Vec<Arc<Hierarchical>>, _> = (WITHIN_AND_BETWEEN.into_iter())
        .map(|algorithms| with(algorithms, None))
        .collect();
    let mut all = equal.map_err(|error| error.to_string())?;
    let equal = all[0].clone();
    let way = |from: u32, to: u32| {
        let Pair {
            link, leaves_by, ..
        } = pair(from, to);
        let shared = |port: Port| {
            Some(Shared {
                id: port.id.into(),
                bytes_per_second: port.rate.get()?,
            })
        };
        Way {
            bytes_per_second: link.rate.get().unwrap_or(0),
            shared: leaves_by.and_then(shared).into_iter().collect(),
        }
    };
    let weights = [false, true].map(|exchanges| match found.order().len() {
        ..=MOST_WITH_RATES => found.weights(exchanges, way),
        _ => None,
    });
    for algorithms in WITHIN_AND_BETWEEN {
        let exchanges = algorithms[1] == Algorithm::MeshOneShot;
        let by_rate = weights[usize::from(exchanges)].as_ref();
        // Shares that can't be cut exactly are left to the equal ones.
        let by_rate = by_rate.and_then(|weights| with(algorithms, Some(weights)).ok());
        all.extend(by_rate.filter(|levels| levels.is_about_as_coarse_as(&equal)));
    }
    Ok(all.into_iter().map(Template::Hierarchical).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use unisono_plan::cost::Rate;

    fn pair(gigabytes: u64, direct: bool) -> Pair {
        let link = Link {
            alpha_ps: 1_000_000,
            rate: Rate::bytes_per_second(gigabytes * 1_000_000_000),
            by_core: false,
            message_ps: 0,
            port: None,
        };
        Pair {
            link,
            direct,
            leaves_by: None,
        }
    }

    fn boxes(box_of: impl Fn(u32) -> u32) -> impl Fn(u32, u32) -> Pair {
        move |from, to| match box_of(from) == box_of(to) {
            true => pair(100, true),
            false => pair(1, false),
        }
    }

    #[test]
    fn boxes_are_islands_and_interleaved_ones_have_an_order() {
        let neighbours = templates(8, boxes(|rank| rank / 4));
        assert_eq!(neighbours.found.len(), WITHIN_AND_BETWEEN.len());
        let labels: Vec<_> = neighbours.found.iter().map(Template::label).collect();
        assert!(
            labels.contains(&"hierarchical:mesh_one_shot+ring".into()),
            "{labels:?}"
        );
        let interleaved = templates(8, boxes(|rank| rank % 2));
        let orders = (interleaved.found.iter()).filter_map(|template| match template {
            Template::Ordered { order, .. } => Some(order.ranks().to_vec()),
            _ => None,
        });
        let orders: Vec<Vec<u32>> = orders.collect();
        assert_eq!(orders.len(), Algorithm::OVER_LINKS.len());
        assert!(
            orders
                .iter()
                .all(|order| *order == [0, 2, 4, 6, 1, 3, 5, 7]),
            "{orders:?}"
        );
    }

    /// Two boxes of four devices, of which each reaches those of the other by its one slot.
    #[test]
    fn a_way_that_is_shared_is_as_wide_as_its_share() {
        let joined = |from: u32, to: u32| match from / 4 == to / 4 {
            true => pair(15, true),
            false => {
                let mut pair = pair(12, false);
                let (id, rate) = (from, pair.link.rate);
                pair.link.port = Some(Port { id, rate });
                pair.leaves_by = pair.link.port;
                pair
            }
        };
        let found = templates(8, joined).found;
        assert_eq!(found.len(), WITHIN_AND_BETWEEN.len(), "{found:?}");
    }

    /// Boxes of four and of two; each device has a card of its own.
    #[test]
    fn unequal_cards_get_shares_by_rate_besides_equal_ones() {
        let card = |rank: u32| [25, 25, 12, 12, 50, 25][rank as usize];
        let joined = |from: u32, to: u32| match (from < 4) == (to < 4) {
            true => pair(100, true),
            false => pair(card(from).min(card(to)), false),
        };
        let found = templates(6, joined).found;
        let by_rate = |template: &&Template| template.label().ends_with(":by_rate");
        let unequal: Vec<&Template> = found.iter().filter(by_rate).collect();
        assert_eq!(unequal.len(), WITHIN_AND_BETWEEN.len(), "{found:?}");
        let Template::Hierarchical(levels) = unequal[0] else {
            panic!("{unequal:?}")
        };
        // The fastest card of the small box meets none as fast.
        assert_eq!(*levels.levels()[0].weights, [2, 2, 1, 1, 1, 1]);
        // All ranks ask the same, and all find the same.
        assert_eq!(found, templates(6, joined).found);
    }

    #[test]
    fn where_all_are_alike_it_says_so() {
        let alike = templates(4, boxes(|_| 0));
        assert!(alike.found.is_empty());
        let why = (alike.missing.iter()).find(|(family, _)| *family == Family::Hierarchical);
        assert!(why.unwrap().1.contains("no islands"), "{why:?}");
    }
}
