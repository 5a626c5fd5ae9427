//! Counting against simulating, where both can be done.

use unisono_network::{Builder, Network};
use unisono_plan::{Algorithm, Op, Template};

use super::{pairs, routes, templates, trees};
use crate::candidate::{Knob, Source};
use crate::timing::{Speeds, simulate_schedule};
use crate::trees::Lanes;

const GB: u64 = 1_000_000_000;

fn ring(ranks: u32, latency_ns: u64) -> Network {
    let mut builder = Builder::new(ranks);
    for rank in 0..ranks {
        builder.duplex(rank, (rank + 1) % ranks, 50 * GB, latency_ns);
    }
    builder.build().unwrap()
}

fn torus(a: u32, b: u32, latency_ns: u64) -> Network {
    let mut builder = Builder::new(a * b);
    for x in 0..a {
        for y in 0..b {
            let at = |x: u32, y: u32| (x % a) * b + y % b;
            builder.duplex(at(x, y), at(x + 1, y), 50 * GB, latency_ns);
            builder.duplex(at(x, y), at(x, y + 1), 50 * GB, latency_ns);
        }
    }
    builder.build().unwrap()
}

fn star(ranks: u32, latency_ns: u64) -> Network {
    let mut builder = Builder::new(ranks);
    let switch = builder.switch(false);
    for rank in 0..ranks {
        builder.duplex(rank, switch, 100 * GB, latency_ns);
    }
    builder.build().unwrap()
}

fn boxes(boxes: u32, each: u32, latency_ns: u64) -> Network {
    let mut builder = Builder::new(boxes * each);
    let rails: Vec<u32> = (0..each).map(|_| builder.switch(false)).collect();
    for number in 0..boxes {
        let switch = builder.switch(false);
        for (place, &rail) in (0..each).zip(&rails) {
            let rank = number * each + place;
            builder.duplex(rank, switch, 450 * GB, latency_ns);
            builder.duplex(rank, rail, 50 * GB, 5 * latency_ns);
        }
    }
    builder.build().unwrap()
}

/// Everything that is compared.
fn all(network: &Network, mut compare: impl FnMut(Op, u64, &[(f64, f64)])) {
    for op in [
        Op::AllReduce,
        Op::AllGather,
        Op::ReduceScatter,
        Op::Broadcast { root: 1 },
        Op::Reduce { root: 0 },
        Op::Gather { root: 0 },
        Op::Scatter { root: 2 },
        Op::AllToAll,
    ] {
        for bytes in [1 << 14, 1 << 26] {
            let mut times = Vec::new();
            let flat = Algorithm::OVER_LINKS.into_iter().map(Template::from);
            let flat: Vec<Template> = flat
                .filter(|template| template.supports(op, network.ranks(), false).is_ok())
                .collect();
            let speeds = Speeds::default();
            let counted = templates(network, op, bytes, speeds, &flat);
            for (template, counted) in flat.into_iter().zip(counted) {
                let counted = counted.unwrap().expect("short programs");
                let source = Source::Programs(template);
                for chunks in [1, 4] {
                    if source.most_chunks(op, network.ranks(), bytes) < chunks {
                        continue;
                    }
                    let lanes = Lanes::Path;
                    let knob = Knob { chunks, lanes };
                    let schedule = source.schedule(network, op, bytes, knob).unwrap();
                    let simulated = simulate_schedule(&schedule, network, speeds).unwrap();
                    times.push((counted.ps(chunks), simulated.end_ps));
                }
            }
            compare(op, bytes, &times);
        }
    }
}

#[test]
fn counted_times_are_near_the_simulated_ones_and_choose_well() {
    let (mut near, mut count) = (0, 0);
    let (mut regret, mut worst, mut choices) = (0.0, 0.0f64, 0.0);
    for latency in [0, 1000] {
        for (name, network) in [
            ("ring of 12", ring(12, latency)),
            ("star of 24", star(24, latency)),
            ("torus 4 x 6", torus(4, 6, latency)),
            ("boxes 4 x 4", boxes(4, 4, latency)),
        ] {
            all(&network, |op, bytes, times| {
                for (counted, simulated) in times {
                    let ratio = counted / simulated;
                    near += u32::from((0.8..1.25).contains(&ratio));
                    count += 1;
                    let what = format!("{name}, {latency} ns: {op} of {bytes}");
                    assert!((0.6..4.0).contains(&ratio), "{what}: {ratio}");
                }
                let least = |of: fn(&(f64, f64)) -> f64| {
                    let by = |a: &&(f64, f64), b: &&(f64, f64)| of(a).total_cmp(&of(b));
                    times.iter().min_by(by).unwrap().1
                };
                let much = least(|time| time.0) / least(|time| time.1) - 1.0;
                println!("{much:.3} {name}, {latency} ns: {op} of {bytes}");
                regret += much;
                worst = worst.max(much);
                choices += 1.0;
            });
        }
    }
    println!(
        "{near} of {count}; regret {} worst {worst}",
        regret / choices
    );
    assert!(near * 100 >= count * 85, "{near} of {count}");
    assert!(
        regret / choices < 0.05 && worst < 0.5,
        "{} {worst}",
        regret / choices
    );
}

/// Trees and routes are cut about as well as by simulating each cut.
#[test]
fn packings_are_cut_well() {
    let (mut sum, mut worst, mut count) = (0.0, 0.0f64, 0.0);
    for (name, network) in [
        ("ring of 24", ring(24, 1000)),
        ("torus 6 x 8", torus(6, 8, 1000)),
        ("boxes 4 x 4", boxes(4, 4, 1000)),
    ] {
        for op in [
            Op::AllReduce,
            Op::AllGather,
            Op::Broadcast { root: 1 },
            Op::Reduce { root: 0 },
            Op::Gather { root: 0 },
            Op::Scatter { root: 2 },
        ] {
            for bytes in [1 << 18, 1 << 20, 1 << 22] {
                let (sources, _) = crate::plan::sources(&network, op, None);
                let packed = sources
                    .into_iter()
                    .filter(|source| !matches!(source, Source::Programs(_)));
                for source in packed {
                    let lanes = source.lanes()[1];
                    let counted = match &source {
                        Source::Trees(packing) => trees(&network, op, packing, bytes, lanes),
                        Source::Pairs(packing) => pairs(&network, packing, bytes, lanes),
                        Source::Routes(found) => routes(&network, op, found, bytes, lanes),
                        Source::Programs(_) => continue,
                    };
                    let most = source.most_chunks(op, network.ranks(), bytes).min(512);
                    let chosen = counted.best_chunks(most);
                    let simulated = |chunks| {
                        let knob = Knob { chunks, lanes };
                        let schedule = source.schedule(&network, op, bytes, knob).unwrap();
                        let timeline = simulate_schedule(&schedule, &network, Speeds::default());
                        timeline.unwrap().end_ps
                    };
                    let powers = (0..).map(|power| 1u64 << power);
                    let all = powers.take_while(|chunks| *chunks <= most).map(simulated);
                    let much = simulated(chosen) / all.fold(f64::INFINITY, f64::min) - 1.0;
                    println!("{much:.3} {name}: {op} of {bytes} in {chosen} of {most}");
                    sum += much;
                    worst = worst.max(much);
                    count += 1.0;
                }
            }
        }
    }
    println!("regret {} worst {worst} of {count}", sum / count);
    assert!(
        sum / count < 0.05 && worst < 0.25,
        "{} {worst}",
        sum / count
    );
}

/// Of many ranks what is far behind is left early; what is left could not have won.
#[test]
fn what_is_left_early_could_not_have_won() {
    let network = ring(2304, 1000);
    let all = Algorithm::OVER_LINKS.map(Template::from);
    let supports = |template: &Template| template.supports(Op::AllReduce, 2304, false).is_ok();
    let all: Vec<Template> = all.into_iter().filter(supports).collect();
    let counted = templates(&network, Op::AllReduce, 1 << 30, Default::default(), &all);
    let counted: Vec<_> = (all.iter().zip(counted))
        .filter_map(|(template, counted)| Some((template.name(), counted.unwrap()?)))
        .collect();
    let (left, finished): (Vec<_>, Vec<_>) = counted.iter().partition(|(_, one)| one.at_least);
    let least = |of: &[&(&str, super::Counted)]| {
        let times = of.iter().map(|(_, one)| one.ps(1 << 20).min(one.ps(1)));
        times.fold(f64::INFINITY, f64::min)
    };
    assert!(
        finished
            .iter()
            .any(|(name, _)| *name == "bidirectional_ring")
    );
    assert!(left.iter().any(|(name, _)| *name == "recursive_doubling"));
    assert!(
        left.iter()
            .all(|(_, one)| one.fullest_ps > least(&finished))
    );
}
