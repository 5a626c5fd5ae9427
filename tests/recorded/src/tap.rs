//! Plugins that forward to the host's and tcp's, and record what these accept.
//!
//! They replace a few functions in a copy of the plugin's tables, so the engine sees the same
//! plugin, and nothing of it is changed.
#![allow(
    unsafe_code,
    reason = "this stands at the contract's door, in C's clothes"
)]

use std::ffi::c_void;
use std::sync::OnceLock;

use unisono::hal::{Plugin, QueryFn};
use unisono_abi as abi;
use unisono_abi::status;

use crate::command::decode;
use crate::log;

/// The host plugin, recorded: its memory and its streams.
pub(crate) fn host() -> Plugin {
    // SAFETY: the tables are those of the host plugin, with functions that forward to it.
    let query = unsafe { QueryFn::new(query_host) };
    Plugin::from_static(query).expect("the host plugin is sound")
}

/// The tcp plugin, recorded: its links.
pub(crate) fn tcp() -> Plugin {
    // SAFETY: the tables are those of the tcp plugin, with functions that forward to it.
    let query = unsafe { QueryFn::new(query_tcp) };
    Plugin::from_static(query).expect("the tcp plugin is sound")
}

/// A record that lives for ever.
struct Static(*const abi::Plugin);
// SAFETY: it points to what is never written again.
unsafe impl Send for Static {}
// SAFETY: as above.
unsafe impl Sync for Static {}

static MEMORY: OnceLock<abi::MemoryTable> = OnceLock::new();
static STREAM: OnceLock<abi::StreamTable> = OnceLock::new();
static LINK: OnceLock<abi::LinkTable> = OnceLock::new();

extern "C" fn query_host(major: u32, minor: u32) -> *const abi::Plugin {
    static RECORD: OnceLock<Static> = OnceLock::new();
    let make = || {
        // SAFETY: a query gives a static record or NULL, and this one serves its own workspace.
        let mut plugin = unsafe { *unisono_plugin_host::query(major, minor) };
        // SAFETY: the plugin has memory and streams, so it has their tables, which are static.
        let (mut memory, mut stream) = unsafe { (*plugin.memory, *plugin.stream) };
        _ = (MEMORY.set(memory), STREAM.set(stream));
        memory.alloc = Some(alloc);
        stream.create = Some(stream_create);
        stream.destroy = Some(stream_destroy);
        stream.submit = Some(stream_submit);
        plugin.memory = Box::leak(Box::new(memory));
        plugin.stream = Box::leak(Box::new(stream));
        Static(Box::leak(Box::new(plugin)))
    };
    RECORD.get_or_init(make).0
}

extern "C" fn query_tcp(major: u32, minor: u32) -> *const abi::Plugin {
    static RECORD: OnceLock<Static> = OnceLock::new();
    let make = || {
        // SAFETY: as in `query_host`.
        let mut plugin = unsafe { *unisono_plugin_tcp::query(major, minor) };
        // SAFETY: the plugin has links, so it has their table, which is static.
        let mut link = unsafe { *plugin.link };
        _ = LINK.set(link);
        link.create = Some(link_create);
        link.destroy = Some(link_destroy);
        link.export_window = Some(export_window);
        link.submit = Some(link_submit);
        // What is recorded are the copies from the slots.
        link.land = None;
        plugin.link = Box::leak(Box::new(link));
        Static(Box::leak(Box::new(plugin)))
    };
    RECORD.get_or_init(make).0
}

/// Calls the plugin's own function.
macro_rules! forward {
    ($table:ident.$function:ident($($argument:expr),*)) => {{
        let function = $table.get().and_then(|table| table.$function);
        let function = function.expect("the plugin has it: it was replaced");
        // SAFETY: these are the arguments that the host gave for this very function.
        unsafe { function($($argument),*) }
    }};
}

unsafe extern "C" fn alloc(
    device: abi::Device,
    request: *const abi::MemoryRequest,
    out: *mut abi::Memory,
    view: *mut abi::MemoryView,
    error: *mut abi::Error,
) -> abi::Status {
    let status = forward!(MEMORY.alloc(device, request, out, view, error));
    if status == status::OK {
        // SAFETY: the host gave both, and the plugin has filled the view.
        let (kind, view) = unsafe { ((*request).kind, *view) };
        let is_signal = kind == abi::memory_kind::SIGNAL;
        if is_signal || kind == abi::memory_kind::DATA {
            log::allocated(is_signal, view.base..view.base + view.bytes);
        }
    }
    status
}

unsafe extern "C" fn stream_create(
    device: abi::Device,
    request: *const abi::StreamRequest,
    out: *mut abi::Stream,
    error: *mut abi::Error,
) -> abi::Status {
    let status = forward!(STREAM.create(device, request, out, error));
    if status == status::OK {
        // SAFETY: the plugin has written the handle.
        log::created(unsafe { (*out).0 } as usize, None);
    }
    status
}

unsafe extern "C" fn stream_destroy(stream: abi::Stream) {
    log::destroyed(stream.0 as usize);
    forward!(STREAM.destroy(stream));
}

unsafe extern "C" fn stream_submit(
    stream: abi::Stream,
    commands: *const c_void,
    bytes: u64,
    count: u32,
    accepted: *mut u32,
    error: *mut abi::Error,
) -> abi::Status {
    let status = forward!(STREAM.submit(stream, commands, bytes, count, accepted, error));
    // SAFETY: the plugin has written how many it accepted, also when it failed.
    let taken = unsafe { decode(commands.cast(), *accepted, log::is_told) };
    log::of(stream.0 as usize, |queue| queue.commands.extend(taken));
    status
}

unsafe extern "C" fn link_create(
    instance: abi::Instance,
    request: *const abi::LinkRequest,
    out: *mut abi::Link,
    error: *mut abi::Error,
) -> abi::Status {
    let status = forward!(LINK.create(instance, request, out, error));
    if status == status::OK {
        // SAFETY: the host gave the request, and the plugin has written the handle.
        let (link, peer) = unsafe { ((*out).0, (*request).peer) };
        log::created(link as usize, Some(peer));
    }
    status
}

unsafe extern "C" fn link_destroy(link: abi::Link) {
    log::destroyed(link.0 as usize);
    forward!(LINK.destroy(link));
}

unsafe extern "C" fn export_window(
    link: abi::Link,
    id: u32,
    ptr: u64,
    bytes: u64,
    token: *mut c_void,
    cap: u64,
    len: *mut u64,
    error: *mut abi::Error,
) -> abi::Status {
    let status = forward!(LINK.export_window(link, id, ptr, bytes, token, cap, len, error));
    if status == status::OK {
        log::of(link.0 as usize, |queue| {
            queue.windows.push((id, ptr, bytes))
        });
    }
    status
}

unsafe extern "C" fn link_submit(
    link: abi::Link,
    commands: *const c_void,
    bytes: u64,
    count: u32,
    accepted: *mut u32,
    error: *mut abi::Error,
) -> abi::Status {
    let status = forward!(LINK.submit(link, commands, bytes, count, accepted, error));
    // SAFETY: as in `stream_submit`.
    let taken = unsafe { decode(commands.cast(), *accepted, log::is_told) };
    log::of(link.0 as usize, |queue| queue.commands.extend(taken));
    status
}
