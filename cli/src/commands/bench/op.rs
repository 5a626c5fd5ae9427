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
    const ALL: [Self; 6] = [
        Self::AllReduce,
        Self::AllGather,
        Self::ReduceScatter,
        Self::Broadcast,
        Self::SendRecv,
        Self::Barrier,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::Broadcast => "broadcast",
            Self::SendRecv => "send_recv",
            Self::Barrier => "barrier",
        }
    }

    /// Whether the reduction matters.
    pub fn reduces(self) -> bool {
        matches!(self, Self::AllReduce | Self::ReduceScatter)
    }

    /// Whether it moves data.
    pub fn moves(self) -> bool {
        self != Self::Barrier
    }

    /// Whether a size is that of all ranks' blocks together.
    fn has_blocks(self) -> bool {
        matches!(self, Self::AllGather | Self::ReduceScatter)
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

    /// Bytes that a rank puts in.
    pub fn send_bytes(&self) -> u64 {
        match self.op {
            BenchOp::AllGather => self.count * self.dtype.size() as u64,
            _ => self.bytes(),
        }
    }

    /// Bytes that a rank gets out.
    pub fn recv_bytes(&self) -> u64 {
        match self.op {
            BenchOp::ReduceScatter => self.count * self.dtype.size() as u64,
            _ => self.bytes(),
        }
    }

    /// The operation as `rank` calls it; the sending half of send_recv.
    pub fn call(&self, rank: u32) -> Op {
        match self.op {
            BenchOp::AllReduce => Op::AllReduce,
            BenchOp::AllGather => Op::AllGather,
            BenchOp::ReduceScatter => Op::ReduceScatter,
            BenchOp::Broadcast => Op::Broadcast { root: self.root },
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
            "gather"
                .parse::<BenchOp>()
                .unwrap_err()
                .contains("all_gather")
        );
    }
}
