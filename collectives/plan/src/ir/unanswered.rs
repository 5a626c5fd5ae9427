//! Programs without the answers of those to which something is put.

use super::{Action, Loop, Program, Value};

impl Program {
    /// The same without bare signals, if the operation has a root and the program has any: who only sends does not hear
    /// that the others have called the same. `None` else.
    ///
    /// Where what is put lies in slots, bare signals move nothing and make room for nothing, so the result is the same. It is
    /// not for plans of which any rank reaches into another's memory: there they say that a buffer may be read or written,
    /// or that it was. All ranks leave theirs out, or none does; who reaches nowhere cannot tell by its own program.
    #[must_use]
    pub fn unanswered(&self) -> Option<Self> {
        self.op.root()?;
        let mut kept: Vec<bool> = Vec::with_capacity(self.steps.len());
        for (at, step) in self.steps.iter().enumerate() {
            kept.push(match step.action {
                Action::Put { value, .. } => value != Value::Empty,
                Action::Wait { blocks, .. } => !blocks.is_empty(),
                Action::Release { from } => {
                    !(self.steps[..at].last()).is_some_and(|before| is_hearing(before.action, from))
                }
                _ => true,
            });
        }
        if kept.iter().all(|kept| *kept) {
            return None;
        }
        let before = |index: u32| {
            kept.iter()
                .take(index as usize)
                .filter(|kept| **kept)
                .count()
        };
        let loops = self.loops.iter().filter_map(|around| {
            let first = before(around.first) as u32;
            let len = before(around.first + around.len) as u32 - first;
            (len > 0).then_some(Loop {
                first,
                len,
                ..*around
            })
        });
        let loops = loops.collect();
        debug_assert!(!self.has_legs(), "they would be merged");
        let mut kept = kept.iter();
        let mut program = self.clone();
        program.steps.retain(|_| kept.next() == Some(&true));
        program.loops = loops;
        let skews = program.steps.iter().map(|step| step.skew);
        program.max_skew = skews.max().unwrap_or(0);
        Some(program)
    }
}

/// Whether this waits for a bare signal of a rank.
fn is_hearing(action: Action, of: u32) -> bool {
    matches!(action, Action::Wait { from, blocks } if from == of && blocks.is_empty())
}
