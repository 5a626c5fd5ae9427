//! Ranks that read each other's memory.

use super::*;

/// Ranks on two cores that share memory, and read each other's.
fn readable(ranks: u32) -> Fabric {
    with_own_core(ranks, 6_000_000_000)
}

/// The same, where those of one core read so many bytes a second of each other.
fn with_own_core(ranks: u32, of_own_core: u64) -> Fabric {
    shared_memory(ranks, 2).with_reads(Ok(Reads {
        call_ps: 1_000_000,
        rate: Rate::bytes_per_second(6_000_000_000),
        copied_from_memory: Rate::bytes_per_second(9_000_000_000),
        alone: Uncached {
            held: 48 * MIB,
            rate: Rate::UNKNOWN,
        },
        of_own_core: Rate::bytes_per_second(of_own_core),
        from_one: Rate::bytes_per_second(5_000_000_000),
        from_memory: Rate::bytes_per_second(6_000_000_000),
        added: Rate::bytes_per_second(8_000_000_000),
        summed: Rate::bytes_per_second(13_000_000_000),
        from_cache: Rate::bytes_per_second(1_000_000_000),
    }))
}

#[test]
fn sums_are_read_where_no_cache_holds_all_inputs() {
    let chosen = |op, ranks, bytes| {
        let reads = Reads {
            rate: Rate::bytes_per_second(7_000_000_000),
            from_memory: Rate::bytes_per_second(7_000_000_000),
            added: Rate::bytes_per_second(20_000_000_000),
            ..readable(ranks).reads().unwrap()
        };
        let fabric = shared_memory(ranks, 2).with_reads(Ok(reads));
        let got = select(&request(op, bytes), &fabric, &Overrides::NONE).unwrap();
        (got.winner().plan, got.winner().pieces)
    };
    let read = Plan::Flat(Algorithm::MeshRead);
    // In pieces that a core's cache holds, each in one read of each peer.
    assert_eq!(chosen(Op::ReduceScatter, 8, 64 * MIB), (read, 64));
    assert_ne!(chosen(Op::ReduceScatter, 8, MIB / 8).0, read);
    // All read the sums of an all_reduce from memory: another 28 of 56 MiB at 6 GB/s.
    let reduced = |bytes| time(Algorithm::MeshRead, Op::AllReduce, bytes, 1, &readable(2));
    let stalled = u128::from(28 * MIB) * 1_000 / 6;
    assert!(reduced(64 * MIB) > 8 * reduced(8 * MIB) + 9 * stalled / 10);
    // Each brings its own part from there too, unless caches hold it.
    let took = |summed, bytes| {
        let reads = Reads {
            summed: Rate::bytes_per_second(summed),
            ..readable(2).reads().unwrap()
        };
        let fabric = shared_memory(2, 2).with_reads(Ok(reads));
        time(Algorithm::MeshRead, Op::ReduceScatter, bytes, 1, &fabric)
    };
    let longer = |bytes| took(10_000_000_000, bytes) - took(20_000_000_000, bytes);
    assert_eq!(longer(8 * MIB), 0);
    assert_near(longer(64 * MIB), u128::from(28 * MIB) * 50);
    // More ranks have more inputs, which fill the caches sooner.
    let stalls = |ranks, bytes| {
        let mesh =
            |fabric: &Fabric| time(Algorithm::MeshOneShot, Op::ReduceScatter, bytes, 1, fabric);
        mesh(&readable(ranks)) - mesh(&shared_memory(ranks, 2))
    };
    assert_eq!((stalls(2, 8 * MIB), stalls(8, 2 * MIB)), (0, 0));
    assert!(stalls(2, 9 * MIB) > 0 && stalls(8, 3 * MIB) > 0);
}

#[test]
fn a_broadcast_is_read_where_ranks_share_cores() {
    let broadcast = Op::Broadcast { root: 0 };
    let fabric = readable;
    let took = |ranks, bytes| time(Algorithm::MeshRead, broadcast, bytes, 1, &fabric(ranks));
    // The root copies meanwhile, which costs the others nothing: only the slower of the two is seen.
    let bytes = |bytes: u64| u128::from(bytes) * 200;
    assert_near(took(2, 8 * MIB) - took(2, MIB + 1), bytes(7 * MIB - 1));
    assert_near(took(8, 2 * MIB) - took(8, MIB + 1), 4 * bytes(MIB - 1));
    // Where no cache holds it, several bring it from memory.
    assert_near(took(2, 17 * MIB) - took(2, 8 * MIB), 2 * bytes(9 * MIB));
    // What lies in the first cache of the root's core comes slowly, however much it is in all.
    assert_near(took(2, 64 << 10) - took(2, 32 << 10), (32 << 10) * 1000);
    let cached = u128::from(64_u64 << 10) * 800;
    assert!(took(2, MIB) > bytes(MIB) + cached && took(2, MIB) < bytes(MIB) + cached + 10 * US);
    let chosen = |ranks, bytes| {
        let got = select(&request(broadcast, bytes), &fabric(ranks), &Overrides::NONE);
        got.unwrap().winner().plan
    };
    assert_eq!(chosen(8, 2 * MIB), Plan::Flat(Algorithm::MeshRead));
    assert_ne!(chosen(2, 16 * MIB), Plan::Flat(Algorithm::MeshRead));
    assert_ne!(chosen(8, 4096), Plan::Flat(Algorithm::MeshRead));
}

#[test]
fn what_several_read_passes_slots_where_no_cache_holds_it() {
    let chosen = |op, bytes| {
        let got = select(&request(op, bytes), &readable(2), &Overrides::NONE);
        got.unwrap().winner().plan
    };
    let read = Plan::Flat(Algorithm::MeshRead);
    for op in [Op::AllGather, Op::AllToAll] {
        assert_eq!(chosen(op, 8 * MIB), read, "{op}");
    }
    assert_ne!(chosen(Op::AllGather, 64 * MIB), read);
    assert_eq!(chosen(Op::AllToAll, 64 * MIB), read, "one alone reads it");
}

#[test]
fn a_core_has_what_another_of_its_ranks_has_read_and_of_an_all_to_all_nothing() {
    let took = |op, of_own_core| {
        let fabric = with_own_core(8, of_own_core);
        time(Algorithm::MeshRead, op, 4 * MIB, 1, &fabric)
    };
    let fast = |op| took(op, 60_000_000_000) < took(op, 6_000_000_000);
    assert!(fast(Op::AllGather) && !fast(Op::AllToAll));
}

/// Reads of cores far from each other, of which those of one core are much faster.
#[test]
fn a_long_all_to_all_goes_by_pairs_where_ranks_share_cores_that_are_far_apart() {
    let reads = Reads {
        rate: Rate::bytes_per_second(3_500_000_000),
        ..with_own_core(8, 10_000_000_000).reads().unwrap()
    };
    let chosen = |ranks, bytes| {
        let fabric = shared_memory(ranks, 2).with_reads(Ok(reads));
        let got = select(&request(Op::AllToAll, bytes), &fabric, &Overrides::NONE);
        got.unwrap().winner().plan
    };
    assert_eq!(chosen(8, 64 * MIB), Plan::Flat(Algorithm::Pairwise));
    assert_eq!(chosen(8, MIB), Plan::Flat(Algorithm::MeshOneShot));
    assert_eq!(chosen(4, 64 * MIB), Plan::Flat(Algorithm::MeshOneShot));
}

/// What a peer has just written and would write again is fetched back and forth, until it is too long for the caches.
#[test]
fn what_is_handed_on_is_read_when_it_has_left_the_caches() {
    let took = |bytes, hands_on| {
        let fabric = readable(2).that_hands_lines_on(hands_on);
        time(Algorithm::MeshRead, Op::AllGather, bytes, 1, &fabric)
    };
    assert!(took(2 * MIB, true) * 10 > took(2 * MIB, false) * 12);
    assert_eq!(took(4 * MIB, true), took(4 * MIB, false));
}

/// What nobody else reads is read as long as caches hold all ranks' together, and passes slots where that costs more than it
/// saves.
#[test]
fn an_all_to_all_that_no_cache_holds_passes_slots_where_reads_cost_more_there() {
    let fabric = |ranks, rate| {
        let reads = Reads {
            alone: Uncached {
                held: 48 * MIB,
                rate,
            },
            ..readable(ranks).reads().unwrap()
        };
        shared_memory(ranks, 2).with_reads(Ok(reads))
    };
    let slow = Rate::bytes_per_second(5_000_000_000);
    let took = |bytes, rate| {
        let fabric = fabric(2, rate);
        time(Algorithm::MeshRead, Op::AllToAll, bytes, 1, &fabric)
    };
    // Of 64 MiB of each of two ranks 40 are held by none, of which 20 are another's: at 5 GB/s 200 ps a byte.
    let longer = |bytes| took(bytes, slow) - took(bytes, Rate::UNKNOWN);
    assert_eq!(longer(24 * MIB), 0);
    assert_near(longer(64 * MIB), u128::from(20 * MIB) * 200);
    let chosen = |rate| {
        let got = select(
            &request(Op::AllToAll, 64 * MIB),
            &fabric(2, rate),
            &Overrides::NONE,
        );
        got.unwrap().winner().plan
    };
    assert_eq!(chosen(Rate::UNKNOWN), Plan::Flat(Algorithm::MeshRead));
    assert_eq!(chosen(slow), Plan::Flat(Algorithm::MeshOneShot));
}
