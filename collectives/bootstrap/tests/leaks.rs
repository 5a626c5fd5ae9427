//! Jobs that came and went leave nothing behind. Alone in its binary, for it counts what the process holds.

mod common;

use std::time::{Duration, Instant};

use common::{job, join_all, on_each, options, unique_id};
use unisono_bootstrap::{Options, Tag, Wait, shrink};

/// Descriptors and threads of this process.
fn held() -> (usize, usize) {
    let count = |folder: &str| std::fs::read_dir(folder).expect("/proc is there").count();
    (count("/proc/self/fd"), count("/proc/self/task"))
}

fn come_and_go() {
    let ranks = job(5, 2);
    on_each(&ranks, |joined| {
        let control = &joined.control;
        if control.rank() != 4 {
            let wait = Wait::at_most(Duration::from_secs(20));
            let tag = Tag {
                communicator: 1,
                sequence: 1,
            };
            assert_eq!(
                shrink(control, tag, &[0, 1, 2, 3, 4], &[4], &wait).unwrap(),
                [0, 1, 2, 3]
            );
        }
    });
    drop(ranks);
    let id = unique_id();
    let wait = || Wait::at_most(Duration::from_millis(200));
    let missing: Vec<Options> = (0..3)
        .map(|rank| Options {
            wait: wait(),
            ..options(&id, rank, 4, 2)
        })
        .collect();
    assert!(join_all(missing).iter().all(|result| result.is_err()));
}

#[test]
fn nothing_is_left_behind() {
    come_and_go();
    let settle = |limit: (usize, usize)| {
        // A root that refused stays for latecomers a little longer.
        let until = Instant::now() + Duration::from_secs(10);
        while Instant::now() < until && (held().0 > limit.0 || held().1 > limit.1) {
            std::thread::sleep(Duration::from_millis(50));
        }
        held()
    };
    std::thread::sleep(Duration::from_millis(2500));
    let before = held();
    for _ in 0..15 {
        come_and_go();
    }
    let after = settle(before);
    assert!(
        after.0 <= before.0 && after.1 <= before.1,
        "descriptors and threads: {before:?}, later {after:?}"
    );
}
