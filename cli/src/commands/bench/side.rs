//! One of the things that are compared: a communicator, and the calls on it.

#![allow(
    unsafe_code,
    reason = "calls with addresses of the bench's own buffers"
)]

use anyhow::{Context, Result, bail};
use unisono::hal::Plugin;
use unisono::{Communicator, InitOptions, Op, PluginRequest, RawCall, Sizes};

use super::memory::Block;
use super::op::{BenchOp, Shape};
use super::{Args, pattern};

/// A communicator that is measured.
pub struct Side {
    pub communicator: Communicator,
    /// The messages of odd ranks in send_recv: calls of one communicator wait for each other, and
    /// sending must not wait for receiving.
    odd: Communicator,
    /// The first plugin's name.
    pub plugin: String,
}

/// The buffers of one side.
pub struct Buffers {
    send: std::cell::RefCell<Block>,
    recv: std::cell::RefCell<Block>,
}

impl Buffers {
    pub fn new(communicator: &Communicator, send: u64, recv: u64, windows: bool) -> Result<Self> {
        Ok(Self {
            send: Block::new(communicator, send, windows)?.into(),
            recv: Block::new(communicator, recv, windows)?.into(),
        })
    }
}

impl Side {
    /// Joins as the arguments say.
    pub fn join(args: &Args) -> Result<Self> {
        Self::new(args.join.options(false)?)
    }

    /// Joins twice, as the arguments say and with `other` for the first plugin. What is made first
    /// may get the better memory, so who is first alternates with `session`.
    pub fn join_pair(args: &Args, other: &str, session: u32) -> Result<[Self; 2]> {
        let mut options = args.join.options(false)?;
        let mut against = options.clone();
        let Some(first) = against.plugins.first_mut() else {
            bail!("--against-plugin needs a plugin to compare with");
        };
        if first.name == other {
            bail!("--against-plugin {other}: that is the first plugin already");
        }
        *first = PluginRequest::named(other);
        options.job.push_str(&format!(", session {session}"));
        against
            .job
            .push_str(&format!(", session {session} of the other plugin"));
        if session.is_multiple_of(2) {
            Ok([Self::new(options)?, Self::new(against)?])
        } else {
            let against = Self::new(against)?;
            Ok([Self::new(options)?, against])
        }
    }

    fn new(options: InitOptions) -> Result<Self> {
        let plugin = options
            .plugins
            .first()
            .map(|p| p.name.clone())
            .unwrap_or_default();
        let communicator = Communicator::init(options)?;
        let odd = communicator
            .duplicate()
            .context("a second communicator for send_recv")?;
        Ok(Self {
            communicator,
            odd,
            plugin,
        })
    }

    /// The plugin of the device.
    pub fn device_plugin(&self) -> &Plugin {
        self.communicator.device().instance().plugin()
    }

    /// Leaves, with all ranks.
    pub fn finalize(self) -> Result<()> {
        self.odd.finalize()?;
        Ok(self.communicator.finalize()?)
    }

    /// Calls the operation once.
    pub fn call(&self, buffers: &Buffers, shape: &Shape, in_place: bool) -> Result<()> {
        let rank = self.communicator.rank();
        let (input, output) = self.ends(buffers, shape, in_place);
        let (dtype, count) = (shape.dtype, shape.whole());
        let raw = |op, input, output| RawCall {
            op,
            input,
            output,
            sizes: Sizes::Equal(count),
            dtype,
            reduction: shape.reduction().map(Into::into),
        };
        if shape.op != BenchOp::SendRecv {
            let call = raw(shape.call(rank), input, output);
            // SAFETY: the buffers hold what the shape says, for as long as the call, and are used by
            // nothing else; `ends` places them as in-place calls want.
            return Ok(unsafe { self.communicator.call_raw(call) }?);
        }
        let from = (rank + shape.ranks - 1) % shape.ranks;
        let of = |sender: u32| match sender % 2 {
            0 => &self.communicator,
            _ => &self.odd,
        };
        let (send, recv) = (
            raw(shape.call(rank), input, 0),
            raw(Op::Recv { from }, 0, output),
        );
        // SAFETY: as above; the work is waited for before the buffers can go, or the communicator is
        // broken and touches them no more.
        let sent = unsafe { of(rank).start_raw(send) }?;
        // SAFETY: as above.
        let received = unsafe { of(from).call_raw(recv) };
        sent.wait()?;
        Ok(received?)
    }

    fn ends(&self, buffers: &Buffers, shape: &Shape, in_place: bool) -> (u64, u64) {
        let (send, recv) = (
            buffers.send.borrow().address(),
            buffers.recv.borrow().address(),
        );
        let block = u64::from(self.communicator.rank()) * shape.block_bytes();
        match shape.op {
            BenchOp::Barrier => (0, 0),
            _ if !in_place => (send, recv),
            op if op.sends_block() => (recv + block, recv),
            op if op.receives_block() => (send, send + block),
            _ => (recv, recv),
        }
    }

    /// Runs the operation once on known inputs; the number of elements that are wrong on any rank.
    pub fn check(&self, buffers: &Buffers, shape: &Shape, in_place: bool) -> Result<u64> {
        let rank = self.communicator.rank();
        let of = |rank| pattern::input(shape.dtype, shape.reduction, shape.ranks, rank);
        let block = u64::from(rank) * shape.count;
        let at = (u64::from(rank) * shape.block_bytes()) as usize;
        let is_root = rank == shape.root;
        {
            let (mut send, mut recv) = (buffers.send.borrow_mut(), buffers.recv.borrow_mut());
            send.fill(shape.send_bytes(), |send| of(rank).fill(send, 0))?;
            // So that what is not written is wrong.
            recv.fill(shape.recv_bytes(), |recv| recv.fill(0xa5))?;
            let given = send.bytes(shape.send_bytes())?;
            match shape.op {
                op if !in_place || op.receives_block() => {}
                BenchOp::Broadcast if !is_root => {}
                op => {
                    let at = if op.sends_block() { at } else { 0 };
                    recv.fill(shape.recv_bytes(), |recv| {
                        recv[at..at + given.len()].copy_from_slice(given);
                    })?;
                }
            }
        }
        self.call(buffers, shape, in_place)?;
        let (mut send, mut recv) = (buffers.send.borrow_mut(), buffers.recv.borrow_mut());
        let (send, recv) = (
            send.bytes(shape.send_bytes())?,
            recv.bytes(shape.recv_bytes())?,
        );
        let reduced = || pattern::reduced(shape.dtype, shape.reduction, shape.ranks);
        let output = match in_place && shape.op.receives_block() {
            true => &send[at..at + recv.len()],
            false => recv,
        };
        let blocks = || output.chunks((shape.block_bytes() as usize).max(1));
        // The blocks of all ranks, each of them from this element on of what its rank has put in.
        let gathered = |first| {
            let each = (0..shape.ranks).zip(blocks());
            each.map(|(rank, block)| of(rank).wrong(block, first)).sum()
        };
        let mut wrong = match shape.op {
            BenchOp::Barrier => 0,
            BenchOp::Reduce | BenchOp::Gather if !is_root => 0,
            BenchOp::AllReduce | BenchOp::Reduce => reduced().wrong(output, 0),
            BenchOp::ReduceScatter => reduced().wrong(output, block),
            BenchOp::AllGather | BenchOp::Gather => gathered(0),
            BenchOp::AllToAll => gathered(block),
            BenchOp::Broadcast => of(shape.root).wrong(output, 0),
            BenchOp::Scatter => of(shape.root).wrong(output, block),
            BenchOp::SendRecv => of((rank + shape.ranks - 1) % shape.ranks).wrong(recv, 0),
        };
        if !in_place {
            // The input is not the call's to change.
            wrong += of(rank).wrong(send, 0);
        }
        let mut all = [wrong];
        self.communicator
            .all_reduce_in_place(&mut all, unisono::ReduceOp::Sum)?;
        Ok(all[0])
    }

    /// Writes one word of each cache line of the input, as a program that makes new data would.
    pub fn touch(&self, buffers: &Buffers, shape: &Shape, in_place: bool) {
        let from_send = !in_place || shape.op.receives_block();
        let (buffer, bytes) = match from_send {
            true => (&buffers.send, shape.send_bytes()),
            false => (&buffers.recv, shape.recv_bytes()),
        };
        buffer.borrow_mut().touch(bytes);
    }

    /// What runs, for the table.
    pub fn algorithm(&self, shape: &Shape, buffers: &Buffers) -> Result<String> {
        let communicator = &self.communicator;
        let (op, bytes) = (shape.call(communicator.rank()), shape.bytes());
        let direct = buffers.send.borrow().is_direct() && buffers.recv.borrow().is_direct();
        let explained = if direct {
            communicator.explain_windows(op, bytes, shape.dtype)?
        } else {
            communicator.explain(op, bytes, shape.dtype)?
        };
        let winner = explained.selection().winner();
        let windowed = if winner.windowed { " (w)" } else { "" };
        Ok(format!("{}{windowed}", winner.label))
    }

    /// The kinds of links between the ranks.
    pub fn transport(&self) -> String {
        let graph = self.communicator.graph();
        let ranks = self.communicator.size();
        let mut kinds: Vec<String> = (1..ranks)
            .filter_map(|rank| Some(graph.ways(0, rank).first()?.kind.clone()))
            .collect();
        kinds.sort();
        kinds.dedup();
        if kinds.is_empty() {
            return "none".to_owned();
        }
        kinds.join("+")
    }
}
