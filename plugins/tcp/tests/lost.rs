//! Several connections that are lost at once, and attempts that one end takes for the connection while the
//! other has given them up.

mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::network::{alone, loopback};
use common::*;
use unisono_plugin::{Instance, Link, QueuePhase};

/// Carries connections to a port of loopback. The far end of one can be cut off without the near one
/// hearing of it.
#[derive(Default)]
struct Carrier(Mutex<Vec<(TcpStream, TcpStream)>>);

impl Carrier {
    fn start(to: u16) -> (u16, Arc<Self>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let carrier = Arc::new(Self::default());
        let all = Arc::clone(&carrier);
        std::thread::spawn(move || {
            for near in listener.incoming() {
                let near = near.unwrap();
                let far = TcpStream::connect(("127.0.0.1", to)).unwrap();
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    std::thread::spawn(move || std::io::copy(&mut from, &mut to));
                }
                all.0.lock().unwrap().push((near, far));
            }
        });
        (port, carrier)
    }

    /// Cuts the far end of a connection.
    fn cut_far(&self, which: usize) {
        let _ = self.0.lock().unwrap()[which].1.shutdown(Shutdown::Both);
    }
}

fn standing(end: &mut End) -> u32 {
    end.link.statistics().unwrap().connections
}

/// Polls one end until so many connections stand.
fn until_standing(end: &mut End, count: u32) {
    let start = Instant::now();
    while standing(end) != count {
        assert!(start.elapsed() < LIMIT, "{} connections", standing(end));
        end.link.poll(1 << 20).unwrap();
    }
}

/// Both ends of a link of so many connections, the dialing end first, over a carrier.
fn carried(connections: i64, recovery: i64) -> ([End; 2], Arc<Carrier>) {
    let set = [
        ("connections", connections),
        ("recover_local", 1),
        ("keepalive", 60_000_000_000),
        ("recovery", recovery),
    ];
    let instances = [0, 1].map(|_| instance(&set, "").unwrap());
    let mut addresses = [0, 1].map(|i: usize| instances[i].address().unwrap());
    let (real, _) = raw::parts(&addresses[1]);
    let (port, carrier) = Carrier::start(real);
    addresses[1][2..4].copy_from_slice(&port.to_le_bytes());
    let mut rank = 0;
    let mut ends = instances.map(|instance| {
        let identity = Identity { secret: 5, rank };
        let peer = 1 - rank;
        rank += 1;
        End::new(instance, identity, (peer, &addresses[peer as usize]), 4096)
    });
    let tokens = ends.each_ref().map(|end| end.tokens.clone());
    ends[0].import(&tokens[1]);
    ends[1].import(&tokens[0]);
    let all = connections as u32;
    drive(&mut ends, |e| e.iter_mut().all(|e| standing(e) == all));
    drive(&mut ends, |e| {
        e.iter().all(|e| phase(&e.link) == QueuePhase::Idle)
    });
    (ends, carrier)
}

/// The accepting end asks for both over the third, in one breath; the dialing end knows of neither. It hears
/// of one, and of the other when that one is back.
#[test]
fn two_connections_that_only_the_accepting_end_lost() {
    let (mut ends, carrier) = carried(3, 2_000_000_000);
    carrier.cut_far(0);
    carrier.cut_far(1);
    until_standing(&mut ends[1], 1);
    for _ in 0..1000 {
        ends[1].link.poll(1 << 20).unwrap();
    }
    // What it said lies there whole before the dialing end looks.
    std::thread::sleep(Duration::from_millis(100));
    drive(&mut ends, |e| e.iter_mut().all(|e| standing(e) == 3));
}

/// One of two connections is lost with nothing on it, and the peer is busy elsewhere for longer than another
/// may take to come: the link waits for it, as it would if nothing were lost.
#[test]
fn a_connection_that_nobody_needs_waits_for_a_busy_peer() {
    let (mut ends, carrier) = carried(2, 500_000_000);
    carrier.cut_far(0);
    until_standing(&mut ends[1], 1);
    let until = Instant::now() + Duration::from_secs(2);
    while Instant::now() < until {
        ends[1].link.poll(1 << 20).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    drive(&mut ends, |e| e.iter_mut().all(|e| standing(e) == 2));
}

/// As above, after a few short puts, which the peer keeps count of without saying so at once.
#[test]
fn a_connection_whose_last_puts_nobody_confirmed_waits_for_a_busy_peer() {
    let (mut ends, carrier) = carried(2, 500_000_000);
    let source = Memory::new(64);
    for _ in 0..3 {
        ends[1].submit(&Commands::default().put(put(source.address(), 64, 0, Some(0))));
    }
    drive(&mut ends, |e| e[0].raised(0) == 3);
    carrier.cut_far(0);
    until_standing(&mut ends[1], 1);
    let until = Instant::now() + Duration::from_secs(3);
    while Instant::now() < until {
        ends[1].link.poll(1 << 20).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    drive(&mut ends, |e| e.iter_mut().all(|e| standing(e) == 2));
    ends[1].submit(&Commands::default().put(put(source.address(), 64, 0, Some(0))));
    drive(&mut ends, |e| e[0].raised(0) == 4);
    for end in &mut ends {
        assert_eq!(end.link.statistics().unwrap().recovered, 1);
    }
}

/// A put lies on the connection that is lost, and neither process looks at the link for longer than another
/// may take to come.
#[test]
fn time_in_which_nobody_looks_does_not_count() {
    let (mut ends, carrier) = carried(2, 500_000_000);
    let source = Memory::new(64);
    ends[1].submit(&Commands::default().put(put(source.address(), 64, 0, Some(0))));
    for _ in 0..100 {
        ends[1].link.poll(1 << 20).unwrap();
    }
    carrier.cut_far(0);
    until_standing(&mut ends[1], 1);
    std::thread::sleep(Duration::from_secs(2));
    // This end looks a little before the other does.
    let until = Instant::now() + Duration::from_millis(100);
    while Instant::now() < until {
        ends[1].link.poll(1 << 20).unwrap();
    }
    drive(&mut ends, |e| e[0].raised(0) == 1);
    drive(&mut ends, |e| e.iter_mut().all(|e| standing(e) == 2));
}

/// Rank 1, made by hand.
struct Hand(TcpListener);

impl Hand {
    fn new() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        Self(listener)
    }

    /// The next connection of an end that dials.
    fn accept(&self, end: &mut End) -> TcpStream {
        let start = Instant::now();
        loop {
            assert!(start.elapsed() < LIMIT, "it does not dial");
            end.link.poll(1 << 20).unwrap();
            if let Ok((stream, _)) = self.0.accept() {
                stream.set_nonblocking(true).unwrap();
                return stream;
            }
        }
    }

    /// The next bytes that an end says; none if it has given the connection up.
    fn hear(stream: &mut TcpStream, bytes: usize, end: &mut End) -> Option<Vec<u8>> {
        let (mut said, start) = (vec![0; bytes], Instant::now());
        let mut got = 0;
        while got < bytes {
            assert!(start.elapsed() < LIMIT, "it says nothing");
            end.link.poll(1 << 20).unwrap();
            match stream.read(&mut said[got..]) {
                Ok(0) => return None,
                Ok(more) => got += more,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
        Some(said)
    }

    /// Up to the dialer's proof; hello and challenge are returned.
    fn meet(stream: &mut TcpStream, end: &mut End) -> Option<Vec<u8>> {
        let mut said = Self::hear(stream, 80, end)?;
        stream.write_all(&raw::challenge()).ok()?;
        Self::hear(stream, 64, end)?;
        said.extend(raw::challenge());
        Some(said)
    }

    /// The rest, and the first word.
    fn admit(stream: &mut TcpStream, said: &[u8]) -> std::io::Result<()> {
        stream.write_all(&raw::accepts(said, 5))?;
        stream.write_all(&raw::resume())
    }
}

/// The path comes back just when the peer, which has been slow to look, takes the new connection: the
/// dialing end has left that, and the peer ends the old one. Nobody has died.
#[test]
fn an_attempt_that_is_left_too_late_is_made_again() {
    if !alone() {
        return;
    }
    let set = [("connections", 1), ("rail_timeout", 500_000_000)];
    let hand = Hand::new();
    let mut address = instance(&set, "").unwrap().address().unwrap();
    let port = hand.0.local_addr().unwrap().port();
    address[2..4].copy_from_slice(&port.to_le_bytes());
    let identity = Identity { secret: 5, rank: 0 };
    let mut end = End::new(instance(&set, "").unwrap(), identity, (1, &address), 4096);
    let mut token = 0x574e_4955u32.to_le_bytes().to_vec();
    token.extend(0u32.to_le_bytes());
    token.extend(4096u64.to_le_bytes());
    end.link.import_window(DATA, &token).unwrap();

    let mut old = hand.accept(&mut end);
    let said = Hand::meet(&mut old, &mut end).expect("a proof");
    Hand::admit(&mut old, &said).unwrap();
    Hand::hear(&mut old, 72, &mut end).expect("a first word");
    let source = Memory::new(64);
    // Where the old path is back before there is a proof, nothing was left too late.
    let mut tries = 0;
    let (mut new, said) = loop {
        loopback(false);
        end.submit(&Commands::default().put(put(source.address(), 8, 0, None)));
        until_standing(&mut end, 0);
        loopback(true);
        let mut new = hand.accept(&mut end);
        let said = Hand::meet(&mut new, &mut end);
        until_standing(&mut end, 1);
        if let Some(said) = said {
            break (new, said);
        }
        tries += 1;
        assert!(tries < 5, "the old path is always sooner back");
    };
    drop(old);
    // It may be refused already: a slow peer learns that only later.
    let _ = Hand::admit(&mut new, &said);
    let mut again = hand.accept(&mut end);
    let said = Hand::meet(&mut again, &mut end).expect("a proof");
    Hand::admit(&mut again, &said).unwrap();
    Hand::hear(&mut again, 72, &mut end).expect("a first word");
    let frame = Hand::hear(&mut again, 80, &mut end).expect("the put");
    assert_eq!(frame[..3], [0x46, 0x55, 1]);
}

/// The other side of it: what the dialing end gave up is no sign of its death.
#[test]
fn a_connection_that_was_given_up_before_its_first_word_is_no_end() {
    let instance = instance(&[("connections", 1)], "").unwrap();
    let (port, name) = raw::parts(&instance.address().unwrap());
    let mut end = End::new(instance, Identity { secret: 5, rank: 1 }, (0, &[]), 4096);
    // Each attempt polls the end beside it until the hand is done.
    let attempt = |generation: u16, goes_on: bool, end: &mut End| {
        let mut stream = raw::connect(port);
        let hand = std::thread::spawn(move || {
            let hello = raw::later_hello(name, generation);
            let said = raw::greet_again(&mut stream, hello, 5).unwrap();
            if goes_on {
                raw::welcome(&mut stream, &said, 5);
            }
            stream
        });
        while !hand.is_finished() {
            end.link.poll(1 << 20).unwrap();
        }
        hand.join().unwrap()
    };
    let mut old = attempt(0, true, &mut end);
    until_standing(&mut end, 1);
    let start = Instant::now();
    drop(attempt(1, false, &mut end));
    old.set_read_timeout(Some(Duration::from_millis(1)))
        .unwrap();
    let mut rest = [0; 4096];
    while !matches!(old.read(&mut rest), Ok(0)) {
        assert!(start.elapsed() < LIMIT, "it was not taken");
        end.link.poll(1 << 20).unwrap();
    }
    for _ in 0..100 {
        end.link.poll(1 << 20).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut new = attempt(2, true, &mut end);
    let frame = raw::signalled(raw::frame(DATA, 0, 16, 5, 5), FLAGS, 128);
    new.write_all(&[frame.as_slice(), b"abcde"].concat())
        .unwrap();
    while end.raised(2) == 0 {
        assert!(start.elapsed() < LIMIT);
        end.link.poll(1 << 20).unwrap();
    }
}

/// Puts that the kernel took are complete, but their link is not quiet as long as it knows that they lie
/// on a connection that is lost: whoever ends it then would take them along.
#[test]
fn a_link_in_trouble_is_not_quiet_before_all_has_gone() {
    if !alone() {
        return;
    }
    let set = [
        ("connections", 1),
        ("recover_local", 1),
        ("rail_timeout", 500_000_000),
    ];
    let [mut first, mut second] = pair(&set, 4096);
    let source = Memory::new(64);
    loopback(false);
    first.submit(&Commands::default().put(put(source.address(), 8, 0, Some(0))));
    until_standing(&mut first, 0);
    let start = Instant::now();
    let state = first.link.poll(1 << 20).unwrap();
    assert_eq!(state.accepted, state.completed);
    assert_eq!(state.phase, QueuePhase::Waiting);
    loopback(true);
    while phase(&first.link) != QueuePhase::Idle {
        assert!(start.elapsed() < LIMIT);
        first.link.poll(1 << 20).unwrap();
        second.link.poll(1 << 20).unwrap();
    }
    drop(first);
    while second.raised(0) == 0 {
        assert!(start.elapsed() < LIMIT);
        second.link.poll(1 << 20).unwrap();
    }
}
