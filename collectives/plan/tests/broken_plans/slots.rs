//! Slots and signals: puts ahead of their room, waits that cross, releases that come too early or never.

use super::*;

/// A put without bytes.
fn signal(to: u32) -> Step {
    let value = Value::Empty;
    at(0, Action::Put { to, value })
}

/// Waits for a signal and gives it back.
fn hear(from: u32) -> [Step; 2] {
    let blocks = Blocks::NONE;
    [Action::Wait { from, blocks }, Action::Release { from }].map(|action| at(0, action))
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

/// Whoever fetches from several ranks may wait for all their puts before it gives back the first: that takes a slot more.
#[test]
fn a_put_beside_one_that_waits_for_its_release() {
    let mut plan = plan(Algorithm::Dissemination, Op::Barrier, 3);
    // Rank 2 puts when rank 1 has put a third time, for which the first is to be given back.
    plan[0]
        .steps
        .extend([hear(1), hear(2), hear(1), hear(1)].concat());
    plan[1].steps.extend([0, 0, 0, 2].map(signal));
    plan[2].steps.extend(hear(1));
    plan[2].steps.push(signal(0));
    let in_turn = Settings { pieces: 1, ..PLAIN };
    verify(&plan, in_turn).unwrap();
    let early_waits = Settings {
        early_waits: true,
        ..in_turn
    };
    let error = reject(&plan, early_waits);
    let Fault::Deadlock { blocked } = &error.fault else {
        panic!("{error}")
    };
    assert_eq!(blocked[0].waits, Waits::PutFrom(2));
    let with_room = Settings {
        slots: 3,
        ..early_waits
    };
    verify(&plan, with_room).unwrap();
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
