//! The link against a plain socket, in the same run: bandwidth of large puts, and the round trip of
//! 8 bytes. Both over loopback between two threads, both spinning.
//!
//! `cargo bench -p unisono-plugin-tcp`

#[path = "../tests/common/mod.rs"]
mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{Commands, End, Memory, pair, put};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use unisono_plugin::Link;

const BULK: usize = 64 << 20;

/// A connected pair of plain sockets, set up as a careful program would.
fn sockets() -> [TcpStream; 2] {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let first = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let second = listener.accept().unwrap().0;
    for stream in [&first, &second] {
        stream.set_nodelay(true).unwrap();
        let current = rustix::net::sockopt::tcp_congestion(stream).unwrap();
        if current.starts_with("bbr") {
            let _ = rustix::net::sockopt::set_tcp_congestion(stream, "cubic")
                .or_else(|_| rustix::net::sockopt::set_tcp_congestion(stream, "reno"));
        }
        stream.set_nonblocking(true).unwrap();
    }
    [first, second]
}

fn send(stream: &mut TcpStream, mut bytes: &[u8], stop: &AtomicBool) -> bool {
    while !bytes.is_empty() {
        match stream.write(&bytes[..bytes.len().min(1 << 20)]) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if stop.load(Ordering::Relaxed) {
                    return false;
                }
                std::hint::spin_loop();
            }
            Err(_) => return false,
        }
    }
    true
}

fn receive(stream: &mut TcpStream, mut bytes: &mut [u8], stop: &AtomicBool) -> bool {
    while !bytes.is_empty() {
        let most = bytes.len().min(1 << 20);
        match stream.read(&mut bytes[..most]) {
            Ok(0) => return false,
            Ok(got) => bytes = &mut bytes[got..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if stop.load(Ordering::Relaxed) {
                    return false;
                }
                std::hint::spin_loop();
            }
            Err(_) => return false,
        }
    }
    true
}

/// Answers every message of `bytes` with one of `answer` bytes, until stopped.
fn echo_socket(mut stream: TcpStream, bytes: usize, answer: usize, stop: &AtomicBool) {
    let mut buffer = vec![0; bytes];
    while receive(&mut stream, &mut buffer, stop) {
        if !send(&mut stream, &buffer[..answer], stop) {
            return;
        }
    }
}

/// Answers every put with one of `answer` bytes, until stopped.
fn echo_link(end: &mut End, answer: usize, stop: &AtomicBool) {
    let source = Memory::new(answer);
    let batch = Commands::default().put(put(source.address(), answer, 0, Some(0)));
    let mut seen = end.raised(0);
    while !stop.load(Ordering::Relaxed) {
        if end.link.poll(1 << 20).is_err() {
            return;
        }
        if end.raised(0) > seen {
            seen += 1;
            end.submit(&batch);
        }
    }
}

fn round_socket(stream: &mut TcpStream, message: &[u8], answer: &mut [u8], stop: &AtomicBool) {
    assert!(send(stream, message, stop));
    assert!(receive(stream, answer, stop));
}

fn round_link(end: &mut End, batch: &Commands) {
    let seen = end.raised(0);
    end.submit(batch);
    while end.raised(0) == seen {
        end.link.poll(1 << 20).unwrap();
    }
}

fn compare(c: &mut Criterion, group: &str, bytes: usize) {
    let answer = bytes.min(8);
    let mut group = c.benchmark_group(group);
    group.throughput(Throughput::Bytes(bytes as u64));
    group.measurement_time(Duration::from_secs(4));
    group.sample_size(if bytes > 8 { 20 } else { 100 });
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let [mut here, there] = sockets();
        let stop = &stop;
        scope.spawn(move || echo_socket(there, bytes, answer, stop));
        let (message, mut reply) = (vec![1; bytes], vec![0; answer]);
        group.bench_function("socket", |b| {
            b.iter(|| round_socket(&mut here, &message, &mut reply, stop));
        });
        stop.store(true, Ordering::Relaxed);
    });
    for connections in [1, 2, 4] {
        let stop = AtomicBool::new(false);
        let mut ends = pair(&[("connections", connections)], bytes);
        let source = Memory::new(bytes);
        source.write(0, &vec![1; bytes]);
        let batch = Commands::default().put(put(source.address(), bytes, 0, Some(0)));
        let [here, there] = &mut ends;
        std::thread::scope(|scope| {
            scope.spawn(|| echo_link(there, answer, &stop));
            group.bench_function(format!("link/{connections}"), |b| {
                b.iter(|| round_link(here, &batch));
            });
            stop.store(true, Ordering::Relaxed);
        });
    }
    group.finish();
}

/// Rounds in turn, so that both meet the same machine: prints the ratio of the medians.
fn ratio(_: &mut Criterion) {
    for (name, bytes, rounds) in [("8 B", 8, 20_000), ("64 MiB", BULK, 30)] {
        let stop = AtomicBool::new(false);
        let [mut here, there] = sockets();
        let mut ends = pair(&[], bytes);
        let source = Memory::new(bytes);
        source.write(0, &vec![1; bytes]);
        let batch = Commands::default().put(put(source.address(), bytes, 0, Some(0)));
        let [first, second] = &mut ends;
        let (message, mut reply) = (vec![1; bytes], [0; 8]);
        let turn = AtomicBool::new(false); // true: the link's
        let mut medians = Vec::new();
        for link in [false, true, false, true] {
            stop.store(false, Ordering::Relaxed);
            turn.store(link, Ordering::Relaxed);
            let peer = there.try_clone().unwrap();
            let mut times: Vec<Duration> = std::thread::scope(|scope| {
                let (stop, second) = (&stop, &mut *second);
                scope.spawn(move || match link {
                    true => echo_link(second, 8, stop),
                    false => echo_socket(peer, bytes, 8, stop),
                });
                let times = (0..rounds)
                    .map(|_| {
                        let start = Instant::now();
                        match link {
                            true => round_link(first, &batch),
                            false => round_socket(&mut here, &message, &mut reply, stop),
                        }
                        start.elapsed()
                    })
                    .collect();
                stop.store(true, Ordering::Relaxed);
                times
            });
            times.sort();
            medians.push(times[times.len() / 2]);
        }
        println!("{name}: socket, link, socket, link: {medians:?}");
    }
}

fn benches(c: &mut Criterion) {
    compare(c, "8 B round trip", 8);
    compare(c, "64 MiB", BULK);
}

criterion_group!(all, ratio, benches);
criterion_main!(all);
