//! Posted links: memory that comes and goes under one address.
#![allow(
    unsafe_code,
    reason = "maps memory at an address that was just given up"
)]

use std::ffi::c_void;
use std::ptr::null_mut;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use super::copy::pattern;
use crate::case::Case;
use crate::check::Check;
use crate::ends::Ends;
use crate::outcome::{Checked, Stop, ensure};
use crate::queue;

const G: &str = "link";

/// Longer than what links copy; and the times that it comes back.
const BYTES: usize = 512 << 10;
const TIMES: u64 = 8;

pub(super) const CHECKS: &[Check] = &[Check::two(
    G,
    "remapped",
    "What is sent is what lies at an address now, also where other memory lay when it was last sent from.",
    remapped,
)];

/// Pages of the process; unmapped with it.
struct Pages(*mut c_void);

impl Pages {
    /// At an address, or anywhere.
    fn new(at: *mut c_void) -> Checked<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = if at.is_null() {
            MapFlags::PRIVATE
        } else {
            MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE
        };
        // SAFETY: nothing lies there, or the system refuses.
        let pages = unsafe { mmap_anonymous(at, BYTES, access, flags) };
        pages
            .map(Self)
            .map_err(|error| Stop::failed(format!("no memory at {at:p}: {error}")))
    }

    fn write(&mut self, bytes: &[u8]) {
        // SAFETY: as many bytes are mapped, and nobody reads them meanwhile.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.cast(), bytes.len()) };
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped by this, and nothing reads it any more.
        let _ = unsafe { munmap(self.0, BYTES) };
    }
}

fn remapped(case: &Case) -> Checked {
    let mut ends = Ends::connect(case, 1)?;
    let mut at = null_mut();
    for round in 1..=TIMES {
        let mut pages = Pages::new(at)?;
        at = pages.0;
        pages.write(&pattern(BYTES, round * 2 + u64::from(ends.role())));
        let mut put = ends.put(0, BYTES as u64, 0, 0);
        put.src = at as u64;
        let mut batch = queue::batch();
        batch.put(&put);
        ends.submit(&mut batch)?;
        ends.await_flag(0, round)?;
        let expected = pattern(BYTES, round * 2 + u64::from(1 - ends.role()));
        ensure!(
            ends.data.read(0, BYTES as u64) == expected,
            "round {round}: other bytes than those that lie there now"
        );
        // Until then the link may read it.
        ends.drain()?;
        drop(pages);
        ends.meet(round)?;
    }
    ends.part()
}
