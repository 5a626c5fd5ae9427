//! Every plan of every operation at every size, in turns.

use unisono_plan::cost::{Measurements, Picoseconds, PlanName, Point};

use super::cell::{Bench, Cell, Entry, SURVEYED};
use super::grid::{self, Steps, sizes};
use super::variant::Variant;
use super::{TuneOptions, TuneProgress};
use crate::Communicator;
use crate::error::Result;

/// From here on a plan that was far behind at the size before is not measured any more: with more bytes it will not catch
/// up. What it takes whatever the size doesn't count: a plan of few calls of the system that take long is slow here, and
/// may be the fastest of all for more.
const BANDWIDTH_DECIDES: u64 = 512 << 10;
/// How many times slower than the fastest is far behind.
const FAR_BEHIND: f64 = 2.0;
/// From here on the fastest plans are also tried with other puts.
const CUTS_MATTER: u64 = 128 << 10;
/// From here on they have those that were fastest at the size before: a longer message is more of the same pieces.
const CUTS_SETTLED: u64 = 8 << 20;
/// Plans that take so many times the fastest's may be the fastest with other puts.
const CLOSE: f64 = 1.4;
/// Other puts are taken where they take less than this share of the time: a little is chance.
const FASTER: f64 = 0.97;
/// Those that took more than this share when first seen will not.
const MAYBE_FASTER: f64 = 1.03;

/// Measures. All ranks take the same decisions, since they go by figures that all have agreed on.
pub(super) fn run(
    on: &Communicator,
    options: &TuneOptions,
    progress: &mut dyn FnMut(&TuneProgress),
) -> Result<Measurements> {
    let mut measured = Measurements::default();
    if on.size() < 2 {
        return Ok(measured);
    }
    let passes = if options.windows { 2 } else { 1 };
    let rounds = options.rounds.max(1);
    let of_round = grid::all(options).count();
    let of_pass = of_round * (1 + rounds.saturating_sub(SURVEYED) + rounds) as usize;
    let mut steps = Steps::new(progress, of_pass * passes);
    for windowed in [false, true].into_iter().take(passes) {
        let mut bench = Bench::new(on, options, windowed)?;
        let mut cells = Vec::with_capacity(of_round);
        for &op in &options.ops {
            let mut known = Known::default();
            for bytes in sizes(options, op) {
                steps.next(op, bytes);
                let mut cell = bench.cell(op, bytes)?;
                let slot_bytes = on.slot_bytes();
                known.survey(&mut bench, &mut cell, rounds.min(SURVEYED), slot_bytes)?;
                cells.push(cell);
            }
        }
        for round in SURVEYED..rounds {
            for cell in &mut cells {
                steps.next(cell.op.kind(), cell.asked);
                bench.round(cell, cell.sifted(0, round), round)?;
            }
        }
        // Those that chance may have put in this order have as many rounds again.
        for round in 0..rounds {
            for cell in &mut cells {
                steps.next(cell.op.kind(), cell.asked);
                bench.round(cell, cell.in_doubt(round), rounds + round)?;
            }
        }
        for cell in &cells {
            for entry in fastest_cuts(cell, Entry::middle) {
                let point = Point {
                    bytes: cell.bytes,
                    put_bytes: entry.variant.forced.put_bytes,
                    time: Picoseconds((entry.middle() * 1e12) as u128),
                };
                measured.insert(entry.variant.name.clone(), point);
            }
        }
    }
    Ok(measured)
}

/// What the sizes before have told of an operation's plans.
#[derive(Default)]
struct Known {
    behind: Vec<PlanName>,
    /// What each plan took for the least bytes, in seconds.
    latencies: Vec<(PlanName, f64)>,
    /// The puts that were fastest.
    puts: Vec<(PlanName, u64)>,
}

impl Known {
    /// Decides which variants are measured in a cell, by the first rounds of all that may be.
    fn survey(
        &mut self,
        bench: &mut Bench<'_>,
        cell: &mut Cell,
        rounds: u32,
        slot_bytes: u64,
    ) -> Result<()> {
        let variants = (bench.candidates(cell)?.iter())
            .map(|candidate| Variant::new(cell.op.kind(), candidate))
            .filter(|variant| !self.behind.contains(&variant.name))
            .map(|variant| self.settled(variant, cell.bytes))
            .collect();
        let mut measure = |cell: &mut Cell, variants| {
            let from = cell.entries.len();
            bench.add(cell, variants)?;
            (0..rounds).try_for_each(|round| bench.round(cell, cell.sifted(from, round), round))
        };
        measure(cell, variants)?;
        if (CUTS_MATTER..=CUTS_SETTLED).contains(&cell.bytes) {
            // Another cut may turn the order of those that are close.
            let own = cell.entries.len();
            let close = CLOSE * cell.least();
            let close = cell.entries.iter().filter(|entry| entry.least() < close);
            let cuts = close
                .flat_map(|entry| entry.variant.cuts(slot_bytes))
                .collect();
            measure(cell, cuts)?;
            let cuts = cell.entries.split_off(own);
            for cut in cuts {
                let plan = cell.entries[..own]
                    .iter()
                    .find(|own| is_same_plan(own, &cut));
                if plan.is_some_and(|own| cut.least() < MAYBE_FASTER * own.least()) {
                    cell.entries.push(cut);
                }
            }
        }
        let fastest = cell.least();
        self.puts.clear();
        for entry in fastest_cuts(cell, Entry::least) {
            let name = entry.variant.name.clone();
            let latency = self.latency(&name, entry.least());
            if cell.bytes >= BANDWIDTH_DECIDES && is_far_behind(entry.least(), latency, fastest) {
                self.behind.push(name.clone());
            }
            self.puts.push((name, entry.variant.forced.put_bytes));
        }
        Ok(())
    }

    /// What a plan took when it was first seen, which is now if it is new.
    fn latency(&mut self, name: &PlanName, now: f64) -> f64 {
        let known = self.latencies.iter().find(|(known, _)| known == name);
        known.map(|(_, latency)| *latency).unwrap_or_else(|| {
            self.latencies.push((name.clone(), now));
            now
        })
    }

    /// The same plan with the puts that were fastest for less, where those no longer change.
    fn settled(&self, variant: Variant, bytes: u64) -> Variant {
        let before = self.puts.iter().find(|(name, _)| *name == variant.name);
        match before.filter(|_| bytes > CUTS_SETTLED) {
            Some((_, put_bytes)) => variant.with_puts(*put_bytes),
            None => variant,
        }
    }
}

/// Whether a plan will stay behind the fastest of now with more bytes, by what these take it besides its latency.
fn is_far_behind(time: f64, latency: f64, fastest: f64) -> bool {
    time - latency > FAR_BEHIND * fastest
}

fn is_same_plan(a: &Entry, b: &Entry) -> bool {
    a.variant.name == b.variant.name
}

/// For each plan of a cell the cut that is fastest by a figure: its own, unless another is surely so.
fn fastest_cuts(cell: &Cell, figure: impl Fn(&Entry) -> f64) -> Vec<&Entry> {
    let mut fastest: Vec<&Entry> = Vec::new();
    for entry in &cell.entries {
        match fastest.iter_mut().find(|other| is_same_plan(other, entry)) {
            None => fastest.push(entry),
            Some(other) if figure(entry) < FASTER * figure(other) => *other = entry,
            Some(_) => (),
        }
    }
    fastest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_not_far_behind_by_its_latency() {
        // Seen at 512 KiB on eight ranks of two cores: at 8 MiB it was the fastest, by half.
        let (read, tiny, ring) = (440.0, 116.0, 200.0);
        assert!(!is_far_behind(read, tiny, ring));
        assert!(is_far_behind(read, 10.0, ring));
        let mut known = Known::default();
        let name = PlanName {
            op: unisono_plan::OpKind::AllGather,
            windowed: false,
            algorithm: "mesh_read".to_owned(),
        };
        assert_eq!(known.latency(&name, tiny).to_bits(), tiny.to_bits());
        assert_eq!(known.latency(&name, read).to_bits(), tiny.to_bits());
    }
}
