//! Ranks on islands: what the cluster file says about links decides which plan runs.

use std::sync::atomic::{AtomicU32, Ordering};

use unisono::bootstrap::NodeId;
use unisono::plan::OpKind;
use unisono::plan::select::{Override, Overrides};
use unisono::plan::template::Family;
use unisono::{Communicator, DataType, Error, Init, InitOptions, Op, ReduceOp, Rules, UniqueId};
use unisono_tests::{Collective, Try, threads};

/// What the cluster file says about the link of each two ranks: bandwidth and latency.
fn joined(
    options: &mut InitOptions,
    link: impl Fn(usize, usize) -> (&'static str, &'static str),
    more: &str,
) {
    let ranks = options.size as usize;
    let mut links = String::new();
    for (a, b) in (0..ranks).flat_map(|a| (a + 1..ranks).map(move |b| (a, b))) {
        let (rate, latency) = link(a, b);
        links += &format!(
            "- {{from: rank {a}, to: rank {b}, kind: shm, bandwidth: {rate}, latency: {latency}}}\n"
        );
    }
    // Tests of one process may use the same ranks at once.
    static FILES: AtomicU32 = AtomicU32::new(0);
    let file = std::env::temp_dir().join(format!(
        "unisono-islands-{}-{}.yaml",
        std::process::id(),
        FILES.fetch_add(1, Ordering::Relaxed)
    ));
    std::fs::write(&file, format!("links:\n{links}{more}")).expect("a file");
    let said = Init::from_variables([])
        .cluster_file(&file)
        .rank(options.rank)
        .size(options.size)
        .unique_id(UniqueId::create(&unisono::bootstrap::InterfaceFilter::loopback(), 0).unwrap())
        .options();
    std::fs::remove_file(&file).expect("the file is there");
    let said = said.expect("a good file");
    options.overlays = said.overlays;
    options.rules = said.rules;
}

/// Everything fast within a box, slow between boxes.
fn boxes(options: &mut InitOptions, box_of: &[u32], more: &str) {
    let link = |a: usize, b: usize| match box_of[a] == box_of[b] {
        true => ("100GB/s", "1us"),
        false => ("1GB/s", "5us"),
    };
    joined(options, link, more);
}

fn right(world: &Communicator, collective: Collective, count: usize) {
    for in_place in [false, true] {
        let attempt = Try {
            collective,
            count,
            op: ReduceOp::Sum.into(),
            in_place,
            salt: count as u64,
        };
        let done = attempt.run_as(world, DataType::F32).expect("it runs");
        done.unwrap_or_else(|wrong| panic!("{wrong}"));
    }
}

#[test]
fn long_messages_between_two_boxes_go_level_by_level() {
    // Side by side, interleaved, and boxes of unequal size.
    for box_of in [
        &[0, 0, 0, 0, 1, 1, 1, 1][..],
        &[0, 1, 0, 1, 0, 1],
        &[0, 0, 0, 1, 1],
    ] {
        let ranks = box_of.len() as u32;
        threads(
            ranks,
            move |options| boxes(options, box_of, ""),
            |world| {
                for op in [Op::AllReduce, Op::AllGather, Op::ReduceScatter] {
                    let explained = world.explain(op, 4 << 20, DataType::F32).expect("a plan");
                    let text = explained.to_string();
                    assert_eq!(explained.algorithm(), "hierarchical", "{text}");
                    assert!(text.contains("* hierarchical:"), "{text}");
                }
                for count in [1 << 18, 100_003] {
                    right(&world, Collective::AllReduce, count);
                    right(&world, Collective::AllGather, count / 8);
                    right(&world, Collective::AllGatherV, count / 8);
                    right(&world, Collective::ReduceScatter, count / 8);
                    right(&world, Collective::Broadcast(1), count);
                    right(&world, Collective::Reduce(1), count);
                }
                world.finalize().expect("finalize");
            },
        );
    }
}

#[test]
fn two_nodes_exchange_as_little_as_can_be_by_their_cards() {
    threads(
        8,
        |options| options.node_id = Some(NodeId([1 + (options.rank / 4) as u8; 16])),
        |world| {
            // Over tcp only sums leave a node, a quarter by each rank.
            let explained = world
                .explain(Op::AllReduce, 4 << 20, DataType::F32)
                .unwrap();
            assert_eq!(explained.algorithm(), "hierarchical", "{explained}");
            let text = world.bottleneck(&explained).unwrap().to_string();
            assert!(text.contains("what leaves node"), "{text}");
            for count in [1 << 18, 100_003] {
                right(&world, Collective::AllReduce, count);
                right(&world, Collective::Broadcast(5), count);
            }
            world.finalize().expect("finalize");
        },
    );
}

#[test]
fn part_of_a_mesh_uses_part_of_its_links_and_says_so() {
    threads(
        8,
        |_| {},
        |world| {
            let parts = world.split(Some(world.rank() % 2), world.rank() as i64);
            let part = parts.expect("split").expect("a part");
            let explained = part.explain(Op::AllReduce, 1 << 20, DataType::F32).unwrap();
            let bottleneck = part.bottleneck(&explained).expect("of this communicator");
            let text = bottleneck.to_string();
            assert!(
                text.contains("3 of each device's 7 shm links; 4 lead to ranks outside"),
                "{text}"
            );
            assert!(text.contains("The busiest is shm from rank"), "{text}");
            let other = world
                .explain(Op::AllReduce, 1 << 20, DataType::F32)
                .unwrap();
            let wrong = part
                .bottleneck(&other)
                .expect_err("of another communicator");
            assert!(wrong.to_string().contains("of 8 ranks"), "{wrong}");
            let front = part.front(Op::AllReduce, DataType::F32).expect("a front");
            let again = part.front(Op::AllReduce, DataType::F32).expect("a front");
            assert!(std::sync::Arc::ptr_eq(&front, &again), "made once");
            for bytes in [8, 4096, 1 << 20] {
                let chosen = part.explain(Op::AllReduce, bytes, DataType::F32).unwrap();
                let segment = front.at(bytes).expect("every size has one");
                assert_eq!(segment.label, chosen.selection().winner().label);
            }
            part.finalize().expect("finalize");
            world.finalize().expect("finalize");
        },
    );
}

/// The double and single links of the cube mesh of eight devices.
const CUBE_MESH: [(usize, usize, &str); 16] = [
    (0, 3, "50GB/s"),
    (0, 4, "50GB/s"),
    (1, 2, "50GB/s"),
    (1, 5, "50GB/s"),
    (2, 3, "50GB/s"),
    (4, 7, "50GB/s"),
    (5, 6, "50GB/s"),
    (6, 7, "50GB/s"),
    (0, 1, "25GB/s"),
    (0, 2, "25GB/s"),
    (1, 3, "25GB/s"),
    (4, 5, "25GB/s"),
    (4, 6, "25GB/s"),
    (5, 7, "25GB/s"),
    (2, 6, "25GB/s"),
    (3, 7, "25GB/s"),
];

/// Pairs with a link of their own are fast; others go by the host, slowly.
fn direct(
    a: usize,
    b: usize,
    fast: &[(usize, usize, &'static str)],
) -> (&'static str, &'static str) {
    let link = fast.iter().find(|(one, other, _)| (*one, *other) == (a, b));
    link.map_or(("1GB/s", "5us"), |(.., rate)| (rate, "1us"))
}

#[test]
fn long_messages_take_rings_or_trees_where_few_ranks_are_joined_directly() {
    // A cube mesh; a full mesh whose link between 0 and 1 is dead; a ring in another order.
    let dead: Vec<(usize, usize, &str)> = (0..5)
        .flat_map(|a| (a + 1..5).map(move |b| (a, b, "50GB/s")))
        .filter(|(a, b, _)| (*a, *b) != (0, 1))
        .collect();
    let ring = [(0, 2), (2, 4), (1, 4), (1, 5), (3, 5), (0, 3)].map(|(a, b)| (a, b, "50GB/s"));
    for (ranks, fast) in [(8, CUBE_MESH.to_vec()), (5, dead), (6, ring.to_vec())] {
        threads(
            ranks,
            {
                let fast = fast.clone();
                move |options| joined(options, |a, b| direct(a, b, &fast), "")
            },
            |world| {
                for op in [Op::AllReduce, Op::AllGather, Op::ReduceScatter] {
                    let explained = world.explain(op, 16 << 20, DataType::F32).expect("a plan");
                    let text = explained.to_string();
                    let chosen = explained.algorithm();
                    assert!(["rings", "trees"].contains(&chosen), "{text}");
                    assert!(text.contains("the lowest predicted time"), "{text}");
                }
                for count in [1 << 18, 100_003] {
                    right(&world, Collective::AllReduce, count);
                    right(&world, Collective::AllGather, count / 8);
                    right(&world, Collective::AllGatherV, count / 8);
                    right(&world, Collective::ReduceScatter, count / 8);
                }
                world.finalize().expect("finalize");
            },
        );
    }
}

#[test]
fn rings_and_trees_by_name_are_right() {
    for family in [Family::Rings, Family::Trees] {
        let force = |op| Override {
            op: Some(op),
            bytes: 0..=u64::MAX,
            algorithm: family,
            windowed: None,
            put_bytes: None,
        };
        let rules = [OpKind::AllReduce, OpKind::AllGather, OpKind::ReduceScatter].map(force);
        threads(
            8,
            move |options| {
                joined(options, |a, b| direct(a, b, &CUBE_MESH), "");
                let rules = rules.to_vec();
                options.rules = Rules::new(move |_, _| Overrides {
                    rules: rules.clone(),
                });
            },
            move |world| {
                for count in [0, 1, 7, 1000] {
                    for collective in Collective::all(world.size()) {
                        right(&world, collective, count);
                    }
                }
                let explained = world.explain(Op::AllReduce, 8, DataType::F32).unwrap();
                assert_eq!(explained.algorithm(), family.name());
                world.finalize().expect("finalize");
            },
        );
    }
}

#[test]
fn hierarchical_by_name_is_right_also_where_it_is_not_the_fastest() {
    for box_of in [&[0, 0, 1, 1][..], &[0, 1, 1, 0, 1]] {
        threads(
            box_of.len() as u32,
            move |options| boxes(options, box_of, "algorithms: [{use: hierarchical}]\n"),
            |world| {
                for count in [0, 1, 7, 1000] {
                    for collective in Collective::all(world.size()) {
                        right(&world, collective, count);
                    }
                }
                let explained = world.explain(Op::AllReduce, 8, DataType::F32).unwrap();
                assert_eq!(explained.algorithm(), "hierarchical");
                assert!(explained.to_string().contains("an override forces it"));
                world.finalize().expect("finalize");
            },
        );
    }
}

#[test]
fn what_is_forced_and_not_there_is_an_error_that_says_why() {
    let force = |family| {
        Rules::new(move |_, _| Overrides {
            rules: vec![Override {
                op: None,
                bytes: 0..=u64::MAX,
                algorithm: family,
                windowed: None,
                put_bytes: None,
            }],
        })
    };
    for (family, why) in [
        (Family::Hierarchical, "no islands"),
        (Family::Trees, "joined alike"),
        (Family::Rings, "joined alike"),
        (Family::Routes, "unisono plan"),
    ] {
        threads(
            3,
            move |options| options.rules = force(family),
            move |world| {
                let mut data = [1.0f32; 5];
                let done = world.all_reduce_in_place(&mut data, ReduceOp::Sum);
                let error = done.expect_err("there is none");
                assert!(matches!(error, Error::Unsupported { .. }), "{error:?}");
                let text = error.to_string();
                assert!(text.contains(family.name()) && text.contains(why), "{text}");
            },
        );
    }
}
