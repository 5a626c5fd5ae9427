//! The listener that all links of an instance share, and the strangers at its door.
//!
//! Whoever connects is a stranger until it has said a whole hello to a link of this process. There
//! are never more than [`STRANGERS_MAX`] of them (the oldest goes when another comes), none is read
//! beyond the 80 bytes of a hello, and none stays longer than [`PROOF_TIME`](super::PROOF_TIME). What is refused is
//! counted, and logged once for each reason.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use unisono_plugin::{Host, Level};

use super::Refusal;
use super::mailbox::{Arrival, Key, Mailbox, Registration};
use super::stranger::Stranger;
use crate::net::{Interest, Options, Polled, Poller, accept, listen, local_ip, peer_name};
use crate::wire::Hello;

/// Strangers at once.
const STRANGERS_MAX: usize = 128;
/// Sockets that said hello to a link that is not there yet.
const PARKED_MAX: usize = 256;
/// How long they may wait for it. The dialer tries again anyway.
const PARKED_TIME: Duration = Duration::from_secs(10);
/// Connections taken in one turn.
const ACCEPTS: usize = 64;
/// Keys of the sockets that listen, from here on; strangers' are lower.
const LISTENERS: u64 = 1 << 63;

/// The door of an instance.
#[derive(Debug)]
pub(crate) struct Listener {
    /// Ready when somebody is at the door. Links that connect nest it in their own set.
    poller: Arc<Poller>,
    port: u16,
    instance: [u8; 16],
    /// Addresses of ours that may be connected to.
    open_to: Vec<IpAddr>,
    options: Options,
    host: Host,
    door: Mutex<Door>,
    links: Mutex<HashMap<Key, Arc<Mailbox>>>,
    refused: AtomicU64,
    /// One bit for each reason that was logged.
    logged: AtomicU64,
}

#[derive(Debug)]
struct Door {
    /// One, or one an address; by key.
    listeners: Vec<Polled>,
    next_key: u64,
    /// Oldest first, by ascending key.
    strangers: VecDeque<Stranger>,
    parked: VecDeque<(Instant, Arrival)>,
}

impl Listener {
    /// Opens the door at the first free of `ports` ports from `port` (0: any): at the addresses of
    /// `open_to`, or with `everywhere` at all, where those of `open_to` are served.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn open(
        (port, ports): (u16, u16),
        instance: [u8; 16],
        (open_to, everywhere): (Vec<IpAddr>, bool),
        options: Options,
        host: Host,
    ) -> io::Result<Arc<Self>> {
        let addresses = if everywhere { &[][..] } else { &open_to };
        let (sockets, port) = listen(&options, addresses, port, ports)?;
        let poller = Poller::new()?;
        let mut listeners = Vec::with_capacity(sockets.len());
        for (key, fd) in (LISTENERS..).zip(sockets) {
            let mut listener = Polled::new(fd, Arc::clone(&poller));
            listener.watch(Interest::Read, key)?;
            listeners.push(listener);
        }
        Ok(Arc::new(Self {
            poller,
            port,
            instance,
            open_to,
            options,
            host,
            door: Mutex::new(Door {
                listeners,
                next_key: 0,
                strangers: VecDeque::new(),
                parked: VecDeque::new(),
            }),
            links: Mutex::default(),
            refused: AtomicU64::new(0),
            logged: AtomicU64::new(0),
        }))
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// Strangers that were dropped.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Readable when [`tend`](Self::tend) has something to do.
    pub(crate) fn poller(&self) -> &Arc<Poller> {
        &self.poller
    }

    pub(crate) const fn host(&self) -> Host {
        self.host
    }

    pub(crate) const fn options(&self) -> &Options {
        &self.options
    }

    /// Names a link, so that hellos for it reach its mailbox; those that came early do so now.
    pub(crate) fn register(self: &Arc<Self>, key: Key, mailbox: Arc<Mailbox>) -> Registration {
        self.links().insert(key, Arc::clone(&mailbox));
        let mut door = self.door.lock().unwrap_or_else(PoisonError::into_inner);
        for (deadline, arrival) in std::mem::take(&mut door.parked) {
            if Key::of(&arrival.hello) == key {
                let _ = mailbox.deliver(arrival); // a new mailbox takes all
            } else {
                door.parked.push_back((deadline, arrival));
            }
        }
        Registration {
            listener: Arc::downgrade(self),
            key,
            mailbox,
        }
    }

    pub(super) fn forget(&self, key: Key, mailbox: &Arc<Mailbox>) {
        let mut links = self.links();
        if links.get(&key).is_some_and(|m| Arc::ptr_eq(m, mailbox)) {
            links.remove(&key);
        }
    }

    /// Counts a stranger that was dropped, and says so once for each reason.
    pub(crate) fn refuse(&self, who: &OwnedFd, why: &Refusal) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        let bit = 1
            << match why {
                Refusal::System(_) | Refusal::End => 0,
                Refusal::Wire(_) => 1,
                Refusal::Proof => 2,
                Refusal::Late => 3,
                Refusal::Stranger(_) => 4,
                Refusal::Crowd => 5,
                Refusal::Tls(_) => 6,
            };
        if self.logged.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            unisono_plugin::log!(
                self.host,
                Level::Warn,
                "refused a connection from {} at port {}: {why}; more of this kind are only counted",
                peer_name(who),
                self.port
            );
        }
    }

    /// Takes who has come, reads what they said, and drops whose time is over. Bounded work; does
    /// nothing if another thread is at it.
    pub(crate) fn tend(&self) {
        let mut door = match self.door.try_lock() {
            Ok(door) => door,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let mut keys = [0; 64];
        let ready = self.poller.ready(&mut keys);
        for &key in &keys[..ready] {
            match key.checked_sub(LISTENERS) {
                Some(number) => self.welcome(&mut door, number as usize),
                None => self.hear(&mut door, key),
            }
        }
        self.tidy(&mut door);
    }

    fn welcome(&self, door: &mut Door, number: usize) {
        for _ in 0..ACCEPTS {
            let Some(listener) = door.listeners.get(number) else {
                return;
            };
            let fd = match accept(listener.fd()) {
                Ok(fd) => fd,
                Err(error) if is_out_of_descriptors(&error) => {
                    self.evict(door);
                    return;
                }
                Err(_) => return, // none, or one that went before we looked
            };
            let here = local_ip(&fd);
            if !here.is_some_and(|ip| ip.is_loopback() || self.open_to.contains(&ip)) {
                self.refuse(
                    &fd,
                    &Refusal::Stranger("it came by an address that is not ours to use"),
                );
                continue;
            }
            if door.strangers.len() >= STRANGERS_MAX {
                self.evict(door);
            }
            let key = door.next_key;
            door.next_key += 1;
            let mut socket = Polled::new(fd, Arc::clone(&self.poller));
            if socket.watch(Interest::Read, key).is_err() {
                continue;
            }
            door.strangers.push_back(Stranger::new(socket, key));
        }
    }

    /// Drops the oldest stranger.
    fn evict(&self, door: &mut Door) {
        if let Some(oldest) = door.strangers.pop_front() {
            self.refuse(oldest.socket.fd(), &Refusal::Crowd);
        }
    }

    /// Reads on from one stranger.
    fn hear(&self, door: &mut Door, key: u64) {
        let Ok(at) = door.strangers.binary_search_by_key(&key, |s| s.key) else {
            return;
        };
        let Some(stranger) = door.strangers.get_mut(at) else {
            return;
        };
        let verdict = stranger.hear();
        if matches!(verdict, Ok(None)) {
            return;
        }
        let Some(stranger) = door.strangers.remove(at) else {
            return;
        };
        match verdict {
            Ok(Some(hello)) => self.route(door, stranger, hello),
            Err(why) => self.refuse(stranger.socket.fd(), &why),
            Ok(None) => {}
        }
    }

    /// Hands a socket that said hello to its link, or parks it.
    fn route(&self, door: &mut Door, stranger: Stranger, hello: Hello) {
        if hello.instance != self.instance {
            let why = Refusal::Stranger("it meant another process");
            self.refuse(stranger.socket.fd(), &why);
            return;
        }
        let Ok(fd) = stranger.socket.into_fd() else {
            return;
        };
        let arrival = Arrival { fd, hello };
        let link = self.links().get(&Key::of(&hello)).cloned();
        match link {
            Some(mailbox) => {
                if let Err(arrival) = mailbox.deliver(arrival) {
                    let why = Refusal::Stranger("the link that it asked for is complete");
                    self.refuse(&arrival.fd, &why);
                }
            }
            None => {
                if door.parked.len() >= PARKED_MAX
                    && let Some((_, oldest)) = door.parked.pop_front()
                {
                    self.refuse(&oldest.fd, &Refusal::Crowd);
                }
                door.parked
                    .push_back((Instant::now() + PARKED_TIME, arrival));
            }
        }
    }

    /// Drops whose time is over: both queues are in order of time.
    fn tidy(&self, door: &mut Door) {
        if door.strangers.is_empty() && door.parked.is_empty() {
            return;
        }
        let now = Instant::now();
        while door.strangers.front().is_some_and(|s| s.deadline <= now) {
            if let Some(late) = door.strangers.pop_front() {
                self.refuse(late.socket.fd(), &Refusal::Late);
            }
        }
        while door
            .parked
            .front()
            .is_some_and(|(deadline, _)| *deadline <= now)
        {
            if let Some((_, late)) = door.parked.pop_front() {
                let why = Refusal::Stranger("there is no link that it asked for");
                self.refuse(&late.fd, &why);
            }
        }
    }

    fn links(&self) -> MutexGuard<'_, HashMap<Key, Arc<Mailbox>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
    )
}
