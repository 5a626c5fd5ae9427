//! The plugin through its tables: for the few checks that do what the host never does.

#![allow(unsafe_code, reason = "stands where a host stands")]

use std::ffi::c_void;
use std::ptr::{null_mut, with_exposed_provenance};
use std::sync::atomic::{AtomicBool, Ordering};

use unisono_abi as abi;
use unisono_hal::{ParamKind, ParamValues};

use crate::case::Case;
use crate::outcome::{Checked, Stop, ensure};

/// A plugin's library, opened once more.
pub struct Raw {
    query: abi::QueryFn,
}

/// An instance, made through the tables.
pub struct RawInstance {
    plugin: &'static abi::Plugin,
    raw: abi::Instance,
}

/// A device and a stream of it, made through the tables.
pub struct RawStream {
    instance: RawInstance,
    device: abi::Device,
    stream: abi::Stream,
}

impl Raw {
    /// Opens the library.
    ///
    /// # Errors
    /// If it cannot be opened or has no query.
    pub fn open(case: &Case) -> Checked<Self> {
        // The host's own checks of the file come first.
        case.plugin()?;
        // SAFETY: the host has loaded it already; its constructors have run.
        let library = unsafe { libloading::Library::new(case.path()) };
        let library = library.map_err(|e| Stop::failed(e.to_string()))?;
        // SAFETY: the symbol has this type, by the contract.
        let query = unsafe { library.get::<abi::QueryFn>(b"unisono_plugin_query\0") };
        let query = *query.map_err(|e| Stop::failed(e.to_string()))?;
        // Plugins are never unloaded.
        std::mem::forget(library);
        Ok(Self { query })
    }

    /// What the query answers a host of this version: the address of the record.
    #[must_use]
    pub fn ask(&self, major: u32, minor: u32) -> usize {
        // SAFETY: a pure query, by the contract.
        unsafe { (self.query)(major, minor) as usize }
    }

    /// The record, for this host.
    ///
    /// # Errors
    /// If there is none.
    pub fn plugin(&self) -> Checked<&'static abi::Plugin> {
        let at = self.ask(abi::ABI_MAJOR.into(), abi::ABI_MINOR.into());
        // SAFETY: static data, which the host has found sound when the library was opened.
        let plugin = unsafe { with_exposed_provenance::<abi::Plugin>(at).as_ref() };
        plugin.ok_or_else(|| Stop::failed("the query answers this host NULL"))
    }
}

impl RawInstance {
    /// A use of the plugin with the given parameters.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn new(case: &Case) -> Checked<Self> {
        let plugin = Raw::open(case)?.plugin()?;
        let described = case.plugin()?;
        let values = described.parse_params(case.params())?;
        let kinds: Vec<_> = described.params().iter().map(|spec| spec.kind).collect();
        let params = raw_params(plugin, &kinds, &values);
        let info = abi::InstanceInfo {
            struct_size: size_of::<abi::InstanceInfo>() as u32,
            param_count: params.len() as u32,
            params: params.as_ptr(),
            // A host without services: a plugin must live without a log.
            host: &raw const SILENT.0,
        };
        let (mut raw, mut error) = (abi::Instance::NULL, record());
        // SAFETY: the host found the table sound; what it is given lives for the call, and the
        // services for good.
        let status = unsafe {
            let create = (*plugin.instance).create;
            let create = create.ok_or_else(|| Stop::failed("no instance.create"))?;
            create(&raw const info, &raw mut raw, &raw mut error)
        };
        ensure!(
            status == abi::status::OK,
            "instance.create: {}",
            describe(status, &error)
        );
        Ok(Self { plugin, raw })
    }

    /// Asks to open a device; gives the status and whether a message was written.
    /// `with_error` says whether there is a record for one.
    ///
    /// # Errors
    /// If the plugin has no devices.
    pub fn open(
        &self,
        index: u32,
        with_error: bool,
    ) -> Checked<(abi::Status, abi::Device, String)> {
        let (mut device, mut error) = (abi::Device::NULL, record());
        let to = if with_error {
            &raw mut error
        } else {
            null_mut()
        };
        // SAFETY: the instance is alive, pointers are good.
        let status = unsafe {
            let table = self.plugin.device.as_ref();
            let open = table.and_then(|t| t.open);
            let open = open.ok_or_else(|| Stop::unsupported("the plugin has no device.open"))?;
            open(self.raw, index, &raw mut device, to)
        };
        Ok((status, device, text(&error)))
    }

    /// Closes a device that [`RawInstance::open`] gave.
    pub fn close(&self, device: abi::Device) {
        // SAFETY: the device is alive and given back once, by the checks that open it.
        unsafe {
            if let Some(close) = self.plugin.device.as_ref().and_then(|t| t.close) {
                close(device);
            }
        }
    }
}

impl Drop for RawInstance {
    fn drop(&mut self) {
        // SAFETY: given back once.
        unsafe {
            if let Some(destroy) = (*self.plugin.instance).destroy {
                destroy(self.raw);
            }
        }
    }
}

impl RawStream {
    /// A stream of the first device.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn new(case: &Case) -> Checked<Self> {
        let instance = RawInstance::new(case)?;
        let (status, device, message) = instance.open(0, true)?;
        ensure!(
            status == abi::status::OK,
            "device.open: status {status}: {message}"
        );
        let request = abi::StreamRequest {
            struct_size: size_of::<abi::StreamRequest>() as u32,
            reserved: 0,
            priority: 0,
        };
        let (mut stream, mut error) = (abi::Stream::NULL, record());
        // SAFETY: the device is alive, pointers are good.
        let status = unsafe {
            let create = instance.plugin.stream.as_ref().and_then(|t| t.create);
            let create = create.ok_or_else(|| Stop::unsupported("no stream.create"))?;
            create(device, &raw const request, &raw mut stream, &raw mut error)
        };
        if status != abi::status::OK {
            instance.close(device);
            return Err(Stop::failed(format!(
                "stream.create: {}",
                describe(status, &error)
            )));
        }
        Ok(Self {
            instance,
            device,
            stream,
        })
    }

    /// Hands over words as a batch of `count` commands: the status, how many were taken, and the
    /// message.
    ///
    /// # Errors
    /// If the table has no submit.
    pub fn submit(&mut self, words: &[u64], count: u32) -> Checked<(abi::Status, u32, String)> {
        let (mut accepted, mut error) = (0, record());
        // SAFETY: the stream is alive; the addresses in the words are those of the check's memory,
        // or the batch must be refused before they matter.
        let status = unsafe {
            let submit = (*self.instance.plugin.stream).submit;
            let submit = submit.ok_or_else(|| Stop::unsupported("no stream.submit"))?;
            submit(
                self.stream,
                words.as_ptr().cast::<c_void>(),
                size_of_val(words) as u64,
                count,
                &raw mut accepted,
                &raw mut error,
            )
        };
        Ok((status, accepted, text(&error)))
    }

    /// Runs `work`, which drives the stream, while another thread asks for its state all the time;
    /// gives how often it asked.
    ///
    /// # Errors
    /// What `work` gives; if an answer is wrong, or an earlier one told of more.
    pub fn while_asked(&mut self, work: impl FnOnce(&mut Self) -> Checked) -> Checked<u64> {
        /// A handle whose query is called from another thread.
        struct Asked(abi::Stream);
        // SAFETY: query is [any]: any thread at any time, and the stream outlives the scope.
        unsafe impl Send for Asked {}
        // SAFETY: the table is sound, as the host found.
        let query = unsafe { (*self.instance.plugin.stream).query };
        let query = query.ok_or_else(|| Stop::unsupported("no stream.query"))?;
        let (done, asked) = (AtomicBool::new(false), Asked(self.stream));
        std::thread::scope(|scope| {
            let ask = || -> Checked<u64> {
                let (asked, mut times, mut last) = (asked, 0, 0);
                while !done.load(Ordering::Acquire) {
                    let mut state = abi::QueueState::zeroed();
                    state.struct_size = size_of::<abi::QueueState>() as u32;
                    // SAFETY: as above.
                    let status = unsafe { query(asked.0, &raw mut state) };
                    ensure!(status == abi::status::OK, "query gives status {status}");
                    ensure!(
                        state.completed >= last && state.completed <= state.accepted,
                        "query tells {} of {} complete, after {last}",
                        state.completed,
                        state.accepted
                    );
                    (times, last) = (times + 1, state.completed);
                }
                Ok(times)
            };
            let thread = scope.spawn(ask);
            let worked = work(self);
            done.store(true, Ordering::Release);
            let asked = thread
                .join()
                .map_err(|_| Stop::failed("a thread panicked"))?;
            worked.and(asked)
        })
    }

    /// Polls once: whether the stream is idle.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn is_idle(&mut self) -> Checked<bool> {
        let (mut state, mut error) = (abi::QueueState::zeroed(), record());
        state.struct_size = size_of::<abi::QueueState>() as u32;
        // SAFETY: the stream is alive.
        let status = unsafe {
            let poll = (*self.instance.plugin.stream).poll;
            let poll = poll.ok_or_else(|| Stop::unsupported("no stream.poll"))?;
            poll(self.stream, 1 << 20, &raw mut state, &raw mut error)
        };
        ensure!(status >= 0, "stream.poll: {}", describe(status, &error));
        Ok(state.state == abi::queue_state::IDLE)
    }
}

impl Drop for RawStream {
    fn drop(&mut self) {
        // SAFETY: each is given back once, children first.
        unsafe {
            if let Some(table) = self.instance.plugin.stream.as_ref() {
                if let Some(abort) = table.abort {
                    abort(self.stream);
                }
                if let Some(destroy) = table.destroy {
                    destroy(self.stream);
                }
            }
        }
        self.instance.close(self.device);
    }
}

/// Services of a host that does not listen.
struct Services(abi::Host);
// SAFETY: immutable, without a context.
unsafe impl Sync for Services {}
static SILENT: Services = Services(abi::Host {
    struct_size: size_of::<abi::Host>() as u32,
    reserved: 0,
    context: null_mut(),
    log_level: Some(silent_level),
    log: Some(silent_log),
});
unsafe extern "C" fn silent_level(_: *mut c_void) -> u32 {
    0
}
unsafe extern "C" fn silent_log(_: *mut c_void, _: *const abi::LogRecord) {}

fn raw_params(
    plugin: &abi::Plugin,
    kinds: &[ParamKind],
    values: &ParamValues,
) -> Vec<abi::ParamValue> {
    let rows = values.values().iter().zip(kinds).enumerate();
    rows.map(|(index, (value, kind))| {
        // SAFETY: the host found a table of as many entries.
        let entry = unsafe { &*plugin.params.add(index) };
        let is_text = *kind == ParamKind::String;
        let text = if is_text { value.text.as_str() } else { "" };
        abi::ParamValue {
            name: entry.name,
            text: abi::Str {
                ptr: text.as_ptr().cast(),
                len: text.len() as u64,
            },
            number: value.number,
            value_type: entry.value_type,
            reserved: 0,
        }
    })
    .collect()
}

fn record() -> abi::Error {
    let mut record = abi::Error::zeroed();
    record.struct_size = size_of::<abi::Error>() as u32;
    record
}

fn text(error: &abi::Error) -> String {
    let bytes: Vec<u8> = error.message.iter().map(|c| *c as u8).collect();
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn describe(status: abi::Status, error: &abi::Error) -> String {
    format!("status {status}: {}", text(error))
}
