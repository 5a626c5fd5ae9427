//! Sockets: nonblocking, closed on exec, and set up for bulk data at low latency.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use super::silence::PROBES;
use super::window;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, ipproto, sockopt};

/// Which congestion control a socket asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// The system's own, unless that is bbr: its pacing costs a quarter of the bandwidth between
    /// processes of one machine and helps little in a rack, so cubic or reno is taken instead where
    /// the system lets us.
    Auto,
    /// The system's own, whatever it is.
    System,
    /// This one, where the system lets us.
    Named(String),
}

/// How sockets are set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// `SO_SNDBUF` in bytes; 0 leaves the system's tuning on.
    pub send_buffer: usize,
    /// `SO_RCVBUF` in bytes; 0 leaves the system's tuning on, but where the path is short.
    pub receive_buffer: usize,
    /// Congestion control.
    pub congestion: Congestion,
    /// A path that answers no probe for this long is lost. Probes are sent while nothing else is.
    pub keepalive: Duration,
    /// A peer that takes nothing for this long, while bytes for it wait, is gone
    /// (`TCP_USER_TIMEOUT`). It must be the longer one: a process that is alive but does not look,
    /// in a debugger say, takes nothing either once its buffers are full.
    pub stall: Duration,
}

impl Options {
    /// Before the socket connects: what must stand when the windows are agreed.
    fn before(&self, socket: &OwnedFd) {
        // The system caps these silently, and the link works with any: no error is one.
        if self.send_buffer > 0 {
            let _ = sockopt::set_socket_send_buffer_size(socket, self.send_buffer);
        }
        if self.receive_buffer > 0 {
            let _ = sockopt::set_socket_recv_buffer_size(socket, self.receive_buffer);
        }
        let wanted: &[&str] = match &self.congestion {
            Congestion::System => &[],
            Congestion::Named(name) => &[name.as_str()],
            Congestion::Auto => match sockopt::tcp_congestion(socket) {
                Ok(name) if name.starts_with("bbr") => &["cubic", "reno"],
                _ => &[],
            },
        };
        let _ = wanted
            .iter()
            .any(|name| sockopt::set_tcp_congestion(socket, name).is_ok());
    }

    /// Once it is connected.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn after(&self, socket: &OwnedFd) -> io::Result<()> {
        sockopt::set_tcp_nodelay(socket, true)?;
        // Whole seconds, and so many that enough of them were lost by then; see `silence`.
        let probe = self.keepalive.as_secs() / u64::from(PROBES);
        let probe = Duration::from_secs(probe.max(1));
        sockopt::set_socket_keepalive(socket, true)?;
        sockopt::set_tcp_keepidle(socket, probe)?;
        sockopt::set_tcp_keepintvl(socket, probe)?;
        sockopt::set_tcp_keepcnt(socket, PROBES.into())?;
        let stall = u32::try_from(self.stall.as_millis()).unwrap_or(u32::MAX);
        sockopt::set_tcp_user_timeout(socket, stall)?;
        if self.receive_buffer == 0 {
            window::fit(socket);
        }
        Ok(())
    }
}

fn stream_socket(family: AddressFamily) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    Ok(socket)
}

/// Listeners at the first of `ports` ports from `port` (0: any) that is free at all of `addresses`;
/// without any, one on every address, IPv6 and IPv4 alike.
///
/// # Errors
/// The system's; `AddrInUse` if no port of the range is free.
pub(crate) fn listen(
    options: &Options,
    addresses: &[IpAddr],
    port: u16,
    ports: u16,
) -> io::Result<(Vec<OwnedFd>, u16)> {
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    let (tries, stride) = if port == 0 {
        (16, 0)
    } else {
        (ports.max(1), 1)
    };
    for step in 0..tries {
        let Some(port) = port.checked_add(step * stride) else {
            break;
        };
        let bound = match addresses {
            [] => listen_everywhere(options, port).map(|socket| vec![socket]),
            _ => listen_at_all(options, addresses, port),
        };
        match bound {
            Ok(sockets) => {
                let port = port_of(&sockets[0])?;
                return Ok((sockets, port));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn listen_everywhere(options: &Options, port: u16) -> io::Result<OwnedFd> {
    let any6 = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port);
    let any4 = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port);
    match listen_at(options, any6) {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => listen_at(options, any4),
        other => other,
    }
}

/// One listener an address, all at the port that the first of them gets. An address that has gone
/// meanwhile is passed over.
fn listen_at_all(options: &Options, addresses: &[IpAddr], port: u16) -> io::Result<Vec<OwnedFd>> {
    let mut port = port;
    let mut sockets = Vec::with_capacity(addresses.len());
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match listen_at(options, SocketAddr::new(*address, port)) {
            Ok(socket) => {
                port = port_of(&socket)?;
                sockets.push(socket);
            }
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => last = error,
            Err(error) => return Err(error),
        }
    }
    if sockets.is_empty() {
        return Err(last);
    }
    Ok(sockets)
}

fn port_of(socket: &OwnedFd) -> io::Result<u16> {
    Ok(SocketAddr::try_from(rustix::net::getsockname(socket)?)?.port())
}

fn listen_at(options: &Options, address: SocketAddr) -> io::Result<OwnedFd> {
    let socket = stream_socket(family(address))?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, false)?;
    }
    // A port of a range must be free again as soon as its last owner is gone.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    options.before(&socket); // accepted sockets inherit it
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, 1024)?;
    Ok(socket)
}

fn family(address: SocketAddr) -> AddressFamily {
    if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    }
}

/// The next connection that waits at a listener.
///
/// # Errors
/// `WouldBlock` if none does.
pub(crate) fn accept(listener: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::accept_with(listener, flags)?)
}

/// Begins to connect; [`connected`] tells how it went once the socket is writable.
///
/// # Errors
/// The system's, where it is known at once.
pub(crate) fn connect(options: &Options, to: SocketAddr) -> io::Result<OwnedFd> {
    let socket = stream_socket(family(to))?;
    options.before(&socket);
    match rustix::net::connect(&socket, &to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

/// Whether a connection that was begun stands: `None` while it is under way.
///
/// # Errors
/// Why it failed.
pub(crate) fn connected(socket: &OwnedFd) -> io::Result<bool> {
    sockopt::socket_error(socket)??;
    match rustix::net::getpeername(socket) {
        Ok(peer) => Ok(peer.is_some()),
        Err(rustix::io::Errno::NOTCONN) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The address of ours that a peer connected to.
pub(crate) fn local_ip(socket: impl AsFd) -> Option<IpAddr> {
    let name = rustix::net::getsockname(socket).ok()?;
    let address = SocketAddr::try_from(name).ok()?;
    Some(address.ip().to_canonical())
}

/// Whether a connection goes from an address to the same one: it does not leave the machine, and nothing is under way
/// but what was not read yet.
pub(crate) fn is_within_machine(socket: &OwnedFd) -> bool {
    let peer = rustix::net::getpeername(socket).ok().flatten();
    let peer = peer.and_then(|name| SocketAddr::try_from(name).ok());
    peer.is_some_and(|peer| local_ip(socket) == Some(peer.ip().to_canonical()))
}

/// The other end's address, for messages.
pub(crate) fn peer_name(socket: &OwnedFd) -> String {
    let name = rustix::net::getpeername(socket).ok().flatten();
    match name.and_then(|name| SocketAddr::try_from(name).ok()) {
        Some(address) => SocketAddr::new(address.ip().to_canonical(), address.port()).to_string(),
        None => "an unknown address".to_owned(),
    }
}

/// Throws away what has come in, at most 4 MiB: closing a socket with unread input makes the system
/// send a reset, which can destroy what we sent last before the peer has read it.
pub(crate) fn discard_input(socket: BorrowedFd<'_>) {
    let mut scratch = [0; 16 << 10];
    for _ in 0..256 {
        match rustix::net::recv(socket, &mut scratch, RecvFlags::DONTWAIT) {
            Ok((_, length)) if length > 0 => {}
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_set_up_as_asked() {
        let options = Options {
            send_buffer: 100 << 10,
            receive_buffer: 0,
            congestion: Congestion::Named("reno".to_owned()),
            keepalive: Duration::from_secs(8),
            stall: Duration::from_secs(30),
        };
        let (listeners, port) = listen(&options, &[], 0, 1).unwrap();
        let listener = &listeners[0];
        let to = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
        let dialled = connect(&options, to).unwrap();
        let accepted = accept(listener).unwrap();
        assert!(connected(&dialled).unwrap());
        assert_eq!(local_ip(&accepted), Some(to.ip()));
        assert_eq!(peer_name(&dialled), to.to_string());
        for socket in [&dialled, &accepted] {
            options.after(socket).unwrap();
            assert!(sockopt::tcp_nodelay(socket).unwrap());
            assert!(sockopt::socket_keepalive(socket).unwrap());
            assert_eq!(
                sockopt::tcp_keepidle(socket).unwrap(),
                Duration::from_secs(2)
            );
            assert_eq!(sockopt::tcp_user_timeout(socket).unwrap(), 30_000);
            assert_eq!(sockopt::socket_send_buffer_size(socket).unwrap(), 200 << 10);
            // Linux keeps as much again for its own use.
            assert_eq!(sockopt::socket_recv_buffer_size(socket).unwrap(), 416 << 10);
            assert_eq!(sockopt::tcp_congestion(socket).unwrap(), "reno");
            let flags = rustix::io::fcntl_getfd(socket).unwrap();
            assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
            let flags = rustix::fs::fcntl_getfl(socket).unwrap();
            assert!(flags.contains(rustix::fs::OFlags::NONBLOCK));
        }
    }
}
