//! Proves programs right by running all ranks on symbols instead of numbers.
//!
//! The ranks of an operation are processes that talk through blocking first-in first-out channels
//! and nothing else: a Kahn network. In such a network the order in which ranks happen to run
//! changes neither the values nor whether it deadlocks, so *one* schedule decides for all. More
//! slots than verified never add a deadlock.
//!
//! What is proved, for a number of slots, a number of pieces, and in place or not:
//!
//! - each block of the output holds each contribution it must hold exactly once, and nothing else;
//! - all ranks hold the same expression for it, so the same bits;
//! - `last` marks exactly the reductions that complete the value;
//! - every put is waited for and released once, by a rank that expected those blocks of that piece;
//!   no slot is read before its wait or after its release; all channels end empty;
//! - no rank waits for ever;
//! - buffers that are one memory (in place) are never overwritten too early;
//! - accesses to windows are ordered by signals (vector clocks; the return of credits is not
//!   counted as order, so the proof holds for any number of slots), and none outlasts the
//!   operation on the rank that owns the window;
//! - everybody is heard, as [`crate::ir`] promises;
//! - the numbers in the header of each program agree with its steps;
//! - where puts are [shown](crate::ir), all that is shown is for everybody ([`check_shown`]).

mod access;
mod clock;
mod error;
mod expression;
mod finish;
mod hash;
mod header;
mod machine;
mod memory;
mod set;
mod sets;
mod shown;

use crate::algorithms::Unsupported;
use crate::ir::{Action, MIN_SLOTS, Op, Program};
use crate::template::Template;

pub use error::{Blocked, Fault, VerifyError, Waits};
pub use shown::check_shown;

/// One case to verify.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Settings {
    /// Slots of each channel; at least [`MIN_SLOTS`].
    pub slots: u32,
    /// Pieces of the message; at least 1.
    pub pieces: u32,
    /// Whether input and output are one memory, as far as the operation allows; see [`Op::runs_in_place`].
    pub in_place: bool,
    /// Whether every pair of ranks of an all_to_all has a message of its own size, of which no
    /// other rank knows. Then `pieces` is the most of any pair.
    pub unequal: bool,
    /// Whether a rank waits for all puts that it can before it goes on with the first, with nothing but its own work
    /// between the waits: then their releases come later. Who runs programs may do so where a channel has a slot more
    /// than [`MIN_SLOTS`].
    pub early_waits: bool,
    /// Whether the programs are [unanswered](Program::unanswered): who only sends hears of nobody.
    pub unanswered: bool,
}

impl Settings {
    /// The cases that settle all others for programs with this largest skew: the fewest slots and
    /// more, a message that fills the pipeline and messages that don't, both placements; and early waits.
    pub fn all(max_skew: u16) -> impl Iterator<Item = Settings> {
        let pieces = [1, 2, u32::from(max_skew) + 2];
        let orders = [
            (MIN_SLOTS, false),
            (2 * MIN_SLOTS, false),
            (MIN_SLOTS + 1, true),
        ];
        orders
            .into_iter()
            .flat_map(move |order| pieces.map(|pieces| (order, pieces)))
            .flat_map(|((slots, early_waits), pieces)| {
                let placements = if early_waits {
                    &[false][..]
                } else {
                    &[false, true]
                };
                placements.iter().map(move |&in_place| Settings {
                    slots,
                    pieces,
                    in_place,
                    unequal: false,
                    early_waits,
                    unanswered: false,
                })
            })
    }
}

impl Settings {
    /// The pieces of what goes from one rank to another.
    pub(super) fn pieces_between(self, from: u32, to: u32) -> u32 {
        match self.unequal {
            true => 1 + (from.wrapping_mul(5).wrapping_add(to.wrapping_mul(3))) % self.pieces,
            false => self.pieces,
        }
    }

    /// The pieces in which a step of a program runs.
    fn pieces_of(self, program: &Program, action: Action) -> u32 {
        if !self.unequal {
            return self.pieces;
        }
        let (me, ranks) = (program.rank, program.ranks);
        match action.subject(ranks) {
            to if to < ranks => self.pieces_between(me, to),
            from => self.pieces_between(from - ranks, me),
        }
    }
}

/// What the run of right programs looked like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Steps run by all ranks, over all pieces.
    pub steps: u64,
    /// Puts by all ranks, signals included.
    pub puts: u64,
    /// Blocks carried by those puts.
    pub blocks_put: u64,
    /// Reductions of one block by all ranks.
    pub blocks_reduced: u64,
    /// Whether every output is the left fold of the inputs in rank order, or an input itself.
    pub folds_in_rank_order: bool,
}

/// Verifies the programs of the ranks that take part: all of a collective, the two of a send and
/// its receive. Their order doesn't matter.
///
/// Takes time in proportion to the steps of all ranks over all pieces. Bounded: it ends even where
/// the programs would not.
pub fn verify(programs: &[Program], settings: Settings) -> Result<Report, VerifyError> {
    header::check(programs)?;
    run(programs, settings)
}

/// Runs programs that have passed the checks of their headers.
fn run(programs: &[Program], settings: Settings) -> Result<Report, VerifyError> {
    header::check_settings(programs, settings)?;
    let mut machine = machine::Machine::new(programs, settings);
    machine.run()?;
    finish::check(&mut machine)
}

/// Why a template isn't proved right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// There is no such program.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The programs are wrong.
    #[error("{algorithm} {op} on {ranks} ranks ({settings:?}): {error}")]
    Wrong {
        /// The name of the algorithm or template.
        algorithm: &'static str,
        /// The operation.
        op: Op,
        /// Ranks of the communicator.
        ranks: u32,
        /// The case that failed.
        settings: Settings,
        /// What was wrong.
        error: Box<VerifyError>,
    },
}

/// Generates the programs of all ranks and verifies them in each of the cases that `settings`
/// yields for their largest skew, such as [`Settings::all`]. For a send, the receiver's program
/// is generated with it, and the other way round.
///
/// Returns the report of the last case.
pub fn check<I: IntoIterator<Item = Settings>>(
    template: impl Into<Template>,
    op: Op,
    ranks: u32,
    windowed: bool,
    settings: impl FnOnce(u16) -> I,
) -> Result<Report, CheckError> {
    let template = template.into();
    let programs = template.programs(op, ranks, windowed)?;
    let algorithm = template.name();
    let wrong = |settings, error| CheckError::Wrong {
        algorithm,
        op,
        ranks,
        settings,
        error: Box::new(error),
    };
    let max_skew = programs.iter().map(|p| p.max_skew).max().unwrap_or(0);
    let unequal = op == Op::AllToAll && !windowed && template.allows_unequal(op);
    let cases = settings(max_skew).into_iter().flat_map(|settings| {
        let others = unequal.then_some(Settings {
            unequal: true,
            ..settings
        });
        [settings].into_iter().chain(others)
    });
    let mut report = Report::default();
    let shown = || match template.shows_puts() {
        true => programs.iter().try_for_each(check_shown),
        false => Ok(()),
    };
    let mut headers = Some(header::check(&programs).and_then(|()| shown()));
    for settings in cases {
        if let Some(Err(error)) = headers.take() {
            return Err(wrong(settings, error));
        }
        report = run(&programs, settings).map_err(|error| wrong(settings, error))?;
    }
    Ok(report)
}

/// [`check`] of the [unanswered](Program::unanswered) programs, if there are any; of none whose ranks read each other's
/// buffers, as these say by bare signals that they may.
pub fn check_unanswered<I: IntoIterator<Item = Settings>>(
    template: impl Into<Template>,
    op: Op,
    ranks: u32,
    settings: impl FnOnce(u16) -> I,
) -> Result<Option<Report>, CheckError> {
    let template = template.into();
    let programs = template.programs(op, ranks, false)?;
    let without: Vec<_> = programs.iter().map(Program::unanswered).collect();
    if template.reads_peers() || without.iter().all(Option::is_none) {
        return Ok(None);
    }
    let without = (without.into_iter().zip(programs))
        .map(|(without, program)| without.unwrap_or(program))
        .collect::<Vec<_>>();
    let max_skew = without.iter().map(|p| p.max_skew).max().unwrap_or(0);
    let mut report = Report::default();
    for settings in settings(max_skew) {
        let settings = Settings {
            unanswered: true,
            ..settings
        };
        report = verify(&without, settings).map_err(|error| CheckError::Wrong {
            algorithm: template.name(),
            op,
            ranks,
            settings,
            error: Box::new(error),
        })?;
    }
    Ok(Some(report))
}

/// The programs of all ranks that take part; see [`Template::programs`].
pub fn programs(
    template: impl Into<Template>,
    op: Op,
    ranks: u32,
    windowed: bool,
) -> Result<Vec<Program>, Unsupported> {
    template.into().programs(op, ranks, windowed)
}
