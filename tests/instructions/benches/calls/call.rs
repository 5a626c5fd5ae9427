//! What each rank does in a call that is counted.

use unisono::{Communicator, ReduceOp};

/// A call, and who of its ranks is counted.
#[derive(Clone, Copy)]
pub struct Call {
    /// As in the table of budgets.
    pub name: &'static str,
    /// Ranks of the world.
    pub ranks: u32,
    /// The one that is counted.
    pub rank: u32,
    /// What it does.
    pub counted: Part,
    /// What each other one does, if there is one.
    pub other: Part,
    /// Whether they reach each other over TCP, and not by memory.
    pub tcp: bool,
}

/// One rank's part of a call.
pub type Part = fn(&mut Side) -> unisono::Result<()>;

/// One rank with its buffers.
pub struct Side {
    /// The communicator of all ranks.
    pub world: Communicator,
    /// What is sent, if it is one block.
    pub block: Vec<f32>,
    /// What is received, if it is one block.
    pub result: Vec<f32>,
    /// One block for each rank, sent or received.
    pub blocks: Vec<f32>,
}

/// The root of what has one.
const ROOT: u32 = 0;
/// Another rank than the root.
const LEAF: u32 = 1;

pub const SEND: Call = Call {
    other: recv,
    ..of_root("send", send)
};
pub const RECV: Call = Call {
    other: send,
    ..of_leaf("recv", recv)
};
pub const BROADCAST_ROOT: Call = of_root("broadcast_root", broadcast);
pub const BROADCAST_LEAF: Call = of_leaf("broadcast_leaf", broadcast);
pub const REDUCE_ROOT: Call = of_root("reduce_root", reduce);
pub const REDUCE_LEAF: Call = of_leaf("reduce_leaf", reduce);
pub const GATHER_ROOT: Call = of_root("gather_root", gather);
pub const GATHER_LEAF: Call = of_leaf("gather_leaf", gather);
pub const SCATTER_ROOT: Call = of_root("scatter_root", scatter);
pub const SCATTER_LEAF: Call = of_leaf("scatter_leaf", scatter);
pub const ALL_REDUCE: Call = of_root("all_reduce", all_reduce);
pub const ALL_GATHER: Call = of_root("all_gather", all_gather);
pub const REDUCE_SCATTER: Call = of_root("reduce_scatter", reduce_scatter);
pub const BARRIER: Call = of_root("barrier", barrier);
pub const SEND_TCP: Call = over_tcp("send_tcp", SEND);
pub const RECV_TCP: Call = over_tcp("recv_tcp", RECV);
pub const ALL_REDUCE_TCP: Call = over_tcp("all_reduce_tcp", ALL_REDUCE);
pub const BARRIER_TCP: Call = over_tcp("barrier_tcp", BARRIER);
pub const ALL_REDUCE_OF_FOUR: Call = of_four("all_reduce_of_four", ALL_REDUCE);
pub const ALL_GATHER_OF_FOUR: Call = of_four("all_gather_of_four", ALL_GATHER);
pub const REDUCE_SCATTER_OF_FOUR: Call = of_four("reduce_scatter_of_four", REDUCE_SCATTER);
pub const ALL_TO_ALL_OF_FOUR: Call = of_four("all_to_all_of_four", of_root("", all_to_all));
pub const BARRIER_OF_FOUR: Call = of_four("barrier_of_four", BARRIER);
pub const ALL_REDUCE_ALONE: Call = Call {
    ranks: 1,
    ..of_root("all_reduce_alone", all_reduce)
};

const fn of_root(name: &'static str, part: Part) -> Call {
    Call {
        name,
        ranks: 2,
        rank: ROOT,
        counted: part,
        other: part,
        tcp: false,
    }
}

const fn over_tcp(name: &'static str, call: Call) -> Call {
    Call {
        name,
        tcp: true,
        ..call
    }
}

/// Of ranks that share cores, where there are fewer than four: what they put is shown. With more, each has one of its own, and
/// the counts are of another case than the budgets.
const fn of_four(name: &'static str, call: Call) -> Call {
    Call {
        name,
        ranks: 4,
        ..call
    }
}

const fn of_leaf(name: &'static str, part: Part) -> Call {
    Call {
        rank: LEAF,
        ..of_root(name, part)
    }
}

fn send(side: &mut Side) -> unisono::Result<()> {
    side.world.send(&side.block, 1 - side.world.rank())
}

fn recv(side: &mut Side) -> unisono::Result<()> {
    side.world.recv(&mut side.result, 1 - side.world.rank())
}

fn broadcast(side: &mut Side) -> unisono::Result<()> {
    side.world.broadcast(&mut side.block, ROOT)
}

fn reduce(side: &mut Side) -> unisono::Result<()> {
    (side.world).reduce(&side.block, &mut side.result, ReduceOp::Sum, ROOT)
}

fn gather(side: &mut Side) -> unisono::Result<()> {
    side.world.gather(&side.block, &mut side.blocks, ROOT)
}

fn scatter(side: &mut Side) -> unisono::Result<()> {
    side.world.scatter(&side.blocks, &mut side.result, ROOT)
}

fn all_reduce(side: &mut Side) -> unisono::Result<()> {
    (side.world).all_reduce(&side.block, &mut side.result, ReduceOp::Sum)
}

fn all_gather(side: &mut Side) -> unisono::Result<()> {
    side.world.all_gather(&side.block, &mut side.blocks)
}

fn reduce_scatter(side: &mut Side) -> unisono::Result<()> {
    (side.world).reduce_scatter(&side.blocks, &mut side.result, ReduceOp::Sum)
}

fn all_to_all(side: &mut Side) -> unisono::Result<()> {
    side.world.all_to_all_in_place(&mut side.blocks)
}

fn barrier(side: &mut Side) -> unisono::Result<()> {
    side.world.barrier()
}
