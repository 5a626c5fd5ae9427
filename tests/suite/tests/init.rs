//! How jobs come together, and what they say when they cannot.

use std::time::Duration;

use unisono::ReduceOp;
use unisono_tests::{Job, watchdog};

#[test]
fn ranks_as_processes_meet() {
    let _limit = watchdog("ranks_as_processes_meet", Duration::from_secs(90));
    let ranks = Job::new("ranks_as_processes_meet", 3).start(|rank| {
        let world = rank.init(|_| {});
        let mut data = [world.rank() as u64 + 1; 5];
        world
            .all_reduce_in_place(&mut data, ReduceOp::Sum)
            .expect("all_reduce");
        rank.say(&format!("sum {data:?}"));
        world.finalize().expect("finalize");
    });
    for exit in ranks.succeed() {
        assert_eq!(exit.answer("sum"), "[6, 6, 6, 6, 6]");
    }
}
