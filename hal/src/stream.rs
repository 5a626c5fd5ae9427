//! Streams: ordered queues of a device.

#![allow(unsafe_code, reason = "calls the plugin's function pointers")]

use std::fmt;

use unisono_abi as abi;

use crate::error::call_done;
use crate::raw_queue::{QueueNames, RawQueue};
use crate::{
    Aborter, Batch, Device, Queue, QueueState, Recording, Result, Sleep, SleepWays, Waker,
};

/// An ordered queue of a device. Dropping it aborts what is not complete.
pub struct Stream {
    queue: RawQueue<abi::Stream, Device>,
}

const NAMES: QueueNames = QueueNames {
    submit: "stream.submit",
    poll: "stream.poll",
    arm: "stream.arm",
    query: "stream.query",
};

impl Stream {
    pub(crate) fn create(device: &Device, priority: i64) -> Result<Self> {
        let request = abi::StreamRequest {
            struct_size: size_of::<abi::StreamRequest>() as u32,
            reserved: 0,
            priority,
        };
        let function = device.data().tables.stream.create;
        Self::make(device, "stream.create", |out, error| {
            // SAFETY: the device is live; the request is borrowed for the call.
            unsafe { function(device.raw(), &raw const request, out, error) }
        })
    }

    /// # Safety
    /// `native` is a live stream of this device that outlives the answer.
    pub(crate) unsafe fn wrap(device: &Device, native: u64) -> Result<Self> {
        let function = device.data().tables.stream.wrap;
        Self::make(device, "stream.wrap", |out, error| {
            // SAFETY: the device is live; the native stream is by the caller's promise.
            unsafe { function(device.raw(), native, out, error) }
        })
    }

    fn make(
        device: &Device,
        name: &'static str,
        function: impl FnOnce(*mut abi::Stream, &mut abi::Error) -> abi::Status,
    ) -> Result<Self> {
        let data = device.data();
        let mut raw = abi::Stream::NULL;
        call_done(data.name, name, |error| function(&raw mut raw, error))?;
        if raw == abi::Stream::NULL {
            return Err(data.null_handle(name));
        }
        let fns = data.tables.stream.queue();
        // SAFETY: the plugin just gave the handle; nobody else has it.
        let queue = unsafe { RawQueue::new(raw, fns, NAMES, data.name, device.clone()) };
        Ok(Self { queue })
    }

    /// The device whose queue it is.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.queue.shared.parent
    }

    /// The vendor's own handle, 0 if there is none.
    #[must_use]
    pub fn native(&mut self) -> u64 {
        // SAFETY: the stream is live; `&mut self` serialises the calls on it.
        unsafe { (self.device().data().tables.stream.native)(self.queue.shared.handle) }
    }

    /// The recording for replay into which what is submitted now goes; none if it runs.
    #[must_use]
    pub fn capturing(&mut self) -> Option<Recording> {
        let data = self.device().data();
        let function = data.tables.stream.capturing;
        // SAFETY: the stream is live; `&mut self` serialises the calls on it.
        let number = unsafe { function(self.queue.shared.handle) };
        Recording::from_number(number, data.facts.abi_minor)
    }
}

impl Queue for Stream {
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

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("device", self.device())
            .finish_non_exhaustive()
    }
}
