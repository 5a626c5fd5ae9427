//! Links: the plugin's report of them, and posted links.

use unisono_abi::{link_type, scope};

use crate::{
    Batch, Channel, DeviceId, Error, HostRange, NoEvent, QueueControl, QueueState, Result, Sleep,
    SleepWays, Waker,
};

/// How a link moves bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum LinkType {
    /// Memory of one end is imported by the other: stream commands move the bytes.
    Mapped = link_type::MAPPED,
    /// The link moves them: PUT.
    Posted = link_type::POSTED,
}

/// Between what a link runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Scope {
    /// Between processes of this node.
    Node = scope::NODE,
    /// Between nodes.
    Network = scope::NETWORK,
    /// Between the two devices named.
    Pair = scope::PAIR,
}

/// One entry of a plugin's report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkInfo {
    /// How it moves bytes.
    pub link_type: LinkType,
    /// Between what.
    pub scope: Scope,
    /// Links with the same number share one capacity; 0 if alone.
    pub shared: u32,
    /// One end; for node and network links `default()` means any device of this plugin.
    pub from: DeviceId,
    /// The other end.
    pub to: DeviceId,
    /// "shm", "tcp", as in the cluster file; the host gets the first 15 bytes.
    pub kind: String,
    /// Bandwidth from -> to in bytes a second; of a mapped link as `from` writes.
    pub bytes_per_second: u64,
    /// The same as `to` reads, where that is faster; else 0.
    pub read_bytes_per_second: u64,
    /// Of a small message, one way, in nanoseconds.
    pub latency_ns: u64,
    /// Which rail, 0 if there are none.
    pub rail: u32,
}

/// What a posted link is made from.
#[derive(Clone, Copy, Debug)]
pub struct LinkRequest<'a> {
    /// The peer's rank in the channel.
    pub peer: u32,
    /// The local device that the link serves, of any plugin.
    pub device: DeviceId,
    /// The communicator's control channel, valid until the link is dropped.
    pub channel: Channel,
    /// What the peer's [`address`](crate::Instance::address) gave.
    pub peer_address: &'a [u8],
}

/// What a link has done since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStatistics {
    /// Connections that are up.
    pub connections: u32,
    /// Payload sent.
    pub bytes_sent: u64,
    /// Payload received.
    pub bytes_received: u64,
    /// Puts sent.
    pub puts_sent: u64,
    /// Puts received.
    pub puts_received: u64,
    /// Strangers that the instance dropped.
    pub refused: u64,
    /// Connections that were lost and made anew, by any path.
    pub recovered: u64,
}

/// Where the peer's next put to a part of a window shall lie instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landing {
    /// The window that the peer puts to.
    pub window: u32,
    /// Where in it, in bytes.
    pub offset: u64,
    /// The memory where the bytes shall lie.
    pub to: HostRange,
    /// The address of the flag line that is raised behind the put, and what it has reached then.
    pub until: (u64, u64),
    /// The same of what was put there before, which lies in the window.
    pub after: Option<(u64, u64)>,
}

/// A posted link to one peer, for one channel. The host serialises the calls on one link; `query`
/// and `abort` may come at any time and go to its control.
pub trait Link: Send + 'static {
    /// Whether the plugin has posted links.
    const PRESENT: bool = true;
    /// What other threads may ask and do.
    type Control: QueueControl;

    /// Asked once, when the link is made.
    fn control(&self) -> Self::Control;

    /// Lets the peer write a range as window `id`. Returns the token that the peer's
    /// [`import_window`](Self::import_window) gets, 256 bytes at most.
    ///
    /// # Errors
    /// Invalid if `id` is in use.
    fn export_window(&mut self, id: u32, range: HostRange) -> Result<Vec<u8>>;

    /// Takes the peer's window.
    ///
    /// # Errors
    /// Invalid if the token is not one of this plugin's.
    fn import_window(&mut self, id: u32, token: &[u8]) -> Result<()>;

    /// Ends an exported window: the peer's puts to it are errors from then on.
    ///
    /// # Errors
    /// Invalid if there is none.
    fn close_window(&mut self, id: u32) -> Result<()>;

    /// Takes the first commands of a batch (PUT and WAIT), copies them, never blocks; returns how
    /// many it took. Before the link is connected it may take none.
    ///
    /// # Errors
    /// Unsupported or invalid commands; the link's own failure.
    fn submit(&mut self, batch: &Batch<'_, NoEvent>) -> Result<u32>;

    /// Connects, sends and receives on this thread, for about `budget` bytes. The peer's puts land
    /// in the windows.
    ///
    /// # Errors
    /// The link failed. It stays failed and answers the same from then on.
    fn poll(&mut self, budget: u64) -> Result<QueueState>;

    /// As for [`Stream::arm`](crate::Stream::arm).
    ///
    /// # Errors
    /// Unsupported if this link knows none of these ways.
    fn arm(&mut self, allowed: SleepWays, waker: Option<Waker>) -> Result<Sleep>;

    /// As for [`Stream::disarm`](crate::Stream::disarm).
    fn disarm(&mut self) {}

    /// What it has done.
    ///
    /// # Errors
    /// Unsupported unless written.
    fn statistics(&mut self) -> Result<LinkStatistics> {
        Err(Error::unsupported("this link keeps no statistics"))
    }

    /// Lets what the peer puts next to a part of a window lie elsewhere. False, and nothing is done, if some of it may
    /// have come already: then it lies in the window. So it is unless written.
    ///
    /// The host keeps the memory and the flags until the flag behind the put is raised. If the link is aborted or dropped
    /// before, nothing may be written there any more once that has returned: the memory is then somebody else's.
    ///
    /// # Errors
    /// There is no such window; nothing is done.
    fn land(&mut self, landing: &Landing) -> Result<bool> {
        let _ = landing;
        Ok(false)
    }
}

/// For plugins without posted links.
#[derive(Clone, Copy, Debug)]
pub enum NoLink {}

impl Link for NoLink {
    const PRESENT: bool = false;
    type Control = Self;

    fn control(&self) -> Self {
        match *self {}
    }

    fn export_window(&mut self, _: u32, _: HostRange) -> Result<Vec<u8>> {
        match *self {}
    }

    fn import_window(&mut self, _: u32, _: &[u8]) -> Result<()> {
        match *self {}
    }

    fn close_window(&mut self, _: u32) -> Result<()> {
        match *self {}
    }

    fn submit(&mut self, _: &Batch<'_, NoEvent>) -> Result<u32> {
        match *self {}
    }

    fn poll(&mut self, _: u64) -> Result<QueueState> {
        match *self {}
    }

    fn arm(&mut self, _: SleepWays, _: Option<Waker>) -> Result<Sleep> {
        match *self {}
    }
}

impl QueueControl for NoLink {
    fn query(&self) -> QueueState {
        match *self {}
    }

    fn abort(&self) {}
}
