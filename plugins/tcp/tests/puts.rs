//! Puts and signals between two ends that behave.

mod common;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use common::*;
use unisono_plugin::abi::{CMD_WORDS, Counter, FlagLine, NO_WINDOW};
use unisono_plugin::{HostRange, Instance, Landing, Link, QueueControl, QueuePhase, Status};

#[test]
fn a_small_put_lands_with_its_words() {
    let mut ends = pair(&[], 4096);
    let source = Memory::new(64);
    source.write(0, b"hello, peer");
    let mut command = put(source.address(), 11, 100, Some(2));
    command.head.flags = CMD_WORDS;
    command.words = [1, 2, 3];
    ends[0].submit(&Commands::default().put(command));
    drive(&mut ends, |e| e[1].raised(2) == 1);
    assert_eq!(ends[1].data.read(100, 11), b"hello, peer");
    assert_eq!(ends[1].flags.words(2), [1, 2, 3]);
    let (sent, received) = (
        ends[0].link.statistics().unwrap(),
        ends[1].link.statistics().unwrap(),
    );
    assert_eq!((sent.bytes_sent, sent.puts_sent), (11, 1));
    assert_eq!((received.bytes_received, received.puts_received), (11, 1));
    assert_eq!((sent.connections, received.connections), (2, 2));
}

#[test]
fn both_directions_at_once_and_nothing_at_all() {
    let mut ends = pair(&[], 1 << 20);
    let source = Memory::new(1 << 20);
    source.write(0, &Random(1).bytes(1 << 20));
    for end in &mut ends {
        let nothing = put(0, 0, 0, Some(1));
        let mut only_flag = put(0, 0, 0, Some(1));
        only_flag.dst_window = NO_WINDOW;
        let all = put(source.address(), 1 << 20, 0, Some(0));
        end.submit(&Commands::default().put(nothing).put(only_flag).put(all));
    }
    drive(&mut ends, |e| e.iter().all(|e| e.raised(0) == 1));
    for end in &ends {
        assert_eq!(end.raised(1), 2);
        assert_eq!(end.data.read(0, 1 << 20), source.read(0, 1 << 20));
    }
}

/// Sizes of all kinds, over any number of connections: bytes are right when the flag is up, and
/// flags go up in order.
#[test]
fn random_puts_over_one_to_eight_connections() {
    let seed = std::time::SystemTime::UNIX_EPOCH
        .elapsed()
        .unwrap()
        .as_nanos() as u64;
    println!("seed {seed}");
    for connections in [1, 2, 3, 8] {
        let mut random = Random(seed + connections);
        let window = 4 << 20;
        let mut ends = pair(&[("connections", connections as i64)], window);
        let source = Memory::new(window);
        source.write(0, &random.bytes(window));
        for round in 0..12u64 {
            let mut batch = Commands::default();
            let mut at = 0;
            let mut placed = Vec::new();
            for _ in 0..random.below(20) + 1 {
                let size = match random.below(4) {
                    0 => random.below(64),
                    1 => random.below(9000),
                    2 => random.below(200_000),
                    _ => random.below(1 << 20),
                } as usize;
                if at + size > window {
                    break;
                }
                let from = random.below((window - size) as u64 + 1) as usize;
                batch = batch.put(put(
                    source.address() + from as u64,
                    size,
                    at,
                    Some(placed.len()),
                ));
                placed.push((at, from, size));
                at += size;
            }
            ends[0].submit(&batch);
            let mut seen = 0;
            drive(&mut ends, |ends| {
                while seen < placed.len() && ends[1].raised(seen) == 1 {
                    // A later flag is never up before an earlier one.
                    let (to, from, size) = placed[seen];
                    assert!(
                        ends[1].data.read(to, size) == source.read(from, size),
                        "round {round}: {size} bytes at {to}"
                    );
                    seen += 1;
                }
                for later in seen..placed.len() {
                    assert_eq!(
                        ends[1].raised(later),
                        0,
                        "round {round}: flag {later} is early"
                    );
                }
                seen == placed.len()
            });
            for flag in 0..placed.len() {
                ends[1].flags.flag(flag).store(0, Ordering::Relaxed);
            }
        }
    }
}

#[test]
fn pieces_are_gathered() {
    let mut ends = pair(&[], 1 << 20);
    let source = Memory::new(1 << 20);
    source.write(0, &Random(3).bytes(1 << 20));
    for (piece, stride, repeat) in [(24usize, 40usize, 1000usize), (700, 1000, 900), (8, 8, 100)] {
        let mut command = put(source.address(), piece, 0, Some(0));
        (command.repeat, command.src_stride) = (repeat as u64, stride as u64);
        let expected: Vec<u8> = (0..repeat)
            .flat_map(|i| source.read(i * stride, piece))
            .collect();
        ends[1].flags.flag(0).store(0, Ordering::Relaxed);
        ends[0].submit(&Commands::default().put(command));
        drive(&mut ends, |e| e[1].raised(0) == 1);
        assert!(
            ends[1].data.read(0, piece * repeat) == expected,
            "{piece}/{stride}"
        );
    }
}

#[test]
fn a_doorbell_holds_the_queue_and_done_tells_the_sender() {
    let mut ends = pair(&[], 4096);
    let local = Memory::new(256); // 0: doorbell, 1: done
    let (bell, done) = (Counter::zeroed(), Counter::zeroed());
    let source = Memory::new(64);
    let mut command = put(source.address(), 64, 0, Some(0));
    command.done_flag = local.address() + 64;
    command.done_counter = &raw const done as u64;
    let batch = Commands::default()
        .wait(local.address(), &bell, None)
        .put(command);
    for round in 1..=3u64 {
        ends[0].submit(&batch); // the same batch again: counters are relative
        let until = Instant::now() + Duration::from_millis(20);
        drive(&mut ends, |_| Instant::now() > until);
        assert_eq!(ends[1].raised(0), round - 1, "the doorbell has not rung");
        assert_eq!(phase(&ends[0].link), QueuePhase::Waiting);
        source.write(0, &[round as u8; 64]);
        local.flag(0).fetch_add(1, Ordering::Release);
        drive(&mut ends, |e| e[1].raised(0) == round);
        assert_eq!(ends[1].data.read(0, 64), [round as u8; 64]);
        drive(&mut ends, |_| {
            local.flag(1).load(Ordering::Acquire) == round
        });
        drive(&mut ends, |e| phase(&e[0].link) == QueuePhase::Idle);
    }
    let state = ends[0].link.poll(1).unwrap();
    assert_eq!((state.accepted, state.completed), (6, 6));
}

#[test]
fn a_wait_with_other_words_fails_the_link_and_says_which() {
    let mut ends = pair(&[], 4096);
    let local = Memory::new(64);
    let counter = Counter::zeroed();
    local.write(8, &77u64.to_le_bytes());
    local.flag(0).store(1, Ordering::Release);
    let batch = Commands::default().wait(local.address(), &counter, Some([78, 0, 0]));
    ends[0].submit(&batch);
    let error = failure(&mut ends[0]);
    assert_eq!(
        (error.status(), error.words()),
        (Status::Mismatch, [77, 0, 0])
    );
}

#[test]
fn an_aborted_flag_ends_a_wait_without_comparing() {
    let mut ends = pair(&[], 4096);
    let local = Memory::new(64);
    let counter = Counter::zeroed();
    let batch = Commands::default().wait(local.address(), &counter, Some([78, 0, 0]));
    ends[0].submit(&batch);
    local.flag(0).fetch_add(1 << 62, Ordering::Release);
    drive(&mut ends, |e| phase(&e[0].link) == QueuePhase::Idle);
}

#[test]
fn a_slow_reader_holds_the_sender_back_and_nothing_is_lost() {
    let set = [("send_buffer", 64 << 10), ("receive_buffer", 64 << 10)];
    let bytes = 8 << 20;
    let mut ends = pair(&set, bytes);
    let source = Memory::new(bytes);
    source.write(0, &Random(9).bytes(bytes));
    let mut batch = Commands::default();
    for part in 0..32 {
        let at = part * (bytes / 32);
        batch = batch.put(put(source.address() + at as u64, bytes / 32, at, Some(0)));
    }
    ends[0].submit(&batch);
    let until = Instant::now() + Duration::from_millis(100);
    while Instant::now() < until {
        ends[0].link.poll(1 << 30).unwrap();
    }
    let state = ends[0].link.poll(1 << 30).unwrap();
    assert_eq!(state.phase, QueuePhase::Waiting);
    assert!(state.completed < 32, "{state:?}");
    // The reader takes a little at a time.
    let start = Instant::now();
    while ends[1].raised(0) < 32 {
        assert!(start.elapsed() < LIMIT);
        ends[1].link.poll(1000).unwrap();
        ends[0].link.poll(1 << 30).unwrap();
    }
    assert!(ends[1].data.read(0, bytes) == source.read(0, bytes));
}

#[test]
fn a_full_queue_takes_a_part() {
    let mut ends = pair(&[], 4096);
    let source = Memory::new(64);
    let local = Memory::new(64);
    let counter = Counter::zeroed();
    let mut batch = Commands::default().wait(local.address(), &counter, None);
    for _ in 0..1500 {
        batch = batch.put(put(source.address(), 8, 0, Some(0)));
    }
    let taken = batch.submit(&mut ends[0].link).unwrap();
    assert!((1..1500).contains(&taken), "{taken}");
    assert_eq!(batch.submit(&mut ends[0].link).unwrap(), 0);
    local.flag(0).store(1, Ordering::Release);
    drive(&mut ends, |e| e[1].raised(0) == u64::from(taken) - 1);
}

#[test]
fn puts_that_leave_their_window_are_refused_at_once() {
    let mut ends = pair(&[], 4096);
    let source = Memory::new(8192);
    for command in [
        put(source.address(), 4097, 0, None),
        put(source.address(), 1, 4096, None),
        put(source.address(), 8, usize::MAX - 3, None),
        put(source.address(), 8, 0, Some(64)),
    ] {
        let right = put(source.address(), 8, 0, Some(0));
        let batch = Commands::default().put(right).put(command);
        let error = batch.submit(&mut ends[0].link).unwrap_err();
        assert_eq!(error.status(), Status::Invalid);
    }
    let mut unknown = put(source.address(), 8, 0, None);
    unknown.dst_window = 1234;
    let batch = Commands::default().put(unknown);
    assert_eq!(
        batch.submit(&mut ends[0].link).unwrap_err().status(),
        Status::Invalid
    );
    // Nothing of those batches was taken, and the link is none the worse.
    ends[0].submit(&Commands::default().put(put(source.address(), 8, 0, Some(0))));
    drive(&mut ends, |e| e[1].raised(0) == 1);
    assert_eq!(ends[0].link.statistics().unwrap().puts_sent, 1);
}

#[test]
fn what_was_submitted_before_the_link_connects_is_sent_after() {
    let mut ends = strangers(&[], 4096, [5, 5]);
    let source = Memory::new(64);
    for end in &mut ends {
        end.submit(&Commands::default().put(put(source.address(), 64, 0, Some(0))));
        assert_eq!(phase(&end.link), QueuePhase::Connecting);
    }
    drive(&mut ends, |e| e.iter().all(|e| e.raised(0) == 1));
}

#[test]
fn a_link_is_reported_and_its_address_is_short() {
    let instance = instance(&[("bandwidth", 5_000_000)], "").unwrap();
    let links = instance.links().unwrap();
    assert_eq!((links.len(), links[0].kind.as_str()), (1, "tcp"));
    assert_eq!(
        (links[0].bytes_per_second, links[0].latency_ns),
        (5_000_000, 25_000)
    );
    assert!(instance.address().unwrap().len() <= 256);
    assert_eq!(size_of::<FlagLine>(), 64);
}

/// What a put to `offset` of the window of data is to become, if the flag of number 0 tells of it.
fn landing(end: &End, to: &Memory, offset: u64, bytes: usize, value: u64) -> Landing {
    let flag = |value| (end.flags.address(), value);
    Landing {
        window: DATA,
        offset,
        to: HostRange {
            address: to.address(),
            bytes: bytes as u64,
        },
        until: flag(value),
        after: (value > 1).then(|| flag(value - 1)),
    }
}

/// In one frame, or in stripes over several connections: nothing of it is in the window, nor of the puts before and after
/// it elsewhere.
#[test]
fn a_put_that_was_asked_for_in_time_lands_elsewhere_and_not_in_its_window() {
    for bytes in [11, 5000, 100 << 10, 1 << 20] {
        let mut ends = pair(&[], 1 << 20);
        let wanted = Random(bytes as u64).bytes(bytes);
        let (source, other, target) = (
            Memory::new(1 << 20),
            Memory::new(1 << 20),
            Memory::new(1 << 20),
        );
        source.write(0, &wanted);
        other.write(0, &vec![7; 1 << 20]);
        drive(&mut ends, |e| {
            e.iter_mut()
                .all(|e| e.link.poll(1).unwrap().phase != QueuePhase::Connecting)
        });
        let asked = landing(&ends[1], &target, 0, bytes, 2);
        assert!(ends[1].link.land(&asked).unwrap());
        let before = put(other.address(), bytes, 0, Some(0));
        ends[0].submit(&Commands::default().put(before));
        drive(&mut ends, |e| e[1].raised(0) == 1);
        ends[0].submit(&Commands::default().put(put(source.address(), bytes, 0, Some(0))));
        drive(&mut ends, |e| e[1].raised(0) == 2);
        assert!(target.read(0, bytes) == wanted, "{bytes} bytes");
        assert!(
            ends[1].data.read(0, bytes) == vec![7; bytes],
            "{bytes} bytes"
        );
        ends[0].submit(&Commands::default().put(put(source.address(), bytes, 0, Some(0))));
        drive(&mut ends, |e| e[1].raised(0) == 3);
        assert!(ends[1].data.read(0, bytes) == wanted, "{bytes} bytes");
    }
}

/// Its bytes stay in the socket meanwhile, so that nothing is copied.
#[test]
fn once_the_host_asked_too_late_a_long_put_waits_for_it_and_not_for_ever() {
    const BYTES: usize = 64 << 10;
    let mut ends = pair(&[], 1 << 20);
    let (source, target) = (Memory::new(BYTES), Memory::new(BYTES));
    let put = put(source.address(), BYTES, 0, Some(0));
    source.write(0, &[1; BYTES]);
    ends[0].submit(&Commands::default().put(put));
    drive(&mut ends, |e| e[1].raised(0) == 1);
    let late = landing(&ends[1], &target, 0, BYTES, 1);
    assert!(!ends[1].link.land(&late).unwrap());

    source.write(0, &[2; BYTES]);
    ends[0].submit(&Commands::default().put(put));
    let end = Instant::now() + Duration::from_millis(50);
    while Instant::now() < end {
        ends[0].link.poll(1 << 20).unwrap();
    }
    for _ in 0..3 {
        ends[1].link.poll(1 << 20).unwrap();
    }
    assert_eq!(ends[1].raised(0), 1, "it did not wait");
    let asked = landing(&ends[1], &target, 0, BYTES, 2);
    assert!(ends[1].link.land(&asked).unwrap());
    drive(&mut ends, |e| e[1].raised(0) == 2);
    assert_eq!(target.read(0, BYTES), [2; BYTES]);
    assert_eq!(ends[1].data.read(0, BYTES), [1; BYTES]);

    source.write(0, &[3; BYTES]);
    ends[0].submit(&Commands::default().put(put));
    drive(&mut ends, |e| e[1].raised(0) == 3);
    assert_eq!(ends[1].data.read(0, BYTES), [3; BYTES]);
}

/// A peer that has said goodbye behind it is not taken for lost: neither the put nor that word waits for the host then.
#[test]
fn a_put_that_waits_lands_when_its_peer_has_gone() {
    const BYTES: usize = 64 << 10;
    for connections in [1, 2] {
        let mut ends = pair(&[("connections", connections)], 1 << 20);
        let (source, target) = (Memory::new(BYTES), Memory::new(BYTES));
        let command = put(source.address(), BYTES, 0, Some(0));
        ends[0].submit(&Commands::default().put(command));
        drive(&mut ends, |e| e[1].raised(0) == 1);
        let late = landing(&ends[1], &target, 0, BYTES, 1);
        assert!(!ends[1].link.land(&late).unwrap());
        source.write(0, &[2; BYTES]);
        ends[0].submit(&Commands::default().put(command));
        let [mut gone, mut stays] = ends;
        let since = Instant::now();
        while gone.link.poll(1 << 20).unwrap().phase != QueuePhase::Idle {
            assert!(since.elapsed() < Duration::from_secs(10), "it was not sent");
        }
        stays.link.poll(1 << 20).unwrap();
        drop(gone);
        // The first wakes the peer's kernel up to what it does not read any more, the second hears of it.
        for _ in 0..2 {
            stays.submit(&Commands::default().put(put(source.address(), 8, 0, Some(1))));
            let _ = stays.link.poll(1 << 20);
            std::thread::sleep(Duration::from_millis(20));
        }
        for _ in 0..20 {
            let _ = stays.link.poll(1 << 20);
        }
        assert_eq!(stays.raised(0), 2, "{connections} connections");
        assert_eq!(stays.data.read(0, BYTES), [2; BYTES]);
    }
}

#[test]
fn what_has_come_or_is_no_window_is_not_landed_elsewhere() {
    let mut ends = pair(&[], 4096);
    let (source, target) = (Memory::new(4096), Memory::new(4096));
    // A part of a put, without a signal of its own: it may be the first of several.
    ends[0].submit(&Commands::default().put(put(source.address(), 8, 64, None)));
    drive(&mut ends, |e| {
        e[1].link.statistics().unwrap().puts_received == 1
    });
    let asked = landing(&ends[1], &target, 0, 128, 1);
    assert!(!ends[1].link.land(&asked).unwrap());
    let asked = landing(&ends[1], &target, 128, 64, 1);
    assert!(ends[1].link.land(&asked).unwrap());
    let asked = landing(&ends[1], &target, 4000, 128, 1);
    assert_eq!(
        ends[1].link.land(&asked).unwrap_err().status(),
        Status::Invalid
    );
}

/// The sender goes on sending: nothing of that may come to what the receiver has back.
#[test]
fn after_an_abort_nothing_lands_elsewhere() {
    let bytes = 8 << 20;
    let mut ends = pair(&[], 8 << 20);
    let (source, target) = (Memory::new(8 << 20), Memory::new(8 << 20));
    source.write(0, &vec![7; 8 << 20]);
    drive(&mut ends, |e| {
        e.iter_mut()
            .all(|e| e.link.poll(1).unwrap().phase != QueuePhase::Connecting)
    });
    let asked = landing(&ends[1], &target, 0, bytes, 1);
    assert!(ends[1].link.land(&asked).unwrap());
    ends[0].submit(&Commands::default().put(put(source.address(), bytes, 0, Some(0))));
    drive(&mut ends, |_| target.read(0, 8 << 20).contains(&7));
    ends[1].link.control().abort();
    let then = target.read(0, 8 << 20);
    assert!(then.contains(&0), "it was not cut short");
    target.write(0, &vec![0; 8 << 20]);
    for _ in 0..1000 {
        let _ = ends[0].link.poll(1 << 20);
        let _ = ends[1].link.poll(1 << 20);
    }
    assert!(!target.read(0, 8 << 20).contains(&7));
    assert!(!ends[1].link.land(&asked).unwrap());
}
