//! From `host:port` to addresses, without waiting longer than allowed.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc;

use crate::environment::split_host_port;
use crate::error::{BootstrapError, Result};
use crate::wait::Wait;

/// A root's address in parts.
///
/// # Errors
/// [`BootstrapError::BadOption`] if it is none.
pub(crate) fn parse(text: &str) -> Result<(&str, u16)> {
    split_host_port(text).ok_or_else(|| BootstrapError::BadOption {
        option: "root",
        why: format!(
            "{text:?} is not host:port, such as node01:4400, 10.0.0.1:4400 or [fd00::1]:4400"
        ),
    })
}

/// Whether these roots all say outright that they are this machine.
pub(crate) fn are_loopback(roots: &str) -> bool {
    roots
        .split(',')
        .all(|root| split_host_port(root).is_some_and(|(host, _)| is_loopback(host)))
}

/// Whether this host says outright that it is this machine. A name that happens to resolve so does not: on some
/// systems a machine's own name does, and the others use the same name to reach it.
pub(crate) fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// The addresses of one root or of several, separated by commas.
pub(crate) fn resolve(roots: &str, wait: &Wait) -> Result<Vec<SocketAddr>> {
    let mut all = Vec::new();
    for root in roots.split(',') {
        all.extend(resolve_one(root, wait)?);
    }
    Ok(all)
}

/// Looks a name up, on a thread of its own because the system may take its time.
fn resolve_one(text: &str, wait: &Wait) -> Result<Vec<SocketAddr>> {
    let (host, port) = parse(text)?;
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let (sender, receiver) = mpsc::channel();
    let name = host.to_owned();
    let lookup = move || {
        let found = (name.as_str(), port)
            .to_socket_addrs()
            .map(|found| found.collect::<Vec<_>>());
        // Nobody listens any more if it took too long.
        let _ = sender.send(found);
    };
    let spawned = std::thread::Builder::new()
        .name("unisono-lookup".to_owned())
        .spawn(lookup);
    spawned.map_err(|e| BootstrapError::io("starting a thread to look up the root's name", e))?;
    loop {
        match receiver.recv_timeout(wait.slice()) {
            Ok(Ok(mut found)) => {
                found.sort_by_key(SocketAddr::is_ipv6);
                found.dedup();
                return Ok(found);
            }
            Ok(Err(e)) => {
                return Err(BootstrapError::io(
                    format!("looking up {host:?}, the root's host"),
                    e,
                ));
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let end = std::io::ErrorKind::BrokenPipe;
                return Err(BootstrapError::io(
                    format!("looking up {host:?}, the root's host"),
                    end,
                ));
            }
            Err(mpsc::RecvTimeoutError::Timeout) if wait.abort.is_raised() => {
                return Err(BootstrapError::Cancelled {
                    what: format!("looking up {host:?}"),
                });
            }
            Err(mpsc::RecvTimeoutError::Timeout) if wait.is_over() => {
                let late = std::io::ErrorKind::TimedOut;
                return Err(BootstrapError::io(
                    format!("looking up {host:?}, the root's host"),
                    late,
                ));
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn literal_addresses_and_names() {
        let wait = Wait::at_most(Duration::from_secs(5));
        assert_eq!(
            resolve("[::1]:7", &wait).unwrap(),
            ["[::1]:7".parse().unwrap()]
        );
        assert!(
            resolve("localhost:7", &wait)
                .unwrap()
                .iter()
                .all(|address| address.ip().is_loopback())
        );
        assert!(resolve("nonsense", &wait).is_err());
        assert!(
            is_loopback("127.0.0.9")
                && is_loopback("localhost")
                && !is_loopback("10.0.0.1")
                && !is_loopback("me")
        );
    }
}
