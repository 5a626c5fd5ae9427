//! What is chosen over all sizes.
//!
//! Bounds and packings depend on the network and the operation alone, so they are found once and kept
//! for all sizes.

use std::fmt::Write as _;

use unisono_bound::Bound;
use unisono_graph::units;
use unisono_network::Network;
use unisono_plan::Op;

use crate::PlanError;
use crate::candidate::Source;
use crate::plan::{Plan, Request, bound_of, plan_among, sources};

/// The smallest message of a front, in bytes.
const SMALLEST: u64 = 256;

/// What is known of an operation on a network, whatever the size.
#[derive(Debug, Clone)]
pub struct Planner<'a> {
    network: &'a Network,
    op: Op,
    bound: Option<Bound>,
    sources: Vec<Source>,
    why: Vec<String>,
}

/// What is chosen for one size.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The size of the larger buffer.
    pub bytes: u64,
    /// The candidate's label.
    pub label: String,
    /// In how many chunks.
    pub chunks: u64,
    /// The predicted time in microseconds.
    pub predicted_us: f64,
    /// The least time that any plan needs over that.
    pub share_of_bound: f64,
}

impl<'a> Planner<'a> {
    /// Finds bounds and candidates.
    ///
    /// # Errors
    /// As [`plan`](crate::plan()).
    pub fn new(network: &'a Network, op: Op) -> Result<Self, PlanError> {
        let bound = bound_of(network, op)?;
        let (sources, why) = sources(network, op, bound.as_ref());
        Ok(Self {
            network,
            op,
            bound,
            sources,
            why,
        })
    }

    /// Plans a message of the request's size. The operation is the planner's.
    ///
    /// # Errors
    /// As [`plan`](crate::plan()).
    pub fn plan(&self, request: &Request) -> Result<Plan, PlanError> {
        let request = Request {
            op: self.op,
            ..request.clone()
        };
        let (bound, sources) = (self.bound.clone(), self.sources.clone());
        plan_among(self.network, &request, bound, sources, self.why.clone())
    }

    /// What is chosen at sizes that double, up to the request's.
    ///
    /// # Errors
    /// As [`plan`](crate::plan()).
    pub fn front(&self, request: &Request) -> Result<Vec<Row>, PlanError> {
        let doubled = |bytes: &u64| bytes.checked_mul(2);
        let sizes = std::iter::successors(Some(SMALLEST), doubled);
        let sizes = sizes.take_while(|bytes| *bytes < request.bytes);
        let row = |bytes: u64| {
            let plan = self.plan(&Request {
                bytes,
                ..request.clone()
            })?;
            let chosen = (plan.candidates.iter())
                .find(|scored| scored.source.name() == plan.algorithm)
                .map(|scored| scored.source.label().into_owned());
            Ok(Row {
                bytes,
                chunks: plan.knob.chunks,
                predicted_us: plan.predicted_us(),
                share_of_bound: plan.share_of_bound(),
                label: chosen.unwrap_or(plan.algorithm),
            })
        };
        sizes.chain([request.bytes]).map(row).collect()
    }
}

/// A front as text for people.
#[must_use]
pub fn text(op: Op, ranks: u32, rows: &[Row]) -> String {
    let mut out = format!("{op} over {ranks} ranks, by size\n");
    let width = rows.iter().map(|row| row.label.len()).max().unwrap_or(0);
    let width = width.max(9);
    let _ = writeln!(
        out,
        "{:>10}  {:width$} {:>7} {:>14} {:>7}",
        "bytes", "algorithm", "chunks", "predicted us", "share"
    );
    for row in rows {
        let _ = writeln!(
            out,
            "{:>10}  {:width$} {:>7} {:>14.2} {:>6.1}%",
            units::size(row.bytes),
            row.label,
            row.chunks,
            row.predicted_us,
            100.0 * row.share_of_bound
        );
    }
    out
}
