//! Templates among the candidates: predicted, chosen, forced.

use std::sync::Arc;

use unisono_plan::cost::{
    Fabric, Link, Node, Port, Rate, Reads, Speeds, Templates, Uncached, predict,
};
use unisono_plan::select::{Front, Override, Overrides, Plan, Request, select};
use unisono_plan::template::{
    Family, Hierarchical, Level, Order, Ring, Rings, Route, Routes, Tree, Trees,
};
use unisono_plan::{Algorithm, Op, Template};

const MIB: u64 = 1 << 20;
const FAST: u64 = 100_000_000_000;
const SLOW: u64 = 1_000_000_000;

fn speeds() -> Speeds {
    Speeds {
        reduce: Rate::bytes_per_second(400_000_000_000),
        ..Speeds::default()
    }
}

fn levels(group_of: &[u32], groups: u32, algorithm: Algorithm) -> Template {
    let low = Level::new(group_of, algorithm);
    let top = Level::new(vec![0; groups as usize], algorithm);
    Template::Hierarchical(Arc::new(Hierarchical::new([low, top]).unwrap()))
}

/// Boxes of ranks, fast inside, with one slow card each; with templates made for them.
fn boxes(box_of: &[u32], templates: Templates) -> Fabric {
    let node = Node {
        cores: 0,
        exit: Rate::bytes_per_second(SLOW),
    };
    let nodes = vec![node; box_of.len()];
    let link = |from: u32, to: u32| Link {
        alpha_ps: 1_000_000,
        rate: Rate::bytes_per_second(if box_of[from as usize] == box_of[to as usize] {
            FAST
        } else {
            SLOW
        }),
        by_core: false,
        message_ps: 0,
        port: None,
    };
    let fabric = Fabric::new(box_of, &nodes, speeds(), link).unwrap();
    let with = fabric.with_templates(templates, box_of, &nodes, speeds(), link);
    with.unwrap()
}

fn found(found: Vec<Template>) -> Templates {
    Templates {
        found,
        missing: Vec::new(),
    }
}

fn request(op: Op, bytes: u64) -> Request {
    Request {
        op,
        bytes,
        element_bytes: 4,
        slot_bytes: MIB,
        windows: false,
        readable: true,
        deterministic: false,
    }
}

fn forced(family: Family) -> Overrides {
    Overrides {
        rules: vec![Override {
            op: None,
            bytes: 0..=u64::MAX,
            algorithm: family,
            windowed: None,
            put_bytes: None,
        }],
    }
}

#[test]
fn two_boxes_take_levels_for_long_messages_and_one_shot_for_short_ones() {
    let box_of = [0, 0, 0, 0, 1, 1, 1, 1];
    let fabric = boxes(
        &box_of,
        found(vec![levels(&box_of, 2, Algorithm::MeshOneShot)]),
    );
    for op in [Op::AllReduce, Op::AllGather, Op::ReduceScatter] {
        let long = select(&request(op, 64 * MIB), &fabric, &Overrides::NONE).unwrap();
        assert_eq!(long.winner().label, "hierarchical:mesh_one_shot", "{long}");
        assert!(long.winner().pieces > 1, "{long}");
        let short = select(&request(op, 32), &fabric, &Overrides::NONE).unwrap();
        assert_eq!(
            short.winner().plan,
            Plan::Flat(Algorithm::MeshOneShot),
            "{short}"
        );
    }
}

#[test]
fn levels_cost_what_each_level_costs() {
    let box_of = [0, 0, 0, 0, 1, 1, 1, 1];
    let fabric = boxes(
        &box_of,
        found(vec![levels(&box_of, 2, Algorithm::MeshOneShot)]),
    );
    let levels = &fabric.templates()[0];
    let bytes = 8_000_000;
    let cost = levels.predict(Op::AllReduce, bytes, 1, &fabric).unwrap();
    assert_eq!(cost.latency.0, 4_000_000, "two levels, up and down");
    // A quarter to each of the box, an eighth to the other box, and back.
    let within = 2 * (bytes / 4) * (1_000_000_000_000 / FAST);
    // All four of a box go by its card.
    let between = 2 * 4 * (bytes / 8) * (1_000_000_000_000 / SLOW);
    assert_eq!(cost.transfer.0, u128::from(within + between));
    // Three quarters are added up within the box, an eighth between the boxes.
    let sums = (bytes / 4 * 3 + bytes / 8) * 10 / 4;
    assert_eq!(cost.reduce.0, u128::from(sums));
}

#[test]
fn unequal_boxes_cost_what_the_smallest_one_does() {
    let box_of = [0, 0, 0, 1, 1];
    let fabric = boxes(&box_of, found(vec![levels(&box_of, 2, Algorithm::Ring)]));
    let cost = fabric.templates()[0].predict(Op::ReduceScatter, 6_000_000, 1, &fabric);
    // Halves in the box of two; thirds in that of three, which takes one round more. Thirds and halves
    // cut each other in four, of which a box has half when the boxes have shared them: the other half
    // of the message goes by its card.
    let cost = cost.unwrap();
    assert_eq!(cost.latency.0, 3_000_000);
    let within = 2 * 3_000_000 * (1_000_000_000_000 / FAST);
    let between = 3_000_000 * (1_000_000_000_000 / SLOW);
    let off = cost.transfer.0.abs_diff(u128::from(within + between));
    assert!(off <= 1, "{cost:?}");
}

/// One box of two ranks with cards of 3 and 1, and another.
#[test]
fn unequal_shares_cost_what_the_slowest_link_takes_for_its_own() {
    let box_of = [0, 0, 1, 1];
    let node = Node {
        cores: 0,
        exit: Rate::UNKNOWN,
    };
    let card = |rank: u32| [3 * SLOW, SLOW][rank as usize % 2];
    let with = |weights: &[u32], algorithm| {
        let low = Level {
            weights: weights.into(),
            ..Level::new(box_of, algorithm)
        };
        let top = Level::new([0, 0], algorithm);
        Template::Hierarchical(Arc::new(Hierarchical::new([low, top]).unwrap()))
    };
    for (by_core, ported) in [(false, false), (false, true), (true, false)] {
        let link = |from: u32, to: u32| Link {
            alpha_ps: 1_000_000,
            rate: Rate::bytes_per_second(match box_of[from as usize] == box_of[to as usize] {
                true => FAST,
                false => card(from).min(card(to)),
            }),
            message_ps: 0,
            by_core,
            port: (ported && box_of[from as usize] != box_of[to as usize]).then(|| Port {
                id: from,
                rate: Rate::bytes_per_second(card(from)),
            }),
        };
        for algorithm in [
            Algorithm::MeshOneShot,
            Algorithm::Ring,
            Algorithm::HalvingDoubling,
        ] {
            let templates = found(vec![
                with(&[], algorithm),
                with(&[3, 1, 3, 1], algorithm),
                with(&[1, 3, 1, 3], algorithm),
            ]);
            let fabric = Fabric::new(&box_of, &[node; 2], speeds(), link).unwrap();
            let fabric = fabric.with_templates(templates, &box_of, &[node; 2], speeds(), link);
            let fabric = fabric.unwrap();
            let time = |at: usize| {
                let cost = fabric.templates()[at].predict(Op::AllReduce, 8_000_000, 1, &fabric);
                cost.unwrap().transfer.0
            };
            let near = |a: u128, megabytes: u128, widest: u128| {
                // A rank's share of the message by the slowest card, and the wider one's in its box.
                let between = megabytes * 1_000_000_000_000 / u128::from(SLOW) * 1_000_000;
                let within = 2 * widest * 1_000_000_000_000 / u128::from(FAST) * 1_000_000;
                let b = between + within;
                assert!(
                    a.abs_diff(b) <= b / 1000,
                    "{algorithm} {by_core}: {a}, not {b}"
                );
            };
            near(time(0), 4, 4);
            near(time(1), 2, 6);
            near(time(2), 6, 6);
        }
    }
}

#[test]
fn interleaved_ranks_get_an_order_that_only_counts_where_it_matters() {
    let box_of = [0, 1, 0, 1, 0, 1, 0, 1];
    let order = Arc::new(Order::new([0, 2, 4, 6, 1, 3, 5, 7]).unwrap());
    let ordered = Algorithm::OVER_LINKS.map(|algorithm| Template::Ordered {
        algorithm,
        order: order.clone(),
    });
    let fabric = boxes(&box_of, found(ordered.to_vec()));
    let got = select(&request(Op::AllReduce, MIB), &fabric, &Overrides::NONE).unwrap();
    let labels: Vec<&str> = got.candidates.iter().map(|c| &*c.label).collect();
    assert!(labels.contains(&"ring:ordered"), "{labels:?}");
    assert!(!labels.contains(&"mesh_two_shot:ordered"), "{labels:?}");
    let time = |label: &str| {
        let found = got.candidates.iter().find(|c| c.label == label);
        found.unwrap().predicted()
    };
    assert!(time("ring:ordered") < time("ring"), "{got}");
    // Where ranks could read each other the others' plans know what memory costs, in whatever order.
    let slow = Rate::bytes_per_second(SLOW / 10);
    let reads = Reads {
        call_ps: 0,
        rate: slow,
        copied_from_memory: slow,
        alone: Uncached {
            held: 0,
            rate: slow,
        },
        of_own_core: slow,
        from_one: slow,
        from_memory: slow,
        added: slow,
        summed: slow,
        from_cache: slow,
    };
    let readable = fabric.clone().with_reads(Ok(reads));
    let times = |fabric: &Fabric| {
        let got = select(&request(Op::AllReduce, 64 * MIB), fabric, &Overrides::NONE).unwrap();
        ["ring", "ring:ordered"].map(|label| {
            let found = got.candidates.iter().find(|c| c.label == label);
            found.unwrap().predicted().0
        })
    };
    let ([flat, ordered], [before, before_ordered]) = (times(&readable), times(&fabric));
    assert!(flat > before);
    assert_eq!(flat - before, ordered - before_ordered);
    // By name the cheaper of the two.
    let rule = forced(Algorithm::Ring.into());
    let got = select(&request(Op::AllReduce, MIB), &fabric, &rule).unwrap();
    assert_eq!(got.winner().label, "ring:ordered");
}

#[test]
fn a_forced_template_that_is_not_there_says_why() {
    let missing = Templates {
        found: Vec::new(),
        missing: vec![(Family::Hierarchical, "its ranks are no islands".into())],
    };
    let fabric = boxes(&[0; 4], missing);
    let rule = forced(Family::Hierarchical);
    let error = select(&request(Op::AllReduce, MIB), &fabric, &rule).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("hierarchical is forced") && text.contains("no islands"),
        "{text}"
    );
}

#[test]
fn a_forced_template_that_lacks_the_operation_says_why() {
    let box_of = [0, 0, 1, 1];
    let fabric = boxes(&box_of, found(vec![levels(&box_of, 2, Algorithm::Ring)]));
    let rule = forced(Family::Hierarchical);
    let error = select(&request(Op::AllToAll, MIB), &fabric, &rule).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("doesn't have this operation"), "{text}");
}

#[test]
fn a_template_without_a_formula_is_missing() {
    let route = |path: [u32; 2]| Route {
        weight: 1,
        path: path.into(),
    };
    let routes = Routes::new(2, [route([0, 1]), route([1, 0])]).unwrap();
    let fabric = boxes(&[0; 2], found(vec![Template::Routes(Arc::new(routes))]));
    assert!(fabric.templates().is_empty());
    assert!(fabric.why_missing(Family::Routes).is_some());
}

/// Ranks of one box; those next to each other in a ring are joined by fast links, others by slow ones.
fn ring_of(ranks: u32, (by_core, ported): (bool, bool), templates: Templates) -> Fabric {
    let node = Node {
        cores: 0,
        exit: Rate::UNKNOWN,
    };
    let link = |from: u32, to: u32| Link {
        alpha_ps: 1_000_000,
        rate: Rate::bytes_per_second(match from.abs_diff(to) {
            1 => FAST,
            by if by == ranks - 1 => FAST,
            _ => SLOW,
        }),
        message_ps: 0,
        by_core,
        port: ported.then(|| Port {
            id: from,
            rate: Rate::bytes_per_second(FAST),
        }),
    };
    let nodes = vec![0; ranks as usize];
    let fabric = Fabric::new(&nodes, &[node], speeds(), link).unwrap();
    let with = fabric.with_templates(templates, &nodes, &[node], speeds(), link);
    with.unwrap()
}

fn rings(orders: &[&[u32]]) -> Template {
    let ring = |order: &&[u32]| Ring::new(order.to_vec(), 1).unwrap();
    let rings: Vec<Ring> = orders.iter().map(ring).collect();
    Template::Rings(Arc::new(Rings::new(rings).unwrap()))
}

#[test]
fn one_ring_costs_what_the_flat_one_does_and_two_half_of_its_bytes() {
    let (one, both) = (
        rings(&[&[0, 1, 2, 3, 4]]),
        rings(&[&[0, 1, 2, 3, 4], &[4, 3, 2, 1, 0]]),
    );
    let bytes = 5 * MIB;
    for (by_core, ported) in [(false, false), (true, false), (false, true)] {
        let fabric = ring_of(5, (by_core, ported), found(vec![one.clone(), both.clone()]));
        for op in [Op::AllGather, Op::ReduceScatter] {
            let flat = predict(Algorithm::Ring, op, false, bytes, 1, &fabric).unwrap();
            let predicted = |at: usize| fabric.templates()[at].predict(op, bytes, 1, &fabric);
            let (one, both) = (predicted(0).unwrap(), predicted(1).unwrap());
            let near = |a: u128, b: u128| assert!(a.abs_diff(b) <= b / 1000, "{op}: {a}, not {b}");
            assert_eq!(one.latency, flat.latency);
            near(one.transfer.0, flat.transfer.0);
            // Where cores move the bytes, they send on one ring after the other; links that share a
            // port are no faster together.
            let part = if by_core || ported { 1 } else { 2 };
            near(both.transfer.0, flat.transfer.0 / part);
        }
    }
}

#[test]
fn trees_take_what_their_fullest_hop_takes() {
    // From each rank a chain around the ring, and the same back.
    let chain = |root: u32, weight| {
        let parents: Vec<u32> = (0..4)
            .map(|rank| if rank == root { rank } else { (rank + 3) % 4 })
            .collect();
        Tree::new(root, weight, parents)
    };
    let back = |root: u32| {
        let parents: Vec<u32> = (0..4)
            .map(|rank| if rank == root { rank } else { (rank + 1) % 4 })
            .collect();
        Tree::new(root, 1, parents)
    };
    let outs: Vec<Tree> = (0..4).map(|root| chain(root, 1)).collect();
    let ins: Vec<Tree> = (0..4).map(back).collect();
    let trees = Trees::new(4, outs, ins).unwrap();
    let fabric = ring_of(
        4,
        (false, false),
        found(vec![Template::Trees(Arc::new(trees))]),
    );
    let bytes = 4_000_000u64;
    let ps = |bytes: u64| u128::from(bytes) * 1_000_000_000_000 / u128::from(FAST);
    let near = |a: u128, b: u128| assert!(a.abs_diff(b) <= b / 1000, "{a}, not {b}");
    let cost = |op, pieces| {
        fabric.templates()[0]
            .predict(op, bytes, pieces, &fabric)
            .unwrap()
    };
    // Three of four blocks pass each hop; three stages one after the other where nothing is cut.
    near(cost(Op::AllGather, 1).transfer.0, 3 * ps(3_000_000));
    near(cost(Op::AllGather, 10).transfer.0, 12 * ps(300_000));
    near(cost(Op::ReduceScatter, 1).transfer.0, 3 * ps(3_000_000));
    // Up and down are one after the other, and use the same hops.
    near(cost(Op::AllReduce, 1).transfer.0, 6 * ps(6_000_000));
    near(
        cost(Op::Broadcast { root: 1 }, 1).transfer.0,
        3 * ps(4_000_000),
    );
    assert_eq!(cost(Op::AllGather, 1).latency.0, 3_000_000);
}

#[test]
fn where_neighbours_are_fast_and_the_rest_is_slow_rings_carry_long_messages() {
    // The flat ring's last step is slow: no order of the flat algorithms has fast steps alone.
    let order = [0, 2, 4, 6, 1, 3, 5, 7];
    let fast = |from: u32, to: u32| {
        let at = |rank: u32| order.iter().position(|one| *one == rank).unwrap() as u32;
        matches!((at(from) + 8 - at(to)) % 8, 1 | 7)
    };
    let node = Node {
        cores: 0,
        exit: Rate::UNKNOWN,
    };
    let link = |from: u32, to: u32| Link {
        alpha_ps: 1_000_000,
        rate: Rate::bytes_per_second(if fast(from, to) { FAST } else { SLOW }),
        by_core: false,
        message_ps: 0,
        port: None,
    };
    let back: Vec<u32> = order.iter().rev().copied().collect();
    let templates = found(vec![rings(&[&order, &back])]);
    let fabric = Fabric::new(&[0; 8], &[node], speeds(), link).unwrap();
    let fabric = (fabric.with_templates(templates, &[0; 8], &[node], speeds(), link)).unwrap();
    for op in [Op::AllReduce, Op::AllGather, Op::ReduceScatter] {
        let long = select(&request(op, 64 * MIB), &fabric, &Overrides::NONE).unwrap();
        assert_eq!(long.winner().label, "rings", "{long}");
    }
}

#[test]
fn the_front_over_size_is_what_is_chosen_at_each_size() {
    let box_of = [0, 0, 0, 0, 1, 1, 1, 1];
    let templates = [Algorithm::MeshOneShot, Algorithm::Ring].map(|a| levels(&box_of, 2, a));
    let fabric = boxes(&box_of, found(templates.to_vec()));
    for op in [Op::AllReduce, Op::AllGather] {
        let largest = 1 << 30;
        let front = Front::new(&request(op, 0), &fabric, &Overrides::NONE, largest);
        let unit = if op == Op::AllGather { 32 } else { 4 };
        assert_eq!(*front.segments[0].bytes.start(), unit);
        assert_eq!(*front.segments.last().unwrap().bytes.end(), largest);
        assert!(front.segments.len() > 1, "{front}");
        for two in front.segments.windows(2) {
            assert_eq!(two[0].bytes.end() + unit, *two[1].bytes.start(), "{front}");
            let last = select(&request(op, *two[0].bytes.end()), &fabric, &Overrides::NONE);
            assert_eq!(Some(last.unwrap().winner().plan), two[0].plan, "{front}");
            let next = select(
                &request(op, *two[1].bytes.start()),
                &fabric,
                &Overrides::NONE,
            );
            assert_eq!(Some(next.unwrap().winner().plan), two[1].plan, "{front}");
        }
        for bytes in (5..30).map(|power| 3u64 << power).filter(|b| *b < largest) {
            let chosen = select(&request(op, bytes), &fabric, &Overrides::NONE).unwrap();
            let segment = front.at(bytes).unwrap();
            assert_eq!(Some(chosen.winner().plan), segment.plan, "{bytes}: {front}");
        }
        assert!(front.to_string().contains("hierarchical:"), "{front}");
        let end = &front.segments.last().unwrap().pieces;
        assert!(end.1 > end.0, "long messages are cut finer: {front}");
    }
}

#[test]
fn what_cannot_run_has_a_segment_that_says_why() {
    let box_of = [0, 0, 1, 1];
    let fabric = boxes(&box_of, found(Vec::new()));
    let mut rules = forced(Family::Hierarchical);
    rules.rules[0].bytes = 0..=1000;
    let front = Front::new(&request(Op::AllReduce, 0), &fabric, &rules, 1 << 20);
    assert!(front.segments[0].plan.is_none());
    assert_eq!(front.segments[0].bytes, 4..=1000);
    assert!(front.segments[0].label.contains("is forced"), "{front}");
    assert!(front.segments[1].plan.is_some());
}

#[test]
fn what_was_measured_just_now_is_shown_and_changes_nothing() {
    let fabric = boxes(&[0; 4], found(Vec::new()));
    let mut got = select(&request(Op::AllReduce, MIB), &fabric, &Overrides::NONE).unwrap();
    assert!(!got.to_string().contains(" now"), "{got}");
    let winner = got.winner;
    let other =
        (0..got.candidates.len()).find(|at| *at != winner && got.candidates[*at].why_not.is_none());
    got.candidates[winner].now = Some(unisono_plan::cost::Picoseconds(3_000_000));
    assert!(got.to_string().contains("and the fastest now"), "{got}");
    got.candidates[other.unwrap()].now = Some(unisono_plan::cost::Picoseconds(2_000_000));
    let text = got.to_string();
    assert!(text.contains("this takes 1.50 times as long"), "{text}");
    assert!(text.contains("the lowest predicted time"), "{text}");
}
