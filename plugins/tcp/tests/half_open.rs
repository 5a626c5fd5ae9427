//! A peer whose machine vanishes: no reset, no end of stream, just silence.
//!
//! Played in a network namespace of the test's own, whose loopback is taken down. Where the system
//! does not allow one the test says so and checks nothing.

mod common;

use std::time::{Duration, Instant};

use common::network::{alone, loopback};
use common::*;
use unisono_plugin::{Link, Status};

const SILENCE: &[(&str, i64)] = &[
    ("recover_local", 1),
    ("keepalive", 3_000_000_000),
    ("stall_timeout", 3_000_000_000),
    ("rail_timeout", 1_000_000_000),
    ("recovery", 1_000_000_000),
];

/// As it is where nobody sets anything, but for shorter times: a stall is much longer than `keepalive`.
const IDLE: &[(&str, i64)] = &[
    ("recover_local", 1),
    ("keepalive", 3_000_000_000),
    ("stall_timeout", 120_000_000_000),
    ("recovery", 1_000_000_000),
];

/// Polls both ends for so long.
fn run_for(ends: &mut [End; 2], time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        for end in ends.iter_mut() {
            end.link.poll(1 << 20).unwrap();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn silence_while_bytes_wait_is_noticed() {
    if !alone() {
        return;
    }
    let mut ends = pair(SILENCE, 4096);
    let source = Memory::new(64);
    loopback(false);
    let start = Instant::now();
    ends[0].submit(&Commands::default().put(put(source.address(), 64, 0, Some(0))));
    let error = failure(&mut ends[0]);
    assert_eq!(error.status(), Status::Peer, "{error}");
    assert!(error.vendor_code() != 0, "{error:?}");
    println!("after {:?}: {error}", start.elapsed());
}

#[test]
fn silence_of_an_idle_link_is_noticed() {
    if !alone() {
        return;
    }
    let mut ends = pair(SILENCE, 4096);
    loopback(false);
    let error = failure(&mut ends[1]);
    assert_eq!(error.status(), Status::Peer, "{error}");
}

/// The link is given up at the far end of `keepalive`, of a look at idle paths and of `recovery`.
#[test]
fn silence_of_an_idle_link_is_noticed_long_before_a_stall_is_one() {
    if !alone() {
        return;
    }
    for end in [0, 1] {
        loopback(true);
        let mut ends = pair(IDLE, 4096);
        run_for(&mut ends, Duration::from_millis(200));
        loopback(false);
        let start = Instant::now();
        let error = failure(&mut ends[end]);
        let took = start.elapsed();
        assert_eq!(error.status(), Status::Peer, "{error}");
        println!("after {took:?}: {error}");
        assert!(took >= Duration::from_secs(3), "{took:?}: {error}");
        assert!(took <= Duration::from_secs(7), "{took:?}: {error}");
    }
}

/// Nothing but its own descriptor wakes the end.
#[test]
fn a_sleeper_notices_the_silence_of_an_idle_link() {
    if !alone() {
        return;
    }
    let mut ends = pair(IDLE, 4096);
    run_for(&mut ends, Duration::from_millis(200));
    loopback(false);
    let (start, mut woken) = (Instant::now(), 0);
    let error = loop {
        assert!(start.elapsed() < LIMIT, "asleep for good");
        match ends[1].link.poll(1 << 20) {
            Err(error) => break error,
            Ok(_) => assert!(doze(&mut ends[1].link, LIMIT), "not woken"),
        }
        woken += 1;
    };
    assert_eq!(error.status(), Status::Peer, "{error}");
    // Once a second while all seems well, ten times a second once it does not.
    println!("woken {woken} times");
    assert!(woken < 30, "{woken} times");
}

/// A short silence costs nothing, a longer one no more than a word: where it ends before another way was
/// found, the link goes on as it is.
#[test]
fn an_idle_path_that_comes_back_goes_on() {
    if !alone() {
        return;
    }
    let patient = [("keepalive", 3_000_000_000), ("recovery", 10_000_000_000)];
    let mut ends = pair(&patient, 4096);
    let source = Memory::new(64);
    for (round, silent) in [(1, 1), (2, 8)] {
        loopback(false);
        run_for(&mut ends, Duration::from_secs(silent));
        let standing = ends[1].link.statistics().unwrap().connections;
        assert_eq!(standing, if round == 1 { 2 } else { 0 });
        loopback(true);
        ends[0].submit(&Commands::default().put(put(source.address(), 64, 0, Some(0))));
        drive(&mut ends, |e| e[1].raised(0) == round);
    }
    drive(&mut ends, |e| {
        let standing = |end: &mut End| end.link.statistics().unwrap().connections == 2;
        e.iter_mut().all(standing)
    });
}

/// Links that are idle for long, one of them with a peer that does not look, are left alone.
#[test]
fn an_idle_path_that_answers_is_not_lost() {
    let mut ends = pair(IDLE, 4096);
    let mut sleepy = pair(IDLE, 4096);
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(5) {
        for end in ends.iter_mut().chain([&mut sleepy[0]]) {
            end.link.poll(1 << 20).unwrap();
            assert_eq!(end.link.statistics().unwrap().connections, 2);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Alive but not looking, for longer than `keepalive`: that is no reason to give it up.
#[test]
fn a_peer_that_does_not_look_is_not_taken_for_dead() {
    let bytes = 32 << 20;
    let mut ends = pair(&[("keepalive", 1_000_000_000)], bytes);
    let source = Memory::new(bytes);
    ends[0].submit(&Commands::default().put(put(source.address(), bytes, 0, Some(0))));
    let until = Instant::now() + Duration::from_secs(4);
    while Instant::now() < until {
        ends[0].link.poll(1 << 20).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    drive(&mut ends, |e| e[1].raised(0) == 1);
}
