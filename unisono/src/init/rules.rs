//! The cluster file's rules about algorithms, as what one communicator is forced to.

use std::ops::RangeInclusive;

use unisono_cluster::{AlgorithmRule, AlgorithmUse, Collective};
use unisono_collectives::{Algorithm, Op, Rules};
use unisono_plan::OpKind;
use unisono_plan::select::{Override, Overrides};
use unisono_plan::template::Family;

pub(super) fn rules(rules: &[AlgorithmRule]) -> Rules {
    let rules = rules.to_vec();
    Rules::new(move |communicator, ranks| overrides(&rules, communicator, ranks))
}

/// What the rules come to for one communicator. Each size of each operation belongs to the first
/// rule that matches it; what an `auto` rule takes is left to the cost model.
fn overrides(rules: &[AlgorithmRule], communicator: &str, ranks: u32) -> Overrides {
    let mut forced = Vec::new();
    for (collective, op) in OPERATIONS {
        let mut free = vec![0..=u64::MAX];
        for rule in rules
            .iter()
            .filter(|rule| rule.op.is_none_or(|o| o == collective))
        {
            let least = rule.min_bytes.map_or(0, |bytes| bytes.get());
            let most = rule.max_bytes.map_or(u64::MAX, |bytes| bytes.get());
            // Asked about its own smallest message, a rule tells about its other conditions.
            if least > most || !rule.matches(collective, least, communicator, ranks) {
                continue;
            }
            let algorithm = algorithm(rule, op);
            if rule.op.is_none() && algorithm.is_some_and(|family| !has(family, op, ranks)) {
                // "Ring for everything" means: for everything that has a ring.
                continue;
            }
            let taken = take(&mut free, &(least..=most));
            if let Some(algorithm) = algorithm {
                forced.extend(taken.into_iter().map(|bytes| Override {
                    op: Some(op.kind()),
                    bytes,
                    algorithm,
                    windowed: None,
                    put_bytes: None,
                }));
            }
        }
    }
    Overrides { rules: forced }
}

/// The operations that rules can name and that there are.
const OPERATIONS: [(Collective, Op); 9] = [
    (Collective::AllReduce, Op::AllReduce),
    (Collective::ReduceScatter, Op::ReduceScatter),
    (Collective::AllGather, Op::AllGather),
    (Collective::Broadcast, Op::Broadcast { root: 0 }),
    (Collective::Reduce, Op::Reduce { root: 0 }),
    (Collective::AllToAll, Op::AllToAll),
    (Collective::Gather, Op::Gather { root: 0 }),
    (Collective::Scatter, Op::Scatter { root: 0 }),
    (Collective::Barrier, Op::Barrier),
];

/// Whether there is an operation at all by an algorithm.
fn has(family: Family, op: Op, ranks: u32) -> bool {
    match family {
        Family::Algorithm(algorithm) => algorithm.supports(op, ranks, false).is_ok(),
        _ => matches!(
            op.kind(),
            OpKind::AllReduce
                | OpKind::ReduceScatter
                | OpKind::AllGather
                | OpKind::Broadcast
                | OpKind::Reduce
        ),
    }
}

/// The algorithm that a rule forces; none if it leaves the choice to the cost model.
fn algorithm(rule: &AlgorithmRule, op: Op) -> Option<Family> {
    let algorithm = match rule.use_ {
        AlgorithmUse::MeshOneShot => Algorithm::MeshOneShot,
        AlgorithmUse::MeshTwoShot => Algorithm::MeshTwoShot,
        AlgorithmUse::Ring => Algorithm::Ring,
        AlgorithmUse::HalvingDoubling => Algorithm::HalvingDoubling,
        AlgorithmUse::Dissemination => Algorithm::Dissemination,
        AlgorithmUse::BidirectionalRing => Algorithm::BidirectionalRing,
        AlgorithmUse::RecursiveDoubling => Algorithm::RecursiveDoubling,
        AlgorithmUse::Nhr => Algorithm::Nhr,
        AlgorithmUse::Bruck => Algorithm::Bruck,
        AlgorithmUse::Pairwise => Algorithm::Pairwise,
        AlgorithmUse::Binomial => Algorithm::Binomial,
        AlgorithmUse::ScatterAllGather => Algorithm::ScatterAllGather,
        AlgorithmUse::DoubleBinaryTree => Algorithm::DoubleBinaryTree,
        AlgorithmUse::Chain => Algorithm::Chain,
        AlgorithmUse::MeshRead => Algorithm::MeshRead,
        AlgorithmUse::MeshShared => Algorithm::MeshShared,
        AlgorithmUse::MeshSharedOneShot => Algorithm::MeshSharedOneShot,
        AlgorithmUse::RingShared => Algorithm::RingShared,
        AlgorithmUse::Hierarchical => return Some(Family::Hierarchical),
        // The fold in rank order that moves the fewest bytes.
        _ if rule.deterministic == Some(true) => match op.kind() {
            OpKind::AllReduce => Algorithm::MeshTwoShot,
            OpKind::ReduceScatter => Algorithm::MeshOneShot,
            _ => return None,
        },
        _ => return None,
    };
    Some(algorithm.into())
}

/// Takes what is free of `wanted`, in pieces.
fn take(
    free: &mut Vec<RangeInclusive<u64>>,
    wanted: &RangeInclusive<u64>,
) -> Vec<RangeInclusive<u64>> {
    let (mut left, mut taken) = (Vec::new(), Vec::new());
    for range in free.drain(..) {
        let (start, end) = (
            *range.start().max(wanted.start()),
            *range.end().min(wanted.end()),
        );
        if start > end {
            left.push(range);
            continue;
        }
        if *range.start() < start {
            left.push(*range.start()..=start - 1);
        }
        if end < *range.end() {
            left.push(end + 1..=*range.end());
        }
        taken.push(start..=end);
    }
    *free = left;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use unisono_cluster::{Environment, LoadOptions};

    fn parse(yaml: &str) -> Vec<AlgorithmRule> {
        let options = LoadOptions {
            path: None,
            env: Environment::from_iter([("UNISONO_ALGORITHMS", yaml)]),
            code: unisono_cluster::Overrides::new(),
        };
        unisono_cluster::load(&options).unwrap().cluster.algorithms
    }

    fn find(yaml: &str, name: &str, ranks: u32, op: Op, bytes: u64) -> Option<Family> {
        let overrides = overrides(&parse(yaml), name, ranks);
        overrides.find(op, bytes).map(|rule| rule.algorithm)
    }

    #[test]
    fn a_barrier_may_ask_for_its_own_algorithm() {
        let yaml = "[{op: barrier, use: dissemination}]";
        let found = find(yaml, "dp", 7, Op::Barrier, 0);
        assert_eq!(found, Some(Algorithm::Dissemination.into()));
    }

    #[test]
    fn the_first_rule_decides_and_auto_exempts() {
        let yaml = "[{op: all_reduce, max_bytes: 1KiB, use: auto}, \
                     {op: all_reduce, communicator: 'dp*', use: ring}, \
                     {op: all_reduce, ranks: 4..8, min_bytes: 1MiB, use: mesh_two_shot}]";
        let all_reduce = |name, ranks, bytes| find(yaml, name, ranks, Op::AllReduce, bytes);
        assert_eq!(all_reduce("dp", 4, 1024), None, "auto comes first");
        assert_eq!(all_reduce("dp", 4, 1025), Some(Algorithm::Ring.into()));
        assert_eq!(all_reduce("dp0", 2, u64::MAX), Some(Algorithm::Ring.into()));
        assert_eq!(
            all_reduce("tp", 4, 1 << 20),
            Some(Algorithm::MeshTwoShot.into())
        );
        assert_eq!(all_reduce("tp", 4, (1 << 20) - 1), None);
        assert_eq!(all_reduce("tp", 9, 1 << 20), None);
        assert_eq!(find(yaml, "dp", 4, Op::AllGather, 4096), None);
    }

    #[test]
    fn a_rule_for_every_operation_is_one_for_those_that_have_the_algorithm() {
        let yaml = "[{use: ring}]";
        let ring = find(yaml, "world", 4, Op::AllGather, 8);
        assert_eq!(ring, Some(Algorithm::Ring.into()));
        assert_eq!(find(yaml, "world", 4, Op::Broadcast { root: 3 }, 8), None);
        assert_eq!(find(yaml, "world", 4, Op::Barrier, 0), None);
    }

    #[test]
    fn deterministic_calls_fold_in_rank_order() {
        let yaml = "[{op: all_reduce, use: auto, deterministic: true}]";
        let found = find(yaml, "world", 4, Op::AllReduce, 8);
        let Some(Family::Algorithm(found)) = found else {
            panic!("{found:?}");
        };
        assert!(found.folds_in_rank_order(Op::AllReduce));
    }

    #[test]
    fn every_name_of_the_file_is_that_of_a_plan() {
        for use_ in AlgorithmUse::ALL
            .iter()
            .filter(|use_| **use_ != AlgorithmUse::Auto)
        {
            let yaml = format!("[{{op: all_to_all, use: {use_}}}]");
            let found = find(&yaml, "world", 4, Op::AllToAll, 8).unwrap();
            assert_eq!(found.name(), use_.as_str());
        }
    }

    #[test]
    fn hierarchical_for_everything_is_for_what_has_it() {
        let yaml = "[{use: hierarchical}]";
        let found = |op| find(yaml, "world", 4, op, 8);
        assert_eq!(found(Op::Reduce { root: 1 }), Some(Family::Hierarchical));
        assert_eq!(found(Op::AllToAll), None);
        assert_eq!(found(Op::Barrier), None);
    }
}
