//! Streams: ordered queues of a device.

use crate::{
    Batch, Event, Kinds, NoEvent, QueueControl, QueueState, Recording, Result, Sleep, SleepWays,
    Waker,
};

/// An ordered queue of a device. The host serialises the calls on one stream; `query` and `abort`
/// may come at any time and go to its control.
pub trait Stream: Send + 'static {
    /// Whether the plugin has streams.
    const PRESENT: bool = true;
    /// The commands that it takes. What `supports` claims beyond [`Kinds::STREAM`] stands here too.
    const KINDS: Kinds = Kinds::STREAM;
    /// The events that its commands name.
    type Event: Event;
    /// What other threads may ask and do.
    type Control: QueueControl;

    /// Asked once, when the stream is made.
    fn control(&self) -> Self::Control;

    /// Takes the first commands of a batch, copies them, never blocks; returns how many it took.
    /// Nothing of a batch with a command that this stream cannot do may be taken.
    ///
    /// # Errors
    /// Unsupported or invalid commands; the stream's own failure.
    fn submit(&mut self, batch: &Batch<'_, Self::Event>) -> Result<u32>;

    /// Makes progress on this thread for about `budget` bytes of moving.
    ///
    /// # Errors
    /// The queue failed. It stays failed and answers the same from then on.
    fn poll(&mut self, budget: u64) -> Result<QueueState>;

    /// Prepares to sleep in one of the ways allowed. After an answer other than
    /// [`Sleep::Ready`], whatever makes progress possible ends that sleep.
    ///
    /// # Errors
    /// Unsupported if this stream knows none of these ways.
    fn arm(&mut self, allowed: SleepWays, waker: Option<Waker>) -> Result<Sleep>;

    /// Ends what [`arm`](Self::arm) began: when it returns, the waker is not called any more.
    fn disarm(&mut self) {}

    /// The vendor's own handle, 0 if there is none.
    fn native(&self) -> u64 {
        0
    }

    /// What the stream is recording now. Streams that say the same take part in one recording, and record
    /// [`Record`](crate::Command::Record) and [`WaitEvent`](crate::Command::WaitEvent) too, unless it is
    /// [`Recording::UNKNOWN`].
    fn capturing(&self) -> Option<Recording> {
        None
    }
}

/// For plugins without streams.
#[derive(Clone, Copy, Debug)]
pub enum NoStream {}

impl Stream for NoStream {
    const PRESENT: bool = false;
    type Event = NoEvent;
    type Control = Self;

    fn control(&self) -> Self {
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

impl QueueControl for NoStream {
    fn query(&self) -> QueueState {
        match *self {}
    }

    fn abort(&self) {}
}
