//! Checks that need no run: the set is one operation, headers agree with steps, steps make sense.

use crate::ir::{Action, Blocks, Buffer, MIN_SLOTS, Op, Place, Program, Value};

use super::Settings;
use super::error::{Fault, VerifyError};

pub(super) fn check(programs: &[Program], settings: Settings) -> Result<(), VerifyError> {
    let fail = |rank, fault| {
        Err(VerifyError {
            rank,
            step: None,
            piece: None,
            fault,
        })
    };
    let Settings { slots, pieces, .. } = settings;
    if slots < MIN_SLOTS || pieces == 0 {
        return fail(0, Fault::Settings { slots, pieces });
    }
    set(programs).or_else(|(rank, why)| fail(rank, Fault::Set { why }))?;
    programs.iter().try_for_each(program)
}

/// One program for each rank that takes part, all of one operation.
fn set(programs: &[Program]) -> Result<(), (u32, String)> {
    let Some(first) = programs.first() else {
        return Err((0, "there is no program".into()));
    };
    let mut seen = vec![false; first.ranks as usize];
    for p in programs {
        if p.ranks != first.ranks {
            let why = format!("{} ranks here, {} elsewhere", p.ranks, first.ranks);
            return Err((p.rank, why));
        }
        if p.blocks != first.blocks || p.shares != first.shares || p.blocks == 0 {
            let why = format!("{} blocks here, {} elsewhere", p.blocks, first.blocks);
            return Err((p.rank, why));
        }
        if p.max_put_blocks != first.max_put_blocks {
            let (here, there) = (p.max_put_blocks, first.max_put_blocks);
            let why = format!("max_put_blocks is {here} here, {there} elsewhere");
            return Err((p.rank, why));
        }
        match seen.get_mut(p.rank as usize) {
            Some(seen @ false) => *seen = true,
            _ => return Err((p.rank, "the rank is there twice, or out of range".into())),
        }
        let belongs = match p.op {
            Op::Send { to } => programs
                .iter()
                .any(|other| other.rank == to && other.op == Op::Recv { from: p.rank }),
            Op::Recv { from } => programs
                .iter()
                .any(|other| other.rank == from && other.op == Op::Send { to: p.rank }),
            op => op == first.op && programs.len() == p.ranks as usize,
        };
        if !belongs {
            let why = format!("{} has no counterpart, or a rank is missing", p.op);
            return Err((p.rank, why));
        }
        let parts = p.op.parts(p.ranks);
        if p.ranks > 1 && !p.blocks.is_multiple_of(parts) {
            let why = format!("{} has {parts} parts, but {} blocks", p.op, p.blocks);
            return Err((p.rank, why));
        }
    }
    Ok(())
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
    let mut needs = Needs::default();
    for (index, step) in p.steps.iter().enumerate() {
        needs.skew = needs.skew.max(step.skew);
        action(p, &mut needs, step.action).map_err(|fault| VerifyError {
            rank: p.rank,
            step: Some(index),
            piece: None,
            fault,
        })?;
    }
    let scratch = needs.scratch.unwrap_or(Blocks::NONE);
    let fields = [
        ("max_skew", p.max_skew.to_string(), needs.skew.to_string()),
        ("scratch", p.scratch.to_string(), scratch.to_string()),
        (
            "windowed",
            p.windowed.to_string(),
            needs.windowed.to_string(),
        ),
    ];
    // The widest put may be another rank's.
    let put_blocks = needs.put_blocks.max(p.max_put_blocks);
    let fields = fields.into_iter().chain([(
        "max_put_blocks",
        p.max_put_blocks.to_string(),
        put_blocks.to_string(),
    )]);
    match fields.into_iter().find(|(_, says, needs)| says != needs) {
        None => Ok(()),
        Some((field, says, needs)) => Err(VerifyError {
            rank: p.rank,
            step: None,
            piece: None,
            fault: Fault::Header { field, says, needs },
        }),
    }
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
    let held = match place {
        Place::Slot { from, .. } => {
            peer(p, from)?;
            return Ok(());
        }
        Place::Local {
            buffer: Buffer::Scratch,
            ..
        } => {
            let scratch = needs.scratch.unwrap_or(blocks);
            needs.scratch = Some(scratch.hull(blocks));
            p.held(Buffer::Scratch, p.rank)
        }
        Place::Local { buffer, .. } => p.holds(buffer),
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
    if held.contains(blocks) {
        Ok(())
    } else {
        Err(Fault::Outside { place, held })
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
    match dst {
        Place::Slot { .. } => Err(Fault::Step {
            why: "a received slot can't be written",
        }),
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
