//! Inside a box every link carries what the plan says, to the byte, and no byte passes the host's memory.

use std::collections::BTreeMap;

use unisono::plan::traffic::{Traffic as Planned, add_traffic};
use unisono::plan::{Geometry, Op, Shape};
use unisono::{Communicator, DataType, ReduceOp, Sizes};
use unisono_emulated_tests::{Emulated, own_device};
use unisono_emulator::Place;
use unisono_tests::threads;

const RANKS: u32 = 8;
/// Elements of the larger buffer: short and long messages, which go by other plans.
const COUNTS: [usize; 3] = [8 * 32, 8 * 5000, 8 * 100_000];

/// What a call's plan moves from rank to rank, in elements.
fn add_planned(world: &Communicator, op: Op, count: usize, sum: &mut Planned) {
    let bytes = (count * size_of::<f32>()) as u64;
    let explained = world.explain(op, bytes, DataType::F32).expect("a plan");
    let winner = explained.selection().winner();
    for rank in 0..RANKS {
        let shape = Shape {
            op,
            ranks: RANKS,
            rank,
            windowed: winner.windowed,
        };
        let program = winner.template.generate(&shape).expect("a program");
        let geometry = Geometry::of(&program, Sizes::Equal(count as u64)).expect("a geometry");
        add_traffic(sum, &program, &geometry);
    }
}

/// One of each collective, and what they should have moved.
fn calls(world: &Communicator, count: usize, planned: &mut Planned) {
    let block = count / RANKS as usize;
    let (mut whole, mut part) = (vec![1_f32; count], vec![1_f32; block]);
    let mut add = |op| add_planned(world, op, count, planned);
    world
        .all_reduce_in_place(&mut whole, ReduceOp::Sum)
        .expect("all_reduce");
    add(Op::AllReduce);
    world
        .reduce_scatter(&whole, &mut part, ReduceOp::Max)
        .expect("reduce_scatter");
    add(Op::ReduceScatter);
    world.all_gather(&part, &mut whole).expect("all_gather");
    add(Op::AllGather);
    world.all_to_all_in_place(&mut whole).expect("all_to_all");
    add(Op::AllToAll);
    for root in [0, 5] {
        world.broadcast(&mut whole, root).expect("broadcast");
        add(Op::Broadcast { root });
        world
            .reduce_in_place(&mut whole, ReduceOp::Sum, root)
            .expect("reduce");
        add(Op::Reduce { root });
        world.gather(&part, &mut whole, root).expect("gather");
        add(Op::Gather { root });
        world.scatter(&whole, &mut part, root).expect("scatter");
        add(Op::Scatter { root });
    }
}

#[test]
fn every_link_carries_what_the_plan_says() {
    carries_what_the_plan_says("every_link_carries_what_the_plan_says", "h100x8", "cuda");
}

#[test]
fn every_link_of_a_mesh_carries_what_the_plan_says() {
    let test = "every_link_of_a_mesh_carries_what_the_plan_says";
    carries_what_the_plan_says(test, "ascend910bx8", "ascend");
}

#[test]
fn every_link_of_another_mesh_carries_what_the_plan_says() {
    let test = "every_link_of_another_mesh_carries_what_the_plan_says";
    carries_what_the_plan_says(test, "mi300x8", "rocm");
}

fn carries_what_the_plan_says(test: &str, name: &str, plugin: &'static str) {
    let Some(machine) = Emulated::new(test, name, |text| text) else {
        return;
    };
    let ranks = machine.job(test, 1).start(|rank| {
        let planned = threads(RANKS, own_device(plugin), |world| {
            let mut planned = Planned::new();
            COUNTS
                .iter()
                .for_each(|count| calls(&world, *count, &mut planned));
            planned
        });
        for ((from, to), elements) in &planned[0] {
            rank.say(&format!(
                "{from} {to} {}",
                elements * size_of::<f32>() as u64
            ));
        }
    });
    let exits = ranks.finish();
    let parse = |line: &String| {
        let numbers: Vec<u64> = line.split(' ').filter_map(|n| n.parse().ok()).collect();
        ((numbers[0] as u32, numbers[1] as u32), numbers[2])
    };
    let planned: BTreeMap<(u32, u32), u64> = exits[0].lines.iter().map(parse).collect();
    assert!(planned.values().sum::<u64>() > 1 << 20, "{exits:?}");
    let traffic = machine.traffic();
    for from in 0..RANKS {
        for to in (0..RANKS).filter(|to| *to != from) {
            let moved = traffic.data(Place::Device(from), Place::Device(to));
            let expected = planned.get(&(from, to)).copied().unwrap_or(0);
            assert_eq!(moved, expected, "from device {from} to device {to}");
        }
        // What the host's memory sees are the slices, in and out.
        let most: u64 = COUNTS.iter().map(|count| (count * 4 * 16) as u64).sum();
        let up = traffic.data(Place::Device(from), Place::Host);
        assert!(up < most, "{up} bytes from device {from}");
    }
}
