//! Agreements simulated with deaths at every point and messages in any order.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A message under way from one rank to another.
#[derive(Clone, Debug)]
enum Mail {
    Here {
        from: u32,
        to: u32,
    },
    Question {
        from: u32,
        to: u32,
    },
    Decision {
        from: u32,
        to: u32,
        excluded: Vec<u32>,
    },
    /// Passed on by everyone who sees it for the first time.
    Flood {
        from: u32,
        to: u32,
        origin: u32,
        excluded: Vec<u32>,
    },
}

impl Mail {
    fn from(&self) -> u32 {
        match *self {
            Mail::Here { from, .. } | Mail::Question { from, .. } => from,
            Mail::Decision { from, .. } | Mail::Flood { from, .. } => from,
        }
    }
}

/// One rank that lives.
#[derive(Default)]
struct Rank {
    agreement: Agreement,
    known_dead: BTreeSet<u32>,
    seen: BTreeSet<u32>,
}

/// Ranks that live and die, and what is under way between them.
struct World {
    members: Vec<u32>,
    ranks: BTreeMap<u32, Rank>,
    dead: BTreeSet<u32>,
    mail: Vec<Mail>,
    results: BTreeMap<u32, Vec<u32>>,
}

impl World {
    fn new(size: u32) -> World {
        let members: Vec<u32> = (0..size).collect();
        let ranks = members
            .iter()
            .map(|&rank| (rank, Rank::default()))
            .collect();
        World {
            members,
            ranks,
            dead: BTreeSet::new(),
            mail: Vec::new(),
            results: BTreeMap::new(),
        }
    }

    /// `reach`: dies after so many messages of this step have left.
    fn act(&mut self, rank: u32, reach: Option<usize>) {
        let Some(one) = self.ranks.get_mut(&rank) else {
            return;
        };
        let alive: Vec<u32> = self
            .members
            .iter()
            .copied()
            .filter(|r| !one.known_dead.contains(r))
            .collect();
        let mail: Vec<Mail> = match one.agreement.act(rank, &self.members, &alive) {
            Act::Follow(to) => vec![Mail::Here { from: rank, to }],
            Act::Ask(ranks) => ranks
                .into_iter()
                .map(|to| Mail::Question { from: rank, to })
                .collect(),
            Act::Decide(excluded) => {
                one.seen.insert(rank);
                self.results.insert(rank, excluded.clone());
                self.flood(rank, rank, &excluded)
            }
            Act::Done(excluded) => {
                let earlier = self.results.insert(rank, excluded.clone());
                assert!(
                    earlier.is_none_or(|earlier| earlier == excluded),
                    "rank {rank} changed its mind"
                );
                Vec::new()
            }
            Act::Wait(_) => Vec::new(),
        };
        self.mail
            .extend(mail.into_iter().take(reach.unwrap_or(usize::MAX)));
        if reach.is_some() {
            self.kill(rank, false);
        }
    }

    fn flood(&self, from: u32, origin: u32, excluded: &[u32]) -> Vec<Mail> {
        let others = self
            .members
            .iter()
            .copied()
            .filter(|to| *to != from && *to != origin);
        others
            .map(|to| Mail::Flood {
                from,
                to,
                origin,
                excluded: excluded.to_vec(),
            })
            .collect()
    }

    /// `lose`: what it sent and has not arrived is lost with it.
    fn kill(&mut self, rank: u32, lose: bool) {
        self.dead.insert(rank);
        self.ranks.remove(&rank);
        self.results.remove(&rank);
        if lose {
            self.mail.retain(|mail| mail.from() != rank);
        }
    }

    fn deliver(&mut self, index: usize) {
        match self.mail.swap_remove(index) {
            Mail::Here { from, to } => {
                let told = self
                    .ranks
                    .get_mut(&to)
                    .and_then(|rank| rank.agreement.hear_here(from));
                self.mail.extend(told.map(|excluded| Mail::Decision {
                    from: to,
                    to: from,
                    excluded,
                }));
            }
            Mail::Question { from, to } => {
                let told = self
                    .ranks
                    .get_mut(&to)
                    .and_then(|rank| rank.agreement.hear_question(from));
                self.mail.extend(told.map(|excluded| Mail::Decision {
                    from: to,
                    to: from,
                    excluded,
                }));
            }
            Mail::Decision { from, to, excluded } => self.decided(to, from, &excluded),
            Mail::Flood {
                from: _,
                to,
                origin,
                excluded,
            } => {
                if self
                    .ranks
                    .get_mut(&to)
                    .is_some_and(|rank| rank.seen.insert(origin))
                {
                    self.mail.extend(self.flood(to, origin, &excluded));
                    self.decided(to, origin, &excluded);
                }
            }
        }
    }

    fn decided(&mut self, at: u32, origin: u32, excluded: &[u32]) {
        let Some(rank) = self.ranks.get_mut(&at) else {
            return;
        };
        let told = rank.agreement.hear_decision(at, origin, excluded);
        self.mail.extend(told.into_iter().map(|to| Mail::Decision {
            from: at,
            to,
            excluded: excluded.to_vec(),
        }));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn survivors_agree(
        size in 1..6u32,
        steps in proptest::collection::vec((0..7u8, any::<u16>(), any::<u16>()), 0..200),
    ) {
        let mut world = World::new(size);
        for (kind, a, b) in steps {
            let rank = u32::from(a) % size;
            match kind {
                0 | 1 => world.act(rank, None),
                2..=4 if !world.mail.is_empty() => world.deliver(usize::from(a) % world.mail.len()),
                5 => {
                    // A rank learns of a death.
                    let dead: Vec<u32> = world.dead.iter().copied().collect();
                    if let (Some(one), false) = (world.ranks.get_mut(&rank), dead.is_empty()) {
                        one.known_dead.insert(dead[usize::from(b) % dead.len()]);
                    }
                }
                6 if world.ranks.len() > 1 => match b % 24 {
                    0 => world.kill(rank, true),
                    1 => world.kill(rank, false),
                    // It dies while it tells the others.
                    2 | 3 => world.act(rank, Some(usize::from(b / 24) % size as usize)),
                    _ => {}
                },
                _ => {}
            }
        }
        // From now on nobody dies; everyone learns of the deaths, all mail arrives, and the calls return.
        let dead = world.dead.clone();
        for round in 0..100 {
            let ranks: Vec<u32> = world.ranks.keys().copied().collect();
            for rank in ranks {
                world.ranks.get_mut(&rank).expect("it lives").known_dead.extend(&dead);
                world.act(rank, None);
            }
            for _ in 0..world.mail.len() {
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
fn a_decision_of_a_leader_that_was_given_up_is_not_accepted_from_it() {
    let members = [0, 1, 2, 3];
    let mut second = Agreement::default();
    assert_eq!(second.act(2, &members, &members), Act::Follow(0));
    assert_eq!(second.act(2, &members, &[1, 2, 3]), Act::Follow(1));
    // Rank 0 decided with its last breath. Rank 1, told that rank 2 is here, may have decided otherwise by now.
    assert!(second.hear_decision(2, 0, &[]).is_empty());
    assert_eq!(second.act(2, &members, &[1, 2, 3]), Act::Wait(vec![1]));
    second.hear_decision(2, 1, &[0]);
    assert_eq!(second.act(2, &members, &[1, 2, 3]), Act::Done(vec![0]));
}

#[test]
fn a_leader_asks_adopts_an_earlier_decision_and_tells_its_followers() {
    let members = [0, 1, 2, 3];
    let mut first = Agreement::default();
    assert_eq!(first.act(1, &members, &[1, 2, 3]), Act::Ask(vec![2, 3]));
    assert_eq!(first.act(1, &members, &[1, 2, 3]), Act::Wait(vec![2, 3]));
    assert_eq!(first.hear_here(2), None);
    // Rank 3 has accepted what rank 0 decided and will never say that it is here; but it was asked.
    assert_eq!(first.hear_decision(1, 3, &[]), [2]);
    assert_eq!(first.act(1, &members, &[1, 2, 3]), Act::Done(Vec::new()));
    assert_eq!(
        first.hear_question(3),
        Some(Vec::new()),
        "who comes late is told, too"
    );
}

#[test]
fn whoever_was_asked_tells_what_it_learns_later() {
    let mut third = Agreement::default();
    assert_eq!(third.hear_question(1), None);
    // What rank 0 decided arrives only now.
    assert_eq!(third.hear_decision(3, 0, &[]), [1]);
}
