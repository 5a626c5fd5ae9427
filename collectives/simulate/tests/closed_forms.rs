//! Algorithms on a full mesh of equal links, fed as tasks: their times are the textbook's formulas.

use unisono_simulate::{Model, ResourceId, RouteId, Task, TaskId, Turns, simulate};

const ALPHA_PS: u64 = 5_000_000;
/// 50 GB/s, which is 20 ps a byte.
const LINK: u64 = 50_000_000_000;
const BETA_PS: f64 = 20.0;
/// 400 GB/s, which is 2.5 ps a byte.
const REDUCE: u64 = 400_000_000_000;
const GAMMA_PS: f64 = 2.5;

/// Ranks that are all joined by links, each with one core that reduces.
struct Mesh {
    ranks: usize,
    model: Model,
    /// What each rank's next round waits for.
    last: Vec<Vec<TaskId>>,
}

impl Mesh {
    fn new(ranks: usize) -> Self {
        let mut model = Model::new();
        for _ in 0..ranks * ranks {
            model.resource(LINK);
        }
        Self {
            ranks,
            model,
            last: vec![Vec::new(); ranks],
        }
    }

    /// A round: messages that start when their ranks' last rounds have ended, and reductions of
    /// what arrived, one after the other on each rank.
    fn round(&mut self, messages: &[(usize, usize, u64)], reduce: bool) {
        let before = self.last.clone();
        let mut arrived = vec![Vec::new(); self.ranks];
        for &(from, to, bytes) in messages {
            let link = ResourceId((from * self.ranks + to) as u32);
            let route = self.model.route(&[link], None);
            let task = self.model.task(Task {
                after: &before[from],
                lane: None,
                priority: 0,
                delay_ps: ALPHA_PS,
                bytes,
                route,
            });
            arrived[to].push((task, bytes));
        }
        for (rank, arrived) in arrived.into_iter().enumerate() {
            if arrived.is_empty() {
                continue;
            }
            self.last[rank] = arrived.iter().map(|&(task, _)| task).collect();
            if reduce {
                let lane = self.model.lane(Turns::Fixed);
                let core: RouteId = self.model.route(&[], Some(REDUCE));
                let reductions = arrived.iter().map(|&(task, bytes)| {
                    self.model.task(Task {
                        after: &[task],
                        lane: Some(lane),
                        priority: 0,
                        delay_ps: 0,
                        bytes,
                        route: core,
                    })
                });
                self.last[rank] = reductions.collect();
            }
        }
    }

    fn is(self, what: &str, expected_ps: f64) {
        let got = simulate(&self.model).unwrap().makespan_ps;
        let near = (got - expected_ps).abs() <= 1e-9 * expected_ps;
        assert!(
            near,
            "{what} on {}: {got} ps, not {expected_ps}",
            self.ranks
        );
    }
}

fn all_pairs(ranks: usize, bytes: u64) -> Vec<(usize, usize, u64)> {
    let pairs = (0..ranks).flat_map(|a| (0..ranks).map(move |b| (a, b)));
    pairs
        .filter(|(a, b)| a != b)
        .map(|(a, b)| (a, b, bytes))
        .collect()
}

fn shift(ranks: usize, by: usize, bytes: u64) -> Vec<(usize, usize, u64)> {
    (0..ranks).map(|r| (r, (r + by) % ranks, bytes)).collect()
}

#[test]
fn times_are_those_of_the_formulas() {
    let alpha = ALPHA_PS as f64;
    for ranks in [2usize, 4, 5, 8, 12, 16, 64] {
        for size in [960_u64, 1_966_080] {
            let (p, whole, block) = (ranks as f64, size as f64, size / ranks as u64);
            let part = (p - 1.0) * block as f64;

            let mut ring = Mesh::new(ranks);
            for step in 0..2 * (ranks - 1) {
                ring.round(&shift(ranks, 1, block), step < ranks - 1);
            }
            let time = 2.0 * (p - 1.0) * alpha + part * (2.0 * BETA_PS + GAMMA_PS);
            ring.is("ring all_reduce", time);

            let mut one = Mesh::new(ranks);
            one.round(&all_pairs(ranks, size), true);
            let time = alpha + whole * BETA_PS + (p - 1.0) * whole * GAMMA_PS;
            one.is("one-shot all_reduce", time);

            let mut two = Mesh::new(ranks);
            two.round(&all_pairs(ranks, block), true);
            two.round(&all_pairs(ranks, block), false);
            let time = 2.0 * (alpha + block as f64 * BETA_PS) + part * GAMMA_PS;
            two.is("two-shot all_reduce", time);

            let mut shifts = Mesh::new(ranks);
            for step in 1..ranks {
                shifts.round(&shift(ranks, step, block), false);
            }
            shifts.is("all_to_all in turns", (p - 1.0) * alpha + part * BETA_PS);

            if ranks.is_power_of_two() {
                let rounds = ranks.ilog2();
                let mut doubling = Mesh::new(ranks);
                for k in 0..rounds {
                    let pairs: Vec<_> = (0..ranks).map(|r| (r, r ^ (1 << k), size)).collect();
                    doubling.round(&pairs, true);
                }
                let time = f64::from(rounds) * (alpha + whole * (BETA_PS + GAMMA_PS));
                doubling.is("recursive doubling", time);
            }
        }
    }
}

#[test]
fn a_pipelined_chain_takes_a_time_for_each_stage_and_piece() {
    let (ranks, pieces, bytes) = (6usize, 9u64, 50_000u64);
    let mut model = Model::new();
    let mut before: Vec<TaskId> = Vec::new();
    for _ in 0..ranks - 1 {
        let lane = model.lane(Turns::Fixed);
        let resource = model.resource(LINK);
        let route = model.route(&[resource], None);
        let mut tasks = Vec::new();
        for piece in 0..pieces as usize {
            let after: Vec<TaskId> = before.get(piece).copied().into_iter().collect();
            tasks.push(model.task(Task {
                after: &after,
                lane: Some(lane),
                priority: 0,
                delay_ps: ALPHA_PS,
                bytes,
                route,
            }));
        }
        before = tasks;
    }
    let stage = ALPHA_PS as f64 + bytes as f64 * BETA_PS;
    let expected = (ranks as f64 - 2.0 + pieces as f64) * stage;
    let got = simulate(&model).unwrap().makespan_ps;
    assert!((got - expected).abs() < 1.0, "{got}, not {expected}");
}
