//! A thin, safe-looking wrapper of the plugin's tables, for tests and benchmarks in this crate.
//!
//! It is test code: handles are used as the contract says by the tests themselves.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use unisono_plugin::Pack;
use unisono_plugin::abi::{self, memory_kind, status};

/// An error as a status and a message.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    pub status: i32,
    pub message: String,
    pub words: [u64; 3],
}

fn call(f: impl FnOnce(*mut abi::Error) -> i32) -> Result<i32, Failure> {
    let mut error = abi::Error::zeroed();
    error.struct_size = size_of::<abi::Error>() as u32;
    let status = f(&raw mut error);
    if status >= 0 {
        return Ok(status);
    }
    let message = error
        .message
        .iter()
        .take_while(|&&c| c != 0)
        .map(|&c| c as u8)
        .collect();
    Err(Failure {
        status,
        message: String::from_utf8(message).expect("messages are UTF-8"),
        words: error.words,
    })
}

fn plugin() -> &'static abi::Plugin {
    // SAFETY: the answer is static data.
    unsafe { unisono_plugin_host::query(1, 1).as_ref() }.expect("this host is of the same version")
}

/// The plugin's tables, one instance and its device. Lives as long as the process.
#[derive(Clone, Copy)]
pub struct Host {
    memory: &'static abi::MemoryTable,
    stream: &'static abi::StreamTable,
    event: &'static abi::EventTable,
    device: abi::Device,
}

impl Host {
    pub fn open() -> Self {
        Self::with(&[])
    }

    /// Some parameters other than here: the defaults of tests.
    pub fn with(params: &[(&str, i64)]) -> Self {
        let plugin = plugin();
        let default = |name: &str| match name {
            "spin" => 20,
            "queue_bytes" => 4096,
            "streaming_threshold" => 32 << 10,
            "shm_latency" => 200,
            _ => 10_000_000_000,
        };
        // SAFETY: the table of the plugin's parameters, and its strings, are static.
        let values: Vec<_> = unsafe {
            let table = std::slice::from_raw_parts(plugin.params, plugin.param_count as usize);
            table.iter().map(|param| {
                let name =
                    std::slice::from_raw_parts(param.name.ptr.cast(), param.name.len as usize);
                let name = std::str::from_utf8(name).expect("names are UTF-8");
                let chosen = params.iter().find(|(key, _)| *key == name);
                let mut value = abi::ParamValue::zeroed();
                value.name = param.name;
                value.number = chosen.map_or_else(|| default(name), |(_, number)| *number);
                value.value_type = param.value_type;
                value
            })
        }
        .collect();
        let services = Box::leak(Box::new(abi::Host::zeroed()));
        services.struct_size = size_of::<abi::Host>() as u32;
        let info = abi::InstanceInfo {
            struct_size: size_of::<abi::InstanceInfo>() as u32,
            param_count: values.len() as u32,
            params: values.as_ptr(),
            host: services,
        };
        let mut instance = abi::Instance::NULL;
        let mut device = abi::Device::NULL;
        // SAFETY: the tables are static, the arguments live through the calls.
        unsafe {
            let instances = &*plugin.instance;
            call(|error| instances.create.unwrap()(&info, &mut instance, error)).unwrap();
            let devices = &*plugin.device;
            call(|error| devices.open.unwrap()(instance, 0, &mut device, error)).unwrap();
            Self {
                memory: &*plugin.memory,
                stream: &*plugin.stream,
                event: &*plugin.event,
                device,
            }
        }
    }

    pub fn alloc(self, kind: u32, bytes: u64, align: u64, flags: u64) -> Result<Memory, Failure> {
        let struct_size = size_of::<abi::MemoryRequest>() as u32;
        let request = abi::MemoryRequest {
            struct_size,
            kind,
            bytes,
            align,
            flags,
        };
        // SAFETY: the arguments live through the call.
        self.make(|out, view, error| unsafe {
            self.memory.alloc.unwrap()(self.device, &request, out, view, error)
        })
    }

    pub fn exportable(self, bytes: u64) -> Memory {
        self.alloc(memory_kind::DATA, bytes, 0, abi::memory_flag::EXPORTABLE)
            .unwrap()
    }

    pub fn bell(self) -> Memory {
        self.alloc(memory_kind::BELL, 64, 0, abi::memory_flag::EXPORTABLE)
            .unwrap()
    }

    pub fn import(self, description: &[u8]) -> Result<Memory, Failure> {
        let len = description.len() as u64;
        // SAFETY: the arguments live through the call.
        self.make(|out, view, error| unsafe {
            let import = self.memory.import_memory.unwrap();
            import(
                self.device,
                description.as_ptr().cast(),
                len,
                out,
                view,
                error,
            )
        })
    }

    pub fn register(self, ptr: *mut u8, bytes: u64) -> Result<Memory, Failure> {
        // SAFETY: the arguments live through the call.
        self.make(|out, view, error| unsafe {
            self.memory.register_host.unwrap()(self.device, ptr.cast(), bytes, out, view, error)
        })
    }

    fn make(
        self,
        f: impl FnOnce(*mut abi::Memory, *mut abi::MemoryView, *mut abi::Error) -> i32,
    ) -> Result<Memory, Failure> {
        let mut handle = abi::Memory::NULL;
        let mut view = abi::MemoryView::zeroed();
        view.struct_size = size_of::<abi::MemoryView>() as u32;
        call(|error| f(&raw mut handle, &raw mut view, error))?;
        Ok(Memory {
            host: self,
            handle,
            view,
        })
    }

    pub fn query(self, address: u64) -> Result<Option<abi::MemoryView>, Failure> {
        let mut view = abi::MemoryView::zeroed();
        view.struct_size = size_of::<abi::MemoryView>() as u32;
        // SAFETY: the arguments live through the call.
        let status = call(|error| unsafe {
            self.memory.query.unwrap()(self.device, address, &raw mut view, error)
        })?;
        Ok((status == status::OK).then_some(view))
    }

    pub fn stream(self) -> Stream {
        self.try_stream().unwrap()
    }

    pub fn try_stream(self) -> Result<Stream, Failure> {
        let struct_size = size_of::<abi::StreamRequest>() as u32;
        let request = abi::StreamRequest {
            struct_size,
            reserved: 0,
            priority: 0,
        };
        let mut handle = abi::Stream::NULL;
        // SAFETY: the arguments live through the call.
        call(|error| unsafe {
            self.stream.create.unwrap()(self.device, &request, &mut handle, error)
        })?;
        Ok(Stream {
            table: self.stream,
            handle,
        })
    }

    pub fn event(self) -> Event {
        let mut handle = abi::Event::NULL;
        // SAFETY: the arguments live through the call.
        call(|error| unsafe { self.event.create.unwrap()(self.device, &mut handle, error) })
            .unwrap();
        Event {
            table: self.event,
            handle,
        }
    }
}

// SAFETY: the contract marks devices, memory and events as usable from any thread.
unsafe impl Send for Host {}
// SAFETY: as above.
unsafe impl Sync for Host {}

/// Memory, freed when dropped.
pub struct Memory {
    host: Host,
    handle: abi::Memory,
    pub view: abi::MemoryView,
}

// SAFETY: as for `Host`.
unsafe impl Send for Memory {}
// SAFETY: as for `Host`.
unsafe impl Sync for Memory {}

impl Memory {
    pub fn base(&self) -> u64 {
        self.view.base
    }

    pub fn at(&self, offset: u64) -> *mut u8 {
        (self.view.host + offset) as usize as *mut u8
    }

    /// An aligned u64 of it, which streams may use meanwhile.
    pub fn word(&self, offset: u64) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.view.bytes);
        // SAFETY: within the memory, aligned, atomic.
        unsafe { &*self.at(offset).cast() }
    }

    pub fn store(&self, offset: u64, value: u64) {
        self.word(offset).store(value, Ordering::SeqCst);
    }

    pub fn load(&self, offset: u64) -> u64 {
        self.word(offset).load(Ordering::SeqCst)
    }

    pub fn export(&self) -> Result<Vec<u8>, Failure> {
        let mut out = vec![0_u8; 256];
        let mut len = 0;
        // SAFETY: the arguments live through the call.
        call(|error| unsafe {
            let export = self.host.memory.export_memory.unwrap();
            export(
                self.handle,
                1,
                out.as_mut_ptr().cast(),
                256,
                &raw mut len,
                error,
            )
        })?;
        out.truncate(len as usize);
        Ok(out)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the handle is freed once.
        unsafe { self.host.memory.free.unwrap()(self.handle) };
    }
}

/// A stream, destroyed when dropped.
pub struct Stream {
    table: &'static abi::StreamTable,
    handle: abi::Stream,
}

// SAFETY: `&mut self` serialises the calls that must be.
unsafe impl Send for Stream {}

/// Control of a stream from elsewhere.
#[derive(Clone, Copy)]
pub struct Control {
    table: &'static abi::StreamTable,
    handle: abi::Stream,
}

// SAFETY: the contract marks query and abort as usable from any thread.
unsafe impl Send for Control {}

impl Control {
    pub fn query(self) -> abi::QueueState {
        let mut state = abi::QueueState::zeroed();
        state.struct_size = size_of::<abi::QueueState>() as u32;
        // SAFETY: the stream lives: tests see to it.
        let status = unsafe { self.table.query.unwrap()(self.handle, &raw mut state) };
        assert_eq!(status, status::OK);
        state
    }

    pub fn abort(self) {
        // SAFETY: as above.
        unsafe { self.table.abort.unwrap()(self.handle) };
    }
}

impl Stream {
    pub fn control(&self) -> Control {
        Control {
            table: self.table,
            handle: self.handle,
        }
    }

    pub fn submit(&mut self, pack: &Pack) -> Result<u32, Failure> {
        self.submit_raw(pack.words(), pack.count())
    }

    pub fn submit_raw(&mut self, words: &[u64], count: u32) -> Result<u32, Failure> {
        let mut accepted = 0;
        // SAFETY: the arguments live through the call.
        call(|error| unsafe {
            let bytes = words.len() as u64 * 8;
            let commands = words.as_ptr().cast::<c_void>();
            let submit = self.table.submit.unwrap();
            submit(
                self.handle,
                commands,
                bytes,
                count,
                &raw mut accepted,
                error,
            )
        })?;
        Ok(accepted)
    }

    pub fn poll(&mut self) -> Result<abi::QueueState, Failure> {
        self.poll_for(u64::MAX)
    }

    pub fn poll_for(&mut self, budget: u64) -> Result<abi::QueueState, Failure> {
        let mut state = abi::QueueState::zeroed();
        state.struct_size = size_of::<abi::QueueState>() as u32;
        // SAFETY: the arguments live through the call.
        call(|error| unsafe {
            self.table.poll.unwrap()(self.handle, budget, &raw mut state, error)
        })?;
        Ok(state)
    }

    pub fn arm(&mut self, allowed: u32) -> Result<abi::Sleep, Failure> {
        let mut sleep = abi::Sleep::zeroed();
        sleep.struct_size = size_of::<abi::Sleep>() as u32;
        // SAFETY: the arguments live through the call.
        call(|error| unsafe {
            self.table.arm.unwrap()(
                self.handle,
                allowed,
                std::ptr::null(),
                &raw mut sleep,
                error,
            )
        })?;
        Ok(sleep)
    }

    pub fn disarm(&mut self) {
        // SAFETY: the stream lives.
        unsafe { self.table.disarm.unwrap()(self.handle) };
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the handle is destroyed once.
        unsafe { self.table.destroy.unwrap()(self.handle) };
    }
}

/// An event, destroyed when dropped.
pub struct Event {
    table: &'static abi::EventTable,
    handle: abi::Event,
}

// SAFETY: as for `Host`.
unsafe impl Send for Event {}
// SAFETY: as for `Host`.
unsafe impl Sync for Event {}

impl Event {
    pub fn command(&self) -> abi::CommandEvent {
        let mut command = abi::CommandEvent::zeroed();
        command.event = self.handle;
        command
    }

    pub fn is_complete(&self) -> bool {
        // SAFETY: the arguments live through the call.
        let status =
            call(|error| unsafe { self.table.host_query.unwrap()(self.handle, error) }).unwrap();
        status == status::OK
    }

    pub fn signal(&self) {
        // SAFETY: the arguments live through the call.
        call(|error| unsafe { self.table.host_signal.unwrap()(self.handle, error) }).unwrap();
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the handle is destroyed once.
        unsafe { self.table.destroy.unwrap()(self.handle) };
    }
}

pub fn signal(flag: u64, counter: u64, bell: u64, words: [u64; 3]) -> abi::CommandSignal {
    abi::CommandSignal {
        flag,
        counter,
        bell,
        words,
        ..abi::CommandSignal::zeroed()
    }
}

pub fn wait(flag: u64, counter: u64, words: [u64; 3]) -> abi::CommandWait {
    abi::CommandWait {
        flag,
        counter,
        words,
        ..abi::CommandWait::zeroed()
    }
}

pub fn copy(dst: u64, src: u64, bytes: u64) -> abi::CommandCopy {
    abi::CommandCopy {
        dst,
        src,
        bytes,
        repeat: 1,
        ..abi::CommandCopy::zeroed()
    }
}
