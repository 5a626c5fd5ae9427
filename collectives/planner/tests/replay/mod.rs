//! Runs a file of steps again, knowing nothing of how it was made: only the format, and the graph.
//!
//! Two things come out: what every rank's output holds, as contributions of inputs, and how long it
//! took. Both are computed in the plainest way.

mod clock;
mod memory;

use std::collections::HashMap;

use serde_json::Value;

pub use clock::Graph;
pub use memory::Memory;

/// A step as the file says it.
pub struct Step {
    pub rank: u64,
    pub lane: u64,
    pub kind: String,
    pub peer: u64,
    pub runs: Vec<Run>,
    /// Places in the graph's list of edges.
    pub path: Vec<usize>,
    pub after: Vec<usize>,
}

/// One run of bytes of a step.
pub struct Run {
    pub from: (String, u64),
    pub with: Option<(String, u64)>,
    pub to: (String, u64),
    pub bytes: u64,
}

impl Step {
    pub fn bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.bytes).sum()
    }
}

/// Reads a file of steps.
pub fn read(text: &str, graph: &Graph) -> Vec<Step> {
    let steps: Vec<Value> = serde_json::from_str(text).expect("a JSON array");
    let number = |value: &Value, key: &str| value[key].as_u64().unwrap_or_else(|| panic!("{key}"));
    let place = |value: &Value, prefix: &str| {
        let buffer = value.get(format!("{prefix}buffer"))?.as_str()?;
        Some((buffer.to_owned(), number(value, &format!("{prefix}offset"))))
    };
    let run = |value: &Value| {
        Some(Run {
            from: place(value, "")?,
            with: place(value, "with_"),
            to: place(value, "to_")?,
            bytes: number(value, "bytes"),
        })
    };
    let step = |(id, value): (usize, &Value)| {
        assert_eq!(number(value, "id"), id as u64);
        let more = value.get("more").and_then(Value::as_array);
        let runs = std::iter::once(value).chain(more.into_iter().flatten());
        Step {
            rank: number(value, "rank"),
            lane: number(value, "lane"),
            kind: value["kind"].as_str().expect("a kind").to_owned(),
            peer: number(value, "peer"),
            runs: runs.filter_map(run).collect(),
            path: (value["path"].as_array().expect("a path").iter())
                .map(|link| graph.edge(link))
                .collect(),
            after: (value["after"].as_array().expect("a list").iter())
                .map(|id| id.as_u64().expect("an id") as usize)
                .collect(),
        }
    };
    steps.iter().enumerate().map(step).collect()
}

/// For each step all that must have ended before: what it names, and the one before in its lane.
pub fn befores(steps: &[Step]) -> Vec<Vec<usize>> {
    let mut last: HashMap<(u64, u64), usize> = HashMap::new();
    steps
        .iter()
        .enumerate()
        .map(|(id, step)| {
            let before = last.insert((step.rank, step.lane), id);
            step.after.iter().copied().chain(before).collect()
        })
        .collect()
}

/// What outputs must hold.
pub fn check(op: &str, ranks: u64, root: u64, bytes: u64, memory: &Memory) {
    let element = [4, 2, 1]
        .into_iter()
        .find(|e| bytes.is_multiple_of(*e))
        .unwrap_or(1);
    let count = bytes / element;
    let cut = |r: u64| match op {
        "all_to_all" => count / ranks * element * r,
        _ => count * r / ranks * element,
    };
    let all: Vec<u64> = (0..ranks).collect();
    for rank in 0..ranks {
        let expect = |from: u64, to: u64, ranks: &[u64], at: u64| {
            let contributions: Vec<_> = ranks.iter().map(|&r| (r, at)).collect();
            memory.expect(rank, from, to, &contributions);
        };
        let own = cut(rank)..cut(rank + 1);
        match op {
            "all_reduce" => expect(0, bytes, &all, 0),
            "reduce" if rank == root => expect(0, bytes, &all, 0),
            "reduce_scatter" => expect(0, own.end - own.start, &all, own.start),
            "broadcast" => expect(0, bytes, &[root], 0),
            "scatter" => expect(0, own.end - own.start, &[root], own.start),
            "send" if rank == ranks - 1 => expect(0, bytes, &[0], 0),
            "all_gather" => all
                .iter()
                .for_each(|&r| expect(cut(r), cut(r + 1), &[r], 0)),
            "gather" if rank == root => {
                all.iter()
                    .for_each(|&r| expect(cut(r), cut(r + 1), &[r], 0));
            }
            "all_to_all" => {
                all.iter()
                    .for_each(|&r| expect(cut(r), cut(r + 1), &[r], own.start));
            }
            _ => {}
        }
    }
}
