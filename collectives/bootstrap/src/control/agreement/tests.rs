//! Agreements simulated with deaths at every point and messages in any order.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A message under way.
#[derive(Clone, Debug)]
enum Mail {
    Here {
        from: u32,
        to: u32,
    },
    Decision {
        origin: u32,
        to: u32,
        excluded: Vec<u32>,
    },
}

/// Ranks that live and die, and what is under way between them.
struct World {
    members: Vec<u32>,
    ranks: BTreeMap<u32, (Agreement, BTreeSet<u32>)>,
    dead: BTreeSet<u32>,
    mail: Vec<Mail>,
    results: BTreeMap<u32, Vec<u32>>,
}

impl World {
    fn new(size: u32, dead: &[u32]) -> World {
        let members: Vec<u32> = (0..size).collect();
        let dead: BTreeSet<u32> = dead.iter().copied().collect();
        let ranks = members
            .iter()
            .filter(|rank| !dead.contains(rank))
            .map(|&rank| (rank, (Agreement::default(), dead.clone())));
        World {
            ranks: ranks.collect(),
            members,
            dead,
            mail: Vec::new(),
            results: BTreeMap::new(),
        }
    }

    /// Everyone passes a flood on, so who lives gets it as long as one that lives has it.
    fn flood(&mut self, origin: u32, excluded: &[u32], only_to: Option<usize>) {
        let targets = self
            .members
            .iter()
            .filter(|to| **to != origin)
            .take(only_to.unwrap_or(usize::MAX));
        let mail = targets.map(|&to| Mail::Decision {
            origin,
            to,
            excluded: excluded.to_vec(),
        });
        self.mail.extend(mail.collect::<Vec<_>>());
    }

    /// `reach` limits how many hear of a decision before the rank that took it dies.
    fn act(&mut self, rank: u32, reach: Option<usize>) {
        let Some((agreement, known_dead)) = self.ranks.get_mut(&rank) else {
            return;
        };
        let alive: Vec<u32> = self
            .members
            .iter()
            .copied()
            .filter(|r| !known_dead.contains(r))
            .collect();
        match agreement.act(rank, &self.members, &alive) {
            Act::Follow(to) => self.mail.push(Mail::Here { from: rank, to }),
            Act::Decide(excluded) => {
                self.flood(rank, &excluded, reach);
                match reach {
                    Some(_) => self.kill(rank),
                    None => drop(self.results.insert(rank, excluded)),
                }
            }
            Act::Done(excluded) => {
                let earlier = self.results.insert(rank, excluded.clone());
                assert!(
                    earlier.is_none_or(|earlier| earlier == excluded),
                    "rank {rank} changed its mind"
                );
            }
            Act::Wait(_) => {}
        }
    }

    fn kill(&mut self, rank: u32) {
        self.dead.insert(rank);
        self.ranks.remove(&rank);
        self.results.remove(&rank);
    }

    fn deliver(&mut self, index: usize) {
        match self.mail.swap_remove(index) {
            Mail::Here { from, to } => {
                let again = self
                    .ranks
                    .get_mut(&to)
                    .and_then(|(agreement, _)| agreement.hear_here(from));
                if let Some(excluded) = again {
                    self.flood(to, &excluded, None);
                }
            }
            Mail::Decision {
                origin,
                to,
                excluded,
            } => {
                let Some((agreement, _)) = self.ranks.get_mut(&to) else {
                    return;
                };
                let had = agreement.decided.is_some();
                if agreement.hear_decision(to, origin, &excluded) {
                    self.flood(to, &excluded, None);
                }
                // Passed on whether accepted or not, once.
                if !had {
                    let others: Vec<u32> = self
                        .members
                        .iter()
                        .copied()
                        .filter(|r| *r != to && *r != origin)
                        .collect();
                    let known = |mail: &Mail, r| matches!(mail, Mail::Decision { origin: o, to: t, .. } if *o == origin && *t == r);
                    for other in others {
                        if !self.mail.iter().any(|mail| known(mail, other)) {
                            self.mail.push(Mail::Decision {
                                origin,
                                to: other,
                                excluded: excluded.clone(),
                            });
                        }
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn survivors_agree(
        size in 1..6u32,
        first_dead in 0..7u32,
        steps in proptest::collection::vec((0..5u8, any::<u16>(), any::<u16>()), 0..150),
    ) {
        let mut world = World::new(size, &[first_dead].map(|rank| rank % size)[..usize::from(size > 1)]);
        for (kind, a, b) in steps {
            let rank = u32::from(a) % size;
            match kind {
                0 | 1 => world.act(rank, None),
                2 if !world.mail.is_empty() => world.deliver(usize::from(a) % world.mail.len()),
                3 => {
                    // A rank learns of a death.
                    let dead: Vec<u32> = world.dead.iter().copied().collect();
                    if let (Some((_, known)), false) = (world.ranks.get_mut(&rank), dead.is_empty()) {
                        known.insert(dead[usize::from(b) % dead.len()]);
                    }
                }
                4 if world.ranks.len() > 1 => match b % 16 {
                    0 => world.kill(rank),
                    // A coordinator that dies while it tells the others.
                    1..8 => world.act(rank, Some(usize::from(b) % size as usize)),
                    _ => {}
                },
                _ => {}
            }
        }
        // From now on nobody dies; everyone learns of the deaths, all mail arrives, and the calls return.
        let dead = world.dead.clone();
        for round in 0..200 {
            for rank in 0..size {
                if let Some((_, known)) = world.ranks.get_mut(&rank) {
                    known.extend(&dead);
                }
                world.act(rank, None);
            }
            for _ in 0..world.mail.len().min(500) {
                world.deliver(round % world.mail.len());
            }
            if world.results.len() == world.ranks.len() {
                break;
            }
        }
        prop_assert_eq!(world.results.len(), world.ranks.len(), "all that live return");
        let answers: BTreeSet<&Vec<u32>> = world.results.values().collect();
        prop_assert_eq!(answers.len(), 1, "they agree: {:?}", world.results);
        for survivor in world.ranks.keys() {
            prop_assert!(!answers.iter().any(|excluded| excluded.contains(survivor)));
        }
    }
}

#[test]
fn a_decision_of_a_coordinator_that_was_given_up_is_not_accepted_from_it() {
    let members = [0, 1, 2, 3];
    let mut second = Agreement::default();
    assert_eq!(second.act(2, &members, &members), Act::Follow(0));
    assert_eq!(second.act(2, &members, &[1, 2, 3]), Act::Follow(1));
    // Rank 0 decided with its last breath. Rank 1, told that rank 2 is here, may have decided otherwise by now.
    assert!(!second.hear_decision(2, 0, &[]));
    assert_eq!(second.act(2, &members, &[1, 2, 3]), Act::Wait(vec![1]));
    assert!(!second.hear_decision(2, 1, &[0]));
    assert_eq!(second.act(2, &members, &[1, 2, 3]), Act::Done(vec![0]));
}

#[test]
fn a_coordinator_adopts_an_earlier_decision_and_repeats_it() {
    let members = [0, 1, 2, 3];
    let mut first = Agreement::default();
    assert_eq!(first.act(1, &members, &[1, 2, 3]), Act::Wait(vec![2, 3]));
    assert_eq!(first.hear_here(2), None);
    // Rank 3 accepted what rank 0 decided, passed it on, and will never say that it is here.
    assert!(
        first.hear_decision(1, 0, &[]),
        "rank 2 does not take it from rank 0"
    );
    assert_eq!(first.act(1, &members, &[1, 2, 3]), Act::Done(Vec::new()));
    assert_eq!(
        first.hear_here(3),
        Some(Vec::new()),
        "who comes late is told again"
    );
}
