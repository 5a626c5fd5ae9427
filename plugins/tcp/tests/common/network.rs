//! A network of a test's own, whose loopback can be taken down.

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
