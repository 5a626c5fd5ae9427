//! Templates on a fabric: what their messages meet, summed up once, so that predicting one costs no
//! look at single links.

use std::sync::Arc;

use crate::algorithms::{Algorithm, Unsupported, neighbours};
use crate::ir::Op;
use crate::template::{Family, Hierarchical, Members, Order, Seen, Template};

use super::fabric::{Fabric, FabricError, Link, Node, Speeds};
use super::flows::{RingWays, TreeWays};
use super::pattern::{Pattern, Survey, crowding};
use super::phases::Near;
use super::rate::Ratio;
use super::{Cost, phases, predict, predict_where, price};

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
    /// An algorithm with the ranks of each core one after the other, on links that are all alike.
    ByCore(Algorithm),
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
    pub(super) round: UpAndDown,
    /// The exchanges of halving, the widest first.
    pub(super) halvings: Vec<Exchange>,
    /// The part of the message that a rank has once the level has shared it, at most.
    pub(super) share: Part,
    /// What it has of that from one exchange.
    pub(super) piece: Part,
    /// What a rank adds up, at most: of meshes its own part from each other member.
    pub(super) summed: Part,
    /// What a rank gets from others on the way down.
    pub(super) stored: Part,
}

/// Messages of one round, on the way up and on the way down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UpAndDown {
    pub(super) up: Pattern,
    pub(super) down: Pattern,
}

/// One exchange of halving, and what goes in it at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exchange {
    pub(super) part: Part,
    pub(super) ways: UpAndDown,
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
                let mut cost = predict(*algorithm, op, false, bytes, pieces, ordered)?;
                // The fabric in another order does not know of reads.
                let whole = Ratio::new(u128::from(bytes), 1);
                cost.transfer.0 += phases::from_memory_ps(op, whole, fabric);
                Ok(cost)
            }
            Ways::ByCore(algorithm) => {
                let near = match &self.template {
                    Template::Ordered { order, .. } if order.run() > 1 => Near::InRuns(order.run()),
                    _ => Near::Following,
                };
                predict_where(*algorithm, op, false, bytes, pieces, fabric, near)
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

impl Shaped {
    /// The tree that takes the ranks of a core, each a run of the order, as one.
    pub(super) fn in_runs(order: Order) -> Self {
        let (algorithm, order) = (Algorithm::Binomial, Arc::new(order));
        Self {
            template: Template::Ordered { algorithm, order },
            ways: Ways::ByCore(algorithm),
        }
    }

    /// Algorithms that go by neighbours, with the ranks in an order in which those of a core follow each other.
    pub(super) fn by_core(order: Order) -> impl Iterator<Item = Self> {
        let order = Arc::new(order);
        Algorithm::BY_NEIGHBOURS.into_iter().map(move |algorithm| {
            let order = order.clone();
            Self {
                template: Template::Ordered { algorithm, order },
                ways: Ways::ByCore(algorithm),
            }
        })
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
    let weight = |first: u32, end: u32| weight_before[end as usize] - weight_before[first as usize];
    let ways = (0..grid.height()).map(|level| {
        let mut found = Messages::default();
        for rank in 0..levels.ranks() {
            found.add(rank, &grid.seen(rank, level), &weight);
        }
        found.on(survey, whole)
    });
    Some(ways.collect())
}

/// From whom to whom, with the weight of what goes.
type Weighted = (u32, u32, u64);

/// The messages of one level on the way up, and what ranks have.
struct Messages {
    algorithm: Algorithm,
    members: u64,
    teams: u64,
    /// Between members.
    round: Vec<Weighted>,
    /// The same of each exchange of halving, and the most messages that a rank takes there.
    halvings: Vec<(u64, Vec<Weighted>)>,
    share: u64,
    piece: u64,
    summed: u64,
    stored: u64,
}

impl Default for Messages {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::MeshOneShot,
            members: 0,
            teams: 0,
            round: Vec::new(),
            halvings: Vec::new(),
            share: 0,
            piece: 0,
            summed: 0,
            stored: 0,
        }
    }
}

impl Messages {
    /// What one rank sends, and has; `weight` is that of the blocks from one to another.
    fn add(&mut self, rank: u32, seen: &Seen, weight: &impl Fn(u32, u32) -> u64) {
        self.algorithm = seen.algorithm;
        self.teams = self.teams.max(seen.teams.len() as u64);
        let (mut share, mut summed, mut stored) = (0, 0, 0);
        for team in &seen.teams {
            let (me, count) = (team.me as usize, team.ranks.len());
            self.members = self.members.max(count as u64);
            let kept = |at: usize| weight(team.bounds[at], team.bounds[at + 1]);
            let others = weight(team.bounds[0], team.bounds[count]) - kept(me);
            self.piece = self.piece.max(kept(me));
            share += kept(me);
            stored += others;
            let added = match seen.algorithm {
                Algorithm::MeshOneShot => kept(me).saturating_mul(count as u64 - 1),
                _ => others,
            };
            summed = u64::saturating_add(summed, added);
            match seen.algorithm {
                // Everybody's part comes by in turn.
                Algorithm::Ring => {
                    let widest = (0..count).map(kept).max().unwrap_or(0);
                    self.round
                        .push((rank, team.ranks[(me + 1) % count], widest));
                }
                Algorithm::HalvingDoubling => self.halve(team, weight),
                _ => {
                    let others = (0..count).filter(|at| *at != me);
                    let to = others.map(|at| (rank, team.ranks[at], kept(at)));
                    self.round.extend(to);
                }
            }
        }
        self.share = self.share.max(share);
        self.summed = self.summed.max(summed);
        self.stored = self.stored.max(stored);
    }

    fn halve(&mut self, team: &Members, weight: &impl Fn(u32, u32) -> u64) {
        let exchanges = neighbours::halvings(team.ranks.len() as u32);
        for (index, halving) in exchanges.into_iter().enumerate() {
            if self.halvings.len() == index {
                self.halvings.push((1, Vec::new()));
            }
            let (most, messages) = &mut self.halvings[index];
            *most = (*most).max(halving.most);
            let own = (halving.gifts.iter()).filter(|(from, ..)| *from == team.me);
            messages.extend(own.map(|&(from, to, sent)| {
                let bound = |at: u32| team.bounds[at as usize];
                let rank = |member: u32| team.ranks[member as usize];
                let weight = weight(bound(sent.first), bound(sent.end()));
                (rank(from), rank(to), weight)
            }));
        }
    }

    fn on<L: Fn(u32, u32) -> Link>(self, survey: &Survey<'_, L>, whole: u64) -> LevelWays {
        let part = |weight: u64| Part { weight, whole };
        let both = |fan: u64, most: u64, messages: &[Weighted], turned: bool| {
            let turn = |&(from, to, weight): &Weighted| match turned {
                true => (to, from, weight),
                false => (from, to, weight),
            };
            UpAndDown {
                up: survey.weighted(fan, most, messages.iter().copied()),
                down: survey.weighted(fan, most, messages.iter().map(turn)),
            }
        };
        let ring = self.algorithm == Algorithm::Ring;
        let fan = match ring {
            true => self.teams,
            false => self.teams * self.members.saturating_sub(1),
        };
        let halving = |(most, messages): &(u64, Vec<Weighted>)| {
            let weight = messages.iter().map(|(.., weight)| *weight).max();
            let weight = weight.unwrap_or(0);
            Exchange {
                part: part(weight),
                ways: both(most * self.teams, weight, messages, true),
            }
        };
        LevelWays {
            algorithm: self.algorithm,
            members: self.members,
            teams: self.teams,
            // A ring goes round the same way down as up, a mesh takes back what it gave.
            round: both(fan, self.piece, &self.round, !ring),
            halvings: self.halvings.iter().map(halving).collect(),
            share: part(self.share),
            piece: part(self.piece),
            summed: part(self.summed),
            stored: part(self.stored),
        }
    }
}
