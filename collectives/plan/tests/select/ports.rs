//! Ports that links share.

use super::*;

#[test]
fn a_port_makes_a_mesh_send_one_after_the_other() {
    let link = Link {
        alpha_ps: 0,
        rate: Rate::bytes_per_second(1_000_000_000),
        by_core: false,
        message_ps: 0,
        port: None,
    };
    let speeds = Speeds {
        port: link.rate,
        ..Speeds::default()
    };
    let fabric = Fabric::uniform(5, speeds, link).unwrap();
    let got = time(Algorithm::MeshOneShot, Op::AllGather, 5000, 1, &fabric);
    assert_eq!(got, 4 * US);
}

/// Five ranks on links of 1 GB/s, of which those with the same `port_of` share 1 GB/s.
fn ported(port_of: impl Fn(u32, u32) -> Option<u32>) -> Fabric {
    let rate = Rate::bytes_per_second(1_000_000_000);
    let node = Node {
        cores: 1,
        exit: Rate::UNKNOWN,
    };
    let link = |from, to| Link {
        alpha_ps: 0,
        rate,
        by_core: false,
        message_ps: 0,
        port: port_of(from, to).map(|id| Port { id, rate }),
    };
    Fabric::new(&[0; 5], &[node], Speeds::default(), link).unwrap()
}

#[test]
fn a_device_sends_over_all_its_links_at_once_but_for_those_that_share_a_port() {
    let gather = |fabric: &Fabric, algorithm| time(algorithm, Op::AllGather, 5000, 1, fabric);
    let send = |fabric: &Fabric| time(Algorithm::Direct, Op::Send { to: 1 }, 5000, 1, fabric);
    let own = ported(|_, _| None);
    assert_eq!(gather(&own, Algorithm::MeshOneShot), US);
    assert_eq!(gather(&own, Algorithm::Ring), 4 * US);
    assert_eq!(gather(&own, Algorithm::BidirectionalRing), 2 * US);
    assert_eq!(send(&own), 5 * US);
    // A switch: what leaves a rank for all others leaves by one way.
    let switch = ported(|from, _| Some(from));
    assert_eq!(gather(&switch, Algorithm::MeshOneShot), 4 * US);
    assert_eq!(gather(&switch, Algorithm::Ring), 4 * US);
    assert_eq!(gather(&switch, Algorithm::BidirectionalRing), 4 * US);
    assert_eq!(send(&switch), 5 * US);
    let broadcast = |fabric: &Fabric| {
        let op = Op::Broadcast { root: 0 };
        time(Algorithm::MeshOneShot, op, 5000, 1, fabric)
    };
    assert_eq!((broadcast(&own), broadcast(&switch)), (5 * US, 20 * US));
    // One bus for all.
    let bus = ported(|_, _| Some(0));
    assert_eq!(gather(&bus, Algorithm::MeshOneShot), 20 * US);
    assert_eq!(gather(&bus, Algorithm::Ring), 20 * US);
    // Rank 4's links alone.
    let one = ported(|from, _| (from == 4).then_some(7));
    assert_eq!(gather(&one, Algorithm::MeshOneShot), 4 * US);
    assert_eq!(gather(&one, Algorithm::Ring), 4 * US);
}

#[test]
fn ports_are_part_of_a_fabrics_name_and_none_are_not() {
    let names = [
        ported(|_, _| None).fingerprint(),
        ported(|from, _| Some(from)).fingerprint(),
        ported(|_, _| Some(0)).fingerprint(),
    ];
    assert!(names[0] != names[1] && names[1] != names[2] && names[0] != names[2]);
}
