//! A plan as text for people.

use std::fmt::Write as _;

use unisono_graph::units;
use unisono_network::Network;

use crate::Plan;
use crate::names::Names;
use crate::plan::How;

/// The plan: what won, how fast it is and could be, what else there was, and the use of every
/// link.
#[must_use]
pub fn table(plan: &Plan, network: &Network, names: &Names) -> String {
    let mut out = String::new();
    let schedule = &plan.schedule;
    let bytes = schedule.message.bytes;
    let _ = writeln!(
        out,
        "{} of {} over {} ranks",
        schedule.op,
        units::size(bytes),
        schedule.ranks
    );
    let _ = writeln!(out, "algorithm   {}", plan.algorithm);
    let _ = writeln!(
        out,
        "predicted   {}, by {}",
        time(plan.predicted_us()),
        plan.method()
    );
    let _ = writeln!(out, "algbw       {:.2} GB/s", plan.algbw_gigabytes());
    match plan.bound_algbw_gigabytes() {
        Some(bound) => {
            let exact = if plan.bound_is_exact() {
                ""
            } else {
                ", at most"
            };
            let _ = writeln!(out, "bound       {bound:.2} GB/s{exact}");
            let share = 100.0 * plan.share_of_bound();
            let _ = writeln!(out, "share       {share:.1} % of the bound");
        }
        None => {
            let _ = writeln!(out, "bound       none: nothing has to move");
        }
    }
    if let Some(bytes) = plan.program_bytes() {
        let _ = writeln!(out, "program     {} for a rank", units::size(bytes as u64));
    }
    let _ = writeln!(out, "planned in  {:.2} s", plan.seconds);
    candidates(&mut out, plan);
    links(&mut out, plan, network, names);
    out
}

fn candidates(out: &mut String, plan: &Plan) {
    let _ = writeln!(
        out,
        "\n{:34} {:>12} {:>8}",
        "candidate", "predicted", "chunks"
    );
    for candidate in &plan.candidates {
        let least = match candidate.how {
            How::Simulated => "",
            How::AtLeast => "> ",
            How::Counted => "~ ",
        };
        let _ = writeln!(
            out,
            "{:34} {:>12} {:>8}",
            candidate.source.label(),
            least.to_owned() + &time(candidate.ps / 1e6),
            candidate.knob.chunks
        );
    }
}

fn links(out: &mut String, plan: &Plan, network: &Network, names: &Names) {
    let texts: Vec<String> = (0..network.edges().len() as u32)
        .map(|e| names.text(e))
        .collect();
    let width = texts
        .iter()
        .map(|text| text.chars().count())
        .max()
        .unwrap_or(0)
        .max(4);
    let _ = writeln!(
        out,
        "\n{:width$} {:>11} {:>10} {:>7} {:>7}",
        "link", "bandwidth", "bytes", "busy", "use"
    );
    let end = plan.timeline.end_ps;
    for (place, edge) in network.edges().iter().enumerate() {
        let (bytes, busy) = (
            plan.timeline.edge_bytes[place],
            plan.timeline.edge_busy_ps[place],
        );
        let full = bytes as f64 / edge.bytes_per_second as f64 * 1e12;
        let share = |part: f64| if end > 0.0 { 100.0 * part / end } else { 0.0 };
        let _ = writeln!(
            out,
            "{:width$} {:>11} {:>10} {:>6.1}% {:>6.1}%",
            texts[place],
            units::bandwidth(edge.bytes_per_second),
            units::size(bytes),
            share(busy),
            share(full)
        );
    }
}

/// A time as people read it.
fn time(us: f64) -> String {
    match us {
        us if us < 1e3 => format!("{us:.2} us"),
        us if us < 1e6 => format!("{:.3} ms", us / 1e3),
        us => format!("{:.3} s", us / 1e6),
    }
}
