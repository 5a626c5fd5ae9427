//! The system's list of addresses (`getifaddrs`).
#![allow(
    unsafe_code,
    reason = "getifaddrs hands out a C list that only raw pointers can walk"
)]

use std::ffi::CStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr;

use crate::error::{BootstrapError, Result};

use super::Candidate;

/// Every IPv4 and IPv6 address of every interface that is up.
pub(super) fn addresses() -> Result<Vec<Candidate>> {
    let mut head = ptr::null_mut();
    // SAFETY: `head` is a valid place for the list's head.
    if unsafe { libc::getifaddrs(&mut head) } != 0 {
        return Err(BootstrapError::io(
            "listing this machine's addresses",
            std::io::Error::last_os_error(),
        ));
    }
    let list = List(head);
    let mut found = Vec::new();
    let mut next = list.0.cast_const();
    // SAFETY: each entry of the list is valid until `list` is freed, below.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        if entry.ifa_flags & libc::IFF_UP as u32 == 0 || entry.ifa_addr.is_null() {
            continue;
        }
        // SAFETY: `ifa_addr` is not null and belongs to the list.
        if let Some(address) = unsafe { read_address(entry.ifa_addr) } {
            // SAFETY: `ifa_name` is a C string that belongs to the list.
            let interface = unsafe { CStr::from_ptr(entry.ifa_name) }
                .to_string_lossy()
                .into_owned();
            found.push(Candidate { interface, address });
        }
    }
    Ok(found)
}

/// Frees the list when dropped.
struct List(*mut libc::ifaddrs);

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: the list came from `getifaddrs` and is freed once.
        unsafe { libc::freeifaddrs(self.0) };
    }
}

/// # Safety
/// `address` must point to a socket address as long as its family says.
unsafe fn read_address(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: every socket address begins with its family.
    let family = i32::from(unsafe { (*address).sa_family });
    match family {
        libc::AF_INET => {
            // SAFETY: of this family it is a `sockaddr_in`; no alignment is assumed.
            let v4 = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(IpAddr::V4(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr))))
        }
        libc::AF_INET6 => {
            // SAFETY: of this family it is a `sockaddr_in6`; no alignment is assumed.
            let v6 = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(IpAddr::V6(Ipv6Addr::from(v6.sin6_addr.s6_addr)))
        }
        _ => None,
    }
}
