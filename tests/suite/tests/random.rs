//! Eight ranks, mixed types and sizes, random collectives in several communicators at once, from
//! several threads; results are compared element by element with values that are exact in any order.

use unisono::InitOptions;
use unisono_tests::{Count, Rng, random_collectives, threads};

const COLLECTIVES: Count = Count::new(800, 10_000);

fn as_threads(name: &str, ranks: u32, adjust: fn(&mut InitOptions)) {
    let seed = Rng::seed();
    println!("soak: {name}: {ranks} ranks as threads, {COLLECTIVES} collectives, seed {seed}");
    threads(ranks, adjust, move |world| {
        random_collectives(world, COLLECTIVES.get(), seed);
    });
}

#[test]
fn eight_ranks_as_threads() {
    as_threads("shared memory", 8, |_| {});
}

#[test]
fn six_ranks_as_threads_by_their_streams_alone() {
    // Small calls too, which the calling thread would run by itself.
    as_threads("streams alone", 6, |options| options.direct = false);
}

#[test]
fn four_ranks_as_threads_over_tcp() {
    as_threads("tcp", 4, |options| {
        options.without_links = vec!["shm".to_owned()]
    });
}

#[test]
fn five_ranks_as_threads_with_tiny_slots() {
    // Many pieces for every message, and channels that are always full.
    as_threads("two slots of 4 KiB", 5, |options| {
        options.memory.slot = Some(4096);
        options.memory.slots = 2;
    });
}
