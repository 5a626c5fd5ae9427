//! The best way from each rank to each other, as a matrix of bandwidths.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::columns::{Align, WIDTH, fit};
use crate::{LinkGraph, Way, units};

/// More ranks than this are not asked about: the links are listed anyway.
const MAX_RANKS: usize = 32;

/// Appends the matrix, if it fits on the screen.
pub(super) fn write(out: &mut String, graph: &LinkGraph) {
    let ranks: Vec<u32> = graph.ranks().collect();
    if ranks.len() < 2 || ranks.len() > MAX_RANKS {
        return;
    }
    let ways: Vec<Vec<Option<Way>>> = (ranks.iter())
        .map(|from| {
            ranks
                .iter()
                .map(|to| graph.ways(*from, *to).into_iter().next())
                .collect()
        })
        .collect();
    let letters = letters(&ways);
    let cell = |way: &Option<Way>| match way {
        None => String::new(),
        Some(way) => format!(
            "{}{}",
            gigabytes(way.bytes_per_second),
            letters[&class(way)]
        ),
    };
    let cells: Vec<Vec<String>> = ways
        .iter()
        .map(|row| row.iter().map(cell).collect())
        .collect();
    let width = cells
        .iter()
        .flatten()
        .map(|cell| cell.chars().count())
        .max()
        .unwrap_or(0)
        .max(4)
        + 1;
    if letters.is_empty() || 6 + ranks.len() * width > WIDTH {
        return;
    }
    out.push_str("\nBest way from rank (down) to rank (across), GB/s\n");
    let mut line = |head: String, cells: Vec<String>| {
        let cells: String = cells
            .iter()
            .map(|cell| fit(cell, width, Align::Right))
            .collect();
        let _ = writeln!(
            out,
            "{}",
            format!("{}{cells}", fit(&head, 6, Align::Right)).trim_end()
        );
    };
    line(
        String::new(),
        ranks.iter().map(|rank| rank.to_string()).collect(),
    );
    for (row, (rank, mut cells)) in ranks.iter().zip(cells).enumerate() {
        cells[row] = "·".to_owned();
        for cell in cells.iter_mut().filter(|cell| cell.is_empty()) {
            *cell = "-".to_owned();
        }
        line(rank.to_string(), cells);
    }
    let mut legend: Vec<_> = letters.iter().collect();
    legend.sort_by_key(|(_, letter)| **letter);
    for ((kind, link_type, latency_ns, hops), letter) in legend {
        let hops = if *hops > 1 {
            format!(", through {} links", hops)
        } else {
            String::new()
        };
        let latency = if *latency_ns > 0 {
            format!(", {}", units::latency(*latency_ns))
        } else {
            String::new()
        };
        let _ = writeln!(out, "     {letter}  {kind}, {link_type}{latency}{hops}");
    }
}

/// What ways with one letter have in common.
type Class = (String, &'static str, u64, u32);

fn class(way: &Way) -> Class {
    (
        way.kind.clone(),
        way.link_type.as_str(),
        way.latency_ns,
        way.hops,
    )
}

/// A letter for each class, `a` for the first that is met.
fn letters(ways: &[Vec<Option<Way>>]) -> BTreeMap<Class, char> {
    let mut letters = BTreeMap::new();
    for way in ways.iter().flatten().flatten() {
        let next = u8::try_from(letters.len())
            .ok()
            .filter(|count| *count < 26)
            .map_or('?', |count| (b'a' + count) as char);
        letters.entry(class(way)).or_insert(next);
    }
    letters
}

/// GB/s in four characters or so: `450`, `12.5`, `0.03`.
fn gigabytes(bytes_per_second: u64) -> String {
    let hundredths = (u128::from(bytes_per_second) + 5_000_000) / 10_000_000;
    let tenths = (u128::from(bytes_per_second) + 50_000_000) / 100_000_000;
    match hundredths {
        0 => "<.01".to_owned(),
        1..100 => format!("0.{hundredths:02}"),
        _ if tenths < 1000 && tenths % 10 != 0 => format!("{}.{}", tenths / 10, tenths % 10),
        _ => ((u128::from(bytes_per_second) + 500_000_000) / 1_000_000_000).to_string(),
    }
}
