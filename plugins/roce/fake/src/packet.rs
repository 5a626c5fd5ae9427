//! Packets: datagrams on abstract Unix sockets, one socket a queue pair.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

/// Bytes that one packet carries.
pub const PAYLOAD: usize = 16 << 10;
const HEAD: usize = 48;

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Write,
    Send,
    /// All up to this number has arrived.
    Ack,
    /// This number is the next one wanted.
    Again,
    /// There is no receive for it.
    NotReady,
    /// The key, the place or the right is wrong.
    Access,
    /// The receive is too short.
    Invalid,
}

const KINDS: [Kind; 7] = [
    Kind::Write,
    Kind::Send,
    Kind::Ack,
    Kind::Again,
    Kind::NotReady,
    Kind::Access,
    Kind::Invalid,
];

/// A packet's head.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    pub kind: Kind,
    /// The last of its message.
    pub last: bool,
    pub immediate: Option<u32>,
    pub from: u32,
    pub number: u32,
    pub remote: u64,
    pub key: u32,
    /// Bytes of the message before this packet.
    pub before: u32,
}

impl Head {
    pub fn new(kind: Kind, from: u32, number: u32) -> Self {
        Self {
            kind,
            last: true,
            immediate: None,
            from,
            number,
            remote: 0,
            key: 0,
            before: 0,
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        let kind = KINDS
            .iter()
            .position(|kind| *kind == self.kind)
            .unwrap_or(0);
        out.extend([
            kind as u8,
            u8::from(self.last),
            u8::from(self.immediate.is_some()),
            0,
        ]);
        out.extend(self.immediate.unwrap_or(0).to_le_bytes());
        out.extend(self.from.to_le_bytes());
        out.extend(self.number.to_le_bytes());
        out.extend(self.remote.to_le_bytes());
        out.extend(self.key.to_le_bytes());
        out.extend(self.before.to_le_bytes());
        out.resize(HEAD, 0);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let head: &[u8; HEAD] = bytes.first_chunk()?;
        let u32_at =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        Some(Self {
            kind: *KINDS.get(usize::from(head[0]))?,
            last: head[1] != 0,
            immediate: (head[2] != 0).then(|| u32_at(4)),
            from: u32_at(8),
            number: u32_at(12),
            remote: u64::from(u32_at(16)) | u64::from(u32_at(20)) << 32,
            key: u32_at(24),
            before: u32_at(28),
        })
    }
}

/// The address of a queue pair on a device.
pub fn address(device: &Path, number: u32) -> io::Result<SocketAddr> {
    // Names are short, folders are not: a hash stands for the folder.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in device.as_os_str().as_encoded_bytes() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    SocketAddr::from_abstract_name(format!("unisono-fake-verbs/{hash:x}/{number:x}"))
}

/// A queue pair's socket.
pub struct Socket {
    socket: UnixDatagram,
    buffer: Vec<u8>,
    input: Vec<u8>,
}

impl Socket {
    pub fn bind(device: &Path, number: u32) -> io::Result<Self> {
        let socket = UnixDatagram::bind_addr(&address(device, number)?)?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            buffer: Vec::with_capacity(HEAD + PAYLOAD),
            input: vec![0; HEAD + PAYLOAD],
        })
    }

    pub fn fd(&self) -> i32 {
        std::os::fd::AsRawFd::as_raw_fd(&self.socket)
    }

    /// False if it could not go now; a peer that is not there is a packet lost.
    pub fn send(&mut self, to: &SocketAddr, head: &Head, payload: &[u8]) -> bool {
        head.encode(&mut self.buffer);
        self.buffer.extend_from_slice(payload);
        let sent = self.socket.send_to_addr(&self.buffer, to);
        !matches!(sent, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// The next packet, if one is there.
    pub fn receive(&mut self) -> Option<(Head, &[u8])> {
        loop {
            let length = self.socket.recv(&mut self.input).ok()?;
            if let Some(head) = Head::decode(&self.input[..length]) {
                return Some((head, &self.input[HEAD..length]));
            }
        }
    }
}
