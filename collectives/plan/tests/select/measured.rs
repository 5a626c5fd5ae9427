//! Choices by what was measured.

use super::*;

/// Times of two algorithms from small to large messages, in picoseconds.
fn measurements(op: Op, times: [(&str, u128); 2]) -> Measurements {
    let mut measured = Measurements::default();
    for (algorithm, time) in times {
        for (bytes, put_bytes) in [(8, 64), (1 << 21, 8192)] {
            let plan = PlanName {
                op: op.kind(),
                windowed: false,
                algorithm: algorithm.into(),
            };
            let point = Point {
                bytes,
                put_bytes,
                time: Picoseconds(time),
            };
            measured.insert(plan, point);
        }
    }
    measured
}

/// Figures of a plan differ by some per cent from one tuning to the next: then the order decides.
#[test]
fn of_those_measured_as_about_as_fast_the_first_is_chosen() {
    let op = Op::AllReduce;
    let asked = request(op, 1 << 20);
    let winner = |times| {
        let fabric = classical(4).with_measurements(measurements(op, times));
        let chosen = select(&asked, &fabric, &Overrides::NONE).unwrap();
        (chosen.winner().label.to_string(), chosen.reason())
    };
    let (earlier, later) = ("mesh_two_shot", "ring");
    let (label, why) = winner([(earlier, 5_100_000), (later, 5_000_000)]);
    assert_eq!(label, earlier);
    assert!(why.contains("as fast as ring within 3 %"), "{why}");
    let (label, why) = winner([(earlier, 5_200_000), (later, 5_000_000)]);
    assert_eq!(label, later);
    assert!(why.contains("the lowest measured time"), "{why}");
}

#[test]
fn what_was_measured_decides_before_what_is_predicted() {
    let op = Op::AllReduce;
    let fabric = classical(4);
    let asked = request(op, 1 << 20);
    let by_cost = select(&asked, &fabric, &Overrides::NONE).unwrap();
    // Whatever the cost model thinks best is measured as slow, another plan as fast.
    let (slow, fast) = (&by_cost.winner().label, "recursive_doubling");
    assert_ne!(slow, fast);
    let measured = measurements(op, [(&**slow, 9_000_000), (fast, 5_000_000)]);
    let fingerprint = fabric.fingerprint();
    let tuned = fabric.with_measurements(measured);
    assert_eq!(
        tuned.fingerprint(),
        fingerprint,
        "the fabric is still the same"
    );
    let chosen = select(&asked, &tuned, &Overrides::NONE).unwrap();
    let winner = chosen.winner();
    assert_eq!(winner.label, fast);
    assert_eq!(winner.measured, Some(Picoseconds(5_000_000)));
    assert!(winner.put_bytes <= 8192, "the cut that was measured");
    // Plans that were not measured are behind those that were.
    assert!(chosen.candidates.iter().any(|c| c.behind));
    let text = chosen.to_string();
    assert!(
        text.contains("measured") && text.contains("far behind"),
        "{text}"
    );
    assert!(text.contains("the lowest measured time"), "{text}");
    // An operation that was not measured goes by prediction.
    let other = select(&request(Op::AllGather, 1 << 20), &tuned, &Overrides::NONE).unwrap();
    assert!(other.winner().measured.is_none() && !other.winner().behind);
}
