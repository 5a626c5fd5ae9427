//! Where the time of a call goes, in words: the parts of its predicted time, the link that has most to
//! do, and how many of its links each device uses at all.

mod loads;

use std::collections::BTreeSet;
use std::fmt;

use unisono_graph::{Way, units};
use unisono_plan::cost::{Cost, Picoseconds};
use unisono_plan::geometry::Sizes;
use unisono_plan::traffic::{Traffic, add_traffic};
use unisono_plan::{Geometry, Program, Shape};

use super::{Communicator, Explanation};
use crate::error::{Error, Result};
use loads::Loads;

/// Above so many ranks only what this rank itself sends is looked at.
const MOST_RANKS: u32 = 64;

/// Where the time of a call goes. Its `Display` is a few sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bottleneck {
    /// The predicted time in its parts.
    pub cost: Cost,
    /// What carries bytes longest, if any bytes move.
    pub busiest: Option<Busiest>,
    /// How many links devices have and use; one entry if all are alike, none if no bytes move.
    pub links: BTreeSet<LinkUse>,
    /// Of which rank alone this is what it sends; none if of all.
    pub of_rank: Option<u32>,
}

/// The link, or the links that share one capacity, with most to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Busiest {
    /// What it is: "tcp from rank 0 to rank 3", "what leaves node a by tcp".
    pub what: String,
    /// Bytes that go over it in one call.
    pub bytes: u64,
    /// How many it carries a second.
    pub bytes_per_second: u64,
}

impl Busiest {
    /// How long that takes at least.
    #[must_use]
    pub fn time(&self) -> Picoseconds {
        let rate = u128::from(self.bytes_per_second.max(1));
        Picoseconds(u128::from(self.bytes) * 1_000_000_000_000 / rate)
    }
}

/// The links that leave a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkUse {
    /// Their kind.
    pub kind: String,
    /// How many there are.
    pub all: usize,
    /// How many of them the plan uses.
    pub used: usize,
    /// How many lead to devices of ranks that are not in this communicator.
    pub outside: usize,
}

impl fmt::Display for Bottleneck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.cost.total();
        let mut parts: Vec<(&str, u128)> = (self.cost.parts().into_iter())
            .map(|(name, part)| (name, (part.0 * 100 + total.0 / 2) / total.0.max(1)))
            .filter(|(_, percent)| *percent > 0)
            .collect();
        parts.sort_by_key(|(_, percent)| std::cmp::Reverse(*percent));
        let parts: Vec<String> = (parts.iter())
            .map(|(name, percent)| format!("{percent} % {name}"))
            .collect();
        write!(f, "Of {total} predicted")?;
        match parts.is_empty() {
            true => write!(f, ", nothing takes long.")?,
            false => write!(f, ": {}.", parts.join(", "))?,
        }
        if let Some(rank) = self.of_rank {
            write!(f, " As rank {rank} sees it:")?;
        }
        if let Some(busiest) = &self.busiest {
            write!(
                f,
                " The busiest is {}: {} at {}, {}.",
                busiest.what,
                units::size(busiest.bytes),
                units::bandwidth(busiest.bytes_per_second),
                busiest.time()
            )?;
        }
        for links in &self.links {
            let each = match self.links.len() {
                1 => "each device's",
                _ => "some devices'",
            };
            write!(f, " The plan uses {} of {each} {}", links.used, links.all)?;
            if !loads::is_plain(&links.kind) {
                write!(f, " {}", links.kind)?;
            }
            write!(f, " {}", if links.all == 1 { "link" } else { "links" })?;
            let idle = links.all - links.used - links.outside.min(links.all - links.used);
            match (links.outside, idle) {
                (0, 0) => write!(f, ".")?,
                (0, idle) => write!(f, "; {idle} are idle.")?,
                (outside, 0) => write!(f, "; {outside} lead to ranks outside.")?,
                (outside, idle) => {
                    write!(f, "; {outside} lead to ranks outside, {idle} are idle.")?;
                }
            }
        }
        Ok(())
    }
}

impl Communicator {
    /// Where the time of an explained call goes.
    ///
    /// # Errors
    /// If the explanation is of another communicator.
    pub fn bottleneck(&self, explanation: &Explanation) -> Result<Bottleneck> {
        let selection = explanation.selection();
        let (winner, request) = (selection.winner(), &selection.request);
        let wrong = |why: String| Error::invalid("explain", why);
        if selection.ranks != self.size() {
            let (theirs, ours) = (selection.ranks, self.size());
            return Err(wrong(format!(
                "the explanation is of {theirs} ranks, this communicator has {ours}"
            )));
        }
        let alone = self.size() > MOST_RANKS || !request.op.is_collective();
        let shape = |rank| Shape {
            op: request.op,
            ranks: self.size(),
            rank,
            windowed: winner.windowed,
            turns: self.shared.fabric.shares_cores(),
        };
        let programs: Vec<Program> = match alone {
            true => vec![winner.template.generate(&shape(self.rank()))],
            false => (0..self.size())
                .map(|rank| winner.template.generate(&shape(rank)))
                .collect(),
        }
        .into_iter()
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| wrong(error.to_string()))?;
        let element = u64::from(request.element_bytes.max(1));
        let mut traffic = Traffic::new();
        for program in &programs {
            let count = Sizes::Equal(request.bytes / element);
            let geometry = Geometry::of(program, count).map_err(|e| wrong(e.to_string()))?;
            let shown = winner.template.shows_puts();
            add_traffic(&mut traffic, program, &geometry, shown);
        }
        traffic.retain(|_, elements| *elements > 0);
        let bytes = traffic.into_iter();
        let bytes = bytes.map(|(pair, elements)| (pair, elements.saturating_mul(element)));
        let (graph, fetches) = (self.graph(), self.shared.fetches);
        let rate = |from, to, way: &Way| fetches.rate(graph, from, to, way);
        let loads = Loads::new(graph, self.members(), bytes.collect(), rate);
        Ok(Bottleneck {
            cost: winner.cost,
            busiest: loads.busiest(),
            links: loads.links(),
            of_rank: alone.then(|| self.rank()),
        })
    }
}
