//! How bytes that another core reads next are written: through the caches or past them, whichever is the faster now.
//!
//! Room that another core has read lies in its caches, and a core that writes there takes it over line by line. Between
//! cores that share a cache that is faster than memory; between cores far apart it is several times slower, and then so is
//! the other's reading, for the same reason. Stores past the caches take nothing over, and what they wrote is read from
//! memory, from everywhere alike. How far two cores are apart is not asked of anybody: threads move, and virtual machines
//! are not told, or are moved themselves. So both ways are timed on what is to be written in any case: the caches are
//! passed where that takes less than half as long, and the way that is not taken is tried now and then.

use std::time::{Duration, Instant};

use crate::can_stream;

/// Bytes from which on it matters how they are written; of fewer the time tells little.
pub const WORTH: u64 = 16 << 10;
/// So many times longer writing takes through the caches before they are passed. On an EPYC 7003 it was four to six times
/// between cores far apart, and 0.7 to 1.5 times between cores near each other, of which the one that reads gains by what a
/// cache holds. Seen once in what [`Ways`] had learnt while all_gathers of 4 MiB ran; no command shows it.
const FAR: u64 = 2;
/// How often the other way is tried. Each time costs some microseconds.
const TRIED_EVERY: Duration = Duration::from_millis(4);

/// What is known of the two ways to some memory, by one kind of writing. Starts without any knowledge.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ways {
    /// Picoseconds a byte, through the caches and past them; 0 where it was not tried.
    took: [u64; 2],
    /// When the one that is not taken was tried.
    tried: Option<Instant>,
    /// Whether what is written now tries it.
    is_tried: bool,
}

impl Ways {
    /// Writes `bytes` bytes by `write`, which is told whether to do so past the caches.
    pub fn write(&mut self, bytes: u64, write: impl FnOnce(bool)) {
        if bytes < WORTH || !can_stream() {
            return write(false);
        }
        let begun = Instant::now();
        let past = self.choose(begun);
        write(past);
        self.learn(past, begun.elapsed(), bytes);
    }

    fn choose(&mut self, now: Instant) -> bool {
        match self.took {
            [0, _] => false,
            [_, 0] => true,
            [through, past] => {
                self.is_tried = self.tried.is_none_or(|tried| now - tried >= TRIED_EVERY);
                if self.is_tried {
                    self.tried = Some(now);
                }
                (FAR * past < through) != self.is_tried
            }
        }
    }

    fn learn(&mut self, past: bool, time: Duration, bytes: u64) {
        let took = (time.as_nanos() as u64 * 1000 / bytes).max(1);
        let known = &mut self.took[usize::from(past)];
        // A mean of the last ones, of which one may have been interrupted. Of the way that is not taken there are few, so the
        // first that took less counts: if it was luck, the next ones tell.
        *known = match *known {
            0 => took,
            known if self.is_tried && took < known => took,
            known => (3 * known + took.clamp(known / 2, 2 * known)).div_ceil(4),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 64 << 10;

    /// Writes so often, a write every `pause`, with what each way takes; how often each way was taken.
    fn writes(
        ways: &mut Ways,
        now: &mut Instant,
        count: u32,
        [pause, through, past]: [u64; 3],
    ) -> [u32; 2] {
        let mut taken = [0; 2];
        for _ in 0..count {
            let way = ways.choose(*now);
            let took = if way { past } else { through };
            ways.learn(way, Duration::from_nanos(took), BYTES);
            taken[usize::from(way)] += 1;
            *now += Duration::from_nanos(pause);
        }
        taken
    }

    #[test]
    fn the_faster_way_is_taken_and_the_other_is_tried_now_and_then() {
        let (mut ways, mut now) = (Ways::default(), Instant::now());
        // Near each other: 40 ms, so the other way is tried ten times.
        let near = writes(&mut ways, &mut now, 4000, [10_000, 2600, 4200]);
        assert!((10..=12).contains(&near[1]), "{near:?}");
        // Far apart.
        let far = writes(&mut ways, &mut now, 4000, [10_000, 15_000, 3500]);
        assert!((10..=24).contains(&far[0]), "{far:?}");
        // Near again: known once it has been tried a few times. Who reads gains by what caches hold, also where writing there
        // takes a little longer.
        let near = writes(&mut ways, &mut now, 8000, [10_000, 4600, 4200]);
        assert!(near[1] < 4000, "{near:?}");
    }

    #[test]
    fn one_interruption_changes_nothing() {
        let (mut ways, mut now) = (Ways::default(), Instant::now());
        writes(&mut ways, &mut now, 100, [10, 2600, 9000]);
        ways.learn(false, Duration::from_nanos(20_000), BYTES);
        let after = writes(&mut ways, &mut now, 100, [10, 2600, 9000]);
        assert_eq!(after, [100, 0]);
    }

    #[test]
    fn few_bytes_are_written_through_the_caches() {
        let mut ways = Ways::default();
        for _ in 0..3 {
            ways.write(WORTH - 1, |past| assert!(!past));
        }
        let mut taken = Vec::new();
        for _ in 0..2 {
            ways.write(WORTH, |past| taken.push(past));
        }
        assert_eq!(taken, [false, can_stream()]);
    }
}
