//! Predictions against known values, and choices.

use unisono_plan::cost::{
    Fabric, FabricError, Link, Measurements, Node, Picoseconds, PlanName, Point, Port, Rate, Reads,
    Speeds, bus_factor, predict,
};
use unisono_plan::select::{Override, Overrides, Plan, Request, SelectError, Selection, select};
use unisono_plan::template::Family;
use unisono_plan::{Algorithm, Op, OpKind};

mod reads;

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
        time(Algorithm::MeshOneShot, Op::Barrier, 0, 1, &fabric),
        alpha,
    );
}

#[test]
fn a_port_makes_a_mesh_send_one_after_the_other() {
    let link = Link {
        alpha_ps: 0,
        rate: Rate::bytes_per_second(1_000_000_000),
        by_core: false,
        message_ps: 0,
        port: None,
    };
    let speeds = Speeds {
        port: link.rate,
        ..Speeds::default()
    };
    let fabric = Fabric::uniform(5, speeds, link).unwrap();
    let got = time(Algorithm::MeshOneShot, Op::AllGather, 5000, 1, &fabric);
    assert_eq!(got, 4 * US);
}

/// Five ranks on links of 1 GB/s, of which those with the same `port_of` share 1 GB/s.
fn ported(port_of: impl Fn(u32, u32) -> Option<u32>) -> Fabric {
    let rate = Rate::bytes_per_second(1_000_000_000);
    let node = Node {
        cores: 1,
        exit: Rate::UNKNOWN,
    };
    let link = |from, to| Link {
        alpha_ps: 0,
        rate,
        by_core: false,
        message_ps: 0,
        port: port_of(from, to).map(|id| Port { id, rate }),
    };
    Fabric::new(&[0; 5], &[node], Speeds::default(), link).unwrap()
}

#[test]
fn a_device_sends_over_all_its_links_at_once_but_for_those_that_share_a_port() {
    let gather = |fabric: &Fabric, algorithm| time(algorithm, Op::AllGather, 5000, 1, fabric);
    let send = |fabric: &Fabric| time(Algorithm::Direct, Op::Send { to: 1 }, 5000, 1, fabric);
    let own = ported(|_, _| None);
    assert_eq!(gather(&own, Algorithm::MeshOneShot), US);
    assert_eq!(gather(&own, Algorithm::Ring), 4 * US);
    assert_eq!(gather(&own, Algorithm::BidirectionalRing), 2 * US);
    assert_eq!(send(&own), 5 * US);
    // A switch: what leaves a rank for all others leaves by one way.
    let switch = ported(|from, _| Some(from));
    assert_eq!(gather(&switch, Algorithm::MeshOneShot), 4 * US);
    assert_eq!(gather(&switch, Algorithm::Ring), 4 * US);
    assert_eq!(gather(&switch, Algorithm::BidirectionalRing), 4 * US);
    assert_eq!(send(&switch), 5 * US);
    let broadcast = |fabric: &Fabric| {
        let op = Op::Broadcast { root: 0 };
        time(Algorithm::MeshOneShot, op, 5000, 1, fabric)
    };
    assert_eq!((broadcast(&own), broadcast(&switch)), (5 * US, 20 * US));
    // One bus for all.
    let bus = ported(|_, _| Some(0));
    assert_eq!(gather(&bus, Algorithm::MeshOneShot), 20 * US);
    assert_eq!(gather(&bus, Algorithm::Ring), 20 * US);
    // Rank 4's links alone.
    let one = ported(|from, _| (from == 4).then_some(7));
    assert_eq!(gather(&one, Algorithm::MeshOneShot), 4 * US);
    assert_eq!(gather(&one, Algorithm::Ring), 4 * US);
}

#[test]
fn ports_are_part_of_a_fabrics_name_and_none_are_not() {
    let names = [
        ported(|_, _| None).fingerprint(),
        ported(|from, _| Some(from)).fingerprint(),
        ported(|_, _| Some(0)).fingerprint(),
    ];
    assert!(names[0] != names[1] && names[1] != names[2] && names[0] != names[2]);
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
fn ranks_that_share_cores_are_slower() {
    let (roomy, crowded) = (shared_memory(8, 8), shared_memory(8, 2));
    let at = |fabric| time(Algorithm::MeshTwoShot, Op::AllReduce, 64 * MIB, 64, fabric);
    let (fast, slow) = (at(&roomy), at(&crowded));
    assert!(slow >= 4 * fast && slow < 5 * fast, "{slow} against {fast}");
    // The three others of a core have their turns before a message is answered.
    let small = |fabric| time(Algorithm::MeshOneShot, Op::Barrier, 0, 1, fabric);
    assert_eq!(small(&crowded) - 4 * small(&roomy), 3 * 3 * US);
}

/// What eight ranks on two cores send to each other at once does not fit into their caches in puts of
/// a slot each; one rank's puts to one other always do.
#[test]
fn puts_to_everybody_at_once_stay_in_the_caches_of_cores() {
    let largest = |fabric: &Fabric, op, algorithm| {
        let asked = Request {
            slot_bytes: 128 << 10,
            ..request(op, 64 * MIB)
        };
        let chosen = select(&asked, fabric, &Overrides::NONE).unwrap();
        let plan = Plan::Flat(algorithm);
        let own = (chosen.candidates.iter()).find(|c| c.plan == plan && !c.windowed);
        own.unwrap().put_bytes
    };
    let mesh = Algorithm::MeshOneShot;
    // 1 MiB for the puts of four ranks to seven others.
    let crowded = shared_memory(8, 2);
    assert_eq!(largest(&crowded, Op::AllGather, mesh), MIB / 4 / 7);
    assert_eq!(largest(&crowded, Op::AllToAll, mesh), MIB / 4 / 7);
    assert_eq!(largest(&crowded, Op::AllGather, Algorithm::Ring), 128 << 10);
    let rooted = Op::Broadcast { root: 0 };
    assert!(largest(&crowded, rooted, mesh) > MIB / 4 / 7);
    let two_shot = Algorithm::MeshTwoShot;
    assert_eq!(largest(&crowded, rooted, two_shot), MIB / 4 / 7);
    // Not so small that ranks only take turns, and no limit where each has a core, or none moves bytes.
    assert_eq!(
        largest(&shared_memory(8, 8), Op::AllGather, mesh),
        128 << 10
    );
    assert_eq!(largest(&shared_memory(64, 2), Op::AllGather, mesh), 8 << 10);
    assert_eq!(largest(&classical(8), Op::AllGather, mesh), 128 << 10);
}

#[test]
fn ranks_that_share_cores_show_what_all_need() {
    let shares = |ranks| shared_memory(ranks, 2).with_shared_memory(Ok(()));
    let chosen = |fabric: &Fabric, op, bytes| {
        let got = select(&request(op, bytes), fabric, &Overrides::NONE);
        got.unwrap().winner().plan
    };
    let shown = Plan::Flat(Algorithm::MeshShared);
    for op in [Op::AllGather, Op::Broadcast { root: 0 }] {
        for bytes in [64 << 10, MIB, 64 * MIB] {
            assert_eq!(chosen(&shares(8), op, bytes), shown, "{op} {bytes}");
        }
        // A rank with a core of its own has nobody there to read what it has read.
        assert_ne!(chosen(&shares(2), op, MIB), shown, "{op}");
    }
    // A few bytes come with what tells of them: all are told at once, but by a root that is ahead of them.
    assert_eq!(chosen(&shares(8), Op::AllGather, 64), shown);
    assert_eq!(chosen(&shares(8), Op::Barrier, 0), shown);
    assert_ne!(chosen(&shares(8), Op::Broadcast { root: 0 }, 8), shown);
    let at_once = Plan::Flat(Algorithm::MeshSharedOneShot);
    assert_eq!(chosen(&shares(8), Op::AllReduce, 8), at_once);
    assert_eq!(chosen(&shares(8), Op::AllReduce, 64 << 10), shown);
    for op in [Op::AllGather, Op::AllReduce, Op::Barrier] {
        let two = chosen(&shares(2), op, 8);
        assert_eq!(two, Plan::Flat(Algorithm::MeshOneShot), "{op}");
    }
    let why = Err("ranks 0 and 1 do not share memory".to_owned());
    let apart = shared_memory(8, 2).with_shared_memory(why);
    assert_ne!(chosen(&apart, Op::AllGather, MIB), shown);
    let family = Algorithm::MeshShared.into();
    assert_eq!(
        apart.why_missing(family),
        Some("ranks 0 and 1 do not share memory")
    );
    assert_eq!(shares(8).why_missing(family), None);
}

#[test]
fn windows_win_where_they_are_and_are_refused_where_not() {
    let fabric = shared_memory(4, 4);
    let mut ask = request(Op::AllGather, 64 * MIB);
    let without = select(&ask, &fabric, &Overrides::NONE).unwrap();
    assert!(!without.winner().windowed);
    assert!(without.to_string().contains("not windows of every peer"));
    ask.windows = true;
    let with = select(&ask, &fabric, &Overrides::NONE).unwrap();
    assert!(with.winner().windowed, "{with}");
    assert!(with.winner().predicted() < without.winner().predicted());
}

#[test]
fn windows_lose_while_peers_hold_what_they_wrote_in_their_caches() {
    let fabric = shared_memory(2, 2);
    let choose = |op, bytes, rules: &Overrides| {
        let ask = Request {
            windows: true,
            ..request(op, bytes)
        };
        select(&ask, &fabric, rules).unwrap()
    };
    let chosen = |op, bytes| choose(op, bytes, &Overrides::NONE).winner().windowed;
    let broadcast = Op::Broadcast { root: 0 };
    for op in [Op::AllToAll, broadcast] {
        assert!(!chosen(op, 256 << 10), "{op}");
        assert!(chosen(op, 4 * MIB), "{op}");
    }
    // No step where the cache is full: it holds less and less of what was written first.
    let rules = broadcast_over_windows();
    let took = |bytes| choose(broadcast, bytes, &rules).winner().predicted().0;
    let steps: Vec<u128> = (10..=24).map(|tenths| took(tenths * MIB / 10)).collect();
    for pair in steps.windows(2) {
        assert!(
            pair[1] * 10 < pair[0] * 12 && pair[1] * 10 > pair[0] * 8,
            "{steps:?}"
        );
    }
}

fn broadcast_over_windows() -> Overrides {
    Overrides {
        rules: vec![Override {
            op: Some(OpKind::Broadcast),
            bytes: 0..=64 * MIB,
            algorithm: Algorithm::MeshOneShot.into(),
            windowed: Some(true),
            put_bytes: None,
        }],
    }
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

fn force(algorithm: Algorithm, windowed: Option<bool>) -> Overrides {
    Overrides {
        rules: vec![Override {
            op: Some(OpKind::AllReduce),
            bytes: 0..=MIB,
            algorithm: algorithm.into(),
            windowed,
            put_bytes: None,
        }],
    }
}

#[test]
fn an_override_wins_within_its_bounds() {
    let fabric = classical(4);
    let rules = force(Algorithm::Ring, None);
    let choose = |op, bytes| select(&request(op, bytes), &fabric, &rules).unwrap();
    let forced = choose(Op::AllReduce, 8);
    assert!(forced.forced && forced.winner().plan == Plan::Flat(Algorithm::Ring));
    assert!(forced.to_string().contains("an override forces it"));
    assert!(!choose(Op::AllReduce, MIB + 1).forced);
    assert!(!choose(Op::AllGather, 8).forced);
}

#[test]
fn an_override_that_cannot_run_is_an_error_that_says_why() {
    let fabric = classical(4);
    let fail = |rules: &Overrides, ask: Request| -> SelectError {
        select(&ask, &fabric, rules).unwrap_err()
    };
    let ask = request(Op::AllReduce, 8);
    let error = fail(&force(Algorithm::Dissemination, None), ask);
    assert!(
        error.to_string().contains("doesn't have this operation"),
        "{error}"
    );
    let error = fail(&force(Algorithm::Ring, Some(true)), ask);
    assert!(
        error.to_string().contains("no plan over windows"),
        "{error}"
    );
    let error = fail(&force(Algorithm::MeshTwoShot, Some(true)), ask);
    assert!(
        error.to_string().contains("not windows of every peer"),
        "{error}"
    );
    let strict = Request {
        deterministic: true,
        ..ask
    };
    let error = fail(&force(Algorithm::Ring, None), strict);
    assert!(matches!(
        error,
        SelectError::Forced {
            algorithm: Family::Algorithm(Algorithm::Ring),
            ..
        }
    ));
    assert!(
        error.to_string().contains("left fold in rank order"),
        "{error}"
    );
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

#[test]
fn an_override_may_say_how_large_puts_are() {
    let rule = Override {
        op: Some(OpKind::AllReduce),
        bytes: 0..=u64::MAX,
        algorithm: Algorithm::Ring.into(),
        windowed: None,
        put_bytes: Some(8192),
    };
    let overrides = Overrides { rules: vec![rule] };
    let chosen = select(&request(Op::AllReduce, 1 << 20), &classical(4), &overrides).unwrap();
    assert_eq!(chosen.winner().put_bytes, 8192);
    assert_eq!(chosen.winner().pieces, (1 << 20) / 4 / 8192);
}

/// Else the two ends would cut a message differently, and call that a mismatch of theirs.
#[test]
fn a_rule_for_a_send_is_one_for_its_receive() {
    for kind in [OpKind::Send, OpKind::Recv] {
        let rules = Overrides {
            rules: vec![Override {
                op: Some(kind),
                bytes: 0..=MIB,
                algorithm: Algorithm::Direct.into(),
                windowed: None,
                put_bytes: Some(4096),
            }],
        };
        for op in [Op::Send { to: 1 }, Op::Recv { from: 0 }] {
            assert!(rules.find(op, 100).is_some(), "{kind} for {op}");
        }
        assert!(rules.find(Op::Barrier, 0).is_none());
    }
}

/// Ranks of a machine of two cores whose messages are calls of the operating system.
fn sockets(ranks: u32, message_ps: u64) -> Fabric {
    let link = Link {
        alpha_ps: 1_500_000,
        rate: Rate::bytes_per_second(4_000_000_000),
        by_core: true,
        message_ps,
        port: None,
    };
    let speeds = Speeds {
        message_ps: 30_000,
        switch_ps: 1_200_000,
        ..Speeds::default()
    };
    let node = Node {
        cores: 2,
        exit: Rate::UNKNOWN,
    };
    Fabric::new(&vec![0; ranks as usize], &[node], speeds, |_, _| link).unwrap()
}

#[test]
fn fewer_messages_are_chosen_where_each_is_a_call_of_the_system() {
    const SOCKET_PS: u64 = 2_500_000;
    let choose_for = |bytes, op, fabric: &Fabric| {
        let got = select(&request(op, bytes), fabric, &Overrides::NONE).unwrap();
        got.winner().plan
    };
    let choose = |op, fabric: &Fabric| choose_for(4, op, fabric);
    let mesh = Plan::Flat(Algorithm::MeshOneShot);
    for ranks in [4, 8] {
        let (cheap, dear) = (sockets(ranks, 0), sockets(ranks, SOCKET_PS));
        assert_eq!(choose(Op::AllReduce, &cheap), mesh, "{ranks}");
        let chosen = choose(Op::AllReduce, &dear);
        assert_eq!(chosen, Plan::Flat(Algorithm::RecursiveDoubling), "{ranks}");
        // The others wait while the root sends: it has a core nearly to itself. A tree keeps both cores busy with what
        // takes longer than a turn.
        let broadcast = Op::Broadcast { root: 0 };
        assert_eq!(choose(broadcast, &dear), mesh, "{ranks}");
        let tree = Plan::Flat(Algorithm::Binomial);
        assert_eq!(choose_for(32 << 10, broadcast, &dear), tree, "{ranks}");
        assert_ne!(cheap.fingerprint(), dear.fingerprint());
    }
    // Two ranks on a core each: a message and its answer at both ends, and the way.
    let two = time(
        Algorithm::MeshOneShot,
        Op::AllReduce,
        0,
        1,
        &sockets(2, SOCKET_PS),
    );
    assert_near(two, 1_500_000 + 2 * u128::from(SOCKET_PS));
}

/// Of a call with a root nobody waits for all: its core is nearly the root's own, and trees keep all cores at work.
#[test]
fn the_root_of_ranks_that_share_cores_has_one_to_itself() {
    let rate = Rate::bytes_per_second(4_000_000_000);
    let link = Link {
        alpha_ps: 100_000,
        rate,
        by_core: true,
        message_ps: 0,
        port: None,
    };
    let speeds = Speeds {
        message_ps: 30_000,
        switch_ps: 1_200_000,
        reduce: rate,
        copy: rate,
        ..Speeds::default()
    };
    let node = Node {
        cores: 2,
        exit: Rate::UNKNOWN,
    };
    let fabric = Fabric::new(&[0; 8], &[node], speeds, |_, _| link).unwrap();
    let rooted = [Op::Broadcast { root: 0 }, Op::Reduce { root: 0 }];
    for op in rooted {
        let chosen = |bytes| {
            let got = select(&request(op, bytes), &fabric, &Overrides::NONE).unwrap();
            got.winner().plan
        };
        assert_eq!(chosen(64), Plan::Flat(Algorithm::MeshOneShot), "{op}");
        assert_eq!(chosen(64 << 10), Plan::Flat(Algorithm::Binomial), "{op}");
    }
    // Seven messages, those that come to the three other ranks of the core, and what a rank copies behind the last.
    let few = time(Algorithm::MeshOneShot, rooted[0], 0, 1, &fabric);
    let many = time(Algorithm::MeshOneShot, rooted[0], 64 << 10, 1, &fabric);
    assert_near(many - few, 11 * (64 << 10) * 250);
}
