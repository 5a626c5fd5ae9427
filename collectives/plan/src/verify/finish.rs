//! Checks after all ranks have ended: results, channels, windows, and who was heard.

use crate::ir::{Blocks, Buffer, Op, Program};

use super::Report;
use super::access::race;
use super::error::{Fault, VerifyError};
use super::expression::Expr;
use super::machine::Machine;

pub(super) fn check(machine: &mut Machine<'_>) -> Result<Report, VerifyError> {
    let mut report = machine.report;
    report.folds_in_rank_order = true;
    for index in 0..machine.programs.len() {
        let program = &machine.programs[index];
        let fail = |piece| {
            move |fault| VerifyError {
                rank: program.rank,
                step: None,
                piece,
                fault,
            }
        };
        channels(machine, program).map_err(fail(None))?;
        heard(machine, index).map_err(fail(None))?;
        for piece in 0..machine.settings.pieces {
            report.folds_in_rank_order &=
                output(machine, program, piece).map_err(fail(Some(piece)))?;
            exit(machine, index, piece).map_err(fail(Some(piece)))?;
        }
    }
    Ok(report)
}

/// Everything that came was taken and given back.
fn channels(machine: &Machine<'_>, program: &Program) -> Result<(), Fault> {
    for peer in 0..machine.ranks {
        if machine.channel(peer, program.rank).current.is_some() {
            return Err(Fault::Unreleased { from: peer });
        }
        let puts = machine.channel(program.rank, peer).queue.len();
        if puts > 0 {
            return Err(Fault::Unconsumed { to: peer, puts });
        }
    }
    Ok(())
}

/// The operation has heard of everybody of whom it must have.
fn heard(machine: &Machine<'_>, index: usize) -> Result<(), Fault> {
    let (program, rank) = (&machine.programs[index], &machine.running[index]);
    let op = program.op;
    if machine.ranks == 1 {
        return Ok(());
    }
    if rank.waits == 0 {
        return Err(Fault::NeverWaits { op });
    }
    let needed = |other: u32| match op {
        Op::Broadcast { root } | Op::Scatter { root } if root != program.rank => other == root,
        // To have waited at all is enough.
        Op::Reduce { root } | Op::Gather { root } if root != program.rank => false,
        Op::Send { to: peer } | Op::Recv { from: peer } => other == peer,
        _ => true,
    };
    let unheard: Vec<u32> = (rank.clock.unheard())
        .filter(|&other| needed(other))
        .take(16)
        .collect();
    if unheard.is_empty() {
        Ok(())
    } else {
        Err(Fault::Unheard { op, unheard })
    }
}

/// The output is what the operation promises. Returns whether it is a left fold in rank order.
fn output(machine: &mut Machine<'_>, program: &Program, piece: u32) -> Result<bool, Fault> {
    let mut fold = true;
    for block in program.holds(Buffer::Out).iter() {
        let ranks = machine.ranks;
        if piece >= pieces_of(machine, program, block) {
            continue;
        }
        let value = value(machine, program.rank, block, piece)?;
        let each = (program.blocks / program.op.parts(ranks)).max(1);
        let (source, block) = match program.op {
            Op::AllGather | Op::Gather { .. } => (block / each, block),
            Op::AllToAll => {
                let (from, sub) = (block / each - ranks, block % each);
                (from, program.rank * each + sub)
            }
            Op::Broadcast { root } | Op::Scatter { root } => (root, block),
            Op::Recv { from } => (from, block),
            _ => {
                reduced(machine, program, block, piece, value)?;
                fold &= machine.expressions.is_fold(value, machine.ranks);
                continue;
            }
        };
        let wanted = machine.expressions.input(source, block, piece);
        if value != wanted {
            return Err(Fault::Wrong {
                block,
                got: machine.expressions.text(value),
                wanted: machine.expressions.text(wanted),
            });
        }
    }
    Ok(fold)
}

/// In how many pieces a block of the output comes.
fn pieces_of(machine: &Machine<'_>, program: &Program, block: u32) -> u32 {
    match program.op {
        Op::AllToAll if machine.settings.unequal => machine
            .settings
            .pieces_between(block - machine.ranks, program.rank),
        _ => machine.settings.pieces,
    }
}

/// A block of a reduction has all contributions, in the order that the other ranks have.
fn reduced(
    machine: &Machine<'_>,
    program: &Program,
    block: u32,
    piece: u32,
    value: Expr,
) -> Result<(), Fault> {
    let expressions = &machine.expressions;
    let missing = expressions.missing(value, machine.ranks);
    if !missing.is_empty() {
        return Err(Fault::Missing { block, missing });
    }
    if program.op == Op::AllReduce && program.rank > 0 {
        let theirs = self::value(machine, 0, block, piece)?;
        if theirs != value {
            return Err(Fault::Differs {
                block,
                other: 0,
                mine: expressions.text(value),
                theirs: expressions.text(theirs),
            });
        }
    }
    Ok(())
}

fn value(machine: &Machine<'_>, rank: u32, block: u32, piece: u32) -> Result<Expr, Fault> {
    let cell = machine.memory.cell(rank, Buffer::Out, block, piece);
    let place = crate::builder::out(Blocks::one(block));
    machine
        .memory
        .value(cell)
        .ok_or(Fault::Undefined { place, block })
}

/// The caller may overwrite both buffers now: nobody still touches them.
fn exit(machine: &mut Machine<'_>, index: usize, piece: u32) -> Result<(), Fault> {
    let program = &machine.programs[index];
    for buffer in [Buffer::In, Buffer::Out] {
        for block in program.holds(buffer).iter() {
            let cell = machine.memory.cell(program.rank, buffer, block, piece);
            let clock = &machine.running[index].clock;
            let written = machine.memory.write(cell, clock);
            written.map_err(|conflict| race(program.rank, buffer, block, true, conflict))?;
        }
    }
    Ok(())
}
