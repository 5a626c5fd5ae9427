//! Asking a plugin in a child process, so that one that crashes, hangs or exits while it is asked
//! cannot take the host down.
//!
//! A process with threads cannot just fork. So the host starts a helper program instead, which
//! calls [`child_main`]; the command line's own program is its own helper. [`check_in_child`] is
//! the host's half: it waits with a limit, and says what became of the child.
//!
//! The child tells each stage before it enters it, so that the host knows where it stopped. What
//! a plugin prints goes to the report's `output`, never between the two halves' own lines.

mod child;
mod parent;
mod report;

pub use child::child_main;
pub use parent::{Helper, check_in_child};
pub use report::{DeviceSummary, Report, Stage, Summary, Verdict};
