//! Ranks that share cores.

use super::*;

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
    // A few bytes come with what tells of them: all are told at once, but by a root that is ahead of few.
    assert_eq!(chosen(&shares(8), Op::AllGather, 64), shown);
    assert_eq!(chosen(&shares(8), Op::Barrier, 0), shown);
    for (ranks, is_shown) in [(2, false), (3, false), (4, true), (8, true)] {
        let plan = chosen(&shares(ranks), Op::Broadcast { root: 0 }, 8);
        assert_eq!(plan == shown, is_shown, "{ranks} ranks");
    }
    // What is for each of the others comes in one line, or to each by itself.
    for op in [Op::ReduceScatter, Op::AllToAll] {
        let sizes = [33, 48, 64, 256, 1 << 10, 16 << 10, MIB, 64 * MIB].map(|bytes| (bytes, false));
        for (bytes, is_shown) in [(4, true), (32, true)].into_iter().chain(sizes) {
            for ranks in [4, 5, 8] {
                let plan = chosen(&shares(ranks), op, bytes);
                assert_eq!(plan == shown, is_shown, "{op} {bytes}, {ranks} ranks");
            }
        }
    }
    let at_once = Plan::Flat(Algorithm::MeshSharedOneShot);
    assert_eq!(chosen(&shares(8), Op::AllReduce, 8), at_once);
    assert_eq!(chosen(&shares(8), Op::AllReduce, 64 << 10), shown);
    for op in [
        Op::AllGather,
        Op::AllReduce,
        Op::ReduceScatter,
        Op::AllToAll,
        Op::Barrier,
    ] {
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

/// Ranks of a machine of two cores whose messages are calls of the operating system.
fn sockets(ranks: u32, message_ps: u64) -> Fabric {
    sockets_of(ranks, 2, message_ps, true)
}

/// The same of so many cores; `by_core` if they move the bytes too.
fn sockets_of(ranks: u32, cores: u32, message_ps: u64, by_core: bool) -> Fabric {
    let link = Link {
        alpha_ps: 1_500_000,
        rate: Rate::bytes_per_second(4_000_000_000),
        by_core,
        message_ps,
        port: None,
    };
    let speeds = Speeds {
        message_ps: 30_000,
        switch_ps: 1_200_000,
        ..Speeds::default()
    };
    let node = Node {
        cores,
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
        // A tree has the fewest messages, but most of its levels leave a core idle: worth it for many ranks.
        let tree = Plan::Flat(Algorithm::Binomial);
        let few = match ranks {
            4 => Plan::Flat(Algorithm::RecursiveDoubling),
            _ => tree,
        };
        assert_eq!(choose(Op::AllReduce, &dear), few, "{ranks}");
        assert_eq!(choose_for(0, Op::Barrier, &dear), few, "{ranks}");
        for op in [Op::AllGather, Op::ReduceScatter] {
            let is_tree = choose_for(256, op, &dear) == tree;
            assert_eq!(is_tree, ranks == 8, "{op} {ranks}");
            assert_ne!(choose_for(MIB, op, &dear), tree, "{op} {ranks}");
        }
        // The others wait while the root sends: it has a core nearly to itself. A tree keeps both cores busy with what
        // takes longer than a turn, or with many messages.
        let broadcast = Op::Broadcast { root: 0 };
        let short = if ranks == 4 { mesh } else { tree };
        assert_eq!(choose(broadcast, &dear), short, "{ranks}");
        assert_eq!(choose_for(32 << 10, broadcast, &dear), tree, "{ranks}");
        assert_ne!(cheap.fingerprint(), dear.fingerprint());
    }
    // Of five ranks one pair, two and one are at work at the levels of a tree: a core never has two messages to move, and
    // only at the second does a first byte wait for a turn, two thirds of one.
    let five = sockets(5, SOCKET_PS);
    let level = 1_500_000 + 2 * u128::from(SOCKET_PS) * 9 / 4;
    let turn = (1_500_000 + 1_200_000) * 3 / 2 * 2 / 3;
    let tree = time(Algorithm::Binomial, Op::Barrier, 0, 1, &five);
    assert_near(tree, 6 * level + 2 * turn);
    for op in [Op::AllGather, Op::ReduceScatter] {
        assert_eq!(
            choose_for(4 << 10, op, &five),
            Plan::Flat(Algorithm::Binomial)
        );
    }
    // Three tell each other at once: who calls something else is found out by all.
    for op in [Op::AllReduce, Op::Barrier] {
        let bytes = if op == Op::Barrier { 0 } else { 400 };
        assert_eq!(choose_for(bytes, op, &sockets(3, SOCKET_PS)), mesh);
    }
    // So are scatters of few bytes: the root's core is not alone at work.
    let scatter = Op::Scatter { root: 0 };
    let eight = sockets(8, SOCKET_PS);
    assert_eq!(
        choose_for(1 << 10, scatter, &eight),
        Plan::Flat(Algorithm::Binomial)
    );
    for ranks in [5, 8, 12] {
        let many = sockets(ranks, SOCKET_PS);
        for bytes in [512 << 10, 4 * MIB] {
            assert_eq!(choose_for(bytes, scatter, &many), mesh, "{ranks}");
        }
        let gather = Op::Gather { root: 0 };
        assert_eq!(choose_for(32 << 10, gather, &many), mesh, "{ranks}");
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

/// What ranks take turns for costs more.
#[test]
fn messages_of_the_system_cost_more_where_ranks_take_turns() {
    const SOCKET_PS: u64 = 1_000_000;
    let barrier = |algorithm, fabric: &Fabric| time(algorithm, Op::Barrier, 0, 1, fabric);
    let mesh = |fabric: &Fabric| barrier(Algorithm::MeshOneShot, fabric);
    // Three messages at both ends, of which two ranks of a core each have theirs.
    let (roomy, crowded) = (
        sockets_of(4, 4, SOCKET_PS, true),
        sockets_of(4, 2, SOCKET_PS, true),
    );
    let messages = 6 * u128::from(SOCKET_PS);
    assert_near(mesh(&roomy), 1_500_000 + messages);
    let turn = 1_500_000 + 1_200_000;
    assert_near(mesh(&crowded), 1_500_000 + turn + 2 * messages * 9 / 4);
    // Of four ranks on three cores some share one, whatever the algorithm.
    let some = sockets_of(4, 3, SOCKET_PS, true);
    let by_doubling = barrier(Algorithm::RecursiveDoubling, &some);
    assert_eq!(by_doubling, barrier(Algorithm::Dissemination, &some));
    // Where cards move the bytes nothing is known of that.
    let cards = sockets_of(4, 2, SOCKET_PS, false);
    assert_near(mesh(&cards), 1_500_000 + 2 * messages);
}

/// Heads of subtrees are few where what they hand over is much.
#[test]
fn a_tree_hands_the_largest_subtrees_to_the_fewest() {
    let bytes = 64 * MIB;
    let took = time(Algorithm::Binomial, Op::AllGather, bytes, 1, &sockets(8, 1));
    // Up: an eighth between four pairs, two eighths between two, and half between one, on two cores. Down: all of it in each
    // of three rounds, between one, two and four pairs.
    let second = |bytes: u64, turns: u64| u128::from(bytes * turns) * 250;
    let up = second(bytes / 8, 4) + second(bytes / 4, 2) + second(bytes / 2, 1);
    let down = second(bytes, 1) + second(bytes, 2) + second(bytes, 4);
    let least = up + down;
    assert!(took >= least && took < least + least / 50, "{took} {least}");
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

#[test]
fn each_message_of_a_long_call_takes_time_of_a_core_that_others_want_too() {
    let fabric = shared_memory(8, 2);
    let took = |bytes, pieces| {
        time(
            Algorithm::MeshTwoShot,
            Op::AllReduce,
            bytes,
            pieces,
            &fabric,
        )
    };
    let another = |bytes| took(bytes, 9) - took(bytes, 8);
    // Two rounds, seven messages and their two ends, four ranks on a core.
    assert_near(another(2 * MIB), 2 * 7 * 2 * 4 * US);
    // The calling threads' own.
    assert_near(another(MIB), 2 * 7 * 2 * 4 * 60_000);
    // So of plans that move as much the one with fewer messages is taken.
    let shares = fabric.clone().with_shared_memory(Ok(()));
    let chosen = |bytes| {
        let request = Request {
            slot_bytes: 128 << 10,
            ..request(Op::AllReduce, bytes)
        };
        let got = select(&request, &shares, &Overrides::NONE).unwrap();
        (got.winner().plan, got.winner().pieces)
    };
    assert_eq!(chosen(512 << 10).0, Plan::Flat(Algorithm::MeshShared));
    let (plan, pieces) = chosen(64 * MIB);
    assert_ne!(plan, Plan::Flat(Algorithm::MeshShared));
    assert!(pieces <= 225, "{pieces}");
}

#[test]
fn long_messages_lie_in_windows_however_many_ranks_there_are() {
    for ranks in [2, 8] {
        let fabric = shared_memory(ranks, ranks);
        let request = Request {
            slot_bytes: 128 << 10,
            windows: true,
            ..request(Op::Send { to: 1 }, 2 * MIB)
        };
        let got = select(&request, &fabric, &Overrides::NONE).unwrap();
        assert!(got.winner().windowed, "{ranks}: {got}");
        assert_eq!(got.winner().pieces, 1);
    }
}

/// Of ranks that share memory, long sums go by a ring, and each is shown to all; in pieces of which caches hold what a core's
/// ranks have under way, where these hand lines on.
#[test]
fn long_sums_go_by_a_ring_and_are_shown() {
    let chosen = |fabric: &Fabric, bytes| {
        let asked = Request {
            slot_bytes: 128 << 10,
            ..request(Op::AllReduce, bytes)
        };
        let got = select(&asked, fabric, &Overrides::NONE).unwrap();
        (got.winner().plan, got.winner().put_bytes)
    };
    let shares = |ranks| shared_memory(ranks, 2).with_shared_memory(Ok(()));
    let ring = Plan::Flat(Algorithm::RingShared);
    assert_eq!(chosen(&shares(8), 64 * MIB), (ring, 128 << 10));
    assert_ne!(chosen(&shares(8), 64 << 10).0, ring, "so many steps");
    assert_ne!(chosen(&shared_memory(8, 2), 64 * MIB).0, ring, "not shared");
    let hands_on = |ranks| shares(ranks).that_hands_lines_on(true);
    assert_eq!(chosen(&hands_on(8), 64 * MIB), (ring, 64 << 10));
    assert_eq!(chosen(&hands_on(4), 64 * MIB), (ring, 128 << 10));
}

/// Ranks on two cores that share memory, and whose processors hand lines on.
fn handing_on(ranks: u32) -> Fabric {
    shared_memory(ranks, 2)
        .with_shared_memory(Ok(()))
        .that_hands_lines_on(true)
}

/// Ranks that are bound to cores in turns: what goes from rank to rank goes core by core.
#[test]
fn rings_go_core_by_core() {
    let order_of = |fabric: &Fabric, op| {
        let selection = select(&request(op, 64 * MIB), fabric, &Overrides::NONE).unwrap();
        let winner = selection.winner();
        let order = match &winner.template {
            Template::Ordered { order, .. } => Some(order.ranks().to_vec()),
            _ => None,
        };
        (winner.template.name(), order, winner.cost.total())
    };
    let ops = [
        (Op::AllReduce, "ring_shared"),
        (Op::ReduceScatter, "ring"),
        (Op::Reduce { root: 3 }, "chain"),
    ];
    let in_turns = handing_on(8).with_cores(&[0, 1, 0, 1, 0, 1, 0, 1]);
    let in_blocks = handing_on(8).with_cores(&[7, 7, 7, 7, 0, 0, 0, 0]);
    let by_core = Some(vec![0, 2, 4, 6, 1, 3, 5, 7]);
    for (op, name) in ops {
        let (ordered, order, took) = order_of(&in_turns, op);
        assert_eq!((ordered, order), (name, by_core.clone()), "{op}");
        assert_eq!(order_of(&in_blocks, op), (name, None, took), "{op}");
        // Of ranks that are bound to none nothing is known, and it takes longer.
        let (unbound, order, longer) = order_of(&handing_on(8).with_cores(&[]), op);
        assert_eq!((unbound, order), (name, None), "{op}");
        assert!(longer > took, "{op}");
    }
    // The first of each core decides, and the others keep their order.
    let three = handing_on(3).with_cores(&[5, 2, 5]);
    assert_eq!(order_of(&three, Op::AllReduce).1, Some(vec![0, 2, 1]));
    // Ranks with a core each are near nobody.
    let alone = handing_on(2).with_cores(&[0, 1]);
    assert!(alone.templates().is_empty());
    // What a fabric is called by does not hang on it.
    assert_eq!(in_turns.fingerprint(), handing_on(8).fingerprint());
}

/// Short sums to one rank: those of a core go to one of them, and from there on. By the model it takes no longer than where
/// all go to the root, and the root has less to do.
#[test]
fn short_reduces_go_by_one_of_each_core() {
    let chosen = |fabric: &Fabric, op, bytes| {
        let selection = select(&request(op, bytes), fabric, &Overrides::NONE).unwrap();
        selection.winner().label.to_string()
    };
    let reduce = Op::Reduce { root: 0 };
    let in_turns = |ranks: u32| {
        let cores: Vec<u32> = (0..ranks).map(|rank| rank % 2).collect();
        handing_on(ranks).with_cores(&cores)
    };
    for ranks in [4, 5, 6, 7, 8] {
        for bytes in [4, 1 << 10, 16 << 10] {
            let label = chosen(&in_turns(ranks), reduce, bytes);
            assert_eq!(label, "binomial:in_runs", "{bytes} B of {ranks}");
        }
        assert_ne!(
            chosen(&in_turns(ranks), reduce, 4 * MIB),
            "binomial:in_runs"
        );
        assert_ne!(
            chosen(&in_turns(ranks), Op::AllReduce, 4),
            "binomial:in_runs"
        );
    }
    // Whoever it is.
    for (ranks, root) in (5..=8).flat_map(|ranks| (0..ranks).map(move |root| (ranks, root))) {
        let label = chosen(&in_turns(ranks), Op::Reduce { root }, 4);
        assert_eq!(label, "binomial:in_runs", "of {ranks} to {root}");
    }
    // By its algorithm's name too.
    let rule = Override {
        op: Some(OpKind::Reduce),
        bytes: 0..=MIB,
        algorithm: Algorithm::Binomial.into(),
        windowed: None,
        put_bytes: None,
    };
    let forced = Overrides { rules: vec![rule] };
    let selection = select(&request(reduce, 4), &in_turns(8), &forced).unwrap();
    assert_eq!(selection.winner().label, "binomial:in_runs");
    // In their own order as well.
    let in_blocks = handing_on(4).with_cores(&[3, 3, 8, 8]);
    assert_eq!(chosen(&in_blocks, reduce, 4), "binomial:in_runs");
    // Where a core has but one, the root's own put to it as they do anyway; and cores with more ranks than the first are no runs.
    for cores in [&[0, 1, 0][..], &[0, 1, 1], &[0, 1, 1, 1]] {
        let fabric = handing_on(cores.len() as u32).with_cores(cores);
        let labels = fabric
            .templates()
            .iter()
            .map(|shaped| shaped.template().label());
        assert!(!labels.into_iter().any(|label| label.ends_with("in_runs")));
    }
}

/// Ranks that share cores which hand lines on: who adds on the way, in one pass, is faster than who gathers first.
#[test]
fn long_sums_go_from_rank_to_rank_where_lines_are_handed_on() {
    let took = |hands_on, algorithm, op| {
        let fabric = shared_memory(4, 2).that_hands_lines_on(hands_on);
        time(algorithm, op, 16 * MIB, 1, &fabric)
    };
    let handed = |algorithm, op| {
        let [plain, handed] = [false, true].map(|hands_on| took(hands_on, algorithm, op));
        handed * 100 / plain
    };
    let (reduce, scatter) = (Op::Reduce { root: 0 }, Op::ReduceScatter);
    assert!((84..=86).contains(&handed(Algorithm::Ring, scatter)));
    assert_eq!(handed(Algorithm::MeshOneShot, scatter), 100);
    assert_eq!(handed(Algorithm::Ring, Op::AllGather), 100);
    assert_eq!(handed(Algorithm::Chain, reduce), 100);
    assert!(handed(Algorithm::DoubleBinaryTree, reduce) > 103);
    let fabric = shared_memory(4, 2).that_hands_lines_on(true);
    let selection = select(&request(reduce, 16 * MIB), &fabric, &Overrides::NONE).unwrap();
    assert_eq!(selection.winner().plan, Plan::Flat(Algorithm::Chain));
}
