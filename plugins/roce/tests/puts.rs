//! Puts and signals between two ends that behave, over the stand-in for libibverbs.
//!
//! One test a process: the devices are the environment's.

mod common;

use std::sync::atomic::Ordering;
use std::time::Instant;

use common::devices::Facts;
use common::*;
use unisono_plugin::abi::{CMD_WORDS, Counter, NO_WINDOW};
use unisono_plugin::{Link, QueuePhase};

#[test]
fn puts() {
    let devices = Devices::ethernet(2);
    a_small_put_lands_with_its_words();
    both_directions_at_once_and_nothing_at_all();
    nothing_behind_a_wait_is_sent_before_its_flag();
    sources_are_read_before_their_signal();
    for (lanes, set) in [
        (
            1,
            vec![("devices", "fake0".into()), ("queue_pairs", 1.into())],
        ),
        (2, vec![("queue_pairs", 1.into())]),
        (8, vec![("queue_pairs", 4.into()), ("stripe", 4096.into())]),
        // Nothing is inline, everything is copied, and there is hardly room for it.
        (
            4,
            vec![
                ("inline", 0.into()),
                ("copy_limit", (1 << 30).into()),
                ("staging", (16 << 10).into()),
                ("queue_depth", 16.into()),
                ("credits", 8.into()),
            ],
        ),
        // Long writes in short pieces.
        (4, vec![("message", 4096.into()), ("stripe", 5000.into())]),
    ] {
        random_puts(lanes, &set);
    }
    a_slot_of_the_collectives_goes_over_all_rails(&devices);
}

/// Two rails, one of twice the other's rate: puts of 128 KiB, as the collectives make them, load both so,
/// with the parameters as they are by default.
fn a_slot_of_the_collectives_goes_over_all_rails(devices: &Devices) {
    devices.add(Facts {
        name: "fake2",
        layer: "Ethernet",
        rate: "200 Gb/sec (4X HDR)",
        host: 3,
    });
    let rails = ["fake0", "fake2"];
    let mut ends = pair(&[("devices", "fake0,fake2".into())], 1 << 20);
    let source = Memory::new(128 << 10);
    let before = devices.count_sent(&rails);
    for round in 1..=16 {
        ends[0].submit(&Commands::default().put(put(source.address(), 128 << 10, 0, Some(0))));
        drive(&mut ends, |e| e[1].raised(0) == round);
    }
    let after = devices.count_sent(&rails);
    let sent = [after[0] - before[0], after[1] - before[1]];
    let total = 16 * (128_u64 << 10);
    let all: u64 = sent.iter().sum();
    // Records and credits are small, and little is sent twice.
    assert!(
        all >= total && all < total + total / 8,
        "{sent:?} for {total}"
    );
    let share = sent[1] as f64 / all as f64;
    assert!(
        (0.6..0.74).contains(&share),
        "{sent:?}: {share} on the fast one"
    );
}

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
    drive(&mut ends, |e| e[0].phase() == QueuePhase::Idle);
    let (sent, received) = (
        ends[0].link.statistics().unwrap(),
        ends[1].link.statistics().unwrap(),
    );
    assert_eq!((sent.bytes_sent, sent.puts_sent), (11, 1));
    assert_eq!((received.bytes_received, received.puts_received), (11, 1));
    // Two rails, two queue pairs on each.
    assert_eq!((sent.connections, received.connections), (4, 4));
}

fn both_directions_at_once_and_nothing_at_all() {
    let mut ends = pair(&[], 1 << 20);
    let source = Memory::new(1 << 20);
    source.write(0, &Random(1).bytes(1 << 20));
    for end in &mut ends {
        let nothing = put(0, 0, 0, Some(1));
        let mut only_flag = put(0, 0, 0, Some(1));
        only_flag.dst_window = NO_WINDOW;
        let silent = put(0, 0, 0, None);
        let all = put(source.address(), 1 << 20, 0, Some(0));
        end.submit(
            &Commands::default()
                .put(nothing)
                .put(silent)
                .put(only_flag)
                .put(all),
        );
    }
    drive(&mut ends, |e| e.iter().all(|e| e.raised(0) == 1));
    for end in &ends {
        assert_eq!(end.raised(1), 2);
        assert_eq!(end.data.read(0, 1 << 20), source.read(0, 1 << 20));
    }
}

fn nothing_behind_a_wait_is_sent_before_its_flag() {
    let mut ends = pair(&[], 4096);
    let local = Memory::new(64);
    let counter = Counter { value: 0, seen: 0 };
    let source = Memory::new(64);
    let batch = Commands::default()
        .wait(local.address(), &counter, None)
        .put(put(source.address(), 8, 0, Some(0)));
    ends[0].submit(&batch);
    for _ in 0..2000 {
        for end in &mut ends {
            end.link.poll(1 << 20).unwrap();
        }
    }
    assert_eq!(ends[1].raised(0), 0);
    assert_eq!(ends[0].phase(), QueuePhase::Waiting);
    source.write(0, &7_u64.to_le_bytes());
    local.flag(0).store(1, Ordering::Release);
    drive(&mut ends, |e| e[1].raised(0) == 1);
    assert_eq!(ends[1].data.read(0, 8), 7_u64.to_le_bytes());
}

/// The local signal comes when the source may be reused, also where it was copied.
fn sources_are_read_before_their_signal() {
    for bytes in [8_usize, 200, 5000, 60_000, 200_000, 1 << 20] {
        let mut ends = pair(&[], 1 << 20);
        let (source, local) = (Memory::new(bytes), Memory::new(64));
        let counter = Counter { value: 0, seen: 0 };
        let mut random = Random(bytes as u64);
        for round in 1..=4 {
            let content = random.bytes(bytes);
            source.write(0, &content);
            let command = put(source.address(), bytes, 0, Some(0));
            let command = with_done(command, &local, 0, &counter);
            ends[0].submit(&Commands::default().put(command));
            drive(&mut ends, |_| {
                local.flag(0).load(Ordering::Acquire) == round
            });
            source.write(0, &vec![0xee; bytes]);
            drive(&mut ends, |e| e[1].raised(0) == round);
            assert!(
                ends[1].data.read(0, bytes) == content,
                "{bytes} bytes, round {round}"
            );
        }
    }
}

/// Sizes of all kinds, sources inside and outside of windows: bytes are right when the flag is up, and
/// flags go up in order.
fn random_puts(lanes: u32, set: &[(&str, Value)]) {
    let mut random = Random::seeded();
    let window = 4 << 20;
    let mut ends = pair(set, window);
    assert_eq!(ends[0].link.statistics().unwrap().connections, lanes);
    let outside = Memory::new(window);
    outside.write(0, &random.bytes(window));
    let content = random.bytes(window);
    ends[0].data.write(0, &content);
    let start = Instant::now();
    for round in 0..10u64 {
        let mut batch = Commands::default();
        let mut at = 0;
        let mut placed = Vec::new();
        for _ in 0..random.below(30) + 1 {
            let size = match random.below(4) {
                0 => random.below(300),
                1 => random.below(9000),
                2 => random.below(200_000),
                _ => random.below(1 << 20),
            } as usize;
            if at + size > window {
                break;
            }
            let from = random.below((window - size) as u64 + 1) as usize;
            let source = match random.below(2) {
                0 => &outside,
                _ => &ends[0].data,
            };
            // One in four raises no flag, and must be there when the next is up.
            let flag = (random.below(4) > 0).then_some(placed.len());
            let mut command = put(source.address() + from as u64, size, at, flag);
            if random.below(3) == 0 {
                command.head.flags = CMD_WORDS;
                command.words = [round; 3];
            }
            if flag.is_none() {
                command.head.flags = 0;
            }
            batch = batch.put(command);
            placed.push((at, source.read(from, size), flag.is_some()));
            at += size;
        }
        let last = placed.len();
        batch = batch.put(put(0, 0, 0, Some(last)));
        placed.push((0, Vec::new(), true));
        ends[0].submit(&batch);
        let mut seen = 0;
        drive(&mut ends, |ends| {
            // A later flag is never up before an earlier one, nor before the bytes of any put.
            let up = (seen..placed.len()).rfind(|flag| ends[1].raised(*flag) == 1);
            if let Some(up) = up {
                for (flag, (to, bytes, signals)) in
                    placed.iter().enumerate().take(up + 1).skip(seen)
                {
                    assert_eq!(ends[1].raised(flag), u64::from(*signals), "flag {flag}");
                    assert!(
                        ends[1].data.read(*to, bytes.len()) == *bytes,
                        "round {round}: {} bytes at {to}",
                        bytes.len()
                    );
                }
                seen = up + 1;
            }
            seen == placed.len()
        });
        for flag in 0..placed.len() {
            ends[1].flags.flag(flag).store(0, Ordering::Relaxed);
        }
        drive(&mut ends, |e| e[0].phase() == QueuePhase::Idle);
    }
    let (sent, received) = (
        ends[0].link.statistics().unwrap(),
        ends[1].link.statistics().unwrap(),
    );
    assert_eq!(
        (sent.puts_sent, sent.bytes_sent),
        (received.puts_received, received.bytes_received)
    );
    println!("{lanes} lanes: {:?}", start.elapsed());
}
