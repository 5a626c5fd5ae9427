//! The operations of the benchmark, their sizes and their results.

use anyhow::Result;
use unisono::{Communicator, ReduceOp};

use crate::memory;

/// An operation of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    AllReduce,
    AllGather,
    ReduceScatter,
    Broadcast,
    AllToAll,
    Reduce,
    Barrier,
    /// There and back between two ranks; the time is one way.
    SendRecv,
}

impl Op {
    /// By its name in commands.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "all_reduce" => Self::AllReduce,
            "all_gather" => Self::AllGather,
            "reduce_scatter" => Self::ReduceScatter,
            "broadcast" => Self::Broadcast,
            "all_to_all" => Self::AllToAll,
            "reduce" => Self::Reduce,
            "barrier" => Self::Barrier,
            "send_recv" => Self::SendRecv,
            _ => return None,
        })
    }

    /// Elements of the larger buffer for this many bytes; at least one for each block.
    pub fn elements(self, bytes: usize, ranks: usize) -> usize {
        let elements = (bytes / size_of::<f32>()).max(1);
        match self {
            Self::Barrier => 0,
            Self::AllGather | Self::ReduceScatter | Self::AllToAll => {
                (elements / ranks).max(1) * ranks
            }
            _ => elements,
        }
    }

    /// Elements of `recv` that are not what they must be, if each rank sent [`pattern`].
    pub fn wrong(self, me: usize, ranks: usize, recv: &[f32]) -> usize {
        let all = (ranks * (ranks + 1) / 2) as f32;
        let block = recv.len() / ranks;
        let differ = |recv: &[f32], expected: &dyn Fn(usize) -> f32| {
            (0..recv.len()).filter(|&i| recv[i] != expected(i)).count()
        };
        match self {
            Self::Reduce if me > 0 => 0,
            Self::AllReduce | Self::Reduce => differ(recv, &|i| all * step(i)),
            Self::AllToAll => differ(recv, &|i| pattern(i / block, me * block + i % block)),
            Self::AllGather => differ(recv, &|i| pattern(i / block, i % block)),
            Self::ReduceScatter => differ(&recv[..block], &|i| all * step(me * block + i)),
            Self::Broadcast if me == 0 => 0,
            Self::Broadcast => differ(recv, &|i| pattern(0, i)),
            Self::SendRecv => differ(recv, &|i| pattern(1 - me, i)),
            Self::Barrier => 0,
        }
    }
}

/// What calls are measured on: one rank of a library, or of the machine's limit.
pub trait Caller {
    /// This rank.
    fn rank(&self) -> u32;

    /// All ranks.
    fn size(&self) -> u32;

    /// One call. `send` and `recv` have [`Op::elements`]; only a part of them is used where the
    /// operation's buffer is a block.
    fn call(&self, op: Op, send: &mut [f32], recv: &mut [f32]) -> Result<()>;

    /// The largest value of all ranks.
    fn slowest(&self, value: f64) -> Result<f64>;

    /// Whether ranks but the root get what is broadcast in `send`.
    fn broadcasts_into_send(&self) -> bool {
        false
    }
}

impl Caller for Communicator {
    fn rank(&self) -> u32 {
        Communicator::rank(self)
    }

    fn size(&self) -> u32 {
        Communicator::size(self)
    }

    fn call(&self, op: Op, send: &mut [f32], recv: &mut [f32]) -> Result<()> {
        let block = send.len() / self.size() as usize;
        let first = self.rank() == 0;
        match op {
            Op::AllReduce => self.all_reduce(send, recv, ReduceOp::Sum)?,
            Op::AllGather => self.all_gather(&send[..block], recv)?,
            Op::ReduceScatter => self.reduce_scatter(send, &mut recv[..block], ReduceOp::Sum)?,
            // Windows must be the same ones on all ranks.
            Op::Broadcast if first || self.broadcasts_into_send() => self.broadcast(send, 0)?,
            Op::Broadcast => self.broadcast(recv, 0)?,
            Op::AllToAll => self.all_to_all(send, recv)?,
            Op::Reduce => self.reduce(send, recv, ReduceOp::Sum, 0)?,
            Op::Barrier => self.barrier()?,
            Op::SendRecv if first => {
                self.send(send, 1)?;
                self.recv(recv, 1)?;
            }
            Op::SendRecv => {
                self.recv(recv, 0)?;
                self.send(send, 0)?;
            }
        }
        Ok(())
    }

    fn slowest(&self, value: f64) -> Result<f64> {
        let mut values = [value];
        self.all_reduce_in_place(&mut values, ReduceOp::Max)?;
        Ok(values[0])
    }

    fn broadcasts_into_send(&self) -> bool {
        memory::is_own()
    }
}

/// Element `i` of what a rank sends: sums of it are exact in f32.
pub fn pattern(rank: usize, i: usize) -> f32 {
    (rank + 1) as f32 * step(i)
}

fn step(i: usize) -> f32 {
    (i % 13 + 1) as f32
}
