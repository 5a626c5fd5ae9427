//! A selection explains itself.

use std::fmt;

use super::{AS_GOOD, Candidate, Selection};
use crate::cost::Picoseconds;
use crate::ir::Op;

/// The algorithm, and how it moves bytes.
pub(super) fn title(candidate: &Candidate) -> String {
    let path = if candidate.windowed {
        " over windows"
    } else {
        ""
    };
    format!("{}{path}", candidate.label)
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let winner = self.winner();
        let (op, bytes) = (self.request.op, self.request.bytes);
        match op {
            Op::Barrier => writeln!(f, "{op} on {} ranks", self.ranks)?,
            _ => writeln!(f, "{op} of {bytes} bytes on {} ranks", self.ranks)?,
        }
        let tuned = self.candidates.iter().any(|c| c.measured.is_some());
        let timed = self.candidates.iter().any(|c| c.now.is_some());
        let head = [
            "algorithm",
            "pieces",
            "predicted",
            "measured",
            "times",
            "mostly",
        ];
        let [algorithm, pieces, predicted, measured, times, mostly] = head;
        // A column that says nothing is left out.
        let column = |shown: bool, text: &str| match shown {
            true => format!(" {text:>14}"),
            false => String::new(),
        };
        let longest = self.candidates.iter().map(|c| title(c).len()).max();
        let width = longest.unwrap_or(0).max(34);
        let (measured, now) = (column(tuned, measured), column(timed, "now"));
        writeln!(
            f,
            "  {algorithm:width$} {pieces:>7} {predicted:>14}{measured}{now} {times:>7}  {mostly}"
        )?;
        for (index, candidate) in self.candidates.iter().enumerate() {
            let mark = if index == self.winner { '*' } else { ' ' };
            let name = title(candidate);
            match &candidate.why_not {
                Some(why) => writeln!(f, "{mark} {name:width$} {:>7} not used: {why}", "-")?,
                None => {
                    let measured = match candidate.measured {
                        Some(time) => column(tuned, &time.to_string()),
                        None if candidate.behind => column(tuned, "far behind"),
                        None => column(tuned, "-"),
                    };
                    let now = candidate.now.map(|time| time.to_string());
                    let now = column(timed, now.as_deref().unwrap_or("-"));
                    writeln!(
                        f,
                        "{mark} {name:width$} {:>7} {:>14}{measured}{now} {:>7}  {}",
                        candidate.pieces,
                        candidate.predicted(),
                        times_slower(candidate.expected().0, winner.expected().0),
                        candidate.cost.main_part(),
                    )?;
                }
            }
        }
        write!(f, "{}: {}", title(winner), self.reason())?;
        match self.fastest_now() {
            Some(fastest) if !std::ptr::eq(fastest, winner) => {
                let times = |time: Option<Picoseconds>| time.unwrap_or_default().0;
                let times = times_slower(times(winner.now), times(fastest.now));
                write!(
                    f,
                    "\nnow {} is fastest, this takes {times} times as long",
                    title(fastest)
                )
            }
            Some(_) => write!(f, "\nand the fastest now"),
            None => Ok(()),
        }
    }
}

impl Selection {
    /// The candidate that was the fastest just now, if the winner was measured too.
    fn fastest_now(&self) -> Option<&Candidate> {
        self.winner().now?;
        let timed = self.candidates.iter().filter(|c| c.now.is_some());
        timed.min_by_key(|candidate| candidate.now)
    }

    /// Why the winner won, in one sentence.
    #[must_use]
    pub fn reason(&self) -> String {
        let winner = self.winner();
        if self.forced {
            return "an override forces it".into();
        }
        let next = (self.candidates.iter().enumerate())
            .filter(|(index, candidate)| *index != self.winner && candidate.why_not.is_none())
            .min_by_key(|(index, candidate)| (candidate.rank(), *index))
            .map(|(_, candidate)| candidate);
        let by = match winner.measured {
            Some(_) => "measured",
            None => "predicted",
        };
        match next {
            None => "no other plan can run".into(),
            Some(next) if next.behind => {
                format!("the lowest {by} time; the others fell far behind at smaller sizes")
            }
            Some(next) if next.expected() < winner.expected() => format!(
                "measured as fast as {} within {AS_GOOD} %, and before it in the fixed order",
                title(next)
            ),
            Some(next) if next.expected() == winner.expected() => format!(
                "as fast as {} by {by} time, and first in the fixed order",
                title(next)
            ),
            Some(next) => format!(
                "the lowest {by} time; {} would take {} times as long, mostly for {}",
                title(next),
                times_slower(next.expected().0, winner.expected().0),
                next.cost.main_part()
            ),
        }
    }
}

/// `a / b` with two decimals, rounded down.
fn times_slower(a: u128, b: u128) -> String {
    match a.saturating_mul(100).checked_div(b) {
        Some(hundredths) => format!("{}.{:02}", hundredths / 100, hundredths % 100),
        None => "-".into(),
    }
}
