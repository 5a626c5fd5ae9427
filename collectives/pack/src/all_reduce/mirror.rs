//! Pairs of the trees of reduce_scatter and all_gather.

use unisono_network::Rational;

use crate::tree::{Packing, Pair, PairPacking, Tree};

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
            reduce.unit / i128::from(times_in),
            distribute.unit / i128::from(times_out),
        ),
    }
}

/// The rate at which two things can be done at once that share all they need: the inverses add up.
fn together(one: Rational, other: Rational) -> Rational {
    (one.recip() + other.recip()).recip()
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
