//! Memory that other processes can map: a sealed memory file with a proof behind the data.
//!
//! The file is as long as the data's whole pages and one page more, which repeats the description
//! with its random nonce. An importer that finds there what it was told has mapped what was
//! exported, whatever became of process ids and descriptors meanwhile; the seals keep the file from
//! shrinking under it.
#![allow(unsafe_code, reason = "reads and writes the proof page of a mapping")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use rustix::io::Errno;
use unisono_plugin::{Error, Result, Status};

use super::description::{Description, Nonce, Packed};
use super::mapping::{Mapping, Source, whole_pages};
use super::proc;

/// What no holder of the file can undo.
const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);

/// A shared mapping, and its file where this process made it.
#[derive(Debug)]
pub(super) struct Shared {
    mapping: Mapping,
    description: Description,
    /// Importers open it through `/proc`.
    _file: Option<OwnedFd>,
}

fn system(what: &str, errno: Errno) -> Error {
    let status = match errno {
        Errno::NOMEM | Errno::NOSPC | Errno::MFILE | Errno::NFILE => Status::OutOfMemory,
        _ => Status::Device,
    };
    Error::system(status, what, &errno.into())
}

/// Bytes of the data's pages, and of the file.
fn lengths(bytes: u64) -> Result<(usize, usize)> {
    let data = whole_pages(bytes)?;
    Ok((data, whole_pages(data as u64 + 1)?))
}

impl Shared {
    /// New zeroed memory.
    pub(super) fn create(bytes: u64, align: u64, bell: bool, lazy: bool) -> Result<Self> {
        let (data, length) = lengths(bytes)?;
        let file = memfd_create("unisono", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(|errno| system("cannot create a memory file", errno))?;
        ftruncate(&file, length as u64).map_err(|errno| {
            system(
                &format!("cannot size a memory file to {length} bytes"),
                errno,
            )
        })?;
        fcntl_add_seals(&file, SEALS)
            .map_err(|errno| system("cannot seal a memory file", errno))?;
        let mut nonce = Nonce::default();
        getrandom::fill(&mut nonce).map_err(|error| {
            Error::new(
                Status::Device,
                format!("the system gives no random bytes: {error}"),
            )
        })?;
        let pid = std::process::id();
        let started = proc::start_time(pid).map_err(|error| {
            Error::system(Status::Device, "cannot read /proc/self/stat", &error)
        })?;
        let mapping = Mapping::new(Source::File(file.as_fd()), length, usize_of(align)?)?;
        let fd = file.as_raw_fd();
        let description = Description {
            pid,
            fd,
            started,
            bytes,
            align,
            nonce,
            bell,
            lazy,
        };
        // SAFETY: the page behind the data is mapped and known to nobody else yet.
        unsafe {
            mapping
                .address()
                .add(data)
                .cast::<Packed>()
                .write(description.pack())
        };
        if !lazy {
            mapping.populate(data);
        }
        Ok(Self {
            mapping,
            description,
            _file: Some(file),
        })
    }

    /// Maps what another process exported, and proves that it is that.
    pub(super) fn import(description: Description) -> Result<Self> {
        let Description {
            pid,
            fd,
            bytes,
            align,
            ..
        } = description;
        let gone = |error: &io::Error| {
            let what = format!(
                "cannot open descriptor {fd} of process {pid} (is it alive, of the same user, and \
                 in the same container?)"
            );
            Error::system(Status::Peer, &what, error)
        };
        let replaced = |why: &str| {
            Error::new(
                Status::Peer,
                format!(
                    "descriptor {fd} of process {pid} is not the memory that it exported: {why}"
                ),
            )
        };
        if proc::start_time(pid).map_err(|error| gone(&error))? != description.started {
            return Err(replaced("another process has its id"));
        }
        let file = proc::open_fd(pid, fd).map_err(|error| gone(&error))?;
        let (data, length) = lengths(bytes)?;
        let seals = fcntl_get_seals(&file).map_err(|_| replaced("no memory file"))?;
        if !seals.contains(SEALS) {
            return Err(replaced("not sealed against shrinking"));
        }
        let size = fstat(&file)
            .map_err(|errno| system("cannot stat a memory file", errno))?
            .st_size;
        if usize::try_from(size) != Ok(length) {
            return Err(replaced(&format!("{size} bytes instead of {length}")));
        }
        let mapping = Mapping::new(Source::File(file.as_fd()), length, usize_of(align)?)?;
        // SAFETY: the page behind the data is mapped; its maker wrote it before it told of it.
        let found = unsafe { mapping.address().add(data).cast::<Packed>().read() };
        if found != description.pack() {
            return Err(replaced("it describes itself otherwise"));
        }
        if !description.lazy {
            mapping.populate(data);
        }
        Ok(Self {
            mapping,
            description,
            _file: None,
        })
    }

    /// The first byte of the data.
    pub(super) fn address(&self) -> *mut u8 {
        self.mapping.address()
    }

    /// What an importer needs.
    pub(super) fn description(&self) -> &Description {
        &self.description
    }
}

fn usize_of(align: u64) -> Result<usize> {
    usize::try_from(align)
        .map_err(|_| Error::invalid(format!("an alignment of {align} exceeds the address space")))
}
