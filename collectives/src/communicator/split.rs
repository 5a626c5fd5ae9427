//! Communicators made from communicators.

use super::grid::Grid;
use super::shared::{Shared, mix};
use super::wire::Reader;
use super::{Communicator, form};
use crate::error::{Error, Result};

impl Communicator {
    /// Splits the ranks by `color`; within a color they are ordered by `key`, then by rank. A rank
    /// with no color gets no communicator. Every rank must call it.
    ///
    /// # Errors
    /// As [`Communicator::init`].
    pub fn split(&self, color: Option<u32>, key: i64) -> Result<Option<Self>> {
        let name = format!("{}/{}", self.shared.name, color.unwrap_or(0));
        self.split_named(color, key, &name)
    }

    /// [`Communicator::split`] with a name for the new communicator, by which overrides select it.
    ///
    /// # Errors
    /// As there.
    pub fn split_named(&self, color: Option<u32>, key: i64, name: &str) -> Result<Option<Self>> {
        let shared = &self.shared;
        shared.usable()?;
        let mut mine = Vec::new();
        mine.extend_from_slice(&color.map_or(u64::MAX, u64::from).to_le_bytes());
        mine.extend_from_slice(&key.to_le_bytes());
        let all = shared.exchange(&mine)?;
        let id = shared.child_id(color.map_or(0, |c| u64::from(c) + 1));
        let Some(color) = color else {
            return Ok(None);
        };
        let mut chosen = Vec::new();
        for (rank, bytes) in all.iter().enumerate() {
            let mut reader = Reader(bytes);
            let (Some(theirs), Some(key)) = (reader.u64(), reader.u64()) else {
                return Err(Error::Graph(format!("rank {rank} sent no color")));
            };
            if theirs == u64::from(color) {
                chosen.push((key as i64, rank));
            }
        }
        chosen.sort_unstable();
        let members = chosen
            .iter()
            .map(|(_, rank)| shared.members[*rank])
            .collect();
        let shared = form::form(&shared.world, id, name.to_owned(), members)?;
        Ok(Some(Self::new(shared)))
    }

    /// A communicator of the same ranks, with channels of its own. Every rank must call it.
    ///
    /// # Errors
    /// As [`Communicator::init`].
    pub fn duplicate(&self) -> Result<Self> {
        let shared = &self.shared;
        shared.usable()?;
        let id = shared.child_id(mix(0));
        let name = format!("{}/copy", shared.name);
        let members = shared.members.clone();
        let shared = form::form(&shared.world, id, name, members)?;
        Ok(Self::new(shared))
    }

    /// The communicators of a named grid over these ranks: one along each axis, in the order of the
    /// axes. Every rank must call it with the same grid.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the grid has another number of ranks; else as [`Communicator::init`].
    pub fn grid(&self, grid: &Grid) -> Result<Vec<(String, Self)>> {
        if grid.ranks() != u64::from(self.size()) {
            return Err(Error::invalid(
                "grid",
                format!(
                    "{grid} has {} places, the communicator has {} ranks",
                    grid.ranks(),
                    self.size()
                ),
            ));
        }
        let mut made = Vec::new();
        for (axis, name) in grid.names().enumerate() {
            let (color, key) = grid.line(axis, self.rank());
            let line = self.split_named(Some(color), i64::from(key), name)?;
            made.extend(line.map(|line| (name.to_owned(), line)));
        }
        Ok(made)
    }
}

impl Shared {
    /// Whether this is the process that made the communicator.
    pub(super) fn not_forked(&self) -> Result<()> {
        if !crate::fork::is(self.generation) {
            return Err(Error::ForkedProcess);
        }
        Ok(())
    }

    /// Whether exchanges can be made.
    pub(super) fn usable(&self) -> Result<()> {
        self.not_forked()?;
        self.lane
            .failure()
            .map_or(Ok(()), |error| Err(error.clone()))
    }
}
