//! The other process of a check: messages over a socket, and the control channel that links need.
//!
//! Both processes run the same check with another role. The socket is each one's standard input,
//! so that nothing must be found by name.

use std::collections::{HashMap, VecDeque};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha512};
use unisono_hal::{Channel, Received, Status};

use crate::outcome::{Checked, Outcome, Stop};

/// Tags of the suite's own messages have this bit; those of plugins must not.
const OWN: u64 = 1 << 63;
/// The last message: how the sender's part of the check ended.
const OUTCOME: u64 = u64::MAX;
/// The longest wait for the other process.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest message that a control channel takes.
const MESSAGE_MAX: usize = 64 << 10;

/// The other process of a check.
#[derive(Clone)]
pub struct Peer(Arc<Inner>);

struct Inner {
    role: u32,
    writer: Mutex<UnixStream>,
    inbox: Mutex<Inbox>,
    news: Condvar,
}

#[derive(Default)]
struct Inbox {
    messages: HashMap<u64, VecDeque<Vec<u8>>>,
    outcome: Option<Outcome>,
    closed: bool,
}

impl Peer {
    /// The other end of the socket; `role` is this process's, 0 or 1.
    ///
    /// # Errors
    /// If the socket cannot be shared with the thread that reads it.
    pub fn new(socket: UnixStream, role: u32) -> std::io::Result<Self> {
        let reader = socket.try_clone()?;
        let inner = Arc::new(Inner {
            role,
            writer: Mutex::new(socket),
            inbox: Mutex::default(),
            news: Condvar::new(),
        });
        let hears = inner.clone();
        std::thread::Builder::new()
            .name("peer".to_owned())
            .spawn(move || hears.read(reader))?;
        Ok(Self(inner))
    }

    /// Sends a message of the suite's.
    ///
    /// # Errors
    /// If the other process is gone.
    pub fn send(&self, tag: u64, data: &[u8]) -> Checked {
        self.0
            .write(OWN | tag, data)
            .map_err(|e| self.gone(&e.to_string()))
    }

    /// Takes the next message of the suite's with this tag, and waits for it.
    ///
    /// # Errors
    /// If the other process failed, is gone, or says nothing for too long.
    pub fn recv(&self, tag: u64) -> Checked<Vec<u8>> {
        let end = Instant::now() + PATIENCE;
        let mut inbox = self.0.lock();
        loop {
            let queue = inbox.messages.get_mut(&(OWN | tag));
            if let Some(message) = queue.and_then(VecDeque::pop_front) {
                return Ok(message);
            }
            match &inbox.outcome {
                Some(Outcome::Fail(what)) => return Err(Stop::failed(what.clone())),
                Some(Outcome::Unsupported(what)) => return Err(Stop::unsupported(what.clone())),
                _ if inbox.closed => return Err(self.gone("it closed its end")),
                _ => {}
            }
            let Some(left) = end.checked_duration_since(Instant::now()) else {
                return Err(Stop::failed(format!(
                    "process {} of the check said nothing for {PATIENCE:?}",
                    1 - self.0.role
                )));
            };
            let waited = self.0.news.wait_timeout(inbox, left);
            inbox = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Sends and takes one message.
    ///
    /// # Errors
    /// As the two.
    pub fn exchange(&self, tag: u64, data: &[u8]) -> Checked<Vec<u8>> {
        self.send(tag, data)?;
        self.recv(tag)
    }

    /// Returns once both processes have called it.
    ///
    /// # Errors
    /// As [`Peer::exchange`].
    pub fn meet(&self, tag: u64) -> Checked {
        self.exchange(tag, &[]).map(|_| ())
    }

    /// Whether a message of the suite's has come; does not wait.
    #[must_use]
    pub fn has(&self, tag: u64) -> bool {
        let inbox = self.0.lock();
        inbox.closed
            || inbox
                .messages
                .get(&(OWN | tag))
                .is_some_and(|q| !q.is_empty())
    }

    /// Tells how this process's part ended.
    pub fn finish(&self, outcome: &Outcome) {
        if let Ok(text) = serde_json::to_vec(outcome) {
            // Who does not hear it finds the socket closed.
            let _ = self.0.write(OUTCOME, &text);
        }
    }

    /// How the other process's part ended; `None` if it ended without a word.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        let end = Instant::now() + PATIENCE;
        let mut inbox = self.0.lock();
        while inbox.outcome.is_none() && !inbox.closed {
            let left = end.checked_duration_since(Instant::now())?;
            let waited = self.0.news.wait_timeout(inbox, left);
            inbox = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        inbox.outcome.clone()
    }

    fn gone(&self, why: &str) -> Stop {
        Stop::failed(format!(
            "process {} of the check is gone: {why}",
            1 - self.0.role
        ))
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, tag: u64, data: &[u8]) -> std::io::Result<()> {
        let mut frame = Vec::with_capacity(16 + data.len());
        frame.extend_from_slice(&tag.to_le_bytes());
        frame.extend_from_slice(&(data.len() as u64).to_le_bytes());
        frame.extend_from_slice(data);
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.write_all(&frame)
    }

    fn read(&self, mut socket: UnixStream) {
        while let Some((tag, data)) = frame(&mut socket) {
            let mut inbox = self.lock();
            if tag == OUTCOME {
                inbox.outcome = serde_json::from_slice(&data).ok();
            } else {
                inbox.messages.entry(tag).or_default().push_back(data);
            }
            self.news.notify_all();
        }
        self.lock().closed = true;
        self.news.notify_all();
    }
}

fn frame(socket: &mut UnixStream) -> Option<(u64, Vec<u8>)> {
    let mut head = [0; 16];
    socket.read_exact(&mut head).ok()?;
    let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap_or_default());
    let mut data = vec![0; usize::try_from(word(8)).ok()?];
    socket.read_exact(&mut data).ok()?;
    Some((word(0), data))
}

/// The control channel of a communicator of the check's two processes.
pub struct CheckChannel {
    peer: Peer,
    id: u64,
    key: &'static [u8],
}

impl CheckChannel {
    /// A channel whose two ends have the same key.
    #[must_use]
    pub fn new(peer: &Peer, id: u64) -> Self {
        Self {
            peer: peer.clone(),
            id,
            key: b"of the job",
        }
    }

    /// A channel that proves nothing to the other end.
    #[must_use]
    pub fn impostor(peer: &Peer, id: u64) -> Self {
        Self {
            key: b"of somebody else",
            ..Self::new(peer, id)
        }
    }

    fn sign(&self, rank: u32, transcript: &[u8]) -> [u8; 64] {
        let mut hash = Sha512::new();
        hash.update(self.key);
        hash.update(rank.to_le_bytes());
        hash.update(transcript);
        hash.finalize().into()
    }

    /// A plugin's tag in this channel, apart from those of other channels.
    fn tag(&self, tag: u64) -> u64 {
        (tag ^ self.id.rotate_left(17)) & !OWN
    }
}

impl Channel for CheckChannel {
    fn rank(&self) -> u32 {
        self.peer.0.role
    }

    fn size(&self) -> u32 {
        2
    }

    fn id(&self) -> u64 {
        self.id
    }

    fn prove(&self, transcript: &[u8]) -> Result<[u8; 64], Status> {
        Ok(self.sign(self.rank(), transcript))
    }

    fn verify(&self, rank: u32, transcript: &[u8], signature: &[u8; 64]) -> Result<(), Status> {
        if self.sign(rank, transcript) == *signature {
            Ok(())
        } else {
            Err(Status::Auth)
        }
    }

    fn send(&self, rank: u32, tag: u64, data: &[u8]) -> Result<(), Status> {
        if rank == self.rank() || rank > 1 || data.len() > MESSAGE_MAX {
            return Err(Status::Invalid);
        }
        let sent = self.peer.0.write(self.tag(tag), data);
        sent.map_err(|_| Status::Peer)
    }

    fn recv(&self, rank: u32, tag: u64, buffer: &mut [u8]) -> Result<Received, Status> {
        if rank == self.rank() || rank > 1 {
            return Err(Status::Invalid);
        }
        let mut inbox = self.peer.0.lock();
        let Some(queue) = inbox.messages.get_mut(&self.tag(tag)) else {
            return Ok(Received::Nothing);
        };
        match queue.front().map(Vec::len) {
            None => Ok(Received::Nothing),
            Some(len) if len > buffer.len() => Ok(Received::TooLong(len)),
            Some(len) => {
                let message = queue.pop_front().unwrap_or_default();
                buffer[..len].copy_from_slice(&message);
                Ok(Received::Message(len))
            }
        }
    }
}
