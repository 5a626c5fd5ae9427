//! A forked child must do no harm: it is found out at its first call.
//!
//! The plugin's mappings are not inherited by a child, its threads neither, but its handles are. A
//! page that the kernel wipes in a child tells the two processes apart with one load, with no
//! handler to install and however the child was made.
#![allow(
    unsafe_code,
    reason = "one page that the kernel wipes in a forked child"
)]

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use unisono_plugin::{Error, Result};

/// The page in the process that first used the plugin.
enum Mark {
    /// Holds `MINE` there, zero in a child.
    Page(&'static AtomicU32),
    /// The kernel cannot wipe pages (before 4.14): the process id instead.
    Pid(u32),
}

const MINE: u32 = 1;
static MARK: OnceLock<Mark> = OnceLock::new();

fn make_mark() -> Mark {
    let by_pid = || Mark::Pid(std::process::id());
    let length = rustix::param::page_size();
    // SAFETY: a new anonymous mapping, which nothing else knows; the word lies at its start, is
    // zero, and lives as long as the process.
    unsafe {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let Ok(page) = mmap_anonymous(ptr::null_mut(), length, protection, MapFlags::PRIVATE)
        else {
            return by_pid();
        };
        if madvise(page, length, Advice::LinuxWipeOnFork).is_err() {
            // Unmapping what was just mapped does not fail; a page would be lost if it did.
            let _ = munmap(page, length);
            return by_pid();
        }
        let word = &*page.cast::<AtomicU32>();
        word.store(MINE, Ordering::Relaxed);
        Mark::Page(word)
    }
}

/// Makes this process the owner, unless it is the child of one.
pub(crate) fn own() -> Result<()> {
    MARK.get_or_init(make_mark);
    check()
}

/// Whether this process is a forked child of the one that used the plugin.
#[inline]
pub(crate) fn is_child() -> bool {
    match MARK.get() {
        Some(Mark::Page(word)) => word.load(Ordering::Relaxed) != MINE,
        Some(Mark::Pid(pid)) => *pid != std::process::id(),
        None => false,
    }
}

/// An error in a forked child.
#[inline]
pub(crate) fn check() -> Result<()> {
    if is_child() { Err(in_child()) } else { Ok(()) }
}

#[cold]
fn in_child() -> Error {
    Error::invalid(
        "this process was forked from one that had used the host plugin, and cannot use it: fork \
         before the first instance is created, or exec a program",
    )
}
