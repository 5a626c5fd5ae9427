//! Every collective, with ranks as threads of one process.

use unisono::ReduceOp;
use unisono_tests::threads;

#[test]
fn all_reduce_of_two() {
    let results = threads(2, |_| {}, |world| {
        let mut data = vec![world.rank() as f32 + 1.0; 1000];
        world.all_reduce_in_place(&mut data, ReduceOp::Sum).expect("all_reduce");
        world.finalize().expect("finalize");
        data
    });
    assert!(results.iter().all(|r| r.iter().all(|x| *x == 3.0)));
}
