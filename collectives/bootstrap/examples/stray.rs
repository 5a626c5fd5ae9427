//! Connections that no job asked for, to show that they cost it nothing: `stray ADDRESS COUNT [SECONDS]` opens COUNT
//! connections to ADDRESS (loopback only), of every hostile kind in turn, and keeps the half-open ones for SECONDS.
//! Prints how many of each kind were made.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// What a stray connection does.
const KINDS: [&str; 5] = ["half-open", "garbage", "http", "begins-like-ours", "closes"];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let address = arguments
        .first()
        .and_then(|text| text.parse::<SocketAddr>().ok())
        .filter(|a| a.ip().is_loopback());
    let count = arguments.get(1).and_then(|text| text.parse::<usize>().ok());
    let (Some(address), Some(count)) = (address, count) else {
        eprintln!("usage: stray 127.0.0.1:PORT COUNT [SECONDS]");
        std::process::exit(2);
    };
    let seconds = arguments
        .get(2)
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    let made = run(address, count, Duration::from_secs(seconds));
    let made: Vec<String> = made
        .iter()
        .map(|(kind, count)| format!("{kind} {count}"))
        .collect();
    println!("{}", made.join(", "));
}

fn run(address: SocketAddr, count: usize, keep: Duration) -> BTreeMap<&'static str, usize> {
    let (mut open, mut made) = (Vec::new(), BTreeMap::new());
    for number in 0..count {
        let kind = KINDS[number % KINDS.len()];
        // The listener may be busy with the others, or gone because its work is done.
        let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_secs(2)) else {
            continue;
        };
        *made.entry(kind).or_insert(0) += 1;
        let said = match kind {
            "garbage" => stream.write_all(&vec![number as u8 | 1; 3000]),
            "http" => stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            // A hello of another job: its magic and version, then anything.
            "begins-like-ours" => {
                stream.write_all(&[b"unisono\x01\x01\0\x01", &[number as u8; 56][..]].concat())
            }
            _ => Ok(()),
        };
        match kind {
            "half-open" => open.push(stream),
            // Whether it was heard or cut off does not matter.
            "begins-like-ours" if said.is_ok() => {
                let _ = stream.set_read_timeout(Some(Duration::from_millis(1)));
                let _ = stream.read(&mut [0; 256]);
            }
            _ => {}
        }
        if open.len() > 2000 {
            open.remove(0);
        }
    }
    std::thread::sleep(keep);
    made
}
