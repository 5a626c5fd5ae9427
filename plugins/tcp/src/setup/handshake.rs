//! One connection's handshake, from either end, as far as the socket lets it go.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use rustix::net::{RecvFlags, SendFlags};
use unisono_plugin::Channel;

use crate::net::{Interest, Polled, Poller, connected};
use crate::wire::{
    CHALLENGE_BYTES, Challenge, HELLO_BYTES, Hello, NONCE_BYTES, PROOF_BYTES, Role, WireError,
    transcript,
};

const BUFFER: usize = 96;
const _: () = assert!(BUFFER >= HELLO_BYTES && BUFFER >= PROOF_BYTES && BUFFER >= CHALLENGE_BYTES);

/// Why a handshake ended without a connection.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The connection is gone.
    System(io::Error),
    /// The other end went before it was done.
    End,
    /// It does not speak the protocol.
    Wire(WireError),
    /// It speaks it, but could not prove that it is who it says.
    Proof,
    /// It did not prove itself in time.
    Late,
    /// It is not meant to be here.
    Stranger(&'static str),
    /// Too many others came after it.
    Crowd,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::System(error) => write!(f, "{error}"),
            Self::End => f.write_str("it closed the connection before it had proved itself"),
            Self::Wire(error) => write!(f, "{error}"),
            Self::Proof => f.write_str("its signature does not prove its rank"),
            Self::Late => f.write_str("it did not prove itself in time"),
            Self::Stranger(why) => f.write_str(why),
            Self::Crowd => f.write_str("too many strangers at once, and it was the oldest"),
        }
    }
}

/// Where a handshake stands.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Dialer: until the socket is connected.
    Connect,
    /// Dialer: until the acceptor's nonce comes.
    Challenge,
    /// Acceptor: until the dialer's proof comes.
    DialerProof(Challenge),
    /// Dialer: until the acceptor's proof comes.
    AcceptorProof(Challenge),
    /// All said; what is unsent goes out.
    Done,
}

/// A handshake under way.
#[derive(Debug)]
pub(crate) struct Handshake {
    socket: Polled,
    hello: Hello,
    step: Step,
    deadline: Instant,
    input: [u8; BUFFER],
    got: usize,
    output: [u8; BUFFER],
    unsent: std::ops::Range<usize>,
}

impl Handshake {
    /// The dialing end, on a socket that connects.
    pub(crate) fn dial(fd: OwnedFd, poller: Arc<Poller>, hello: Hello, deadline: Instant) -> Self {
        Self::new(fd, poller, hello, Step::Connect, deadline)
    }

    /// The accepting end, on a socket that said hello.
    pub(crate) fn accept(
        fd: OwnedFd,
        poller: Arc<Poller>,
        hello: Hello,
        deadline: Instant,
    ) -> Result<Self, Refusal> {
        let challenge = Challenge {
            nonce: fresh_nonce().map_err(Refusal::System)?,
        };
        let step = Step::DialerProof(challenge);
        let mut handshake = Self::new(fd, poller, hello, step, deadline);
        handshake.say(&challenge.encode());
        Ok(handshake)
    }

    fn new(fd: OwnedFd, poller: Arc<Poller>, hello: Hello, step: Step, deadline: Instant) -> Self {
        Self {
            socket: Polled::new(fd, poller),
            hello,
            step,
            deadline,
            input: [0; BUFFER],
            got: 0,
            output: [0; BUFFER],
            unsent: 0..0,
        }
    }

    /// When it gives up.
    pub(crate) const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Gives it until then instead.
    pub(crate) const fn extend(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    /// Whether the socket stands.
    pub(crate) const fn is_connected(&self) -> bool {
        !matches!(self.step, Step::Connect)
    }

    pub(crate) const fn hello(&self) -> &Hello {
        &self.hello
    }

    pub(crate) const fn socket(&self) -> &OwnedFd {
        self.socket.fd()
    }

    /// The authenticated socket.
    pub(crate) fn into_fd(self) -> io::Result<OwnedFd> {
        self.socket.into_fd()
    }

    /// Watches for what it waits for.
    pub(crate) fn watch(&mut self, key: u64) -> io::Result<()> {
        let write = !self.is_connected() || !self.unsent.is_empty();
        let read = !write;
        self.socket.watch(Interest::of(read, write), key)
    }

    /// Goes on as far as it can; true once both ends have proved themselves.
    pub(crate) fn advance(&mut self, channel: &Channel, peer: u32) -> Result<bool, Refusal> {
        loop {
            if !self.flush()? {
                return self.wait();
            }
            match self.step {
                Step::Connect => {
                    if !connected(self.socket.fd()).map_err(Refusal::System)? {
                        return self.wait();
                    }
                    let hello = self.hello.encode();
                    self.say(&hello);
                    self.step = Step::Challenge;
                }
                Step::Challenge => {
                    let Some(bytes) = self.take::<CHALLENGE_BYTES>()? else {
                        return self.wait();
                    };
                    let challenge = Challenge::decode(&bytes).map_err(Refusal::Wire)?;
                    self.prove(channel, Role::Dialer, &challenge)?;
                    self.step = Step::AcceptorProof(challenge);
                }
                Step::DialerProof(challenge) => {
                    let Some(proof) = self.take::<PROOF_BYTES>()? else {
                        return self.wait();
                    };
                    self.verify(channel, peer, Role::Dialer, &challenge, &proof)?;
                    self.prove(channel, Role::Acceptor, &challenge)?;
                    self.step = Step::Done;
                }
                Step::AcceptorProof(challenge) => {
                    let Some(proof) = self.take::<PROOF_BYTES>()? else {
                        return self.wait();
                    };
                    self.verify(channel, peer, Role::Acceptor, &challenge, &proof)?;
                    self.step = Step::Done;
                }
                Step::Done => return Ok(true),
            }
        }
    }

    fn wait(&self) -> Result<bool, Refusal> {
        if Instant::now() >= self.deadline {
            return Err(Refusal::Late);
        }
        Ok(false)
    }

    fn prove(&mut self, channel: &Channel, role: Role, with: &Challenge) -> Result<(), Refusal> {
        let proof = channel
            .prove(&transcript(role, &self.hello, with))
            .map_err(|_| Refusal::Proof)?;
        self.say(&proof);
        Ok(())
    }

    fn verify(
        &self,
        channel: &Channel,
        peer: u32,
        role: Role,
        with: &Challenge,
        proof: &[u8; PROOF_BYTES],
    ) -> Result<(), Refusal> {
        channel
            .verify(peer, &transcript(role, &self.hello, with), proof)
            .map_err(|_| Refusal::Proof)
    }

    fn say(&mut self, record: &[u8]) {
        self.output[..record.len()].copy_from_slice(record);
        self.unsent = 0..record.len();
    }

    /// Whether all that was said is sent.
    fn flush(&mut self) -> Result<bool, Refusal> {
        while !self.unsent.is_empty() {
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            let rest = &self.output[self.unsent.clone()];
            match rustix::net::send(self.socket.fd(), rest, flags) {
                Ok(sent) => self.unsent.start += sent,
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(false),
                Err(error) => return Err(Refusal::System(error.into())),
            }
        }
        Ok(true)
    }

    /// The next record, once it is whole; never reads a byte beyond it.
    fn take<const N: usize>(&mut self) -> Result<Option<[u8; N]>, Refusal> {
        while self.got < N {
            let rest = &mut self.input[self.got..N];
            match rustix::net::recv(self.socket.fd(), rest, RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return Err(Refusal::End),
                Ok((_, got)) => self.got += got,
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(None),
                Err(error) => return Err(Refusal::System(error.into())),
            }
        }
        self.got = 0;
        Ok(self.input.first_chunk::<N>().copied())
    }
}

/// Randomness that nobody can foretell.
pub(super) fn fresh_nonce() -> io::Result<[u8; NONCE_BYTES]> {
    let mut nonce = [0; NONCE_BYTES];
    getrandom::fill(&mut nonce).map_err(io::Error::other)?;
    Ok(nonce)
}
