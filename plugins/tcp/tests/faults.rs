//! Peers that die, give up, leave or break the protocol.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use common::*;
use unisono_plugin::{Instance, Link, QueueControl, QueuePhase, Status};

/// An end of rank 1 and a peer made by hand as rank 0, connected.
fn by_hand() -> (End, TcpStream) {
    let instance = instance(&[], "").unwrap();
    let (port, name) = raw::parts(&instance.address().unwrap());
    let identity = Identity { secret: 5, rank: 1 };
    let mut end = End::new(instance, identity, (0, &[]), 4096);
    let mut stream = raw::connect(port);
    let hand = std::thread::spawn(move || {
        let said = raw::greet(&mut stream, name, 5).unwrap();
        raw::welcome(&mut stream, &said, 5);
        stream
    });
    let start = Instant::now();
    while phase(&end.link) == QueuePhase::Connecting {
        assert!(start.elapsed() < LIMIT);
        end.link.poll(1 << 20).unwrap();
    }
    (end, hand.join().unwrap())
}

#[test]
fn the_protocol_is_what_it_is_said_to_be() {
    let (mut end, mut stream) = by_hand();
    let frame = raw::signalled(raw::frame(DATA, 0, 16, 5, 5), FLAGS, 128);
    // One byte at a time: no frame need come whole.
    for byte in frame.iter().chain(b"abcde") {
        stream.write_all(&[*byte]).unwrap();
        end.link.poll(1 << 20).unwrap();
    }
    let start = Instant::now();
    while end.raised(2) == 0 {
        assert!(start.elapsed() < LIMIT);
        end.link.poll(1 << 20).unwrap();
    }
    assert_eq!(end.data.read(15, 7), b"\0abcde\0");
}

#[test]
fn a_frame_that_breaks_the_protocol_fails_that_link_only() {
    let mut bystanders = pair(&[], 4096);
    let outside = "outside window";
    for (bytes, word) in [
        (raw::frame(DATA, 0, 4090, 8, 8), outside),
        (raw::frame(DATA, 0, u64::MAX - 4, 4, 4), outside),
        (raw::frame(4711, 0, 0, 8, 8), outside),
        (
            raw::signalled(raw::frame(DATA, 0, 0, 8, 8), FLAGS, 64 * 64),
            "no flag line",
        ),
        (
            raw::signalled(raw::frame(DATA, 0, 0, 8, 8), FLAGS, 4),
            "no flag line",
        ),
        (raw::frame(DATA, 0, 0, 4, 8), "length"),
        (vec![0x47; 72], "not the unisono tcp protocol"),
    ] {
        let (mut end, mut stream) = by_hand();
        stream.write_all(&bytes).unwrap();
        stream.write_all(&[0xff; 8]).unwrap();
        let error = failure(&mut end);
        assert_eq!(error.status(), Status::Link, "{error}");
        assert!(error.message().contains("rank 0"), "{error}");
        assert!(error.message().contains(word), "{error}");
        assert_eq!(end.data.read(0, 4096), vec![0; 4096], "nothing was written");
        assert_eq!(end.link.poll(1).unwrap_err(), error, "it stays failed");
        assert_eq!(phase(&end.link), QueuePhase::Failed);
    }
    let source = Memory::new(64);
    bystanders[0].submit(&Commands::default().put(put(source.address(), 8, 0, Some(0))));
    drive(&mut bystanders, |e| e[1].raised(0) == 1);
}

#[test]
fn nothing_is_written_to_a_closed_window() {
    let (mut end, mut stream) = by_hand();
    stream.write_all(&raw::frame(DATA, 0, 0, 100, 100)).unwrap();
    stream.write_all(&[1; 50]).unwrap();
    let start = Instant::now();
    while end.data.read(49, 1) != [1] {
        assert!(start.elapsed() < LIMIT);
        end.link.poll(1 << 20).unwrap();
    }
    end.link.close_window(DATA).unwrap();
    stream.write_all(&[2; 50]).unwrap();
    assert_eq!(failure(&mut end).status(), Status::Link);
    assert_eq!(end.data.read(50, 50), [0; 50]);
}

#[test]
fn a_peer_that_just_goes_is_named() {
    let (mut end, stream) = by_hand();
    let name = stream.local_addr().unwrap().to_string();
    drop(stream);
    let error = failure(&mut end);
    assert_eq!(error.status(), Status::Peer);
    assert!(error.message().contains("rank 0"), "{error}");
    assert!(error.message().contains(&name), "{error}");
}

#[test]
fn an_abort_here_is_told_there_and_nothing_moves_any_more() {
    let mut ends = pair(&[], 1 << 20);
    let source = Memory::new(1 << 20);
    let batch = Commands::default().put(put(source.address(), 1 << 20, 0, Some(0)));
    let control = ends[1].link.control();
    control.abort();
    assert_eq!(control.query().phase, QueuePhase::Failed);
    assert_eq!(failure(&mut ends[1]).status(), Status::Aborted);
    assert_eq!(
        batch.submit(&mut ends[1].link).unwrap_err().status(),
        Status::Aborted
    );
    let error = failure(&mut ends[0]);
    assert_eq!(error.status(), Status::Aborted, "{error}");
    assert!(error.message().contains("rank 1"), "{error}");
}

#[test]
fn an_abort_from_another_thread_ends_a_poll() {
    let mut ends = pair(&[], 64 << 20);
    let source = Memory::new(64 << 20);
    let controls = [0, 1].map(|i: usize| ends[i].link.control());
    let mut batch = Commands::default();
    for _ in 0..512 {
        batch = batch.put(put(source.address(), 64 << 20, 0, Some(0)));
    }
    ends[0].submit(&batch);
    std::thread::scope(|scope| {
        for end in &mut ends {
            scope.spawn(move || while end.link.poll(u64::MAX).is_ok() {});
        }
        std::thread::sleep(Duration::from_millis(50));
        let start = Instant::now();
        controls[1].abort();
        assert!(
            start.elapsed() < Duration::from_secs(1),
            "{:?}",
            start.elapsed()
        );
    });
    assert_eq!(controls[0].query().phase, QueuePhase::Failed);
}

#[test]
fn a_peer_that_leaves_in_order_takes_nothing_with_it() {
    let bytes = 2 << 20;
    let [mut first, mut second] = pair(&[], bytes);
    let source = Memory::new(bytes);
    source.write(0, &Random(6).bytes(bytes));
    first.submit(&Commands::default().put(put(source.address(), bytes, 0, Some(0))));
    let start = Instant::now();
    while phase(&first.link) != QueuePhase::Idle {
        assert!(start.elapsed() < LIMIT);
        first.link.poll(1 << 20).unwrap();
        if start.elapsed() > Duration::from_millis(1) {
            second.link.poll(1 << 16).unwrap();
        }
    }
    drop(first);
    for _ in 0..10_000 {
        second.link.poll(1 << 20).unwrap();
    }
    assert_eq!(second.raised(0), 1);
    assert!(second.data.read(0, bytes) == source.read(0, bytes));
    assert_eq!(phase(&second.link), QueuePhase::Idle);
    let batch = Commands::default().put(put(source.address(), 8, 0, None));
    assert_eq!(
        batch.submit(&mut second.link).unwrap_err().status(),
        Status::Peer
    );
}

#[test]
fn a_link_that_nobody_answers_times_out_and_says_so() {
    let set = [("connect_timeout", 1_000_000_000)];
    let mut ends = strangers(&set, 64, [5, 5]);
    for (end, word) in ends.iter_mut().zip(["dialling", "port"]) {
        let error = failure(end);
        assert_eq!(error.status(), Status::Timeout);
        assert!(error.message().contains(word), "{error}");
    }
}

#[test]
fn ends_with_different_secrets_never_connect() {
    let set = [("connect_timeout", 1_500_000_000)];
    let mut ends = strangers(&set, 64, [5, 6]);
    let mut errors = Vec::new();
    let start = Instant::now();
    while errors.len() < 2 {
        assert!(start.elapsed() < LIMIT);
        errors.clear();
        for end in &mut ends {
            errors.extend(end.link.poll(1 << 20).err());
        }
    }
    assert!(
        errors.iter().all(|e| e.status() == Status::Timeout),
        "{errors:?}"
    );
    assert!(ends[1].instance.refused() > 0);
}

/// The other process of the next test: rank 1, until it is killed.
#[test]
#[ignore = "run by `a_killed_process_is_noticed`"]
fn child() {
    let instance = instance(&[], "").unwrap();
    let hex: String = instance
        .address()
        .unwrap()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    println!("\naddress {hex}");
    let identity = Identity { secret: 5, rank: 1 };
    let mut end = End::new(instance, identity, (0, &[]), 4096);
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(30) {
        end.link.poll(1 << 20).unwrap();
    }
}

#[test]
fn a_killed_process_is_noticed() {
    let mut child = Process::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let hex = lines
        .by_ref()
        .take(20)
        .find_map(|line| line.unwrap().strip_prefix("address ").map(str::to_owned))
        .expect("the child says its address");
    let address: Vec<u8> = (0..hex.len() / 2)
        .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
        .collect();
    let identity = Identity { secret: 5, rank: 0 };
    let mut end = End::new(instance(&[], "").unwrap(), identity, (1, &address), 4096);
    let start = Instant::now();
    while phase(&end.link) == QueuePhase::Connecting {
        assert!(start.elapsed() < LIMIT);
        end.link.poll(1 << 20).unwrap();
    }
    child.kill().unwrap();
    let error = failure(&mut end);
    child.wait().unwrap();
    assert_eq!(error.status(), Status::Peer);
    assert!(error.message().contains("rank 1"), "{error}");
}

/// A peer that is there but takes nothing: bytes wait, and the link is not failed for it.
#[test]
fn a_peer_that_reads_nothing_blocks_but_does_not_fail() {
    let (mut end, mut stream) = by_hand();
    let source = Memory::new(8 << 20);
    let mut token = 0x574e_4955u32.to_le_bytes().to_vec();
    token.extend(0u32.to_le_bytes());
    token.extend((64u64 << 20).to_le_bytes());
    end.link.import_window(DATA, &token).unwrap();
    end.submit(&Commands::default().put(put(source.address(), 8 << 20, 0, None)));
    let until = Instant::now() + Duration::from_millis(100);
    while Instant::now() < until {
        end.link.poll(1 << 20).unwrap();
    }
    assert_eq!(phase(&end.link), QueuePhase::Waiting);
    let mut header = [0; 72];
    stream.read_exact(&mut header).unwrap();
    assert_eq!(header[..4], [0x46, 0x55, 1, 0]);
    drop(stream);
    assert_eq!(failure(&mut end).status(), Status::Peer);
}
