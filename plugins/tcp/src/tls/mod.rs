//! Encryption of a link's connections: TLS 1.3 between two ends that have proved who they are.
//!
//! There are no certificates and nobody who signs them. Each end makes a key pair for each
//! connection, and its public key is the nonce that it sends in the handshake of
//! [`wire`](crate::wire): fresh, unforeseeable, and in the transcript that both ranks sign. TLS then
//! authenticates both ends by raw public keys (RFC 7250), and takes exactly those two keys. So
//!
//! - who stands between the ends can neither put keys of its own into the transcript, as it cannot
//!   sign as a rank, nor end the TLS itself, as it lacks the keys that were signed;
//! - a TLS stream cannot be moved to another connection of the same two processes, as each
//!   connection has its own keys;
//! - whether to encrypt is in the transcript too, so it cannot be talked out of it;
//! - a stranger still costs no more than one check of a signature: TLS begins after the proofs.
//!
//! There is no resumption, no early data, no renegotiation, and no other version.

mod key;
mod pinned;
mod session;
mod socket;

pub(crate) use key::{KEY_BYTES, Key};
pub(crate) use session::Session;
