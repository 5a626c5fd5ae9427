//! Right programs with one thing broken, each rejected for that reason, at that place.

use unisono_plan::Algorithm;
use unisono_plan::ir::{Action, Blocks, Buffer, Op, Place, Program, Step, Value};
use unisono_plan::verify::{Fault, Settings, VerifyError, Waits, programs, verify};

const PLAIN: Settings = Settings {
    slots: 2,
    pieces: 3,
    in_place: false,
    unequal: false,
};
const IN_PLACE: Settings = Settings {
    in_place: true,
    ..PLAIN
};
const BLOCK_0: Blocks = Blocks::one(0);

fn plan(algorithm: Algorithm, op: Op, ranks: u32) -> Vec<Program> {
    sound(programs(algorithm, op, ranks, false).unwrap())
}

fn windowed(algorithm: Algorithm, op: Op, ranks: u32) -> Vec<Program> {
    sound(programs(algorithm, op, ranks, true).unwrap())
}

/// What is broken below was whole before.
///
/// Without loops, so that one step can be changed and no other.
fn sound(plan: Vec<Program>) -> Vec<Program> {
    let plan: Vec<Program> = plan.iter().map(Program::expanded).collect();
    for settings in [PLAIN, IN_PLACE] {
        verify(&plan, settings).unwrap();
    }
    plan
}

fn reject(plan: &[Program], settings: Settings) -> VerifyError {
    let error = verify(plan, settings).expect_err("a broken plan was accepted");
    assert!(error.to_string().starts_with("rank "), "{error}");
    error
}

/// The index of the `nth` step that matches.
fn find(program: &Program, nth: usize, matches: impl Fn(Action) -> bool) -> usize {
    let steps = program.steps.iter().enumerate();
    let mut found = steps.filter(|(_, step)| matches(step.action));
    found.nth(nth).expect("no such step").0
}

fn is_reduce(action: Action) -> bool {
    matches!(action, Action::Reduce { .. })
}

fn is_put(action: Action) -> bool {
    matches!(action, Action::Put { .. })
}

fn is_wait(action: Action) -> bool {
    matches!(action, Action::Wait { .. })
}

fn is_release(action: Action) -> bool {
    matches!(action, Action::Release { .. })
}

fn local(buffer: Buffer) -> Place {
    Place::Local {
        buffer,
        blocks: BLOCK_0,
    }
}

fn at(skew: u16, action: Action) -> Step {
    Step::new(action, skew)
}

#[test]
fn a_dropped_contribution() {
    let mut plan = plan(Algorithm::MeshOneShot, Op::ReduceScatter, 4);
    // The last sum of rank 2 becomes a copy of the sum so far.
    let step = find(&plan[2], 2, is_reduce);
    let Action::Reduce { dst, a, .. } = plan[2].steps[step].action else {
        unreachable!()
    };
    plan[2].steps[step].action = Action::Copy { dst, src: a };
    let error = reject(&plan, PLAIN);
    assert_eq!((error.rank, error.piece), (2, Some(0)));
    let missing = vec![3];
    assert_eq!(error.fault, Fault::Missing { block: 2, missing });
}

#[test]
fn a_contribution_counted_twice() {
    let mut plan = plan(Algorithm::MeshOneShot, Op::AllReduce, 3);
    let step = find(&plan[1], 1, is_reduce);
    let Action::Reduce { b, .. } = &mut plan[1].steps[step].action else {
        unreachable!()
    };
    *b = local(Buffer::In);
    let error = reject(&plan, PLAIN);
    assert_eq!((error.rank, error.step), (1, Some(step)));
    let (block, contributor) = (0, 1);
    assert_eq!(error.fault, Fault::Twice { block, contributor });
}

#[test]
fn another_order_on_one_rank() {
    let mut plan = plan(Algorithm::MeshOneShot, Op::AllReduce, 2);
    let step = find(&plan[1], 0, is_reduce);
    let Action::Reduce { a, b, .. } = &mut plan[1].steps[step].action else {
        unreachable!()
    };
    std::mem::swap(a, b);
    let error = reject(&plan, PLAIN);
    assert_eq!(error.rank, 1);
    let Fault::Differs { mine, theirs, .. } = error.fault else {
        panic!("{error}")
    };
    assert_eq!(mine, "(x1[0].0 + x0[0].0)");
    assert_eq!(theirs, "(x0[0].0 + x1[0].0)");
}

#[test]
fn a_missing_release() {
    let mut plan = plan(Algorithm::MeshOneShot, Op::AllGather, 3);
    let step = find(&plan[0], 0, is_release);
    plan[0].steps.remove(step);
    let one = Settings { pieces: 1, ..PLAIN };
    assert_eq!(reject(&plan, one).fault, Fault::Unreleased { from: 2 });
    assert_eq!(reject(&plan, PLAIN).fault, Fault::StillHeld { from: 2 });
}

#[test]
fn an_extra_put() {
    let mut plan = plan(Algorithm::MeshOneShot, Op::AllGather, 3);
    let signal = Action::Put {
        to: 2,
        value: Value::Empty,
    };
    plan[0].steps.push(at(1, signal));
    let one = Settings { pieces: 1, ..PLAIN };
    let error = reject(&plan, one);
    assert_eq!(error.rank, 0);
    assert_eq!(error.fault, Fault::Unconsumed { to: 2, puts: 1 });
    // With more pieces the receiver takes it for the data that it waits for.
    assert!(matches!(
        reject(&plan, PLAIN).fault,
        Fault::Contents { from: 0, .. }
    ));
}

#[test]
fn waits_that_cross() {
    let mut plan = plan(Algorithm::RecursiveDoubling, Op::AllReduce, 2);
    for program in &mut plan {
        let (put, wait) = (find(program, 0, is_put), find(program, 0, is_wait));
        program.steps.swap(put, wait);
    }
    let error = reject(&plan, PLAIN);
    let Fault::Deadlock { blocked } = &error.fault else {
        panic!("{error}")
    };
    let waits: Vec<Waits> = blocked.iter().map(|blocked| blocked.waits).collect();
    assert_eq!(waits, [Waits::PutFrom(1), Waits::PutFrom(0)]);
    assert!(
        error
            .to_string()
            .contains("rank 1 at step 0, piece 0 waits for a put from rank 0")
    );
}

/// Whoever puts to several ranks may wait for all their slots first. So no rank may give a slot back only when
/// it has heard of an earlier one of those puts, though they would go one after the other.
#[test]
fn a_slot_that_comes_back_only_after_a_put_beside_it() {
    let signal = |to| {
        let value = Value::Empty;
        at(0, Action::Put { to, value })
    };
    let hear = |from| {
        let blocks = Blocks::NONE;
        [Action::Wait { from, blocks }, Action::Release { from }].map(|action| at(0, action))
    };
    let plan_with = |between: &[Step]| {
        let mut plan = plan(Algorithm::Dissemination, Op::Barrier, 3);
        // Rank 2 holds two signals of rank 0 until rank 1 has told it of the next one.
        plan[0].steps.extend([signal(2), signal(2)]);
        plan[0].steps.extend(hear(1));
        plan[0].steps.push(signal(1));
        plan[0].steps.extend(between);
        plan[0].steps.push(signal(2));
        plan[1].steps.push(signal(0));
        plan[1].steps.extend(hear(0));
        plan[1].steps.push(signal(2));
        plan[2].steps.extend(hear(1));
        (0..3).for_each(|_| plan[2].steps.extend(hear(0)));
        plan
    };
    let error = reject(&plan_with(&[]), PLAIN);
    let Fault::Deadlock { blocked } = &error.fault else {
        panic!("{error}")
    };
    assert_eq!(blocked[0].waits, Waits::SlotTo(2));
    // One after the other, with something in between, it ends.
    let mut apart = plan_with(&hear(1));
    apart[1].steps.push(signal(0));
    verify(&apart, PLAIN).unwrap();
}

#[test]
fn more_puts_ahead_than_slots() {
    let mut plan = plan(Algorithm::MeshOneShot, Op::AllReduce, 2);
    for program in &mut plan {
        program.max_skew = 3;
        for step in &mut program.steps {
            step.skew *= 3;
        }
    }
    let deep = Settings { pieces: 5, ..PLAIN };
    let error = reject(&plan, deep);
    let Fault::Deadlock { blocked } = &error.fault else {
        panic!("{error}")
    };
    assert_eq!(blocked[0].waits, Waits::SlotTo(1));
    let enough = Settings { slots: 4, ..deep };
    verify(&plan, enough).unwrap();
}

#[test]
fn a_read_after_the_release() {
    let mut plan = plan(Algorithm::MeshOneShot, Op::AllReduce, 2);
    let (reduce, release) = (find(&plan[0], 0, is_reduce), find(&plan[0], 0, is_release));
    plan[0].steps.swap(reduce, release);
    let error = reject(&plan, PLAIN);
    assert_eq!((error.rank, error.step), (0, Some(release)));
    assert_eq!(error.fault, Fault::NoSlot { from: 1 });
}

#[test]
fn a_read_before_the_wait() {
    let mut plan = plan(Algorithm::MeshOneShot, Op::AllReduce, 2);
    let (reduce, wait) = (find(&plan[1], 0, is_reduce), find(&plan[1], 0, is_wait));
    plan[1].steps.swap(reduce, wait);
    let error = reject(&plan, PLAIN);
    assert_eq!((error.rank, error.step), (1, Some(wait)));
    assert_eq!(error.fault, Fault::NoSlot { from: 0 });
}

#[test]
fn a_release_of_nothing() {
    let mut plan = plan(Algorithm::Ring, Op::AllGather, 3);
    plan[1].steps.insert(0, at(0, Action::Release { from: 2 }));
    assert_eq!(reject(&plan, PLAIN).fault, Fault::NoSlot { from: 2 });
}

#[test]
fn a_peer_read_before_its_signal() {
    let mut plan = windowed(Algorithm::MeshOneShot, Op::ReduceScatter, 2);
    let step = find(&plan[0], 0, is_reduce);
    let reduce = plan[0].steps.remove(step);
    plan[0].steps.insert(0, reduce);
    let error = reject(&plan, PLAIN);
    assert_eq!((error.rank, error.step), (0, Some(0)));
    let Fault::Race {
        owner,
        write,
        other,
        other_write,
        ..
    } = error.fault
    else {
        panic!("{error}")
    };
    // The owner's entry is what the read isn't ordered after.
    assert_eq!((owner, write, other, other_write), (1, false, 1, true));
}

#[test]
fn a_peer_that_still_reads_when_the_owner_leaves() {
    let mut plan = windowed(Algorithm::MeshOneShot, Op::Broadcast { root: 0 }, 2);
    // Rank 1 acknowledges before it has read.
    let step = find(&plan[1], 0, is_put);
    let signal = plan[1].steps.remove(step);
    let copy = find(&plan[1], 0, |action| matches!(action, Action::Copy { .. }));
    plan[1].steps.insert(copy, signal);
    let error = reject(&plan, PLAIN);
    assert_eq!(error.rank, 0);
    let Fault::Race { owner, other, .. } = error.fault else {
        panic!("{error}")
    };
    assert_eq!((owner, other), (0, 1));
}

#[test]
fn a_window_plan_right_only_out_of_place() {
    // One shot over windows without a second signal before the result is stored.
    let mut plan = windowed(Algorithm::MeshOneShot, Op::ReduceScatter, 2);
    for program in &mut plan {
        program.op = Op::AllReduce;
        (program.blocks, program.section) = (1, 1);
        for step in &mut program.steps {
            let whole = |place: &mut Place| match place {
                Place::Local { blocks, .. }
                | Place::Slot { blocks, .. }
                | Place::Peer { blocks, .. } => *blocks = BLOCK_0,
            };
            if let Action::Reduce { dst, a, b, .. } = &mut step.action {
                [dst, a, b].into_iter().for_each(whole);
            }
        }
    }
    verify(&plan, PLAIN).unwrap();
    assert!(matches!(reject(&plan, IN_PLACE).fault, Fault::Race { .. }));
}

#[test]
fn an_in_place_input_overwritten_too_early() {
    let mut plan = plan(Algorithm::MeshOneShot, Op::AllReduce, 3);
    // Rank 2 sums the others' inputs in its output, which in place is its own input.
    plan[2].scratch = Blocks::NONE;
    for step in &mut plan[2].steps {
        if let Action::Reduce { dst, a, .. } = &mut step.action {
            for place in [dst, a] {
                if *place == local(Buffer::Scratch) {
                    *place = local(Buffer::Out);
                }
            }
        }
    }
    verify(&plan, PLAIN).unwrap();
    let error = reject(&plan, IN_PLACE);
    assert_eq!(error.rank, 2);
    assert!(matches!(error.fault, Fault::Twice { .. }), "{error}");
}

#[test]
fn a_missing_last() {
    let mut plan = plan(Algorithm::Ring, Op::ReduceScatter, 4);
    let step = find(&plan[3], 0, is_reduce);
    let Action::Reduce { last, .. } = &mut plan[3].steps[step].action else {
        unreachable!()
    };
    *last = false;
    let error = reject(&plan, PLAIN);
    assert_eq!((error.rank, error.step), (3, Some(step)));
    let (block, marked) = (3, false);
    assert_eq!(error.fault, Fault::Last { block, marked });
}

#[test]
fn a_last_on_a_partial_sum() {
    let mut plan = plan(Algorithm::HalvingDoubling, Op::AllReduce, 4);
    let reduces = |action| {
        matches!(
            action,
            Action::Put {
                value: Value::Reduce { .. },
                ..
            }
        )
    };
    let step = find(&plan[0], 0, reduces);
    if let Action::Put {
        value: Value::Reduce { last, .. },
        ..
    } = &mut plan[0].steps[step].action
    {
        *last = true;
    }
    let error = reject(&plan, PLAIN);
    assert!(
        matches!(error.fault, Fault::Last { marked: true, .. }),
        "{error}"
    );
}

#[test]
fn a_read_of_scratch_that_nobody_wrote() {
    let mut plan = plan(Algorithm::MeshOneShot, Op::AllReduce, 2);
    let step = find(&plan[0], 0, is_put);
    let src = local(Buffer::Scratch);
    if let Action::Put { value, .. } = &mut plan[0].steps[step].action {
        *value = Value::Copy(src);
    }
    plan[0].scratch = BLOCK_0;
    let error = reject(&plan, PLAIN);
    let fault = Fault::Undefined {
        place: src,
        block: 0,
    };
    assert_eq!((error.step, error.fault), (Some(step), fault));
}

#[test]
fn a_block_for_the_wrong_rank() {
    let mut plan = plan(Algorithm::MeshOneShot, Op::ReduceScatter, 3);
    let step = find(&plan[0], 0, is_put);
    if let Action::Put { value, .. } = &mut plan[0].steps[step].action {
        let blocks = Blocks::one(2);
        let buffer = Buffer::In;
        *value = Value::Copy(Place::Local { buffer, blocks });
    }
    let error = reject(&plan, PLAIN);
    let Fault::Contents { held, wanted, .. } = error.fault else {
        panic!("{error}")
    };
    assert_eq!(
        (error.rank, held, wanted),
        (1, Blocks::one(2), Blocks::one(1))
    );
}

#[test]
fn pieces_out_of_step() {
    let mut plan = plan(Algorithm::MeshOneShot, Op::AllGather, 2);
    // Rank 0 puts each piece twice, the second time one round late: 0, 1, 0, 2, 1, 2.
    let late = at(1, plan[0].steps[0].action);
    plan[0].steps.insert(1, late);
    let error = reject(&plan, PLAIN);
    let Fault::Contents {
        held_piece,
        wanted_piece,
        ..
    } = error.fault
    else {
        panic!("{error}")
    };
    assert_eq!((error.rank, held_piece, wanted_piece), (1, 0, 2));
}

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
fn headers_that_contradict_the_steps() {
    let change = |change: fn(&mut Program)| {
        let mut plan = plan(Algorithm::MeshOneShot, Op::AllReduce, 3);
        plan.iter_mut().for_each(change);
        match reject(&plan, PLAIN).fault {
            Fault::Header { field, .. } => field,
            fault => panic!("{fault}"),
        }
    };
    assert_eq!(change(|program| program.max_skew = 0), "max_skew");
    assert_eq!(
        change(|program| program.max_put_blocks = 0),
        "max_put_blocks"
    );
    assert_eq!(change(|program| program.windowed = true), "windowed");
    assert_eq!(change(|program| program.scratch = BLOCK_0), "scratch");
}

#[test]
fn steps_that_mean_nothing() {
    let with = |action: Action| {
        let mut plan = plan(Algorithm::MeshOneShot, Op::Barrier, 2);
        plan[0].steps.push(at(0, action));
        let error = reject(&plan, PLAIN);
        assert_eq!(error.rank, 0);
        error.fault
    };
    let slot = Place::Slot {
        from: 1,
        blocks: BLOCK_0,
    };
    let itself = Action::Release { from: 0 };
    assert!(matches!(with(itself), Fault::Step { .. }));
    let nobody = Action::Wait {
        from: 2,
        blocks: BLOCK_0,
    };
    assert!(matches!(with(nobody), Fault::Step { .. }));
    let to_slot = Action::Copy {
        dst: slot,
        src: slot,
    };
    assert!(matches!(with(to_slot), Fault::Step { .. }));
    let outside = Action::Copy {
        dst: local(Buffer::Out),
        src: slot,
    };
    assert!(matches!(with(outside), Fault::Outside { .. }));
    let reduction = Action::Reduce {
        dst: local(Buffer::Out),
        a: slot,
        b: slot,
        last: false,
    };
    assert!(matches!(with(reduction), Fault::Step { .. }));
}

#[test]
fn sets_that_are_not_one_operation() {
    let whole = plan(Algorithm::Ring, Op::AllReduce, 3);
    let is_set = |plan: &[Program]| matches!(reject(plan, PLAIN).fault, Fault::Set { .. });
    assert!(is_set(&[]));
    assert!(is_set(&whole[..2]));
    let twice = [whole[0].clone(), whole[1].clone(), whole[1].clone()];
    assert!(is_set(&twice));
    let mut mixed = whole.clone();
    mixed[1] = plan(Algorithm::Ring, Op::ReduceScatter, 3).remove(1);
    assert!(is_set(&mixed));
    let none = Settings { pieces: 0, ..PLAIN };
    assert!(matches!(reject(&whole, none).fault, Fault::Settings { .. }));
    let few = Settings { slots: 1, ..PLAIN };
    assert!(matches!(reject(&whole, few).fault, Fault::Settings { .. }));
}

/// The rank of a plan whose program has a step that matches.
fn rank_with(plan: &[Program], matches: impl Fn(Action) -> bool) -> usize {
    let has = |program: &Program| program.steps.iter().any(|step| matches(step.action));
    plan.iter().position(has).expect("no such step")
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
    // Rank 0 stores what came in the first round before the second round's put.
    let store = find(&plan[0], 2, |action| matches!(action, Action::Copy { .. }));
    let moved: Vec<Step> = plan[0].steps.drain(store..store + 2).collect();
    let put = find(&plan[0], 1, is_put);
    plan[0].steps.splice(put..put, moved);
    verify(&plan, PLAIN).unwrap();
    let error = reject(&plan, IN_PLACE);
    assert!(matches!(error.fault, Fault::Wrong { .. }), "{error}");
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

#[test]
fn loops_that_are_none() {
    let broken = |change: fn(&mut Program)| {
        let mut plan = programs(Algorithm::Ring, Op::AllGather, 5, false).unwrap();
        verify(&plan, PLAIN).unwrap();
        assert_eq!(plan[2].loops.len(), 1);
        change(&mut plan[2]);
        reject(&plan, PLAIN).fault
    };
    let is_step = |fault: Fault| matches!(fault, Fault::Step { .. });
    assert!(is_step(broken(|program| program.loops[0].times = 0)));
    assert!(is_step(broken(|program| program.loops[0].len = 0)));
    assert!(is_step(broken(|program| program.loops[0].len = 99)));
    assert!(is_step(broken(|program| {
        let again = program.loops[0];
        program.loops.push(again);
    })));
    // Once too often, and once too few.
    let often = broken(|program| program.loops[0].times += 1);
    assert!(matches!(often, Fault::Contents { .. }), "{often}");
    let seldom = broken(|program| program.loops[0].times -= 1);
    assert!(matches!(seldom, Fault::Contents { .. }), "{seldom}");
    // A drift the other way.
    let back = broken(|program| {
        let first = program.loops[0].first as usize;
        program.steps[first].drift.block = 1;
    });
    assert!(matches!(back, Fault::Contents { .. }), "{back}");
}

#[test]
fn sets_of_blocks_that_are_not_there() {
    let mut plan = plan(Algorithm::Nhr, Op::AllGather, 6);
    let wide = |action| matches!(action, Action::Put { value, .. } if value.blocks().count > 1);
    let rank = rank_with(&plan, wide);
    let step = find(&plan[rank], 0, wide);
    if let Action::Put { value, .. } = &mut plan[rank].steps[step].action {
        *value = Value::Copy(Place::Local {
            buffer: Buffer::Out,
            blocks: Blocks::strided(0, 3, 1, 4),
        });
    }
    let error = reject(&plan, PLAIN);
    assert_eq!((error.rank as usize, error.step), (rank, Some(step)));
    assert!(matches!(error.fault, Fault::Step { .. }), "{error}");
}

#[test]
fn names_and_orders_that_are_no_permutations() {
    use unisono_plan::template::{Order, Ring, Rings, Template};
    let rings = [[0, 1, 2, 3], [0, 3, 1, 2]].map(|order| Ring::new(order, 1).unwrap());
    let rings = Template::Rings(Rings::new(rings).unwrap().into());
    let plan = rings.programs(Op::AllGather, 4, false).unwrap();
    verify(&plan, PLAIN).unwrap();
    let mut twice = plan.clone();
    for program in &mut twice {
        program.names = Some(vec![0; 8].into());
    }
    assert!(matches!(reject(&twice, PLAIN).fault, Fault::Set { .. }));
    // Names that are others on one rank.
    let mut other = plan.clone();
    other[3].names = None;
    assert!(matches!(reject(&other, PLAIN).fault, Fault::Set { .. }));
    // Two names exchanged on all ranks: everything arrives, somewhere else.
    let mut swapped = plan;
    for program in &mut swapped {
        let mut names = program.names.as_ref().unwrap().to_vec();
        names.swap(0, 1);
        program.names = Some(names.into());
    }
    let fault = reject(&swapped, PLAIN).fault;
    assert!(matches!(fault, Fault::Outside { .. }), "{fault}");
    let order = Order::new(vec![2, 0, 1]).unwrap().into();
    let algorithm = Algorithm::Ring;
    let ordered = Template::Ordered { algorithm, order };
    let mut plan = ordered.programs(Op::AllReduce, 3, false).unwrap();
    verify(&plan, PLAIN).unwrap();
    plan[0].order = Some(vec![1, 1, 1].into());
    assert!(matches!(reject(&plan, PLAIN).fault, Fault::Set { .. }));
}
