//! Checks that need no run: the set is one operation, headers agree with steps, steps make sense.

use crate::ir::{Action, Blocks, Buffer, MIN_SLOTS, Op, Place, Program, Value};

use super::Settings;
use super::error::{Fault, VerifyError};
use super::set;

pub(super) fn check(programs: &[Program]) -> Result<(), VerifyError> {
    set::check(programs).or_else(|(rank, why)| fail(rank, Fault::Set { why }))?;
    programs.iter().try_for_each(program)
}

/// Whether the programs can be run so at all.
pub(super) fn check_settings(programs: &[Program], settings: Settings) -> Result<(), VerifyError> {
    let Settings { slots, pieces, .. } = settings;
    if slots < MIN_SLOTS || pieces == 0 {
        return fail(0, Fault::Settings { slots, pieces });
    }
    let flat = |p: &Program| p.op == Op::AllToAll && p.blocks / 2 == p.ranks && p.names.is_none();
    if settings.unequal && !programs.iter().all(flat) {
        let why = "only the blocks of an all_to_all have sizes that nobody else knows".into();
        return fail(0, Fault::Set { why });
    }
    Ok(())
}

fn fail(rank: u32, fault: Fault) -> Result<(), VerifyError> {
    Err(VerifyError {
        rank,
        step: None,
        piece: None,
        fault,
    })
}

/// The largest numbers that the steps of a program use.
#[derive(Default)]
struct Needs {
    scratch: Option<Blocks>,
    put_blocks: u32,
    skew: u16,
    windowed: bool,
}

fn program(p: &Program) -> Result<(), VerifyError> {
    loops(p).or_else(|why| fail(p.rank, Fault::Step { why }))?;
    let mut needs = Needs::default();
    for (index, step) in p.walk().enumerate() {
        needs.skew = needs.skew.max(step.skew);
        action(p, &mut needs, step.action).map_err(|fault| VerifyError {
            rank: p.rank,
            step: Some(index),
            piece: None,
            fault,
        })?;
    }
    // Scratch has instances for the pieces of one leg that are in flight, and so has an input that is scaled first.
    if p.has_legs() && (needs.scratch.is_some() || p.op.reduces()) {
        let why = "legs, in a program that has scratch or reduces";
        return fail(p.rank, Fault::Step { why });
    }
    let scratch = needs.scratch.unwrap_or(Blocks::NONE);
    // The widest put may be another rank's.
    let put_blocks = needs.put_blocks.max(p.max_put_blocks);
    let field = |field, says: &dyn ToString, needs: &dyn ToString| {
        let (says, needs) = (says.to_string(), needs.to_string());
        match says == needs {
            true => Ok(()),
            false => fail(p.rank, Fault::Header { field, says, needs }),
        }
    };
    field("max_skew", &p.max_skew, &needs.skew)?;
    field("scratch", &p.scratch, &scratch)?;
    field("windowed", &p.windowed, &needs.windowed)?;
    field("max_put_blocks", &p.max_put_blocks, &put_blocks)
}

/// Loops are in order, don't overlap, and repeat something.
fn loops(p: &Program) -> Result<(), &'static str> {
    let mut end = 0;
    for around in &p.loops {
        if around.len == 0 || around.times == 0 || around.first < end {
            return Err("a loop of nothing, or loops that overlap");
        }
        end = around.first.saturating_add(around.len);
        if end as usize > p.steps.len() {
            return Err("a loop goes on after the last step");
        }
    }
    Ok(())
}

fn action(p: &Program, needs: &mut Needs, action: Action) -> Result<(), Fault> {
    match action {
        Action::Copy { dst, src } => {
            writable(dst)?;
            same_blocks(p, &[dst, src])?;
            [dst, src]
                .into_iter()
                .try_for_each(|at| place(p, needs, at))
        }
        Action::Reduce { dst, a, b, .. } => {
            writable(dst)?;
            reduces(p)?;
            same_blocks(p, &[dst, a, b])?;
            [dst, a, b]
                .into_iter()
                .try_for_each(|at| place(p, needs, at))
        }
        Action::Put { to, value } => {
            peer(p, to)?;
            needs.put_blocks = needs.put_blocks.max(value.blocks().count);
            match value {
                Value::Empty => Ok(()),
                Value::Copy(src) => place(p, needs, src),
                Value::Reduce { a, b, .. } => {
                    reduces(p)?;
                    same_blocks(p, &[a, b])?;
                    [a, b].into_iter().try_for_each(|at| place(p, needs, at))
                }
            }
        }
        Action::Wait { from, blocks } => {
            needs.put_blocks = needs.put_blocks.max(blocks.count);
            if !blocks.is_empty() {
                regular(p, blocks)?;
            }
            peer(p, from)
        }
        Action::Release { from } => peer(p, from),
    }
}

fn place(p: &Program, needs: &mut Needs, place: Place) -> Result<(), Fault> {
    let blocks = place.blocks();
    if blocks.is_empty() {
        let why = "a place without blocks";
        return Err(Fault::Step { why });
    }
    regular(p, blocks)?;
    let held = match place {
        Place::Slot { from, .. } => {
            peer(p, from)?;
            return Ok(());
        }
        Place::Local {
            buffer: Buffer::Scratch,
            ..
        } => {
            let scratch = needs.scratch.unwrap_or(Blocks::NONE);
            needs.scratch = Some(scratch.hull(blocks.within(p.section)));
            return Ok(());
        }
        Place::Local { buffer, .. } => p.held(buffer, p.rank),
        Place::Peer { rank, buffer, .. } => {
            peer(p, rank)?;
            if buffer == Buffer::Scratch || !p.op.is_collective() {
                let why = "scratch and the buffers of a send or receive are no windows";
                return Err(Fault::Step { why });
            }
            needs.windowed = true;
            needs.put_blocks = needs.put_blocks.max(blocks.count);
            p.held(buffer, rank)
        }
    };
    let inside = |name| held.contains(&p.number(name));
    if blocks.iter(p.section).all(inside) {
        Ok(())
    } else {
        Err(Fault::Outside { place, held })
    }
}

/// A set names blocks of the message, none twice.
fn regular(p: &Program, blocks: Blocks) -> Result<(), Fault> {
    if blocks.first < p.blocks && blocks.reach() <= u64::from(p.section) {
        Ok(())
    } else {
        let why = "a set with blocks that are not there, or there twice";
        Err(Fault::Step { why })
    }
}

fn peer(p: &Program, rank: u32) -> Result<(), Fault> {
    if rank < p.ranks && rank != p.rank {
        Ok(())
    } else {
        let why = "the peer is this rank itself, or out of range";
        Err(Fault::Step { why })
    }
}

fn writable(dst: Place) -> Result<(), Fault> {
    let no = |why| Err(Fault::Step { why });
    match dst {
        Place::Slot { .. } => no("a received slot can't be written"),
        Place::Local { buffer, .. } | Place::Peer { buffer, .. } if buffer == Buffer::In => {
            no("the caller's input can't be written")
        }
        Place::Local { .. } | Place::Peer { .. } => Ok(()),
    }
}

fn reduces(p: &Program) -> Result<(), Fault> {
    if p.op.reduces() {
        Ok(())
    } else {
        let why = "a reduction in an operation that doesn't reduce";
        Err(Fault::Step { why })
    }
}

/// Only all_to_all moves a block to the place of another, of which the run shows whether it has the
/// same size.
fn same_blocks(p: &Program, places: &[Place]) -> Result<(), Fault> {
    let alike = |a: Blocks, b: Blocks| match p.op {
        Op::AllToAll => a.count == b.count,
        _ => a == b,
    };
    if places
        .windows(2)
        .all(|pair| alike(pair[0].blocks(), pair[1].blocks()))
    {
        Ok(())
    } else {
        let why = "the operands are not the same blocks";
        Err(Fault::Step { why })
    }
}
