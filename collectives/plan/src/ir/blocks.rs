//! Sets of blocks.

use std::fmt;

/// A regular set of blocks, in an order: runs of neighbours, all of one length but the last, whose
/// first blocks are a stride apart. Most sets are one run.
///
/// Names count modulo the section of their message ([`super::Program::section`]): the block after
/// the last one of a section is its first one. So a set needs its section to say which blocks it
/// holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Blocks {
    /// The first block.
    pub first: u32,
    /// How many blocks.
    pub count: u32,
    /// Blocks in a run; `count` if there is one run only.
    run: u32,
    /// From the start of one run to that of the next; `count` if there is one run only;
    /// [`BACKWARDS`] if each block is the one before the last.
    stride: u32,
}

/// The stride of a set that goes down.
const BACKWARDS: u32 = u32::MAX;

impl Blocks {
    /// No block.
    pub const NONE: Blocks = Blocks::new(0, 0);

    /// `count` neighbours from `first` on.
    #[must_use]
    pub const fn new(first: u32, count: u32) -> Self {
        Self {
            first,
            count,
            run: count,
            stride: count,
        }
    }

    /// One block.
    #[must_use]
    pub const fn one(block: u32) -> Self {
        Self::new(block, 1)
    }

    /// `count` blocks in runs of `run`, `stride` apart. A run of 0 counts as 1, a stride shorter
    /// than a run as one run.
    #[must_use]
    pub const fn strided(first: u32, count: u32, run: u32, stride: u32) -> Self {
        let run = if run == 0 { 1 } else { run };
        if count <= run || stride <= run || stride == BACKWARDS {
            return Self::new(first, count);
        }
        Self {
            first,
            count,
            run,
            stride,
        }
    }

    /// `count` neighbours from `first` on downwards.
    #[must_use]
    pub const fn backwards(first: u32, count: u32) -> Self {
        if count <= 1 {
            return Self::new(first, count);
        }
        Self {
            first,
            count,
            run: 1,
            stride: BACKWARDS,
        }
    }

    /// Whether there is no block in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.count == 0
    }

    /// Whether the set is one run upwards, though it may go over the end of its section.
    #[must_use]
    pub const fn is_run(self) -> bool {
        self.run == self.count
    }

    /// The block after the last one of a single run that doesn't go over the end of its section.
    #[must_use]
    pub const fn end(self) -> u32 {
        self.first + self.count
    }

    /// Whether the numbers of the set are `first` and those that follow it.
    #[must_use]
    pub const fn is_plain(self, section: u32) -> bool {
        self.is_run() && self.first as u64 % section as u64 + self.count as u64 <= section as u64
    }

    /// The block at a position of the set; a position counts from 0.
    #[must_use]
    pub const fn at(self, position: u32, section: u32) -> u32 {
        let offset = if self.is_run() {
            position
        } else if self.stride == BACKWARDS {
            section - position
        } else {
            position / self.run * self.stride + position % self.run
        };
        step(self.first, offset, section)
    }

    /// The blocks, in order.
    pub fn iter(self, section: u32) -> impl ExactSizeIterator<Item = u32> + Clone {
        (0..self.count).map(move |position| self.at(position, section))
    }

    /// The position of a block in the set.
    #[must_use]
    pub fn position(self, block: u32, section: u32) -> Option<u32> {
        let section = section.max(1);
        if block / section != self.first / section || self.is_empty() {
            return None;
        }
        let offset = (block + section - self.first) % section;
        let position = if self.is_run() {
            offset
        } else if self.stride == BACKWARDS {
            (section - offset) % section
        } else {
            if offset % self.stride >= self.run {
                return None;
            }
            offset / self.stride * self.run + offset % self.stride
        };
        (position < self.count).then_some(position)
    }

    /// Where `part` starts in this set, if it is some neighbours of it, in the same order.
    #[must_use]
    pub fn find(self, part: Blocks, section: u32) -> Option<u32> {
        if part == self || part.is_empty() {
            return Some(0);
        }
        let start = self.position(part.first, section)?;
        let fits = part.count <= self.count - start;
        let alike = |at: u32| self.at(start + at, section) == part.at(at, section);
        let plain = self.is_run() && part.is_run();
        (fits && (plain || (0..part.count).all(alike))).then_some(start)
    }

    /// The first blocks of the set.
    #[must_use]
    pub const fn prefix(self, count: u32) -> Self {
        if self.is_run() {
            Self::new(self.first, count)
        } else if self.stride == BACKWARDS {
            Self::backwards(self.first, count)
        } else {
            Self::strided(self.first, count, self.run, self.stride)
        }
    }

    /// The set, every block `by` further on.
    #[must_use]
    pub const fn shifted(self, by: u32, section: u32) -> Self {
        if by == 0 || self.is_empty() {
            return self;
        }
        Self {
            first: step(self.first, by, section),
            ..self
        }
    }

    /// How many neighbours it takes to hold all blocks of the set.
    #[must_use]
    pub const fn reach(self) -> u64 {
        match self.count {
            0 => 0,
            _ if self.is_run() || self.stride == BACKWARDS => self.count as u64,
            count => {
                let last = count - 1;
                (last / self.run) as u64 * self.stride as u64 + (last % self.run) as u64 + 1
            }
        }
    }

    /// The smallest run with all blocks of the set that doesn't go over the end of the section.
    #[must_use]
    pub fn within(self, section: u32) -> Self {
        let (section, reach) = (section.max(1), self.reach() as u32);
        let inside = self.first % section;
        if self.stride == BACKWARDS && !self.is_run() && inside + 1 >= self.count {
            return Self::new(self.first + 1 - self.count, self.count);
        }
        if self.stride != BACKWARDS && u64::from(inside) + self.reach() <= u64::from(section) {
            Self::new(self.first, reach)
        } else {
            Self::new(self.first - inside, section)
        }
    }

    /// The smallest run that holds two runs, neither of which goes over the end of a section.
    #[must_use]
    pub fn hull(self, other: Blocks) -> Blocks {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        let first = self.first.min(other.first);
        Blocks::new(first, self.end().max(other.end()) - first)
    }
}

/// The block `by` after another one, in the same section. `by` may be a section or more.
const fn step(block: u32, by: u32, section: u32) -> u32 {
    let at = block as u64 + by as u64;
    // Sections are seldom left; then there is nothing to divide.
    if section == 0 {
        return block;
    }
    let base = block - block % section;
    let end = base as u64 + section as u64;
    if at < end {
        at as u32
    } else {
        base + ((at - base as u64) % section as u64) as u32
    }
}

impl fmt::Display for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            0 => f.write_str("[]"),
            1 => write!(f, "[{}]", self.first),
            _ if self.is_run() => write!(f, "[{}..{}]", self.first, self.end()),
            count if self.stride == BACKWARDS => write!(f, "[{} down, {count}]", self.first),
            count if self.run == 1 => write!(f, "[{} by {}, {count}]", self.first, self.stride),
            count => write!(
                f,
                "[{}..{} by {}, {count}]",
                self.first,
                self.first + self.run,
                self.stride
            ),
        }
    }
}

#[cfg(test)]
mod tests;
