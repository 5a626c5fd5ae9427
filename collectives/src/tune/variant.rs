//! A plan as it may be measured: cut into puts of one size.

use unisono_plan::OpKind;
use unisono_plan::cost::PlanName;
use unisono_plan::select::Candidate;

use crate::communicator::Forced;

/// Puts are not made smaller than this.
const SMALL_PUT: u64 = 8 << 10;

/// A plan, cut in one way.
#[derive(Clone)]
pub(super) struct Variant {
    pub(super) name: PlanName,
    pub(super) forced: Forced,
}

impl Variant {
    /// A candidate as it would be cut.
    pub(super) fn new(op: OpKind, candidate: &Candidate) -> Self {
        Self {
            name: PlanName {
                op,
                windowed: candidate.windowed,
                algorithm: candidate.label.clone().into_owned(),
            },
            forced: Forced {
                plan: candidate.plan,
                windowed: candidate.windowed,
                put_bytes: candidate.put_bytes,
            },
        }
    }

    /// The same plan in other puts.
    pub(super) fn with_puts(&self, put_bytes: u64) -> Self {
        let forced = Forced {
            put_bytes,
            ..self.forced
        };
        Self {
            name: self.name.clone(),
            forced,
        }
    }

    /// The same plan with a quarter, a half and four times the bytes in a put, up to a slot.
    pub(super) fn cuts(&self, slot_bytes: u64) -> Vec<Self> {
        let own = self.forced.put_bytes;
        let mut cuts: Vec<u64> = [own / 4, own / 2, own.saturating_mul(4)]
            .into_iter()
            .map(|bytes| bytes.min(slot_bytes))
            .filter(|bytes| *bytes >= SMALL_PUT && *bytes != own)
            .collect();
        cuts.dedup();
        cuts.into_iter()
            .map(|bytes| self.with_puts(bytes))
            .collect()
    }
}
