//! One connection's handshake, from either end, as far as the socket lets it go: the proofs, then TLS
//! where links are encrypted.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use rustix::net::{RecvFlags, SendFlags};
use unisono_plugin::Channel;

use crate::net::{Interest, Polled, Poller, connected, is_within_machine};
use crate::tls::{KEY_BYTES, Key, Session};
use crate::wire::{
    CHALLENGE_BYTES, Challenge, HELLO_BYTES, Hello, NONCE_BYTES, PROOF_BYTES, Role, WireError,
    transcript,
};

const _: () = assert!(KEY_BYTES == NONCE_BYTES, "a public key serves as nonce");
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
    /// It proved itself, but does not speak TLS with the key that it signed.
    Tls(io::Error),
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
            Self::Tls(error) => write!(
                f,
                "it proved its rank, but TLS with it fails, as if somebody else were on the path: {error}"
            ),
            Self::Late => f.write_str("it did not prove itself in time"),
            Self::Stranger(why) => f.write_str(why),
            Self::Crowd => f.write_str("too many strangers at once, and it was the oldest"),
        }
    }
}

impl Refusal {
    /// What TLS refused, or what became of the connection under it.
    fn of_tls(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::InvalidData => Self::Tls(error),
            io::ErrorKind::UnexpectedEof => Self::End,
            _ => Self::System(error),
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
    /// Both: until TLS stands.
    Tls,
    /// All said; what is unsent goes out.
    Done,
}

/// What one end brings that is fresh.
#[derive(Debug)]
pub(super) enum Nonce {
    /// Randomness that nobody can foretell.
    Random([u8; NONCE_BYTES]),
    /// A key pair, for TLS.
    Key(Key),
}

impl Nonce {
    pub(super) fn fresh(encrypt: bool) -> io::Result<Self> {
        if encrypt {
            return Key::fresh().map(Self::Key);
        }
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).map_err(io::Error::other)?;
        Ok(Self::Random(nonce))
    }

    /// As it is sent.
    pub(super) const fn bytes(&self) -> [u8; NONCE_BYTES] {
        match self {
            Self::Random(bytes) => *bytes,
            Self::Key(key) => key.public(),
        }
    }
}

/// A handshake under way.
#[derive(Debug)]
pub(crate) struct Handshake {
    socket: Polled,
    hello: Hello,
    step: Step,
    /// This end's, until TLS takes it.
    nonce: Option<Nonce>,
    /// Whether both ends find that the connection lasts as long as both processes.
    lasting: bool,
    tls: Option<Box<Session>>,
    deadline: Instant,
    input: [u8; BUFFER],
    got: usize,
    output: [u8; BUFFER],
    unsent: std::ops::Range<usize>,
}

impl Handshake {
    /// The dialing end, on a socket that connects.
    pub(super) fn dial(socket: Polled, hello: Hello, nonce: Nonce, deadline: Instant) -> Self {
        Self::new(socket, hello, Step::Connect, nonce, deadline)
    }

    /// The accepting end, on a socket that said hello; where `may_last` it finds that the connection lasts if it is
    /// within the machine.
    pub(crate) fn accept(
        fd: OwnedFd,
        poller: Arc<Poller>,
        hello: Hello,
        may_last: bool,
        deadline: Instant,
    ) -> Result<Self, Refusal> {
        let nonce = Nonce::fresh(hello.encrypt).map_err(Refusal::System)?;
        let lasting = hello.lasting && may_last && is_within_machine(&fd);
        let challenge = Challenge {
            lasting,
            nonce: nonce.bytes(),
        };
        let step = Step::DialerProof(challenge);
        let socket = Polled::new(fd, poller);
        let mut handshake = Self::new(socket, hello, step, nonce, deadline);
        handshake.lasting = lasting;
        handshake.say(&challenge.encode());
        Ok(handshake)
    }

    fn new(socket: Polled, hello: Hello, step: Step, nonce: Nonce, deadline: Instant) -> Self {
        Self {
            socket,
            hello,
            step,
            nonce: Some(nonce),
            lasting: false,
            tls: None,
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

    /// Whether both ends find that the connection lasts as long as both processes.
    pub(super) const fn is_lasting(&self) -> bool {
        self.lasting
    }

    /// The authenticated socket, and what encrypts it.
    pub(crate) fn into_parts(self) -> io::Result<(OwnedFd, Option<Box<Session>>)> {
        Ok((self.socket.into_fd()?, self.tls))
    }

    /// Watches for what it waits for.
    pub(crate) fn watch(&mut self, key: u64) -> io::Result<()> {
        let tls_writes = self.tls.as_ref().is_some_and(|tls| tls.wants_write());
        let write = !self.is_connected() || !self.unsent.is_empty() || tls_writes;
        let read = !write;
        self.socket.watch(Interest::of(read, write), key)
    }

    /// Whether the acceptor may have taken the connection: the dialer has proved itself to it.
    pub(super) const fn may_be_taken(&self) -> bool {
        matches!(self.step, Step::AcceptorProof(_) | Step::Tls | Step::Done)
    }

    /// Whether both ends have proved themselves.
    pub(super) const fn has_proved(&self) -> bool {
        matches!(self.step, Step::Tls | Step::Done)
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
                    self.hello.lasting &= is_within_machine(self.socket.fd());
                    let hello = self.hello.encode();
                    self.say(&hello);
                    self.step = Step::Challenge;
                }
                Step::Challenge => {
                    let Some(bytes) = self.take::<CHALLENGE_BYTES>()? else {
                        return self.wait();
                    };
                    let challenge = Challenge::decode(&bytes).map_err(Refusal::Wire)?;
                    self.lasting = self.hello.lasting && challenge.lasting;
                    self.prove(channel, Role::Dialer, &challenge)?;
                    self.step = Step::AcceptorProof(challenge);
                }
                Step::DialerProof(challenge) => {
                    let Some(proof) = self.take::<PROOF_BYTES>()? else {
                        return self.wait();
                    };
                    self.verify(channel, peer, Role::Dialer, &challenge, &proof)?;
                    self.prove(channel, Role::Acceptor, &challenge)?;
                    let dialer = self.hello.nonce;
                    self.encrypt(|own| Session::accept(own, &dialer))?;
                }
                Step::AcceptorProof(challenge) => {
                    let Some(proof) = self.take::<PROOF_BYTES>()? else {
                        return self.wait();
                    };
                    self.verify(channel, peer, Role::Acceptor, &challenge, &proof)?;
                    self.encrypt(|own| Session::dial(own, &challenge.nonce))?;
                }
                Step::Tls => {
                    let fd = self.socket.fd().as_fd();
                    let Some(tls) = &mut self.tls else {
                        return Ok(true);
                    };
                    if !tls.shake(fd).map_err(Refusal::of_tls)? {
                        return self.wait();
                    }
                    self.step = Step::Done;
                }
                Step::Done => return Ok(true),
            }
        }
    }

    /// Both have proved themselves: TLS is next, unless links are not encrypted.
    fn encrypt(
        &mut self,
        begin: impl FnOnce(Key) -> Result<Session, rustls::Error>,
    ) -> Result<(), Refusal> {
        self.step = Step::Done;
        if let Some(Nonce::Key(own)) = self.nonce.take() {
            let session = begin(own).map_err(|error| Refusal::Tls(io::Error::other(error)))?;
            self.tls = Some(Box::new(session));
            self.step = Step::Tls;
        }
        Ok(())
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
