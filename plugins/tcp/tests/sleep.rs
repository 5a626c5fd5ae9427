//! Ends that only poll after their descriptor woke them: nothing may be lost while they sleep.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use common::*;
use unisono_plugin::abi::sleep;
use unisono_plugin::{DeviceId, Instance, Link, LinkRequest, QueuePhase, Sleep, SleepWays};

/// Runs an end until something holds, sleeping whenever a poll moved nothing.
fn run(end: &mut End, mut until: impl FnMut(&mut End) -> bool) -> u64 {
    let start = Instant::now();
    let mut polls = 0;
    while !until(end) {
        assert!(start.elapsed() < LIMIT, "asleep for good");
        let state = end.link.poll(1 << 20).unwrap();
        polls += 1;
        if !state.moved && state.phase != QueuePhase::Ready && !until(end) {
            assert!(doze(&mut end.link, Duration::from_secs(5)), "not woken");
        }
    }
    polls
}

#[test]
fn two_sleepers_connect_and_exchange() {
    let mut ends = strangers(&[], 4 << 20, [5, 5]);
    let source = Memory::new(4 << 20);
    source.write(0, &Random(4).bytes(4 << 20));
    let [first, second] = &mut ends;
    let rounds = 200u64;
    let play = |end: &mut End, opens: bool| {
        let mut batch = Commands::default();
        batch = batch.put(put(source.address(), 8, 0, Some(0)));
        let big = Commands::default().put(put(source.address(), 4 << 20, 0, Some(1)));
        let mut polls = 0;
        for round in 1..=rounds {
            if opens {
                end.submit(&batch);
            }
            polls += run(end, |e| e.raised(0) >= round);
            if !opens {
                end.submit(&batch);
            }
        }
        end.submit(&big);
        polls += run(end, |e| {
            let state = e.link.poll(1).unwrap();
            e.raised(1) == 1 && state.accepted == state.completed
        });
        polls
    };
    std::thread::scope(|scope| {
        let one = scope.spawn(|| play(first, true));
        let other = scope.spawn(|| play(second, false));
        for polls in [one.join().unwrap(), other.join().unwrap()] {
            assert!(polls < 100_000, "{polls} polls: it did not sleep");
        }
    });
    assert!(ends[0].data.read(0, 4 << 20) == source.read(0, 4 << 20));
}

#[test]
fn an_idle_link_sleeps_until_something_comes() {
    let mut ends = pair(&[], 4096);
    let source = Memory::new(64);
    let [first, second] = &mut ends;
    assert!(!doze(&mut second.link, Duration::from_millis(50)));
    let sent = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            first.submit(&Commands::default().put(put(source.address(), 8, 0, Some(0))));
            sent.store(true, Ordering::Release);
            first.link.poll(1 << 20).unwrap();
        });
        assert!(doze(&mut second.link, Duration::from_secs(10)));
        assert!(sent.load(Ordering::Acquire));
    });
    let polls = run(second, |e| e.raised(0) == 1);
    assert!(polls < 100, "{polls}");
}

/// Prepares for a sleep; the set that is slept on.
fn arm(link: &mut impl Link) -> i32 {
    match link.arm(SleepWays::from_bits(sleep::FD), None).unwrap() {
        Sleep::Fd { fd, .. } => fd,
        other => panic!("there is something to do: {other:?}"),
    }
}

/// How many descriptors it has.
fn watched(set: i32) -> usize {
    let set = std::fs::read_to_string(format!("/proc/self/fdinfo/{set}")).unwrap();
    set.lines().filter(|line| line.starts_with("tfd:")).count()
}

/// The set takes note of each arrival, which is in its way: nobody who polls needs that.
#[test]
fn what_is_polled_and_not_slept_on_leaves_the_set() {
    let mut ends = pair(&[], 4096);
    let source = Memory::new(64);
    let [first, second] = &mut ends;
    let set = arm(&mut second.link);
    second.link.disarm();
    let asleep = watched(set);
    let start = Instant::now();
    while watched(set) == asleep {
        assert!(start.elapsed() < LIMIT, "it is in the set for good");
        for _ in 0..1000 {
            second.link.poll(1 << 20).unwrap();
        }
    }
    // It is watched again, and told of what is there.
    assert_eq!(arm(&mut second.link), set);
    second.link.disarm();
    assert_eq!(watched(set), asleep);
    first.submit(&Commands::default().put(put(source.address(), 8, 0, Some(0))));
    first.link.poll(1 << 20).unwrap();
    assert!(doze(&mut second.link, Duration::ZERO));
    run(second, |e| e.raised(0) == 1);
}

/// Else whoever sleeps on it while another thread polls would not be woken.
#[test]
fn what_is_slept_on_stays_in_the_set_whoever_polls() {
    let [_first, mut second] = pair(&[], 4096);
    let set = arm(&mut second.link);
    let asleep = watched(set);
    let (start, mut polls) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_millis(500) || polls < 5000 {
        second.link.poll(1 << 20).unwrap();
        polls += 1;
    }
    assert_eq!(watched(set), asleep);
    second.link.disarm();
}

#[test]
fn a_host_that_has_no_descriptors_is_told_not_to_sleep() {
    let mut ends = pair(&[], 4096);
    let ways = SleepWays::from_bits(sleep::WAKER | sleep::FUTEX);
    assert_eq!(ends[0].link.arm(ways, None).unwrap(), Sleep::Ready);
}

/// Four ranks as threads of one process share one instance, and so one listener: whichever thread
/// takes a connection, the thread that it is for is woken.
#[test]
fn ranks_that_are_threads_find_each_other_asleep() {
    const RANKS: u32 = 4;
    let instance = Arc::new(instance(&[], "").unwrap());
    let address = instance.address().unwrap();
    let all_there = Barrier::new(RANKS as usize);
    std::thread::scope(|scope| {
        for rank in 0..RANKS {
            let (instance, address, all_there) = (&instance, &address, &all_there);
            scope.spawn(move || {
                let identity = Identity { secret: 5, rank };
                let mut links: Vec<_> = (0..RANKS)
                    .filter(|peer| *peer != rank)
                    .map(|peer| {
                        let request = LinkRequest {
                            peer,
                            device: DeviceId::default(),
                            channel: channel(&identity, RANKS, 4),
                            peer_address: address,
                        };
                        instance.create_link(request).unwrap()
                    })
                    .collect();
                for link in &mut links {
                    let start = Instant::now();
                    while link.poll(1 << 20).unwrap().phase == QueuePhase::Connecting {
                        assert!(start.elapsed() < LIMIT, "asleep for good");
                        assert!(doze(link, Duration::from_secs(10)), "not woken");
                    }
                }
                all_there.wait(); // nobody leaves before
            });
        }
    });
    assert_eq!(instance.refused(), 0);
}
