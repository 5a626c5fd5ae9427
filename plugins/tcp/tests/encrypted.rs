//! Links that are encrypted, and who tries to be in between.

mod common;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use common::*;
use unisono_plugin::{Instance, Link, LinkRequest, Status};

const ENCRYPT: (&str, i64) = ("encrypt", 1);
/// Bytes of the dialer's before TLS.
const SPOKEN: usize = 80 + 64;
/// How long a link that cannot come about is given.
const SOON: Duration = Duration::from_millis(300);

/// Somebody on the path: passes bytes on as `change` leaves them. `change` has the direction (0:
/// from the dialer), the bytes, and how many went before them.
struct Between {
    port: u16,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl Between {
    fn new(to: u16, change: impl Fn(usize, usize, &mut [u8]) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, change) = (Arc::clone(&seen), Arc::new(change));
        // Its threads end with the sockets, or with the test's process.
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Ok(far) = TcpStream::connect(("127.0.0.1", to)) else {
                    return;
                };
                for (direction, from, to) in [(0, &near, &far), (1, &far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let (log, change) = (Arc::clone(&log), Arc::clone(&change));
                    thread::spawn(move || pass(direction, from, to, &log, &*change));
                }
            }
        });
        Self { port, seen }
    }
}

fn pass(
    direction: usize,
    mut from: TcpStream,
    mut to: TcpStream,
    log: &Mutex<Vec<u8>>,
    change: &(impl Fn(usize, usize, &mut [u8]) + ?Sized),
) {
    let (mut bytes, mut passed) = (vec![0; 1 << 16], 0);
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        change(direction, passed, &mut bytes[..count]);
        passed += count;
        log.lock().unwrap().extend(&bytes[..count]);
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

/// Two ends with somebody between them.
fn parted(
    encrypt: bool,
    bytes: usize,
    limit: Duration,
    change: impl Fn(usize, usize, &mut [u8]) + Send + Sync + 'static,
) -> ([End; 2], Between) {
    let set = [
        ("encrypt", i64::from(encrypt)),
        ("connections", 1),
        ("connect_timeout", limit.as_nanos() as i64),
    ];
    let [first, second] = [0, 1].map(|_| instance(&set, "").unwrap());
    let theirs = first.address().unwrap();
    let mut address = second.address().unwrap();
    let between = Between::new(raw::parts(&address).0, change);
    address[2..4].copy_from_slice(&between.port.to_le_bytes());
    let identity = |rank| Identity { secret: 5, rank };
    let mut ends = [
        End::new(first, identity(0), (1, &address), bytes),
        End::new(second, identity(1), (0, &theirs), bytes),
    ];
    let tokens = [ends[1].tokens.clone(), ends[0].tokens.clone()];
    for (end, tokens) in ends.iter_mut().zip(&tokens) {
        end.import(tokens);
    }
    (ends, between)
}

/// Polls both until the dialer's link fails.
fn dialer_fails(ends: &mut [End; 2]) -> unisono_plugin::Error {
    let start = Instant::now();
    loop {
        let _ = ends[1].link.poll(1 << 20);
        if let Err(error) = ends[0].link.poll(1 << 20) {
            return error;
        }
        assert!(start.elapsed() < LIMIT, "no failure in {LIMIT:?}");
    }
}

#[test]
fn puts_of_every_size_arrive_over_several_connections() {
    let bytes = 3 << 20;
    let mut ends = pair(&[ENCRYPT, ("connections", 3)], bytes);
    let source = Memory::new(bytes);
    source.write(0, &Random(1).bytes(bytes));
    let mut commands = Commands::default();
    let (mut at, mut puts) = (0, 0);
    for size in [1, 71, 72, 4095, 16_384, 16_385, 65_536, 131_072, 1 << 20] {
        commands = commands.put(put(source.address() + at as u64, size, at, Some(0)));
        at += size;
        puts += 1;
    }
    for way in [0, 1] {
        ends[way].submit(&commands);
    }
    drive(&mut ends, |e| e.iter().all(|end| end.raised(0) == puts));
    for end in &ends {
        assert!(end.data.read(0, at) == source.read(0, at));
    }
}

#[test]
fn who_listens_on_the_path_sees_nothing() {
    let text = b"what is between us is ours alone";
    for encrypt in [false, true] {
        let (mut ends, between) = parted(encrypt, 4096, LIMIT, |_, _, _| {});
        let source = Memory::new(4096);
        source.write(0, text);
        let batch = Commands::default().put(put(source.address(), 4096, 0, Some(0)));
        ends[0].submit(&batch);
        drive(&mut ends, |e| e[1].raised(0) == 1);
        let seen = between.seen.lock().unwrap();
        assert!(seen.len() > 4096);
        let found = seen.windows(text.len()).any(|run| run == text);
        assert_eq!(found, !encrypt, "it is there if it is not encrypted");
    }
}

#[test]
fn keys_that_were_swapped_on_the_path_are_refused() {
    // The nonce is the key: the last 32 bytes of the hello, or of the challenge.
    for (direction, last) in [(0, 79), (1, 39)] {
        let (mut ends, _between) = parted(true, 64, SOON, move |way, before, bytes| {
            if way == direction && (before..before + bytes.len()).contains(&last) {
                bytes[last - before] ^= 0x55;
            }
        });
        let error = dialer_fails(&mut ends);
        assert_eq!(error.status(), Status::Timeout);
        let stand = error.message().contains("0 connections stand");
        assert!(stand, "{error}");
    }
}

#[test]
fn what_is_changed_on_the_path_ends_the_link() {
    // In TLS's own handshake, and far behind it.
    for (at, limit) in [(SPOKEN + 40, SOON), (500_000, LIMIT)] {
        let bytes = 1 << 20;
        let (mut ends, _between) = parted(true, bytes, limit, move |way, before, bytes| {
            if way == 0 && (before..before + bytes.len()).contains(&at) {
                bytes[at - before] ^= 1;
            }
        });
        let source = Memory::new(bytes);
        let batch = Commands::default().put(put(source.address(), bytes, 0, Some(0)));
        ends[0].submit(&batch);
        let error = dialer_fails(&mut ends);
        assert_eq!(ends[1].raised(0), 0, "{error}");
        assert!(error.message().contains("rank 1"), "{error}");
    }
}

#[test]
fn a_peer_that_does_not_encrypt_is_refused_and_told_by_name() {
    let [with, without] = [1, 0].map(|encrypt| instance(&[("encrypt", encrypt)], "").unwrap());
    let addresses = [with.address().unwrap(), without.address().unwrap()];
    for (own, peer, rank) in [(&with, &addresses[1], 0), (&without, &addresses[0], 1)] {
        let identity = Identity { secret: 5, rank };
        let error = own
            .create_link(LinkRequest {
                peer: 1 - rank,
                device: unisono_plugin::DeviceId::default(),
                channel: channel(&identity, 2, 99),
                peer_address: peer,
            })
            .unwrap_err();
        let says = "rank 0 encrypts its links and rank 1 does not";
        assert!(error.message().contains(says), "{error}");
    }
    // One that comes all the same, with the right secret, gets no challenge.
    let (port, name) = raw::parts(&addresses[0]);
    let mut acceptor = End::new(with, Identity { secret: 5, rank: 1 }, (0, &[]), 64);
    let knocking = thread::spawn(move || raw::greet(&mut raw::connect(port), name, 5));
    let start = Instant::now();
    while acceptor.link.statistics().unwrap().refused == 0 {
        acceptor.link.poll(1).unwrap();
        assert!(start.elapsed() < LIMIT);
    }
    assert!(knocking.join().unwrap().is_err());
}

#[test]
fn a_wrong_secret_is_refused() {
    let set = [ENCRYPT, ("connect_timeout", SOON.as_nanos() as i64)];
    let mut ends = strangers(&set, 64, [5, 6]);
    let error = dialer_fails(&mut ends);
    assert_eq!(error.status(), Status::Timeout);
    assert!(ends[1].link.statistics().unwrap().refused > 0);
}
