//! Results that lack a contribution, or have one twice or in another order.

use super::*;

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
