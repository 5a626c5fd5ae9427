//! Who a rank is: the node that it runs on, and a key pair that only it holds.

use std::fmt;
use std::sync::Arc;

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::error::{BootstrapError, Result};
use crate::secret::fill_random;

/// A machine, or a container of it: ranks with one node id can try to share memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub [u8; 16]);

impl NodeId {
    /// The id of where this process runs: a hash of boot id, machine id, network and IPC namespace.
    pub fn of_this_process() -> NodeId {
        let mut hash = Sha256::new().chain_update(b"unisono node\0");
        for source in [boot_id(), read("/etc/machine-id"), link("net"), link("ipc")] {
            hash.update((source.len() as u64).to_le_bytes());
            hash.update(source);
        }
        NodeId(truncate(hash))
    }

    /// The id that a user's text stands for: 32 hex digits as they are, anything else by its hash.
    pub fn from_text(text: &str) -> NodeId {
        let text = text.trim();
        match crate::hex::parse::<16>(text) {
            Some(bytes) => NodeId(bytes),
            None => NodeId(truncate(
                Sha256::new()
                    .chain_update(b"unisono node name\0")
                    .chain_update(text),
            )),
        }
    }

    /// `UNISONO_NODE_ID` if it is set, else [`NodeId::of_this_process`].
    pub fn discover(environment: &dyn Fn(&str) -> Option<String>) -> NodeId {
        match environment("UNISONO_NODE_ID").filter(|text| !text.trim().is_empty()) {
            Some(text) => NodeId::from_text(&text),
            None => NodeId::of_this_process(),
        }
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::hex::print(&self.0))
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeId({self})")
    }
}

/// Where process ids mean the same: boot id and process-id namespace. Node ids can be overridden; this cannot.
pub(crate) fn process_scope() -> [u8; 16] {
    let hash = Sha256::new()
        .chain_update(b"unisono pids\0")
        .chain_update(boot_id());
    truncate(hash.chain_update(link("pid")))
}

/// One for each time that a machine was started, the same in all its containers; empty if there is no `/proc`.
fn boot_id() -> Vec<u8> {
    read("/proc/sys/kernel/random/boot_id")
}

/// What tells this machine from others: its boot id, or where there is none all that tells a node.
pub(crate) fn machine() -> Vec<u8> {
    match boot_id() {
        id if id.is_empty() => NodeId::of_this_process().0.to_vec(),
        id => id,
    }
}

/// When a process started, in clock ticks after boot; `None` if there is no such process (or no `/proc`).
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses and may itself hold blanks and parentheses.
    let rest = &stat[stat.rfind(')')? + 1..];
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

fn read(path: &str) -> Vec<u8> {
    std::fs::read(path).unwrap_or_default()
}

fn link(namespace: &str) -> Vec<u8> {
    let target = std::fs::read_link(format!("/proc/self/ns/{namespace}"));
    target
        .map(|path| path.into_os_string().into_encoded_bytes())
        .unwrap_or_default()
}

/// An id of what was hashed.
pub(crate) fn truncate(hash: Sha256) -> [u8; 16] {
    let mut out = [0; 16];
    out.copy_from_slice(&hash.finalize()[..16]);
    out
}

/// A rank's own private key, with which it proves to others which rank it is. Clones share it; any thread may use it.
#[derive(Clone)]
pub struct Prover {
    key: Arc<SigningKey>,
}

impl Prover {
    /// Draws a new key pair.
    pub(crate) fn random() -> Result<Prover> {
        let mut seed = Zeroizing::new([0u8; 32]);
        fill_random(&mut *seed)?;
        Ok(Prover {
            key: Arc::new(SigningKey::from_bytes(&seed)),
        })
    }

    /// Signs `transcript`: what the two sides of a handshake said, with both their nonces. The peer checks it with
    /// [`Directory::verify`](crate::Directory::verify).
    pub fn prove(&self, transcript: &[u8]) -> [u8; 64] {
        self.sign("channel", transcript)
    }

    /// The public half.
    pub fn public_key(&self) -> [u8; 32] {
        self.key.verifying_key().to_bytes()
    }

    pub(crate) fn sign(&self, label: &str, transcript: &[u8]) -> [u8; 64] {
        self.key.sign(&signed(label, transcript)).to_bytes()
    }
}

impl fmt::Debug for Prover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Prover(..)")
    }
}

/// Whether `signature` is that of the holder of `public_key` over `transcript`, for the use that `label` names.
pub(crate) fn verify(
    public_key: &[u8; 32],
    label: &str,
    transcript: &[u8],
    signature: &[u8],
) -> bool {
    let Ok(key) = VerifyingKey::from_bytes(public_key) else {
        return false;
    };
    let Ok(signature) = Signature::from_slice(signature) else {
        return false;
    };
    key.verify_strict(&signed(label, transcript), &signature)
        .is_ok()
}

/// Refuses a public key that no private key belongs to.
pub(crate) fn check_public_key(rank: u32, public_key: &[u8; 32]) -> Result<()> {
    match VerifyingKey::from_bytes(public_key) {
        Ok(key) if !key.is_weak() => Ok(()),
        _ => Err(BootstrapError::Protocol {
            rank,
            what: "a public key that is none".to_owned(),
        }),
    }
}

fn signed(label: &str, transcript: &[u8]) -> Vec<u8> {
    [b"unisono proof ", label.as_bytes(), b"\0", transcript].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_id_is_stable_and_can_be_overridden() {
        assert_eq!(NodeId::of_this_process(), NodeId::of_this_process());
        let text = |name: &str| (name == "UNISONO_NODE_ID").then(|| "rack 7".to_owned());
        assert_eq!(NodeId::discover(&text), NodeId::from_text(" rack 7\n"));
        assert_ne!(NodeId::discover(&text), NodeId::of_this_process());
        let id = NodeId::of_this_process();
        assert_eq!(NodeId::from_text(&id.to_string()), id);
        let blank = |_: &str| Some(" ".to_owned());
        assert_eq!(NodeId::discover(&blank), id);
    }

    #[test]
    fn a_proof_is_bound_to_key_label_and_transcript() {
        let (a, b) = (Prover::random().unwrap(), Prover::random().unwrap());
        let proof = a.prove(b"hello");
        assert!(verify(&a.public_key(), "channel", b"hello", &proof));
        assert!(!verify(&b.public_key(), "channel", b"hello", &proof));
        assert!(!verify(&a.public_key(), "overlay", b"hello", &proof));
        assert!(!verify(&a.public_key(), "channel", b"hellp", &proof));
        assert!(!verify(&a.public_key(), "channel", b"hello", &proof[..63]));
        assert!(check_public_key(0, &a.public_key()).is_ok());
        assert!(check_public_key(0, &[0; 32]).is_err());
    }

    #[test]
    fn start_time_tells_processes_apart() {
        assert!(start_time(std::process::id()).is_some());
        assert_eq!(start_time(u32::MAX), None);
    }
}
