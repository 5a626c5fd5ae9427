//! Which templates are still counted: one that is far behind is left, and taken up again if it must be.
//!
//! Bytes on a link only grow while ranks are counted, so what a template's fullest link takes already is the
//! least that the whole takes. What the best takes in the end is guessed from its first ranks. The guess
//! decides nothing but the order: what was left wrongly is counted to its end.

use unisono_network::Network;

use super::{Rounds, Sum};
use crate::PlanError;

/// Up to so many ranks all templates are counted to their ends.
const SHORT: u32 = 2048;
/// Who runs is looked at after a sixteenth of the ranks, and then each time after twice as many.
const FIRST_LOOK: u32 = 16;
/// A template is left when it takes so many times what the best is guessed to.
const FAR_BEHIND: f64 = 4.0;

pub(super) struct Race {
    ranks: u32,
    /// The next rank to count.
    next: u32,
    /// After which rank the next look is.
    look: u32,
    running: Vec<usize>,
    /// Templates and the ranks at which they were left.
    left: Vec<(usize, u32)>,
    finished: Vec<usize>,
}

impl Race {
    pub(super) fn new(network: &Network, walked: &[Result<Option<Rounds>, PlanError>]) -> Self {
        let ranks = network.ranks();
        let runs = |at: &usize| matches!(walked[*at], Ok(Some(_)));
        Self {
            ranks,
            next: 0,
            look: match ranks {
                0..=SHORT => ranks,
                _ => ranks / FIRST_LOOK,
            },
            running: (0..walked.len()).filter(runs).collect(),
            left: Vec::new(),
            finished: Vec::new(),
        }
    }

    /// The rank to count next, for all that run; none at the end.
    pub(super) fn next(&mut self, network: &Network, sums: &[Sum]) -> Option<u32> {
        if self.next == self.look && self.next < self.ranks {
            self.look *= 2;
            self.leave(network, sums);
        }
        if self.next == self.ranks {
            self.finished.append(&mut self.running);
            self.take_up(network, sums)?;
        }
        self.next += 1;
        Some(self.next - 1)
    }

    pub(super) fn running(&self) -> &[usize] {
        &self.running
    }

    /// Whether a template was left for good.
    pub(super) fn has_left(&self, template: usize) -> bool {
        self.left.iter().any(|&(at, _)| at == template)
    }

    fn leave(&mut self, network: &Network, sums: &[Sum]) {
        let counted = f64::from(self.next) / f64::from(self.ranks);
        let limit = FAR_BEHIND * least(network, sums, &self.running) / counted;
        let is_near = |&at: &usize| sums[at].fullest_ps(network) <= limit;
        let (running, left) = std::mem::take(&mut self.running)
            .into_iter()
            .partition(is_near);
        self.running = running;
        let left: Vec<usize> = left;
        self.left.extend(left.into_iter().map(|at| (at, self.next)));
    }

    /// Goes on with one that may be better than all that have finished. None if there is none.
    fn take_up(&mut self, network: &Network, sums: &[Sum]) -> Option<()> {
        let best = least(network, sums, &self.finished);
        let may_win = |&(at, _): &(usize, u32)| sums[at].fullest_ps(network) < best;
        let place = self.left.iter().position(may_win)?;
        let (at, rank) = self.left.remove(place);
        self.running.push(at);
        self.next = rank;
        self.look = self.ranks;
        Some(())
    }
}

/// The least time of some templates in one piece, from what is counted of them.
fn least(network: &Network, sums: &[Sum], of: &[usize]) -> f64 {
    let times = of.iter().map(|&at| sums[at].so_far(network).ps(1));
    times.fold(f64::INFINITY, f64::min)
}
