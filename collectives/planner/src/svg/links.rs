//! When links are used.

use unisono_network::{EdgeId, Network};

use super::MARGIN;
use super::axis::Axis;
use super::paint::Paint;
use crate::Plan;
use crate::names::Names;

/// The most links that are drawn.
const MOST_LINKS: usize = 128;
/// In how many cells the use of a link is shown, where it changes more often.
const CELLS: usize = 230;
/// Height of a row, and of the bar in it.
const ROW: f64 = 18.0;
const BAR: f64 = 13.0;
/// The longest name of a link, in letters.
const NAME: usize = 24;

/// The links of a plan that are drawn.
pub(super) struct Links<'a> {
    plan: &'a Plan,
    network: &'a Network,
    /// In the order of the network.
    drawn: Vec<EdgeId>,
    left_out: usize,
}

impl<'a> Links<'a> {
    pub(super) fn new(plan: &'a Plan, network: &'a Network) -> Self {
        let bytes = (0..).zip(&plan.timeline.edge_bytes);
        let mut used: Vec<EdgeId> = bytes
            .filter(|(_, bytes)| **bytes > 0)
            .map(|(edge, _)| edge)
            .collect();
        let left_out = used.len().saturating_sub(MOST_LINKS);
        if left_out > 0 {
            let busy = |edge: &EdgeId| plan.timeline.edge_busy_ps[*edge as usize];
            used.sort_by(|a, b| busy(b).total_cmp(&busy(a)).then(a.cmp(b)));
            used.truncate(MOST_LINKS);
            used.sort_unstable();
        }
        Self {
            plan,
            network,
            drawn: used,
            left_out,
        }
    }

    pub(super) fn left_out(&self) -> usize {
        self.left_out
    }

    /// Whether any link is used.
    pub(super) fn any(&self) -> bool {
        !self.drawn.is_empty()
    }

    pub(super) fn height(&self) -> f64 {
        self.drawn.len().max(1) as f64 * ROW
    }

    pub(super) fn draw(&self, paint: &mut Paint, axis: &Axis, names: &Names, top: f64) {
        let profiles = self.profiles(axis.end_ps());
        for (row, (&link, profile)) in self.drawn.iter().zip(profiles).enumerate() {
            let y = top + row as f64 * ROW + (ROW - BAR) / 2.0;
            let name = short(&names.text(link));
            paint.text(MARGIN, y + BAR - 2.5, "label", &name);
            paint.area((axis.left(), y), (axis.width(), BAR), "ground");
            let ends = [(axis.end_ps(), 0.0)];
            let steps = (profile.into_iter().chain(ends))
                .map(|(ps, used)| (axis.at(ps), used.clamp(0.0, 1.0) * BAR));
            paint.profile(y + BAR, steps);
            let percent = format!("{:.0} %", 100.0 * self.full_ps(link) / axis.end_ps());
            paint.text(
                axis.left() + axis.width() + 10.0,
                y + BAR - 2.5,
                "label",
                &percent,
            );
        }
    }

    /// For each link how much of its bandwidth is used, and from when on.
    fn profiles(&self, end_ps: f64) -> Vec<Vec<(f64, f64)>> {
        let plan = self.plan;
        let mut row_of = vec![None; self.network.edges().len()];
        for (row, &link) in self.drawn.iter().enumerate() {
            row_of[link as usize] = Some(row);
        }
        let mut flows = vec![Vec::new(); self.drawn.len()];
        for (step, span) in plan.schedule.steps.iter().zip(&plan.timeline.steps) {
            let path = &plan.schedule.paths[step.path as usize];
            if step.bytes == 0 || path.is_empty() {
                continue;
            }
            // Bytes flow when the latencies are over, evenly as far as one can see from here.
            let delay = self.network.path_facts(path).latency_ns as f64 * 1000.0;
            let from = (span.start_ps + delay).min(span.end_ps);
            for row in path.iter().filter_map(|&edge| row_of[edge as usize]) {
                let wide = self.network.edge(self.drawn[row]).bytes_per_second as f64;
                flows[row].push(Flow {
                    from,
                    to: span.end_ps,
                    full_ps: step.bytes as f64 * 1e12 / wide,
                });
            }
        }
        if plan.schedule.steps.is_empty() {
            // It was counted: only the mean is known.
            let mean = |&link: &EdgeId| vec![(0.0, self.full_ps(link) / end_ps)];
            return self.drawn.iter().map(mean).collect();
        }
        let profile = |flows: Vec<Flow>| match flows.len() {
            ..=CELLS => exact(&flows),
            _ => in_cells(&flows, end_ps),
        };
        flows.into_iter().map(profile).collect()
    }

    /// How long a link would take for its bytes at full speed.
    fn full_ps(&self, link: EdgeId) -> f64 {
        let bytes = self.plan.timeline.edge_bytes[link as usize] as f64;
        bytes / self.network.edge(link).bytes_per_second as f64 * 1e12
    }
}

/// Bytes on a link.
#[derive(Clone)]
struct Flow {
    from: f64,
    to: f64,
    /// How long they would take with the link for themselves.
    full_ps: f64,
}

/// The use from each moment on at which it changes.
fn exact(flows: &[Flow]) -> Vec<(f64, f64)> {
    let mut changes: Vec<(f64, f64)> = Vec::new();
    for flow in flows.iter().filter(|flow| flow.to > flow.from) {
        let part = flow.full_ps / (flow.to - flow.from);
        changes.extend([(flow.from, part), (flow.to, -part)]);
    }
    changes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut used = 0.0;
    let mut profile: Vec<(f64, f64)> = Vec::new();
    for (at, change) in changes {
        used += change;
        match profile.last_mut() {
            Some(last) if last.0 == at => last.1 = used,
            _ => profile.push((at, used)),
        }
    }
    profile
}

/// The mean use in cells of equal length, where the changes are too many to be told apart.
fn in_cells(flows: &[Flow], end_ps: f64) -> Vec<(f64, f64)> {
    let cell_ps = end_ps / CELLS as f64;
    let mut cells = vec![0.0f64; CELLS];
    for flow in flows {
        let first = ((flow.from / cell_ps) as usize).min(CELLS - 1);
        let last = ((flow.to / cell_ps) as usize).min(CELLS - 1);
        for (cell, used) in cells.iter_mut().enumerate().take(last + 1).skip(first) {
            let (start, end) = (cell as f64 * cell_ps, (cell + 1) as f64 * cell_ps);
            let inside = (flow.to.min(end) - flow.from.max(start)).max(0.0);
            let part = match flow.to > flow.from {
                true => inside / (flow.to - flow.from),
                false => 1.0,
            };
            *used += part * flow.full_ps / cell_ps;
        }
    }
    let at = |cell: usize| cell as f64 * cell_ps;
    let cells = cells.into_iter().enumerate();
    cells.map(|(cell, used)| (at(cell), used)).collect()
}

/// A name that fits: both ends of the link can be told.
fn short(name: &str) -> String {
    if name.chars().count() <= NAME {
        return name.to_owned();
    }
    let room = NAME / 2 - 2;
    let cut = |end: &str| -> String {
        let letters = end.chars().count();
        if letters <= room {
            return end.to_owned();
        }
        // The number that most names end with tells more than their middle.
        let tail = end.chars().skip(letters - room / 3);
        let head = end.chars().take(room - room / 3 - 1);
        head.chain(['…']).chain(tail).collect()
    };
    let ends: Vec<String> = name.split(" -> ").map(cut).collect();
    ends.join(" -> ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(short("0 -> 1"), "0 -> 1");
        let long = short("leaf switch number 17 -> the spine of plane 3");
        assert!(
            long.contains(" -> ") && long.chars().count() <= NAME,
            "{long}"
        );
        assert!(long.contains("17") && long.ends_with('3'), "{long}");
    }
}
