//! The table, with nccl-tests' columns, or one JSON object a line. Rank 0 prints.

use std::io::{IsTerminal, Write};

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::Args;
use super::measure::Figures;
use super::op::Shape;
use super::side::Side;

/// What was measured of one shape.
pub struct Row {
    pub shape: Shape,
    /// Out of place and in place, where there is such a form.
    pub times: [Option<Figures>; 2],
    /// Wrong elements, out of place and in place; `None` if not checked.
    pub wrong: [Option<u64>; 2],
    pub algorithm: String,
}

/// Prints rows as they come, on rank 0.
pub struct Report {
    prints: bool,
    json: bool,
    rank_count: u32,
    transport: String,
    bar: ProgressBar,
    wrong: u64,
    checked: bool,
    bus: Vec<f64>,
}

/// One line of `--json`: these keys and no others, which other libraries' benches print too.
#[derive(Serialize)]
struct Line<'a> {
    peer: &'a str,
    op: &'a str,
    ranks: u32,
    bytes: u64,
    dtype: &'a str,
    usec_median: f64,
    usec_min: f64,
    usec_p99: f64,
    #[serde(rename = "algbw_GBps")]
    algbw: f64,
    #[serde(rename = "busbw_GBps")]
    busbw: f64,
    transport: &'a str,
    algorithm: &'a str,
    wrong: u64,
}

impl Report {
    /// Of what this side does, in so many rows.
    pub fn new(args: &Args, side: &Side, rows: usize) -> Result<Self> {
        let communicator = &side.communicator;
        let prints = communicator.rank() == 0;
        let bar = if prints && std::io::stderr().is_terminal() {
            let bar = ProgressBar::new(rows as u64);
            bar.set_style(ProgressStyle::with_template(
                "{wide_bar} {pos}/{len} {msg}",
            )?);
            bar
        } else {
            ProgressBar::hidden()
        };
        let report = Self {
            prints,
            json: args.json,
            rank_count: communicator.size(),
            transport: side.transport(),
            bar,
            wrong: 0,
            checked: args.check == 1,
            bus: Vec::new(),
        };
        // Lines of JSON stand alone.
        if args.topo && !args.json {
            report.print(&unisono::graph::draw::table(communicator.graph()))?;
        }
        if !args.json {
            report.print(&head(args, &[side]))?;
        }
        Ok(report)
    }

    /// Begins the rows of one operation, type and reduction.
    pub fn begin(&self, shape: &Shape) -> Result<()> {
        let name = shape.op.name();
        self.bar.set_message(name);
        if self.json {
            return Ok(());
        }
        let times = "    time   algbw   busbw  #wrong";
        let units = "    (us)  (GB/s)  (GB/s)        ";
        self.print(&format!(
            "#\n# {name}\n#{:>43}{:^32}{:^32}\n#{:>12}{:>14}{:>7}{:>7}{:>6}{times}{times}  algorithm\n\
             #{:>12}{:>14}{:>20}{units}{units}\n",
            "", "out-of-place", "in-place", "size", "count", "type", "redop", "root", "(B)", "(elements)", "",
        ))
    }

    pub fn row(&mut self, row: &Row) -> Result<()> {
        self.wrong += row.wrong.iter().flatten().sum::<u64>();
        let bus = |figures: &Figures| row.shape.bandwidth(figures.median).1;
        self.bus.extend(row.times.iter().flatten().map(bus));
        let text = if self.json {
            self.line(row)?
        } else {
            self.table_row(row)
        };
        self.print(&text)?;
        self.bar.inc(1);
        Ok(())
    }

    fn line(&self, row: &Row) -> Result<String> {
        let Some(figures) = row.times[0] else {
            return Ok(String::new());
        };
        let (algbw, busbw) = row.shape.bandwidth(figures.median);
        let line = Line {
            peer: "unisono",
            op: row.shape.op.name(),
            ranks: self.rank_count,
            bytes: row.shape.bytes(),
            dtype: row.shape.dtype.name(),
            usec_median: rounded(figures.median, 3),
            usec_min: rounded(figures.min, 3),
            usec_p99: rounded(figures.p99, 3),
            algbw: rounded(algbw, 6),
            busbw: rounded(busbw, 6),
            transport: &self.transport,
            algorithm: &row.algorithm,
            wrong: row.wrong.iter().flatten().sum(),
        };
        Ok(serde_json::to_string(&line)?
            + "
")
    }

    fn table_row(&self, row: &Row) -> String {
        let shape = &row.shape;
        let mut text = columns(shape);
        for (times, wrong) in row.times.iter().zip(row.wrong) {
            let wrong = wrong.map_or("N/A".to_owned(), |wrong| wrong.to_string());
            match times {
                None => text.push_str(&format!("{:>8}{:>8}{:>8}{:>8}", "-", "-", "-", "-")),
                Some(figures) => {
                    let (algorithm, bus) = shape.bandwidth(figures.median);
                    let time = short(figures.median);
                    text.push_str(&format!("{time:>8}{algorithm:>8.2}{bus:>8.2}{wrong:>8}"));
                }
            }
        }
        text.push_str(&format!("  {}\n", row.algorithm));
        text
    }

    /// The last lines; gives how many elements were wrong.
    pub fn finish(self) -> Result<u64> {
        self.bar.finish_and_clear();
        if !self.json {
            let verdict = match (self.checked, self.wrong) {
                (false, _) => "not checked".to_owned(),
                (true, 0) => "0 OK".to_owned(),
                (true, wrong) => format!("{wrong} FAILED"),
            };
            let average = self.bus.iter().sum::<f64>() / self.bus.len().max(1) as f64;
            let text = format!(
                "#\n# Out of bounds values : {verdict}\n# Avg bus bandwidth    : {average:.3}\n"
            );
            self.print(&(text + "#\n"))?;
        }
        Ok(self.wrong)
    }

    fn print(&self, text: &str) -> Result<()> {
        if !self.prints {
            return Ok(());
        }
        self.bar.suspend(|| {
            let mut out = std::io::stdout().lock();
            out.write_all(text.as_bytes())?;
            Ok(out.flush()?)
        })
    }
}

/// The first lines: what runs on what.
pub fn head(args: &Args, sides: &[&Side]) -> String {
    let step = match (args.stepbytes, args.stepfactor) {
        (Some(bytes), _) => format!("{bytes} (bytes)"),
        (None, factor) => format!("{} (factor)", factor.unwrap_or(4)),
    };
    let communicator = &sides[0].communicator;
    let mut text = format!(
        "# unisono {} ranks {} minBytes {} maxBytes {} step: {step} warmup iters: {} iters: {} \
         rounds: {} validation: {}\n#\n# Using devices\n",
        env!("CARGO_PKG_VERSION"),
        communicator.size(),
        args.minbytes,
        args.maxbytes,
        args.warmup_iters,
        args.iters,
        args.rounds,
        args.check,
    );
    let graph = communicator.graph();
    for rank in 0..communicator.size() {
        let Some(vertex) = graph.rank(rank).map(|id| graph.vertex(id)) else {
            continue;
        };
        let node = vertex.node.and_then(|id| graph.node(id));
        let host = node.map_or("?", |node| node.name.as_str());
        let plugin = vertex.device().map_or("?", |device| device.plugin.as_str());
        text.push_str(&format!(
            "#  Rank {rank:2} on {host}: {} (plugin {plugin})\n",
            vertex.name
        ));
    }
    for side in sides {
        let plugin = side.device_plugin();
        let path = plugin
            .path()
            .map_or("linked in".to_owned(), |p| p.display().to_string());
        text.push_str(&format!(
            "#  Plugin {} {}: {path}\n",
            plugin.name(),
            plugin.facts().version
        ));
    }
    text.push_str(&format!("#  Links: {}\n", sides[0].transport()));
    text
}

/// The first columns of a row: what nccl-tests show of a shape.
pub fn columns(shape: &Shape) -> String {
    let redop = if shape.op.reduces() {
        shape.reduction.name()
    } else {
        "none"
    };
    let root = match shape.op.has_root() {
        true => shape.root.to_string(),
        false => "-1".to_owned(),
    };
    format!(
        " {:>12}{:>14}{:>7}{redop:>7}{root:>6}",
        shape.bytes(),
        shape.count,
        shape.dtype.name(),
    )
}

/// To so many decimals: more say nothing.
fn rounded(value: f64, decimals: i32) -> f64 {
    let unit = 10_f64.powi(decimals);
    (value * unit).round() / unit
}

/// A time in microseconds in at most seven characters.
pub fn short(usec: f64) -> String {
    match usec {
        t if t < 100.0 => format!("{t:.2}"),
        t if t < 10_000.0 => format!("{t:.1}"),
        t => format!("{t:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn times_fit_their_column() {
        for (usec, text) in [
            (0.417, "0.42"),
            (99.9, "99.90"),
            (1234.56, "1234.6"),
            (20_480.4, "20480"),
        ] {
            assert_eq!(short(usec), text);
        }
    }
}
