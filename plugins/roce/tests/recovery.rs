//! Rails that die and come back while puts are under way, over the stand-in for libibverbs.

mod common;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use common::*;
use unisono_plugin::{Link, QueuePhase, Sleep, SleepWays, Status};

#[test]
fn recovery() {
    let devices = Devices::ethernet(2);
    one_rail_dies_and_comes_back(&devices);
    a_blip_on_the_only_rail(&devices);
    both_rails_die(&devices);
    a_dead_rail_under_load(&devices);
    a_word_that_comes_late(&devices);
    a_way_back_that_leads_nowhere(&devices);
    a_peer_that_is_away(&devices);
    a_rail_that_nobody_needs(&devices);
    an_end_in_order();
}

fn one_rail_dies_and_comes_back(devices: &Devices) {
    let mut random = Random::seeded();
    let mut ends = pair(&[], 1 << 20);
    traffic(&mut ends, &mut random, 10);
    let mut recovered = 0;
    for rail in ["fake0", "fake1", "fake0"] {
        devices.cut(rail);
        let pause = traffic(&mut ends, &mut random, 20);
        println!("{rail} cut: a pause of {pause:?}");
        assert!(pause < Duration::from_secs(3), "{rail}: {pause:?}");
        let statistics = ends[0].link.statistics().unwrap();
        assert_eq!(statistics.connections, 4);
        assert!(statistics.recovered > recovered, "{statistics:?}");
        recovered = statistics.recovered;
        devices.mend(rail);
        // It comes back to its own rails, in the middle of traffic.
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(3) {
            traffic(&mut ends, &mut random, 4);
        }
    }
}

fn a_blip_on_the_only_rail(devices: &Devices) {
    let mut random = Random::seeded();
    let set: &[(&str, Value)] = &[("devices", "fake1".into())];
    let mut ends = pair(set, 1 << 20);
    traffic(&mut ends, &mut random, 4);
    devices.cut("fake1");
    let source = Memory::new(64);
    ends[0].submit(&Commands::default().put(put(source.address(), 64, 0, Some(6))));
    let start = Instant::now();
    // Longer than all retries, shorter than the limit of recovery.
    while start.elapsed() < Duration::from_millis(1500) {
        for end in &mut ends {
            end.link.poll(1 << 20).unwrap();
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    assert_eq!(ends[1].raised(6), 0);
    devices.mend("fake1");
    drive(&mut ends, |e| e[1].raised(6) == 1);
    traffic(&mut ends, &mut random, 10);
    assert_eq!(ends[1].raised(6), 1);
}

fn both_rails_die(devices: &Devices) {
    let set: &[(&str, Value)] = &[("recovery", ms(1500).into())];
    let mut ends = pair(set, 1 << 20);
    devices.cut("fake0");
    devices.cut("fake1");
    let source = Memory::new(64);
    ends[0].submit(&Commands::default().put(put(source.address(), 64, 0, Some(0))));
    let start = Instant::now();
    let error = loop {
        let _ = ends[1].link.poll(1 << 20);
        if let Err(error) = ends[0].link.poll(1 << 20) {
            break error;
        }
        assert!(start.elapsed() < LIMIT);
        std::thread::sleep(Duration::from_micros(100));
    };
    println!("{error} after {:?}", start.elapsed());
    assert!(start.elapsed() < Duration::from_secs(4));
    assert!(matches!(error.status(), Status::Peer | Status::Link));
    assert!(error.message().contains("rank 1"), "{error}");
    assert!(error.message().contains("10.7.0."), "{error}");
    devices.mend("fake0");
    devices.mend("fake1");
    // The other end hears of it.
    let other = failure(&mut ends[1]);
    println!("{other}");
}

/// Many puts are under way when a rail dies: none is lost, none counts twice, none comes out of order.
fn a_dead_rail_under_load(devices: &Devices) {
    let mut random = Random::seeded();
    for set in [
        vec![("stripe", 4096.into())],
        vec![
            ("queue_pairs", 1.into()),
            ("credits", 8.into()),
            ("message", 8192.into()),
        ],
    ] {
        let mut ends = pair(&set, 4 << 20);
        let size = 64 << 10;
        let slots = 32;
        let source = Memory::new(slots * size);
        let (mut sent, mut seen) = (0_u64, 0_u64);
        let total = 600;
        let cuts = [100 + random.below(50), 300 + random.below(50)];
        let start = Instant::now();
        while seen < total {
            assert!(start.elapsed() < LIMIT, "{seen} of {total} came");
            // A slot is free again once the peer has given it back, on flag 1 of this end.
            while sent < total && sent < ends[0].raised(1) + slots as u64 {
                let slot = (sent % slots as u64) as usize;
                let length = 1 + (sent as usize * 7919) % size;
                source.write(slot * size, &Random(sent).bytes(length));
                let command = put(
                    source.address() + (slot * size) as u64,
                    length,
                    slot * size,
                    Some(0),
                );
                if Commands::default()
                    .put(command)
                    .submit(&mut ends[0].link)
                    .unwrap()
                    == 0
                {
                    break;
                }
                sent += 1;
                if let Some(which) = cuts.iter().position(|at| *at == sent) {
                    devices.cut(["fake0", "fake1"][which]);
                }
                if sent == 250 {
                    devices.mend("fake0");
                }
            }
            for end in &mut ends {
                // A process may be away at any moment, and what came meanwhile is not lost.
                if random.below(400) == 0 {
                    std::thread::sleep(Duration::from_millis(25));
                }
                if let Err(error) = end.link.poll(256 << 10) {
                    panic!("{error}");
                }
            }
            while seen < ends[1].raised(0) {
                let slot = (seen % slots as u64) as usize;
                let length = 1 + (seen as usize * 7919) % size;
                assert!(
                    ends[1].data.read(slot * size, length) == Random(seen).bytes(length),
                    "put {seen} of {length} bytes"
                );
                ends[1].submit(&Commands::default().put(put(0, 0, 0, Some(1))));
                seen += 1;
            }
        }
        drive(&mut ends, |e| e[0].raised(1) == total);
        assert_eq!(ends[1].flags.flag(0).load(Ordering::Acquire), total);
        devices.mend("fake1");
        println!("{total} puts with two cuts: {:?}", start.elapsed());
    }
}

/// Polls both ends for a time.
fn go_on(ends: &mut [End; 2], time: Duration) {
    let start = Instant::now();
    drive(ends, |_| {
        std::thread::sleep(Duration::from_micros(100));
        start.elapsed() > time
    });
}

/// The acceptor settles and sends at once; the dialer hears of it so late that it has given that queue
/// pair up. What came over it counts all the same.
fn a_word_that_comes_late(devices: &Devices) {
    let mut random = Random::seeded();
    let set: &[(&str, Value)] = &[("devices", "fake1".into()), ("queue_pairs", 1.into())];
    let mut ends = pair(set, 1 << 20);
    traffic(&mut ends, &mut random, 4);
    ends[0].identity.hold(SETTLED);
    devices.cut("fake1");
    let source = Memory::new(64);
    source.write(0, &[9; 64]);
    ends[1].submit(&Commands::default().put(put(source.address(), 64, 128, Some(6))));
    go_on(&mut ends, Duration::from_millis(300));
    devices.mend("fake1");
    drive(&mut ends, |e| e[1].phase() == QueuePhase::Idle);
    assert_eq!(ends[0].raised(6), 0, "it waits for the word");
    go_on(&mut ends, Duration::from_millis(1300));
    ends[0].identity.release();
    drive(&mut ends, |e| e[0].raised(6) == 1);
    assert_eq!(ends[0].data.read(128, 64), [9; 64]);
    traffic(&mut ends, &mut random, 10);
    assert_eq!(ends[0].raised(6), 1);
}

/// A lane leaves a queue pair that is well for its own rails, and the peer does not follow: that has the
/// limit that a failure has.
fn a_way_back_that_leads_nowhere(devices: &Devices) {
    let mut random = Random::seeded();
    let set: &[(&str, Value)] = &[("queue_pairs", 1.into()), ("recovery", ms(1500).into())];
    let mut ends = pair(set, 1 << 20);
    devices.cut("fake0");
    traffic(&mut ends, &mut random, 4);
    ends[0].identity.hold(SETTLED);
    devices.mend("fake0");
    let source = Memory::new(64);
    let start = Instant::now();
    let error = loop {
        if ends[0].phase() == QueuePhase::Idle {
            // While nothing is under way the other rail would do.
            ends[0].submit(&Commands::default().put(put(source.address(), 64, 0, Some(6))));
        }
        if let Err(error) = ends[0].link.poll(1 << 20) {
            break error;
        }
        let _ = ends[1].link.poll(1 << 20);
        assert!(start.elapsed() < Duration::from_secs(10), "no limit");
        std::thread::sleep(Duration::from_micros(100));
    };
    println!("{error} after {:?}", start.elapsed());
    for word in ["rank 1", "10.7.0.1", "not back within 1.5s"] {
        assert!(error.message().contains(word), "{error}");
    }
}

/// A path breaks while the peer computes: nobody fails for that, however long it takes beyond
/// `recovery`, and what was sent arrives once the peer looks. A peer that never does has a limit too.
fn a_peer_that_is_away(devices: &Devices) {
    let set: &[(&str, Value)] = &[
        ("devices", "fake1".into()),
        ("recovery", ms(3000).into()),
        ("connect_timeout", ms(8000).into()),
    ];
    // Whether the end that dials is away, or the one that answers.
    for away in [1, 0] {
        let mut random = Random::seeded();
        let mut ends = pair(set, 1 << 20);
        traffic(&mut ends, &mut random, 4);
        let here = 1 - away;
        let source = Memory::new(64);
        let before = ends[away].raised(6);
        devices.cut("fake1");
        ends[here].submit(&Commands::default().put(put(source.address(), 64, 0, Some(6))));
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(6000) {
            ends[here]
                .link
                .poll(1 << 20)
                .expect("the peer only computes");
            std::thread::sleep(Duration::from_millis(1));
        }
        devices.mend("fake1");
        drive(&mut ends, |e| e[away].raised(6) == before + 1);
        traffic(&mut ends, &mut random, 4);
    }
    let mut ends = pair(set, 1 << 20);
    devices.cut("fake1");
    let source = Memory::new(64);
    ends[0].submit(&Commands::default().put(put(source.address(), 64, 0, Some(6))));
    let start = Instant::now();
    let error = loop {
        if let Err(error) = ends[0].link.poll(1 << 20) {
            break error;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "no limit");
        std::thread::sleep(Duration::from_millis(1));
    };
    println!("{error} after {:?}", start.elapsed());
    assert!(start.elapsed() > Duration::from_secs(7));
    assert!(error.message().contains("rank 1 has not looked"), "{error}");
    devices.mend("fake1");
}

/// One of two rails breaks while nothing is under way, and the peer computes for longer than it may
/// take to mend: the link does without that rail.
fn a_rail_that_nobody_needs(devices: &Devices) {
    let set: &[(&str, Value)] = &[
        ("queue_pairs", 1.into()),
        ("recovery", ms(1500).into()),
        ("connect_timeout", ms(2500).into()),
        ("keepalive", ms(100).into()),
    ];
    let mut random = Random::seeded();
    let mut ends = pair(set, 1 << 20);
    traffic(&mut ends, &mut random, 4);
    devices.cut("fake1");
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(5) {
        ends[0].link.poll(1 << 20).expect("the other rail is well");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(ends[0].link.statistics().unwrap().connections, 1);
    traffic(&mut ends, &mut random, 20);
    devices.mend("fake1");
}

/// The peer's last word came over its queue pair, and then, over another way, that it is gone: what had
/// landed counts, and the link ends in order. Then it rests.
fn an_end_in_order() {
    for round in 0..20 {
        let mut ends = pair(&[("queue_pairs", 1.into())], 1 << 20);
        let source = Memory::new(64);
        // Enough messages for credits to be on their way back.
        for _ in 0..24 + round {
            ends[0].submit(&Commands::default().put(put(source.address(), 64, 0, Some(6))));
        }
        let count = 24 + round;
        drive(&mut ends, |e| {
            e[1].raised(6) == count && e[0].phase() == QueuePhase::Idle
        });
        let [mut first, second] = ends;
        drop(second);
        let start = Instant::now();
        while first.link.statistics().unwrap().connections > 0 {
            first.link.poll(1 << 20).expect("the peer ended in order");
            assert!(start.elapsed() < LIMIT);
        }
        let asleep = first
            .link
            .arm(SleepWays::from_bits(unisono_plugin::abi::sleep::FD), None)
            .unwrap();
        assert!(matches!(asleep, Sleep::Fd { .. }), "{asleep:?}");
        first.link.disarm();
    }
}
