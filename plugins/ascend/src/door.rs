//! Who may map this process's memory: whoever asks, and is the same user.
//!
//! The runtime lets nobody import memory whose process the maker has not named, by a number that only
//! that process can ask for. So a maker listens: an importer says its number and the key, and is named
//! if the system says that it is of the same user. The door is an abstract socket of a name that is
//! guessed by nobody, and told only with the memory's description.
#![allow(
    unsafe_code,
    reason = "asks the system who a caller is; calls the runtime"
)]

use std::collections::HashMap;
use std::ffi::c_char;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use unisono_plugin::{Error, Result, Status, spawn_quiet};

use crate::block::{KEY, Key};
use crate::device::Opened;
use crate::error::check;

/// How long either side waits for the other.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the door stays shut when the system lets nobody in.
const PAUSE: Duration = Duration::from_millis(10);
/// What is asked: a key and the asker's number.
const QUESTION: usize = KEY + 4;

/// Where a maker's door is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pid: u32,
    secret: [u8; 8],
}

impl Ticket {
    /// As it travels.
    pub(crate) fn pack(&self) -> [u8; 12] {
        let mut out = [0; 12];
        out[..4].copy_from_slice(&self.pid.to_le_bytes());
        out[4..].copy_from_slice(&self.secret);
        out
    }

    /// From what travelled.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (pid, secret) = bytes.split_first_chunk()?;
        Some(Self {
            pid: u32::from_le_bytes(*pid),
            secret: secret.try_into().ok()?,
        })
    }

    fn address(&self) -> io::Result<SocketAddr> {
        let secret = u64::from_le_bytes(self.secret);
        SocketAddr::from_abstract_name(format!("unisono-ascend-{}-{secret:016x}", self.pid))
    }
}

/// Memory behind the door: by key, the device whose it is.
#[derive(Debug, Default)]
struct Door {
    ticket: Option<Ticket>,
    keys: HashMap<Key, Weak<Opened>>,
}

static DOOR: Mutex<Option<Door>> = Mutex::new(None);

fn lock() -> MutexGuard<'static, Option<Door>> {
    DOOR.lock().unwrap_or_else(PoisonError::into_inner)
}

fn system(what: &str, error: &io::Error) -> Error {
    Error::system(Status::Peer, what, error)
}

/// Lets those who ask for a key map what is behind it.
pub(crate) fn open(device: &Arc<Opened>, key: &Key) -> Result<Ticket> {
    let mut door = lock();
    let door = door.get_or_insert_default();
    let ticket = match &door.ticket {
        Some(ticket) => ticket.clone(),
        None => door.ticket.insert(listen()?).clone(),
    };
    door.keys.insert(*key, Arc::downgrade(device));
    Ok(ticket)
}

/// Nobody gets a key any more.
pub(crate) fn shut(key: &Key) {
    if let Some(door) = &mut *lock() {
        door.keys.remove(key);
    }
}

fn listen() -> Result<Ticket> {
    let cannot = |error: &io::Error| system("cannot listen for processes that map memory", error);
    let mut secret = [0; 8];
    getrandom::fill(&mut secret).map_err(|error| {
        let what = format!("the system gives no random bytes: {error}");
        Error::new(Status::Device, what)
    })?;
    let pid = std::process::id();
    let ticket = Ticket { pid, secret };
    let address = ticket.address().map_err(|error| cannot(&error))?;
    let listener = UnixListener::bind_addr(&address).map_err(|error| cannot(&error))?;
    spawn_quiet("unisono-door", move || {
        for caller in listener.incoming() {
            match caller {
                // A call that fails is the caller's loss.
                Ok(caller) => drop(answer(&caller)),
                // No descriptors left: he waits until there are.
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    })?;
    Ok(ticket)
}

/// Answers one caller: 0, or why not.
fn answer(mut caller: &UnixStream) -> io::Result<()> {
    caller.set_read_timeout(Some(PATIENCE))?;
    caller.set_write_timeout(Some(PATIENCE))?;
    if !same_user(caller)? {
        return Ok(());
    }
    let mut question = [0; QUESTION];
    caller.read_exact(&mut question)?;
    let mut key = [0; KEY];
    key.copy_from_slice(&question[..KEY]);
    let mut number = [0; 4];
    number.copy_from_slice(&question[KEY..]);
    let code = allow(&key, i32::from_le_bytes(number));
    caller.write_all(&code.to_le_bytes())
}

/// Names a process to the runtime. The code that it answers, -1 if the key is none of ours.
fn allow(key: &Key, mut process: i32) -> i32 {
    let device = lock()
        .as_ref()
        .and_then(|door| door.keys.get(key)?.upgrade());
    let Some(device) = device else {
        return -1;
    };
    let mut code = -1;
    let named = device.with(|api| {
        let text = key.as_ptr().cast::<c_char>();
        // SAFETY: a terminated key of this process's, and one number.
        code = unsafe { (api.ipc_allow)(text, &raw mut process, 1) };
        Ok(())
    });
    drop(named);
    code
}

/// Whether a caller is of this process's user.
fn same_user(caller: &UnixStream) -> io::Result<bool> {
    // SAFETY: a struct of this frame, and its size.
    unsafe {
        let mut who: libc::ucred = std::mem::zeroed();
        let mut size = size_of::<libc::ucred>() as libc::socklen_t;
        let of = libc::getsockopt(
            caller.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut who).cast(),
            &raw mut size,
        );
        if of != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(who.uid == libc::geteuid())
    }
}

/// Asks the maker of a key to let this process map what is behind it.
pub(crate) fn ask(device: &Opened, ticket: &Ticket, key: &Key) -> Result<()> {
    let mut process = 0;
    device.with(|api| {
        // SAFETY: writes a number.
        check("aclrtDeviceGetBareTgid", unsafe {
            (api.process_id)(&raw mut process)
        })
    })?;
    let answered = (|| {
        let mut maker = UnixStream::connect_addr(&ticket.address()?)?;
        maker.set_read_timeout(Some(PATIENCE))?;
        maker.set_write_timeout(Some(PATIENCE))?;
        maker.write_all(key)?;
        maker.write_all(&process.to_le_bytes())?;
        let mut code = [0; 4];
        maker.read_exact(&mut code)?;
        Ok(i32::from_le_bytes(code))
    })();
    let code = answered.map_err(|error| {
        let what = format!(
            "process {} does not let this one map its memory (is it alive, of the same user and in \
             the same network namespace? else set allow_list: false)",
            ticket.pid
        );
        system(&what, &error)
    })?;
    if code == -1 {
        let what = format!("process {} has freed this memory", ticket.pid);
        return Err(Error::new(Status::Peer, what));
    }
    check("aclrtIpcMemSetImportPid, by the memory's maker", code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_survive_travelling() {
        let ticket = Ticket {
            pid: 70_000,
            secret: *b"12345678",
        };
        assert_eq!(Ticket::parse(&ticket.pack()), Some(ticket.clone()));
        assert_eq!(Ticket::parse(&ticket.pack()[..11]), None);
        assert_eq!(Ticket::parse(&[0; 13]), None);
    }

    #[test]
    fn nobody_is_let_in_with_a_key_that_is_none() {
        let ticket = listen().unwrap();
        let mut caller = UnixStream::connect_addr(&ticket.address().unwrap()).unwrap();
        caller.write_all(&[7; QUESTION]).unwrap();
        let mut code = [0; 4];
        caller.read_exact(&mut code).unwrap();
        assert_eq!(i32::from_le_bytes(code), -1);
    }
}
