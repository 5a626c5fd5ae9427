//! The signature of a call: what all its ranks must agree on, in the three words that travel with
//! the first signal between each two ranks.
//!
//! Agreement costs no round: the words lie in the flag's own cache line, and whoever waits for the
//! flag compares them.

use std::fmt;

use unisono_plan::Op;

use crate::{DataType, ReductionKind};

/// The kind of a call, as it stands in a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names of the collectives")]
pub enum CallKind {
    AllReduce = 1,
    ReduceScatter = 2,
    AllGather = 3,
    Broadcast = 4,
    Barrier = 5,
    /// send and recv of one message are the same call, seen from two sides
    SendRecv = 6,
    Reduce = 7,
    Gather = 8,
    Scatter = 9,
    AllToAll = 10,
    AllGatherV = 11,
    ReduceScatterV = 12,
    AllToAllV = 13,
}

impl CallKind {
    const ALL: [Self; 13] = [
        Self::AllReduce,
        Self::ReduceScatter,
        Self::AllGather,
        Self::Broadcast,
        Self::Barrier,
        Self::SendRecv,
        Self::Reduce,
        Self::Gather,
        Self::Scatter,
        Self::AllToAll,
        Self::AllGatherV,
        Self::ReduceScatterV,
        Self::AllToAllV,
    ];

    /// The kind of an operation whose blocks are equal.
    pub(crate) const fn of(op: Op) -> Self {
        match op {
            Op::AllReduce => Self::AllReduce,
            Op::ReduceScatter => Self::ReduceScatter,
            Op::AllGather => Self::AllGather,
            Op::Broadcast { .. } => Self::Broadcast,
            Op::Reduce { .. } => Self::Reduce,
            Op::Gather { .. } => Self::Gather,
            Op::Scatter { .. } => Self::Scatter,
            Op::AllToAll => Self::AllToAll,
            Op::Barrier => Self::Barrier,
            Op::Send { .. } | Op::Recv { .. } => Self::SendRecv,
        }
    }

    /// The kind of an operation whose blocks have lengths of their own, if it has such a form.
    pub(crate) const fn with_parts(op: Op) -> Option<Self> {
        match op {
            Op::AllGather => Some(Self::AllGatherV),
            Op::ReduceScatter => Some(Self::ReduceScatterV),
            Op::AllToAll => Some(Self::AllToAllV),
            _ => None,
        }
    }

    /// The name, as in the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::ReduceScatter => "reduce_scatter",
            Self::AllGather => "all_gather",
            Self::Broadcast => "broadcast",
            Self::Barrier => "barrier",
            Self::SendRecv => "send/recv",
            Self::Reduce => "reduce",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
            Self::AllToAll => "all_to_all",
            Self::AllGatherV => "all_gather_v",
            Self::ReduceScatterV => "reduce_scatter_v",
            Self::AllToAllV => "all_to_all_v",
        }
    }
}

/// One call, as every rank that takes part must see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// What is called.
    pub kind: CallKind,
    /// The communicator's n-th collective, or the pair's n-th message, from 0, modulo 2^32.
    pub sequence: u32,
    /// Elements, in the sense of the API's `count`; of all_gather_v and reduce_scatter_v all in
    /// all, of all_to_all_v those between the two ranks that compare, else [`Call::PER_PAIR`].
    pub count: u64,
    /// The type of an element; `None` for a barrier.
    pub dtype: Option<DataType>,
    /// The reduction, where there is one.
    pub op: Option<ReductionKind>,
    /// The root, where there is one.
    pub root: Option<u32>,
    /// A hash of how it runs: algorithm, pieces, windows, the counts of all_gather_v and its like.
    pub plan: u32,
    /// Whether it was recorded into a graph of the program's, and runs with each replay.
    pub recorded: bool,
}

impl Call {
    /// The count of an all_to_all_v as a whole: each two ranks have their own.
    pub const PER_PAIR: u64 = u64::MAX;

    /// The words that travel.
    #[must_use]
    pub fn words(&self) -> [u64; 3] {
        let dtype = u64::from(self.dtype.map_or(0, DataType::code));
        let op = self.op.map_or(0, |op| u64::from(op.code()));
        [
            u64::from(self.sequence) << 32
                | u64::from(self.recorded) << 24
                | (self.kind as u64) << 16
                | dtype << 8
                | op,
            self.count,
            u64::from(self.root.map_or(u32::MAX, |r| r)) << 32 | u64::from(self.plan),
        ]
    }

    /// The sequence of the call behind words.
    pub(crate) const fn sequence_of(words: [u64; 3]) -> u32 {
        (words[0] >> 32) as u32
    }

    /// Whether the call behind words is a send or a recv.
    pub(crate) const fn is_message(words: [u64; 3]) -> bool {
        (words[0] >> 16) as u8 == CallKind::SendRecv as u8
    }

    /// The call behind words that a peer sent; `None` if they are no call's.
    #[must_use]
    pub fn from_words(words: [u64; 3]) -> Option<Self> {
        let byte = |shift: u32| (words[0] >> shift) as u8;
        let root = (words[2] >> 32) as u32;
        Some(Self {
            kind: CallKind::ALL.into_iter().find(|k| *k as u8 == byte(16))?,
            sequence: Self::sequence_of(words),
            count: words[1],
            dtype: DataType::from_code(u16::from(byte(8))),
            op: ReductionKind::from_code(byte(0)),
            root: (root != u32::MAX).then_some(root),
            plan: words[2] as u32,
            recorded: byte(24) != 0,
        })
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.kind.name())?;
        let mut separator = "";
        let mut item = |f: &mut fmt::Formatter<'_>, text: String| {
            let result = write!(f, "{separator}{text}");
            separator = ", ";
            result
        };
        if let Some(dtype) = self.dtype {
            match (self.kind, self.count) {
                (CallKind::AllToAllV, Self::PER_PAIR) => {}
                (CallKind::AllToAllV, count) => {
                    item(f, format!("count {count} between these two"))?;
                }
                (_, count) => item(f, format!("count {count}"))?,
            }
            item(f, dtype.to_string())?;
        }
        if let Some(op) = self.op {
            item(f, op.to_string())?;
        }
        if let Some(root) = self.root {
            item(f, format!("root {root}"))?;
        }
        write!(f, ") as call {} with plan {:08x}", self.sequence, self.plan)?;
        match self.recorded {
            true => f.write_str(", recorded into a graph"),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_carry_the_whole_call() {
        let call = Call {
            kind: CallKind::Broadcast,
            sequence: u32::MAX,
            count: 1 << 40,
            dtype: Some(DataType::Bf16),
            op: None,
            root: Some(7),
            plan: 0xdead_beef,
            recorded: true,
        };
        assert_eq!(Call::from_words(call.words()), Some(call));
        let barrier = Call {
            kind: CallKind::Barrier,
            dtype: None,
            root: None,
            ..call
        };
        assert_eq!(Call::from_words(barrier.words()), Some(barrier));
        assert_eq!(Call::from_words([0; 3]), None);
    }

    #[test]
    fn a_call_reads_as_it_was_written() {
        let call = Call {
            kind: CallKind::AllReduce,
            sequence: 3,
            count: 1024,
            dtype: Some(DataType::F32),
            op: Some(crate::ReduceOp::Sum.into()),
            root: None,
            plan: 1,
            recorded: false,
        };
        assert_eq!(
            call.to_string(),
            "all_reduce(count 1024, f32, sum) as call 3 with plan 00000001"
        );
        let recorded = Call {
            recorded: true,
            ..call
        };
        assert!(recorded.to_string().ends_with(", recorded into a graph"));
    }
}
