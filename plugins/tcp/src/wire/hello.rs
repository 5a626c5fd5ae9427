//! The handshake's records, and the transcript that both ends sign.
//!
//! ```text
//! dialer                            acceptor
//!   Hello (80 bytes)           ->
//!                              <-   Challenge (42 bytes)
//!   proof(Dialer, transcript)  ->                            64 bytes
//!                              <-   proof(Acceptor, transcript)
//!   frames                    <->   frames
//! ```
//!
//! If the hello says so, TLS begins after the proofs, and the frames are inside it. The nonces are
//! then the public keys that each end made for this connection ([`tls`](crate::tls)).
//!
//! The acceptor signs last, so that a stranger costs it at most one check of a signature, and that
//! only if the stranger knows the channel's id and the acceptor's nonce. Both nonces are in the
//! transcript, so nothing can be replayed; the role is in it, so nothing can be reflected.

use super::{Fields, WireError, Writer};

const MAGIC: [u8; 8] = *b"UNISOTCP";
const VERSION: u16 = 3;
/// The frames are encrypted.
const FLAG_ENCRYPT: u16 = 1;
/// The connection lasts as long as both processes.
const FLAG_LASTING: u16 = 2;
/// Bits of a hello's marks that are flags.
const FLAGS: u32 = 2;
/// Generations of a connection are counted modulo this.
pub const GENERATIONS: u16 = 1 << (u16::BITS - FLAGS);
/// Connections that one link may have.
const MAX_CONNECTIONS: u16 = 16;

/// Bytes of an encoded [`Hello`].
pub const HELLO_BYTES: usize = 80;
/// Bytes of an encoded [`Challenge`].
pub const CHALLENGE_BYTES: usize = 42;
/// Bytes of a proof: one signature.
pub const PROOF_BYTES: usize = 64;
/// Bytes of each end's nonce.
pub const NONCE_BYTES: usize = 32;

/// The dialer's first record: which link, which of its connections, and to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Which of the link's connections this is.
    pub index: u16,
    /// How many connections the link has.
    pub count: u16,
    /// How many connections there were in its place before.
    pub generation: u16,
    /// Id of the channel.
    pub channel: u64,
    /// The dialer's rank.
    pub from: u32,
    /// The acceptor's rank.
    pub to: u32,
    /// The acceptor's instance, as it stands in its address: what was dialled is what was meant.
    pub instance: [u8; 16],
    /// Whether frames are encrypted: both ends must want the same.
    pub encrypt: bool,
    /// Whether the dialer would keep nothing to be sent again: the connection lasts as long as both processes.
    pub lasting: bool,
    /// Fresh randomness, or a fresh public key.
    pub nonce: [u8; NONCE_BYTES],
}

impl Hello {
    /// The record as it is sent.
    pub fn encode(&self) -> [u8; HELLO_BYTES] {
        let encrypt = u16::from(self.encrypt) * FLAG_ENCRYPT;
        let lasting = u16::from(self.lasting) * FLAG_LASTING;
        let marks = ((self.generation % GENERATIONS) << FLAGS) | encrypt | lasting;
        Writer::new()
            .put(&MAGIC)
            .put(&VERSION.to_le_bytes())
            .put(&self.index.to_le_bytes())
            .put(&self.count.to_le_bytes())
            .put(&marks.to_le_bytes())
            .put(&self.channel.to_le_bytes())
            .put(&self.from.to_le_bytes())
            .put(&self.to.to_le_bytes())
            .put(&self.instance)
            .put(&self.nonce)
            .finish()
    }

    /// Reads a record.
    ///
    /// # Errors
    /// If it is not one, or names connections or ranks that cannot be.
    pub fn decode(bytes: &[u8; HELLO_BYTES]) -> Result<Self, WireError> {
        let mut fields = Fields(bytes);
        if fields.take::<8>()? != MAGIC {
            return Err(WireError::Magic);
        }
        match fields.u16()? {
            VERSION => {}
            other => return Err(WireError::Version(other)),
        }
        let (index, count) = (fields.u16()?, fields.u16()?);
        let marks = fields.u16()?;
        let generation = marks >> FLAGS;
        let hello = Self {
            index,
            count,
            generation,
            channel: fields.u64()?,
            from: fields.u32()?,
            to: fields.u32()?,
            instance: fields.take()?,
            encrypt: marks & FLAG_ENCRYPT != 0,
            lasting: marks & FLAG_LASTING != 0,
            nonce: fields.take()?,
        };
        if count == 0 || count > MAX_CONNECTIONS {
            return Err(WireError::Field("connections"));
        }
        if index >= count {
            return Err(WireError::Field("index"));
        }
        if hello.from >= hello.to {
            return Err(WireError::Field("ranks")); // the lower rank dials
        }
        Ok(hello)
    }

    /// Whether a first part of a record could still become one: garbage is dropped at its first
    /// wrong byte, not when 80 bytes have come.
    pub fn may_begin(bytes: &[u8]) -> bool {
        bytes.iter().zip(MAGIC.iter()).all(|(a, b)| a == b)
    }
}

/// The acceptor's answer to a [`Hello`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// Whether the acceptor keeps nothing to be sent again either; only where the dialer would not.
    pub lasting: bool,
    /// Fresh randomness, or a fresh public key.
    pub nonce: [u8; NONCE_BYTES],
}

impl Challenge {
    /// The record as it is sent.
    pub fn encode(&self) -> [u8; CHALLENGE_BYTES] {
        Writer::new()
            .put(&MAGIC)
            .put(&u16::from(self.lasting).to_le_bytes())
            .put(&self.nonce)
            .finish()
    }

    /// Reads a record.
    ///
    /// # Errors
    /// If it is not one.
    pub fn decode(bytes: &[u8; CHALLENGE_BYTES]) -> Result<Self, WireError> {
        let mut fields = Fields(bytes);
        if fields.take::<8>()? != MAGIC {
            return Err(WireError::Magic);
        }
        let lasting = match fields.u16()? {
            0 => false,
            1 => true,
            _ => return Err(WireError::Field("lasting")),
        };
        Ok(Self {
            lasting,
            nonce: fields.take()?,
        })
    }
}

/// Whose proof a transcript is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The end that connects: the lower rank.
    Dialer,
    /// The end that listens.
    Acceptor,
}

/// What `role` signs.
pub fn transcript(role: Role, hello: &Hello, challenge: &Challenge) -> Vec<u8> {
    let label: &[u8] = match role {
        Role::Dialer => b"unisono tcp 1 dialer\0",
        Role::Acceptor => b"unisono tcp 1 acceptor\0",
    };
    [label, &hello.encode(), &challenge.encode()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample() -> Hello {
        Hello {
            index: 1,
            count: 2,
            generation: 3,
            channel: 77,
            from: 3,
            to: 9,
            instance: [5; 16],
            encrypt: true,
            lasting: true,
            nonce: [6; 32],
        }
    }

    #[test]
    fn a_hello_survives_the_wire() {
        assert_eq!(Hello::decode(&sample().encode()), Ok(sample()));
    }

    #[test]
    fn a_hello_that_cannot_be_is_refused() {
        let refused = |change: fn(&mut Hello)| {
            let mut hello = sample();
            change(&mut hello);
            Hello::decode(&hello.encode()).unwrap_err()
        };
        assert_eq!(refused(|h| h.count = 17), WireError::Field("connections"));
        assert_eq!(refused(|h| h.count = 0), WireError::Field("connections"));
        assert_eq!(refused(|h| h.index = 2), WireError::Field("index"));
        assert_eq!(refused(|h| h.from = 9), WireError::Field("ranks"));
        let mut other = sample().encode();
        other[8] = 9;
        assert_eq!(Hello::decode(&other), Err(WireError::Version(9)));
    }

    #[test]
    fn garbage_is_known_by_its_first_byte() {
        assert!(Hello::may_begin(b""));
        assert!(Hello::may_begin(b"UNI"));
        assert!(!Hello::may_begin(b"GET / HTTP/1.1"));
    }

    #[test]
    fn the_roles_sign_different_transcripts() {
        let challenge = Challenge {
            lasting: false,
            nonce: [1; 32],
        };
        assert_ne!(
            transcript(Role::Dialer, &sample(), &challenge),
            transcript(Role::Acceptor, &sample(), &challenge)
        );
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::array::uniform32(any::<u8>()), at in 0usize..48) {
            let mut hello = sample().encode();
            hello[at..at + 32].copy_from_slice(&bytes);
            if let Ok(decoded) = Hello::decode(&hello) {
                prop_assert_eq!(decoded.encode(), hello);
            }
            let mut challenge = Challenge { lasting: true, nonce: [0; 32] }.encode();
            challenge[at.min(10)..at.min(10) + 32].copy_from_slice(&bytes);
            let _ = Challenge::decode(&challenge).map(|c| assert_eq!(c.encode(), challenge));
        }
    }
}
