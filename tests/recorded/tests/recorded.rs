//! Every plan, as ranks execute it, over both kinds of links: right, and not by chance.

use std::time::Instant;

use unisono::plan::template::Family;
use unisono_recorded::{Case, Mutation, Program, Transport, copied, drops, record, replay, swaps};
use unisono_tests::{Count, Rng, soaking};

/// The most ranks; the full ones are what a soak runs.
const RANKS: [Count; 3] = [Count::new(5, 9), Count::new(3, 9), Count::new(4, 9)];
/// Mutations of each kind that are tried on each recorded plan: all of them, or so many at random.
const MUTATIONS: Count = Count::new(100, 200);
/// Up to so many ranks a soak tries all.
const ALL: u32 = 5;

fn prove(transport: Transport) {
    let mut rng = Rng::new(Rng::seed());
    for ranks in 2..=RANKS[transport as usize].get() as u32 {
        let since = Instant::now();
        let limit = match soaking() && ranks <= ALL {
            true => u64::MAX,
            false => MUTATIONS.get(),
        };
        let mut by_nodes = 0;
        let (mut plans, mut commands, mut dropped, mut swapped) = (0, 0, 0, 0);
        for (case, log) in record(ranks, transport) {
            let program = Program::new(case, &log).unwrap_or_else(|why| panic!("{case}: {why}"));
            assert!(!program.is_empty(), "{case} ran no command");
            replay(&program, None).unwrap_or_else(|fault| panic!("{case}: {fault}"));
            plans += 1;
            by_nodes += usize::from(case.algorithm == Family::Hierarchical);
            commands += program.len();
            let mut refused =
                |all: Vec<Mutation>| refused(case, &program, some(all, limit, &mut rng));
            dropped += refused(drops(&program).collect());
            swapped += refused(swaps(&program).collect());
        }
        let nodes = transport == Transport::Nodes && ranks > 2;
        assert_eq!(
            by_nodes > 0,
            nodes,
            "{by_nodes} plans by nodes on {ranks} ranks"
        );
        println!(
            "soak: {transport:?}, {ranks} ranks: {plans} plans ({by_nodes} by nodes), {commands} commands right; \
             {dropped} signals, dones and waits dropped and {swapped} signals swapped, all refused; \
             in {:.1?}",
            since.elapsed()
        );
        assert!(plans > 30 && dropped > plans && swapped > plans);
    }
}

/// At most so many of a list, by chance.
fn some(mut all: Vec<Mutation>, limit: u64, rng: &mut Rng) -> Vec<Mutation> {
    while all.len() as u64 > limit {
        all.swap_remove(rng.below(all.len() as u64) as usize);
    }
    all
}

/// How many mutations were tried, each of which must be found.
fn refused(case: Case, program: &Program, all: Vec<Mutation>) -> usize {
    for mutation in &all {
        assert!(
            replay(program, Some(*mutation)).is_err(),
            "{case}: nothing is wrong with {mutation:?}"
        );
    }
    all.len()
}

#[test]
fn what_ranks_do_over_shared_memory() {
    prove(Transport::Memory);
}

#[test]
fn what_ranks_do_over_tcp() {
    prove(Transport::Tcp);
}

#[test]
fn what_ranks_do_on_two_nodes() {
    prove(Transport::Nodes);
}

#[test]
fn results_go_past_the_caches_where_these_do_not_hold_them() {
    const RANKS: u32 = 4;
    for (bytes, past) in [(2 << 20, false), (8 << 20, true)] {
        let copied = copied(RANKS, bytes);
        let all = u64::from(RANKS) * bytes as u64;
        assert_eq!(
            copied.all, all,
            "every byte of every output is copied to it once"
        );
        assert_eq!(copied.past, if past { all } else { 0 }, "{bytes} bytes");
    }
}
