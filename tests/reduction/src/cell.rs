//! One type, one reduction, one size.

#![allow(unsafe_code, reason = "kernels take addresses")]

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use unisono_plugin_host::cpu::Isa;
use unisono_plugin_host::reduce::{Dtype, Kernel, Reduction};

use crate::operands::Operands;
use crate::plain;

/// What one batch of calls takes at least, so that the clock does not count.
const BATCH: Duration = Duration::from_millis(1);

/// Rounds of a cell at least.
const ROUNDS: usize = 3;

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    pub dtype: Dtype,
    pub reduction: Reduction,
    /// Bytes of an operand.
    pub size: usize,
    /// With the instruction set that is chosen, and with that which every processor has.
    pub best: Speed,
    pub baseline: Speed,
    /// Of the plain loop and of `memcpy`, in GB/s.
    pub plain: f64,
    pub memcpy: f64,
}

/// How fast a kernel is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speed {
    /// Bytes read and written, in GB/s.
    pub gigabytes: f64,
    /// The plain loop's time over this one's, both on as many bytes.
    pub ratio: f64,
}

/// What is measured: sums, maxima and products of every type, and bits of one.
pub fn cases() -> impl Iterator<Item = (Dtype, Reduction)> {
    let each = [Reduction::Sum, Reduction::Max, Reduction::Prod];
    let all = Dtype::ALL.iter();
    let all = all.flat_map(move |&dtype| each.map(|reduction| (dtype, reduction)));
    all.chain([(Dtype::I32, Reduction::Xor)])
}

/// Measures for about this long. The plain loop, `memcpy` and both kernels are timed in turns, and
/// ratios are of one turn, so that a machine that drifts moves all alike.
pub fn measure(
    operands: &mut Operands,
    dtype: Dtype,
    reduction: Reduction,
    time: Duration,
) -> Result<Cell> {
    operands.fill(dtype);
    let size = operands.size;
    let kernel = |isa| {
        Kernel::new(isa, dtype, reduction)
            .with_context(|| format!("no kernel for {reduction:?} of {dtype:?} with {isa:?}"))
    };
    let (best, baseline) = (kernel(Isa::best())?, kernel(Isa::Baseline)?);
    let (dst, a, b) = operands.get();
    let run = |kernel: &Kernel, dst: &mut [u8]| {
        let elements = dst.len() / dtype.bytes();
        // SAFETY: each holds that many elements, and `dst` is apart from both operands.
        unsafe { kernel.run(dst.as_mut_ptr(), a.as_ptr(), b.as_ptr(), elements, 0, false) };
    };
    let sum = |bytes: &[u8]| bytes.iter().fold(0_u64, |sum, byte| mix(sum, *byte));
    run(&best, dst);
    let expected = sum(dst);
    run(&baseline, dst);
    ensure!(
        sum(dst) == expected,
        "{reduction:?} of {size} bytes of {dtype:?} differs between {:?} and {:?}",
        Isa::best(),
        Isa::Baseline
    );

    let mut ways: [Way; 4] = [
        Way::new(|dst| plain::add(dst, a, b), dst),
        Way::new(|dst| dst.copy_from_slice(a), dst),
        Way::new(|dst| run(&best, dst), dst),
        Way::new(|dst| run(&baseline, dst), dst),
    ];
    let since = Instant::now();
    let mut rounds: [Vec<f64>; 4] = Default::default();
    while rounds[0].len() < ROUNDS || since.elapsed() < time {
        for (way, times) in ways.iter_mut().zip(&mut rounds) {
            times.push(way.time(dst));
        }
    }
    let [plain, memcpy, best, baseline] = &rounds;
    let gigabytes = |times: &[f64], passes: f64| passes * size as f64 / median(times) / 1e9;
    let speed = |times: &[f64]| {
        let turns = plain.iter().zip(times);
        let ratios: Vec<f64> = turns.map(|(plain, time)| plain / time).collect();
        Speed {
            gigabytes: gigabytes(times, 3.0),
            ratio: median(&ratios),
        }
    };
    Ok(Cell {
        dtype,
        reduction,
        size,
        best: speed(best),
        baseline: speed(baseline),
        plain: gigabytes(plain, 3.0),
        memcpy: gigabytes(memcpy, 2.0),
    })
}

/// Writes to `dst`.
type Call<'a> = Box<dyn Fn(&mut [u8]) + 'a>;

/// Something to be timed, so many times in a row.
struct Way<'a> {
    call: Call<'a>,
    times: u32,
}

impl<'a> Way<'a> {
    fn new(call: impl Fn(&mut [u8]) + 'a, dst: &mut [u8]) -> Self {
        let mut way = Self {
            call: Box::new(call),
            times: 1,
        };
        // The first one is not looked at: it warms up.
        way.time(dst);
        while way.time(dst) * f64::from(way.times) < BATCH.as_secs_f64() {
            way.times *= 2;
        }
        way
    }

    /// One call, in seconds: the mean of a batch.
    fn time(&mut self, dst: &mut [u8]) -> f64 {
        let since = Instant::now();
        for _ in 0..self.times {
            (self.call)(std::hint::black_box(&mut *dst));
        }
        since.elapsed().as_secs_f64() / f64::from(self.times)
    }
}

/// One more byte in a sum that tells of places, too.
fn mix(sum: u64, byte: u8) -> u64 {
    (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

/// The middle one.
pub fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_measured() {
        let mut operands = Operands::new(4096);
        let time = Duration::from_millis(1);
        for (dtype, reduction) in cases() {
            let cell = measure(&mut operands, dtype, reduction, time).unwrap();
            let figures = [cell.best, cell.baseline].map(|speed| [speed.gigabytes, speed.ratio]);
            let figures = figures
                .into_iter()
                .flatten()
                .chain([cell.plain, cell.memcpy]);
            assert!(
                figures.into_iter().all(|one| one.is_finite() && one > 0.0),
                "{cell:?}"
            );
        }
    }
}
