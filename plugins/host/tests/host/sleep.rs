//! Sleeping and waking inside one process, by futex and by descriptor.

use std::sync::atomic::AtomicU32;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::BorrowedFd;
use rustix::thread::futex;
use unisono_plugin::Pack;
use unisono_plugin::abi::{Sleep, memory_kind, queue_state, sleep, status};

use crate::contract::{Host, Stream, signal, wait};

const LIMIT: Duration = Duration::from_secs(20);

/// Sleeps as a host would; a sleep that is not ended fails the test.
pub fn sleep_once(armed: &Sleep) {
    let timeout = Timespec {
        tv_sec: LIMIT.as_secs() as i64,
        tv_nsec: 0,
    };
    match armed.how {
        sleep::READY => {}
        sleep::FUTEX => {
            // SAFETY: the plugin says that the futex is there until `disarm`.
            let word = unsafe { &*(armed.futex as usize as *const AtomicU32) };
            let slept = futex::wait(
                word,
                futex::Flags::empty(),
                armed.futex_value,
                Some(&timeout),
            );
            assert_ne!(
                slept,
                Err(rustix::io::Errno::TIMEDOUT),
                "nobody ended the sleep"
            );
        }
        sleep::FD => {
            // SAFETY: the plugin says that the descriptor is open until `disarm`.
            let fd = unsafe { BorrowedFd::borrow_raw(armed.fd) };
            let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
            assert_eq!(armed.fd_events, u32::from(PollFlags::IN.bits()));
            assert_eq!(
                poll(&mut fds, Some(&timeout)),
                Ok(1),
                "nobody ended the sleep"
            );
        }
        other => panic!("a way to sleep that was not allowed: {other}"),
    }
}

/// Polls until the stream is idle, sleeping between; how often it slept.
pub fn drive(stream: &mut Stream, way: u32) -> u32 {
    let start = Instant::now();
    let mut sleeps = 0;
    while stream.poll().unwrap().state != queue_state::IDLE {
        assert!(start.elapsed() < LIMIT, "no end");
        let armed = stream.arm(way).unwrap();
        sleeps += u32::from(armed.how != sleep::READY);
        sleep_once(&armed);
        stream.disarm();
    }
    sleeps
}

#[test]
fn a_signal_ends_a_sleep() {
    let host = Host::open();
    let bell = host.bell();
    for way in [sleep::FUTEX, sleep::FD] {
        let memory = host.alloc(memory_kind::SIGNAL, 4096, 0, 0).unwrap();
        let base = memory.base();
        let rounds = 300;
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut stream = host.stream();
                let mut pack = Pack::new();
                pack.wait(0, wait(base, base + 128, [0; 3]));
                pack.signal(0, signal(base + 64, base + 144, bell.base(), [0; 3]));
                for _ in 0..rounds {
                    stream.submit(&pack).unwrap();
                    drive(&mut stream, way);
                }
            });
            let mut stream = host.stream();
            let mut pack = Pack::new();
            pack.signal(0, signal(base, base + 160, bell.base(), [0; 3]));
            pack.wait(0, wait(base + 64, base + 176, [0; 3]));
            for _ in 0..rounds {
                stream.submit(&pack).unwrap();
                drive(&mut stream, way);
            }
        });
        assert_eq!((memory.load(0), memory.load(64)), (rounds, rounds));
    }
}

/// Sleepers of both ways at once share the bell.
#[test]
fn all_sleepers_wake() {
    let host = Host::open();
    let bell = host.bell();
    let memory = host.alloc(memory_kind::SIGNAL, 4096, 0, 0).unwrap();
    let base = memory.base();
    thread::scope(|scope| {
        for i in 0..4_u64 {
            scope.spawn(move || {
                let mut stream = host.stream();
                let mut pack = Pack::new();
                pack.wait(0, wait(base + 64 * i, base + 1024 + 16 * i, [0; 3]));
                for _ in 0..50 {
                    stream.submit(&pack).unwrap();
                    drive(
                        &mut stream,
                        if i % 2 == 0 { sleep::FUTEX } else { sleep::FD },
                    );
                }
            });
        }
        let mut stream = host.stream();
        for round in 0..50 {
            let mut pack = Pack::new();
            for i in 0..4 {
                let counter = base + 2048 + 16 * i;
                pack.signal(0, signal(base + 64 * i, counter, bell.base(), [0; 3]));
            }
            stream.submit(&pack).unwrap();
            assert_eq!(stream.poll().unwrap().state, queue_state::IDLE);
            if round % 5 == 0 {
                thread::sleep(Duration::from_millis(1));
            }
        }
    });
}

#[test]
fn an_event_and_an_abort_end_a_sleep() {
    let host = Host::open();
    let event = host.event();
    let mut stream = host.stream();
    let mut pack = Pack::new();
    pack.wait_event(0, event.command());
    stream.submit(&pack).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(20));
            event.signal();
        });
        assert!(drive(&mut stream, sleep::FUTEX) > 0);
    });
    let memory = host.alloc(memory_kind::SIGNAL, 4096, 0, 0).unwrap();
    let mut pack = Pack::new();
    pack.wait(0, wait(memory.base(), memory.base() + 64, [0; 3]));
    stream.submit(&pack).unwrap();
    assert_eq!(stream.poll().unwrap().state, queue_state::WAITING);
    let control = stream.control();
    let aborter = thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        control.abort();
    });
    // Other tests ring the same bell: a sleep may end for nothing.
    let start = Instant::now();
    let error = loop {
        match stream.poll() {
            Ok(state) => assert_eq!(state.state, queue_state::WAITING),
            Err(error) => break error,
        }
        assert!(start.elapsed() < LIMIT, "the abort is not seen");
        sleep_once(&stream.arm(sleep::FD).unwrap());
        stream.disarm();
    };
    assert_eq!(error.status, status::ABORTED);
    aborter.join().unwrap();
}

#[test]
fn who_can_go_on_does_not_sleep() {
    let host = Host::open();
    let memory = host.alloc(memory_kind::SIGNAL, 4096, 0, 0).unwrap();
    let base = memory.base();
    let mut stream = host.stream();
    let mut pack = Pack::new();
    pack.wait(0, wait(base, base + 64, [0; 3]));
    stream.submit(&pack).unwrap();
    assert_eq!(
        stream.arm(sleep::FUTEX).unwrap().how,
        sleep::READY,
        "nothing was polled yet"
    );
    assert_eq!(stream.poll().unwrap().state, queue_state::WAITING);
    assert_eq!(
        stream.arm(sleep::WAKER).map(|_| ()).unwrap_err().status,
        status::UNSUPPORTED
    );
    assert_eq!(stream.arm(sleep::FUTEX).unwrap().how, sleep::FUTEX);
    stream.disarm();
    memory.store(0, 1);
    assert_eq!(
        stream.arm(sleep::FUTEX).unwrap().how,
        sleep::READY,
        "the flag was raised"
    );
}
