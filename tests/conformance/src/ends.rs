//! One end of a posted link between the two processes of a check, with windows both ways.

#![allow(
    unsafe_code,
    reason = "lets the peer write to windows of its own memory"
)]

use std::sync::Arc;

use unisono_hal::{
    Batch, Device, Instance, Link, LinkRequest, MemoryKind, Put, Queue, QueueState, State,
};

use crate::case::Case;
use crate::flags::{Flags, Region};
use crate::outcome::{Checked, Stop, ensure};
use crate::peer::CheckChannel;
use crate::queue;

/// The window of flags.
pub const FLAGS: u32 = 0;
/// The window of data.
pub const DATA: u32 = 1;
/// Bytes of the data window.
pub const DATA_BYTES: u64 = 1 << 20;
/// Flags in the window, and local ones.
pub const LINES: u64 = 8;

/// One end of a link that is up.
pub struct Ends<'a> {
    case: &'a Case,
    id: u64,
    /// Rounds of [`Ends::put_one`].
    rounds: u64,
    /// The link; it goes before the memory that its peer writes.
    pub link: Link,
    /// Flags that the peer signals: window `FLAGS`.
    pub flags: Flags,
    /// Data that the peer writes: window `DATA`.
    pub data: Region,
    /// Flags of this process alone.
    pub local: Flags,
    /// Data to send.
    pub source: Region,
}

/// An instance of a plugin that makes posted links.
///
/// # Errors
/// Unsupported if it makes none.
pub fn posted(case: &Case) -> Checked<Instance> {
    case.needs(&[
        ("link", "create"),
        ("link", "address"),
        ("link", "submit"),
        ("link", "poll"),
    ])?;
    case.instance()
}

/// The first device of an instance, if it has one.
///
/// # Errors
/// What the plugin says.
pub fn first_device(instance: &Instance) -> Checked<Option<Device>> {
    if instance.devices()?.is_empty() {
        return Ok(None);
    }
    Ok(Some(instance.open(0)?))
}

/// A link to the other process, for channel `id`; not up yet.
///
/// # Errors
/// What the plugin says.
pub fn link(case: &Case, instance: &Instance, id: u64) -> Checked<Link> {
    let channel = CheckChannel::new(case.peer()?, id);
    link_over(case, instance, id, channel)
}

/// As [`link`], over a channel of the check's own.
///
/// # Errors
/// What the plugin says.
pub fn link_over(
    case: &Case,
    instance: &Instance,
    id: u64,
    channel: CheckChannel,
) -> Checked<Link> {
    let address = instance.address()?;
    let mine = address.ok_or_else(|| Stop::unsupported("the instance has no address"))?;
    let theirs = case.peer()?.exchange(tag(id, 0), &mine)?;
    let device = instance
        .devices()?
        .first()
        .map_or([0; 16], |device| device.id);
    Ok(instance.connect(LinkRequest {
        peer: 1 - case.role(),
        device,
        channel: Arc::new(channel),
        peer_address: &theirs,
    })?)
}

/// Tags of one link's own messages.
const fn tag(id: u64, number: u64) -> u64 {
    1 << 40 | id << 20 | number
}

impl<'a> Ends<'a> {
    /// Makes the link and the windows, and polls until it is up. Both processes call it.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn connect(case: &'a Case, id: u64) -> Checked<Self> {
        Self::connect_with(case, id, DATA_BYTES)
    }

    /// As [`Ends::connect`], with a data window of another size.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn connect_with(case: &'a Case, id: u64, bytes: u64) -> Checked<Self> {
        let instance = posted(case)?;
        Self::of(case, &instance, id, bytes)
    }

    /// As [`Ends::connect_with`], of an instance that is there.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn of(case: &'a Case, instance: &Instance, id: u64, bytes: u64) -> Checked<Self> {
        let device = first_device(instance)?;
        let mut ends = Self {
            case,
            id,
            rounds: 0,
            link: link(case, instance, id)?,
            flags: Flags::anywhere(device.as_ref(), LINES)?,
            data: Region::new(device.as_ref(), MemoryKind::Data, bytes)?,
            local: Flags::anywhere(device.as_ref(), LINES)?,
            source: Region::new(device.as_ref(), MemoryKind::Data, bytes)?,
        };
        ends.windows()?;
        ends.come_up()?;
        Ok(ends)
    }

    fn windows(&mut self) -> Checked {
        let region = self.flags.region();
        for (window, at, len) in [
            (FLAGS, region.host(), region.len()),
            (DATA, self.data.host(), self.data.len()),
        ] {
            // SAFETY: `link` stands before the memory in the struct, so it is dropped first; what
            // the peer writes is read only after its signals.
            let token = unsafe { self.link.export_window(window, at, len) }?;
            let tag = tag(self.id, 1 + u64::from(window));
            let theirs = self.case.peer()?.exchange(tag, &token)?;
            self.link.import_window(window, &theirs)?;
        }
        Ok(())
    }

    fn come_up(&mut self) -> Checked {
        let mut before = State::Connecting;
        queue::until("connecting", || {
            let state = queue::prompt("poll of a link", || self.link.poll(queue::BUDGET))?.state;
            before = state;
            Ok(state != State::Connecting)
        })?;
        ensure!(
            matches!(before, State::Idle | State::Ready | State::Waiting),
            "it is {before:?}"
        );
        self.case.peer()?.meet(tag(self.id, 4))
    }

    /// The process's role in the check.
    #[must_use]
    pub fn role(&self) -> u32 {
        self.case.role()
    }

    /// A put of `bytes` at `offset` of the source to `to` of the peer's data, then its flag.
    #[must_use]
    pub fn put(&self, from: u64, bytes: u64, to: u64, flag: u64) -> Put {
        Put {
            src: self.source.at() + from,
            bytes,
            repeat: 1,
            src_stride: 0,
            dst_window: DATA,
            dst_offset: to,
            signal: Some((FLAGS, flag * crate::flags::LINE)),
            done: None,
            words: None,
        }
    }

    /// Hands over a batch.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn submit(&mut self, batch: &mut Batch) -> Checked {
        queue::submit(&mut self.link, batch)
    }

    /// Polls until the link is idle.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn drain(&mut self) -> Checked<QueueState> {
        queue::drain(&mut self.link)
    }

    /// Polls until one of the flags that the peer signals is at `value`.
    ///
    /// # Errors
    /// What the plugin says, or that it does not come.
    pub fn await_flag(&mut self, line: u64, value: u64) -> Checked {
        let what = format!("the peer's signal {value} on flag {line}");
        let (link, flags) = (&mut self.link, &self.flags);
        queue::until(&what, || {
            if flags.value(line) >= value {
                return Ok(true);
            }
            queue::prompt("poll of a link", || link.poll(queue::BUDGET))?;
            Ok(false)
        })
    }

    /// Sends the peer a few bytes, and takes its. Both processes call it, before anything else
    /// signals flag 0.
    ///
    /// # Errors
    /// What the plugin says, or wrong bytes.
    pub fn put_one(&mut self, value: u8) -> Checked {
        self.rounds += 1;
        self.source.write(0, &[value; 100]);
        let mut batch = queue::batch();
        batch.put(&self.put(0, 100, 0, 0));
        self.submit(&mut batch)?;
        self.await_flag(0, self.rounds)?;
        ensure!(
            self.data.read(0, 100) == [value; 100],
            "100 bytes are wrong"
        );
        self.drain()?;
        // The peer must not write again before this.
        self.meet(251)
    }

    /// Returns when both processes have called it; polls meanwhile, so that the peer's puts land.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn meet(&mut self, number: u64) -> Checked {
        let (peer, tag) = (self.case.peer()?, tag(self.id, 16 + number));
        peer.send(tag, &[])?;
        queue::until("the other process", || {
            if peer.has(tag) {
                return Ok(true);
            }
            self.link.poll(queue::BUDGET)?;
            Ok(false)
        })?;
        peer.recv(tag).map(|_| ())
    }

    /// Ends the link in order: both processes have sent all and got all.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn part(mut self) -> Checked {
        self.drain()?;
        self.meet(250)?;
        // Nobody drops before both have stopped polling.
        self.case.peer()?.meet(tag(self.id, 5))
    }
}
