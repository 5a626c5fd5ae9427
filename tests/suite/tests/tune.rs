//! Tuning: what is measured is what later communicators go by, on all ranks alike.

use std::time::Duration;

use unisono::plan::OpKind;
use unisono::{Calibration, Communicator, DataType, Op, ReduceOp, TuneOptions};
use unisono_tests::threads;

fn short() -> TuneOptions {
    TuneOptions {
        max_bytes: 64 << 10,
        factor: 16,
        figure: Duration::from_micros(200),
        rounds: 3,
        ..TuneOptions::default()
    }
}

fn explain(world: &Communicator, bytes: u64) -> String {
    let explained = world.explain(Op::AllReduce, bytes, DataType::F32);
    explained.expect("explain").to_string()
}

#[test]
fn what_was_measured_decides_in_later_communicators() {
    let mut tuned = threads(
        3,
        |_| {},
        |world| {
            assert!(!explain(&world, 1024).contains("measured"));
            let mut seen = Vec::new();
            let tuned = world.tune(&short(), &mut |step| {
                assert_eq!(step.done, seen.len() as u64);
                assert!(step.done < step.total);
                seen.push((step.op, step.bytes));
            });
            // What disturbs the machine for a while is one round of several cells, never all rounds of one.
            let again = seen.iter().skip(1).position(|cell| *cell == seen[0]);
            let cells = again.expect("several rounds") + 1;
            assert!(cells > OpKind::ALL.len() / 2, "{cells}");
            assert!(seen.chunks(cells).all(|round| round == &seen[..cells]));
            world.finalize().expect("finalize");
            tuned.expect("tune")
        },
    );
    let calibration = tuned.remove(0);
    assert!(
        tuned.iter().all(|other| *other == calibration),
        "all ranks measured the same"
    );
    assert!(calibration.links.values().all(|link| link.latency_us > 0.0));
    let figures = calibration.fabrics.values().next().expect("one fabric");
    assert_eq!(figures.ranks, 3);
    for op in OpKind::ALL {
        let measured = figures.plans.iter().any(|plan| plan.op == op.name());
        assert_eq!(measured, !matches!(op, OpKind::Send | OpKind::Recv), "{op}");
    }
    // Now as a file would have it, and only rank 0 has one.
    let text = calibration.to_json();
    let explained = threads(
        3,
        move |options| {
            if options.rank == 0 {
                let read = Calibration::from_json(&text).expect("its own JSON");
                options.calibration = Some(read);
            }
        },
        |world| {
            let explained = explain(&world, 1024);
            let mut data = vec![1.0f32; 10_000];
            world
                .all_reduce_in_place(&mut data, ReduceOp::Sum)
                .expect("all_reduce");
            assert!(data.iter().all(|x| *x == 3.0));
            // A communicator of other ranks was not measured.
            let pair = world
                .split(Some(u32::from(world.rank() == 2)), 0)
                .expect("split");
            if let Some(pair) = pair {
                assert!(!explain(&pair, 1024).contains("measured"));
            }
            world.finalize().expect("finalize");
            explained
        },
    );
    // Another plan may have been as fast, but for some per cent.
    let reason = explained[0].lines().last().expect("the reason");
    assert!(reason.contains("measured"), "{}", explained[0]);
    assert!(explained.iter().all(|other| *other == explained[0]));
}

#[test]
fn sizes_that_are_none_are_refused() {
    let options = TuneOptions {
        min_bytes: 64,
        max_bytes: 8,
        ..TuneOptions::default()
    };
    threads(
        2,
        |_| {},
        move |world| {
            let error = world.tune(&options, &mut |_| {}).expect_err("no sizes");
            assert!(
                error.is_harmless() && error.to_string().contains("64"),
                "{error}"
            );
            world.finalize().expect("finalize");
        },
    );
}
