//! Plans of many ranks: counted, quick, and spelled out if that is asked for.

use unisono_network::{Builder, Network};
use unisono_plan::Op;
use unisono_planner::plan::How;
use unisono_planner::{PlanError, Request, plan};

const GB: u64 = 1_000_000_000;

/// Pods of hosts, each pod joined to all spines.
fn fat_tree(pods: u32, hosts: u32, spines: u32) -> Network {
    let mut builder = Builder::new(pods * hosts);
    let spines: Vec<u32> = (0..spines).map(|_| builder.switch(false)).collect();
    for pod in 0..pods {
        let leaf = builder.switch(false);
        for host in 0..hosts {
            builder.duplex(pod * hosts + host, leaf, 25 * GB, 1000);
        }
        for &spine in &spines {
            builder.duplex(leaf, spine, 50 * GB, 1000);
        }
    }
    builder.build().unwrap()
}

const OPS: [Op; 9] = [
    Op::AllReduce,
    Op::AllGather,
    Op::ReduceScatter,
    Op::Broadcast { root: 3 },
    Op::Reduce { root: 3 },
    Op::Gather { root: 3 },
    Op::Scatter { root: 3 },
    Op::AllToAll,
    Op::Barrier,
];

#[test]
fn every_operation_has_a_plan_at_256_ranks() {
    let network = fat_tree(16, 16, 8);
    for op in OPS {
        let planned = plan(&network, &Request::new(op, 1 << 26)).unwrap();
        let share = planned.share_of_bound();
        assert!(share > 0.5 && share <= 1.000_001, "{op}: {share}");
        assert!(planned.candidates.len() > 1, "{op}");
        match planned.candidates[0].how {
            How::Counted => assert!(planned.schedule.steps.is_empty()),
            _ => assert!(!planned.schedule.steps.is_empty()),
        }
        if op != Op::Barrier {
            assert!(planned.timeline.edge_bytes.iter().any(|&bytes| bytes > 0));
        }
    }
}

/// Latencies of many messages overlap on their way out of a root as on their way to it.
#[test]
fn a_scatter_takes_as_long_as_a_gather() {
    let (a, b) = (16, 24);
    let mut builder = Builder::new(a * b);
    for rank in 0..a * b {
        let (x, y) = (rank / b, rank % b);
        builder.duplex(rank, (x + 1) % a * b + y, 50 * GB, 700);
        builder.duplex(rank, x * b + (y + 1) % b, 50 * GB, 700);
    }
    let network = builder.build().unwrap();
    for bytes in [1 << 16, 1 << 20, 1 << 24] {
        let time = |op| plan(&network, &Request::new(op, bytes)).unwrap();
        let gather = time(Op::Gather { root: 0 });
        let scatter = time(Op::Scatter { root: 0 });
        let ratio = scatter.predicted_us() / gather.predicted_us();
        assert!((0.9..1.1).contains(&ratio), "{bytes} B: {ratio}");
        let share = scatter.share_of_bound();
        assert!(share > 0.8, "{bytes} B: {share} of the bound");
    }
}

/// Boxes of eight devices, each device on a rail of its own.
#[test]
fn thousands_of_ranks_go_by_levels() {
    let (boxes, each) = (288, 8);
    let mut builder = Builder::new(boxes * each);
    let rails: Vec<u32> = (0..each).map(|_| builder.switch(false)).collect();
    for number in 0..boxes {
        let inside = builder.switch(false);
        for (place, &rail) in (0..each).zip(&rails) {
            let rank = number * each + place;
            builder.duplex(rank, inside, 450 * GB, 500);
            builder.duplex(rank, rail, 50 * GB, 2000);
        }
    }
    let network = builder.build().unwrap();
    let planned = plan(&network, &Request::new(Op::AllReduce, 1 << 30)).unwrap();
    assert_eq!(planned.algorithm, "hierarchical");
    let share = planned.share_of_bound();
    assert!(share > 0.9 && share <= 1.000_001, "{share}");
    assert!(planned.seconds < 60.0, "{} s", planned.seconds);
}

/// Rows and columns of so many ranks that are rings.
fn torus(side: u32) -> Network {
    let mut builder = Builder::new(side * side);
    for rank in 0..side * side {
        let (row, column) = (rank / side, rank % side);
        builder.duplex(rank, row * side + (column + 1) % side, 50 * GB, 700);
        builder.duplex(rank, (row + 1) % side * side + column, 50 * GB, 700);
    }
    builder.build().unwrap()
}

/// The operation that takes longest to plan there.
#[test]
fn a_torus_of_16_384_ranks_is_planned_within_a_minute() {
    let network = torus(128);
    let planned = plan(&network, &Request::new(Op::Broadcast { root: 0 }, 1 << 20)).unwrap();
    let share = planned.share_of_bound();
    assert!(share > 0.1 && share <= 1.000_001, "{share}");
    assert!(planned.seconds < 60.0, "{} s", planned.seconds);
}

#[test]
fn steps_are_there_if_they_are_asked_for() {
    let network = fat_tree(12, 12, 6);
    for op in [Op::AllGather, Op::AllToAll, Op::Broadcast { root: 3 }] {
        let request = Request {
            spelled_out: true,
            ..Request::new(op, 1 << 22)
        };
        let spelled = plan(&network, &request).unwrap();
        assert!(!spelled.schedule.steps.is_empty(), "{op}");
        assert_eq!(spelled.candidates[0].how, How::Simulated);
        assert_eq!(spelled.schedule.steps.len(), spelled.timeline.steps.len());
        // What was counted is not far from what is simulated.
        let counted = plan(&network, &Request::new(op, 1 << 22)).unwrap();
        let ratio = counted.predicted_us() / spelled.predicted_us();
        assert!((0.7..1.4).contains(&ratio), "{op}: {ratio}");
    }
}

#[test]
fn an_algorithm_can_be_forced_and_an_unknown_one_is_named() {
    let network = fat_tree(12, 12, 6);
    let forced = |name: &str| Request {
        algorithm: Some(name.to_owned()),
        ..Request::new(Op::AllReduce, 1 << 26)
    };
    let planned = plan(&network, &forced("ring")).unwrap();
    assert_eq!(planned.algorithm, "ring");
    let error = plan(&network, &forced("rang")).unwrap_err();
    assert!(
        matches!(error, PlanError::NoSuchAlgorithm { .. }),
        "{error}"
    );
}
