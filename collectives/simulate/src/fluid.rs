//! Fluid cases: links, and jobs that each move some gigabytes over a route from some moment on.
//!
//! The smallest thing that the simulator can be asked, as a file:
//!
//! ```json
//! {"name": "two flows", "links_GBps": {"A": 10, "B": 4},
//!  "jobs": {"f": {"route": ["A"], "GB": 16, "start_s": 0},
//!           "g": {"route": ["A", "B"], "GB": 4, "start_s": 0.5}}}
//! ```
//!
//! A file holds one case, a list of cases, or an object with such a list under `fluid_cases`.
//! A case may hold the answers that are expected (`rates_at_0_GBps`, `finish_s`), so that files of
//! known answers can be read; they aren't used here.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Model, RouteId, SimulateError, Task, max_min_rates, simulate};

/// Bytes in a gigabyte.
const GIGA: f64 = 1e9;
/// Picoseconds in a second.
const SECOND: f64 = 1e12;

/// A case.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What people call it.
    #[serde(default)]
    pub name: Option<String>,
    /// The links and their bandwidth in GB/s (10^9 bytes a second).
    #[serde(rename = "links_GBps")]
    pub links: BTreeMap<String, f64>,
    /// The jobs.
    pub jobs: BTreeMap<String, Job>,
    /// The rates at the beginning that are expected, in GB/s.
    #[serde(rename = "rates_at_0_GBps", default)]
    pub expected_rates: Option<BTreeMap<String, f64>>,
    /// The times of the ends that are expected, in seconds.
    #[serde(rename = "finish_s", default)]
    pub expected_finish: Option<BTreeMap<String, f64>>,
}

/// One job of a [`Case`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The links that it uses, all at once.
    pub route: Vec<String>,
    /// What it moves, in gigabytes.
    #[serde(rename = "GB")]
    pub gigabytes: f64,
    /// When it starts, in seconds.
    #[serde(default)]
    pub start_s: f64,
}

/// What came of a [`Case`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// The case's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The rates of the jobs that start at 0, in GB/s.
    #[serde(rename = "rates_at_0_GBps")]
    pub rates: BTreeMap<String, f64>,
    /// When each job ends, in seconds.
    pub finish_s: BTreeMap<String, f64>,
}

/// A file of cases that can't be read or run.
#[derive(Debug, thiserror::Error)]
pub enum FluidError {
    /// It isn't JSON, or not of this form.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// A number that no link or job can have.
    #[error("{what} is {value}: it must be a number {expected}")]
    OutOfRange {
        /// Which number.
        what: String,
        /// Its value.
        value: f64,
        /// What it must be.
        expected: &'static str,
    },
    /// A job over a link that isn't there.
    #[error("job `{job}` uses link `{link}`, which isn't in `links_GBps`")]
    NoSuchLink {
        /// The job.
        job: String,
        /// The link.
        link: String,
    },
    /// A job without links would never take time.
    #[error("job `{job}` has an empty route: name the links that it uses")]
    NoRoute {
        /// The job.
        job: String,
    },
    /// The simulator refuses.
    #[error(transparent)]
    Simulate(#[from] SimulateError),
}

/// Reads a file of cases. The second value says whether it holds a list.
pub fn read(text: &str) -> Result<(Vec<Case>, bool), FluidError> {
    let mut value: Value = serde_json::from_str(text)?;
    if let Some(list) = value.get_mut("fluid_cases") {
        value = list.take();
    }
    if value.is_array() {
        Ok((serde_json::from_value(value)?, true))
    } else {
        Ok((vec![serde_json::from_value(value)?], false))
    }
}

/// Runs a case.
pub fn run(case: &Case) -> Result<Answer, FluidError> {
    let mut model = Model::new();
    let mut links = BTreeMap::new();
    for (name, &gigabytes) in &case.links {
        let what = || format!("the bandwidth of link `{name}`");
        let capacity = whole(gigabytes * GIGA, 1.0, what, "of GB/s above 0")?;
        links.insert(name, model.resource(capacity));
    }
    let mut routes: Vec<(&String, RouteId, u64)> = Vec::new();
    for (name, job) in &case.jobs {
        if job.route.is_empty() {
            return Err(FluidError::NoRoute { job: name.clone() });
        }
        let mut resources = Vec::new();
        for link in &job.route {
            let known = links.get(link).ok_or_else(|| FluidError::NoSuchLink {
                job: name.clone(),
                link: link.clone(),
            })?;
            resources.push(*known);
        }
        let what = |part: &str| format!("`{part}` of job `{name}`");
        let bytes = whole(
            job.gigabytes * GIGA,
            0.0,
            || what("GB"),
            "of GB, not below 0",
        )?;
        let start = job.start_s * SECOND;
        let delay_ps = whole(start, 0.0, || what("start_s"), "of seconds, not below 0")?;
        let route = model.route(&resources, None);
        model.task(Task {
            after: &[],
            lane: None,
            priority: 0,
            delay_ps,
            bytes,
            route,
        });
        routes.push((name, route, delay_ps));
    }
    let at_zero: Vec<_> = routes.iter().filter(|(.., delay)| *delay == 0).collect();
    let flows: Vec<RouteId> = at_zero.iter().map(|(_, route, _)| *route).collect();
    let rates = max_min_rates(&model, &flows)?;
    let outcome = simulate(&model)?;
    Ok(Answer {
        name: case.name.clone(),
        rates: (at_zero.iter().zip(rates))
            .map(|((name, ..), rate)| ((*name).clone(), rate / GIGA))
            .collect(),
        finish_s: (routes.iter().zip(&outcome.tasks))
            .map(|((name, ..), span)| ((*name).clone(), span.end_ps / SECOND))
            .collect(),
    })
}

/// A number as a whole one, if it is sane.
fn whole(
    value: f64,
    least: f64,
    what: impl Fn() -> String,
    expected: &'static str,
) -> Result<u64, FluidError> {
    let rounded = value.round();
    if rounded >= least && rounded <= 1e18 {
        Ok(rounded as u64)
    } else {
        let what = what();
        Err(FluidError::OutOfRange {
            what,
            value,
            expected,
        })
    }
}
