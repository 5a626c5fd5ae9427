//! Predicted costs, held against the classical formulas' numbers in `fixtures/closed_forms.csv`.

use unisono_plan::cost::{Fabric, Link, Rate, Speeds, predict};
use unisono_plan::{Algorithm, Op, OpKind};

/// Microseconds of a latency.
const ALPHA_US: f64 = 5.0;

/// A line of the table.
struct Row {
    ranks: u32,
    bytes: u64,
    op: Op,
    algorithm: Algorithm,
    us: f64,
}

fn rows() -> Vec<Row> {
    let lines = include_str!("fixtures/closed_forms.csv").lines();
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let [ranks, bytes, op, algorithm, us] = fields[..] else {
            panic!("{line}")
        };
        Row {
            ranks: ranks.parse().unwrap(),
            bytes: bytes.parse().unwrap(),
            op: match op.parse().unwrap() {
                OpKind::AllReduce => Op::AllReduce,
                OpKind::AllGather => Op::AllGather,
                OpKind::AllToAll => Op::AllToAll,
                OpKind::Broadcast => Op::Broadcast { root: 0 },
                kind => panic!("{kind}"),
            },
            algorithm: algorithm.parse().unwrap(),
            us: us.parse().unwrap(),
        }
    };
    lines
        .filter(|line| !line.starts_with('#'))
        .map(row)
        .collect()
}

fn fabric(ranks: u32) -> Fabric {
    let link = Link {
        alpha_ps: 5_000_000,
        rate: Rate::bytes_per_second(50_000_000_000),
        by_core: false,
        message_ps: 0,
        port: None,
    };
    let speeds = Speeds {
        reduce: Rate::bytes_per_second(400_000_000_000),
        ..Speeds::default()
    };
    Fabric::uniform(ranks, speeds, link).unwrap()
}

fn predicted_us(row: &Row) -> f64 {
    let cost = predict(
        row.algorithm,
        row.op,
        false,
        row.bytes,
        1,
        &fabric(row.ranks),
    );
    cost.unwrap().total().0 as f64 / 1e6
}

#[test]
fn predictions_equal_the_formulas() {
    let rows = rows();
    assert_eq!(rows.len(), 14 * 13);
    let mut compared = 0;
    for row in &rows {
        if row.algorithm == Algorithm::HalvingDoubling && !row.ranks.is_power_of_two() {
            continue;
        }
        // Who hands something on in a broadcast hears that it has come.
        let back = match row.op {
            Op::Broadcast { .. } => ALPHA_US,
            _ => 0.0,
        };
        // Of an odd number of ranks one is without a partner in each round.
        let rounds = match row.algorithm {
            Algorithm::Pairwise if row.ranks % 2 == 1 => {
                f64::from(row.ranks) / f64::from(row.ranks - 1)
            }
            _ => 1.0,
        };
        let (got, wanted) = (predicted_us(row), row.us * rounds + back);
        assert!(
            (got - wanted).abs() < 1e-3 + wanted * 1e-5,
            "{} {} {} {}: {got}, not {wanted}",
            row.algorithm,
            row.op,
            row.ranks,
            row.bytes
        );
        compared += 1;
    }
    println!("{compared} costs compared");
    assert!(compared >= 14 * 12, "{compared}");
}

#[test]
fn unequal_halves_cost_less_than_a_fold() {
    let folds = rows()
        .into_iter()
        .filter(|row| row.algorithm == Algorithm::HalvingDoubling && !row.ranks.is_power_of_two());
    let mut compared = 0;
    for row in folds {
        let got = predicted_us(&row);
        assert!(got <= row.us + 1e-3, "{} ranks: {got}", row.ranks);
        if row.bytes > 1 << 16 {
            assert!(
                got < row.us * 0.8,
                "{} ranks: {got} of {}",
                row.ranks,
                row.us
            );
        }
        compared += 1;
    }
    assert!(compared >= 4, "{compared}");
}

/// 64 MiB on 12 ranks: a fold onto 8 ranks would take 5388 us.
#[test]
fn twelve_ranks_are_no_trap() {
    let time = |algorithm| {
        predicted_us(&Row {
            ranks: 12,
            bytes: 64 << 20,
            op: Op::AllReduce,
            algorithm,
            us: 0.0,
        })
    };
    assert_eq!(time(Algorithm::Nhr).round(), 2654.0);
    let halving = time(Algorithm::HalvingDoubling);
    assert!(halving < 1.1 * 2654.0, "{halving}");
}
