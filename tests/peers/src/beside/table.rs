//! Results as text: ratios first.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::cell::{Cell, size};
use crate::results::{QUIET, Results, Row, geometric_mean};

/// A line for each cell.
pub fn for_terminal(results: &Results) -> String {
    let mut text = String::new();
    for (transport, ranks) in results.parts() {
        let _ = writeln!(
            text,
            "\n{:<28} {:>9} {:>10} {:>11} {:>11} {:>11}  best peer",
            format!("{}, {ranks} ranks", transport.name()),
            "best/ours",
            "limit/ours",
            "ours us",
            "best us",
            "limit us",
        );
        let part = results.part(transport, ranks);
        for (cell, row) in &part {
            let _ = writeln!(
                text,
                "{:<15} {:>12} {:>9} {:>10} {:>11} {:>11} {:>11}  {}{}",
                cell.op,
                size(cell.bytes),
                ratio(row.ratio()),
                ratio(row.share()),
                time(row.ours()),
                time(row.best().map(|best| best.1)),
                time(row.limit()),
                row.best().map_or("-", |best| best.0),
                if row.is_behind() { "  BEHIND" } else { "" },
            );
        }
        let _ = writeln!(
            text,
            "geometric mean of best/ours: {}",
            means(&part, Row::ratio)
        );
        if part.iter().any(|(_, row)| row.limit().is_some()) {
            let _ = writeln!(
                text,
                "were all as fast as the limit: {}",
                means(&part, Row::within_reach)
            );
        }
    }
    let others = results.others_busy();
    if others > QUIET {
        let _ = writeln!(
            text,
            "\nOthers use {others:.2} cores: these figures mean nothing; wait until it is quiet"
        );
    }
    for (key, library) in results.wrong() {
        let (op, bytes) = (key.cell.op, size(key.cell.bytes));
        let _ = writeln!(
            text,
            "WRONG RESULT of {library}: {op}, {bytes}, {} ranks",
            key.ranks
        );
    }
    text
}

/// Geometric means of what `each` says of cells: of all, of small and of large ones.
pub fn means(part: &[(Cell, &Row)], each: fn(&Row) -> Option<f64>) -> String {
    let of = |keep: fn(usize) -> bool| {
        let kept = part.iter().filter(|(cell, _)| keep(cell.bytes));
        ratio(geometric_mean(kept.filter_map(|(_, row)| each(row))))
    };
    format!(
        "{} of all, {} up to 1 KiB, {} from 4 MiB",
        of(|_| true),
        of(|bytes| bytes <= 1 << 10),
        of(|bytes| bytes >= 4 << 20)
    )
}

/// A table in Markdown, an operation a line and a size a column.
pub fn by_size(part: &[(Cell, &Row)], show: impl Fn(&Row) -> String) -> String {
    let mut sizes: Vec<usize> = part.iter().map(|(cell, _)| cell.bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut lines: BTreeMap<&str, BTreeMap<usize, String>> = BTreeMap::new();
    for (cell, row) in part {
        lines
            .entry(cell.op)
            .or_default()
            .insert(cell.bytes, show(row));
    }
    let heads: Vec<String> = sizes
        .iter()
        .map(|&bytes| match bytes {
            0 => "no data".to_owned(),
            _ => size(bytes),
        })
        .collect();
    let mut text = format!(
        "| | {} |\n|---|{}\n",
        heads.join(" | "),
        "--:|".repeat(sizes.len())
    );
    for (op, cells) in lines {
        let shown = sizes
            .iter()
            .map(|bytes| cells.get(bytes).cloned().unwrap_or_default());
        let shown: Vec<String> = shown.collect();
        let _ = writeln!(text, "| {op} | {} |", shown.join(" | "));
    }
    text
}

/// Microseconds, with as many digits as mean something.
pub fn time(usec: Option<f64>) -> String {
    match usec {
        None => "-".to_owned(),
        Some(us) if us < 10.0 => format!("{us:.2}"),
        Some(us) if us < 100.0 => format!("{us:.1}"),
        Some(us) => format!("{us:.0}"),
    }
}

/// A quotient.
pub fn ratio(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Transport;
    use crate::results::tests::sample;

    #[test]
    fn the_terminal_shows_who_is_behind() {
        let text = for_terminal(&sample());
        let line = |start: &str| text.lines().find(|l| l.contains(start)).unwrap().to_owned();
        assert!(line("4 B").contains("2.00") && !line("4 B").contains("BEHIND"));
        assert!(line("1 MiB").contains("0.33") && line("1 MiB").contains("BEHIND"));
        assert!(line("geometric").contains("0.82 of all, 2.00 up to 1 KiB, - from 4 MiB"));
        assert!(line("were all as fast").contains("2.11 of all, 4.00 up to 1 KiB"));
    }

    #[test]
    fn tables_have_a_column_for_each_size() {
        let results = sample();
        let part = results.part(Transport::Shm, 2);
        let text = by_size(&part, |row| ratio(row.ratio()));
        assert_eq!(
            text,
            "| | 4 B | 1 MiB |\n|---|--:|--:|\n| all_reduce | 2.00 | 0.33 |\n"
        );
    }
}
