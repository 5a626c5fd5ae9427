//! The job's secret: what tells the job's ranks from everyone else.
//!
//! All that two ranks ask of it is one keyed hash ([`Secret::mac`]), under a label for each use.

use std::fmt;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::error::{BootstrapError, Result};
use crate::unique_id::UniqueId;

/// 32 secret bytes; wiped from memory when dropped, never printed.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Secret([u8; Secret::LENGTH]);

impl Secret {
    /// Its length in bytes.
    pub const LENGTH: usize = 32;

    /// Takes 32 bytes as they are. They must come from a good random source.
    pub fn from_bytes(bytes: [u8; Secret::LENGTH]) -> Secret {
        Secret(bytes)
    }

    /// Draws a new secret from the system's random source.
    ///
    /// # Errors
    /// If the system has no random source to give from.
    pub fn random() -> Result<Secret> {
        let mut bytes = [0; Secret::LENGTH];
        fill_random(&mut bytes)?;
        Ok(Secret(bytes))
    }

    /// Derives a secret from the text or bytes that a user gave, such as a value of the cluster file.
    ///
    /// # Errors
    /// [`BootstrapError::BadSecret`] if there are fewer than 32 bytes, naming `place`.
    pub fn from_text(text: &[u8], place: &str) -> Result<Secret> {
        let text = text.trim_ascii_end();
        if text.len() < Secret::LENGTH {
            let why = format!(
                "{} bytes are too few, give at least {} random ones",
                text.len(),
                Secret::LENGTH
            );
            return Err(BootstrapError::BadSecret {
                place: place.to_owned(),
                why,
            });
        }
        Ok(Secret(
            Sha256::new()
                .chain_update(b"unisono secret text\0")
                .chain_update(text)
                .finalize()
                .into(),
        ))
    }

    /// Reads a secret from a file of 32 to 4096 bytes that only its owner can read.
    ///
    /// # Errors
    /// [`BootstrapError::BadSecret`] if it cannot be read, others can read it, or its length is wrong.
    pub fn from_file(path: &Path) -> Result<Secret> {
        const LIMIT: u64 = 4096;
        let bad = |why: String| BootstrapError::BadSecret {
            place: format!("file {}", path.display()),
            why,
        };
        let file = std::fs::File::open(path).map_err(|e| bad(format!("cannot open: {e}")))?;
        let metadata = file
            .metadata()
            .map_err(|e| bad(format!("cannot inspect: {e}")))?;
        if !metadata.is_file() {
            return Err(bad("not a regular file".to_owned()));
        }
        if metadata.mode() & 0o077 != 0 {
            return Err(bad(format!(
                "others can read it (mode {:o}), run chmod 600 on it",
                metadata.mode() & 0o777
            )));
        }
        let mut text = zeroize::Zeroizing::new(Vec::with_capacity(LIMIT as usize + 1));
        file.take(LIMIT + 1)
            .read_to_end(&mut text)
            .map_err(|e| bad(format!("cannot read: {e}")))?;
        if text.len() as u64 > LIMIT {
            return Err(bad(format!("longer than {LIMIT} bytes")));
        }
        Secret::from_text(&text, &format!("file {}", path.display()))
    }

    /// HMAC-SHA256 of `parts`, in order, under this secret, for the use that `label` names.
    pub(crate) fn mac(&self, label: &str, parts: &[&[u8]]) -> [u8; 32] {
        self.hasher(label, parts).finalize().into_bytes().into()
    }

    /// Whether `tag` is [`Secret::mac`] of the same; takes as long for a wrong tag as for the right one.
    pub(crate) fn verify_mac(&self, label: &str, parts: &[&[u8]], tag: &[u8]) -> bool {
        self.hasher(label, parts).verify_slice(tag).is_ok()
    }

    /// A name for the job that does not give the secret away.
    pub(crate) fn job_id(&self) -> [u8; 16] {
        let mut id = [0; 16];
        id.copy_from_slice(&self.mac("job id", &[])[..16]);
        id
    }

    /// The bytes, for what must carry them (a unique id, a welcome over a socket of this user).
    pub(crate) fn expose(&self) -> &[u8; Secret::LENGTH] {
        &self.0
    }

    fn hasher(&self, label: &str, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        mac.update(label.as_bytes());
        mac.update(b"\0");
        for part in parts {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// How the ranks of a job recognise each other.
#[derive(Clone, Debug)]
pub enum SecretSource {
    /// By this secret.
    Given(Secret),
    /// By a secret that rank 0 puts into its launcher's key-value store, where [`has_store`](crate::has_store) says that
    /// there is one. All processes that the launcher started must join. Unless the root has an address, the store tells
    /// where to meet too.
    Launcher,
    /// By the user that runs them: only while all ranks are on one node. The default without a secret.
    PeerCredentials,
    /// Not at all (`security: none`): whoever reaches the port and speaks the protocol is believed.
    Disabled,
}

impl SecretSource {
    /// Finds the job's secret: the unique id, then `UNISONO_SECRET_FILE`, then `given` (the cluster file's), then
    /// `launcher` (from its key-value store, where a caller has one); with none of them, peer credentials.
    ///
    /// # Errors
    /// [`BootstrapError::BadSecret`] if the first that is there cannot be used; it does not fall through to the next.
    pub fn discover(
        environment: &dyn Fn(&str) -> Option<String>,
        unique_id: Option<&UniqueId>,
        given: Option<Secret>,
        launcher: Option<Secret>,
    ) -> Result<SecretSource> {
        if let Some(id) = unique_id {
            return Ok(SecretSource::Given(id.secret()));
        }
        if let Some(path) = environment("UNISONO_SECRET_FILE") {
            return Secret::from_file(Path::new(&path)).map(SecretSource::Given);
        }
        Ok(given
            .or(launcher)
            .map_or(SecretSource::PeerCredentials, SecretSource::Given))
    }
}

/// Fills `bytes` from the system's random source.
pub(crate) fn fill_random(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes).map_err(|e| BootstrapError::BadSecret {
        place: "the system's random source".to_owned(),
        why: format!("{e}; see that /dev/urandom or getrandom(2) works here"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn label_and_parts_are_all_bound() {
        let secret = Secret::from_bytes([7; 32]);
        let tag = secret.mac("a", &[b"xy", b"z"]);
        assert!(secret.verify_mac("a", &[b"xy", b"z"], &tag));
        assert!(!secret.verify_mac("b", &[b"xy", b"z"], &tag));
        assert!(!secret.verify_mac("a", &[b"x", b"yz"], &tag));
        assert!(!Secret::from_bytes([8; 32]).verify_mac("a", &[b"xy", b"z"], &tag));
        assert!(!secret.verify_mac("a", &[b"xy", b"z"], &tag[..31]));
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }

    #[test]
    fn a_file_must_be_private_and_long_enough() {
        let path = std::env::temp_dir().join(format!("unisono-secret-{}", std::process::id()));
        let write = |bytes: &[u8], mode| {
            std::fs::write(&path, bytes).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        write(&[b'k'; 40], 0o600);
        let first = Secret::from_file(&path).unwrap();
        write(b"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk\n", 0o400);
        assert_eq!(
            Secret::from_file(&path).unwrap().expose(),
            first.expose(),
            "a trailing newline does not count"
        );
        write(&[b'k'; 40], 0o644);
        let shared = Secret::from_file(&path).unwrap_err().to_string();
        assert!(
            shared.contains("chmod 600") && shared.contains("644"),
            "{shared}"
        );
        write(&[b'k'; 31], 0o600);
        assert!(
            Secret::from_file(&path)
                .unwrap_err()
                .to_string()
                .contains("31 bytes are too few")
        );
        write(&[b'k'; 5000], 0o600);
        assert!(
            Secret::from_file(&path)
                .unwrap_err()
                .to_string()
                .contains("longer than 4096")
        );
        std::fs::remove_file(&path).unwrap();
        assert!(
            Secret::from_file(&path)
                .unwrap_err()
                .to_string()
                .contains("cannot open")
        );
    }

    #[test]
    fn sources_are_asked_in_order() {
        let none = |_: &str| None;
        let given = Some(Secret::from_bytes([1; 32]));
        let launcher = Some(Secret::from_bytes([2; 32]));
        let bytes = |source| match source {
            SecretSource::Given(secret) => secret.expose()[0],
            other => panic!("{other:?}"),
        };
        assert_eq!(
            bytes(SecretSource::discover(&none, None, given.clone(), launcher.clone()).unwrap()),
            1
        );
        assert_eq!(
            bytes(SecretSource::discover(&none, None, None, launcher).unwrap()),
            2
        );
        assert!(matches!(
            SecretSource::discover(&none, None, None, None).unwrap(),
            SecretSource::PeerCredentials
        ));
        let absent =
            |name: &str| (name == "UNISONO_SECRET_FILE").then(|| "/nonexistent/secret".to_owned());
        let error = SecretSource::discover(&absent, None, given, None)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("/nonexistent/secret"),
            "a bad file is no reason to use the next source: {error}"
        );
    }
}
