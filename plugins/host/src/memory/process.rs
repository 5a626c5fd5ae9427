//! Another process's memory as a whole, read by its process id with the system's leave.
//!
//! Who is read says where in its memory a random number lies; who finds it there has reached the process that told of it.
//! A process id may pass to another process when its owner ends, but not unseen: the descriptor that is held then says
//! that it has ended, and what was read before that is its own.
#![allow(
    unsafe_code,
    reason = "reads memory by address, of this process and of others"
)]

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use libc::{c_void, iovec};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use unisono_plugin::{Error, Result, Status};

use super::description::Nonce;
use super::{beside, proc};

/// First bytes of a token: what it is, and its version.
const MAGIC: [u8; 8] = *b"unsproc\x01";
/// Bytes of a token.
const LENGTH: usize = 44;
/// Bytes that one process asks for to stand for its memory.
pub(crate) const BYTES: u64 = 64;

/// The number that lies in this process's memory.
static NONCE: OnceLock<Nonce> = OnceLock::new();
/// The processes that are reached, by their numbers: one descriptor each, whatever reaches them.
static REACHED: Mutex<BTreeMap<Nonce, Weak<Process>>> = Mutex::new(BTreeMap::new());

/// Lets others read this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pid: u32,
    /// When it started, in clock ticks since boot: another process with its id differs.
    started: u64,
    /// Where its number lies, and the number.
    at: u64,
    nonce: Nonce,
}

/// A process whose memory can be read.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Process(Reach);

#[derive(Debug)]
enum Reach {
    /// It is this one.
    Own,
    Other {
        pid: i32,
        alive: OwnedFd,
    },
}

impl Token {
    /// This process's own.
    pub(super) fn own() -> Result<Self> {
        let nonce = match NONCE.get() {
            Some(nonce) => nonce,
            None => {
                let mut nonce = Nonce::default();
                getrandom::fill(&mut nonce).map_err(|error| {
                    let what = format!("the system gives no random bytes: {error}");
                    Error::new(Status::Device, what)
                })?;
                NONCE.get_or_init(|| nonce)
            }
        };
        let pid = std::process::id();
        let started = proc::start_time(pid).map_err(|error| {
            Error::system(Status::Device, "cannot read /proc/self/stat", &error)
        })?;
        Ok(Self {
            pid,
            started,
            at: ptr::from_ref(nonce) as u64,
            nonce: *nonce,
        })
    }

    #[cold]
    fn replaced(&self) -> Error {
        let what = format!("process {} is not the one that told of itself", self.pid);
        Error::new(Status::Peer, what)
    }

    /// Little-endian.
    pub(super) fn pack(&self) -> Vec<u8> {
        let fields: [&[u8]; 5] = [
            &MAGIC,
            &self.pid.to_le_bytes(),
            &self.started.to_le_bytes(),
            &self.at.to_le_bytes(),
            &self.nonce,
        ];
        fields.concat()
    }

    /// From the packed form, which came from elsewhere; `None` if it is something else.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; LENGTH] = bytes.try_into().ok()?;
        let rest = bytes.strip_prefix(&MAGIC)?;
        let (pid, rest) = rest.split_first_chunk()?;
        let (started, rest) = rest.split_first_chunk()?;
        let (at, rest) = rest.split_first_chunk()?;
        Some(Self {
            pid: u32::from_le_bytes(*pid),
            started: u64::from_le_bytes(*started),
            at: u64::from_le_bytes(*at),
            nonce: rest.try_into().ok()?,
        })
    }
}

impl Process {
    /// This one.
    pub(super) fn own() -> Self {
        Self(Reach::Own)
    }

    /// The one that a token tells of, if its memory can be read.
    pub(super) fn reach(token: &Token) -> Result<Arc<Self>> {
        if *token == Token::own()? {
            return Ok(Arc::new(Self::own()));
        }
        let mut reached = REACHED.lock().unwrap_or_else(PoisonError::into_inner);
        reached.retain(|_, process| process.strong_count() > 0);
        let known = reached.get(&token.nonce).and_then(Weak::upgrade);
        let process = match known {
            Some(known) => known,
            None => Arc::new(Self::find(token)?),
        };
        // Also of one that is known: it may have ended, and another may say that it is it.
        process.prove(token)?;
        reached.insert(token.nonce, Arc::downgrade(&process));
        Ok(process)
    }

    fn find(token: &Token) -> Result<Self> {
        let Token { pid, started, .. } = *token;
        let gone = |error: &io::Error| {
            let what =
                format!("cannot hold process {pid} (is it alive, and in the same container?)");
            Error::system(Status::Peer, &what, error)
        };
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let number = number.ok_or_else(|| Error::invalid(format!("{pid} is no process id")))?;
        let alive = pidfd_open(number, PidfdFlags::empty()).map_err(|errno| gone(&errno.into()))?;
        if proc::start_time(pid).map_err(|error| gone(&error))? != started {
            return Err(token.replaced());
        }
        Ok(Self(Reach::Other {
            pid: number.as_raw_nonzero().get(),
            alive,
        }))
    }

    /// Whether the number lies there.
    fn prove(&self, token: &Token) -> Result<()> {
        let mut found = Nonce::default();
        // SAFETY: a buffer of this many bytes.
        unsafe { self.read(found.as_mut_ptr(), token.at, found.len()) }?;
        match found == token.nonce {
            true => Ok(()),
            false => Err(token.replaced()),
        }
    }

    /// Reads `bytes` bytes at an address of the process.
    ///
    /// # Safety
    /// `dst` is good for so many bytes, and nobody else uses them. In this process, the source is mapped.
    pub(crate) unsafe fn read(&self, dst: *mut u8, from: u64, bytes: usize) -> Result<()> {
        let Reach::Other { pid, alive } = &self.0 else {
            // SAFETY: the caller's promise. The two may be the same, or overlap.
            unsafe { ptr::copy(from as usize as *const u8, dst, bytes) };
            return Ok(());
        };
        // SAFETY: the caller's promise.
        unsafe {
            match beside::is_worth(dst, from, bytes) {
                true => beside::read(dst, from, bytes, |to, from, part| {
                    fetch(*pid, to, from, part)
                }),
                false => fetch(*pid, dst, from, bytes),
            }?;
        }
        if ended(alive).map_err(|error| unreadable(*pid, &error))? {
            return Err(unreadable(*pid, &Errno::SRCH.into()));
        }
        Ok(())
    }
}

/// Bytes that one call of the system copies at most. It first takes hold of all pages of a call, up to 4 MiB of them, and lets
/// go of them in the end: after more than this a core's cache has lost what it knows of them. On an EPYC 7003 eight ranks on
/// two cores took 1.4 times as long for an all_to_all of 4 MiB in calls of 1 MiB as in these, and 1.1 times for 64 MiB
/// (`cargo xtask peers -- --dirty --ranks 8 --ops all_to_all --sizes 4M,64M` with `mesh_read` forced, before and after);
/// in calls of 64 KiB 1.1 times, as calls take time too.
const CALL: usize = 512 << 10;

/// Has the kernel copy bytes out of a process.
///
/// # Safety
/// `dst` is good for so many bytes, and nobody else uses them.
unsafe fn fetch(pid: i32, dst: *mut u8, from: u64, bytes: usize) -> Result<()> {
    let mut done = 0;
    while done < bytes {
        let part = (bytes - done).min(CALL);
        let local = iovec {
            iov_base: dst.wrapping_add(done).cast(),
            iov_len: part,
        };
        let remote = iovec {
            iov_base: from.wrapping_add(done as u64) as usize as *mut c_void,
            iov_len: part,
        };
        // SAFETY: the destination is the caller's; the kernel checks the source.
        let read =
            unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
        match usize::try_from(read) {
            Ok(0) => return Err(unreadable(pid, &Errno::FAULT.into())),
            Ok(some) => done += some,
            Err(_) => return Err(unreadable(pid, &io::Error::last_os_error())),
        }
    }
    Ok(())
}

/// Whether a process has ended: its id may be another's then.
fn ended(alive: &OwnedFd) -> io::Result<bool> {
    let mut fds = [PollFd::new(alive, PollFlags::IN)];
    let now = Timespec::default();
    loop {
        match poll(&mut fds, Some(&now)) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

#[cold]
fn unreadable(pid: i32, error: &io::Error) -> Error {
    let status = match error.raw_os_error() {
        Some(libc::EPERM | libc::ENOSYS) => Status::Unsupported,
        _ => Status::Peer,
    };
    let help = match status {
        Status::Unsupported => {
            " (the system lets a process read those of its user if /proc/sys/kernel/yama/ptrace_scope \
             is 0 and they can be dumped)"
        }
        _ => "",
    };
    Error::system(
        status,
        &format!("cannot read the memory of process {pid}{help}"),
        error,
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_token_survives_packing_and_no_other_length_is_one() {
        let own = Token::own().unwrap();
        let packed = own.pack();
        assert_eq!(packed.len(), LENGTH);
        assert_eq!(Token::parse(&packed), Some(own));
        for cut in 0..packed.len() {
            assert_eq!(Token::parse(&packed[..cut]), None);
        }
        assert_eq!(Token::parse(&[packed, vec![0]].concat()), None);
    }

    #[test]
    fn this_process_is_read_as_it_is() {
        let process = Process::reach(&Token::own().unwrap()).unwrap();
        let (from, mut to) = ([1u8, 2, 3], [0u8; 3]);
        // SAFETY: two arrays of three bytes.
        unsafe { process.read(to.as_mut_ptr(), from.as_ptr() as u64, 3) }.unwrap();
        assert_eq!(to, from);
    }

    #[test]
    fn a_process_that_is_not_there_or_another_one_is_refused() {
        let own = Token::own().unwrap();
        let nobody = Token {
            pid: u32::MAX,
            ..own
        };
        assert!(Process::reach(&nobody).is_err());
        // Its parent is alive, and has something else there, if anything.
        let parent = std::os::unix::process::parent_id();
        let other = Token { pid: parent, ..own };
        let error = Process::reach(&other).unwrap_err();
        assert!(error.message().contains(&parent.to_string()), "{error}");
    }

    #[test]
    fn who_is_reached_twice_is_held_once() {
        let mut other = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("a process");
        let pid = other.id();
        let started = proc::start_time(pid).unwrap();
        // What lies where any program begins: known without its help.
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        let at = u64::from_str_radix(maps.split('-').next().unwrap(), 16).unwrap();
        let blind = Token {
            pid,
            started,
            at,
            nonce: Nonce::default(),
        };
        let process = Process::find(&blind).unwrap();
        let mut nonce = Nonce::default();
        // SAFETY: a buffer of this many bytes.
        unsafe { process.read(nonce.as_mut_ptr(), at, nonce.len()) }.unwrap();
        // Wherever they are read to.
        let mut page = vec![0_u8; 8192];
        let start = page.as_ptr().align_offset(4096);
        let mut read_to = |offset: usize| {
            let to = &mut page[start + offset..][..4000];
            // SAFETY: a buffer of so many bytes.
            unsafe { process.read(to.as_mut_ptr(), at, to.len()) }.unwrap();
            to.to_vec()
        };
        let plain = read_to(0);
        assert!(
            [1, 16, 31, 32]
                .into_iter()
                .all(|offset| read_to(offset) == plain)
        );
        let token = Token { nonce, ..blind };
        let [first, second] = [0, 1].map(|_| Process::reach(&token).unwrap());
        assert!(Arc::ptr_eq(&first, &second));
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(Process::reach(&token).is_err(), "it has ended");
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..60), magic: bool, whole: bool) {
            let mut bytes = if magic { [&MAGIC[..], &bytes].concat() } else { bytes };
            if whole {
                bytes.resize(LENGTH, 0);
            }
            if let Some(token) = Token::parse(&bytes) {
                prop_assert_eq!(token.pack(), bytes);
            }
        }
    }
}
