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
    channels(machine)?;
    for index in 0..machine.programs.len() {
        let program = &machine.programs[index];
        let fail = |piece| move |fault| at_end(program.rank, piece, fault);
        heard(machine, index).map_err(fail(None))?;
        for piece in 0..machine.settings.pieces {
            report.folds_in_rank_order &=
                output(machine, program, piece).map_err(fail(Some(piece)))?;
            if machine.memory.is_traced() {
                exit(machine, index, piece).map_err(fail(Some(piece)))?;
            }
        }
    }
    Ok(report)
}

fn at_end(rank: u32, piece: Option<u32>, fault: Fault) -> VerifyError {
    VerifyError {
        rank,
        step: None,
        piece,
        fault,
    }
}

/// Everything that came was taken and given back.
fn channels(machine: &Machine<'_>) -> Result<(), VerifyError> {
    let mut faults = Vec::new();
    for (&(from, to), channel) in &machine.channels {
        if channel.current.is_some() {
            faults.push((to, from, Fault::Unreleased { from }));
        } else if !channel.queue.is_empty() {
            let puts = channel.queue.len();
            faults.push((from, to, Fault::Unconsumed { to, puts }));
        }
    }
    // The table has no order of its own.
    let first = faults
        .into_iter()
        .min_by_key(|(rank, peer, _)| (*rank, *peer));
    first.map_or(Ok(()), |(rank, _, fault)| Err(at_end(rank, None, fault)))
}

/// The operation has heard of everybody of whom it must have.
fn heard(machine: &Machine<'_>, index: usize) -> Result<(), Fault> {
    let (program, rank) = (&machine.programs[index], &machine.running[index]);
    let op = program.op;
    if machine.ranks == 1 {
        return Ok(());
    }
    // Who only sends hears of nobody then; the others hear of those from which they get something.
    let unanswered = machine.settings.unanswered;
    if rank.waits == 0 {
        return match unanswered {
            true => Ok(()),
            false => Err(Fault::NeverWaits { op }),
        };
    }
    let puts_to = |other: u32| machine.channels.contains_key(&(program.rank, other));
    let to_all = matches!(op, Op::Broadcast { .. } | Op::Scatter { .. });
    if to_all && !unanswered && !(0..machine.ranks).any(puts_to) {
        return Err(Fault::NeverHeard { op });
    }
    let needed = |other: u32| match op {
        Op::Broadcast { root } | Op::Scatter { root } if root != program.rank => other == root,
        // Those to which it puts something. Each of the others is heard by somebody.
        Op::Broadcast { .. } | Op::Scatter { .. } => puts_to(other) && !unanswered,
        // To have waited at all is enough.
        Op::Reduce { root } | Op::Gather { root } if root != program.rank => false,
        Op::Send { to: peer } | Op::Recv { from: peer } => other == peer,
        _ => true,
    };
    let unheard: Vec<u32> = (rank.known.unheard(machine.ranks))
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
    for block in program.held(Buffer::Out, program.rank) {
        if piece >= pieces_of(machine, program, block) {
            continue;
        }
        let value = value(machine, program.rank, block, piece)?;
        let (source, number) = match program.op {
            Op::AllGather | Op::Gather { .. } => (program.part_of(block), block),
            Op::AllToAll => {
                let part = program.part_of(block);
                let within = block - program.part(part).start;
                let from = part - machine.ranks;
                let theirs = machine.program_of(from).unwrap_or(program);
                (from, theirs.part(program.rank).start + within)
            }
            Op::Broadcast { root } | Op::Scatter { root } => (root, block),
            Op::Recv { from } => (from, block),
            _ => {
                reduced(machine, program, block, piece, value)?;
                fold &= machine.expressions.is_fold(value, machine.ranks);
                continue;
            }
        };
        let wanted = machine.expressions.input(source, number);
        if value != wanted {
            return Err(Fault::Wrong {
                block,
                got: machine.expressions.text(value, piece),
                wanted: machine.expressions.text(wanted, piece),
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
    machine: &mut Machine<'_>,
    program: &Program,
    block: u32,
    piece: u32,
    value: Expr,
) -> Result<(), Fault> {
    if !machine.expressions.is_complete(value, machine.ranks) {
        let missing = machine.expressions.missing(value, machine.ranks);
        return Err(Fault::Missing { block, missing });
    }
    if program.op == Op::AllReduce && program.rank > 0 {
        let theirs = self::value(machine, 0, block, piece)?;
        if theirs != value {
            return Err(Fault::Differs {
                block,
                other: 0,
                mine: machine.expressions.text(value, piece),
                theirs: machine.expressions.text(theirs, piece),
            });
        }
    }
    Ok(())
}

fn value(machine: &mut Machine<'_>, rank: u32, block: u32, piece: u32) -> Result<Expr, Fault> {
    let place = crate::builder::out(Blocks::one(block));
    let cell = machine.memory.cell(rank, Buffer::Out, block, piece);
    let at = (rank, Buffer::Out, block);
    let value = cell.and_then(|cell| machine.memory.value(cell, at, &mut machine.expressions));
    value.ok_or(Fault::Undefined { place, block })
}

/// The caller may overwrite both buffers now: nobody still touches them.
fn exit(machine: &mut Machine<'_>, index: usize, piece: u32) -> Result<(), Fault> {
    let rank = machine.programs[index].rank;
    for buffer in [Buffer::In, Buffer::Out] {
        for block in machine.memory.held(rank, buffer) {
            let Some(cell) = machine.memory.cell(rank, buffer, block, piece) else {
                continue;
            };
            let known = &machine.running[index].known;
            let written = machine.memory.write(cell, known);
            written.map_err(|conflict| race(rank, buffer, block, true, conflict))?;
        }
    }
    Ok(())
}
