//! Where an instance can be reached: at the interfaces that it was given, and nowhere else.

mod common;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use common::*;
use unisono_plugin::Instance;

/// The addresses at which this process listens at a port, as the system says; the wildcard is
/// `0.0.0.0`.
fn listening(port: u16) -> Vec<IpAddr> {
    let inodes: Vec<String> = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter_map(|link| {
            let text = link.to_str()?.strip_prefix("socket:[")?;
            Some(text.strip_suffix(']')?.to_owned())
        })
        .collect();
    let mut found = Vec::new();
    for table in ["/proc/self/net/tcp", "/proc/self/net/tcp6"] {
        let text = std::fs::read_to_string(table).unwrap_or_default();
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (address, own_port) = fields[1].split_once(':').unwrap();
            let listens = fields[3] == "0A" && inodes.iter().any(|inode| inode == fields[9]);
            if listens && u16::from_str_radix(own_port, 16) == Ok(port) {
                found.push(read(address));
            }
        }
    }
    found.sort();
    found
}

/// Words of the machine's own order, in hexadecimal digits.
fn read(text: &str) -> IpAddr {
    let words: Vec<[u8; 4]> = (0..text.len() / 8)
        .map(|at| u32::from_str_radix(&text[at * 8..at * 8 + 8], 16).unwrap())
        .map(u32::to_ne_bytes)
        .collect();
    match <[u8; 16]>::try_from(words.concat()) {
        Ok(bytes) => IpAddr::from(bytes).to_canonical(),
        Err(_) => IpAddr::from(words[0]),
    }
}

fn port_of(address: &[u8]) -> u16 {
    raw::parts(address).0
}

#[test]
fn loopback_alone_is_loopback_alone() {
    let given = instance(&[], "lo").unwrap();
    let port = port_of(&given.address().unwrap());
    let doors = listening(port);
    assert!(!doors.is_empty());
    assert!(doors.iter().all(IpAddr::is_loopback), "{doors:?}");
    assert!(doors.contains(&Ipv4Addr::LOCALHOST.into()), "{doors:?}");
    // Any other address of 127.0.0.0/8 leads to whoever listens everywhere.
    let elsewhere = SocketAddr::new(Ipv4Addr::new(127, 0, 0, 2).into(), port);
    assert!(TcpStream::connect_timeout(&elsewhere, Duration::from_secs(5)).is_err());
}

#[test]
fn one_network_is_that_network_and_loopback() {
    let given = instance(&[], "127.0.0.0/8").unwrap();
    let doors = listening(port_of(&given.address().unwrap()));
    assert!(doors.iter().all(IpAddr::is_loopback), "{doors:?}");
    let none = instance(&[], "198.51.100.0/24,!lo").map(|_| ());
    assert!(none.is_err(), "no interface of this machine is there");
}

#[test]
fn nothing_said_is_everywhere_at_one_port() {
    let given = instance(&[], "").unwrap();
    let doors = listening(port_of(&given.address().unwrap()));
    assert_eq!(doors.len(), 1, "{doors:?}");
    assert!(doors[0].is_unspecified(), "{doors:?}");
}

#[test]
fn a_range_of_ports_is_searched_for_one_that_is_free_everywhere() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let Some(next) = port.checked_add(1) else {
        return;
    };
    let given = instance(&[("port", port.into()), ("ports", 64)], "lo").unwrap();
    let found = port_of(&given.address().unwrap());
    assert!(found >= next, "{found} after {port}");
    assert!(listening(found).iter().all(IpAddr::is_loopback));
}
