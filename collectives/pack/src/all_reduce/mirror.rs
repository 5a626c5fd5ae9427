//! Pairs of the trees of reduce_scatter and all_gather.

use crate::tree::{Packing, Pair, PairPacking, Tree, Unit};

/// Pairs trees of the same root, cut to the same weights.
pub(super) fn pairs(reduce: &Packing, distribute: &Packing) -> PairPacking {
    // Both packings' weights of a root, brought to a common sum.
    let sums = [reduce, distribute].map(|packing| packing.root_weights().first().copied());
    let [ins, outs] = sums.map(|sum| sum.unwrap_or(1).max(1));
    let divisor = gcd(ins, outs);
    let (times_in, times_out) = (outs / divisor, ins / divisor);
    let mut pairs = Vec::new();
    for root in 0..reduce.root_weights().len() as u32 {
        let queue = |packing: &Packing, times: u64| -> Vec<Tree> {
            let of_root = packing.trees.iter().filter(|tree| tree.root == root);
            let mut trees: Vec<Tree> = of_root.cloned().collect();
            for tree in &mut trees {
                tree.weight *= times;
            }
            // Equal weights meet, so that few trees are cut.
            trees.sort_by_key(|tree| tree.weight);
            trees
        };
        let mut ins = queue(reduce, times_in);
        let mut outs = queue(distribute, times_out);
        while let (Some(one), Some(other)) = (ins.last_mut(), outs.last_mut()) {
            let weight = one.weight.min(other.weight);
            let part = |tree: &Tree| Tree {
                weight,
                ..tree.clone()
            };
            pairs.push(Pair {
                reduce: part(one),
                distribute: part(other),
            });
            one.weight -= weight;
            other.weight -= weight;
            ins.pop_if(|tree| tree.weight == 0);
            outs.pop_if(|tree| tree.weight == 0);
        }
    }
    PairPacking {
        pairs,
        unit: together(
            slower(reduce.unit, times_in),
            slower(distribute.unit, times_out),
        ),
    }
}

/// The unit when all weights are multiplied.
fn slower(unit: Unit, times: u64) -> (u128, u128) {
    (
        u128::from(unit.numerator),
        u128::from(unit.denominator) * u128::from(times),
    )
}

/// The rate at which two things can be done at once that share all they need: the inverses add up.
fn together(one: (u128, u128), other: (u128, u128)) -> Unit {
    // 1 / (b/a + d/c) = ac / (bc + ad)
    let numerator = one.0 * other.0;
    let denominator = one.1 * other.0 + one.0 * other.1;
    let mut divisor = (numerator, denominator);
    while divisor.1 != 0 {
        divisor = (divisor.1, divisor.0 % divisor.1);
    }
    let (mut numerator, mut denominator) = (numerator / divisor.0, denominator / divisor.0);
    // Down to 64 bits, on the slow side.
    while numerator > u128::from(u64::MAX) || denominator >= u128::from(u64::MAX) {
        numerator /= 2;
        denominator = denominator.div_ceil(2);
    }
    Unit {
        numerator: numerator as u64,
        denominator: denominator as u64,
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
