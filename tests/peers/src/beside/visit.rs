//! One round of one cell: every library once, while the cores stay as far apart as they are.

use std::collections::BTreeSet;

use anyhow::Result;

use crate::cores::{round_trip, were_moved};
use crate::group::{Answer, Group};
use crate::results::{Key, LIMIT, OURS, Results};
use crate::stop;

/// How often a round of a cell is tried at most: the last is kept although the cores were moved meanwhile. Some hosts move
/// them every few seconds, and a round of large messages takes as long.
pub const TRIES: usize = 5;

/// A library that is so many times slower than the fastest in the first round is not called for
/// that cell again: its figure would not change what is compared.
const FAR_BEHIND: f64 = 8.0;

/// Measures every library in turns. Of a library that fails it is said why, and it leaves; ours and the limit must not.
pub fn visit(
    groups: &mut Vec<Group>,
    key: Key,
    quick: bool,
    round: usize,
    results: &mut Results,
) -> Result<()> {
    for attempt in 1..=TRIES {
        // Nobody is always the first after another cell. Of those that are left: some may have gone in the attempt before.
        let turn = round % groups.len().max(1);
        let mut tried = Try {
            answers: Vec::new(),
            left: BTreeSet::new(),
            round_trip: round_trip(),
            is_steady: true,
        };
        groups.rotate_left(turn);
        let done = tried.measure(groups, key, quick, round == 0, results, attempt < TRIES);
        let back = turn.min(groups.len());
        groups.rotate_right(back);
        tried.tell_wrong(key, results);
        results.missing.append(&mut tried.left);
        done?;
        if tried.is_steady || attempt == TRIES || stop::asked() {
            tried.keep(key, results);
            break;
        }
    }
    Ok(())
}

/// What one attempt found.
struct Try {
    answers: Vec<(String, Answer)>,
    /// Who left, and where.
    left: BTreeSet<(String, String)>,
    /// Between the cores, at its begin.
    round_trip: Option<f64>,
    /// Whether the cores stayed as far apart as they were at its begin.
    is_steady: bool,
}

impl Try {
    /// `may_repeat`: it ends as soon as the cores were moved.
    fn measure(
        &mut self,
        groups: &mut Vec<Group>,
        key: Key,
        quick: bool,
        verify: bool,
        results: &Results,
        may_repeat: bool,
    ) -> Result<()> {
        let Key { cell, .. } = key;
        let mut broken = None;
        groups.retain_mut(|group| {
            let ends = stop::asked() || broken.is_some() || (may_repeat && !self.is_steady);
            if ends || is_far_behind(results, key, &group.name) {
                return true;
            }
            match group.measure(cell, cell.calls(quick), verify) {
                Ok(answer) => {
                    self.answers
                        .extend(answer.map(|answer| (group.name.clone(), answer)));
                    self.is_steady &= !were_moved(self.round_trip, round_trip());
                }
                Err(_) if stop::asked() => {}
                Err(why) if [OURS, LIMIT].contains(&group.name.as_str()) => {
                    broken = Some(
                        why.context(format!("{} at {} of {} B", group.name, cell.op, cell.bytes)),
                    );
                    return false;
                }
                Err(why) => {
                    let (ranks, over) = (key.ranks, key.transport.name());
                    let place = format!(
                        "from {} of {} B with {ranks} ranks over {over} on",
                        cell.op, cell.bytes
                    );
                    eprintln!("{} is missing {place}: {why:#}", group.name);
                    self.left.insert((group.name.clone(), place));
                    return false;
                }
            }
            true
        });
        broken.map_or(Ok(()), Err)
    }

    /// What is wrong is so whatever the cores did.
    fn tell_wrong(&self, key: Key, results: &mut Results) {
        for (library, _) in self.answers.iter().filter(|(_, answer)| answer.wrong) {
            results.add_wrong(key, library);
        }
    }

    fn keep(self, key: Key, results: &mut Results) {
        let times = (self.answers.into_iter()).map(|(library, answer)| (library, answer.usec));
        results.add(key, times.collect());
        results.round_trips.extend(self.round_trip);
        results.unsteady += usize::from(!self.is_steady);
    }
}

fn is_far_behind(results: &Results, key: Key, library: &str) -> bool {
    let Some(row) = results.rows.get(&key) else {
        return false;
    };
    match (row.median(library), row.best()) {
        (Some(time), Some((_, best))) if ![OURS, LIMIT].contains(&library) => {
            time > FAR_BEHIND * best
        }
        _ => false,
    }
}
