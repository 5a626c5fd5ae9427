//! One connection's TLS: bytes of puts in, records out, and the other way round.
#![allow(
    unsafe_code,
    reason = "sources and windows are addresses in the contract"
)]

use std::io::{self, BufRead, Read};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::ServerName;
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};

use super::key::{KEY_BYTES, Key};
use super::pinned::Pinned;
use super::socket::Socket;
use crate::memory;
use crate::net::Piece;

/// Plain bytes that are encrypted at once: four records, and one call to the system.
const CHUNK: usize = 64 << 10;
/// Bytes that one call reads from the system.
const INPUT: usize = 128 << 10;

/// The encrypted stream over one socket.
#[derive(Debug)]
pub(crate) struct Session {
    connection: Connection,
    /// Plain bytes on their way into records.
    chunk: Vec<u8>,
    /// What the system gave and the library has not read.
    input: Vec<u8>,
    unread: std::ops::Range<usize>,
    /// Why nothing more comes, to be told once what came before is taken.
    failed: Option<io::Error>,
}

impl Session {
    /// The dialer's end, with its own key and the acceptor's.
    pub(crate) fn dial(own: Key, peer: &[u8; KEY_BYTES]) -> Result<Self, rustls::Error> {
        let provider = Arc::new(ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(pinned(peer, provider))
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(
                own.certified(),
            )));
        config.resumption = Resumption::disabled();
        // The key says who the peer is, so no name has to.
        config.enable_sni = false;
        let name = ServerName::IpAddress(std::net::Ipv4Addr::UNSPECIFIED.into());
        let connection = ClientConnection::new(Arc::new(config), name)?;
        Ok(Self::over(connection.into()))
    }

    /// The acceptor's end, with its own key and the dialer's.
    pub(crate) fn accept(own: Key, peer: &[u8; KEY_BYTES]) -> Result<Self, rustls::Error> {
        let provider = Arc::new(ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(pinned(peer, provider))
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(
                own.certified(),
            )));
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        let connection = ServerConnection::new(Arc::new(config))?;
        Ok(Self::over(connection.into()))
    }

    fn over(mut connection: Connection) -> Self {
        // What may wait in it is bounded here, by `CHUNK` and by the peer's records.
        connection.set_buffer_limit(None);
        Self {
            connection,
            chunk: Vec::with_capacity(CHUNK),
            input: vec![0; INPUT],
            unread: 0..0,
            failed: None,
        }
    }

    /// Goes on with the handshake; true once both ends have shown their keys.
    ///
    /// # Errors
    /// `InvalidData` if the peer is not who it should be or speaks no TLS; else the system's.
    pub(crate) fn shake(&mut self, fd: BorrowedFd<'_>) -> io::Result<bool> {
        loop {
            while self.connection.wants_write() {
                match self.connection.write_tls(&mut Socket(fd)) {
                    Ok(_) => {}
                    Err(error) if is_later(&error) => return Ok(false),
                    Err(error) => return Err(error),
                }
            }
            if !self.connection.is_handshaking() {
                return Ok(true);
            }
            match self.read_records(fd) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if is_later(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the handshake waits for the socket to take bytes rather than to bring some.
    pub(crate) fn wants_write(&self) -> bool {
        self.connection.wants_write()
    }

    /// Whether bytes were encrypted that the system has not all taken.
    pub(crate) fn owes(&self) -> bool {
        self.connection.wants_write()
    }

    /// Whether [`receive`](Self::receive) has bytes that the socket does not show.
    pub(crate) fn holds_input(&mut self) -> bool {
        !self.unread.is_empty()
            || self.failed.is_some()
            || !matches!(self.connection.reader().fill_buf(), Err(e) if is_later(&e))
    }

    /// As [`net::send`](crate::net::send). Bytes count as sent when they are encrypted, for the peer may
    /// acknowledge what the system has of them at any moment; while some are [owed](Self::owes), another
    /// call must follow, if only with nothing.
    ///
    /// # Errors
    /// `WouldBlock` if it takes nothing; else the connection is gone.
    ///
    /// # Safety
    /// Each piece is readable memory of its length.
    pub(crate) unsafe fn send(
        &mut self,
        fd: BorrowedFd<'_>,
        pieces: &[Piece],
    ) -> io::Result<usize> {
        let mut sent = 0;
        loop {
            while self.connection.wants_write() {
                match self.connection.write_tls(&mut Socket(fd)) {
                    Ok(_) => {}
                    Err(_) if sent > 0 => return Ok(sent), // it will be said again
                    Err(error) => return Err(error),
                }
            }
            // SAFETY: by the caller's promise.
            unsafe { self.gather(pieces, sent) };
            if self.chunk.is_empty() {
                return Ok(sent);
            }
            io::Write::write_all(&mut self.connection.writer(), &self.chunk)?;
            sent += self.chunk.len();
        }
    }

    /// Copies the next bytes of `pieces`, from `skip` on, to the chunk.
    ///
    /// # Safety
    /// Each piece is readable memory of its length.
    unsafe fn gather(&mut self, pieces: &[Piece], mut skip: usize) {
        self.chunk.clear();
        for piece in pieces {
            let passed = skip.min(piece.length());
            skip -= passed;
            let room = CHUNK - self.chunk.len();
            let run = (piece.length() - passed).min(room);
            // SAFETY: by the caller's promise; the chunk has room for it.
            unsafe { memory::copy_out(piece.address().wrapping_add(passed), run, &mut self.chunk) };
            if self.chunk.len() == CHUNK {
                return;
            }
        }
    }

    /// As [`net::receive`](crate::net::receive): when it gives less than was asked for, neither it
    /// nor the socket has more.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is there; `InvalidData` if what came was not sent by the peer; else
    /// the connection is gone.
    ///
    /// # Safety
    /// Each piece is writable memory of its length.
    pub(crate) unsafe fn receive(
        &mut self,
        fd: BorrowedFd<'_>,
        pieces: &[Piece],
    ) -> io::Result<usize> {
        let (mut got, mut ended) = (0, false);
        for piece in pieces {
            let mut filled = 0;
            while filled < piece.length() {
                let mut reader = self.connection.reader();
                match reader.fill_buf() {
                    Ok([]) => return Ok(got),
                    Ok(plain) => {
                        let run = plain.len().min(piece.length() - filled);
                        let place = piece.address().wrapping_add(filled);
                        // SAFETY: by the caller's promise.
                        unsafe { memory::copy_in(&plain[..run], place) };
                        reader.consume(run);
                        filled += run;
                        got += run;
                        continue;
                    }
                    Err(error) if is_later(&error) => {}
                    Err(error) => return Err(error),
                }
                if ended {
                    return Ok(got);
                }
                match self.read_records(fd) {
                    Ok(count) => ended = count == 0,
                    Err(error) if got > 0 => {
                        self.failed = Some(error).filter(|error| !is_later(error));
                        return Ok(got);
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(got)
    }

    /// Reads from the system and decrypts what is whole; 0 at the stream's end.
    fn read_records(&mut self, fd: BorrowedFd<'_>) -> io::Result<usize> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if self.unread.is_empty() {
            let count = Socket(fd).read(&mut self.input)?;
            self.unread = 0..count;
        }
        let mut rest = &self.input[self.unread.clone()];
        if rest.is_empty() {
            return Ok(0);
        }
        let count = self.connection.read_tls(&mut rest)?;
        self.unread.start += count;
        if let Err(error) = self.connection.process_new_packets() {
            // The peer may hear why; it will notice either way.
            let _ = self.connection.write_tls(&mut Socket(fd));
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
        Ok(count)
    }
}

fn pinned(peer: &[u8; KEY_BYTES], provider: Arc<CryptoProvider>) -> Arc<Pinned> {
    Pinned::new(peer, provider)
}

fn is_later(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn sockets() -> [UnixStream; 2] {
        let (a, b) = UnixStream::pair().unwrap();
        for socket in [&a, &b] {
            socket.set_nonblocking(true).unwrap();
        }
        [a, b]
    }

    fn shaken(sockets: &[UnixStream; 2], ends: &mut [Session; 2]) -> [io::Result<bool>; 2] {
        for _ in 0..20 {
            let went = [0, 1].map(|i: usize| ends[i].shake(sockets[i].as_fd()));
            if went.iter().any(Result::is_err) || went.iter().all(|w| matches!(w, Ok(true))) {
                return went;
            }
        }
        panic!("the handshake does not end");
    }

    fn pair() -> ([UnixStream; 2], [Session; 2]) {
        let (own, theirs) = (Key::fresh().unwrap(), Key::fresh().unwrap());
        let (public, their_public) = (own.public(), theirs.public());
        let mut ends = [
            Session::dial(own, &their_public).unwrap(),
            Session::accept(theirs, &public).unwrap(),
        ];
        let sockets = sockets();
        assert!(matches!(shaken(&sockets, &mut ends), [Ok(true), Ok(true)]));
        (sockets, ends)
    }

    fn piece(bytes: &mut [u8]) -> Piece {
        Piece::new(bytes.as_mut_ptr(), bytes.len())
    }

    #[test]
    fn bytes_arrive_whatever_the_pieces_and_however_little_the_socket_takes() {
        let (sockets, [mut dialer, mut acceptor]) = pair();
        let mut source: Vec<u8> = (0..1_000_003_u32).map(|i| (i % 251) as u8).collect();
        let mut target = vec![0; source.len()];
        let (mut sent, mut got, mut full) = (0, 0, 0);
        while got < target.len() {
            let third = (source.len() - sent) / 3;
            let (one, two) = source[sent..].split_at_mut(third);
            // SAFETY: both pieces live through the call, and nobody else touches them.
            match unsafe { dialer.send(sockets[0].as_fd(), &[piece(one), piece(two)]) } {
                Ok(more) => sent += more,
                Err(error) => {
                    assert!(is_later(&error), "{error}");
                    full += 1;
                }
            }
            let end = target.len().min(got + 7001);
            let (one, two) = target[got..end].split_at_mut((end - got) / 2);
            // SAFETY: as above.
            match unsafe { acceptor.receive(sockets[1].as_fd(), &[piece(one), piece(two)]) } {
                Ok(more) => got += more,
                Err(error) => assert!(is_later(&error), "{error}"),
            }
            if got < end {
                assert!(!acceptor.holds_input(), "it gave less than it had");
            }
        }
        assert!(full > 0, "the socket took everything at once");
        assert_eq!(sent, source.len());
        assert!(source == target);
        assert!(!dialer.owes());
    }

    #[test]
    fn only_the_keys_that_were_signed_are_taken() {
        for swapped in [0, 1] {
            let keys = [0, 1].map(|_| Key::fresh().unwrap());
            let mut expected = [keys[0].public(), keys[1].public()];
            expected[swapped] = Key::fresh().unwrap().public();
            let [own, theirs] = keys;
            let mut ends = [
                Session::dial(own, &expected[1]).unwrap(),
                Session::accept(theirs, &expected[0]).unwrap(),
            ];
            let sockets = sockets();
            let went = shaken(&sockets, &mut ends);
            let refused = went.into_iter().find_map(Result::err).unwrap();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidData, "{refused}");
        }
    }

    #[test]
    fn a_changed_bit_is_noticed_and_nothing_of_it_is_given() {
        let (sockets, [mut dialer, mut acceptor]) = pair();
        let mut source = vec![7; 100];
        // SAFETY: the piece lives through the call.
        let sent = unsafe { dialer.send(sockets[0].as_fd(), &[piece(&mut source)]) };
        assert_eq!(sent.unwrap(), 100);
        let mut record = [0; 500];
        let length = Socket(sockets[1].as_fd()).read(&mut record).unwrap();
        assert!(!record[..length].windows(20).any(|run| run == [7; 20]));
        record[length / 2] ^= 1;
        let (near, far) = UnixStream::pair().unwrap();
        io::Write::write_all(&mut &near, &record[..length]).unwrap();
        let mut target = vec![0; 100];
        // SAFETY: as above.
        let got = unsafe { acceptor.receive(far.as_fd(), &[piece(&mut target)]) };
        assert_eq!(got.unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(target, [0; 100]);
    }
}
