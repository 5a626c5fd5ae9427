//! What is measured: operations, and the shape of one row.

use std::str::FromStr;

use unisono::plan::cost::bus_factor;
use unisono::{DataType, Op, ReduceOp};

/// The operations that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BenchOp {
    AllReduce,
    AllGather,
    ReduceScatter,
    Broadcast,
    Reduce,
    Gather,
    Scatter,
    AllToAll,
    SendRecv,
    Barrier,
}

/// The reductions of a sweep.
#[derive(Clone, Debug)]
pub struct Reductions(pub Vec<ReduceOp>);

/// The data types of a sweep.
#[derive(Clone, Debug)]
pub struct DataTypes(pub Vec<DataType>);

/// Reads `sum,max` or `all`.
pub fn reductions(text: &str) -> Result<Reductions, String> {
    list(text, &ReduceOp::ALL).map(Reductions)
}

/// Reads `f32,half` or `all`.
pub fn datatypes(text: &str) -> Result<DataTypes, String> {
    list(text, &DataType::ALL).map(DataTypes)
}

fn list<T: FromStr<Err = String> + Copy>(text: &str, all: &[T]) -> Result<Vec<T>, String> {
    if text == "all" {
        return Ok(all.to_vec());
    }
    text.split(',').map(|item| item.trim().parse()).collect()
}

impl BenchOp {
    const ALL: [Self; 10] = [
        Self::AllReduce,
        Self::AllGather,
        Self::ReduceScatter,
        Self::Broadcast,
        Self::Reduce,
        Self::Gather,
        Self::Scatter,
        Self::AllToAll,
        Self::SendRecv,
        Self::Barrier,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::Broadcast => "broadcast",
            Self::Reduce => "reduce",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
            Self::AllToAll => "all_to_all",
            Self::SendRecv => "send_recv",
            Self::Barrier => "barrier",
        }
    }

    /// Whether the reduction matters.
    pub fn reduces(self) -> bool {
        matches!(self, Self::AllReduce | Self::ReduceScatter | Self::Reduce)
    }

    /// Whether it moves data.
    pub fn moves(self) -> bool {
        self != Self::Barrier
    }

    /// Whether one rank gives or gets more than the others.
    pub fn has_root(self) -> bool {
        matches!(
            self,
            Self::Broadcast | Self::Reduce | Self::Gather | Self::Scatter
        )
    }

    /// Whether a rank puts in a block of its own. In place it is that of the output.
    pub fn sends_block(self) -> bool {
        matches!(self, Self::AllGather | Self::Gather)
    }

    /// Whether a rank gets out a block of its own. In place it is that of the input.
    pub fn receives_block(self) -> bool {
        matches!(self, Self::ReduceScatter | Self::Scatter)
    }

    /// Whether a size is that of all ranks' blocks together.
    fn has_blocks(self) -> bool {
        self.sends_block() || self.receives_block() || self == Self::AllToAll
    }

    /// 2 if there is an in-place form that is wanted, else 1.
    pub fn places(self, json: bool) -> usize {
        let in_place = !matches!(self, Self::SendRecv | Self::Barrier);
        1 + usize::from(in_place && !json)
    }
}

impl FromStr for BenchOp {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = text.trim().replace('-', "_");
        Self::ALL
            .into_iter()
            .find(|op| op.name() == wanted)
            .ok_or_else(|| {
                let known = Self::ALL.map(Self::name).join(", ");
                format!("no operation `{text}`; known: {known}")
            })
    }
}

/// One row: an operation on so many elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub op: BenchOp,
    pub dtype: DataType,
    pub reduction: ReduceOp,
    pub root: u32,
    pub ranks: u32,
    /// Elements of one rank's block, or of the message where there are no blocks: what nccl-tests
    /// show as count.
    pub count: u64,
}

impl Shape {
    /// About so many bytes; at least one element, if any.
    pub fn new(
        op: BenchOp,
        dtype: DataType,
        reduction: ReduceOp,
        root: u32,
        ranks: u32,
        bytes: u64,
    ) -> Self {
        let blocks = if op.has_blocks() { u64::from(ranks) } else { 1 };
        let count = (bytes / (blocks * dtype.size() as u64)).max(u64::from(bytes > 0));
        Self {
            op,
            dtype,
            reduction,
            root,
            ranks,
            count: if op.moves() { count } else { 0 },
        }
    }

    /// Elements of the whole message.
    pub fn whole(&self) -> u64 {
        let blocks = if self.op.has_blocks() {
            u64::from(self.ranks)
        } else {
            1
        };
        self.count * blocks
    }

    /// Bytes of the whole message.
    pub fn bytes(&self) -> u64 {
        self.whole() * self.dtype.size() as u64
    }

    /// Bytes of one rank's block, or of the message where there are no blocks.
    pub fn block_bytes(&self) -> u64 {
        self.count * self.dtype.size() as u64
    }

    /// Bytes that a rank puts in, if it puts in any.
    pub fn send_bytes(&self) -> u64 {
        match self.op.sends_block() {
            true => self.block_bytes(),
            false => self.bytes(),
        }
    }

    /// Bytes that a rank gets out, if it gets any.
    pub fn recv_bytes(&self) -> u64 {
        match self.op.receives_block() {
            true => self.block_bytes(),
            false => self.bytes(),
        }
    }

    /// The operation as `rank` calls it; the sending half of send_recv.
    pub fn call(&self, rank: u32) -> Op {
        match self.op {
            BenchOp::AllReduce => Op::AllReduce,
            BenchOp::AllGather => Op::AllGather,
            BenchOp::ReduceScatter => Op::ReduceScatter,
            BenchOp::Broadcast => Op::Broadcast { root: self.root },
            BenchOp::Reduce => Op::Reduce { root: self.root },
            BenchOp::Gather => Op::Gather { root: self.root },
            BenchOp::Scatter => Op::Scatter { root: self.root },
            BenchOp::AllToAll => Op::AllToAll,
            BenchOp::SendRecv => Op::Send {
                to: (rank + 1) % self.ranks,
            },
            BenchOp::Barrier => Op::Barrier,
        }
    }

    /// The reduction, for operations that have one.
    pub fn reduction(&self) -> Option<ReduceOp> {
        self.op.reduces().then_some(self.reduction)
    }

    /// GB/s of the algorithm and of the bus, for a time.
    pub fn bandwidth(&self, usec: f64) -> (f64, f64) {
        if usec <= 0.0 {
            return (0.0, 0.0);
        }
        let algorithm = self.bytes() as f64 / usec / 1e3;
        let factor = bus_factor(self.call(0), self.ranks);
        let bus = algorithm * f64::from(factor.numerator) / f64::from(factor.denominator);
        (algorithm, bus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(op: BenchOp, ranks: u32, bytes: u64) -> Shape {
        Shape::new(op, DataType::F32, ReduceOp::Sum, 0, ranks, bytes)
    }

    #[test]
    fn sizes_come_to_whole_blocks() {
        let gather = shape(BenchOp::AllGather, 4, 64);
        assert_eq!(
            (gather.count, gather.send_bytes(), gather.recv_bytes()),
            (4, 16, 64)
        );
        let scatter = shape(BenchOp::ReduceScatter, 4, 64);
        assert_eq!((scatter.send_bytes(), scatter.recv_bytes()), (64, 16));
        let exchange = shape(BenchOp::AllToAll, 4, 64);
        assert_eq!(
            (exchange.count, exchange.send_bytes(), exchange.recv_bytes()),
            (4, 64, 64)
        );
        let reduce = shape(BenchOp::Reduce, 4, 64);
        assert_eq!((reduce.count, reduce.recv_bytes()), (16, 64));
        assert_eq!(
            shape(BenchOp::AllGather, 4, 8).bytes(),
            16,
            "one element at least"
        );
        assert_eq!(shape(BenchOp::AllReduce, 4, 0).bytes(), 0);
        assert_eq!(shape(BenchOp::Barrier, 4, 8).bytes(), 0);
    }

    #[test]
    fn bandwidths_are_those_of_nccl_tests() {
        let (algorithm, bus) = shape(BenchOp::AllReduce, 4, 4_000_000).bandwidth(1000.0);
        assert!((algorithm - 4.0).abs() < 1e-9 && (bus - 6.0).abs() < 1e-9);
        let (_, bus) = shape(BenchOp::AllGather, 4, 4_000_000).bandwidth(1000.0);
        assert!((bus - 3.0).abs() < 1e-9);
        assert_eq!(shape(BenchOp::AllReduce, 4, 8).bandwidth(0.0), (0.0, 0.0));
    }

    #[test]
    fn lists_and_all() {
        assert_eq!(
            reductions("sum, max").unwrap().0,
            [ReduceOp::Sum, ReduceOp::Max]
        );
        assert_eq!(datatypes("all").unwrap().0.len(), DataType::ALL.len());
        assert!(datatypes("f32,f33").unwrap_err().contains("f33"));
        assert!(
            "gathers"
                .parse::<BenchOp>()
                .unwrap_err()
                .contains("all_gather")
        );
    }
}
