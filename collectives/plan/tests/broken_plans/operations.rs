//! What is particular to an operation: roots, blocks, acknowledgements.

use super::*;

#[test]
fn a_broadcast_without_acknowledgement() {
    let mut plan = plan(Algorithm::MeshOneShot, Op::Broadcast { root: 0 }, 2);
    plan[0]
        .steps
        .retain(|step| matches!(step.action, Action::Put { .. } | Action::Copy { .. }));
    plan[0].max_skew = 0;
    plan[1].steps.retain(|step| !is_put(step.action));
    let error = reject(&plan, PLAIN);
    let op = Op::Broadcast { root: 0 };
    assert_eq!((error.rank, error.fault), (0, Fault::NeverWaits { op }));
}

#[test]
fn a_leaf_that_tells_nobody() {
    let op = Op::Broadcast { root: 0 };
    let mut plan = plan(Algorithm::Chain, op, 3);
    let hears = find(&plan[1], 1, is_wait);
    plan[1].steps.drain(hears..hears + 2);
    let signals = find(&plan[2], 0, is_put);
    plan[2].steps.remove(signals);
    for program in &mut plan {
        program.max_skew = program
            .steps
            .iter()
            .map(|step| step.skew)
            .max()
            .unwrap_or(0);
    }
    let error = reject(&plan, PLAIN);
    assert_eq!((error.rank, error.fault), (2, Fault::NeverHeard { op }));
}

#[test]
fn a_barrier_that_forgets_a_rank() {
    let mut plan = plan(Algorithm::Dissemination, Op::Barrier, 4);
    for program in &mut plan {
        program.steps.truncate(3);
    }
    let one = Settings { pieces: 1, ..PLAIN };
    let error = reject(&plan, one);
    let (op, unheard) = (Op::Barrier, vec![1, 2]);
    assert_eq!(error.fault, Fault::Unheard { op, unheard });
}

#[test]
fn another_root_on_one_rank() {
    let mut plan = plan(Algorithm::Chain, Op::Broadcast { root: 0 }, 3);
    plan[2] = programs(Algorithm::Chain, Op::Broadcast { root: 1 }, 3, false)
        .unwrap()
        .remove(2);
    assert!(matches!(reject(&plan, PLAIN).fault, Fault::Set { .. }));
}

#[test]
fn data_from_the_wrong_root() {
    let mut plan = plan(Algorithm::MeshOneShot, Op::AllGather, 2);
    // Rank 1 keeps no copy of its own block, and takes that of rank 0 as if it were the result.
    let copy = find(&plan[1], 0, |action| {
        matches!(
            action,
            Action::Copy {
                src: Place::Local { .. },
                ..
            }
        )
    });
    plan[1].steps.remove(copy);
    let error = reject(&plan, PLAIN);
    assert!(
        matches!(error.fault, Fault::Undefined { block: 1, .. }),
        "{error}"
    );
    verify(&plan, IN_PLACE).unwrap();
}

#[test]
fn a_reduce_that_nobody_lets_go() {
    // Without the root's signals a sender has heard of nobody.
    let mut plan = plan(Algorithm::MeshOneShot, Op::Reduce { root: 1 }, 3);
    plan[1]
        .steps
        .retain(|step| !matches!(step.action, Action::Put { .. }));
    for rank in [0, 2] {
        plan[rank].steps.retain(|step| is_put(step.action));
        plan[rank].max_skew = 0;
    }
    let error = reject(&plan, PLAIN);
    let op = Op::Reduce { root: 1 };
    assert_eq!((error.rank, error.fault), (0, Fault::NeverWaits { op }));
}

#[test]
fn a_reduce_that_forgets_a_subtree() {
    let mut plan = plan(Algorithm::Binomial, Op::Reduce { root: 0 }, 4);
    // Rank 2 hands on its own input alone.
    let step = find(&plan[2], 0, |action| {
        matches!(
            action,
            Action::Put {
                value: Value::Reduce { .. },
                ..
            }
        )
    });
    if let Action::Put { value, .. } = &mut plan[2].steps[step].action {
        *value = Value::Copy(local(Buffer::In));
    }
    let error = reject(&plan, PLAIN);
    // The root's last addition no longer completes the sum.
    assert_eq!(error.rank, 0);
    assert!(
        matches!(error.fault, Fault::Last { marked: true, .. }),
        "{error}"
    );
}

#[test]
fn a_gather_in_another_order() {
    let mut plan = plan(Algorithm::Binomial, Op::Gather { root: 0 }, 4);
    // Rank 2 puts what came from rank 3 at its own place, and the other way round.
    let mut copies = 0;
    for step in &mut plan[2].steps {
        if let Action::Copy { dst, src } = &mut step.action {
            let swap = |place: Place| {
                let Place::Local { buffer, blocks } = place else {
                    return place;
                };
                let blocks = Blocks::one(5 - blocks.first);
                match buffer {
                    Buffer::Scratch => Place::Local { buffer, blocks },
                    _ => place,
                }
            };
            (*dst, *src) = (swap(*dst), swap(*src));
            copies += 1;
        }
    }
    assert_eq!(copies, 2);
    // A block never goes to the place of another where blocks may differ in size.
    let error = reject(&plan, PLAIN);
    assert!(matches!(error.fault, Fault::Step { .. }), "{error}");
}

#[test]
fn a_gather_without_the_roots_own_block() {
    let mut plan = plan(Algorithm::MeshOneShot, Op::Gather { root: 2 }, 3);
    let own = find(&plan[2], 0, |action| {
        matches!(
            action,
            Action::Copy {
                src: Place::Local { .. },
                ..
            }
        )
    });
    plan[2].steps.remove(own);
    let error = reject(&plan, PLAIN);
    assert!(
        matches!(error.fault, Fault::Undefined { block: 2, .. }),
        "{error}"
    );
    // In place it is there already.
    verify(&plan, IN_PLACE).unwrap();
}

#[test]
fn a_scatter_without_acknowledgement() {
    let mut plan = plan(Algorithm::MeshOneShot, Op::Scatter { root: 0 }, 3);
    let hears = find(&plan[0], 1, is_wait);
    plan[0].steps.drain(hears..hears + 2);
    let signals = find(&plan[2], 0, is_put);
    plan[2].steps.remove(signals);
    let error = reject(&plan, PLAIN);
    let (op, unheard) = (Op::Scatter { root: 0 }, vec![2]);
    assert_eq!(
        (error.rank, error.fault),
        (0, Fault::Unheard { op, unheard })
    );
}

#[test]
fn an_all_to_all_that_mixes_up_senders() {
    let mut plan = plan(Algorithm::MeshOneShot, Op::AllToAll, 3);
    // Rank 0 stores what came from rank 1 as if it were from rank 2, and the other way round.
    let swap = |blocks: &mut Blocks| {
        if blocks.first >= 4 {
            *blocks = Blocks::one(9 - blocks.first);
        }
    };
    for step in &mut plan[0].steps {
        match &mut step.action {
            Action::Wait { blocks, .. } => swap(blocks),
            Action::Copy {
                dst: Place::Local { blocks, .. },
                src: Place::Slot { blocks: from, .. },
            } => {
                swap(blocks);
                swap(from);
            }
            _ => {}
        }
    }
    let error = reject(&plan, PLAIN);
    let Fault::Wrong { got, wanted, .. } = error.fault else {
        panic!("{error}")
    };
    assert_eq!((got.as_str(), wanted.as_str()), ("x2[0].0", "x1[0].0"));
}

#[test]
fn an_all_to_all_right_only_out_of_place() {
    let mut plan = plan(Algorithm::Pairwise, Op::AllToAll, 3);
    // Rank 0 stores what comes before its own goes.
    let rank = &mut plan[0];
    *rank = rank.expanded();
    rank.max_skew = 0;
    rank.steps.iter_mut().for_each(|step| step.skew = 0);
    let put = find(rank, 0, is_put);
    rank.steps[put..put + 4].rotate_left(1);
    (rank.steps[put].begins, rank.steps[put + 3].begins) = (true, false);
    verify(&plan, PLAIN).unwrap();
    let error = reject(&plan, IN_PLACE);
    assert!(matches!(error.fault, Fault::Wrong { .. }), "{error}");
}

#[test]
fn a_rank_that_takes_all_its_partners_in_one_leg() {
    let mut plan = plan(Algorithm::Pairwise, Op::AllToAll, 4);
    plan[0]
        .steps
        .iter_mut()
        .for_each(|step| step.begins = false);
    let error = reject(&plan, PLAIN);
    assert!(matches!(error.fault, Fault::Deadlock { .. }), "{error}");
    // One piece goes through all steps in one leg as in many.
    verify(&plan, Settings { pieces: 1, ..PLAIN }).unwrap();
}

#[test]
fn legs_where_pieces_have_something_that_lasts() {
    for (algorithm, op) in [
        (Algorithm::Bruck, Op::AllToAll),
        (Algorithm::MeshOneShot, Op::AllReduce),
    ] {
        let mut plan = plan(algorithm, op, 4);
        plan[1].steps[2].begins = true;
        let error = reject(&plan, PLAIN);
        assert!(
            matches!(error.fault, Fault::Step { why } if why.contains("legs")),
            "{error}"
        );
    }
}

#[test]
fn an_all_to_all_by_way_of_others_does_not_know_sizes() {
    let plan = plan(Algorithm::Bruck, Op::AllToAll, 4);
    let unequal = Settings {
        unequal: true,
        ..PLAIN
    };
    assert!(matches!(reject(&plan, unequal).fault, Fault::Size { .. }));
    // Nor has any other operation sizes that only two ranks know.
    let gather = sound(programs(Algorithm::Ring, Op::AllGather, 3, false).unwrap());
    assert!(matches!(reject(&gather, unequal).fault, Fault::Set { .. }));
}

#[test]
fn a_written_input() {
    let mut plan = plan(Algorithm::MeshOneShot, Op::AllGather, 3);
    let receive = find(&plan[1], 0, |action| {
        matches!(
            action,
            Action::Copy {
                src: Place::Slot { .. },
                ..
            }
        )
    });
    if let Action::Copy {
        dst: Place::Local { buffer, .. },
        ..
    } = &mut plan[1].steps[receive].action
    {
        *buffer = Buffer::In;
    }
    let error = reject(&plan, PLAIN);
    assert_eq!((error.rank, error.step), (1, Some(receive)));
    assert!(matches!(error.fault, Fault::Step { .. }), "{error}");
}
