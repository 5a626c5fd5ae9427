//! Templates: every operation over random data of every kind, proved by the verifier.

use std::sync::Arc;

use unisono_plan::template::{Order, Ring, Rings};
use unisono_plan::verify::{Settings, check};
use unisono_plan::{Algorithm, Op, Template};

/// A small generator of numbers, so that every run is the same.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((self.0 >> 33) % u64::from(bound.max(1))) as u32
    }

    fn shuffled(&mut self, count: u32) -> Vec<u32> {
        let mut all: Vec<u32> = (0..count).collect();
        for at in (1..count).rev() {
            let other = self.below(at + 1);
            all.swap(at as usize, other as usize);
        }
        all
    }
}

fn ops(ranks: u32) -> Vec<Op> {
    let mut ops = vec![
        Op::AllReduce,
        Op::ReduceScatter,
        Op::AllGather,
        Op::AllToAll,
    ];
    for root in [0, ranks / 2, ranks - 1] {
        ops.extend([
            Op::Broadcast { root },
            Op::Reduce { root },
            Op::Gather { root },
            Op::Scatter { root },
        ]);
    }
    ops
}

/// Verifies every operation that the template has, and says how many those are.
fn verify(template: &Template, ranks: u32) -> usize {
    let mut plans = 0;
    for op in ops(ranks) {
        if template.supports(op, ranks, false).is_ok() {
            let report = check(template.clone(), op, ranks, false, Settings::all);
            report.unwrap_or_else(|error| panic!("{error}\n{template:?}"));
            plans += 1;
        }
    }
    plans
}

#[test]
fn algorithms_in_any_order() {
    let mut numbers = Numbers(1);
    let mut plans = 0;
    for ranks in (1..=9).chain([12, 16, 17]) {
        for algorithm in Algorithm::ALL {
            let order = Arc::new(Order::new(numbers.shuffled(ranks)).unwrap());
            plans += verify(&Template::Ordered { algorithm, order }, ranks);
        }
    }
    println!("{plans} plans");
    assert!(plans > 700, "{plans}");
}

#[test]
fn rings_in_any_order_with_any_weights() {
    let mut numbers = Numbers(2);
    let (mut plans, mut shared) = (0, 0);
    for ranks in (2..=9).chain([12, 16, 17]) {
        for count in 1..=3 {
            let ring = |_| Ring::new(numbers.shuffled(ranks), u64::from(numbers.below(9) + 1));
            let rings: Vec<Ring> = (0..count).map(ring).map(Result::unwrap).collect();
            let rings = Arc::new(Rings::new(rings).unwrap());
            shared += u32::from(rings.rings_on_a_hop() == 2);
            plans += verify(&Template::Rings(rings), ranks);
        }
    }
    println!("{plans} plans, {shared} with hops that two rings share");
    assert!(plans > 11 * 2 * 3 && shared > 3, "{plans} {shared}");
}
