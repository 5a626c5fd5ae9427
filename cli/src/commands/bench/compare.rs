//! `--against-plugin`: two plugins in the same processes, round against round.
//!
//! What could favour one of them is alternated: who runs first in a round, and, by joining anew
//! once a session, whose memory is taken first.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};

use super::measure::measure_pair;
use super::op::Shape;
use super::paired::{Ratio, Samples, ratios};
use super::report::{columns, head, short};
use super::side::Side;
use super::{Args, buffers, groups, plan};

/// What was measured of one shape.
struct Row {
    shape: Shape,
    /// Microseconds a call of each side, by round, over all sessions.
    times: [Vec<f64>; 2],
    ratios: Samples,
    algorithm: String,
}

/// Measures, prints, and fails where results are wrong or a ratio is beyond the limit.
pub fn run(args: &Args, other: &str) -> Result<ExitCode> {
    let mut rows: Vec<Row> = Vec::new();
    let mut wrong = 0;
    let mut prints = false;
    let mut names = [String::new(), String::new()];
    let mut bar = ProgressBar::hidden();
    for session in 0..args.sessions {
        let sides = Side::join_pair(args, other, session)?;
        let plan = plan(args, &sides[0])?;
        if session == 0 {
            prints = sides[0].communicator.rank() == 0;
            if prints {
                print(&head(args, &[&sides[0], &sides[1]]))?;
                bar = progress(u64::from(args.sessions) * plan.len() as u64)?;
            }
            names = [0, 1].map(|n| sides[n].plugin.clone());
        }
        let mut shapes = 0..;
        for group in groups(&plan) {
            let buffers = in_turn(session, |n| buffers(args, &sides[n], group))?;
            for (shape, number) in group.iter().zip(&mut shapes) {
                if session == 0 {
                    rows.push(Row {
                        shape: *shape,
                        times: Default::default(),
                        ratios: Vec::new(),
                        algorithm: sides[0].algorithm(shape, &buffers[0])?,
                    });
                }
                if args.check == 1 && shape.op.moves() {
                    for (side, buffers) in sides.iter().zip(&buffers) {
                        wrong += side.check(buffers, shape, false)?;
                    }
                }
                rows[number].add(&measure_pair(args, &sides, &buffers, shape)?);
                bar.inc(1);
            }
        }
        for side in sides {
            side.finalize()?;
        }
    }
    bar.finish_and_clear();
    let samples: Vec<Samples> = rows.iter().map(|row| row.ratios.clone()).collect();
    let (ratios, mean) = ratios(&samples);
    let slower = |ratio: &Ratio| args.ratio_limit.is_some_and(|limit| ratio.is_above(limit));
    let failed = ratios.iter().any(slower) || wrong > 0;
    if prints {
        let mut text = table(&names, &rows, &ratios);
        text.push_str(&format!(
            "#\n# {}'s time over {}'s, geometric mean: {:.3}, 95 % interval {:.3} to {:.3}\n",
            names[1], names[0], mean.median, mean.low, mean.high
        ));
        text.push_str(&verdict(args, &rows, &ratios, slower));
        if args.check == 1 {
            text.push_str(&match wrong {
                0 => "# Out of bounds values: 0 OK\n".to_owned(),
                wrong => format!("# Out of bounds values: {wrong} FAILED\n"),
            });
        }
        print(&text)?;
    }
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

impl Row {
    /// Adds a session.
    fn add(&mut self, rounds: &[[f64; 2]]) {
        for (side, times) in self.times.iter_mut().enumerate() {
            times.extend(rounds.iter().map(|round| round[side]));
        }
        let ratio = |[ours, theirs]: &[f64; 2]| theirs / ours;
        self.ratios.push(rounds.iter().map(ratio).collect());
    }

    /// The median time of a side.
    fn median(&self, side: usize) -> f64 {
        let mut times = self.times[side].clone();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied().unwrap_or(0.0)
    }
}

/// Makes something for each side, for the first one first in every second session.
fn in_turn<T>(session: u32, mut make: impl FnMut(usize) -> Result<T>) -> Result<[T; 2]> {
    if session.is_multiple_of(2) {
        return Ok([make(0)?, make(1)?]);
    }
    let second = make(1)?;
    Ok([make(0)?, second])
}

fn table(names: &[String; 2], rows: &[Row], ratios: &[Ratio]) -> String {
    let [ours, theirs] = names.each_ref().map(|name| format!("{name:.12} us"));
    let mut text = format!(
        "#\n#{:>12}{:>14}{:>7}{:>7}{:>6}{ours:>16}{theirs:>16}{:>8}{:>8}{:>8}{:>8}  {:<16} algorithm\n",
        "size", "count", "type", "redop", "root", "ratio", "low", "high", "rounds", "op"
    );
    for (row, ratio) in rows.iter().zip(ratios) {
        text.push_str(&format!(
            "{}{:>16}{:>16}{:>8.3}{:>8.3}{:>8.3}{:>8}  {:<16} {}\n",
            columns(&row.shape),
            short(row.median(0)),
            short(row.median(1)),
            ratio.median,
            ratio.low,
            ratio.high,
            row.times[0].len(),
            row.shape.op.name(),
            row.algorithm
        ));
    }
    text
}

/// One line for each row that is beyond the limit, or one that says that there is none.
fn verdict(args: &Args, rows: &[Row], ratios: &[Ratio], slower: impl Fn(&Ratio) -> bool) -> String {
    let Some(limit) = args.ratio_limit else {
        return String::new();
    };
    let mut text = String::new();
    for (row, ratio) in rows.iter().zip(ratios).filter(|(_, ratio)| slower(ratio)) {
        text.push_str(&format!(
            "# SLOWER: {} of {} bytes: the ratio's interval, {:.3} to {:.3}, lies above {limit}\n",
            row.shape.op.name(),
            row.shape.bytes(),
            ratio.low,
            ratio.high
        ));
    }
    if text.is_empty() {
        text = format!("# No ratio's interval lies above {limit}\n");
    }
    text
}

fn progress(steps: u64) -> Result<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return Ok(ProgressBar::hidden());
    }
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len}")?;
    Ok(ProgressBar::new(steps).with_style(style))
}

fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
