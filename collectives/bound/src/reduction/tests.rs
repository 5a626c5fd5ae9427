use proptest::prelude::*;
use unisono_network::{Builder, to_f64};

use super::*;

/// Networks of a few ranks on which everybody reaches everybody, by a ring at least.
fn one_sided() -> impl Strategy<Value = Problem> {
    let ranks = 3..7u32;
    ranks.prop_flat_map(|ranks| {
        let ring = prop::collection::vec(1..40u64, ranks as usize);
        let more = prop::collection::vec((0..ranks, 0..ranks, 1..40u64), 0..14);
        (ring, more).prop_map(move |(ring, more)| {
            let mut builder = Builder::new(ranks);
            for (rank, wide) in (0..).zip(ring) {
                builder.edge(rank, (rank + 1) % ranks, wide, 0);
            }
            for (from, to, wide) in more {
                if from != to {
                    builder.edge(from, to, wide, 0);
                }
            }
            Problem::new(&builder.build().unwrap())
        })
    })
}

proptest! {
    #[test]
    fn all_ways_agree(problem in one_sided()) {
        let collapse = Collapse::of(&problem);
        let layout = Layout::new(&problem, &collapse, false);
        let (exact, _) = program::solve(&problem, &layout).unwrap();
        let exact = to_f64(exact.high().unwrap());
        let (near, _) = near::solve(&problem, &layout).unwrap();
        let ends = [near.low(), near.high()].map(|end| to_f64(end.unwrap()));
        prop_assert!(ends[0] <= exact * 1.000_000_001 && ends[1] >= exact * 0.999_999_999, "{ends:?} {exact}");
        // Prices in floating point are off by a little, more where capacities differ much.
        prop_assert!(ends[1] - ends[0] <= 1e-5 * exact, "{ends:?} {exact}");
        // The others are made for large networks: they may give up, or be far apart, but never wrong.
        let rough = [game::solve(&problem, &layout), Some(rough::solve(&problem, false))];
        for (limit, _) in rough.into_iter().flatten() {
            let ends = [limit.low(), limit.high()].map(|end| to_f64(end.unwrap()));
            prop_assert!(ends[0] <= exact * 1.000_000_001, "{ends:?} {exact}");
            prop_assert!(ends[1] >= exact * 0.999_999_999, "{ends:?} {exact}");
        }
    }
}
