//! Ports for ranks that are told where the first of them listens.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// Below where Linux begins to deal out ports by itself: nobody who asks for any port is given one of these.
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;

/// An address of this machine where nothing listens, and that no other call of this process has given out.
///
/// # Panics
/// None is free.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Processes that run at once begin at different places.
    let begin = (std::process::id() * 61 % u32::from(COUNT)) as u16;
    (0..COUNT)
        .map(|_| {
            let at = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
            SocketAddr::from((Ipv4Addr::LOCALHOST, FIRST + at))
        })
        .find(|address| TcpListener::bind(address).is_ok())
        .expect("a free port")
}
