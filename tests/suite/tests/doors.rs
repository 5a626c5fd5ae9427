//! Where the ranks of a job can be reached.

use std::net::{IpAddr, Ipv4Addr};

use unisono_tests::threads;

/// The addresses at which this process listens, as the system says.
fn listening() -> Vec<IpAddr> {
    let sockets: Vec<String> = std::fs::read_dir("/proc/self/fd")
        .expect("descriptors")
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
            let (Some(address), Some(state), Some(inode)) =
                (fields.get(1), fields.get(3), fields.get(9))
            else {
                continue;
            };
            if *state == "0A" && sockets.iter().any(|socket| socket == inode) {
                found.push(address_of(address));
            }
        }
    }
    found
}

/// Words of the machine's own order, in hexadecimal digits, and a port.
fn address_of(text: &str) -> IpAddr {
    let digits = text.split(':').next().unwrap_or_default();
    let words: Vec<[u8; 4]> = (0..digits.len() / 8)
        .filter_map(|at| u32::from_str_radix(&digits[at * 8..at * 8 + 8], 16).ok())
        .map(u32::to_ne_bytes)
        .collect();
    match <[u8; 16]>::try_from(words.concat()) {
        Ok(bytes) => IpAddr::from(bytes).to_canonical(),
        Err(_) => Ipv4Addr::from(words[0]).into(),
    }
}

/// Whoever is on the network need not even be refused.
#[test]
fn a_job_of_one_machine_listens_at_loopback_alone() {
    let doors = threads(
        3,
        |_| {},
        |world| {
            let doors = listening();
            world.finalize().expect("finalize");
            doors
        },
    );
    let doors = doors.concat();
    // The control channel's and a link's, at least.
    assert!(doors.len() >= 2, "{doors:?}");
    assert!(doors.iter().all(IpAddr::is_loopback), "{doors:?}");
}
