//! The machine's addresses, and how fast its cards are.
#![allow(unsafe_code, reason = "getifaddrs hands out a C list")]

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr::{NonNull, null_mut};

/// One address of one interface that is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The interface's name: `eth0`.
    pub name: String,
    /// The address.
    pub address: IpAddr,
    /// Bits of the address that name its network.
    pub bits: u8,
    /// Whether only this machine can reach it.
    pub loopback: bool,
}

/// All addresses of interfaces that are up, link-local IPv6 left out (they mean nothing to another
/// machine).
///
/// # Errors
/// The system's, from `getifaddrs`.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let mut list = null_mut();
    // SAFETY: `list` is a valid place for the result.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = Vec::new();
    let mut next = NonNull::new(list);
    while let Some(entry) = next {
        // SAFETY: the entries form a list that lives until freeifaddrs.
        let entry = unsafe { entry.as_ref() };
        next = NonNull::new(entry.ifa_next);
        if entry.ifa_flags & libc::IFF_UP.cast_unsigned() == 0 {
            continue;
        }
        // SAFETY: an address of an entry is NULL or a sockaddr of the family that it names.
        let (address, mask) = unsafe { (ip(entry.ifa_addr), ip(entry.ifa_netmask)) };
        let Some(address) = address.filter(|a| !is_link_local_v6(a)) else {
            continue;
        };
        // SAFETY: every entry has a name, NUL-terminated.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) };
        found.push(Interface {
            name: name.to_string_lossy().into_owned(),
            address,
            bits: mask.map_or(0, leading_ones),
            loopback: entry.ifa_flags & libc::IFF_LOOPBACK.cast_unsigned() != 0
                || address.is_loopback(),
        });
    }
    // SAFETY: `list` came from getifaddrs and nothing borrows from it any more.
    unsafe { libc::freeifaddrs(list) };
    Ok(found)
}

/// # Safety
/// `address` is NULL or points to a socket address as long as its family says.
unsafe fn ip(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: by the caller's promise; read unaligned as C does not promise more.
    unsafe {
        match i32::from((&raw const (*address).sa_family).read_unaligned()) {
            libc::AF_INET => {
                let v4 = address.cast::<libc::sockaddr_in>().read_unaligned();
                Some(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)).into())
            }
            libc::AF_INET6 => {
                let v6 = address.cast::<libc::sockaddr_in6>().read_unaligned();
                Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
}

fn is_link_local_v6(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

fn leading_ones(mask: IpAddr) -> u8 {
    let ones = match mask {
        IpAddr::V4(v4) => u32::from(v4).leading_ones(),
        IpAddr::V6(v6) => u128::from(v6).leading_ones(),
    };
    u8::try_from(ones).unwrap_or(128)
}

/// The fastest of the named cards, in bytes per second, where the driver says (virtual ones say what somebody chose, or
/// nothing).
pub fn nic_bytes_per_second<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<u64> {
    names
        .into_iter()
        .filter_map(|name| std::fs::read_to_string(format!("/sys/class/net/{name}/speed")).ok())
        .filter_map(|megabits| megabits.trim().parse::<u64>().ok()) // -1: unknown
        .filter(|megabits| (1..=100_000_000).contains(megabits))
        .max()
        .map(|megabits| megabits * 125_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_loopback() {
        let all = interfaces().unwrap();
        let loopback = all
            .iter()
            .find(|i| i.address == IpAddr::V4(Ipv4Addr::LOCALHOST));
        let loopback = loopback.expect("127.0.0.1 is up");
        assert!(loopback.loopback);
        assert_eq!(loopback.bits, 8);
        assert!(!all.iter().any(|i| is_link_local_v6(&i.address)));
    }

    #[test]
    fn a_card_that_is_not_there_has_no_speed() {
        assert_eq!(nic_bytes_per_second(["no-such-card"]), None);
    }
}
