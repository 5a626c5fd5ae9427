//! What the posted links of a communicator have done so far, as their plugins count it.

use std::fmt;

use unisono_graph::units;
use unisono_hal::LinkStatistics;

use super::Communicator;
use crate::error::Result;

/// The link to one peer. Its `Display` is a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerLink {
    /// The rank in this communicator.
    pub rank: u32,
    /// The peer's.
    pub peer: u32,
    /// Whose link it is.
    pub plugin: String,
    /// What it has done so far, in bytes and puts; none if the plugin does not count.
    pub statistics: Option<LinkStatistics>,
}

impl fmt::Display for PeerLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rank, peer, plugin, ..
        } = self;
        write!(f, "The link from rank {rank} to rank {peer} is {plugin}'s")?;
        let Some(statistics) = &self.statistics else {
            return f.write_str(", which does not count.");
        };
        match statistics.connections {
            0 => f.write_str("; no connection stands now")?,
            1 => f.write_str(" over 1 connection")?,
            count => write!(f, " over {count} connections")?,
        }
        match statistics.recovered {
            0 => {}
            1 => f.write_str("; once one was lost and made anew")?,
            count => write!(f, "; {count} times one was lost and made anew")?,
        }
        let (sent, received) = (statistics.bytes_sent, statistics.bytes_received);
        write!(
            f,
            "; {} sent, {} received so far.",
            units::size(sent),
            units::size(received)
        )
    }
}

impl Communicator {
    /// The posted links of this rank: to whom, over how many connections, and what they have carried since
    /// the communicator was made. From any thread; it waits while another drives the communicator.
    ///
    /// # Errors
    /// What a plugin says.
    pub fn peer_links(&self) -> Result<Vec<PeerLink>> {
        self.shared.not_forked()?;
        let mut state = self.shared.lane.lock();
        state
            .posted_links()
            .map(|(peer, link)| {
                let statistics = match link.statistics() {
                    Err(error) if error.status == unisono_hal::Status::Unsupported => None,
                    counted => Some(counted?),
                };
                Ok(PeerLink {
                    rank: self.rank(),
                    peer,
                    plugin: link.instance().plugin().name().to_owned(),
                    statistics,
                })
            })
            .collect()
    }
}
