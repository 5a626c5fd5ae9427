//! The ranks of one node meet: one leads, the others follow.

use std::time::Duration;

use crate::directory::RankEntry;
use crate::error::{BootstrapError, Result};
use crate::options::Options;
use crate::report::Strays;
use crate::secret::Secret;
use crate::wire::handshake::Credentials;
use crate::wire::socket;

use super::message::Arrival;
use super::{leader, member};

/// Where a leader reports to.
#[derive(Clone, Debug)]
pub(crate) enum Uplink {
    /// To nobody: all ranks must be on this node, and these words say why.
    Nobody(NoUplink),
    /// To the root, at the first of these addresses that answers. The text is what the user gave.
    Root(String),
}

/// Why a leader reports to nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoUplink {
    /// No root is known.
    NoRoot,
    /// There is a root, and no secret to show it.
    NoSecret,
}

/// What a rank brings to the meeting.
pub(crate) struct Node<'a> {
    pub(crate) options: &'a Options,
    pub(crate) me: Credentials,
    /// Only processes of this user may come: there is no secret.
    pub(crate) same_user: bool,
    /// This rank, without its payload.
    pub(crate) entry: RankEntry,
    /// Where the ranks of this node meet.
    pub(crate) name: String,
    pub(crate) uplink: Uplink,
    /// What a leader hands out where there is no secret.
    pub(crate) hand_out: Option<Secret>,
}

/// What it takes away.
pub(crate) struct Met {
    /// Itself and its neighbours, perhaps others.
    pub(crate) entries: Vec<RankEntry>,
    pub(crate) secret: Option<Secret>,
    pub(crate) leader: bool,
    pub(crate) root_messages: u32,
    pub(crate) strays: Strays,
}

impl Node<'_> {
    pub(crate) fn arrival(&self) -> Arrival {
        let (entry, size) = (self.entry.clone(), self.options.size);
        Arrival {
            entry,
            size,
            remaining: self.options.wait.remaining(),
        }
    }

    /// The error of a rank that waited in vain and was told nothing.
    pub(crate) fn in_vain(&self, started: std::time::Instant, last: &str) -> BootstrapError {
        let root = match &self.uplink {
            Uplink::Root(root) => root.clone(),
            Uplink::Nobody(_) => "the leader of this node".to_owned(),
        };
        let missing = if self.entry.rank == 0 {
            Vec::new()
        } else {
            vec![0]
        };
        BootstrapError::RootUnreachable {
            root,
            waited: started.elapsed(),
            last: last.to_owned(),
            missing,
        }
    }

    /// Fails once the caller's abort flag is raised.
    pub(crate) fn check_abort(&self) -> Result<()> {
        if self.options.wait.abort.is_raised() {
            return Err(BootstrapError::Cancelled {
                what: "the rendezvous".to_owned(),
            });
        }
        Ok(())
    }
}

/// How many names a node's ranks may go through. More than one, because a process that a dead leader forked keeps
/// the name that it took.
const NAMES: u32 = 4;
/// How often a name that is taken and refuses connections is tried again: its owner may not listen yet.
const TRIES: u32 = 25;
const PAUSE: Duration = Duration::from_millis(4);

/// Meets the other ranks of the node and, through the leader, hears from the root.
pub(crate) fn meet(node: &Node<'_>) -> Result<Met> {
    let (started, wait) = (std::time::Instant::now(), &node.options.wait);
    let (mut number, mut refused) = (0, 0);
    let mut last = "nobody leads this node".to_owned();
    while !wait.is_over() {
        node.check_abort()?;
        let name = format!("{}.{}", node.name, number % NAMES);
        match socket::listen_abstract(&name) {
            Ok(listener) => return leader::lead(node, listener),
            Err(e) if e.kind() == std::io::ErrorKind::AddrInUse => {}
            Err(e) => {
                return Err(BootstrapError::io(
                    "opening a socket for the ranks of this node",
                    e,
                ));
            }
        }
        match socket::connect_abstract(&name) {
            Ok(socket) => match member::follow(node, socket)? {
                member::Followed::Done(met) => return Ok(met),
                member::Followed::Lost(why) => (number, refused, last) = (number, 0, why),
                member::Followed::Unanswered => (number, refused) = (number + 1, 0),
            },
            Err(e) if refused >= TRIES => {
                (number, refused, last) = (number + 1, 0, e.to_string());
            }
            Err(e) => (refused, last) = (refused + 1, e.to_string()),
        }
        std::thread::sleep(PAUSE.min(wait.remaining()));
    }
    Err(node.in_vain(started, &last))
}
