//! The key pair that one end makes for one connection.

use std::io;
use std::sync::Arc;

use rustls::crypto::ring::sign::any_eddsa_type;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::sign::{CertifiedKey, SigningKey};

/// Bytes of a public key.
pub(crate) const KEY_BYTES: usize = 32;
/// What precedes the 32 bytes of an Ed25519 private key in PKCS#8 (RFC 8410).
const PRIVATE: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];
/// What precedes the 32 bytes of an Ed25519 public key as a SubjectPublicKeyInfo (RFC 8410).
const PUBLIC: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// A fresh Ed25519 key pair.
#[derive(Debug)]
pub(crate) struct Key {
    signing: Arc<dyn SigningKey>,
    public: [u8; KEY_BYTES],
}

impl Key {
    /// Makes a key pair from the system's randomness.
    ///
    /// # Errors
    /// The system has none.
    pub(crate) fn fresh() -> io::Result<Self> {
        let mut private = [0; PRIVATE.len() + 32];
        let (head, seed) = private.split_at_mut(PRIVATE.len());
        head.copy_from_slice(&PRIVATE);
        getrandom::fill(seed).map_err(io::Error::other)?;
        let signing = any_eddsa_type(&PrivatePkcs8KeyDer::from(&private[..]));
        private.fill(0);
        let signing = signing.map_err(io::Error::other)?;
        let described = signing.public_key();
        let public = described
            .as_ref()
            .and_then(|key| key.strip_prefix(&PUBLIC))
            .and_then(|key| key.try_into().ok())
            .ok_or_else(|| io::Error::other("a fresh key is no Ed25519 key"))?;
        drop(described);
        Ok(Self { signing, public })
    }

    /// The public half, which goes to the peer.
    pub(crate) const fn public(&self) -> [u8; KEY_BYTES] {
        self.public
    }

    /// As TLS shows it.
    pub(super) fn certified(self) -> Arc<CertifiedKey> {
        let shown = CertificateDer::from(described(&self.public));
        Arc::new(CertifiedKey::new(vec![shown], self.signing))
    }
}

/// A public key as TLS shows it.
pub(super) fn described(public: &[u8; KEY_BYTES]) -> Vec<u8> {
    [&PUBLIC[..], public].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_shows_what_the_library_would_show() {
        let (one, other) = (Key::fresh().unwrap(), Key::fresh().unwrap());
        assert_ne!(one.public(), other.public());
        let library = one.signing.public_key().unwrap();
        assert_eq!(described(&one.public()), library.as_ref());
    }
}
