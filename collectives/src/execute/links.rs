//! The posted links of a lane, for whoever asks what they have done.

use unisono_hal::Link;

use super::peer::Way;
use super::state::State;

impl State {
    /// Each posted link, and the peer at its other end.
    pub(crate) fn posted_links(&mut self) -> impl Iterator<Item = (u32, &mut Link)> {
        let peers = self.common.peers.iter_mut();
        peers.filter_map(|peer| match &mut peer.way {
            Way::Posted(posted) => Some((peer.rank, &mut posted.link)),
            Way::Own | Way::Mapped { .. } => None,
        })
    }

    /// Ends the posted links, if nothing is left to be done: there are no calls any more.
    pub(super) fn end_links(&mut self) {
        if !self.is_idle() {
            return;
        }
        for peer in &mut self.common.peers {
            if matches!(peer.way, Way::Posted(_)) {
                // No channel leads there any more.
                peer.way = Way::Own;
            }
        }
    }
}
