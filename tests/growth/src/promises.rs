//! What the project promises of a communicator's memory.

use std::fmt;

use unisono_tests::footprint::{ALONE, OF_EIGHT};

use crate::rank::Figures;
use crate::survey::Survey;

/// So many ranks are meant by [`OF_EIGHT`].
const EIGHT: u32 = 8;

/// A promise, and what was found.
#[derive(Debug, PartialEq)]
pub struct Promise {
    what: &'static str,
    limit: u64,
    /// The most of any rank of any job, none if no such job ran.
    found: Option<u64>,
}

impl Promise {
    /// What was not measured is not broken.
    pub fn is_kept(&self) -> bool {
        self.found.is_none_or(|bytes| bytes < self.limit)
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes as f64 / (1 << 20) as f64;
        write!(f, "{}: less than {} MiB; ", self.what, self.limit >> 20)?;
        match self.found {
            Some(bytes) => write!(f, "{:.3} MiB at most", mib(bytes)),
            None => write!(f, "not measured, since no such job was asked for"),
        }
    }
}

/// Each promise with what was found.
pub fn check(survey: &Survey) -> Vec<Promise> {
    let most = |ranks: Option<u32>, of: fn(&Figures) -> u64| {
        let jobs = survey.jobs.iter();
        let jobs = jobs.filter(|jobs| ranks.is_none_or(|ranks| jobs.ranks == ranks));
        let runs = jobs.flat_map(|jobs| &jobs.runs);
        runs.flat_map(|job| &job.ranks).map(of).max()
    };
    vec![
        Promise {
            what: "joining as the only rank, and its first calls",
            limit: ALONE,
            found: most(Some(1), |figures| figures.used.own()),
        },
        Promise {
            what: "a further communicator of one rank, in jobs of any size",
            limit: ALONE,
            found: most(None, |figures| figures.alone.own()),
        },
        Promise {
            what: "joining as one of 8 ranks, and its first calls",
            limit: OF_EIGHT,
            found: most(Some(EIGHT), |figures| figures.used.own()),
        },
        Promise {
            what: "a further communicator of 8 ranks",
            limit: OF_EIGHT,
            found: most(Some(EIGHT), |figures| figures.further.own()),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_is_broken_by_its_limit() {
        let promise = |found| Promise {
            what: "a communicator",
            limit: ALONE,
            found,
        };
        assert!(promise(Some(ALONE - 1)).is_kept());
        assert!(!promise(Some(ALONE)).is_kept());
        assert!(promise(None).is_kept());
        assert_eq!(
            promise(Some(ALONE / 2)).to_string(),
            "a communicator: less than 1 MiB; 0.500 MiB at most"
        );
    }
}
