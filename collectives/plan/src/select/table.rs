//! A selection explains itself.

use std::fmt;

use super::{Candidate, Selection};

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
        writeln!(f, "{op} of {bytes} bytes on {} ranks", self.ranks)?;
        let tuned = self.candidates.iter().any(|c| c.measured.is_some());
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
        let column = |text: &str| {
            if tuned {
                format!(" {text:>14}")
            } else {
                String::new()
            }
        };
        let measured = column(measured);
        writeln!(
            f,
            "  {algorithm:34} {pieces:>7} {predicted:>14}{measured} {times:>7}  {mostly}"
        )?;
        for (index, candidate) in self.candidates.iter().enumerate() {
            let mark = if index == self.winner { '*' } else { ' ' };
            let name = title(candidate);
            match &candidate.why_not {
                Some(why) => writeln!(f, "{mark} {name:34} {:>7} not used: {why}", "-")?,
                None => {
                    let measured = match candidate.measured {
                        Some(time) => column(&time.to_string()),
                        None if candidate.behind => column("far behind"),
                        None => column("-"),
                    };
                    writeln!(
                        f,
                        "{mark} {name:34} {:>7} {:>14}{measured} {:>7}  {}",
                        candidate.pieces,
                        candidate.predicted(),
                        times_slower(candidate.expected().0, winner.expected().0),
                        candidate.cost.main_part(),
                    )?;
                }
            }
        }
        write!(f, "{}: {}", title(winner), self.reason())
    }
}

impl Selection {
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
