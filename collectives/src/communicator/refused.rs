//! Pairs of ranks whose devices reach each other by the graph, but not in fact: the system or a driver
//! refused a mapping when the communicator was formed. They are joined through host memory instead, on
//! both sides and in every rank's eyes.

use std::collections::BTreeMap;

use super::wire::{Reader, put_bytes};
use crate::ground;

/// Why each pair is, by its ranks in the communicator, the lower one first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refused(BTreeMap<(u32, u32), String>);

impl Refused {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn has(&self, a: u32, b: u32) -> bool {
        self.0.contains_key(&(a.min(b), a.max(b)))
    }

    /// The pairs of which one side could not map the other's memory. Each rank tells of every other why
    /// not, or nothing; all find the same. `None` if one told of more or fewer than there are.
    pub(super) fn of(told: &[Vec<u8>]) -> Option<Self> {
        let mut pairs = BTreeMap::new();
        for (rank, bytes) in (0..).zip(told) {
            for (peer, why) in (0..).zip(reasons(bytes, told.len())?) {
                if let Some(why) = why {
                    let pair: (u32, u32) = (peer.min(rank), peer.max(rank));
                    let why = format!("rank {rank} cannot map the memory of rank {peer}: {why}");
                    pairs.entry(pair).or_insert(why);
                }
            }
        }
        Some(Self(pairs))
    }

    pub(super) fn pairs(&self) -> impl Iterator<Item = (u32, u32)> {
        self.0.keys().copied()
    }

    /// The reasons.
    pub(super) fn reasons(&self) -> Vec<String> {
        self.0.values().cloned().collect()
    }

    /// A line for each pair, for people.
    pub(super) fn lines(&self) -> Vec<String> {
        let lines = self.0.iter().map(|((a, b), why)| {
            format!(
                "ranks {a} and {b} go through host memory ({}): {why}",
                ground::KIND
            )
        });
        lines.collect()
    }
}

/// What a rank tells: of each peer, by rank, why it cannot be mapped.
pub(super) fn put_reasons<'a>(reasons: impl Iterator<Item = Option<&'a str>>) -> Vec<u8> {
    let mut out = Vec::new();
    for why in reasons {
        let text = why.map(|why| {
            if why.is_empty() {
                "no reason given"
            } else {
                why
            }
        });
        put_bytes(&mut out, text.unwrap_or_default().as_bytes());
    }
    out
}

fn reasons(bytes: &[u8], ranks: usize) -> Option<Vec<Option<String>>> {
    let mut reader = Reader(bytes);
    let reasons: Option<Vec<_>> = (0..ranks)
        .map(|_| {
            let why = String::from_utf8_lossy(reader.bytes()?).into_owned();
            Some((!why.is_empty()).then_some(why))
        })
        .collect();
    reasons.filter(|_| reader.0.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn either_side_refuses_for_both() {
        let told = [
            put_reasons([None, None, None].into_iter()),
            put_reasons([Some("no such file"), None, None].into_iter()),
            put_reasons([None, None, None].into_iter()),
        ];
        let refused = Refused::of(&told).expect("each tells of all");
        assert!(refused.has(0, 1) && refused.has(1, 0));
        assert!(!refused.has(0, 2) && !refused.has(1, 2));
        let line = "ranks 0 and 1 go through host memory (staged): rank 1 cannot map the memory of rank 0: \
                    no such file";
        assert_eq!(refused.lines(), [line]);
    }

    #[test]
    fn who_tells_of_more_or_fewer_than_there_are_is_not_believed() {
        let two = put_reasons([None, Some("no")].into_iter());
        let three = put_reasons([None, None, Some("no")].into_iter());
        assert!(Refused::of(&[two.clone(), two.clone()]).is_some());
        assert!(Refused::of(&[two.clone(), three]).is_none());
        assert!(Refused::of(&[two.clone(), two[..two.len() - 1].to_vec()]).is_none());
        assert!(Refused::of(&[two, Vec::new()]).is_none());
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(told in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..5)) {
            if let Some(refused) = Refused::of(&told) {
                prop_assert!(refused.lines().len() <= told.len() * told.len());
            }
        }
    }
}
