//! A network of a test's own, whose loopback can be taken down, and sockets whose path is cut.

use std::net::TcpStream;
use std::os::fd::AsRawFd;

/// Switches the loopback of this thread's namespace.
pub fn loopback(up: bool) {
    // SAFETY: a socket of our own and a request that lives through the calls.
    unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        assert!(fd >= 0);
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        assert_eq!(libc::ioctl(fd, libc::SIOCGIFFLAGS, &raw mut request), 0);
        let flag = libc::IFF_UP as libc::c_short;
        if up {
            request.ifr_ifru.ifru_flags |= flag;
        } else {
            request.ifr_ifru.ifru_flags &= !flag;
        }
        assert_eq!(libc::ioctl(fd, libc::SIOCSIFFLAGS, &raw mut request), 0);
        libc::close(fd);
    }
}

/// Moves this thread to a network of its own.
pub fn alone() -> bool {
    // SAFETY: it changes this thread only, which ends with the test.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        println!("not checked: this user may not make a network namespace");
        return false;
    }
    loopback(true);
    true
}

/// What comes for a socket is thrown away from now on: its kernel does not answer.
pub fn deafen(socket: &TcpStream) {
    let mut nothing = libc::sock_filter {
        code: (libc::BPF_RET | libc::BPF_K) as u16,
        jt: 0,
        jf: 0,
        k: 0,
    };
    let program = libc::sock_fprog {
        len: 1,
        filter: &raw mut nothing,
    };
    // SAFETY: the program lives through the call, and the kernel copies it.
    let rc = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    assert_eq!(rc, 0, "{}", std::io::Error::last_os_error());
}
