//! Host memory of the plugin's own: anonymous, or a sealed memory file that others can map.
#![allow(
    unsafe_code,
    reason = "maps and unmaps memory, and writes its last page"
)]

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;

use rustix::fs::{
    CWD, MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate,
    memfd_create, openat,
};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use unisono_plugin::{Error, Result, Status};

use crate::fork;
use crate::process::Nonce;

/// What no holder of the file can undo.
const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);

/// A mapping, unmapped when dropped; and its file where this process made it for others.
///
/// A file is one page longer than the data, and repeats there the nonce of its description: an importer
/// that finds it has mapped what was exported.
#[derive(Debug)]
pub(crate) struct Mapping {
    at: *mut u8,
    length: usize,
    file: Option<OwnedFd>,
}

// SAFETY: an address range; who accesses it when is the matter of commands and flags.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

fn system(what: &str, errno: Errno) -> Error {
    let status = match errno {
        Errno::NOMEM | Errno::NOSPC | Errno::MFILE | Errno::NFILE => Status::OutOfMemory,
        _ => Status::Device,
    };
    Error::system(status, what, &io::Error::from(errno))
}

/// Bytes rounded up to whole pages.
fn pages(bytes: u64) -> Result<usize> {
    let page = rustix::param::page_size();
    let whole = usize::try_from(bytes).ok();
    let whole = whole.and_then(|bytes| bytes.checked_next_multiple_of(page));
    whole
        .filter(|bytes| isize::try_from(*bytes + page).is_ok())
        .ok_or_else(|| {
            let what = format!("{bytes} bytes are more than addresses exist");
            Error::new(Status::OutOfMemory, what)
        })
}

impl Mapping {
    /// Zeroed memory of this process alone.
    pub(crate) fn private(bytes: u64) -> Result<Self> {
        let length = pages(bytes)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping where the kernel finds room.
        let at = unsafe { mmap_anonymous(ptr::null_mut(), length, protection, flags) };
        let at = at.map_err(|errno| system(&format!("cannot map {length} bytes"), errno))?;
        Self::made(at, length, None)
    }

    /// Zeroed memory that others can map, with its proof.
    pub(crate) fn shared(bytes: u64, nonce: &Nonce) -> Result<Self> {
        let data = pages(bytes)?;
        let length = data + rustix::param::page_size();
        let file = memfd_create("unisono", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(|errno| system("cannot create a memory file", errno))?;
        ftruncate(&file, length as u64)
            .map_err(|errno| system(&format!("cannot size a memory file to {length}"), errno))?;
        fcntl_add_seals(&file, SEALS)
            .map_err(|errno| system("cannot seal a memory file", errno))?;
        let this = Self::map(file, length, true)?;
        // SAFETY: the page behind the data is mapped, and known to nobody else yet.
        unsafe { this.at.add(data).cast::<Nonce>().write(*nonce) };
        Ok(this)
    }

    /// What another process made, proved to be that.
    pub(crate) fn import(pid: u32, descriptor: RawFd, bytes: u64, nonce: &Nonce) -> Result<Self> {
        let replaced = |why: &str| {
            let what = format!(
                "descriptor {descriptor} of process {pid} is not the memory that it exported: {why}"
            );
            Error::new(Status::Peer, what)
        };
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let path = format!("/proc/{pid}/fd/{descriptor}");
        let file = openat(CWD, path, flags, Mode::empty())
            .map_err(|errno| replaced(&io::Error::from(errno).to_string()))?;
        let data = pages(bytes)?;
        let length = data + rustix::param::page_size();
        let seals = fcntl_get_seals(&file).map_err(|_| replaced("no memory file"))?;
        if !seals.contains(SEALS) {
            return Err(replaced("not sealed against shrinking"));
        }
        let size = fstat(&file).map_err(|errno| system("cannot stat a memory file", errno))?;
        if usize::try_from(size.st_size) != Ok(length) {
            return Err(replaced("of another size"));
        }
        let this = Self::map(file, length, false)?;
        // SAFETY: the page behind the data is mapped; its maker wrote it before it told of it.
        let found = unsafe { this.at.add(data).cast::<Nonce>().read() };
        if found != *nonce {
            return Err(replaced("it does not bear the proof"));
        }
        Ok(this)
    }

    fn map(file: OwnedFd, length: usize, keep: bool) -> Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED;
        // SAFETY: a new mapping where the kernel finds room.
        let at = unsafe { mmap(ptr::null_mut(), length, protection, flags, &file, 0) };
        let at = at.map_err(|errno| system(&format!("cannot map {length} bytes"), errno))?;
        Self::made(at, length, keep.then_some(file))
    }

    fn made(at: *mut c_void, length: usize, file: Option<OwnedFd>) -> Result<Self> {
        let this = Self {
            at: at.cast(),
            length,
            file,
        };
        // SAFETY: the range just mapped. A child must not share pages that a device writes.
        unsafe { madvise(at, length, Advice::LinuxDontFork) }
            .map_err(|errno| system("cannot keep a forked child from a mapping", errno))?;
        Ok(this)
    }

    /// Its first byte, for the CPU.
    pub(crate) fn address(&self) -> u64 {
        self.at as u64
    }

    /// What importers open, -1 if nothing.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.file.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // A forked child has no such mapping.
        if !fork::is_child() {
            // SAFETY: the range is this mapping's, and its owners are gone.
            let _ = unsafe { munmap(self.at.cast(), self.length) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mapped_is_what_was_made() {
        let nonce = [7; 16];
        let made = Mapping::shared(5000, &nonce).unwrap();
        let pid = std::process::id();
        let seen = Mapping::import(pid, made.descriptor(), 5000, &nonce).unwrap();
        assert_ne!(seen.address(), made.address());
        let other = Mapping::import(pid, made.descriptor(), 5000, &[8; 16]).unwrap_err();
        assert!(other.message().contains("proof"), "{other}");
        assert!(Mapping::import(pid, made.descriptor(), 50_000, &nonce).is_err());
        assert!(Mapping::import(pid, 0, 5000, &nonce).is_err());
    }
}
