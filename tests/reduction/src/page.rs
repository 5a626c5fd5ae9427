//! The page.

use std::fmt::Write as _;

use unisono_plugin_host::cpu::Isa;
use unisono_plugin_host::reduce::{Dtype, Reduction};

use crate::SIZES;
use crate::cell::{Cell, Speed, cases, median};

/// What is slower than this part of the plain loop in memory is named.
const SLOW: f64 = 0.8;

/// The page with all cells.
pub fn page(cells: &[Cell], cell_ms: u64, about: &str) -> String {
    let mut out = String::from("# Reductions beside a plain loop\n\n");
    if !about.is_empty() {
        let _ = writeln!(out, "{about}");
    }
    let isa = Isa::best();
    let _ = writeln!(
        out,
        "Repeat with `cargo xtask reduction`; {cell_ms} ms a cell, one thread.\n\n\
         The host plugin's kernels write `dst[i] = a[i] op b[i]` to memory apart from both operands, without\n\
         streaming stores. Beside them runs `dst[i] = a[i] + b[i]` over slices of f32, as the compiler makes it\n\
         for any processor of the architecture, on operands of the same bytes: what memory allows where operands\n\
         are large. All are timed in turns, and a ratio is the median of the turns' ratios. Sizes are of one\n\
         operand; three times as many bytes are read or written. The instruction set that is chosen here is\n\
         **{isa:?}**; in brackets stands the same kernel with what every processor of the architecture has\n\
         ({:?}, vectors of 16 bytes at most).\n\n\
         That every type, reduction and instruction set gives what the scalar oracle gives is tested by\n\
         `every_combination_matches_the_oracle` and its neighbours in `plugins/host/src/reduce/tests.rs`; this\n\
         command fails if the two instruction sets differ on its operands.\n",
        Isa::Baseline
    );
    slow(&mut out, cells);
    out.push_str("## Speed over the plain loop's\n\n");
    table(&mut out, cells, |speed| speed.ratio);
    out.push_str("## Bytes read and written, GB/s\n\n");
    limits(&mut out, cells);
    table(&mut out, cells, |speed| speed.gigabytes);
    out
}

/// A size in words.
pub fn size(bytes: usize) -> String {
    match bytes {
        bytes if bytes < 1 << 20 => format!("{} KiB", bytes >> 10),
        bytes => format!("{} MiB", bytes >> 20),
    }
}

/// Names what does not keep up with memory.
fn slow(out: &mut String, cells: &[Cell]) {
    let largest = SIZES[SIZES.len() - 1];
    let slow = |of: fn(&Cell) -> Speed| {
        let in_memory = cells.iter().filter(|cell| cell.size == largest);
        let slow = in_memory.filter(|cell| of(cell).ratio < SLOW);
        let names = slow.map(|cell| {
            let Speed { ratio, .. } = of(cell);
            format!("{} ({ratio:.2})", name(cell.dtype, cell.reduction))
        });
        let names: Vec<String> = names.collect();
        match names.is_empty() {
            true => "none".to_owned(),
            false => names.join(", "),
        }
    };
    let _ = writeln!(
        out,
        "Below {SLOW} of the plain loop at {}: {}. With {:?} alone: {}.\n",
        size(largest),
        slow(|cell| cell.best),
        Isa::Baseline,
        slow(|cell| cell.baseline)
    );
}

fn table(out: &mut String, cells: &[Cell], of: fn(Speed) -> f64) {
    header(out, "reduction");
    for (dtype, reduction) in cases() {
        let _ = write!(out, "| {} |", name(dtype, reduction));
        let row = |cell: &&Cell| cell.dtype == dtype && cell.reduction == reduction;
        for cell in cells.iter().filter(row) {
            let (best, baseline) = (digits(of(cell.best)), digits(of(cell.baseline)));
            let _ = write!(out, " {best} ({baseline}) |");
        }
        out.push('\n');
    }
    out.push('\n');
}

/// What the plain loop and a copy reach, over all cells of a size.
fn limits(out: &mut String, cells: &[Cell]) {
    header(out, "beside");
    limit(out, cells, "plain loop, f32", |cell| cell.plain);
    limit(out, cells, "`memcpy`", |cell| cell.memcpy);
    out.push('\n');
}

fn limit(out: &mut String, cells: &[Cell], name: &str, of: fn(&Cell) -> f64) {
    let _ = write!(out, "| {name} |");
    for size in SIZES {
        let cells = cells.iter().filter(|cell| cell.size == size);
        let all: Vec<f64> = cells.map(of).collect();
        let _ = write!(out, " {} |", digits(median(&all)));
    }
    out.push('\n');
}

fn header(out: &mut String, first: &str) {
    let _ = write!(out, "| {first} |");
    for bytes in SIZES {
        let _ = write!(out, " {} |", size(bytes));
    }
    let _ = writeln!(out, "\n|---|{}", "--:|".repeat(SIZES.len()));
}

fn name(dtype: Dtype, reduction: Reduction) -> String {
    format!("{dtype:?} {reduction:?}").to_lowercase()
}

/// Two digits that count, or three.
fn digits(value: f64) -> String {
    match value {
        value if value < 10.0 => format!("{value:.2}"),
        value => format!("{value:.0}"),
    }
}
