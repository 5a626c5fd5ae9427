//! Templates on a fabric: what their messages meet, summed up once, so that predicting one costs no
//! look at single links.

use std::sync::Arc;

use crate::algorithms::{Algorithm, Unsupported, neighbours};
use crate::ir::Op;
use crate::template::{Family, Hierarchical, Order, Template};

use super::fabric::{Fabric, FabricError, Link, Node, Speeds};
use super::flows::{RingWays, TreeWays};
use super::pattern::{Pattern, Survey, crowding};
use super::{Cost, phases, predict, price};

/// Templates that were made for a fabric.
#[derive(Debug, Clone, Default)]
pub struct Templates {
    /// Those that there are, the same on every rank, in the order that breaks ties.
    pub found: Vec<Template>,
    /// Which others there are not, and why: for who asks for them.
    pub missing: Vec<(Family, String)>,
}

/// A template, and what its messages meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shaped {
    template: Template,
    ways: Ways,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Ways {
    /// An algorithm on the fabric with its ranks in another order.
    Ordered(Algorithm, Arc<Fabric>),
    /// Level by level, the lowest first.
    Levels(Vec<LevelWays>),
    /// Several cycles at once.
    Rings(RingWays),
    /// Spanning trees at once.
    Trees(Box<TreeWays>),
}

/// A part of the message: a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) weight: u64,
    pub(super) whole: u64,
}

/// What one level of groups is like where it is slowest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LevelWays {
    pub(super) algorithm: Algorithm,
    /// The members of the largest group.
    pub(super) members: u64,
    /// Exchanges that a rank is in at the same time.
    pub(super) teams: u64,
    /// Between all members, or between neighbours on a ring.
    pub(super) round: Pattern,
    /// The exchanges of halving, the widest first.
    pub(super) halvings: Vec<Pattern>,
    /// The part of the message that a rank has once the level has shared it.
    pub(super) share: Part,
    /// What it has of that from one exchange.
    pub(super) piece: Part,
    /// What all members of an exchange have in it.
    pub(super) held: Part,
}

impl Shaped {
    /// The template.
    #[must_use]
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// Predicts its time on `fabric`, with which it was made; as [`predict`].
    ///
    /// # Errors
    /// If it doesn't have the operation.
    pub fn predict(
        &self,
        op: Op,
        bytes: u64,
        pieces: u64,
        fabric: &Fabric,
    ) -> Result<Cost, Unsupported> {
        self.template.supports(op, fabric.ranks(), false)?;
        match &self.ways {
            Ways::Ordered(algorithm, ordered) => {
                predict(*algorithm, op, false, bytes, pieces, ordered)
            }
            Ways::Levels(levels) => {
                let work = phases::levels(levels, op, bytes, fabric);
                Ok(price(&work, pieces, fabric))
            }
            Ways::Rings(rings) => {
                let work = phases::rings(rings, op, bytes, fabric);
                Ok(price(&work, pieces, fabric))
            }
            Ways::Trees(trees) => {
                let work = phases::trees(trees, op, bytes, fabric);
                Ok(price(&work, pieces, fabric))
            }
        }
    }
}

impl Fabric {
    /// The same fabric with templates for it, which selection then considers. The other arguments
    /// are those of [`Fabric::new`]. A template that the model has no formula for counts as missing.
    ///
    /// # Errors
    /// As [`Fabric::new`].
    pub fn with_templates(
        mut self,
        templates: Templates,
        node_of: &[u32],
        nodes: &[Node],
        speeds: Speeds,
        link: impl Fn(u32, u32) -> Link,
    ) -> Result<Self, FabricError> {
        let survey = Survey {
            node_of,
            nodes,
            crowd: crowding(node_of, nodes),
            switch_ps: speeds.switch_ps,
            link: &link,
        };
        let Templates { found, mut missing } = templates;
        let mut shaped = Vec::new();
        let mut last: Option<(Arc<Order>, Arc<Fabric>)> = None;
        for template in found {
            let fits = template.ranks().is_none_or(|ranks| ranks == self.ranks());
            let ways = match &template {
                _ if !fits => None,
                Template::Ordered { algorithm, order } => {
                    // Algorithms in the same order see the same fabric.
                    let known = last.take().filter(|(other, _)| other == order);
                    let ordered = match known {
                        Some((_, fabric)) => fabric,
                        None => Arc::new(in_order(order, node_of, nodes, speeds, &link)?),
                    };
                    last = Some((order.clone(), ordered.clone()));
                    Some(Ways::Ordered(*algorithm, ordered))
                }
                Template::Hierarchical(levels) => self::levels(levels, &survey).map(Ways::Levels),
                Template::Rings(rings) => Some(Ways::Rings(RingWays::new(rings, &survey))),
                Template::Trees(trees) => {
                    Some(Ways::Trees(Box::new(TreeWays::new(trees, &survey))))
                }
                _ => None,
            };
            match ways {
                Some(ways) => shaped.push(Shaped { template, ways }),
                None => {
                    let why = "the cost model has no formula for it";
                    missing.push((Family::from(&template), why.into()));
                }
            }
        }
        self.set_templates(shaped, missing);
        Ok(self)
    }
}

/// The fabric with its ranks in an order.
fn in_order(
    order: &Order,
    node_of: &[u32],
    nodes: &[Node],
    speeds: Speeds,
    link: &impl Fn(u32, u32) -> Link,
) -> Result<Fabric, FabricError> {
    let ranks = order.ranks();
    let node_of: Vec<u32> = ranks.iter().map(|&rank| node_of[rank as usize]).collect();
    let at = |place: u32| ranks[place as usize];
    Fabric::new(&node_of, nodes, speeds, |from, to| link(at(from), at(to)))
}

/// The levels of a hierarchical plan; none if its parts are too small to be counted.
fn levels<L: Fn(u32, u32) -> Link>(
    levels: &Hierarchical,
    survey: &Survey<'_, L>,
) -> Option<Vec<LevelWays>> {
    let grid = levels.grid();
    let whole = grid.whole()?;
    let mut weight_before = Vec::with_capacity(grid.blocks() as usize + 1);
    let mut sum = 0u64;
    weight_before.push(0);
    for block in 0..grid.blocks() {
        sum += grid.weight(block)?;
        weight_before.push(sum);
    }
    let part = |weight: u64| Part { weight, whole };
    let weight = |first: u32, end: u32| weight_before[end as usize] - weight_before[first as usize];
    let mut all = Vec::with_capacity(grid.height());
    for level in 0..grid.height() {
        let (mut members, mut teams) = (0u64, 0u64);
        let (mut share, mut piece, mut held) = (0u64, 0u64, 0u64);
        let mut algorithm = Algorithm::MeshOneShot;
        let mut pairs = Vec::new();
        let mut halvings: Vec<(u64, Vec<(u32, u32)>)> = Vec::new();
        for rank in 0..levels.ranks() {
            let seen = grid.seen(rank, level);
            algorithm = seen.algorithm;
            teams = teams.max(seen.teams.len() as u64);
            let mut own = 0;
            for team in &seen.teams {
                let (me, count) = (team.me as usize, team.ranks.len());
                members = members.max(count as u64);
                let kept = weight(team.bounds[me], team.bounds[me + 1]);
                own += kept;
                piece = piece.max(kept);
                held = held.max(weight(team.bounds[0], team.bounds[count]));
                match algorithm {
                    Algorithm::Ring => pairs.push((rank, team.ranks[(me + 1) % count])),
                    Algorithm::HalvingDoubling => {
                        let exchanges = neighbours::halvings(count as u32);
                        for (index, (fan, ends)) in exchanges.into_iter().enumerate() {
                            if halvings.len() == index {
                                halvings.push((1, Vec::new()));
                            }
                            halvings[index].0 = halvings[index].0.max(fan);
                            let ends = ends.into_iter().filter(|&(from, _)| from == team.me);
                            let ranks = ends.map(|(_, to)| (rank, team.ranks[to as usize]));
                            halvings[index].1.extend(ranks);
                        }
                    }
                    _ => pairs.extend(team.ranks.iter().map(|&to| (rank, to))),
                }
            }
            share = share.max(own);
        }
        let fan = match algorithm {
            Algorithm::Ring => teams,
            _ => teams * members.saturating_sub(1),
        };
        all.push(LevelWays {
            algorithm,
            members,
            teams,
            round: survey.pattern(fan, pairs.into_iter()),
            halvings: (halvings.into_iter())
                .map(|(fan, pairs)| survey.pattern(fan * teams, pairs.into_iter()))
                .collect(),
            share: part(share),
            piece: part(piece),
            held: part(held),
        });
    }
    Some(all)
}
