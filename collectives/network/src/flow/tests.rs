use proptest::prelude::*;

use super::*;

#[test]
fn flow_goes_around_and_is_taken_back() {
    // The classic: the short way through the middle must be given up for the two long ones.
    let arcs = [(0, 1, 10u64), (0, 2, 10), (1, 2, 1), (1, 3, 10), (2, 3, 10)];
    let mut flow = Flow::new(4, arcs);
    flow.set_supply(0, Capacity::UNLIMITED);
    assert_eq!(flow.send(3, 7), 7);
    assert_eq!(flow.send(3, 100), 13);
    assert!(flow.reaches(3) && !flow.reaches(0));
    flow.clear();
    assert_eq!(flow.send(3, u64::MAX), 20);
}

#[test]
fn a_supply_at_the_sink_itself_counts_and_is_used_up() {
    let mut flow = Flow::new(2, [(0, 1, 5u128)]);
    flow.set_supply(0, 3);
    flow.set_supply(1, 4);
    assert_eq!(flow.send(1, 100), 7);
    assert_eq!((flow.supply(0), flow.supply(1)), (0, 0));
}

#[test]
fn undo_brings_back_arcs_and_supplies() {
    let mut flow = Flow::new(3, [(0, 1, 5u64), (1, 2, 5), (2, 1, 1)]);
    flow.set_supply(0, 4);
    assert_eq!(flow.send(2, 1), 1);
    flow.mark();
    assert_eq!(flow.send(2, 100), 3);
    flow.set_supply(1, 9);
    assert_eq!(flow.send(2, 100), 1);
    flow.undo();
    assert_eq!((flow.supply(0), flow.supply(1)), (3, 0));
    assert_eq!(flow.send(2, 100), 3);
}

/// Arcs and supplies of a small network.
fn small() -> impl Strategy<Value = (Vec<(u32, u32, u64)>, Vec<u64>)> {
    let arcs = prop::collection::vec((0..6u32, 0..6u32, 0..9u64), 0..20);
    (arcs, prop::collection::vec(0..7u64, 6))
}

/// The smallest cut, of all that there are.
fn smallest_cut(arcs: &[(u32, u32, u64)], supply: &[u64], sink: u32) -> u64 {
    let sides = (0u32..64).filter(|side| side >> sink & 1 == 1);
    let cost = |side: u32| {
        let inside = |vertex: u32| side >> vertex & 1 == 1;
        let crossing = arcs.iter().filter(|arc| !inside(arc.0) && inside(arc.1));
        let entering = (0..6).filter(|vertex| inside(*vertex));
        crossing.map(|arc| arc.2).sum::<u64>()
            + entering.map(|vertex| supply[vertex as usize]).sum::<u64>()
    };
    sides.map(cost).min().unwrap_or(0)
}

proptest! {
    #[test]
    fn the_largest_flow_is_the_smallest_cut((arcs, supply) in small(), sink in 0..6u32) {
        let mut flow = Flow::new(6, arcs.iter().copied());
        for (vertex, amount) in (0..).zip(&supply) {
            flow.set_supply(vertex, *amount);
        }
        let expected = smallest_cut(&arcs, &supply, sink);
        prop_assert_eq!(flow.send(sink, 1000), expected);
        let inside = |vertex: u32| flow.reaches(vertex);
        let crossing = arcs.iter().filter(|arc| !inside(arc.0) && inside(arc.1));
        let entering = (0..6u32).filter(|vertex| inside(*vertex));
        let cut = crossing.map(|arc| arc.2).sum::<u64>()
            + entering.map(|vertex| supply[vertex as usize]).sum::<u64>();
        prop_assert_eq!(cut, expected);
        prop_assert_eq!(flow.sink_side().len(), (0..6).filter(|vertex| inside(*vertex)).count());
    }

    #[test]
    fn sources_may_grow_over_what_flows_already((arcs, supply) in small()) {
        // What was a sink becomes an unlimited source, as the bounds do it.
        let mut kept = Flow::new(6, arcs.iter().copied());
        let mut fresh = supply.clone();
        for (vertex, amount) in (0..).zip(&supply) {
            kept.set_supply(vertex, *amount);
        }
        for sink in 0..6u32 {
            let expected = smallest_cut(&arcs, &fresh, sink);
            let mut again = Flow::new(6, arcs.iter().copied());
            for (vertex, amount) in (0..).zip(&fresh) {
                again.set_supply(vertex, *amount);
            }
            prop_assert_eq!(again.send(sink, 1000), expected.min(1000));
            kept.mark();
            // With unlimited sources inside, all that is asked for arrives; else the same as fresh
            // would give is a lower limit, since earlier sinks kept what they got.
            let got = kept.send(sink, 1000);
            kept.undo();
            prop_assert!(got <= 1000);
            if supply.iter().all(|amount| *amount == 0) {
                prop_assert_eq!(got, expected.min(1000));
            }
            fresh[sink as usize] = 1000;
            kept.set_supply(sink, Capacity::UNLIMITED);
        }
    }
}
