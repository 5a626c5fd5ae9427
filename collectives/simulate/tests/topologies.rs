//! Steps of all_gather algorithms on topologies: the time of each is that of its fullest link.

mod fabric;

use fabric::Fabric;
use unisono_simulate::{Model, ResourceId, Task, simulate};

/// Every rank sends so many blocks to another.
type Step = Vec<(usize, usize, u64)>;

/// The time of a step in milliseconds.
fn step_ms(fabric: &Fabric, step: &Step, block: u64) -> f64 {
    let mut model = Model::new();
    for &capacity in &fabric.capacities {
        model.resource(capacity);
    }
    for &(from, to, blocks) in step {
        let route: Vec<_> = fabric.route(from, to).into_iter().map(ResourceId).collect();
        let route = model.route(&route, None);
        model.task(Task {
            after: &[],
            lane: None,
            priority: 0,
            delay_ps: 0,
            bytes: blocks * block,
            route,
        });
    }
    simulate(&model).unwrap().makespan_ps / 1e9
}

fn shifts(p: usize, distances: &[(usize, u64)]) -> Vec<Step> {
    let step = |&(by, blocks): &(usize, u64)| (0..p).map(|r| (r, (r + by) % p, blocks)).collect();
    distances.iter().map(step).collect()
}

fn exchanges(p: usize, far_first: bool) -> Vec<Step> {
    let rounds = p.ilog2();
    let bit = |k: u32| if far_first { rounds - 1 - k } else { k };
    let step = |k: u32| (0..p).map(|r| (r, r ^ (1 << bit(k)), 1 << k)).collect();
    (0..rounds).map(step).collect()
}

/// Swing: distances 1, -1, 3, -5, 11, ...; even ranks go one way, odd ranks the other.
fn swing(p: usize, far_first: bool) -> Vec<Step> {
    let rounds = p.ilog2();
    let distance = |k: u32| (1 - (-2i64).pow(k + 1)) / 3;
    let step = |k: u32| {
        let d = distance(if far_first { rounds - 1 - k } else { k });
        let to =
            |r: usize| (r as i64 + if r.is_multiple_of(2) { d } else { -d }).rem_euclid(p as i64);
        (0..p).map(|r| (r, to(r) as usize, 1 << k)).collect()
    };
    (0..rounds).map(step).collect()
}

fn direct(p: usize) -> Vec<Step> {
    let pairs = (0..p).flat_map(|a| (0..p).map(move |b| (a, b, 1)));
    vec![pairs.filter(|(a, b, _)| a != b).collect()]
}

fn check(fabric: &Fabric, name: &str, steps: &[Step], expected: &[f64]) {
    let p = fabric.ranks as u64;
    // Whole bytes; the figures are for 1 GB.
    let block = 1_000_000_000 / p;
    assert_eq!(steps.len(), expected.len(), "{name}");
    for (index, (step, expected)) in steps.iter().zip(expected).enumerate() {
        let got = step_ms(fabric, step, block);
        let near = (got - expected).abs() <= 1e-4 * expected;
        assert!(
            near,
            "{} {name} step {index}: {got} ms, not {expected}",
            fabric.name
        );
    }
}

fn ones(p: usize) -> Vec<(usize, u64)> {
    vec![(1, 1); p - 1]
}

fn bruck(p: usize) -> Vec<(usize, u64)> {
    (0..p.ilog2()).map(|k| (1 << k, 1 << k)).collect()
}

fn in_turns(p: usize) -> Vec<(usize, u64)> {
    (1..p).map(|by| (by, 1)).collect()
}

#[test]
fn on_a_ring_far_partners_share_the_links_between() {
    let ring = Fabric::torus(&[8], 50);
    check(&ring, "ring", &shifts(8, &ones(8)), &[2.5; 7]);
    check(&ring, "doubling", &exchanges(8, false), &[2.5, 10.0, 40.0]);
    check(&ring, "bruck", &shifts(8, &bruck(8)), &[2.5, 10.0, 40.0]);
    check(&ring, "swing", &swing(8, true), &[5.0, 5.0, 10.0]);
    let steps = [2.5, 5.0, 7.5, 10.0, 7.5, 5.0, 2.5];
    check(&ring, "in turns", &shifts(8, &in_turns(8)), &steps);
    let ring = Fabric::torus(&[16], 50);
    check(&ring, "doubling", &exchanges(16, true), &[10.0; 4]);
    check(&ring, "swing", &swing(16, false), &[1.25, 2.5, 10.0, 30.0]);
    check(&ring, "direct", &direct(16), &[45.0]);
}

#[test]
fn on_a_torus_in_rank_order_rows_wrap() {
    let torus = Fabric::torus(&[4, 4], 50);
    check(&torus, "ring", &shifts(16, &ones(16)), &[1.25; 15]);
    check(
        &torus,
        "doubling",
        &exchanges(16, false),
        &[1.25, 5.0, 5.0, 20.0],
    );
    check(
        &torus,
        "bruck",
        &shifts(16, &bruck(16)),
        &[1.25, 5.0, 5.0, 20.0],
    );
    check(&torus, "swing", &swing(16, true), &[2.5, 2.5, 5.0, 10.0]);
}

#[test]
fn a_star_and_a_mesh_are_the_same_to_every_partner() {
    let star = Fabric::fat_tree(1, 8, 50, 1);
    check(&star, "doubling", &exchanges(8, true), &[2.5, 5.0, 10.0]);
    check(&star, "swing", &swing(8, false), &[2.5, 5.0, 10.0]);
    check(&star, "direct", &direct(8), &[17.5]);
    let mesh = Fabric::mesh(8, 28);
    let block = 125.0 / 28.0;
    check(&mesh, "ring", &shifts(8, &ones(8)), &[block; 7]);
    check(
        &mesh,
        "bruck",
        &shifts(8, &bruck(8)),
        &[block, 2.0 * block, 4.0 * block],
    );
    check(&mesh, "in turns", &shifts(8, &in_turns(8)), &[block; 7]);
}

#[test]
fn a_tapered_fat_tree_is_as_wide_as_its_uplinks() {
    let tree = |taper| Fabric::fat_tree(4, 4, 25, taper);
    check(
        &tree(1),
        "doubling",
        &exchanges(16, true),
        &[2.5, 5.0, 10.0, 20.0],
    );
    check(&tree(1), "direct", &direct(16), &[37.5]);
    check(&tree(2), "ring", &shifts(16, &ones(16)), &[2.5; 15]);
    check(
        &tree(2),
        "bruck",
        &shifts(16, &bruck(16)),
        &[2.5, 5.0, 20.0, 40.0],
    );
    check(&tree(2), "swing", &swing(16, true), &[5.0, 5.0, 10.0, 20.0]);
    let first = [2.5, 2.5, 3.75, 5.0, 5.0, 5.0, 5.0, 5.0];
    check(
        &tree(2),
        "in turns",
        &shifts(16, &in_turns(16))[..8],
        &first,
    );
    check(
        &tree(4),
        "doubling",
        &exchanges(16, true),
        &[10.0, 20.0, 10.0, 20.0],
    );
    check(
        &tree(4),
        "swing",
        &swing(16, false),
        &[2.5, 10.0, 20.0, 80.0],
    );
    check(&tree(4), "direct", &direct(16), &[120.0]);
}
