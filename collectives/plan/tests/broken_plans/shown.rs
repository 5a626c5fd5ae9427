//! Puts that are shown: all of a group, to everybody, of one value.

use unisono_plan::verify::check_shown;

use super::*;

/// The program of one rank, broken, is refused.
fn refused(break_it: impl FnOnce(&mut Program)) -> VerifyError {
    refused_of(Op::AllGather, break_it)
}

fn refused_of(op: Op, break_it: impl FnOnce(&mut Program)) -> VerifyError {
    let mut plan = plan(Algorithm::MeshShared, op, 4);
    check_shown(&plan[1]).unwrap();
    break_it(&mut plan[1]);
    check_shown(&plan[1]).expect_err("a broken plan was accepted")
}

#[test]
fn a_put_that_is_missing() {
    let error = refused(|program| {
        let put = find(program, 2, is_put);
        program.steps.remove(put);
    });
    assert!(matches!(error.fault, Fault::Step { .. }), "{error}");
    assert!(error.step.is_some(), "{error}");
    let error = refused(|program| program.steps.truncate(find(program, 1, is_put)));
    assert_eq!(error.step, None);
}

#[test]
fn a_put_to_the_same_rank_twice() {
    let error = refused(|program| {
        let puts = [0, 1].map(|nth| find(program, nth, is_put));
        program.steps[puts[1]] = program.steps[puts[0]];
    });
    assert_eq!(error.step, Some(1));
}

/// The signals of a barrier are shown, too, and all that a rank has for the others of an all_to_all or a reduce_scatter.
#[test]
fn a_put_of_all_that_is_missing() {
    for op in [Op::Barrier, Op::AllToAll, Op::ReduceScatter] {
        refused_of(op, |program| {
            let put = find(program, 2, is_put);
            program.steps.remove(put);
        });
    }
}

#[test]
fn a_put_of_something_else() {
    let error = refused(|program| {
        let put = find(program, 1, is_put);
        if let Action::Put { value, .. } = &mut program.steps[put].action {
            *value = Value::Copy(local(Buffer::Out));
        }
    });
    assert_eq!(error.step, Some(1));
}

#[test]
fn steps_between_the_puts() {
    let error = refused(|program| {
        let (put, wait) = (find(program, 1, is_put), find(program, 0, is_wait));
        program.steps.swap(put, wait);
    });
    assert_eq!(error.step, Some(1));
}

#[test]
fn puts_of_other_pieces() {
    let error = refused(|program| {
        let put = find(program, 1, is_put);
        program.steps[put].skew += 1;
    });
    assert_eq!(error.step, Some(1));
}

/// What a rank has of the message goes to its neighbour alone.
#[test]
fn a_plan_that_hands_on() {
    let plan = plan(Algorithm::Ring, Op::AllGather, 4);
    assert!(plan.iter().all(|program| check_shown(program).is_err()));
}
