//! Tuning: measure what links and plans really take here, so that selection need not guess.
//!
//! The measurements of a communicator hold for every communicator whose fabric looks the same to
//! the cost model: as many ranks, placed alike, over links that report the same. They are kept in a
//! [`Calibration`], a file for each cluster.

mod calibration;
mod cell;
mod check;
mod clock;
mod grid;
mod memory;
mod now;
mod pair;
mod places;
mod sweep;
mod variant;

use std::time::Duration;

pub use calibration::{Calibration, FabricFigures, LinkFigures, PlanFigures};
pub use check::Choice;
use unisono_plan::OpKind;

use crate::Communicator;
use crate::error::{Error, Result};

/// What to measure.
#[derive(Clone, Debug)]
pub struct TuneOptions {
    /// The operations; those that move data between no ranks or only two have nothing to choose.
    pub ops: Vec<OpKind>,
    /// The smallest message in bytes.
    pub min_bytes: u64,
    /// The largest message in bytes. Each rank holds four buffers of this size.
    pub max_bytes: u64,
    /// Each size is this many times the one before.
    pub factor: u64,
    /// About how long one plan runs at one size, all rounds together. A slow call runs longer.
    pub figure: Duration,
    /// Rounds, in which plans take turns. Where ranks share cores, others do in each round. When tuning, plans that are
    /// close to each other have as many again, and a plan whose single call takes longer than `figure` has three at
    /// most of either.
    pub rounds: u32,
    /// Whether plans over windows are measured too.
    pub windows: bool,
}

impl Default for TuneOptions {
    /// Everything from 8 B to 64 MiB in steps of four.
    fn default() -> Self {
        Self {
            ops: OpKind::ALL
                .into_iter()
                .filter(|op| !matches!(op, OpKind::Send | OpKind::Recv))
                .collect(),
            min_bytes: 8,
            max_bytes: 64 << 20,
            factor: 4,
            figure: Duration::from_millis(12),
            rounds: 7,
            windows: true,
        }
    }
}

impl TuneOptions {
    fn check(&self) -> Result<()> {
        if self.min_bytes > 0 && self.max_bytes >= self.min_bytes && self.factor >= 2 {
            return Ok(());
        }
        Err(Error::invalid(
            "tune",
            format!(
                "sizes from {} to {} bytes, each {} times the one before, are none",
                self.min_bytes, self.max_bytes, self.factor
            ),
        ))
    }
}

/// How far tuning is.
#[derive(Clone, Copy, Debug)]
pub struct TuneProgress {
    /// What is measured next.
    pub op: OpKind,
    /// At this size in bytes.
    pub bytes: u64,
    /// Steps that are done: each size of each operation is one in the survey, and one in each round after it.
    pub done: u64,
    /// And all of them.
    pub total: u64,
}

impl Communicator {
    /// Measures the links and plans of this communicator. All ranks call this together, and all get
    /// the same figures; nothing changes in this communicator. A communicator that is formed later
    /// with [`InitOptions::calibration`](crate::InitOptions) goes by them.
    ///
    /// `progress` is told what comes next, on every rank.
    ///
    /// # Errors
    /// [`Error::Invalid`] for sizes that are none; [`Error`] of a call that fails.
    pub fn tune(
        &self,
        options: &TuneOptions,
        progress: &mut dyn FnMut(&TuneProgress),
    ) -> Result<Calibration> {
        options.check()?;
        let mut calibration = Calibration::default();
        for (kind, a, b) in pair::kinds(self) {
            calibration.links.insert(kind, pair::measure(self, a, b)?);
        }
        let measured = sweep::run(self, options, progress)?;
        let figures = FabricFigures::new(self.size(), self.about(), &measured);
        let key = calibration::key(self.fabric().fingerprint());
        calibration.fabrics.insert(key, figures);
        Ok(calibration)
    }

    /// What this communicator is, in words.
    fn about(&self) -> String {
        let kinds: Vec<String> = (pair::kinds(self).into_iter())
            .map(|(kind, ..)| kind)
            .collect();
        let nodes = self.graph().nodes().len();
        format!(
            "{} ranks on {nodes} {} with {}, over {}",
            self.size(),
            if nodes == 1 { "node" } else { "nodes" },
            self.device().info().name,
            if kinds.is_empty() {
                "no link".to_owned()
            } else {
                kinds.join(", ")
            }
        )
    }
}
