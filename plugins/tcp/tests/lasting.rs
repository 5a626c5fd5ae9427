//! Connections within a machine: nothing of them is kept to be sent again, and they end with their processes alone.

mod common;

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use common::network::{alone, deafen, loopback};
use common::*;
use unisono_plugin::{Error, Instance, Link, QueuePhase, Status};

/// Longer than what is copied, shorter than what is striped.
const LONG: usize = 100_000;

fn poll_for(end: &mut End, time: Duration) -> Result<(), Error> {
    let start = Instant::now();
    while start.elapsed() < time {
        end.link.poll(1 << 20)?;
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Whether a put is complete before its peer has looked.
fn is_complete_at_once(ends: &mut [End; 2]) -> bool {
    drive(ends, |ends| {
        ends.iter()
            .all(|e| phase(&e.link) != QueuePhase::Connecting)
    });
    let source = Memory::new(LONG);
    source.write(0, &Random(4).bytes(LONG));
    ends[0].submit(&Commands::default().put(put(source.address(), LONG, 0, Some(0))));
    poll_for(&mut ends[0], Duration::from_millis(20)).unwrap();
    let state = ends[0].link.poll(1 << 20).unwrap();
    drive(ends, |e| e[1].raised(0) == 1);
    assert!(ends[1].data.read(0, LONG) == source.read(0, LONG));
    state.completed == state.accepted
}

#[test]
fn a_put_is_complete_once_the_kernel_has_it() {
    let mut ends = strangers(&[], LONG, [5, 5]);
    assert!(is_complete_at_once(&mut ends));
}

#[test]
fn one_end_that_makes_lost_connections_anew_is_enough() {
    for which in [0, 1] {
        let sets: [&[(&str, i64)]; 2] = [
            &[("recover_local", i64::from(which == 0))],
            &[("recover_local", i64::from(which == 1))],
        ];
        let mut ends = strangers_of(sets, LONG, [5, 5]);
        assert!(!is_complete_at_once(&mut ends), "rank {which} recovers");
    }
}

/// An end of rank 1 with two connections to a peer made by hand.
fn by_hand(set: &[(&str, i64)]) -> (End, [TcpStream; 2]) {
    let instance = instance(set, "").unwrap();
    let (port, name) = raw::parts(&instance.address().unwrap());
    let mut end = End::new(instance, Identity { secret: 5, rank: 1 }, (0, &[]), 1 << 20);
    let hand = std::thread::spawn(move || {
        [0, 1].map(|index| {
            let mut stream = raw::connect(port);
            let hello = raw::lasting_hello(name, index, 2);
            let said = raw::greet_again(&mut stream, hello, 5).unwrap();
            raw::welcome(&mut stream, &said, 5);
            stream
        })
    });
    let start = Instant::now();
    while phase(&end.link) == QueuePhase::Connecting {
        assert!(start.elapsed() < LIMIT);
        end.link.poll(1 << 20).unwrap();
    }
    (end, hand.join().unwrap())
}

#[test]
fn one_that_is_cut_ends_the_link_at_once() {
    let (mut end, hands) = by_hand(&[]);
    poll_for(&mut end, Duration::from_millis(20)).unwrap();
    hands[1].shutdown(Shutdown::Both).unwrap();
    let start = Instant::now();
    let error = failure(&mut end);
    assert_eq!(error.status(), Status::Peer, "{error}");
    assert!(error.message().contains("connection 2 of 2"), "{error}");
    // An idle one is looked at now and then.
    assert!(start.elapsed() < Duration::from_secs(2), "{error}");
}

/// No other can take its place: the link fails, though its other connection is well.
#[test]
fn silence_of_one_connection_is_noticed_while_another_is_well() {
    let (mut end, mut hands) = by_hand(&[
        ("rail_timeout", 500_000_000),
        ("recovery", 1_000_000_000),
        ("connect_timeout", 60_000_000_000),
    ]);
    let frame = raw::signalled(raw::frame(DATA, 0, 0, 0, 0), FLAGS, 0);
    hands[0].write_all(&frame).unwrap();
    // The window that the peer would have exported.
    let mut token = 0x574e_4955u32.to_le_bytes().to_vec();
    token.extend(0u32.to_le_bytes());
    token.extend((1u64 << 20).to_le_bytes());
    end.link.import_window(DATA, &token).unwrap();
    deafen(&hands[1]);
    let source = Memory::new(1 << 20);
    end.submit(&Commands::default().put(put(source.address(), 1 << 20, 0, None)));
    let start = Instant::now();
    let error = failure(&mut end);
    assert_eq!(error.status(), Status::Peer, "{error}");
    assert!(error.message().contains("connection 2 of 2"), "{error}");
    assert!(error.message().contains("recover_local"), "{error}");
    let took = start.elapsed();
    assert!(took < Duration::from_secs(8), "{took:?}: {error}");
    assert_eq!(end.raised(0), 1, "the other is well");
}

/// Loopback that is taken down for a while: nothing is lost.
#[test]
fn a_silence_that_ends_costs_nothing() {
    if !alone() {
        return;
    }
    let mut ends = pair(&[("rail_timeout", 300_000_000)], LONG);
    let source = Memory::new(LONG);
    source.write(0, &Random(4).bytes(LONG));
    loopback(false);
    ends[0].submit(&Commands::default().put(put(source.address(), LONG, 0, Some(0))));
    let start = Instant::now();
    while ends[0].link.statistics().unwrap().connections == 2 {
        assert!(start.elapsed() < LIMIT, "the silence is not noticed");
        ends[0].link.poll(1 << 20).unwrap();
    }
    loopback(true);
    drive(&mut ends, |e| e[1].raised(0) == 1);
    assert!(ends[1].data.read(0, LONG) == source.read(0, LONG));
    drive(&mut ends, |e| {
        e[0].link.statistics().unwrap().connections == 2
    });
}

/// The kernel has what it sent, its peer has not read it, and answers before it does.
#[test]
fn who_leaves_takes_nothing_along_that_was_not_read() {
    let bytes = 1 << 20;
    let [mut first, mut second] = pair(&[], bytes);
    let source = Memory::new(bytes);
    source.write(0, &Random(4).bytes(bytes));
    first.submit(&Commands::default().put(put(source.address(), bytes, 0, Some(0))));
    let start = Instant::now();
    while phase(&first.link) != QueuePhase::Idle {
        assert!(start.elapsed() < LIMIT);
        first.link.poll(1 << 20).unwrap();
        if start.elapsed() > Duration::from_millis(50) {
            second.link.poll(1 << 14).unwrap();
        }
    }
    let leaving = std::thread::spawn(move || drop(first));
    std::thread::sleep(Duration::from_millis(50));
    second.submit(&Commands::default().put(put(source.address(), 8, 0, None)));
    let start = Instant::now();
    while second.raised(0) == 0 {
        assert!(start.elapsed() < LIMIT);
        second.link.poll(1 << 14).unwrap();
    }
    assert!(second.data.read(0, bytes) == source.read(0, bytes));
    leaving.join().unwrap();
}
