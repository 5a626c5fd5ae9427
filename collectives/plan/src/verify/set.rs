//! Checks that programs belong together: one operation, one message, one cut.

use std::sync::Arc;

use crate::geometry::Geometry;
use crate::ir::{Op, Program, Shares};

/// One program for each rank that takes part, all of one operation.
pub(super) fn check(programs: &[Program]) -> Result<(), (u32, String)> {
    let Some(first) = programs.first() else {
        return Err((0, "there is no program".into()));
    };
    names(first).map_err(|why| (first.rank, why))?;
    let mut seen = vec![false; first.ranks as usize];
    for p in programs {
        if p.ranks != first.ranks {
            let why = format!("{} ranks here, {} elsewhere", p.ranks, first.ranks);
            return Err((p.rank, why));
        }
        // In an all_to_all each rank may cut its own row and column as it likes.
        let own = matches!((p.op, &p.shares), (Op::AllToAll, Shares::Within { .. }));
        let same_names = p.section == first.section && same(&p.names, &first.names);
        if !same_names && !own {
            return Err((p.rank, "blocks have other names here".into()));
        }
        let alike = p.blocks == first.blocks && p.shares == first.shares;
        if (!alike && !own) || p.blocks == 0 {
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
        shares(p).map_err(|why| (p.rank, why))?;
    }
    Ok(())
}

/// The shares say how large each block is, and each part of the message has blocks of its own.
fn shares(p: &Program) -> Result<(), String> {
    let parts = p.op.parts(p.ranks);
    let fits = match &p.shares {
        Shares::Within { starts, .. } => match p.op {
            Op::AllToAll => starts.len() > parts as usize,
            _ => starts.len() == parts as usize + 1,
        },
        _ => p.ranks == 1 || p.blocks.is_multiple_of(parts),
    };
    if !fits {
        return Err(format!(
            "{} has {parts} parts, but {} blocks",
            p.op, p.blocks
        ));
    }
    match Geometry::new(0, p.blocks, p.shares.clone(), 1) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// Names are the blocks in another order, in whole sections.
fn names(p: &Program) -> Result<(), String> {
    if p.section == 0 || !p.blocks.is_multiple_of(p.section) {
        return Err(format!("{} blocks in sections of {}", p.blocks, p.section));
    }
    if let Some(names) = &p.names {
        permutation(names, p.blocks, "names")?;
    }
    if let Some(order) = &p.order {
        permutation(order, p.ranks, "order")?;
    }
    Ok(())
}

fn permutation(table: &[u32], count: u32, what: &str) -> Result<(), String> {
    let mut seen = vec![false; count as usize];
    for &entry in table {
        match seen.get_mut(entry as usize) {
            Some(seen @ false) => *seen = true,
            _ => return Err(format!("{what} has {entry} twice, or out of range")),
        }
    }
    match table.len() == count as usize {
        true => Ok(()),
        false => Err(format!("{what} has {} of {count} entries", table.len())),
    }
}

fn same(a: &Option<Arc<[u32]>>, b: &Option<Arc<[u32]>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a == b,
        (None, None) => true,
        _ => false,
    }
}
