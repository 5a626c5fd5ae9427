//! Plans over the peers' windows.

use super::*;

#[test]
fn windows_win_where_they_are_and_are_refused_where_not() {
    let fabric = shared_memory(4, 4);
    let mut ask = request(Op::AllGather, 64 * MIB);
    let without = select(&ask, &fabric, &Overrides::NONE).unwrap();
    assert!(!without.winner().windowed);
    assert!(without.to_string().contains("not windows of every peer"));
    ask.windows = true;
    let with = select(&ask, &fabric, &Overrides::NONE).unwrap();
    assert!(with.winner().windowed, "{with}");
    assert!(with.winner().predicted() < without.winner().predicted());
}

#[test]
fn windows_lose_while_peers_hold_what_they_wrote_in_their_caches() {
    let fabric = shared_memory(2, 2);
    let choose = |op, bytes, rules: &Overrides| {
        let ask = Request {
            windows: true,
            ..request(op, bytes)
        };
        select(&ask, &fabric, rules).unwrap()
    };
    let chosen = |op, bytes| choose(op, bytes, &Overrides::NONE).winner().windowed;
    let broadcast = Op::Broadcast { root: 0 };
    for op in [Op::AllToAll, broadcast] {
        assert!(!chosen(op, 256 << 10), "{op}");
        assert!(chosen(op, 4 * MIB), "{op}");
    }
    // No step where the cache is full: it holds less and less of what was written first.
    let rules = broadcast_over_windows();
    let took = |bytes| choose(broadcast, bytes, &rules).winner().predicted().0;
    let steps: Vec<u128> = (10..=24).map(|tenths| took(tenths * MIB / 10)).collect();
    for pair in steps.windows(2) {
        assert!(
            pair[1] * 10 < pair[0] * 12 && pair[1] * 10 > pair[0] * 8,
            "{steps:?}"
        );
    }
}

#[test]
fn how_long_they_lose_is_what_the_cores_caches_hold() {
    let ask = Request {
        windows: true,
        ..request(Op::AllToAll, MIB)
    };
    let windowed = |core_cache| {
        let fabric = shared_memory(2, 2).with_core_cache(core_cache);
        let selection = select(&ask, &fabric, &Overrides::NONE).unwrap();
        selection.winner().windowed
    };
    assert!(windowed(512 << 10), "all of it has left the cache");
    assert!(!windowed(2 << 20));
    assert_eq!(windowed(0), windowed(1 << 20), "where nobody knows");
}

#[test]
fn short_calls_do_without_windows_as_those_are_streams() {
    let windowed = |ranks, op, bytes| {
        let ask = Request {
            windows: true,
            ..request(op, bytes)
        };
        let selection = select(&ask, &shared_memory(ranks, 2), &Overrides::NONE).unwrap();
        selection.winner().windowed
    };
    let (broadcast, reduce) = (Op::Broadcast { root: 0 }, Op::Reduce { root: 0 });
    for ranks in [2, 3, 4, 8] {
        for op in [broadcast, reduce, Op::AllReduce, Op::AllGather] {
            assert!(!windowed(ranks, op, 4096), "{op} of {ranks}");
            assert!(windowed(ranks, op, 16 * MIB), "{op} of {ranks}");
        }
    }
}

/// Where cores hand lines on, whoever reads them last must give them back before they are written again.
#[test]
fn what_is_handed_on_is_written_to_windows_and_not_read_there() {
    let fabric = shared_memory(2, 2).that_hands_lines_on(true);
    let windowed = |op, bytes| {
        let ask = Request {
            windows: true,
            ..request(op, bytes)
        };
        let selection = select(&ask, &fabric, &Overrides::NONE).unwrap();
        selection.winner().windowed
    };
    for op in [Op::AllReduce, Op::Reduce { root: 0 }, Op::ReduceScatter] {
        assert!(!windowed(op, 256 << 10), "{op}");
        assert!(windowed(op, 4 * MIB), "{op}");
    }
    assert!(windowed(Op::AllGather, 256 << 10), "each writes its own");
}

#[test]
fn what_caches_hold_is_handed_on_faster_the_shorter_it_is() {
    let (fabric, other) = (
        shared_memory(2, 2).that_hands_lines_on(true),
        shared_memory(2, 2),
    );
    let took = |bytes| time(Algorithm::MeshOneShot, Op::AllGather, bytes, 1, &fabric);
    let plain = |bytes| time(Algorithm::MeshOneShot, Op::AllGather, bytes, 1, &other);
    assert!(took(256 << 10) * 2 < plain(256 << 10));
    assert_eq!(took(2 * MIB), plain(2 * MIB));
    // No step on the way.
    let steps: Vec<u128> = (5..=24).map(|tenths| took(tenths * MIB / 10)).collect();
    for pair in steps.windows(2) {
        assert!(
            pair[1] > pair[0] && pair[1] * 10 < pair[0] * 14,
            "{steps:?}"
        );
    }
}

fn broadcast_over_windows() -> Overrides {
    Overrides {
        rules: vec![Override {
            op: Some(OpKind::Broadcast),
            bytes: 0..=64 * MIB,
            algorithm: Algorithm::MeshOneShot.into(),
            windowed: Some(true),
            put_bytes: None,
        }],
    }
}
