//! Every plan, as ranks execute it, over both kinds of links: right, and not by chance.

use std::ops::Range;

use unisono_recorded::{Case, Mutation, Program, Transport, drops, record, replay, swaps};
use unisono_tests::{Count, Rng};

/// Rank counts; the full ones are what a soak runs.
const RANKS: [Count; 2] = [Count::new(5, 9), Count::new(3, 9)];
/// Mutations of each kind that are tried on each recorded plan: all of them, or so many at random.
const MUTATIONS: Count = Count::new(100, 400);

fn ranks(transport: Transport) -> Range<u32> {
    2..RANKS[transport as usize].get() as u32 + 1
}

/// What was looked at.
#[derive(Default)]
struct Tally {
    cases: u64,
    commands: u64,
    drops: u64,
    swaps: u64,
}

fn prove(transport: Transport) {
    let mut rng = Rng::new(Rng::seed());
    let mut tally = Tally::default();
    for ranks in ranks(transport) {
        for (case, log) in record(ranks, transport) {
            let program = Program::new(case, &log).unwrap_or_else(|why| panic!("{case}: {why}"));
            assert!(!program.is_empty(), "{case} ran no command");
            replay(&program, None).unwrap_or_else(|fault| panic!("{case}: {fault}"));
            tally.cases += 1;
            tally.commands += program.len() as u64;
            tally.drops += refused(case, &program, drops(&program).collect(), &mut rng);
            tally.swaps += refused(case, &program, swaps(&program).collect(), &mut rng);
        }
    }
    println!(
        "soak: {transport:?}: {} plans on {:?} ranks, {} commands right; {} dropped and {} swapped \
         signals refused",
        tally.cases,
        ranks(transport),
        tally.commands,
        tally.drops,
        tally.swaps
    );
    assert!(tally.swaps > 0 && tally.drops > 0);
}

/// Tries some or all of these mutations; each must be found.
fn refused(case: Case, program: &Program, mut all: Vec<Mutation>, rng: &mut Rng) -> u64 {
    while all.len() as u64 > MUTATIONS.get() {
        all.swap_remove(rng.below(all.len() as u64) as usize);
    }
    for mutation in &all {
        assert!(
            replay(program, Some(*mutation)).is_err(),
            "{case}: nothing is wrong with {mutation:?}"
        );
    }
    all.len() as u64
}

#[test]
fn what_ranks_do_over_shared_memory() {
    prove(Transport::Memory);
}

#[test]
fn what_ranks_do_over_tcp() {
    prove(Transport::Tcp);
}
