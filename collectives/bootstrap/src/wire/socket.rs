//! Sockets that never block.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{UnixListener, UnixStream};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use crate::error::{BootstrapError, Result};

/// Connections that the system may hold ready for us to accept; a flood of strangers fills it, hence the size.
const BACKLOG: i32 = 4096;

/// Listens on all addresses of this machine, or on loopback alone. Port 0 takes a free one.
pub(crate) fn listen(loopback: bool, port: u16) -> Result<TcpListener> {
    let try_bind = |address: IpAddr| -> Result<TcpListener, Errno> {
        let address = SocketAddr::new(address, port);
        let family = if address.is_ipv6() {
            AddressFamily::INET6
        } else {
            AddressFamily::INET
        };
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags(), None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        if address.is_ipv6() {
            sockopt::set_ipv6_v6only(&socket, false)?;
        }
        rustix::net::bind(&socket, &address)?;
        rustix::net::listen(&socket, BACKLOG)?;
        Ok(TcpListener::from(socket))
    };
    let bound = match loopback {
        true => try_bind(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        false => match try_bind(IpAddr::V6(Ipv6Addr::UNSPECIFIED)) {
            Err(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL) => {
                try_bind(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
            }
            other => other,
        },
    };
    bound.map_err(|e| BootstrapError::io(format!("listening on port {port}"), e))
}

/// Begins to connect; the socket becomes writable once that has succeeded or failed.
pub(crate) fn connect(address: SocketAddr) -> std::io::Result<OwnedFd> {
    let family = if address.is_ipv6() {
        AddressFamily::INET6
    } else {
        AddressFamily::INET
    };
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags(), None)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket),
        Err(e) => Err(e.into()),
    }
}

/// An IPv4 address that came in over an IPv6 socket, as IPv4.
pub(crate) fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Connects to a name in the abstract namespace of this node's Unix sockets.
pub(crate) fn connect_abstract(name: &str) -> std::io::Result<OwnedFd> {
    let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
    let stream = UnixStream::connect_addr(&address)?;
    stream.set_nonblocking(true)?;
    Ok(stream.into())
}

/// Takes a name in the abstract namespace; it is free again once the last copy of the socket is closed.
pub(crate) fn listen_abstract(name: &str) -> std::io::Result<UnixListener> {
    let listener =
        UnixListener::bind_addr(&std::os::unix::net::SocketAddr::from_abstract_name(name)?)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn flags() -> SocketFlags {
    SocketFlags::NONBLOCK | SocketFlags::CLOEXEC
}
