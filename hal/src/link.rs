//! Posted links: ordered queues to one peer.

#![allow(unsafe_code, reason = "calls the plugin's function pointers")]

use std::fmt;
use std::sync::Arc;

use unisono_abi as abi;

use crate::channel::{Channel, RawChannel};
use crate::error::{Answer, call, call_done};
use crate::plugin::PluginData;
use crate::raw_queue::{QueueNames, RawQueue};
use crate::{
    Aborter, Batch, DeviceId, Error, Instance, Queue, QueueState, Result, Sleep, SleepWays, Status,
    Waker,
};

/// A posted link to one peer, for one channel. Dropping it closes it.
///
/// It connects while it is polled; polling also receives: the peer's puts land in the windows.
pub struct Link {
    queue: RawQueue<abi::Link, Parent>,
}

/// What must outlive a link's handle.
struct Parent {
    channel: Arc<RawChannel>,
    instance: Instance,
}

/// A link that is to be made.
pub struct LinkRequest<'a> {
    /// The peer's rank in the channel.
    pub peer: u32,
    /// The local device that the link serves, of any plugin.
    pub device: DeviceId,
    /// The control channel of the communicator.
    pub channel: Arc<dyn Channel>,
    /// What [`Instance::address`] gave in the peer's process.
    pub peer_address: &'a [u8],
}

/// Where the peer's next put to a part of a window shall lie instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landing {
    /// The window that the peer puts to.
    pub window: u32,
    /// Where in it, in bytes.
    pub offset: u64,
    /// The address in this process where the bytes shall lie.
    pub to: u64,
    /// How many they are.
    pub bytes: u64,
    /// The address of the flag that the peer raises behind the put, and what it has reached then.
    pub until: (u64, u64),
    /// The same of what it put there before, which lies in the window.
    pub after: Option<(u64, u64)>,
}

/// What a link has done. All counts are since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStatistics {
    /// Connections that carry it.
    pub connections: u32,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Puts sent.
    pub puts_sent: u64,
    /// Puts received.
    pub puts_received: u64,
    /// Strangers dropped, by the whole instance.
    pub refused: u64,
    /// Connections that were lost and made anew, by any path; 0 where the plugin does not count them.
    pub recovered: u64,
}

const NAMES: QueueNames = QueueNames {
    submit: "link.submit",
    poll: "link.poll",
    arm: "link.arm",
    query: "link.query",
};

impl Link {
    pub(crate) fn create(instance: &Instance, request: LinkRequest<'_>) -> Result<Self> {
        let data = instance.data();
        let channel = RawChannel::new(request.channel);
        let raw_request = abi::LinkRequest {
            struct_size: size_of::<abi::LinkRequest>() as u32,
            peer: request.peer,
            device: request.device,
            channel: channel.raw(),
            peer_address: request.peer_address.as_ptr().cast(),
            peer_address_len: request.peer_address.len() as u64,
        };
        let mut raw = abi::Link::NULL;
        call_done(data.name, "link.create", |error| {
            // SAFETY: the instance is live; the request and the address are borrowed for the
            // call; the channel lives until the link is destroyed.
            unsafe {
                (data.tables.link.create)(
                    instance.raw(),
                    &raw const raw_request,
                    &raw mut raw,
                    error,
                )
            }
        })?;
        if raw == abi::Link::NULL {
            return Err(data.null_handle("link.create"));
        }
        let parent = Parent {
            channel,
            instance: instance.clone(),
        };
        let fns = data.tables.link.queue();
        // SAFETY: the plugin just gave the handle; nobody else has it.
        let queue = unsafe { RawQueue::new(raw, fns, NAMES, data.name, parent) };
        Ok(Self { queue })
    }

    fn data(&self) -> &'static PluginData {
        self.queue.shared.parent.instance.data()
    }

    fn raw(&self) -> abi::Link {
        debug_assert!(!self.queue.shared.parent.channel.raw().is_null());
        self.queue.shared.handle
    }

    /// The instance that made it.
    #[must_use]
    pub fn instance(&self) -> &Instance {
        &self.queue.shared.parent.instance
    }

    /// Lets the peer write to `bytes` bytes at `address` as window `id`, and gives the token that
    /// the peer [imports](Link::import_window).
    ///
    /// # Errors
    /// What the plugin says.
    ///
    /// # Safety
    /// The memory stays valid until the window is closed or the link dropped, may be written by
    /// the peer at any time between, and is read here only after a signal that says so.
    pub unsafe fn export_window(&mut self, id: u32, address: u64, bytes: u64) -> Result<Vec<u8>> {
        let data = self.data();
        let (mut token, mut len) = (vec![0u8; abi::EXPORT_MAX], 0u64);
        call_done(data.name, "link.export_window", |error| {
            let (at, cap) = (token.as_mut_ptr().cast(), abi::EXPORT_MAX as u64);
            // SAFETY: the link is live, `&mut self` serialises the calls on it, the token has the
            // room that it says, and the memory is valid by the caller's promise.
            unsafe {
                (data.tables.link.export_window)(
                    self.raw(),
                    id,
                    address,
                    bytes,
                    at,
                    cap,
                    &raw mut len,
                    error,
                )
            }
        })?;
        if len > abi::EXPORT_MAX as u64 {
            return Err(Error::host(
                data.name,
                "link.export_window",
                Status::Invalid,
                format!(
                    "the plugin gave a token of {len} bytes, at most {} are allowed",
                    abi::EXPORT_MAX
                ),
            ));
        }
        token.truncate(len as usize);
        Ok(token)
    }

    /// Takes the token of a window that the peer exported, so that puts may name it.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn import_window(&mut self, id: u32, token: &[u8]) -> Result<()> {
        let data = self.data();
        let (at, len) = (token.as_ptr().cast(), token.len() as u64);
        call_done(data.name, "link.import_window", |error| {
            // SAFETY: the link is live, `&mut self` serialises the calls on it, the token is
            // borrowed for the call.
            unsafe { (data.tables.link.import_window)(self.raw(), id, at, len, error) }
        })
    }

    /// Ends a window that was exported: the peer writes to it no more.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn close_window(&mut self, id: u32) -> Result<()> {
        let data = self.data();
        call_done(data.name, "link.close_window", |error| {
            // SAFETY: the link is live, `&mut self` serialises the calls on it.
            unsafe { (data.tables.link.close_window)(self.raw(), id, error) }
        })
    }

    /// Lets what the peer puts next to a part of a window lie elsewhere. False, and nothing is done, if the plugin knows
    /// no such thing, or some of the put may have come: then it lies in the window.
    ///
    /// # Errors
    /// What the plugin says, such as that there is no such window; then too nothing is done.
    ///
    /// # Safety
    /// The memory and the flags stay valid, and nobody else uses that memory, until the flag has reached what it
    /// reaches behind the put, or the link was aborted or dropped. The peer puts there nothing else meanwhile.
    #[inline]
    pub unsafe fn land(&mut self, landing: &Landing) -> Result<bool> {
        let data = self.data();
        let (after_flag, after_value) = landing.after.unwrap_or_default();
        let answer = call(data.name, "link.land", |error| {
            // SAFETY: the link is live, `&mut self` serialises the calls on it; the rest is the caller's promise.
            unsafe {
                (data.tables.link.land)(
                    self.raw(),
                    landing.window,
                    landing.offset,
                    landing.bytes,
                    landing.to,
                    landing.until.0,
                    landing.until.1,
                    after_flag,
                    after_value,
                    error,
                )
            }
        })?;
        Ok(matches!(answer, Answer::Done))
    }

    /// What the link has done.
    ///
    /// # Errors
    /// [`Status::Unsupported`] if the plugin does not count.
    pub fn statistics(&mut self) -> Result<LinkStatistics> {
        let data = self.data();
        let own = size_of::<abi::LinkStatistics>();
        let theirs = data.strides.link_statistics;
        // A newer plugin fills more than is known here, an older one less: that stays zero.
        let mut room = vec![0_u64; own.max(theirs).div_ceil(size_of::<u64>())];
        let out = room.as_mut_ptr().cast::<abi::LinkStatistics>();
        // SAFETY: zeros are a `LinkStatistics`, and there is room for one.
        unsafe { (*out).struct_size = theirs as u32 }; // at most 64 KiB
        call_done(data.name, "link.statistics", |_| {
            // SAFETY: the link is live, `&mut self` serialises the calls on it; there is room for what
            // the plugin takes for the struct.
            unsafe { (data.tables.link.statistics)(self.raw(), out) }
        })?;
        // SAFETY: as above, filled or zero.
        let raw = unsafe { out.read() };
        Ok(LinkStatistics {
            connections: raw.connections,
            bytes_sent: raw.bytes_sent,
            bytes_received: raw.bytes_received,
            puts_sent: raw.puts_sent,
            puts_received: raw.puts_received,
            refused: raw.refused,
            recovered: raw.recovered,
        })
    }
}

impl Queue for Link {
    #[inline]
    fn submit(&mut self, batch: &mut Batch) -> Result<u32> {
        self.queue.submit(batch)
    }

    #[inline]
    fn poll(&mut self, budget: u64) -> Result<QueueState> {
        self.queue.poll(budget)
    }

    fn arm(&mut self, allowed: SleepWays, waker: &Waker) -> Result<Sleep> {
        self.queue.arm(allowed, waker)
    }

    fn disarm(&mut self) {
        self.queue.disarm();
    }

    fn state(&self) -> Result<QueueState> {
        self.queue.state()
    }

    fn aborter(&self) -> Aborter {
        self.queue.aborter()
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("plugin", &self.data().name)
            .finish_non_exhaustive()
    }
}
