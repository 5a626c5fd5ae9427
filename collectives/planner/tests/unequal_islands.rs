//! Islands whose ranks have unequal cards: shares by what each carries against equal ones.

use std::sync::Arc;

use unisono_network::{Builder, Network};
use unisono_plan::template::Hierarchical;
use unisono_plan::verify::{Settings, check};
use unisono_plan::{Op, Template};
use unisono_planner::candidate::{Knob, Source};
use unisono_planner::plan::sources;
use unisono_planner::timing::{Speeds, simulate_schedule};
use unisono_planner::trees::Lanes;
use unisono_planner::{PlanError, Request, plan};

const GB: u64 = 1_000_000_000;
const MIB: u64 = 1 << 20;

/// Islands of ranks behind a switch of `wide` GB/s each, all with a card of their own, in GB/s.
fn islands(wide: u64, cards: &[&[u64]]) -> Network {
    let ranks = cards.iter().map(|cards| cards.len() as u32).sum();
    let mut builder = Builder::new(ranks);
    let between = builder.switch(false);
    let mut rank = 0;
    for cards in cards {
        let inside = builder.switch(false);
        for card in *cards {
            builder.duplex(rank, inside, wide * GB, 500);
            builder.duplex(rank, between, card * GB, 2000);
            rank += 1;
        }
    }
    builder.build().unwrap()
}

/// The hierarchical plans of a network: those with equal shares, and those with shares by rate.
fn plans(network: &Network, op: Op) -> [Vec<Template>; 2] {
    let (sources, _) = sources(network, op, None);
    let levels = sources.into_iter().filter_map(|source| match source {
        Source::Programs(template @ Template::Hierarchical(_)) => Some(template),
        _ => None,
    });
    let (by_rate, equal) = levels.partition(|template| template.label().ends_with(":by_rate"));
    [equal, by_rate]
}

/// The least simulated time, in microseconds, over plans and ways to cut.
fn least(network: &Network, op: Op, bytes: u64, templates: &[Template]) -> f64 {
    let times = templates.iter().flat_map(|template| {
        let source = Source::Programs(template.clone());
        [1, 4, 16, 64].map(|chunks| {
            let lanes = Lanes::Path;
            let schedule = source.schedule(network, op, bytes, Knob { chunks, lanes });
            let schedule = match schedule {
                Err(PlanError::TooFine { .. }) => return f64::INFINITY,
                schedule => schedule.unwrap(),
            };
            let timeline = simulate_schedule(&schedule, network, Speeds::default()).unwrap();
            timeline.end_ps / 1e6
        })
    });
    times.fold(f64::INFINITY, f64::min)
}

fn verify(network: &Network, op: Op, templates: &[Template]) {
    for template in templates {
        let report = check(template.clone(), op, network.ranks(), false, Settings::all);
        report.unwrap_or_else(|error| panic!("{error}\n{template:?}"));
    }
}

fn weights(template: &Template) -> Vec<Vec<u32>> {
    let Template::Hierarchical(levels) = template else {
        panic!("{template:?}")
    };
    let levels: &Arc<Hierarchical> = levels;
    levels
        .levels()
        .iter()
        .map(|level| level.weights.to_vec())
        .collect()
}

/// Four slow devices beside two fast ones, each with a card of another speed than its neighbour's.
#[test]
fn two_unequal_islands_take_less_than_half_as_long() {
    let network = islands(300, &[&[48, 48, 12, 12], &[100, 25]]);
    for op in [
        Op::AllReduce,
        Op::Broadcast { root: 5 },
        Op::Reduce { root: 2 },
    ] {
        let [equal, by_rate] = plans(&network, op);
        assert_eq!(weights(&by_rate[0])[0], [4, 4, 1, 1, 4, 1]);
        verify(&network, op, &by_rate);
        let before = least(&network, op, 256 * MIB, &equal);
        let after = least(&network, op, 256 * MIB, &by_rate);
        println!("{op}: {before:.0} us with equal shares, {after:.0} us by rate");
        assert!(
            after * 2.0 < before,
            "{op}: {after} us, not less than half of {before} us"
        );
    }
    let planned = plan(
        &network,
        &Request {
            algorithm: Some("hierarchical".into()),
            ..Request::new(Op::AllReduce, 256 * MIB)
        },
    );
    let best = planned.unwrap().candidates[0].source.label().into_owned();
    assert!(best.ends_with(":by_rate"), "{best}");
}

/// Of three islands one has half as many ranks, and so half as many cards: it adds up less.
#[test]
fn a_small_island_adds_up_less() {
    let network = islands(400, &[&[40, 40, 40, 40], &[40, 40], &[40, 40, 40, 40]]);
    let [equal, by_rate] = plans(&network, Op::AllReduce);
    // Only where islands exchange directly does it matter who adds up what.
    assert_eq!(by_rate.len(), 1, "{by_rate:?}");
    verify(&network, Op::AllReduce, &by_rate);
    let before = least(&network, Op::AllReduce, 256 * MIB, &equal[..1]);
    let after = least(&network, Op::AllReduce, 256 * MIB, &by_rate);
    println!("all_reduce: {before:.0} us with equal shares, {after:.0} us by rate");
    assert!(
        after * 1.15 < before,
        "{after} us, not much less than {before} us"
    );
}

#[test]
fn equal_islands_have_no_others() {
    let network = islands(300, &[&[50, 48], &[50, 50, 50]]);
    assert!(plans(&network, Op::AllReduce)[1].is_empty());
}

/// What a generator of numbers gives for the seed, below `bound`.
fn below(seed: &mut u64, bound: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    (*seed >> 33) % bound
}

#[test]
fn random_islands_are_proved_and_mostly_faster() {
    let mut seed = 7;
    let (mut cases, mut faster, mut sum) = (0, 0, 0.0);
    for _ in 0..24 {
        let islands_here = 2 + below(&mut seed, 2);
        let cards: Vec<Vec<u64>> = (0..islands_here)
            .map(|_| {
                (0..1 + below(&mut seed, 4))
                    .map(|_| 5 + below(&mut seed, 60))
                    .collect()
            })
            .collect();
        let cards: Vec<&[u64]> = cards.iter().map(Vec::as_slice).collect();
        let network = islands(400, &cards);
        let [equal, by_rate] = plans(&network, Op::AllReduce);
        if equal.is_empty() || by_rate.is_empty() {
            continue;
        }
        for op in [Op::AllReduce, Op::AllGather, Op::ReduceScatter] {
            verify(&network, op, &by_rate);
        }
        let before = least(&network, Op::AllReduce, 64 * MIB, &equal);
        let after = least(&network, Op::AllReduce, 64 * MIB, &by_rate);
        println!("{:.2} {cards:?} {:?}", before / after, weights(&by_rate[0]));
        cases += 1;
        faster += u32::from(after < before);
        sum += before / after;
    }
    println!(
        "{faster} of {cases} faster, {:.2} times on average",
        sum / f64::from(cases)
    );
    assert!(
        cases >= 10 && faster * 3 >= cases * 2,
        "{faster} of {cases}"
    );
}
