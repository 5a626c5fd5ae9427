//! Protection domains, and memory that is registered in them.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use unisono_plugin_roce::sys::abi::{Context, Mr, Pd};

use super::{OwnContext, OwnPd, fail};
use crate::broken;
use crate::state::{Mapped, Region, state};

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_alloc_pd(context: *mut Context) -> *mut Pd {
    // SAFETY: the caller's.
    unsafe { (*context.cast::<OwnContext>()).uses += 1 };
    Box::into_raw(Box::new(OwnPd {
        raw: Pd { context, handle: 0 },
        uses: 0,
    }))
    .cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_dealloc_pd(pd: *mut Pd) -> c_int {
    // SAFETY: it was made above.
    let pd = unsafe { Box::from_raw(pd.cast::<OwnPd>()) };
    let _state = state();
    if pd.uses > 0 {
        broken("a protection domain is freed while something of it is in use");
    }
    // SAFETY: a context outlives its domains.
    unsafe { (*pd.raw.context.cast::<OwnContext>()).uses -= 1 };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_reg_mr(
    pd: *mut Pd,
    at: *mut c_void,
    bytes: usize,
    access: c_int,
) -> *mut Mr {
    if access & 2 != 0 && access & 1 == 0 {
        fail(libc::EINVAL);
        return null_mut();
    }
    // Pages that are not there cannot be pinned.
    let page = 4096;
    let from = at as usize / page * page;
    let length = at as usize + bytes - from;
    let mut seen = vec![0_u8; length.div_ceil(page)];
    // SAFETY: the kernel looks at the range and writes a byte for each page.
    let there = unsafe { libc::mincore(from as *mut c_void, length, seen.as_mut_ptr()) } == 0;
    // Nor can those of a device, of which the CPU has addresses alone.
    if !there
        || bytes == 0
        || ![0, bytes - 1]
            .iter()
            .all(|byte| is_readable(at as usize + byte))
    {
        fail(libc::EFAULT);
        return null_mut();
    }
    region(pd, at as u64, bytes as u64, access, None)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_reg_dmabuf_mr(
    pd: *mut Pd,
    offset: u64,
    bytes: usize,
    iova: u64,
    fd: c_int,
    access: c_int,
) -> *mut Mr {
    // SAFETY: the caller's.
    let folder = unsafe { &(*(*pd).context.cast::<OwnContext>()).folder };
    if !folder.takes_dmabufs() {
        fail(libc::EOPNOTSUPP);
        return null_mut();
    }
    let Some(mapped) = Mapped::new(fd, offset, bytes as u64) else {
        fail(libc::EINVAL);
        return null_mut();
    };
    region(pd, iova, bytes as u64, access, Some(mapped))
}

/// Whether the CPU can reach a byte.
fn is_readable(at: usize) -> bool {
    let mut byte = 0_u8;
    let to = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    let from = libc::iovec {
        iov_base: at as *mut c_void,
        iov_len: 1,
    };
    // SAFETY: the kernel reads the byte if it can, and writes it to this frame.
    unsafe { libc::process_vm_readv(libc::getpid(), &raw const to, 1, &raw const from, 1, 0) == 1 }
}

fn region(pd: *mut Pd, at: u64, bytes: u64, access: c_int, mapped: Option<Mapped>) -> *mut Mr {
    let mut state = state();
    state.last_key = state.last_key.wrapping_add(1);
    let key = state.last_key;
    state.regions.insert(
        key,
        Region {
            address: at,
            bytes,
            access,
            domain: pd as usize,
            mapped,
        },
    );
    // SAFETY: the caller's domain, under the lock.
    unsafe { (*pd.cast::<OwnPd>()).uses += 1 };
    Box::into_raw(Box::new(Mr {
        // SAFETY: as above.
        context: unsafe { (*pd).context },
        pd,
        addr: at as *mut c_void,
        length: bytes as usize,
        handle: key,
        lkey: key,
        rkey: key,
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_dereg_mr(mr: *mut Mr) -> c_int {
    // SAFETY: it was made above.
    let mr = unsafe { Box::from_raw(mr) };
    let mut state = state();
    state.regions.remove(&mr.lkey);
    // SAFETY: a domain outlives its regions; under the lock.
    unsafe { (*mr.pd.cast::<OwnPd>()).uses -= 1 };
    0
}
