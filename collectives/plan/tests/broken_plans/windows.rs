//! Windows: peers that read each other, and inputs that are overwritten while they are read.

use super::*;

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
fn a_sum_read_before_its_rank_has_told_of_it() {
    let sound = plan(Algorithm::MeshRead, Op::AllReduce, 2);
    verify(&sound, PLAIN).unwrap();
    verify(&sound, IN_PLACE).unwrap();
    let mut plan = sound;
    // Rank 0 reads rank 1's block of the output, and hears then that it is there.
    let copy = find(&plan[0], 0, |action| matches!(action, Action::Copy { .. }));
    let wait = find(&plan[0], 2, is_wait);
    let read = plan[0].steps.remove(copy);
    plan[0].steps.insert(wait, read);
    let error = reject(&plan, PLAIN);
    assert_eq!((error.rank, error.step), (0, Some(wait)));
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
