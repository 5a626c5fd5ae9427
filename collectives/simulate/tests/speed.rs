//! Many tasks on many resources, in a time that a person waits for. The limits are loose, for slow
//! and busy machines and builds without optimisation; what they catch is growth by squares.

use std::time::{Duration, Instant};

use unisono_simulate::{
    Allowance, Model, ResourceId, Task, TaskId, Turns, simulate, simulate_within,
};

const RANKS: u32 = 1000;
const STEPS: usize = 100;

/// A fixed sequence that looks like chance.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn run(model: &Model) -> (f64, Duration) {
    let begin = Instant::now();
    let outcome = simulate(model).unwrap();
    (outcome.makespan_ps, begin.elapsed())
}

#[test]
fn a_regular_ring_of_a_hundred_thousand_messages() {
    let mut model = Model::new();
    let links: Vec<ResourceId> = (0..RANKS).map(|_| model.resource(1_000_000_000)).collect();
    let lanes: Vec<_> = (0..RANKS).map(|_| model.lane(Turns::Fixed)).collect();
    let mut before: Vec<Option<TaskId>> = vec![None; RANKS as usize];
    for _ in 0..STEPS {
        let mut now = before.clone();
        for rank in 0..RANKS {
            let route = model.route(&[links[rank as usize]], None);
            let after: Vec<TaskId> = before[rank as usize].into_iter().collect();
            now[(rank as usize + 1) % RANKS as usize] = Some(model.task(Task {
                after: &after,
                lane: Some(lanes[rank as usize]),
                priority: 0,
                delay_ps: 1000,
                bytes: 1000,
                route,
            }));
        }
        before = now;
    }
    let (makespan, time) = run(&model);
    assert!(
        (makespan - STEPS as f64 * 1_001_000.0).abs() < 1.0,
        "{makespan}"
    );
    assert!(time < Duration::from_secs(10), "{time:?}");
}

#[test]
fn an_irregular_mix_of_a_hundred_thousand_messages() {
    let mut chance = Chance(7);
    let mut model = Model::new();
    let links: Vec<ResourceId> = (0..2 * RANKS)
        .map(|_| model.resource(1_000_000_000 + chance.below(500_000_000)))
        .collect();
    let lanes: Vec<_> = (0..RANKS).map(|_| model.lane(Turns::Fixed)).collect();
    let mut last: Vec<TaskId> = Vec::new();
    for step in 0..STEPS {
        let mut now = Vec::new();
        for rank in 0..RANKS {
            // A few links that lie close together, as on a torus.
            let hops = 1 + chance.below(3);
            let first = u64::from(2 * rank) + chance.below(2);
            let route: Vec<ResourceId> = (0..hops)
                .map(|hop| links[((first + hop) % u64::from(2 * RANKS)) as usize])
                .collect();
            let route = model.route(&route, None);
            let near = (rank + RANKS - chance.below(3) as u32) % RANKS;
            let after = if step > 0 {
                vec![last[near as usize]]
            } else {
                Vec::new()
            };
            now.push(model.task(Task {
                after: &after,
                lane: Some(lanes[rank as usize]),
                priority: 0,
                delay_ps: chance.below(10_000),
                bytes: 1000 + chance.below(100_000),
                route,
            }));
        }
        last = now;
    }
    let (makespan, time) = run(&model);
    assert!(makespan > 0.0);
    assert!(time < Duration::from_secs(60), "{time:?}");
    println!("{:.3} ms of traffic in {time:?}", makespan / 1e9);
}

/// Two rounds of messages from everybody to the next twenty on a ring: hundreds of flows that share
/// links and end one by one, each moving the ends of all others.
#[test]
fn what_is_nearly_simultaneous_may_be_taken_together() {
    const RANKS: usize = 40;
    let mut chance = Chance(11);
    let mut model = Model::new();
    let links: Vec<ResourceId> = (0..RANKS).map(|_| model.resource(1_000_000_000)).collect();
    for from in 0..RANKS {
        for hops in 1..=20 {
            let way: Vec<ResourceId> = (from..from + hops).map(|at| links[at % RANKS]).collect();
            let route = model.route(&way, None);
            let mut before = None;
            for _ in 0..2 {
                before = Some(model.task(Task {
                    after: before.as_slice(),
                    lane: None,
                    priority: 0,
                    delay_ps: 1000,
                    bytes: 1000 + chance.below(100_000),
                    route,
                }));
            }
        }
    }
    let exact = simulate(&model).unwrap().makespan_ps;
    let allowance = Allowance {
        share: 0.01,
        after: 10_000,
    };
    let about = simulate_within(&model, allowance).unwrap().makespan_ps;
    let wrong = (about / exact - 1.0).abs();
    // Not exact any more, so the allowance was made use of; and within it.
    assert!((1e-12..=0.01).contains(&wrong), "{about} of {exact}");
    println!("{wrong:.1e} wrong");
    let unused = Allowance {
        after: u64::MAX,
        ..allowance
    };
    assert_eq!(simulate_within(&model, unused).unwrap().makespan_ps, exact);
}
