//! Who knocks at the listener and has no business there.

mod common;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::*;
use unisono_plugin::{Instance, Link, QueuePhase};

/// One stranger of each kind in turn; some are kept open.
fn knock(kind: u64, port: u16, name: [u8; 16], random: &mut Random) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    let size = random.below(300) as usize;
    match kind % 7 {
        0 => stream.write_all(&random.bytes(size))?,
        1 => stream.write_all(b"GET / HTTP/1.1\r\nHost: me\r\n\r\n")?,
        2 => stream.shutdown(Shutdown::Write)?,
        3 => {} // half-open: says nothing
        4 => stream.write_all(&raw::hello(name)[..random.below(80) as usize])?,
        5 => stream.write_all(&raw::hello(random.bytes(16).try_into().unwrap()))?,
        _ => {
            // The right hello, the wrong proof: it may get as far as the challenge.
            let _ = raw::greet(&mut stream, name, 666);
            let _ = stream.read(&mut [0; 64]);
        }
    }
    Ok(stream)
}

/// How many: `UNISONO_TCP_STRANGERS` says another number.
fn count() -> u64 {
    let set = std::env::var("UNISONO_TCP_STRANGERS").ok();
    set.and_then(|n| n.parse().ok()).unwrap_or(600)
}

/// Links are made and used while strangers of every kind knock, and keep some connections open.
#[test]
fn strangers_do_no_harm_while_links_are_made_and_used() {
    let total = count();
    println!("{total} strangers of 10000");
    let bytes = 1 << 20;
    let source = Memory::new(bytes);
    source.write(0, &Random(2).bytes(bytes));
    let instances = [0, 1].map(|_| instance(&[], "").unwrap());
    let addresses = [0, 1].map(|i: usize| instances[i].address().unwrap());
    let (port, name) = raw::parts(&addresses[1]);
    let done = AtomicBool::new(false);
    let mut rank = 0;
    let mut ends = instances.map(|instance| {
        let identity = Identity { secret: 5, rank };
        let peer = 1 - rank;
        rank += 1;
        End::new(instance, identity, (peer, &addresses[peer as usize]), bytes)
    });
    let mut made = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random(total);
            let mut open = std::collections::VecDeque::new();
            for kind in 0..total {
                if let Ok(stream) = knock(kind, port, name, &mut random) {
                    open.push_back(stream);
                }
                if open.len() > 200 {
                    open.pop_front();
                }
            }
            done.store(true, Ordering::Release);
        });
        let start = Instant::now();
        while !done.load(Ordering::Acquire) || made == 0 {
            assert!(start.elapsed() < LIMIT + Duration::from_millis(total * 20));
            for end in &mut ends {
                end.renew();
            }
            let tokens = [ends[1].tokens.clone(), ends[0].tokens.clone()];
            for (end, tokens) in ends.iter_mut().zip(&tokens) {
                end.import(tokens);
            }
            let batch = Commands::default().put(put(source.address(), bytes, 0, Some(0)));
            ends[0].submit(&batch);
            drive(&mut ends, |e| e[1].raised(0) == 1);
            assert!(ends[1].data.read(0, bytes) == source.read(0, bytes));
            made += 1;
        }
    });
    let refused = ends[1].link.statistics().unwrap().refused;
    println!("{made} links made, {refused} refused");
    assert!(refused > total / 4, "{refused} of {total}");
}

#[test]
fn an_end_that_comes_before_its_link_is_there_waits_for_it() {
    let instances = [0, 1].map(|_| instance(&[], "").unwrap());
    let address = instances[1].address().unwrap();
    let [first, second] = instances;
    let mut dialer = End::new(first, Identity { secret: 5, rank: 0 }, (1, &address), 64);
    // The listener serves another link meanwhile, which parks the early hello.
    let other = Identity { secret: 5, rank: 1 };
    let mut busy = second
        .create_link(unisono_plugin::LinkRequest {
            peer: 0,
            device: unisono_plugin::DeviceId::default(),
            channel: channel(&other, 2, 1234),
            peer_address: &[],
        })
        .unwrap();
    let until = Instant::now() + Duration::from_millis(50);
    while Instant::now() < until {
        dialer.link.poll(1).unwrap();
        busy.poll(1).unwrap();
    }
    let mut acceptor = End::new(second, Identity { secret: 5, rank: 1 }, (0, &[]), 64);
    let start = Instant::now();
    while phase(&acceptor.link) == QueuePhase::Connecting {
        assert!(
            start.elapsed() < Duration::from_secs(1),
            "it had to dial again"
        );
        acceptor.link.poll(1).unwrap();
        dialer.link.poll(1).unwrap();
    }
}

#[test]
fn only_the_chosen_interfaces_are_open() {
    let error = instance(&[], "!lo,no-such-card").unwrap_err();
    assert!(error.message().contains("interfaces"), "{error}");
    assert!(instance(&[], "10.0.0.0/99").is_err());
    let at_home = instance(&[], "no-such-card").unwrap();
    // Only loopback is left.
    assert!(at_home.address().unwrap().len() <= 36 + 5 + 17);
}

#[test]
fn a_range_of_ports_serves_several_processes() {
    let base = instance(&[], "").unwrap().port();
    let set = [("port", i64::from(base.min(65_000))), ("ports", 500)];
    let both = [instance(&set, "").unwrap(), instance(&set, "").unwrap()];
    assert!(both[0].port() < both[1].port());
    let one = [("port", i64::from(both[0].port())), ("ports", 1)];
    let error = instance(&one, "").unwrap_err();
    assert!(error.message().contains("cannot listen"), "{error}");
}
