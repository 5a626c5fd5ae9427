//! Steps as others read them: a file from which a plan can be run again.
//!
//! The file is a JSON array with one object for each step, each on a line of its own, in an order
//! in which nothing waits for what comes later. Its keys:
//!
//! | key | what it is |
//! |---|---|
//! | `id` | the step's number, from 0 |
//! | `rank` | the rank that does it |
//! | `lane` | one of the rank's lanes; steps of a lane run in the order of the file |
//! | `kind` | `put`: to the peer; `copy`, `reduce`: within the rank; `signal`: to the peer, no bytes |
//! | `peer` | the rank whose buffer it writes; of what stays, the rank itself |
//! | `buffer`, `offset` | the bytes that it reads, on `rank` |
//! | `with_buffer`, `with_offset` | a second operand on `rank`: what is written is the sum of both |
//! | `to_buffer`, `to_offset` | where it writes, on `peer` |
//! | `bytes` | how many |
//! | `more` | further runs of bytes of the same step, with the same keys, if it has some |
//! | `path` | the links from `rank` to `peer`, each `[from, to]` by the ids of the graph's nodes, with a number behind if it is not the first of parallel links; empty for what stays |
//! | `after` | the steps that must have ended before this one starts |
//!
//! Buffers are `in`, `out`, `scratch` (the rank's own memory, of any size) and `slots R` (what rank
//! `R` fills). Ranks are those of the communicator, from 0, in the order in which they were
//! chosen. The sizes of `in` and `out` are nccl-tests'; where ranks have blocks, block `r` of `N`
//! bytes is from `e floor(N r / (e p))` to `e floor(N (r + 1) / (e p))`, `e` being 4 if `N` is a
//! multiple of 4, else 2 or 1. In all_to_all all blocks have `e floor(N / (e p))` bytes.
//!
//! A step starts when everything in `after` and the step before it in its lane have ended. A put or
//! a signal then waits for the sum of its links' latencies; then a put's bytes flow over all its
//! links at once, at the max-min fair rate among everything that flows. What stays within a rank
//! takes no time, unless the rank's speed is given. The time of the plan is when the last step has
//! ended, from when all ranks have called.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

use crate::names::Names;
use crate::schedule::{Buffer, Extent, Place, Schedule};

/// Writes the steps of a schedule whose lanes are in order.
///
/// # Errors
/// If writing fails.
pub fn write(out: &mut impl Write, schedule: &Schedule, names: &Names) -> io::Result<()> {
    let paths: Vec<Value> = (schedule.paths.iter())
        .map(|path| path.iter().map(|&edge| names.json(edge)).collect())
        .collect();
    out.write_all(b"[")?;
    for (id, step) in schedule.steps.iter().enumerate() {
        out.write_all(if id == 0 { b"\n" } else { b",\n" })?;
        let runs = schedule.extents(step);
        let line = Line {
            id,
            rank: step.rank,
            lane: schedule.lanes[step.lane as usize].number,
            kind: step.kind.name(),
            peer: step.peer,
            run: runs.first().map(Run::new).unwrap_or_default(),
            more: runs.iter().skip(1).map(Run::new).collect(),
            path: &paths[step.path as usize],
            after: schedule.after(step),
        };
        serde_json::to_writer(&mut *out, &line)?;
    }
    out.write_all(b"\n]\n")
}

#[derive(Serialize)]
struct Line<'a> {
    id: usize,
    rank: u32,
    lane: u32,
    kind: &'static str,
    peer: u32,
    #[serde(flatten)]
    run: Run,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    more: Vec<Run>,
    path: &'a Value,
    after: &'a [u32],
}

#[derive(Serialize, Default)]
struct Run {
    #[serde(skip_serializing_if = "Option::is_none")]
    buffer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    with_buffer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    with_offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_buffer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_offset: Option<u64>,
}

impl Run {
    fn new(extent: &Extent) -> Self {
        let split = |place: Place| (Some(name(place.buffer)), Some(place.offset));
        let (buffer, offset) = split(extent.a);
        let (to_buffer, to_offset) = split(extent.to);
        let (with_buffer, with_offset) = extent.b.map(split).unwrap_or_default();
        Self {
            buffer,
            offset,
            bytes: extent.bytes,
            with_buffer,
            with_offset,
            to_buffer,
            to_offset,
        }
    }
}

fn name(buffer: Buffer) -> String {
    match buffer {
        Buffer::In => "in".to_owned(),
        Buffer::Out => "out".to_owned(),
        Buffer::Scratch => "scratch".to_owned(),
        Buffer::Slots { from } => format!("slots {from}"),
    }
}
