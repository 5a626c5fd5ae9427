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
    /// Out of place and in place, each by side; empty where there is no such form.
    pub times: [Vec<Figures>; 2],
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
    /// The names of the sides.
    sides: Vec<String>,
    bar: ProgressBar,
    wrong: u64,
    checked: bool,
    bus: Vec<f64>,
    /// The other side's medians over the first one's.
    ratios: Vec<f64>,
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
    pub fn new(args: &Args, sides: &[Side], rows: usize) -> Result<Self> {
        let communicator = &sides[0].communicator;
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
            transport: sides[0].transport(),
            sides: sides.iter().map(|side| side.plugin.clone()).collect(),
            bar,
            wrong: 0,
            checked: args.check == 1,
            bus: Vec::new(),
            ratios: Vec::new(),
        };
        // Lines of JSON stand alone.
        if args.topo && !args.json {
            report.print(&unisono::graph::draw::table(communicator.graph()))?;
        }
        if !args.json {
            report.head(args, sides)?;
        }
        Ok(report)
    }

    fn head(&self, args: &Args, sides: &[Side]) -> Result<()> {
        let step = match (args.stepbytes, args.stepfactor) {
            (Some(bytes), _) => format!("{bytes} (bytes)"),
            (None, factor) => format!("{} (factor)", factor.unwrap_or(4)),
        };
        let mut text = format!(
            "# unisono {} ranks {} minBytes {} maxBytes {} step: {step} warmup iters: {} iters: {} \
             rounds: {} validation: {}\n#\n# Using devices\n",
            env!("CARGO_PKG_VERSION"),
            self.rank_count,
            args.minbytes,
            args.maxbytes,
            args.warmup_iters,
            args.iters,
            args.rounds,
            args.check,
        );
        let graph = sides[0].communicator.graph();
        for rank in 0..self.rank_count {
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
        text.push_str(&format!("#  Links: {}\n", self.transport));
        self.print(&text)
    }

    /// Begins the rows of one operation, type and reduction.
    pub fn begin(&self, shape: &Shape) -> Result<()> {
        let name = shape.op.name();
        self.bar.set_message(name);
        if self.json {
            return Ok(());
        }
        let ratio = if self.sides.len() > 1 {
            "    ratio"
        } else {
            ""
        };
        let times = "    time   algbw   busbw  #wrong";
        let units = "    (us)  (GB/s)  (GB/s)        ";
        self.print(&format!(
            "#\n# {name}\n#{:>43}{:^32}{:^32}\n#{:>12}{:>14}{:>7}{:>7}{:>6}{times}{times}{ratio}  algorithm\n\
             #{:>12}{:>14}{:>20}{units}{units}\n",
            "", "out-of-place", "in-place", "size", "count", "type", "redop", "root", "(B)", "(elements)", "",
        ))
    }

    pub fn row(&mut self, row: &Row) -> Result<()> {
        self.wrong += row.wrong.iter().flatten().sum::<u64>();
        for times in &row.times {
            self.bus.extend(
                times
                    .first()
                    .map(|figures| row.shape.bandwidth(figures.median).1),
            );
        }
        if let [ours, theirs, ..] = row.times[0][..] {
            self.ratios.push(theirs.median / ours.median);
        }
        let text = if self.json {
            self.lines(row)?
        } else {
            self.table_row(row)
        };
        self.print(&text)?;
        self.bar.inc(1);
        Ok(())
    }

    fn lines(&self, row: &Row) -> Result<String> {
        let mut text = String::new();
        for (side, figures) in row.times[0].iter().enumerate() {
            let (algbw, busbw) = row.shape.bandwidth(figures.median);
            let peer = match side {
                0 => "unisono".to_owned(),
                _ => format!("unisono/{}", self.sides[side]),
            };
            let line = Line {
                peer: &peer,
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
            text.push_str(&serde_json::to_string(&line)?);
            text.push('\n');
        }
        Ok(text)
    }

    fn table_row(&self, row: &Row) -> String {
        let shape = &row.shape;
        let redop = if shape.op.reduces() {
            shape.reduction.name()
        } else {
            "none"
        };
        let root = match shape.op {
            super::op::BenchOp::Broadcast => shape.root.to_string(),
            _ => "-1".to_owned(),
        };
        let mut text = format!(
            " {:>12}{:>14}{:>7}{redop:>7}{root:>6}",
            shape.bytes(),
            shape.count,
            shape.dtype.name(),
        );
        for (times, wrong) in row.times.iter().zip(row.wrong) {
            let wrong = wrong.map_or("N/A".to_owned(), |wrong| wrong.to_string());
            match times.first() {
                None => text.push_str(&format!("{:>8}{:>8}{:>8}{:>8}", "-", "-", "-", "-")),
                Some(figures) => {
                    let (algorithm, bus) = shape.bandwidth(figures.median);
                    let time = short(figures.median);
                    text.push_str(&format!("{time:>8}{algorithm:>8.2}{bus:>8.2}{wrong:>8}"));
                }
            }
        }
        if let [ours, theirs, ..] = row.times[0][..] {
            text.push_str(&format!("{:>9.3}", theirs.median / ours.median));
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
            let mut text = format!(
                "#\n# Out of bounds values : {verdict}\n# Avg bus bandwidth    : {average:.3}\n"
            );
            if let [ours, theirs, ..] = &self.sides[..] {
                let logs = self.ratios.iter().map(|ratio| ratio.ln()).sum::<f64>();
                let mean = (logs / self.ratios.len().max(1) as f64).exp();
                text.push_str(&format!(
                    "# {theirs}'s time over {ours}'s, out of place, geometric mean: {mean:.3}\n"
                ));
            }
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

/// To so many decimals: more say nothing.
fn rounded(value: f64, decimals: i32) -> f64 {
    let unit = 10_f64.powi(decimals);
    (value * unit).round() / unit
}

/// A time in microseconds in at most seven characters.
fn short(usec: f64) -> String {
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
