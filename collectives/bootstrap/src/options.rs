//! What a rank needs to say in order to join a job.

use std::time::Duration;

use crate::environment::RankInfo;
use crate::error::{BootstrapError, Result};
use crate::identity::NodeId;
use crate::interfaces::InterfaceFilter;
use crate::rendezvous::address;
use crate::secret::SecretSource;
use crate::unique_id::UniqueId;
use crate::wait::Wait;

/// Where the ranks first meet.
#[derive(Clone, Debug)]
pub enum RootSpec {
    /// At this `host:port`, which rank 0 opens.
    Address(String),
    /// Where the unique id says; it was made in a process that also joins.
    UniqueId(UniqueId),
    /// On this node alone: no network is touched.
    Node,
}

/// How ranks of other nodes show that they live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// A sign of life is sent this often when nothing else is.
    pub interval: Duration,
    /// A rank that was not heard for this long is dead. At least three intervals.
    pub timeout: Duration,
}

impl Default for Heartbeat {
    /// Every second, dead after fifteen.
    fn default() -> Heartbeat {
        Heartbeat {
            interval: Duration::from_secs(1),
            timeout: Duration::from_secs(15),
        }
    }
}

/// All that [`Bootstrap::join`](crate::Bootstrap::join) takes.
#[derive(Clone, Debug)]
pub struct Options {
    /// This rank.
    pub rank: u32,
    /// How many ranks the job has; 1 to 65,536.
    pub size: u32,
    /// How many of them are on this node, where the launcher said. Without it the first contact waits 100 ms for
    /// neighbours to show up.
    pub local_size: Option<u32>,
    /// Where the ranks meet.
    pub root: RootSpec,
    /// How they recognise each other. A unique id brings its own secret, and this is then ignored.
    pub secret: SecretSource,
    /// Overrides the node's id.
    pub node_id: Option<NodeId>,
    /// Tells jobs of one user on one node apart where neither secret nor root does: the launcher's name for the job.
    pub job: String,
    /// Which addresses the others are offered.
    pub interfaces: InterfaceFilter,
    /// Deadline and abort flag of the whole join.
    pub wait: Wait,
    /// Signs of life between nodes.
    pub heartbeat: Heartbeat,
    /// What this rank runs, such as "unisono 0.1.0, ABI 1.0"; all ranks must say the same. At most 255 bytes.
    pub version: String,
    /// What all others get to see: devices, graph report. At most 1 MiB.
    pub payload: Vec<u8>,
}

impl Options {
    /// The largest `payload` in bytes.
    pub const MAX_PAYLOAD: usize = 1 << 20;
    /// The largest job in ranks.
    pub const MAX_SIZE: u32 = 1 << 16;

    /// Options with a deadline of 60 s, peer credentials and everything else at its default.
    pub fn new(rank: u32, size: u32, root: RootSpec) -> Options {
        Options {
            rank,
            size,
            local_size: None,
            root,
            secret: SecretSource::PeerCredentials,
            node_id: None,
            job: String::new(),
            interfaces: InterfaceFilter::default(),
            wait: Wait::at_most(Duration::from_secs(60)),
            heartbeat: Heartbeat::default(),
            version: concat!("unisono ", env!("CARGO_PKG_VERSION")).to_owned(),
            payload: Vec::new(),
        }
    }

    /// Options for the rank that the environment describes.
    pub fn from_info(info: &RankInfo) -> Options {
        let root = info
            .rendezvous
            .clone()
            .map_or(RootSpec::Node, RootSpec::Address);
        Options {
            local_size: info.local_size,
            job: info.job.clone(),
            ..Options::new(info.rank, info.size, root)
        }
    }

    /// Whether it is clear before anybody was met that the job does not leave this machine: the root is a loopback
    /// address, nothing but this user's own processes is believed, or no other interface may be used. Rank listen on
    /// loopback alone then.
    ///
    /// # Errors
    /// [`BootstrapError::BadOption`] if the root is no address or no interface passes the filter.
    pub fn is_local(&self) -> Result<bool> {
        let root = match &self.root {
            RootSpec::Address(text) => address::is_loopback(address::parse(text)?.0),
            RootSpec::UniqueId(id) => id.addresses().iter().all(|root| root.ip().is_loopback()),
            // The root that a launcher's store will tell may be on any machine.
            RootSpec::Node => !matches!(self.secret, SecretSource::Launcher),
        };
        let mut candidates = self.interfaces.candidates()?.into_iter();
        Ok(root
            || matches!(self.secret_source(), SecretSource::PeerCredentials)
            || candidates.all(|candidate| candidate.address.is_loopback()))
    }

    /// How the ranks recognise each other: a unique id brings its own secret.
    pub(crate) fn secret_source(&self) -> SecretSource {
        match &self.root {
            RootSpec::UniqueId(id) => SecretSource::Given(id.secret()),
            _ => self.secret.clone(),
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        let bad = |option, why: String| Err(BootstrapError::BadOption { option, why });
        if self.size == 0 || self.size > Options::MAX_SIZE {
            return bad(
                "size",
                format!("{} is not between 1 and {}", self.size, Options::MAX_SIZE),
            );
        }
        if self.rank >= self.size {
            return Err(BootstrapError::NoSuchRank {
                rank: self.rank,
                size: self.size,
            });
        }
        if self
            .local_size
            .is_some_and(|local| local == 0 || local > self.size)
        {
            return bad(
                "local_size",
                format!("{:?} is not between 1 and {}", self.local_size, self.size),
            );
        }
        if self.payload.len() > Options::MAX_PAYLOAD {
            return bad(
                "payload",
                format!(
                    "{} bytes exceed {}",
                    self.payload.len(),
                    Options::MAX_PAYLOAD
                ),
            );
        }
        if self.version.len() > 255 {
            return bad(
                "version",
                format!("{} bytes exceed 255", self.version.len()),
            );
        }
        let Heartbeat { interval, timeout } = self.heartbeat;
        if interval < Duration::from_millis(10) || timeout < 3 * interval {
            return bad(
                "heartbeat",
                format!("interval {interval:?} below 10 ms, or timeout {timeout:?} below three"),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_that_a_launcher_will_tell_may_be_on_another_machine() {
        let mut options = Options::new(0, 4, RootSpec::Node);
        options.secret = SecretSource::Given(crate::Secret::from_bytes([7; 32]));
        assert!(options.is_local().unwrap());
        options.secret = SecretSource::Launcher;
        let alone = (options.interfaces.candidates().unwrap().iter())
            .all(|candidate| candidate.address.is_loopback());
        assert_eq!(options.is_local().unwrap(), alone);
        options.interfaces = InterfaceFilter::loopback();
        assert!(options.is_local().unwrap());
    }
}
