//! The plan of a call: chosen once for each shape of call, and kept.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use unisono_hal::SupportQuery;
use unisono_plan::geometry::Sizes;
use unisono_plan::select::{self, Overrides, Selection};
use unisono_plan::{Geometry, Op, Shape};

use super::Communicator;
use super::force::Forced;
use super::shared::{Shared, mix};
use super::start::Request;
use crate::error::{Error, Result};
use crate::execute::Planned;
use crate::{Algorithm, DataType, ReduceOp};

/// Plans kept at most; a job that uses more shapes plans some of them again.
const KEPT: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    op: Op,
    count: u64,
    dtype: DataType,
    reduction: Option<ReduceOp>,
    windows: bool,
    forced: Option<Forced>,
}

/// The plans of one communicator.
#[derive(Default)]
pub(crate) struct Plans(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    last: Option<(Key, Arc<Planned>)>,
    all: HashMap<Key, Arc<Planned>>,
}

impl Plans {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// The plan of a request, which is checked on the way.
    pub(super) fn plan(
        &self,
        request: &Request,
        windows: bool,
        forced: Option<Forced>,
    ) -> Result<Arc<Planned>> {
        let key = Key {
            op: request.op,
            count: request.count,
            dtype: request.dtype,
            reduction: request.reduction,
            windows,
            forced,
        };
        let mut kept = self.plans.lock();
        if let Some((last, planned)) = &kept.last
            && *last == key
        {
            return Ok(planned.clone());
        }
        let planned = match kept.all.get(&key) {
            Some(planned) => planned.clone(),
            None => {
                let planned = Arc::new(self.make(&key)?);
                if kept.all.len() >= KEPT {
                    kept.all.clear();
                }
                kept.all.insert(key, planned.clone());
                planned
            }
        };
        kept.last = Some((key, planned.clone()));
        Ok(planned)
    }

    fn make(&self, key: &Key) -> Result<Planned> {
        let call = key.op.name();
        self.check_ranks(key.op)?;
        self.check_device(key)?;
        let element = key.dtype.size() as u64;
        let bytes = key
            .count
            .checked_mul(element)
            .filter(|bytes| *bytes < 1 << 62);
        let bytes = bytes.ok_or_else(|| {
            Error::invalid(
                call,
                format!("{} elements of {} are too many", key.count, key.dtype),
            )
        })?;
        let rule = key.forced.map(Forced::rule);
        let overrides = rule.as_ref().unwrap_or(&self.overrides);
        let selection = self.select(key.op, bytes, key.dtype, key.windows, overrides)?;
        let winner = selection.winner();
        let unsupported = |why: String| Error::Unsupported { call, why };
        let program = unisono_plan::generate(
            winner.algorithm,
            &Shape {
                op: key.op,
                ranks: self.size(),
                rank: self.rank,
                windowed: winner.windowed,
            },
        )
        .map_err(|e| unsupported(e.to_string()))?;
        let geometry = Geometry::of(&program, Sizes::Equal(key.count))
            .and_then(|whole| whole.in_pieces(winner.pieces))
            .map_err(|e| unsupported(e.to_string()))?;
        let hash = mix(winner.pieces
            ^ (winner.algorithm as u64) << 56
            ^ u64::from(winner.windowed) << 55
            ^ self.slot_bytes.rotate_left(17));
        Ok(Planned {
            geometry,
            element,
            dtype: if key.op == Op::Barrier {
                0
            } else {
                key.dtype.code()
            },
            reduction: key.reduction.map_or(0, ReduceOp::code),
            divisor: match key.reduction {
                Some(ReduceOp::Avg) if self.size() > 1 => self.size(),
                _ => 0,
            },
            windowed: winner.windowed,
            hash: hash as u32,
            program,
        })
    }

    fn select(
        &self,
        op: Op,
        bytes: u64,
        dtype: DataType,
        windows: bool,
        overrides: &Overrides,
    ) -> Result<Selection> {
        let request = select::Request {
            op,
            bytes,
            element_bytes: dtype.size() as u32,
            slot_bytes: self.slot_bytes,
            windows,
            deterministic: self.world.options.deterministic,
        };
        select::select(&request, &self.fabric, overrides).map_err(|e| Error::Unsupported {
            call: op.name(),
            why: e.to_string(),
        })
    }

    fn explain(&self, op: Op, bytes: u64, dtype: DataType, windows: bool) -> Result<Explanation> {
        self.select(op, bytes, dtype, windows, &self.overrides)
            .map(Explanation)
    }

    /// What the device cannot do is refused here, on every rank, and never discovered on the way.
    fn check_device(&self, key: &Key) -> Result<()> {
        let (Some(reduction), true) = (key.reduction, self.size() > 1) else {
            return Ok(());
        };
        let place = unisono_hal::Place::Device;
        let query = SupportQuery {
            command: unisono_abi::command_kind::REDUCE,
            dtype: key.dtype.code(),
            reduction: reduction.code(),
            source: place,
            destination: place,
        };
        if self.world.device.supports(&query) {
            return Ok(());
        }
        Err(Error::Unsupported {
            call: key.op.name(),
            why: format!(
                "device `{}` has no {reduction} of {}",
                self.world.device.info().name,
                key.dtype
            ),
        })
    }

    fn check_ranks(&self, op: Op) -> Result<()> {
        let (what, rank) = match op {
            Op::Broadcast { root }
            | Op::Reduce { root }
            | Op::Gather { root }
            | Op::Scatter { root } => ("root", root),
            Op::Send { to } => ("to", to),
            Op::Recv { from } => ("from", from),
            _ => return Ok(()),
        };
        if rank >= self.size() {
            return Err(Error::invalid(
                op.name(),
                format!(
                    "{what} is rank {rank}, the communicator has ranks 0 to {}",
                    self.size() - 1
                ),
            ));
        }
        if !op.is_collective() && rank == self.rank {
            return Err(Error::invalid(
                op.name(),
                format!("{what} is this rank itself ({rank}); copy instead"),
            ));
        }
        Ok(())
    }
}

/// Why a call of a certain size runs as it does: the candidates, their predicted times, the winner.
/// Its `Display` is a table.
#[derive(Clone, Debug)]
pub struct Explanation(Selection);

impl Explanation {
    /// The algorithm that runs.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.0.winner().algorithm
    }

    /// Whether it goes over windows, else it is staged.
    #[must_use]
    pub fn is_windowed(&self) -> bool {
        self.0.winner().windowed
    }

    /// Everything that was considered.
    #[must_use]
    pub fn selection(&self) -> &Selection {
        &self.0
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Communicator {
    /// Why `op` on a message of `bytes` bytes (the larger buffer) runs as it does.
    ///
    /// # Errors
    /// If it cannot run: a forced algorithm, no such root.
    pub fn explain(&self, op: Op, bytes: u64, dtype: DataType) -> Result<Explanation> {
        self.shared.not_forked()?;
        self.shared.check_ranks(op)?;
        self.shared.explain(op, bytes, dtype, false)
    }

    /// [`Communicator::explain`] for buffers that lie in windows.
    ///
    /// # Errors
    /// As there.
    pub fn explain_windows(&self, op: Op, bytes: u64, dtype: DataType) -> Result<Explanation> {
        self.shared.not_forked()?;
        self.shared.check_ranks(op)?;
        self.shared.explain(op, bytes, dtype, true)
    }
}
