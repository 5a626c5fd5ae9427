//! What the user forces.

use std::ops::RangeInclusive;

use crate::ir::{Op, OpKind};
use crate::template::Family;

/// "For this operation and these sizes, use that."
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// The operation; any if absent. A send and its receive are one.
    pub op: Option<OpKind>,
    /// Sizes of the whole message in bytes.
    pub bytes: RangeInclusive<u64>,
    /// The algorithm or template to use; of several of this name the cheapest.
    pub algorithm: Family,
    /// Whether over windows; whichever is faster if absent.
    pub windowed: Option<bool>,
    /// Bytes of the largest put; as the cost decides if absent. A slot is the most that fits.
    pub put_bytes: Option<u64>,
}

/// The rules for one communicator, first match first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Overrides {
    /// The rules.
    pub rules: Vec<Override>,
}

impl Overrides {
    /// No rule: the cost decides.
    pub const NONE: Overrides = Overrides { rules: Vec::new() };

    /// The first rule for an operation on a message of this size. A rule for a send is one for its
    /// receive, and the other way round: both ends must cut the message alike.
    #[must_use]
    pub fn find(&self, op: Op, bytes: u64) -> Option<&Override> {
        (self.rules.iter()).find(|rule| {
            rule.op.is_none_or(|kind| both(kind) == both(op.kind())) && rule.bytes.contains(&bytes)
        })
    }
}

/// One kind for the two ends of a message.
fn both(kind: OpKind) -> OpKind {
    match kind {
        OpKind::Recv => OpKind::Send,
        kind => kind,
    }
}
