//! Predictions against known values, and choices.

use unisono_plan::cost::{
    Fabric, FabricError, Link, Measurements, Node, Picoseconds, PlanName, Point, Port, Rate, Reads,
    Speeds, Uncached, bus_factor, predict,
};
use unisono_plan::select::{Override, Overrides, Plan, Request, SelectError, Selection, select};
use unisono_plan::template::Family;
use unisono_plan::{Algorithm, Op, OpKind, Template};

mod cores;
mod measured;
mod overrides;
mod ports;
mod reads;
mod windows;

const MIB: u64 = 1 << 20;
const US: u128 = 1_000_000;

/// Links of 50 GB/s and 5 us, reductions at 400 GB/s, everything else free.
fn classical(ranks: u32) -> Fabric {
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

/// Processes of one machine: cores move the bytes.
fn shared_memory(ranks: u32, cores: u32) -> Fabric {
    let link = Link {
        alpha_ps: 150_000,
        rate: Rate::bytes_per_second(8_000_000_000),
        by_core: true,
        message_ps: 0,
        port: None,
    };
    let speeds = Speeds {
        message_ps: 60_000,
        switch_ps: 3_000_000,
        reduce: Rate::bytes_per_second(6_000_000_000),
        copy: Rate::bytes_per_second(8_000_000_000),
        ..Speeds::default()
    };
    let node = Node {
        cores,
        exit: Rate::UNKNOWN,
    };
    Fabric::new(&vec![0; ranks as usize], &[node], speeds, |_, _| link).unwrap()
}

fn time(algorithm: Algorithm, op: Op, bytes: u64, pieces: u64, fabric: &Fabric) -> u128 {
    let cost = predict(algorithm, op, false, bytes, pieces, fabric).unwrap();
    cost.total().0
}

fn request(op: Op, bytes: u64) -> Request {
    Request {
        op,
        bytes,
        element_bytes: 4,
        slot_bytes: MIB,
        windows: false,
        readable: true,
        deterministic: false,
    }
}

#[track_caller]
fn assert_near(got: u128, wanted: u128) {
    // The formulas round each part up to a picosecond.
    assert!(got.abs_diff(wanted) <= 8, "{got} ps, not {wanted} ps");
}

#[test]
fn costs_equal_the_closed_formulas() {
    let p = 8u128;
    let fabric = classical(8);
    let bytes = 8 * MIB;
    let alpha = 5 * US;
    let beta = |bytes: u128| bytes * 20; // ps at 50 GB/s
    let gamma = |bytes: u128| bytes * 5 / 2; // ps at 400 GB/s
    let s = u128::from(bytes);
    let rest = s / p * (p - 1);
    let all_reduce = |algorithm| time(algorithm, Op::AllReduce, bytes, 1, &fabric);
    assert_near(
        all_reduce(Algorithm::MeshOneShot),
        alpha + beta(s) + gamma((p - 1) * s),
    );
    assert_near(
        all_reduce(Algorithm::MeshTwoShot),
        2 * alpha + 2 * beta(s / p) + gamma(rest),
    );
    assert_near(
        all_reduce(Algorithm::Ring),
        2 * (p - 1) * alpha + 2 * beta(rest) + gamma(rest),
    );
    assert_near(
        all_reduce(Algorithm::HalvingDoubling),
        6 * alpha + 2 * beta(rest) + gamma(rest),
    );
    assert_near(
        all_reduce(Algorithm::RecursiveDoubling),
        3 * (alpha + beta(s) + gamma(s)),
    );
    assert_near(
        time(Algorithm::Ring, Op::AllGather, bytes, 1, &fabric),
        (p - 1) * alpha + beta(rest),
    );
    assert_near(
        time(Algorithm::MeshOneShot, Op::AllGather, bytes, 1, &fabric),
        alpha + beta(s / p),
    );
    // Broadcasts: the formula, and the acknowledgement's way back.
    let broadcast = Op::Broadcast { root: 3 };
    assert_near(
        time(Algorithm::Binomial, broadcast, bytes, 1, &fabric),
        3 * (alpha + beta(s)) + alpha,
    );
    let k = 16;
    assert_near(
        time(Algorithm::Chain, broadcast, bytes, k, &fabric),
        (p - 2 + u128::from(k)) * (alpha + beta(s / u128::from(k))) + alpha,
    );
    assert_near(
        time(Algorithm::Dissemination, Op::Barrier, 0, 1, &fabric),
        3 * alpha,
    );
    assert_near(
        time(Algorithm::RecursiveDoubling, Op::Barrier, 0, 1, &fabric),
        3 * alpha,
    );
    assert_near(
        time(Algorithm::MeshOneShot, Op::Barrier, 0, 1, &fabric),
        alpha,
    );
}

#[test]
fn a_narrow_way_out_of_the_node_favours_the_ring() {
    let local = Link {
        alpha_ps: 1_000_000,
        rate: Rate::bytes_per_second(400_000_000_000),
        by_core: false,
        message_ps: 0,
        port: None,
    };
    let remote = Link {
        alpha_ps: 5_000_000,
        rate: Rate::bytes_per_second(50_000_000_000),
        by_core: false,
        message_ps: 0,
        port: None,
    };
    let node = Node {
        cores: 0,
        exit: remote.rate,
    };
    let node_of: Vec<u32> = (0..16).map(|rank| rank / 8).collect();
    let link = |a: u32, b: u32| if a / 8 == b / 8 { local } else { remote };
    let fabric = Fabric::new(&node_of, &[node, node], Speeds::default(), link).unwrap();
    let got = select(
        &request(Op::AllReduce, 256 * MIB),
        &fabric,
        &Overrides::NONE,
    )
    .unwrap();
    assert_eq!(got.winner().plan, Plan::Flat(Algorithm::Ring), "{got}");
}

#[test]
fn small_messages_take_one_shot_and_large_ones_two() {
    let fabric = shared_memory(4, 4);
    let choose = |bytes| {
        let got = select(&request(Op::AllReduce, bytes), &fabric, &Overrides::NONE).unwrap();
        got.winner().plan
    };
    assert_eq!(choose(8), Plan::Flat(Algorithm::MeshOneShot));
    assert_eq!(choose(64 * MIB), Plan::Flat(Algorithm::MeshTwoShot));
}

#[test]
fn deterministic_mode_takes_folds_in_rank_order_only() {
    for ranks in 1..40 {
        for bytes in [0, 8, 4096, 64 * MIB] {
            let ask = Request {
                deterministic: true,
                ..request(Op::AllReduce, bytes)
            };
            let got = select(&ask, &classical(ranks), &Overrides::NONE).unwrap();
            assert!(
                got.winner().template.folds_in_rank_order(Op::AllReduce),
                "{got}"
            );
        }
    }
}

#[test]
fn slots_too_small_for_a_plan_exclude_it() {
    let ask = Request {
        slot_bytes: 16,
        element_bytes: 8,
        ..request(Op::AllReduce, MIB)
    };
    let got = select(&ask, &classical(64), &Overrides::NONE).unwrap();
    let why_not = |algorithm| {
        let of =
            |c: &&unisono_plan::select::Candidate| c.plan == Plan::Flat(algorithm) && !c.windowed;
        got.candidates
            .iter()
            .find(of)
            .and_then(|c| c.why_not.clone())
    };
    let why = why_not(Algorithm::HalvingDoubling).unwrap();
    assert!(why.contains("a slot of 16 bytes can't hold"), "{why}");
    assert_eq!(why_not(Algorithm::Ring), None);
}

#[test]
fn a_chain_takes_more_pieces_than_it_must() {
    let fabric = classical(16);
    let ask = Request {
        slot_bytes: 64 * MIB,
        ..request(Op::Broadcast { root: 0 }, 64 * MIB)
    };
    let got = select(&ask, &fabric, &Overrides::NONE).unwrap();
    let chain = got
        .candidates
        .iter()
        .find(|c| c.plan == Plan::Flat(Algorithm::Chain));
    let chain = chain.unwrap();
    // sqrt((s - 1) S / (alpha B)) is 61 pieces; powers of two are tried.
    assert_eq!(chain.pieces, 64, "{got}");
    assert_eq!(chain.put_bytes, MIB);
}

#[test]
fn every_operation_has_a_plan_at_every_size() {
    let ops = [
        Op::AllReduce,
        Op::ReduceScatter,
        Op::AllGather,
        Op::Broadcast { root: 0 },
        Op::Barrier,
        Op::Send { to: 0 },
        Op::Recv { from: 0 },
    ];
    for ranks in 1..20 {
        for op in ops {
            for bytes in [0, 1, 8, 4096, MIB, 1 << 40] {
                let got: Selection =
                    select(&request(op, bytes), &classical(ranks), &Overrides::NONE).unwrap();
                assert!(got.winner().pieces >= 1);
                assert!(got.winner().put_bytes <= MIB);
                let again = select(&request(op, bytes), &classical(ranks), &Overrides::NONE);
                assert_eq!(again.unwrap(), got);
            }
        }
    }
}

#[test]
fn a_selection_explains_itself() {
    let fabric = shared_memory(4, 4);
    let got = select(&request(Op::AllReduce, MIB), &fabric, &Overrides::NONE).unwrap();
    let text = got.to_string();
    assert!(
        text.starts_with("all_reduce of 1048576 bytes on 4 ranks\n"),
        "{text}"
    );
    assert!(text.contains("\n* mesh_two_shot "), "{text}");
    assert!(text.contains("the lowest predicted time"), "{text}");
    let tie = select(&request(Op::AllReduce, 0), &classical(1), &Overrides::NONE).unwrap();
    assert!(tie.reason().contains("first in the fixed order"), "{tie}");
}

#[test]
fn bus_factors_are_those_of_nccl_tests() {
    let of = |op| {
        let factor = bus_factor(op, 8);
        (factor.numerator, factor.denominator)
    };
    assert_eq!(of(Op::AllReduce), (14, 8));
    assert_eq!(of(Op::AllGather), (7, 8));
    assert_eq!(of(Op::ReduceScatter), (7, 8));
    assert_eq!(of(Op::Broadcast { root: 1 }), (1, 1));
    assert_eq!(of(Op::Send { to: 1 }), (1, 1));
}

#[test]
fn impossible_fabrics_are_refused() {
    let link = Link {
        alpha_ps: 1,
        rate: Rate::UNKNOWN,
        by_core: false,
        message_ps: 0,
        port: None,
    };
    let empty = Fabric::new(&[], &[], Speeds::default(), |_, _| link);
    assert_eq!(empty, Err(FabricError::Empty));
    let astray = Fabric::new(&[0, 3], &[], Speeds::default(), |_, _| link);
    assert!(matches!(
        astray,
        Err(FabricError::NoSuchNode { rank: 0, .. })
    ));
}

#[test]
fn names_are_read_back() {
    for algorithm in Algorithm::ALL {
        assert_eq!(algorithm.name().parse(), Ok(algorithm));
        assert_eq!(algorithm.name().replace('_', "-").parse(), Ok(algorithm));
    }
    for kind in OpKind::ALL {
        assert_eq!(kind.name().parse(), Ok(kind));
    }
    let error = "mash".parse::<Algorithm>().unwrap_err().to_string();
    assert!(error.contains("mesh_one_shot"), "{error}");
    assert!("all_redcue".parse::<OpKind>().is_err());
}

#[test]
fn times_are_shown_in_microseconds() {
    assert_eq!(Picoseconds(1_234_567).to_string(), "1.23 us");
    assert_eq!(Picoseconds(5_388_000_000_000).to_string(), "5388000 us");
}
