//! Programs that contradict themselves or each other.

use super::*;

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
