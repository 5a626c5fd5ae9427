//! Listening sockets that strangers may reach, too.

use std::collections::VecDeque;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{SocketFlags, sockopt};

use super::poller::Token;

/// How long a connection may take to prove itself.
pub(crate) const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);
/// How many connections may be unproven at once; the next one pushes the oldest out.
pub(crate) const MAX_UNPROVEN: usize = 256;

/// A socket that listens.
#[derive(Debug)]
pub(crate) enum Listener {
    /// Reached from anywhere.
    Tcp(TcpListener),
    /// Reached from this node; with `true` only by processes of this user.
    Unix(UnixListener, bool),
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Tcp(listener) => listener.as_fd(),
            Listener::Unix(listener, _) => listener.as_fd(),
        }
    }
}

/// What accepting gave.
#[derive(Debug)]
pub(crate) enum Accepted {
    /// A connection and where it comes from.
    Connection(OwnedFd, String),
    /// One of another user's, closed again.
    WrongUser(String),
    /// None for now.
    None,
    /// None for want of descriptors: one must be freed.
    Exhausted,
}

impl Listener {
    /// Accepts one connection.
    pub(crate) fn accept(&self) -> Accepted {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        match (rustix::net::acceptfrom_with(self.as_fd(), flags), self) {
            (Ok((socket, address)), Listener::Tcp(_)) => {
                let address =
                    address.and_then(|address| std::net::SocketAddr::try_from(address).ok());
                let place = address.map_or_else(
                    || "an unknown address".to_owned(),
                    |a| super::socket::plain(a).to_string(),
                );
                // Only a delay is lost if the option cannot be set.
                let _ = sockopt::set_tcp_nodelay(&socket, true);
                Accepted::Connection(socket, place)
            }
            (Ok((socket, _)), Listener::Unix(_, same_user)) => match peer(&socket) {
                (place, true) => Accepted::Connection(socket, place),
                (place, false) if *same_user => Accepted::WrongUser(place),
                (place, false) => Accepted::Connection(socket, place),
            },
            (Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM), _) => {
                Accepted::Exhausted
            }
            // Everything else concerns the one connection that was to be accepted.
            (Err(_), _) => Accepted::None,
        }
    }
}

/// Who is at the other end of a Unix socket, and whether it is the same user.
pub(crate) fn peer(socket: impl AsFd) -> (String, bool) {
    match sockopt::socket_peercred(socket) {
        Ok(peer) => {
            let place = format!(
                "process {} of user {}",
                peer.pid.as_raw_nonzero(),
                peer.uid.as_raw()
            );
            (place, peer.uid == rustix::process::geteuid())
        }
        Err(e) => (format!("an unknown process ({e})"), false),
    }
}

/// The connections that have not proven themselves yet, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Unproven(VecDeque<(Token, Instant)>);

impl Unproven {
    /// Adds a connection; returns the one that it pushes out.
    pub(crate) fn add(&mut self, token: Token, now: Instant) -> Option<Token> {
        self.0.push_back((token, now));
        if self.0.len() > MAX_UNPROVEN {
            self.oldest()
        } else {
            None
        }
    }

    /// Takes the oldest out.
    pub(crate) fn oldest(&mut self) -> Option<Token> {
        self.0.pop_front().map(|(token, _)| token)
    }

    /// Takes one out that proved itself or ended.
    pub(crate) fn remove(&mut self, token: Token) {
        if let Ok(index) = self.0.binary_search_by_key(&token, |entry| entry.0) {
            self.0.remove(index);
        }
    }

    /// Takes one out whose time is up.
    pub(crate) fn overdue(&mut self, now: Instant) -> Option<Token> {
        let &(token, since) = self.0.front()?;
        (now.saturating_duration_since(since) >= HANDSHAKE_LIMIT).then(|| {
            self.0.pop_front();
            token
        })
    }

    /// When the next one's time is up.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.0.front().map(|&(_, since)| since + HANDSHAKE_LIMIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_first() {
        let (mut unproven, start) = (Unproven::default(), Instant::now());
        for token in 0..MAX_UNPROVEN as u64 {
            assert_eq!(unproven.add(token, start), None);
        }
        unproven.remove(7);
        assert_eq!(unproven.add(1000, start), None);
        assert_eq!(unproven.add(1001, start), Some(0));
        assert_eq!(unproven.overdue(start + HANDSHAKE_LIMIT / 2), None);
        assert_eq!(unproven.overdue(start + HANDSHAKE_LIMIT), Some(1));
        assert_eq!(unproven.next_deadline(), Some(start + HANDSHAKE_LIMIT));
    }
}
