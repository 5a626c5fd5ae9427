//! The unique id: 128 opaque bytes that one process makes and the user carries to all ranks, as with NCCL.
//!
//! It says where the root listens and holds the job's secret, so it is itself a secret.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};
use std::str::FromStr;
use std::sync::Mutex;

use sha2::{Digest, Sha256};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::error::{BootstrapError, Result};
use crate::interfaces::InterfaceFilter;
use crate::secret::Secret;
use crate::wire::socket;

const MAGIC: &[u8; 4] = b"UNI1";
const ADDRESSES: usize = 4;
const ADDRESS_LENGTH: usize = 18;
const SECRET_AT: usize = 5 + ADDRESSES * ADDRESS_LENGTH;
const CHECK_AT: usize = SECRET_AT + Secret::LENGTH;

/// Where to find a job's root, and the job's secret. Printed and parsed as 256 hex digits.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct UniqueId([u8; UniqueId::LENGTH]);

/// Roots that were opened by [`UniqueId::create`] and that no rank of this process has taken up yet, by job id.
static OPEN_ROOTS: Mutex<BTreeMap<[u8; 16], TcpListener>> = Mutex::new(BTreeMap::new());

impl UniqueId {
    /// Its length in bytes.
    pub const LENGTH: usize = 128;

    /// Opens a root on this machine and names it. A rank of this process must then join with the id (the first one
    /// that does serves the root); the others may be anywhere.
    ///
    /// `port` 0 takes any free one. The id carries the first four addresses that `interfaces` lets through.
    ///
    /// # Errors
    /// If no address is left, the port cannot be opened, or there is no random source.
    pub fn create(interfaces: &InterfaceFilter, port: u16) -> Result<UniqueId> {
        let secret = Secret::random()?;
        let candidates = interfaces.candidates()?;
        let loopback = candidates
            .iter()
            .all(|candidate| candidate.address.is_loopback());
        let listener = socket::listen(loopback, port)?;
        let port = listener
            .local_addr()
            .map_err(|e| BootstrapError::io("asking for the root's port", e))?
            .port();
        let addresses: Vec<SocketAddr> = candidates
            .iter()
            .take(ADDRESSES)
            .map(|candidate| SocketAddr::new(candidate.address, port))
            .collect();
        let id = UniqueId::encode(&addresses, &secret);
        OPEN_ROOTS
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .insert(secret.job_id(), listener);
        Ok(id)
    }

    /// Closes the root that [`UniqueId::create`] opened, if no rank of this process has joined with the id yet.
    pub fn discard(&self) {
        drop(self.take_root());
    }

    /// Reads an id from its bytes.
    ///
    /// # Errors
    /// [`BootstrapError::BadUniqueId`] if they were not made by [`UniqueId::create`] of this version, or were changed.
    pub fn from_bytes(bytes: &[u8]) -> Result<UniqueId> {
        let bad = |why: String| BootstrapError::BadUniqueId { why };
        let bytes: [u8; UniqueId::LENGTH] = bytes.try_into().map_err(|_| {
            bad(format!(
                "{} bytes instead of {}",
                bytes.len(),
                UniqueId::LENGTH
            ))
        })?;
        if &bytes[..4] != MAGIC {
            return Err(bad(
                "it does not begin like one, or another version made it".to_owned(),
            ));
        }
        if bytes[CHECK_AT..] != check(&bytes)[..] || !(1..=ADDRESSES).contains(&(bytes[4] as usize))
        {
            return Err(bad("its checksum is wrong".to_owned()));
        }
        Ok(UniqueId(bytes))
    }

    /// The bytes. Keep them from strangers: they hold the job's secret.
    pub fn as_bytes(&self) -> &[u8; UniqueId::LENGTH] {
        &self.0
    }

    /// Where the root listens, best first.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        (0..self.0[4] as usize)
            .map(|index| {
                let at = 5 + index * ADDRESS_LENGTH;
                let mut octets = [0; 16];
                octets.copy_from_slice(&self.0[at..at + 16]);
                let address = IpAddr::V6(Ipv6Addr::from(octets)).to_canonical();
                SocketAddr::new(
                    address,
                    u16::from_le_bytes([self.0[at + 16], self.0[at + 17]]),
                )
            })
            .collect()
    }

    /// The job's secret.
    pub(crate) fn secret(&self) -> Secret {
        let mut bytes = [0; Secret::LENGTH];
        bytes.copy_from_slice(&self.0[SECRET_AT..CHECK_AT]);
        Secret::from_bytes(bytes)
    }

    /// Takes the root that this process opened for this id, if none took it before.
    pub(crate) fn take_root(&self) -> Option<TcpListener> {
        OPEN_ROOTS
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .remove(&self.secret().job_id())
    }

    fn encode(addresses: &[SocketAddr], secret: &Secret) -> UniqueId {
        let mut bytes = [0; UniqueId::LENGTH];
        bytes[..4].copy_from_slice(MAGIC);
        bytes[4] = addresses.len() as u8;
        for (index, address) in addresses.iter().enumerate() {
            let at = 5 + index * ADDRESS_LENGTH;
            let octets = match address.ip() {
                IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
                IpAddr::V6(v6) => v6.octets(),
            };
            bytes[at..at + 16].copy_from_slice(&octets);
            bytes[at + 16..at + 18].copy_from_slice(&address.port().to_le_bytes());
        }
        bytes[SECRET_AT..CHECK_AT].copy_from_slice(secret.expose());
        let check = check(&bytes);
        bytes[CHECK_AT..].copy_from_slice(&check);
        UniqueId(bytes)
    }
}

fn check(bytes: &[u8; UniqueId::LENGTH]) -> [u8; UniqueId::LENGTH - CHECK_AT] {
    let hash = Sha256::digest(&bytes[..CHECK_AT]);
    let mut check = [0; UniqueId::LENGTH - CHECK_AT];
    check.copy_from_slice(&hash[..UniqueId::LENGTH - CHECK_AT]);
    check
}

impl fmt::Display for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::hex::print(&self.0))
    }
}

impl fmt::Debug for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UniqueId")
            .field("addresses", &self.addresses())
            .finish_non_exhaustive()
    }
}

impl FromStr for UniqueId {
    type Err = BootstrapError;

    fn from_str(text: &str) -> Result<UniqueId> {
        let text = text.trim();
        let bytes = crate::hex::parse::<{ UniqueId::LENGTH }>(text).ok_or_else(|| {
            BootstrapError::BadUniqueId {
                why: format!(
                    "{} characters that are not all hex digits, or not 256 of them",
                    text.chars().count()
                ),
            }
        })?;
        UniqueId::from_bytes(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_and_bytes_come_back_the_same() {
        let addresses = [
            "10.1.2.3:4000".parse().unwrap(),
            "[fd00::2]:4000".parse().unwrap(),
        ];
        let id = UniqueId::encode(&addresses, &Secret::from_bytes([9; 32]));
        let again: UniqueId = id.to_string().parse().unwrap();
        assert!(again == id && again.addresses() == addresses);
        assert_eq!(again.secret().expose(), &[9; 32]);
        assert!(
            !format!("{id:?}").contains("0909"),
            "the secret is not in the debug text"
        );
    }

    #[test]
    fn damage_is_noticed() {
        let id = UniqueId::encode(
            &["10.1.2.3:4000".parse().unwrap()],
            &Secret::from_bytes([9; 32]),
        );
        for at in 0..UniqueId::LENGTH {
            let mut bytes = *id.as_bytes();
            bytes[at] ^= 1;
            assert!(UniqueId::from_bytes(&bytes).is_err(), "byte {at}");
        }
        assert!(UniqueId::from_bytes(&id.as_bytes()[1..]).is_err());
        assert!(
            "zz".parse::<UniqueId>()
                .unwrap_err()
                .to_string()
                .contains("256 hex digits")
        );
    }

    proptest! {
        /// A store of a launcher's may answer with anything.
        #[test]
        fn no_text_breaks_it(text in "[0-9a-fA-F]{250,260}|\\PC{0,300}") {
            if let Ok(id) = text.parse::<UniqueId>() {
                prop_assert_eq!(id.to_string(), text.trim().to_lowercase());
            }
        }
    }

    #[test]
    fn a_root_is_taken_once() {
        let id = UniqueId::create(&InterfaceFilter::loopback(), 0).unwrap();
        assert!(id.addresses()[0].ip().is_loopback());
        assert!(id.take_root().is_some());
        assert!(id.take_root().is_none());
        let other = UniqueId::create(&InterfaceFilter::loopback(), 0).unwrap();
        other.discard();
        assert!(other.take_root().is_none());
    }
}
