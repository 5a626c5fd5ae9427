//! The calibration of a cluster: what was measured, as a file and on the wire.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use unisono_plan::cost::{Measurements, Picoseconds, PlanName, Point};

use crate::error::{Error, Result};

/// The form of the file; another one is refused.
const VERSION: u32 = 1;

/// What was measured on a cluster, for any number of communicators.
///
/// Its JSON is for people too: times in microseconds, sizes in bytes, and words for what was
/// measured where. Rank 0 of a job reads it and gives it to the others, so all choose alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    version: u32,
    /// Links by kind, as the link graph names them.
    #[serde(default)]
    pub links: BTreeMap<String, LinkFigures>,
    /// Plans, by the fingerprint of the fabric that they ran on.
    #[serde(default)]
    pub fabrics: BTreeMap<String, FabricFigures>,
}

/// One kind of link between two ranks with nothing else to do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkFigures {
    /// From the call of a send of 8 bytes to the end of its recv, in microseconds.
    pub latency_us: f64,
    /// Bandwidth of a send of many MiB, in bytes a second.
    pub bytes_per_second: u64,
}

/// Plans on one fabric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FabricFigures {
    /// Ranks of the communicator.
    pub ranks: u32,
    /// What it was, for people: ranks, nodes, device, links.
    pub about: String,
    /// The plans that were measured.
    pub plans: Vec<PlanFigures>,
}

/// One plan over sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanFigures {
    /// The operation's name.
    pub op: String,
    /// The algorithm's name.
    pub algorithm: String,
    /// Whether over windows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub windowed: bool,
    /// `[bytes of the message, bytes of the largest put, microseconds]`, by size.
    pub points: Vec<(u64, u64, f64)>,
}

impl LinkFigures {
    /// The latency in picoseconds.
    pub(crate) fn latency_ps(&self) -> u64 {
        (self.latency_us.max(0.0) * 1e6) as u64
    }
}

impl Default for Calibration {
    fn default() -> Self {
        Self {
            version: VERSION,
            links: BTreeMap::new(),
            fabrics: BTreeMap::new(),
        }
    }
}

impl Calibration {
    /// Reads the JSON of a calibration.
    ///
    /// # Errors
    /// [`Error::Invalid`] with line and column if it is none, or of another version.
    pub fn from_json(text: &str) -> Result<Self> {
        let wrong = |why: String| Error::invalid("calibration", why);
        let read: Self = serde_json::from_str(text)
            .map_err(|e| wrong(format!("{e}; make it anew with `unisono tune`")))?;
        if read.version != VERSION {
            return Err(wrong(format!(
                "version {} is not known here, {VERSION} is; make it anew with `unisono tune`",
                read.version
            )));
        }
        for figures in read.fabrics.values() {
            figures.measurements().map_err(wrong)?;
        }
        Ok(read)
    }

    /// The JSON of a calibration.
    #[must_use]
    pub fn to_json(&self) -> String {
        // A map with text keys and plain numbers always has a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What a job of `ranks` ranks can use of it.
    pub(crate) fn for_ranks(&self, ranks: u32) -> Self {
        let mut part = self.clone();
        part.fabrics.retain(|_, figures| figures.ranks <= ranks);
        part
    }

    /// Takes over what `newer` measured; the rest stays.
    pub fn merge(&mut self, newer: Calibration) {
        self.links.extend(newer.links);
        self.fabrics.extend(newer.fabrics);
    }

    /// What was measured on a fabric.
    pub(crate) fn fabric(&self, fingerprint: u64) -> Option<Measurements> {
        let figures = self.fabrics.get(&key(fingerprint))?;
        figures.measurements().ok()
    }
}

/// A fingerprint as it stands in the file.
pub(super) fn key(fingerprint: u64) -> String {
    format!("{fingerprint:016x}")
}

impl FabricFigures {
    pub(super) fn new(ranks: u32, about: String, measured: &Measurements) -> Self {
        let plans = measured.rows().map(|(name, points)| PlanFigures {
            op: name.op.name().to_owned(),
            algorithm: name.algorithm.clone(),
            windowed: name.windowed,
            points: (points.iter())
                .map(|point| (point.bytes, point.put_bytes, point.time.0 as f64 / 1e6))
                .collect(),
        });
        Self {
            ranks,
            about,
            plans: plans.collect(),
        }
    }

    fn measurements(&self) -> std::result::Result<Measurements, String> {
        let mut measured = Measurements::default();
        for plan in &self.plans {
            let op = plan.op.parse().map_err(|e| format!("{e}"))?;
            for (bytes, put_bytes, us) in plan.points.iter().copied() {
                if !(us.is_finite() && (0.0..1e12).contains(&us)) {
                    return Err(format!(
                        "{us} us for {} of {bytes} bytes is no time",
                        plan.op
                    ));
                }
                let name = PlanName {
                    op,
                    windowed: plan.windowed,
                    algorithm: plan.algorithm.clone(),
                };
                let time = Picoseconds((us * 1e6) as u128);
                measured.insert(
                    name,
                    Point {
                        bytes,
                        put_bytes,
                        time,
                    },
                );
            }
        }
        Ok(measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Calibration {
        let mut calibration = Calibration::default();
        let figures = LinkFigures {
            latency_us: 0.25,
            bytes_per_second: 10_000_000_000,
        };
        calibration.links.insert("near".into(), figures);
        let plans = vec![PlanFigures {
            op: "all_reduce".into(),
            algorithm: "ring".into(),
            windowed: false,
            points: vec![(8, 64, 0.5), (1024, 64, 1.25)],
        }];
        calibration.fabrics.insert(
            key(7),
            FabricFigures {
                ranks: 2,
                about: "two ranks".into(),
                plans,
            },
        );
        calibration
    }

    #[test]
    fn what_is_written_is_read() {
        let calibration = sample();
        let read = Calibration::from_json(&calibration.to_json()).unwrap();
        assert_eq!(read, calibration);
        let measured = read.fabric(7).unwrap();
        assert_eq!(
            FabricFigures::new(2, "two ranks".into(), &measured),
            read.fabrics[&key(7)]
        );
        assert!(read.fabric(8).is_none());
    }

    #[test]
    fn what_is_no_calibration_says_so() {
        let text = sample().to_json();
        let refused = |text: &str| Calibration::from_json(text).unwrap_err().to_string();
        assert!(refused("{").contains("line 1"));
        assert!(refused(&text.replace("\"version\":1", "\"version\":9")).contains("version 9"));
        assert!(refused(&text.replace("all_reduce", "all_dance")).contains("all_dance"));
        assert!(refused(&text.replace("1.25", "-1.25")).contains("no time"));
        assert!(refused(&text.replace("latency_us", "latency_ms")).contains("latency_ms"));
    }

    #[test]
    fn newer_figures_replace_older_ones() {
        let mut old = sample();
        let mut new = sample();
        new.links.get_mut("near").unwrap().latency_us = 0.125;
        let fabric = new.fabrics.remove(&key(7)).unwrap();
        new.fabrics.insert(key(8), fabric);
        old.merge(new);
        assert_eq!(old.links["near"].latency_us, 0.125);
        assert_eq!(old.fabrics.len(), 2);
    }
}
