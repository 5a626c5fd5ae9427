//! The receive buffer of a connection whose path is short.
//!
//! The kernel's tuning lets it grow to megabytes as long as the reader keeps up, also where next to nothing is ever
//! under way. What comes then has left the caches before it is read.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::net::sockopt;

use super::info::tcp_info;
use super::interfaces::{interfaces, nic_bytes_per_second};
use super::socket::{is_within_machine, local_ip};

/// What a short path's buffer is fixed at, in bytes: any process may have as much (the default of
/// `net.core.rmem_max`), and it fits into a core's own cache.
const SHORT: u64 = 208 << 10;

/// Bytes per second that one connection moves at most, where its card's rate is not known: a core copies them.
const ONE_CORE: u64 = 5_000_000_000;

/// Fixes the buffer of a connection that has just been made over a path too short to have as much under way. Any
/// other is left to the kernel.
pub(super) fn fit(socket: &OwnedFd) {
    let rtt = || {
        let micros = tcp_info(socket.as_fd())?.tcpi_min_rtt;
        // The kernel's words for none.
        let known = (1..u32::MAX).contains(&micros);
        known.then(|| Duration::from_micros(micros.into()))
    };
    if is_within_machine(socket) || rtt().is_some_and(|rtt| is_short(rtt, card_rate(socket))) {
        // Refused, it is as before.
        let _ = sockopt::set_socket_recv_buffer_size(socket, SHORT as usize);
    }
}

/// Bytes per second of the card that the connection goes by, if it is known. What a virtual one says is a number
/// that somebody chose: veth's 10 Gbit/s may lead to a card of 100.
fn card_rate(socket: &OwnedFd) -> Option<u64> {
    let here = local_ip(socket)?;
    let cards = interfaces().ok()?;
    let card = cards.iter().find(|card| card.address == here)?;
    let is_hardware = Path::new("/sys/class/net")
        .join(&card.name)
        .join("device")
        .exists();
    nic_bytes_per_second([card.name.as_str()]).filter(|_| is_hardware)
}

/// With room for twice what the card could have under way, if its rate is known.
fn is_short(rtt: Duration, card: Option<u64>) -> bool {
    let rate = card.map_or(ONE_CORE, |rate| 2 * rate);
    u128::from(rate) * rtt.as_nanos() / 1_000_000_000 <= u128::from(SHORT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_short_by_its_time_and_its_rate() {
        let gigabits = |rate: u64| Some(rate * 125_000_000);
        let after = Duration::from_micros;
        assert!(is_short(after(50), gigabits(10)));
        assert!(is_short(after(80), gigabits(10)));
        assert!(!is_short(after(90), gigabits(10)));
        assert!(!is_short(after(50), gigabits(100)));
        assert!(!is_short(after(10_000), gigabits(1)));
        assert!(is_short(after(40), None));
        assert!(!is_short(after(50), None));
    }
}
