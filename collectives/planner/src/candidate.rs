//! The plans that are compared, and how each can be cut.

use std::borrow::Cow;
use std::sync::Arc;

use unisono_network::Network;
use unisono_pack::{Packing, PairPacking, Route, Way};
use unisono_plan::{Op, Shape, Template};

use crate::programs::{self, Setting};
use crate::schedule::{Message, Schedule};
use crate::trees::{self, Cutting, LEAST_CHUNK, Lanes};
use crate::{PlanError, routes};

/// Slots of a channel, and chunks of a lane that may wait for a rank that reduces them.
const SLOTS: u32 = 8;
/// Units of weight that trees may have in all: as many as steps allow, so that lanes are even...
const UNITS: u32 = 512;
/// ... and fewer, so that pipelines fill sooner.
const FEW_UNITS: u32 = 160;

/// From what a schedule is made.
#[derive(Debug, Clone)]
pub enum Source {
    /// The programs of a template: an algorithm in some order of the ranks, rings, or levels.
    Programs(Template),
    /// A packing of trees.
    Trees(Arc<Packing>),
    /// A packing of pairs of trees, for all_reduce.
    Pairs(Arc<PairPacking>),
    /// Routes between ranks, those of one pair one after the other: for all_to_all, scatter, gather
    /// and send.
    Routes(Arc<[Route]>),
}

/// How a message is cut for a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Knob {
    /// In how many chunks: of the message, or of each rank's block where ranks have one.
    pub chunks: u64,
    /// Which chunks share a lane; without meaning for algorithms.
    pub lanes: Lanes,
}

impl Source {
    /// Its name in tables and on the command line.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Source::Programs(template) => template.name(),
            Source::Trees(_) | Source::Pairs(_) => "trees",
            Source::Routes(_) => "routes",
        }
    }

    /// Its name with what tells candidates of one name apart.
    #[must_use]
    pub fn label(&self) -> Cow<'static, str> {
        match self {
            Source::Programs(template) => template.label(),
            _ => self.name().into(),
        }
    }

    /// The ways in which chunks may share lanes.
    #[must_use]
    pub fn lanes(&self) -> Vec<Lanes> {
        match self {
            Source::Programs(_) => vec![Lanes::Path],
            Source::Routes(routes) => {
                let most = UNITS.max(routes.len() as u32);
                vec![Lanes::Path, Lanes::Through { most }]
            }
            Source::Trees(_) | Source::Pairs(_) => {
                let share = |most| Lanes::Share { most };
                vec![Lanes::Path, share(FEW_UNITS), share(UNITS)]
            }
        }
    }

    /// The most chunks into which it can cut a message.
    #[must_use]
    pub fn most_chunks(&self, op: Op, ranks: u32, bytes: u64) -> u64 {
        if op == Op::Barrier {
            return 1;
        }
        let parts = match self {
            // In all_to_all the blocks are those of two buffers.
            Source::Programs(template) => {
                let blocks = template.layout(op, ranks).map_or(1, |layout| layout.blocks);
                u64::from(if op == Op::AllToAll {
                    blocks / 2
                } else {
                    blocks
                })
            }
            _ if op.has_block_per_rank() => u64::from(ranks),
            _ => 1,
        };
        (bytes / parts.max(1) / LEAST_CHUNK).max(1)
    }

    /// About how many steps a schedule has.
    #[must_use]
    pub fn steps(&self, op: Op, ranks: u32, knob: Knob) -> u64 {
        let ranks = u64::from(ranks);
        match self {
            Source::Programs(template) => {
                let of = |rank| {
                    let shape = shape(op, ranks as u32, rank);
                    template
                        .generate(&shape)
                        .map_or(0, |program| program.len() as u64)
                };
                of(0).max(of(ranks as u32 - 1)) * ranks * knob.chunks
            }
            Source::Trees(packing) => {
                let roots = if op.has_block_per_rank() { ranks } else { 1 };
                let least = packing.trees.len() as u64;
                // What is reduced on its way needs places to be told free.
                let each = match packing.way {
                    Way::Out => 1,
                    Way::In => 2,
                };
                (knob.chunks * roots).max(least) * ranks * each
            }
            Source::Pairs(packing) => knob.chunks.max(packing.pairs.len() as u64) * ranks * 3,
            Source::Routes(routes) => {
                let hops: u64 = routes
                    .iter()
                    .map(|route| route.ranks.len() as u64 - 1)
                    .sum();
                let pairs = routes
                    .chunk_by(|a, b| a.ranks.last() == b.ranks.last())
                    .count();
                hops * knob.chunks.max(1) * pairs as u64 / routes.len().max(1) as u64 + hops
            }
        }
    }

    /// The schedule, cut in this way.
    ///
    /// # Errors
    /// If the source can't do the operation.
    pub fn schedule(
        &self,
        network: &Network,
        op: Op,
        bytes: u64,
        knob: Knob,
    ) -> Result<Schedule, PlanError> {
        let parts = if op.has_block_per_rank() {
            network.ranks()
        } else {
            1
        };
        let cutting = Cutting {
            chunk: (bytes / u64::from(parts) / knob.chunks.max(1)).max(LEAST_CHUNK),
            slots: SLOTS,
            lanes: knob.lanes,
        };
        let unfit = || PlanError::Unfit {
            algorithm: self.name().into(),
            op: op.name(),
        };
        match self {
            Source::Programs(template) => of_programs(template, network, op, bytes, knob.chunks),
            Source::Trees(packing) => {
                trees::packing(op, network, packing, bytes, cutting).ok_or_else(unfit)
            }
            Source::Pairs(packing) => {
                trees::pairs(network, packing, bytes, cutting).ok_or_else(unfit)
            }
            Source::Routes(found) => {
                routes::schedule(op, network, found, bytes, cutting).ok_or_else(unfit)
            }
        }
    }
}

/// Of a send the first rank sends, and the last one receives.
pub(crate) fn shape(op: Op, ranks: u32, rank: u32) -> Shape {
    let op = match op {
        Op::Send { .. } | Op::Recv { .. } if rank == 0 => Op::Send { to: ranks - 1 },
        Op::Send { .. } | Op::Recv { .. } => Op::Recv { from: 0 },
        op => op,
    };
    Shape {
        op,
        ranks,
        rank,
        windowed: false,
        turns: false,
    }
}

fn of_programs(
    template: &Template,
    network: &Network,
    op: Op,
    bytes: u64,
    pieces: u64,
) -> Result<Schedule, PlanError> {
    let ranks = network.ranks();
    let programs = match op.is_collective() {
        true => template.programs(op, ranks, false)?,
        false => [0, ranks - 1]
            .into_iter()
            .map(|rank| template.generate(&shape(op, ranks, rank)))
            .collect::<Result<_, _>>()?,
    };
    let element = Message::new(op, network.ranks(), bytes).element;
    let geometries = programs::geometries(&programs, bytes, element, pieces)?;
    // First: a schedule of very many steps takes seconds.
    let least = programs::least_put(&programs, &geometries).map(|elements| elements * element);
    let share = bytes / u64::from(ranks.max(1));
    if let Some(bytes) = least.filter(|put| *put < LEAST_CHUNK && share >= LEAST_CHUNK) {
        return Err(PlanError::TooFine {
            algorithm: template.name().into(),
            op: op.name(),
            bytes,
        });
    }
    let setting = Setting { slots: SLOTS };
    Ok(programs::schedule(
        &programs,
        network,
        bytes,
        &geometries,
        element,
        setting,
    )?)
}
