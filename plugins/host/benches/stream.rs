//! What a stream costs through the contract: commands, and signals between two threads.
//!
//! `cargo bench -p unisono-plugin-host --bench stream`
#![allow(unsafe_code, reason = "calls the tables of the contract")]

#[path = "../tests/host/contract.rs"]
#[allow(dead_code, reason = "shared with the tests, which need more of it")]
mod contract;

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use unisono_plugin::Pack;
use unisono_plugin::abi::{memory_kind, queue_state};

use contract::{Host, copy, signal, wait};

/// Pairs of a SIGNAL and the WAIT that it satisfies.
fn commands(c: &mut Criterion) {
    let host = Host::with(&[("queue_bytes", 65536)]);
    let memory = host.alloc(memory_kind::SIGNAL, 4096, 0, 0).unwrap();
    let bell = host.bell();
    let base = memory.base();
    let mut group = c.benchmark_group("submit+poll");
    for (name, bell) in [("", 0), (" with bell", bell.base())] {
        for pairs in [1, 2, 32] {
            let mut pack = Pack::new();
            for _ in 0..pairs {
                pack.signal(0, signal(base, base + 64, bell, [0; 3]));
                pack.wait(0, wait(base, base + 80, [0; 3]));
            }
            memory.store(0, 0);
            (64..96).step_by(8).for_each(|at| memory.store(at, 0));
            let mut stream = host.stream();
            group.throughput(Throughput::Elements(2 * pairs));
            group.bench_function(format!("{} commands{name}", 2 * pairs), |b| {
                b.iter(|| {
                    stream.submit(black_box(&pack)).unwrap();
                    assert_eq!(stream.poll().unwrap().state, queue_state::IDLE);
                });
            });
        }
    }
    group.finish();
    let mut stream = host.stream();
    let mut pack = Pack::new();
    pack.wait(0, wait(base + 128, base + 192, [0; 3]));
    stream.submit(&pack).unwrap();
    c.bench_function("poll of a stream that waits", |b| {
        b.iter(|| stream.poll().unwrap())
    });
}

/// A round trip of SIGNAL and WAIT between two threads that poll, with and without data.
fn ping_pong(c: &mut Criterion) {
    let host = Host::open();
    let bell = host.bell();
    let mut group = c.benchmark_group("round trip");
    for bytes in [0_u64, 64, 4096, 65536] {
        let memory = host
            .alloc(memory_kind::DATA, 4096 + 4 * 65536, 0, 0)
            .unwrap();
        let base = memory.base();
        let ring = bell.base();
        let side = move |own: u64, peer: u64, data: u64| {
            let (send, receive) = (base + 1024 + own, base + 1040 + own);
            let mut pack = Pack::new();
            if bytes > 0 {
                pack.copy(
                    0,
                    copy(base + 4096 + data + 65536, base + 4096 + data, bytes),
                );
            }
            pack.signal(0, signal(base + peer, send, ring, [0; 3]));
            pack.wait(0, wait(base + own, receive, [0; 3]));
            pack
        };
        let pack = side(0, 64, 0);
        let other = side(64, 0, 2 * 65536);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut stream = host.stream();
                // Answers: the wait of one round comes with the signal of the next.
                let mut first = Pack::new();
                first.wait(0, wait(base + 64, base + 1040 + 64, [0; 3]));
                stream.submit(&first).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    if stream.poll().unwrap().state == queue_state::IDLE {
                        stream.submit(&other).unwrap();
                    }
                }
                stream.control().abort();
            });
            let mut stream = host.stream();
            group.bench_function(format!("{bytes} bytes each way"), |b| {
                b.iter_custom(|rounds| {
                    let start = Instant::now();
                    for _ in 0..rounds {
                        stream.submit(&pack).unwrap();
                        while stream.poll().unwrap().state != queue_state::IDLE {}
                    }
                    start.elapsed()
                });
            });
            stop.store(true, Ordering::Relaxed);
        });
    }
    group.finish();
}

criterion_group!(benches, commands, ping_pong);
criterion_main!(benches);
