//! Drivers that look for a neighbour when a queue pair is connected, and take seconds where the path is dead.

mod common;

use std::time::{Duration, Instant};

use common::*;
use unisono_plugin::{Error, Link};

#[test]
fn neighbours() {
    let devices = Devices::ethernet(2);
    for rail in ["fake0", "fake1"] {
        std::fs::write(devices.path(rail).join("patience"), "1500").expect("a folder");
    }
    a_rail_that_was_dead_before(&devices);
    the_other_rail_does_not_wait(&devices);
    their_time_counts(&devices);
}

/// A rail that is dead when the job starts: the other will do.
fn a_rail_that_was_dead_before(devices: &Devices) {
    devices.cut("fake0");
    let start = Instant::now();
    let mut ends = pair(&[], 1 << 20);
    println!("connected after {:?}", start.elapsed());
    assert!(
        start.elapsed() < Duration::from_secs(8),
        "{:?}",
        start.elapsed()
    );
    traffic(&mut ends, &mut Random::seeded(), 10);
    devices.mend("fake0");
}

/// A lane whose own rails are dead tries them again and again, and the others go on; and when they have a
/// moment's trouble themselves, it is not taken for a better way than they are.
fn the_other_rail_does_not_wait(devices: &Devices) {
    let mut random = Random::seeded();
    let mut ends = pair(&[("recovery", ms(6000).into())], 1 << 20);
    traffic(&mut ends, &mut random, 4);
    devices.cut("fake0");
    let moved = traffic(&mut ends, &mut random, 10);
    let (start, mut worst) = (Instant::now(), Duration::ZERO);
    while start.elapsed() < Duration::from_secs(11) {
        worst = worst.max(traffic(&mut ends, &mut random, 4));
    }
    println!("a pause of {moved:?} to move, then of {worst:?}");
    assert!(worst < Duration::from_secs(1), "{worst:?}");

    let end = Instant::now() + Duration::from_secs(1);
    devices.cut("fake1");
    let source = Memory::new(64);
    let before = ends[1].raised(6);
    ends[0].submit(&Commands::default().put(put(source.address(), 64, 0, Some(6))));
    drive(&mut ends, |_| Instant::now() > end);
    devices.mend("fake1");
    drive(&mut ends, |e| e[1].raised(6) == before + 1);
    println!(
        "a blip of 1 s: a pause of {:?}",
        end.elapsed() + Duration::from_secs(1)
    );
    traffic(&mut ends, &mut random, 10);
    devices.mend("fake0");
}

/// Where all are dead, the time that drivers take counts like any other.
fn their_time_counts(devices: &Devices) {
    let mut ends = pair(&[("recovery", ms(2000).into())], 1 << 20);
    traffic(&mut ends, &mut Random::seeded(), 4);
    devices.cut("fake0");
    devices.cut("fake1");
    let source = Memory::new(64);
    ends[0].submit(&Commands::default().put(put(source.address(), 64, 0, Some(0))));
    let start = Instant::now();
    let error: Error = loop {
        let _ = ends[1].link.poll(1 << 20);
        if let Err(error) = ends[0].link.poll(1 << 20) {
            break error;
        }
        assert!(start.elapsed() < Duration::from_secs(8), "no limit");
        std::thread::sleep(Duration::from_micros(100));
    };
    println!("{error} after {:?}", start.elapsed());
    assert!(start.elapsed() >= Duration::from_secs(2), "{error}");
    assert!(error.message().contains("rank 1"), "{error}");
    // Its own limit, or that the peer's was first.
    let words = ["not back within 2s", "has given the link up"];
    let said = words.iter().any(|words| error.message().contains(words));
    assert!(said, "{error}");
}
