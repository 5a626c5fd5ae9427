//! What holds on every network, small ones drawn at random and checked against all cuts there are.

use proptest::prelude::*;
use unisono_bound::{BoundError, Certificate, Limit, Op, bound};
use unisono_network::{Builder, Network, Rational};

const GB: u64 = 1_000_000_000;

/// Directed edges of up to six vertices, of which the first few are ranks; all on one ring, so that
/// everybody reaches everybody.
#[derive(Clone, Debug)]
struct Small {
    ranks: u32,
    switches: u32,
    edges: Vec<(u32, u32, u64)>,
}

fn small() -> impl Strategy<Value = Small> {
    (2..5u32, 0..3u32).prop_flat_map(|(ranks, switches)| {
        let vertices = ranks + switches;
        let ring = prop::collection::vec(1..30u64, vertices as usize);
        let more = prop::collection::vec((0..vertices, 0..vertices, 1..30u64), 0..10);
        (ring, more).prop_map(move |(ring, more)| {
            let around = (0..)
                .zip(ring)
                .map(|(vertex, wide)| (vertex, (vertex + 1) % vertices, wide));
            let edges = around
                .chain(more)
                .filter(|(from, to, _)| from != to)
                .collect();
            Small {
                ranks,
                switches,
                edges,
            }
        })
    })
}

impl Small {
    /// The network, each capacity so many times, with ranks and switches renumbered.
    fn network(&self, times: u64, name: impl Fn(u32) -> u32) -> Network {
        let mut builder = Builder::new(self.ranks);
        for _ in 0..self.switches {
            builder.switch(false);
        }
        for &(from, to, wide) in &self.edges {
            builder.edge(name(from), name(to), wide * times, 7);
        }
        builder.build().unwrap()
    }

    fn plain(&self) -> Network {
        self.network(1, |vertex| vertex)
    }

    /// For each set of vertices: what enters it, and how many ranks it holds.
    fn sets(&self) -> Vec<(u32, u64, u32)> {
        let vertices = self.ranks + self.switches;
        let inside = |set: u32, vertex: u32| set >> vertex & 1 == 1;
        let entering = |set: u32| {
            let edges = self
                .edges
                .iter()
                .filter(|(from, to, _)| !inside(set, *from) && inside(set, *to));
            edges.map(|edge| edge.2).sum()
        };
        let count = |set: u32| (0..self.ranks).filter(|rank| inside(set, *rank)).count() as u32;
        (0..1 << vertices)
            .map(|set| (set, entering(set), count(set)))
            .collect()
    }

    /// The least of what enters a set by what has to, over all sets.
    fn least(&self, must: impl Fn(u32, u32) -> Option<u32>) -> Rational {
        let sets = self.sets().into_iter();
        let rates = sets.filter_map(|(set, entering, count)| {
            let shares = must(set, count).filter(|shares| *shares > 0)?;
            Some(Rational::new(entering.into(), shares.into()))
        });
        rates.min().unwrap()
    }
}

fn exact(network: &Network, op: Op) -> Rational {
    match bound(network, op).unwrap().limit {
        Limit::Exact(value) => value,
        other => panic!("{op:?}: {other:?}"),
    }
}

const ALL: [Op; 9] = [
    Op::AllGather,
    Op::ReduceScatter,
    Op::AllReduce { in_network: false },
    Op::Broadcast { root: 1 },
    Op::Reduce { root: 1 },
    Op::Scatter { root: 1 },
    Op::Gather { root: 1 },
    Op::AllToAll,
    Op::SendRecv { from: 0, to: 1 },
];

proptest! {
    #[test]
    fn cuts_one_by_one_say_the_same(small in small()) {
        let network = small.plain();
        let ranks = small.ranks;
        let whole = Rational::from_integer(ranks.into());
        let holds = |set: u32, rank: u32| set >> rank & 1 == 1;
        // Into a set with a rank must go the shares of all ranks outside.
        let gathered = small.least(|_, count| (count > 0).then_some(ranks - count));
        prop_assert_eq!(exact(&network, Op::AllGather), gathered * whole);
        let sent = small.least(|set, count| (count > 0 && !holds(set, 0)).then_some(1));
        prop_assert_eq!(exact(&network, Op::Broadcast { root: 0 }), sent);
        let collected = small.least(|set, count| holds(set, 0).then_some(ranks - count));
        prop_assert_eq!(exact(&network, Op::Gather { root: 0 }), collected * whole);
        let scattered = small.least(|set, count| (!holds(set, 0)).then_some(count));
        prop_assert_eq!(exact(&network, Op::Scatter { root: 0 }), scattered * whole);
        let pair = small.least(|set, _| (holds(set, 1) && !holds(set, 0)).then_some(1));
        prop_assert_eq!(exact(&network, Op::SendRecv { from: 0, to: 1 }), pair);
    }

    #[test]
    fn turned_around_an_op_is_its_mirror(small in small()) {
        let network = small.plain();
        for op in ALL {
            let there = bound(&network, op).unwrap();
            let back = bound(&network.reversed(), op.mirrored()).unwrap();
            prop_assert_eq!(there.limit, back.limit, "{:?}", op);
            prop_assert_eq!(there.latency_ns, back.latency_ns);
        }
    }

    #[test]
    fn wider_edges_scale_every_bound_and_other_numbers_change_none(small in small(), times in 1..50u64) {
        let network = small.plain();
        let wider = small.network(times, |vertex| vertex);
        let ranks = small.ranks;
        // Ranks the other way around; roots go with them.
        let turned = small.network(1, |vertex| if vertex < ranks { ranks - 1 - vertex } else { vertex });
        let moved = |op: Op| match op {
            Op::Broadcast { root } => Op::Broadcast { root: ranks - 1 - root },
            Op::Reduce { root } => Op::Reduce { root: ranks - 1 - root },
            Op::Scatter { root } => Op::Scatter { root: ranks - 1 - root },
            Op::Gather { root } => Op::Gather { root: ranks - 1 - root },
            Op::SendRecv { from, to } => Op::SendRecv { from: ranks - 1 - from, to: ranks - 1 - to },
            other => other,
        };
        for op in ALL {
            let value = exact(&network, op);
            prop_assert_eq!(exact(&wider, op), value * Rational::from_integer(times.into()), "{:?}", op);
            prop_assert_eq!(exact(&turned, moved(op)), value, "{:?}", op);
        }
    }

    #[test]
    fn no_bound_is_below_what_simple_plans_reach(small in small()) {
        let network = small.plain();
        let ranks = Rational::from_integer(small.ranks.into());
        let direct = Rational::from_integer(1) / ranks;
        let gather = exact(&network, Op::AllGather);
        let scatter = exact(&network, Op::ReduceScatter);
        let reduce = exact(&network, Op::AllReduce { in_network: false });
        // Everything to everybody is one way to do what less would do.
        let collected = exact(&network, Op::Gather { root: 0 });
        prop_assert!(collected >= gather);
        // Blocks for each pair over one ring through all vertices, at its narrowest edge.
        let narrowest = small.edges[..(small.ranks + small.switches) as usize].iter().map(|edge| edge.2).min();
        let narrowest = Rational::from_integer(narrowest.unwrap().into());
        let one = Rational::from_integer(1);
        let hops = Rational::from_integer(2) * (ranks - one);
        prop_assert!(gather >= narrowest * ranks / (ranks - one));
        prop_assert!(scatter >= narrowest * ranks / (ranks - one));
        prop_assert!(reduce >= narrowest * ranks / hops);
        // Each pair's block passes fewer edges of the ring than there are vertices.
        prop_assert!(exact(&network, Op::AllToAll) >= narrowest * direct / ranks);
        // all_reduce gives what reduce and broadcast give, so it is no faster than either.
        for root in 0..small.ranks {
            let [out, back] = [Op::Broadcast { root }, Op::Reduce { root }].map(|op| exact(&network, op));
            prop_assert!(reduce <= out.min(back));
        }
    }
}

#[test]
fn one_rank_needs_nothing() {
    let network = Builder::new(1).build().unwrap();
    for op in [
        Op::AllGather,
        Op::AllReduce { in_network: true },
        Op::AllToAll,
        Op::Broadcast { root: 0 },
    ] {
        let found = bound(&network, op).unwrap();
        assert_eq!((found.limit, found.latency_ns), (Limit::Unlimited, 0));
        assert_eq!(found.limit.high(), None);
        assert_eq!(found.seconds(1 << 30), 0.0);
        assert_eq!(found.certificate.to_string(), "nothing needs to move");
    }
}

#[test]
fn what_cannot_flow_is_an_error_that_names_both_ends() {
    let mut builder = Builder::new(3);
    builder.duplex(0, 1, GB, 0);
    builder.edge(1, 2, GB, 0);
    let network = builder.build().unwrap();
    for op in [
        Op::AllGather,
        Op::AllReduce { in_network: false },
        Op::AllToAll,
        Op::Gather { root: 0 },
    ] {
        let error = bound(&network, op).unwrap_err();
        assert_eq!(error, BoundError::Disconnected { from: 2, to: 0 }, "{op:?}");
    }
    assert!(
        bound(&network, Op::Broadcast { root: 0 })
            .unwrap()
            .limit
            .is_exact()
    );
    let error = bound(&network, Op::Broadcast { root: 3 }).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no rank 3: the network has 3 ranks, numbered from 0"
    );
}

#[test]
fn short_messages_are_bound_by_the_longest_shortest_path() {
    // A line of four, 1 µs a hop, and a shorter way back from the end.
    let mut builder = Builder::new(4);
    for rank in 0..3 {
        builder.duplex(rank, rank + 1, 10 * GB, 1000);
    }
    builder.edge(3, 0, GB, 500);
    let network = builder.build().unwrap();
    let latency = |op| bound(&network, op).unwrap().latency_ns;
    assert_eq!(latency(Op::AllGather), 3000);
    assert_eq!(latency(Op::Broadcast { root: 3 }), 1500);
    assert_eq!(latency(Op::Reduce { root: 3 }), 3000);
    assert_eq!(latency(Op::SendRecv { from: 2, to: 0 }), 1500);
    let gather = bound(&network, Op::AllGather).unwrap();
    assert_eq!(gather.seconds(8), 3e-6);
    assert!((gather.algbw(8) - 8.0 / 3e-6).abs() < 1.0);
    let long = 1u64 << 40;
    let high = unisono_network::to_f64(gather.limit.high().unwrap());
    assert!((gather.algbw(long) / high - 1.0).abs() < 1e-9);
}

#[test]
fn shared_capacities_count_where_they_are_narrower_than_their_edges() {
    // A mesh of four, each rank's edges behind one card that sends and one that receives.
    let mesh = |card: Option<u64>| {
        let mut builder = Builder::new(4);
        let mut out = vec![Vec::new(); 4];
        let mut into = vec![Vec::new(); 4];
        for from in 0..4u32 {
            for to in (0..4).filter(|to| *to != from) {
                let edge = builder.edge(from, to, 10 * GB, 0);
                out[from as usize].push(edge);
                into[to as usize].push(edge);
            }
        }
        if let Some(wide) = card {
            out.iter().for_each(|edges| {
                builder.group(wide * GB, edges);
            });
        }
        builder.build().unwrap()
    };
    let high = |card, op| exact(&mesh(card), op) / Rational::from_integer(GB.into());
    let whole = |value: i128| Rational::from_integer(value);
    assert_eq!(high(None, Op::AllGather), whole(40));
    assert_eq!(high(Some(30), Op::AllGather), whole(40));
    // 15 GB/s for three ranks' blocks: 5 GB/s a block, four of them.
    assert_eq!(high(Some(15), Op::AllToAll), whole(20));
    assert_eq!(high(Some(15), Op::Gather { root: 0 }), whole(40));
    // Each block is sent three times, and a card does not copy: twelve blocks over four cards of 15.
    assert_eq!(high(Some(15), Op::AllGather), whole(20));
    // The root's card sends everything once; others may pass it on.
    let limit = bound(&mesh(Some(15)), Op::Broadcast { root: 0 })
        .unwrap()
        .limit;
    assert_eq!(limit.high(), Some(whole(15 * i128::from(GB))));
}

#[test]
fn a_bus_that_both_ways_share_gives_an_interval() {
    let mut builder = Builder::new(2);
    let edges = builder.duplex(0, 1, 10 * GB, 0);
    builder.group(10 * GB, &edges);
    let network = builder.build().unwrap();
    let limit = bound(&network, Op::AllGather).unwrap().limit;
    // Each way has half of the bus for sure, and never more than all of it.
    let gb = |value: i128| Rational::from_integer(value * i128::from(GB));
    assert_eq!(
        limit,
        Limit::Between {
            low: gb(10),
            high: gb(20)
        }
    );
}

#[test]
fn a_long_line_is_exact_by_its_middle() {
    let mut builder = Builder::new(300);
    for rank in 1..300 {
        builder.duplex(rank - 1, rank, GB + u64::from(rank), 0);
    }
    let network = builder.build().unwrap();
    // Half of the ranks send to the other half over the edge in the middle, the 150th.
    let middle = Rational::from_integer(i128::from(GB) + 150) * Rational::new(300, 150 * 150);
    assert_eq!(exact(&network, Op::AllToAll), middle);
}

#[test]
fn certificates_read_well() {
    let mut builder = Builder::new(4);
    let switch = builder.switch(false);
    for rank in 0..4 {
        builder.duplex(rank, switch, if rank == 2 { 30 * GB } else { 50 * GB }, 0);
    }
    let network = builder.build().unwrap();
    let words = |op| bound(&network, op).unwrap().certificate.to_string();
    assert_eq!(words(Op::AllGather), "rank 2 receives over 30 GB/s");
    assert_eq!(words(Op::ReduceScatter), "rank 2 sends over 30 GB/s");
    let found = bound(&network, Op::AllReduce { in_network: false }).unwrap();
    let Certificate::Partition {
        parts,
        bytes_per_second,
    } = found.certificate
    else {
        panic!("{:?}", found.certificate);
    };
    // W ≤ what enters the parts / 2(k−1), as the certificate says it.
    let rate = Rational::new(bytes_per_second as i128, 2 * (parts.len() as i128 - 1));
    assert_eq!(found.limit, Limit::Exact(rate));
}
