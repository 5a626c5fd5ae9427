//! Laws of random models, held against a simulator that is as simple as can be.

mod reference;

use proptest::prelude::*;
use reference::Flow;
use unisono_simulate::{
    LaneId, Model, ResourceId, RouteId, Task, TaskId, Turns, max_min_rates, simulate,
};

#[derive(Debug, Clone)]
struct Wanted {
    route: Vec<u32>,
    limit: Option<u64>,
    bytes: u64,
    delay_ps: u64,
    lane: Option<u32>,
    /// Distances back to the tasks it waits for.
    after: Vec<usize>,
}

fn wanted(resources: u32) -> impl Strategy<Value = Wanted> {
    (
        prop::collection::vec(0..resources, 0..4),
        prop::option::weighted(0.2, 1u64..2_000),
        prop_oneof![1 => Just(0u64), 9 => 1..100_000u64],
        prop_oneof![Just(0u64), 0..1_000_000_000_000u64],
        prop::option::of(0..4u32),
        prop::collection::vec(1usize..8, 0..3),
    )
        .prop_map(|(route, limit, bytes, delay_ps, lane, after)| Wanted {
            route,
            limit,
            bytes,
            delay_ps,
            lane,
            after,
        })
}

fn case() -> impl Strategy<Value = (Vec<u64>, Vec<Wanted>)> {
    prop::collection::vec(1u64..5_000, 1..10).prop_flat_map(|capacities| {
        let resources = capacities.len() as u32;
        (
            Just(capacities),
            prop::collection::vec(wanted(resources), 1..60),
        )
    })
}

fn model(capacities: &[u64], tasks: &[Wanted], turns: Turns) -> (Model, Vec<RouteId>) {
    let mut model = Model::new();
    for &capacity in capacities {
        model.resource(capacity);
    }
    let lanes: Vec<LaneId> = (0..4).map(|_| model.lane(turns)).collect();
    let mut routes = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        let resources: Vec<_> = task.route.iter().map(|&r| ResourceId(r)).collect();
        let route = model.route(&resources, task.limit);
        let after: Vec<_> = (task.after.iter())
            .filter_map(|&back| Some(TaskId(index.checked_sub(back)? as u32)))
            .collect();
        routes.push(route);
        model.task(Task {
            after: &after,
            lane: task.lane.map(|lane| lanes[lane as usize]),
            priority: task.bytes % 7,
            delay_ps: task.delay_ps,
            bytes: task.bytes,
            route,
        });
    }
    (model, routes)
}

fn flows(tasks: &[Wanted]) -> Vec<Flow> {
    let flow = |task: &Wanted| Flow {
        route: task.route.clone(),
        limit: task.limit,
    };
    tasks.iter().map(flow).collect()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * a.abs().max(b.abs()) + 1.0
}

proptest! {
    #[test]
    fn rates_fit_and_none_can_rise_at_the_cost_of_a_faster_one((capacities, tasks) in case()) {
        let (model, routes) = model(&capacities, &tasks, Turns::Fixed);
        let rates = max_min_rates(&model, &routes).unwrap();
        let mut load = vec![0.0; capacities.len()];
        for (task, rate) in tasks.iter().zip(&rates) {
            prop_assert!(*rate > 0.0);
            task.route.iter().for_each(|&r| load[r as usize] += rate);
            if let Some(limit) = task.limit {
                prop_assert!(*rate <= limit as f64 * (1.0 + 1e-9));
            }
        }
        for (load, &capacity) in load.iter().zip(&capacities) {
            prop_assert!(*load <= capacity as f64 * (1.0 + 1e-9));
        }
        for (task, &rate) in tasks.iter().zip(&rates) {
            let limited = task.limit.is_some_and(|limit| rate >= limit as f64 * (1.0 - 1e-9));
            let free = task.route.is_empty() && task.limit.is_none();
            let held = task.route.iter().any(|&r| {
                let full = load[r as usize] >= capacities[r as usize] as f64 * (1.0 - 1e-9);
                let fastest = tasks.iter().zip(&rates)
                    .filter(|(other, _)| other.route.contains(&r))
                    .fold(0.0, |fastest: f64, (_, &other)| fastest.max(other));
                full && rate >= fastest * (1.0 - 1e-9)
            });
            prop_assert!(limited || free || held, "{task:?} at {rate} could be faster");
        }
    }

    #[test]
    fn every_task_runs_as_in_the_simple_simulator((capacities, tasks) in case()) {
        let (model, _) = model(&capacities, &tasks, Turns::Fixed);
        let outcome = simulate(&model).unwrap();
        let timed: Vec<_> = tasks.iter().enumerate().map(|(index, task)| {
            let mut after: Vec<usize> = task.after.iter()
                .filter_map(|&back| index.checked_sub(back)).collect();
            if let Some(lane) = task.lane {
                after.extend((0..index).rev().find(|&t| tasks[t].lane == Some(lane)));
            }
            (after, task.delay_ps as f64, task.bytes as f64)
        }).collect();
        let expected = reference::simulate(&capacities, &flows(&tasks), &timed);
        for (index, (span, end)) in outcome.tasks.iter().zip(&expected).enumerate() {
            prop_assert!(near(span.end_ps, *end), "task {index}: {span:?}, not {end}");
        }
        let last = expected.iter().fold(0.0, |last: f64, &end| last.max(end));
        prop_assert!(near(outcome.makespan_ps, last));
        for (resource, &bytes) in outcome.bytes.iter().enumerate() {
            let passed: u64 = tasks.iter()
                .map(|t| t.bytes * t.route.iter().filter(|&&r| r as usize == resource).count() as u64)
                .sum();
            prop_assert_eq!(bytes, passed);
            // It is used at least as long as its bytes need.
            let least = passed as f64 / capacities[resource] as f64 * 1e12;
            prop_assert!(outcome.busy_ps[resource] >= least * (1.0 - 1e-6) - 1.0);
        }
    }

    #[test]
    fn a_lane_that_takes_whoever_is_ready_does_as_one_with_that_order((capacities, tasks) in case()) {
        let (ready, _) = model(&capacities, &tasks, Turns::Ready);
        let outcome = simulate(&ready).unwrap();
        // The same tasks, added in the order in which they started.
        let order: Vec<usize> = outcome.sequence.iter().map(|task| task.0 as usize).collect();
        let mut place = vec![0; tasks.len()];
        order.iter().enumerate().for_each(|(now, &before)| place[before] = now);
        let mut fixed = Model::new();
        for &capacity in &capacities {
            fixed.resource(capacity);
        }
        let lanes: Vec<LaneId> = (0..4).map(|_| fixed.lane(Turns::Fixed)).collect();
        for &index in &order {
            let task = &tasks[index];
            let resources: Vec<_> = task.route.iter().map(|&r| ResourceId(r)).collect();
            let route = fixed.route(&resources, task.limit);
            let after: Vec<_> = (task.after.iter())
                .filter_map(|&back| Some(TaskId(place[index.checked_sub(back)?] as u32)))
                .collect();
            fixed.task(Task {
                after: &after,
                lane: task.lane.map(|lane| lanes[lane as usize]),
                priority: 0,
                delay_ps: task.delay_ps,
                bytes: task.bytes,
                route,
            });
        }
        let again = simulate(&fixed).unwrap();
        for (index, span) in outcome.tasks.iter().enumerate() {
            let other = &again.tasks[place[index]];
            prop_assert!(near(span.end_ps, other.end_ps), "{index}: {span:?}, {other:?}");
        }
    }

    #[test]
    fn the_same_model_gives_the_same_bits((capacities, tasks) in case()) {
        let (model, _) = model(&capacities, &tasks, Turns::Fixed);
        prop_assert_eq!(simulate(&model).unwrap(), simulate(&model).unwrap());
    }
}
