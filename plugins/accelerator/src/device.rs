//! A device of the contract, over a runtime.

use std::sync::Arc;

use unisono_plugin::abi::command_kind;
use unisono_plugin::{
    Device, DeviceInfo, Host, HostRange, MemoryRequest, MemoryView, Result, SupportQuery,
    without_signals,
};

use crate::event::AcceleratorEvent;
use crate::memory::AcceleratorMemory;
use crate::state::State;
use crate::stream::AcceleratorStream;
use crate::{Runtime, fork};

/// An opened device, and the log of the instance that it was opened by.
pub struct Accelerator<R: Runtime>(Arc<State<R>>, Host);

impl<R: Runtime> Accelerator<R> {
    /// Opens a device by its number in this process. `make` is asked for its runtime if nobody has it
    /// open; `limit` is how many operations one of its streams may have in the device's queues; `host`
    /// takes what there is to say.
    ///
    /// # Errors
    /// What `make` and the runtime say; in a forked child.
    pub fn open(
        number: u32,
        info: &DeviceInfo,
        limit: u64,
        host: Host,
        make: impl FnOnce() -> Result<R>,
    ) -> Result<Self> {
        // A driver starts threads of its own here, which are not to take the program's signals.
        let make = || without_signals(|| State::new(make()?, info.clone(), limit));
        let state = R::process().device(number, make)?;
        Ok(Self(state, host))
    }

    /// What it is.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        &self.0.info
    }

    /// Its runtime.
    #[must_use]
    pub fn runtime(&self) -> &R {
        &self.0.runtime
    }
}

impl<R: Runtime> Device for Accelerator<R> {
    type Memory = AcceleratorMemory<R>;
    type Stream = AcceleratorStream<R>;
    type Event = AcceleratorEvent<R>;

    fn supports(&self, query: &SupportQuery) -> bool {
        match query.command {
            command_kind::REDUCE => self.0.runtime.reduces(query.dtype, query.reduction),
            command_kind::SCALE => self.0.runtime.scales(query.dtype),
            command_kind::COPY
            | command_kind::SIGNAL
            | command_kind::WAIT
            | command_kind::RECORD
            | command_kind::WAIT_EVENT => true,
            _ => false,
        }
    }

    fn alloc(&self, request: &MemoryRequest) -> Result<AcceleratorMemory<R>> {
        AcceleratorMemory::alloc(&self.0, request)
    }

    fn register_host(&self, range: HostRange) -> Result<AcceleratorMemory<R>> {
        AcceleratorMemory::register_host(&self.0, range)
    }

    fn wrap_memory(&self, base: u64, bytes: u64) -> Result<AcceleratorMemory<R>> {
        AcceleratorMemory::wrap(&self.0, base, bytes)
    }

    fn query_memory(&self, address: u64) -> Result<Option<MemoryView>> {
        AcceleratorMemory::query(&self.0, address)
    }

    fn import_memory(&self, description: &[u8]) -> Result<AcceleratorMemory<R>> {
        AcceleratorMemory::import(&self.0, description)
    }

    fn flush_remote_writes(&self) -> Result<()> {
        fork::check()?;
        self.0.runtime.flush_remote_writes()
    }

    fn create_stream(&self, priority: i64) -> Result<AcceleratorStream<R>> {
        AcceleratorStream::create(&self.0, priority, self.1)
    }

    fn wrap_stream(&self, native: u64) -> Result<AcceleratorStream<R>> {
        AcceleratorStream::wrap(&self.0, native, self.1)
    }

    fn create_event(&self) -> Result<AcceleratorEvent<R>> {
        fork::check()?;
        let native = self.0.runtime.create_event()?;
        Ok(AcceleratorEvent::new(&self.0, native, false))
    }

    fn wrap_event(&self, native: u64) -> Result<AcceleratorEvent<R>> {
        fork::check()?;
        let native = self.0.runtime.adopt_event(native)?;
        Ok(AcceleratorEvent::new(&self.0, native, true))
    }
}

impl<R: Runtime> Drop for Accelerator<R> {
    fn drop(&mut self) {
        // Streams that were dropped while they ran hold the device open until they are quiet.
        if !fork::is_child() {
            self.0.settle();
        }
    }
}

impl<R: Runtime> std::fmt::Debug for Accelerator<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Accelerator")
            .field(&self.0.info.name)
            .finish()
    }
}
