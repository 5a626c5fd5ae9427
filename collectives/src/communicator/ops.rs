//! The collectives, in their blocking forms.
//!
//! Slices are borrowed for the call: when it returns, also with an error, no device, link or peer
//! touches them any more.

mod exchange;
mod gather;
mod raw;
mod reduce;

pub use raw::RawCall;

use super::Communicator;
use super::asked::{Asked, Here};
use super::start::{Boxed, Request};
use crate::error::{Error, Result};
use crate::reduction::How;
use crate::{DataType, Element, Reduction};

impl Communicator {
    pub(super) fn here(&self) -> Here {
        Here {
            rank: self.rank(),
            ranks: self.size(),
        }
    }

    #[inline]
    fn reduces<T: Element>(&self, asked: Asked<'_>, how: impl Into<Reduction>) -> Result<()> {
        let reduction = how.into();
        if let Reduction(How::Op(op)) = reduction
            && let Some(ended) = self.shared.run_again(&asked, T::TYPE, Some(op))
        {
            return Self::ended(ended);
        }
        self.plans_and_runs(asked, T::TYPE, Some(reduction))
    }

    #[inline]
    fn moves<T: Element>(&self, asked: Asked<'_>) -> Result<()> {
        if let Some(ended) = self.shared.run_again(&asked, T::TYPE, None) {
            return Self::ended(ended);
        }
        self.plans_and_runs(asked, T::TYPE, None)
    }

    /// Of most calls nothing but that they are complete is written to where the result lies.
    #[inline]
    fn ended(ended: Boxed) -> Result<()> {
        match ended {
            Ok(()) => Ok(()),
            Err(error) => Err(*error),
        }
    }

    /// A call that is like none before, or has something before it.
    #[inline(never)]
    fn plans_and_runs(
        &self,
        asked: Asked<'_>,
        dtype: DataType,
        reduction: Option<Reduction>,
    ) -> Result<()> {
        (self.shared).run_slices(self.request(asked, dtype, reduction))
    }

    #[inline]
    pub(super) fn request<'a>(
        &self,
        asked: Asked<'a>,
        dtype: DataType,
        reduction: Option<Reduction>,
    ) -> Request<'a> {
        Request {
            asked,
            dtype,
            reduction,
            forced: None,
            deadline: self.shared.world.options.timeouts.op,
        }
    }
}

/// Counts as the engine takes them.
pub(super) fn counts(of: &[usize]) -> Vec<u64> {
    of.iter().map(|count| *count as u64).collect()
}

/// The counts of an all_to_all_v: of what is sent to each rank, then of what comes from each.
pub(super) fn pairs(sent: &[usize], received: &[usize]) -> Result<Vec<u64>> {
    if sent.len() != received.len() {
        return Err(Error::invalid(
            "all_to_all_v",
            format!(
                "{} counts of what is sent, {} of what is received",
                sent.len(),
                received.len()
            ),
        ));
    }
    Ok(counts(&[sent, received].concat()))
}
