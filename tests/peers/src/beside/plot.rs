//! Drawings: for each operation its time and its bandwidth over the size, ours, the best peer and
//! the machine's limit. Both axes of time are logarithmic; bandwidth is bytes of the larger buffer
//! over time, from zero.

mod axes;

use std::fmt::Write;

use crate::cell::Cell;
use crate::results::Row;
use axes::{Axes, Scale};

/// A panel's plane, in pixels.
const WIDTH: f64 = 330.0;
const HEIGHT: f64 = 170.0;
/// Between panels, with room for what stands at the axes.
const LEFT: f64 = 66.0;
const TOP: f64 = 92.0;
const GAP_X: f64 = 92.0;
const GAP_Y: f64 = 66.0;

/// A line of each panel. Told apart by colour, and by dashes where there is none.
struct Line {
    name: &'static str,
    colour: &'static str,
    dash: &'static str,
    time: fn(&Row) -> Option<f64>,
}

const LINES: [Line; 3] = [
    Line {
        name: "limit",
        colour: "#8a8f98",
        dash: "2 4",
        time: Row::limit,
    },
    Line {
        name: "best peer",
        colour: "#c2571a",
        dash: "7 4",
        time: |row| row.best().map(|best| best.1),
    },
    Line {
        name: "unisono",
        colour: "#1f5fbf",
        dash: "none",
        time: Row::ours,
    },
];

/// The drawing of one part of the results, as SVG.
pub fn drawing(title: &str, part: &[(Cell, &Row)]) -> String {
    let mut ops: Vec<&str> = Vec::new();
    for (cell, _) in part {
        // A barrier has no size to draw over.
        if cell.bytes > 0 && !ops.contains(&cell.op) {
            ops.push(cell.op);
        }
    }
    let width = LEFT + 2.0 * WIDTH + GAP_X + 24.0;
    let height = TOP + ops.len() as f64 * (HEIGHT + GAP_Y);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#24292f\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{LEFT}\" y=\"28\" font-size=\"17\" font-weight=\"bold\">{title}</text>\n"
    );
    legend(&mut svg);
    for (index, op) in ops.iter().enumerate() {
        let rows: Vec<(f64, &Row)> = part
            .iter()
            .filter(|(cell, _)| cell.op == *op)
            .map(|(cell, row)| (cell.bytes as f64, *row))
            .collect();
        let y = TOP + index as f64 * (HEIGHT + GAP_Y);
        let time = |_bytes: f64, usec: f64| usec;
        panel(
            &mut svg,
            LEFT,
            y,
            &format!("{op}: microseconds"),
            Scale::Log,
            &rows,
            time,
        );
        let x = LEFT + WIDTH + GAP_X;
        // Bytes a microsecond are 10^6 bytes a second.
        let bandwidth = |bytes: f64, usec: f64| bytes / usec / 1e3;
        panel(
            &mut svg,
            x,
            y,
            &format!("{op}: GB/s"),
            Scale::Linear,
            &rows,
            bandwidth,
        );
    }
    svg + "</svg>\n"
}

fn legend(svg: &mut String) {
    for (index, line) in LINES.iter().rev().enumerate() {
        let x = LEFT + 120.0 * index as f64;
        let _ = writeln!(
            svg,
            "<path d=\"M{x} 50h28\" stroke=\"{}\" stroke-width=\"2\" stroke-dasharray=\"{}\"/>\
             <text x=\"{}\" y=\"54\">{}</text>",
            line.colour,
            line.dash,
            x + 34.0,
            line.name
        );
    }
}

fn panel(
    svg: &mut String,
    x: f64,
    y: f64,
    title: &str,
    scale: Scale,
    rows: &[(f64, &Row)],
    value: impl Fn(f64, f64) -> f64,
) {
    let points = |line: &Line| -> Vec<(f64, f64)> {
        rows.iter()
            .filter_map(|(bytes, row)| Some((*bytes, value(*bytes, (line.time)(row)?))))
            .collect()
    };
    let all: Vec<(f64, f64)> = LINES.iter().flat_map(points).collect();
    let Some(axes) = Axes::around(&all, scale) else {
        return;
    };
    let _ = writeln!(svg, "<g transform=\"translate({x} {y})\">");
    let _ = writeln!(svg, "<text y=\"-10\" font-weight=\"bold\">{title}</text>");
    axes.draw(svg, WIDTH, HEIGHT);
    for line in &LINES {
        let places: Vec<(f64, f64)> = points(line)
            .into_iter()
            .map(|point| axes.place(point, WIDTH, HEIGHT))
            .collect();
        let path: Vec<String> = places
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let (colour, dash) = (line.colour, line.dash);
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"/>",
            path.join(" ")
        );
        for (x, y) in places {
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\" fill=\"{colour}\"/>"
            );
        }
    }
    svg.push_str("</g>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Transport;
    use crate::results::tests::sample;

    #[test]
    fn every_library_has_a_line_in_both_panels() {
        let results = sample();
        let svg = drawing("shm", &results.part(Transport::Shm, 2));
        assert_eq!(svg.matches("<polyline").count(), 6);
        assert_eq!(svg.matches("<circle").count(), 12);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        assert_eq!(svg.matches("<g").count(), svg.matches("</g>").count());
    }

    #[test]
    fn nothing_measured_is_a_drawing_without_panels() {
        assert!(!drawing("shm", &[]).contains("<polyline"));
    }
}
