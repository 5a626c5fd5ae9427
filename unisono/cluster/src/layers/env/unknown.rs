//! Variables that name no key.

use super::{PREFIX, VARIABLES};
use crate::problem::{Findings, Place, ProblemKind};
use crate::suggest;

/// A variable with a path is meant for this file. One without may be another part's, such as
/// `UNISONO_NODE_ID`, and is only pointed at if it looks like a slip.
pub(super) fn unknown(
    variable: &str,
    keys: &[String],
    depth: usize,
    known: &[&str],
    place: &Place,
    found: &mut Findings,
) {
    let key = &keys[depth];
    let spelled = |candidate: &str| {
        let mut keys = keys.to_vec();
        keys[depth] = candidate.to_owned();
        format!("{PREFIX}{}", keys.join("__").to_ascii_uppercase())
    };
    if keys.len() > 1 {
        let help = match suggest::closest(key, known.iter().copied()) {
            Some(candidate) => format!("did you mean {}?", spelled(candidate)),
            None if known.is_empty() => "lists are given whole, as YAML".to_owned(),
            None => format!("known keys: {}", known.join(", ")),
        };
        let message = format!("{variable} names no key: there is no `{key}`");
        found.problem(
            ProblemKind::UnknownKey,
            keys.join("."),
            place,
            message,
            help,
        );
        return;
    }
    let names: Vec<String> = known.iter().map(|key| spelled(key)).collect();
    let candidates = VARIABLES
        .iter()
        .map(|(name, _)| *name)
        .chain(names.iter().map(String::as_str));
    let rest = &variable[PREFIX.len()..];
    let close = candidates
        .filter(|name| suggest::closest(rest, [&name[PREFIX.len()..]]).is_some())
        .min_by_key(|name| strsim::damerau_levenshtein(variable, name));
    if let Some(candidate) = close.filter(|_| !OTHERS.contains(&variable)) {
        found.warning(
            key,
            place,
            format!("{variable} is not used"),
            format!("did you mean {candidate}?"),
        );
    }
}

/// Variables of other parts of the library that are close to one of ours.
const OTHERS: &[&str] = &[
    "UNISONO_NODE_ID",
    "UNISONO_CLUSTER_FILE",
    "UNISONO_RANK",
    "UNISONO_SIZE",
    "UNISONO_JOB",
];
