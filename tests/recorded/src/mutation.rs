//! Ways in which an executor could lose or confuse one signal.

use std::ops::Range;

use crate::program::{Flag, Lane, Line, Program, Raise, Step};

/// One mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// A signal, or the signal of a put, is not raised.
    DropSignal(Site),
    /// A put does not say that its source may be reused.
    DropDone(Site),
    /// A wait is left out.
    DropWait(Site),
    /// Two signals of one queue change places: each is raised where the other was.
    Swap(Site, Site),
}

/// A step of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// The queue's number.
    pub queue: usize,
    /// The step's number.
    pub step: usize,
}

/// What a mutation does to a step.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mutated {
    pub signals_not: bool,
    pub is_done_not: bool,
    pub waits_not: bool,
    /// It raises the signal of this step of its queue.
    pub signals: Option<usize>,
}

impl Mutation {
    pub(crate) fn at(self, queue: usize, step: usize) -> Mutated {
        let here = Site { queue, step };
        let mut mutated = Mutated::default();
        match self {
            Self::DropSignal(site) => mutated.signals_not = site == here,
            Self::DropDone(site) => mutated.is_done_not = site == here,
            Self::DropWait(site) => mutated.waits_not = site == here,
            Self::Swap(a, b) if a == here => mutated.signals = Some(b.step),
            Self::Swap(a, b) if b == here => mutated.signals = Some(a.step),
            Self::Swap(..) => {}
        }
        mutated
    }
}

/// Every signal dropped that says something, every done, every wait.
pub fn drops(program: &Program) -> impl Iterator<Item = Mutation> {
    program
        .queues
        .iter()
        .enumerate()
        .flat_map(move |(queue, lane)| {
            lane.steps.iter().enumerate().flat_map(move |(step, what)| {
                let site = Site { queue, step };
                let (one, other) = match what {
                    Step::Raise(raise) if program.flags[raise.flag as usize].line == Line::Bell => {
                        (None, None)
                    }
                    Step::Raise(_) => (Some(Mutation::DropSignal(site)), None),
                    Step::Wait { .. } => (Some(Mutation::DropWait(site)), None),
                    Step::Put { signal, done, .. } => (
                        signal.map(|_| Mutation::DropSignal(site)),
                        done.map(|_| Mutation::DropDone(site)),
                    ),
                    _ => (None, None),
                };
                one.into_iter().chain(other)
            })
        })
}

/// For each signal, the nearest later one of its queue that would come too early in its place.
///
/// A signal vouches for something: that a slot was filled, or was read for the last time, or that a
/// link may read a source. It comes too early if this happens between the two places. Two signals
/// between which nothing happens that the later one vouches for are left out: that program does the
/// same in another order, and is no worse.
pub fn swaps(program: &Program) -> impl Iterator<Item = Mutation> {
    (0..program.queues.len()).flat_map(move |queue| {
        (0..program.queues[queue].steps.len()).filter_map(move |first| {
            let second = later(program, queue, first)?;
            let site = |step| Site { queue, step };
            Some(Mutation::Swap(site(first), site(second)))
        })
    })
}

fn later(program: &Program, queue: usize, first: usize) -> Option<usize> {
    let steps = &program.queues[queue].steps;
    let early = raise(&steps[first])?;
    (first + 1..steps.len()).find(|&second| {
        raise(&steps[second]).is_some_and(|late| {
            late.flag != early.flag && vouches(program, queue, second, first + 1..second + 1)
        })
    })
}

fn raise(step: &Step) -> Option<Raise> {
    match step {
        Step::Raise(raise) => Some(*raise),
        Step::Put { signal, .. } => *signal,
        _ => None,
    }
}

/// Whether what the signal at `step` vouches for happens in these steps.
fn vouches(program: &Program, queue: usize, step: usize, within: Range<usize>) -> bool {
    let steps = &program.queues[queue].steps;
    let Some(signal) = raise(&steps[step]) else {
        return false;
    };
    let flag = program.flags[signal.flag as usize];
    let nth = || {
        let before = steps[..step].iter().filter_map(raise);
        before.filter(|other| other.flag == signal.flag).count()
    };
    let steps = &steps[within];
    match flag.line {
        Line::Data(slot) => writes(steps, program.memory.slot(flag.owner, flag.peer, slot)),
        Line::Shown(_) => shows(program, steps, flag.owner),
        Line::Credit => reads(steps, given_back(program, flag, nth())),
        // To its link, for what that does next.
        Line::Doorbell => match rung(program, flag, nth()) {
            Some(Step::Put { src, .. }) if !src.is_empty() => writes(steps, src.clone()),
            Some(Step::Put {
                signal: Some(put), ..
            }) => {
                let credit = program.flags[put.flag as usize];
                let before = credits(program, flag, nth());
                reads(steps, given_back(program, credit, before))
            }
            _ => false,
        },
        Line::Done | Line::Bell => false,
    }
}

/// Whether some steps write any of these cells.
fn writes(steps: &[Step], cells: Range<u32>) -> bool {
    steps.iter().any(|step| match step {
        Step::Copy { dst, .. } | Step::Reduce { dst, .. } | Step::Read { dst, .. } => {
            cells.contains(dst)
        }
        Step::Put { src, dst, .. } => !src.is_empty() && cells.contains(dst),
        _ => false,
    })
}

/// Whether some steps write anything that this rank shows.
fn shows(program: &Program, steps: &[Step], rank: u32) -> bool {
    steps.iter().any(|step| match step {
        Step::Copy { dst, .. } | Step::Reduce { dst, .. } => program.memory.is_shown_by(*dst, rank),
        _ => false,
    })
}

/// Whether some steps read any of these cells.
fn reads(steps: &[Step], cells: Range<u32>) -> bool {
    steps.iter().any(|step| match step {
        Step::Copy { src, .. } => cells.contains(src),
        Step::Reduce { a, b, .. } => cells.contains(a) || cells.contains(b),
        _ => false,
    })
}

/// The slot that is given back by the `nth` signal of a credit flag; none if what is given back was shown.
fn given_back(program: &Program, flag: Flag, nth: usize) -> Range<u32> {
    let (from, to) = (flag.owner, flag.peer);
    let mut lanes = program.queues.iter();
    let stream = lanes.find(|lane| lane.rank == from && lane.peer.is_none());
    let raised = (stream.into_iter()).flat_map(|lane| lane.steps.iter().filter_map(raise));
    let mut puts = raised
        .map(|raise| program.flags[raise.flag as usize])
        .filter(|flag| match flag.line {
            Line::Data(_) => (flag.owner, flag.peer) == (to, from),
            Line::Shown(_) => flag.owner == from,
            _ => false,
        });
    if (puts.nth(nth)).is_some_and(|flag| matches!(flag.line, Line::Shown(_))) {
        return 0..0;
    }
    let number = nth % crate::job::SLOTS as usize;
    program.memory.slot(to, from, number as u32)
}

/// The link that a doorbell rings, and the number of its step that the `nth` ring lets go on.
fn ringing(program: &Program, bell: Flag, nth: usize) -> Option<(&Lane, usize)> {
    let ends = |lane: &&Lane| lane.rank == bell.owner && lane.peer == Some(bell.peer);
    let link = program.queues.iter().find(ends)?;
    let waits = link
        .steps
        .iter()
        .enumerate()
        .filter(|(_, step)| match step {
            Step::Wait { flag, .. } => program.flags[*flag as usize] == bell,
            _ => false,
        });
    let (step, _) = waits.into_iter().nth(nth)?;
    Some((link, step + 1))
}

/// What a link does after the `nth` ring of its doorbell.
fn rung(program: &Program, bell: Flag, nth: usize) -> Option<&Step> {
    let (link, step) = ringing(program, bell, nth)?;
    link.steps.get(step)
}

/// Slots that a link has given back before the `nth` ring of its doorbell.
fn credits(program: &Program, bell: Flag, nth: usize) -> usize {
    let Some((link, step)) = ringing(program, bell, nth) else {
        return 0;
    };
    let raised = link.steps[..step].iter().filter_map(raise);
    let lines = raised.map(|raise| program.flags[raise.flag as usize].line);
    lines.filter(|line| *line == Line::Credit).count()
}
