//! A plugin in C, compiled and loaded, with the little that a test needs of a host.
#![allow(dead_code, reason = "each test uses its part")]
#![allow(unsafe_code, reason = "the tests stand where a host stands")]

use std::ffi::{CStr, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use unisono_abi::{self as abi, status};
use unisono_abi_tests::compile_plugin;

/// The static record of a plugin that stays loaded.
pub fn load(source: &Path) -> &'static abi::Plugin {
    let folder = tempfile::tempdir().expect("a folder for the plugin");
    let file = folder.path().join("plugin.so");
    compile_plugin(source, &file).expect("compiles without a warning");
    // SAFETY: our own sources; never unloaded; the query answers static data.
    unsafe {
        let library = Box::leak(Box::new(libloading::Library::new(&file).expect("loads")));
        let query = library
            .get::<abi::QueryFn>(abi::QUERY_SYMBOL)
            .expect("exports the query");
        query(1, 1).as_ref().expect("serves this host")
    }
}

pub fn error() -> abi::Error {
    let mut error = abi::Error::zeroed();
    error.struct_size = size_of::<abi::Error>() as u32;
    error
}

pub fn message(error: &abi::Error) -> String {
    // SAFETY: messages end with NUL.
    unsafe { CStr::from_ptr(error.message.as_ptr()) }
        .to_string_lossy()
        .into_owned()
}

/// Panics with the plugin's words unless the status is OK.
pub fn ok(status: abi::Status, error: &abi::Error) {
    assert_eq!(status, status::OK, "{}", message(error));
}

/// Waits for something, ten seconds at most.
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "{what} took too long"
        );
        std::thread::yield_now();
    }
}

/// A new instance, with the given values for the plugin's parameters.
pub fn instance(plugin: &abi::Plugin, numbers: &[i64]) -> abi::Instance {
    assert_eq!(plugin.param_count as usize, numbers.len());
    let params: Vec<_> = numbers
        .iter()
        .enumerate()
        .map(|(i, number)| {
            let mut value = abi::ParamValue::zeroed();
            // SAFETY: the plugin's table has as many entries as it says.
            let param = unsafe { &*plugin.params.add(i) };
            (value.name, value.value_type, value.number) = (param.name, param.value_type, *number);
            value
        })
        .collect();
    let info = abi::InstanceInfo {
        struct_size: size_of::<abi::InstanceInfo>() as u32,
        param_count: params.len() as u32,
        params: params.as_ptr(),
        host: null(),
    };
    let (mut out, mut e) = (abi::Instance::NULL, error());
    // SAFETY: good pointers.
    let status =
        unsafe { (*plugin.instance).create.unwrap()(&raw const info, &raw mut out, &raw mut e) };
    ok(status, &e);
    out
}

pub fn open(plugin: &abi::Plugin, instance: abi::Instance) -> abi::Device {
    let (mut out, mut e) = (abi::Device::NULL, error());
    // SAFETY: the instance is alive.
    let status = unsafe { (*plugin.device).open.unwrap()(instance, 0, &raw mut out, &raw mut e) };
    ok(status, &e);
    out
}

pub fn stream(plugin: &abi::Plugin, device: abi::Device) -> abi::Stream {
    let request = abi::StreamRequest {
        struct_size: 16,
        reserved: 0,
        priority: 0,
    };
    let (mut out, mut e) = (abi::Stream::NULL, error());
    // SAFETY: the device is alive.
    let status = unsafe {
        (*plugin.stream).create.unwrap()(device, &raw const request, &raw mut out, &raw mut e)
    };
    ok(status, &e);
    out
}

/// A waker that counts.
pub fn waker(count: &'static AtomicU32) -> abi::Waker {
    unsafe extern "C" fn wake(context: *mut c_void) {
        // SAFETY: the context is a static counter.
        unsafe { (*context.cast::<AtomicU32>()).fetch_add(1, Ordering::SeqCst) };
    }
    abi::Waker {
        wake: Some(wake),
        context: (&raw const *count).cast_mut().cast(),
    }
}

/// A control channel whose proof is the rank itself, xored with the key: enough to see that a
/// plugin asks, and to pose as another.
pub fn channel(id: u64, rank: u32, key: &'static u8) -> abi::Channel {
    unsafe extern "C" fn prove(
        context: *mut c_void,
        transcript: *const c_void,
        len: u64,
        signature: *mut u8,
    ) -> abi::Status {
        // SAFETY: the plugin's transcript and room for 64 bytes; the context is a static key.
        unsafe { *signature.cast::<[u8; 64]>() = sign(transcript, len, *context.cast::<u8>()) };
        status::OK
    }
    unsafe extern "C" fn verify(
        _: *mut c_void,
        _: u32,
        transcript: *const c_void,
        len: u64,
        signature: *const u8,
    ) -> abi::Status {
        // SAFETY: as above.
        let good = unsafe { *signature.cast::<[u8; 64]>() == sign(transcript, len, 7) };
        if good { status::OK } else { status::AUTH }
    }
    unsafe fn sign(transcript: *const c_void, len: u64, key: u8) -> [u8; 64] {
        // SAFETY: the caller's promise.
        let bytes = unsafe { std::slice::from_raw_parts(transcript.cast::<u8>(), len as usize) };
        let mut signature = [key; 64];
        for (i, byte) in bytes.iter().enumerate() {
            signature[i % 64] = signature[i % 64].wrapping_mul(31).wrapping_add(*byte);
        }
        signature
    }
    let mut channel = abi::Channel::zeroed();
    channel.struct_size = size_of::<abi::Channel>() as u32;
    (channel.rank, channel.size, channel.id) = (rank, 2, id);
    channel.prove = Some(prove);
    channel.verify = Some(verify);
    channel.context = (&raw const *key).cast_mut().cast();
    channel
}

/// A flag line and its counters, in memory that plugins may write at any time.
#[repr(C, align(64))]
pub struct Lines(std::cell::UnsafeCell<[u64; 64]>);

// SAFETY: accessed through raw pointers and atomics only.
unsafe impl Sync for Lines {}

impl Lines {
    pub fn new() -> &'static Self {
        Box::leak(Box::new(Self(std::cell::UnsafeCell::new([0; 64]))))
    }

    /// The address of the n-th line.
    pub fn at(&self, n: usize) -> u64 {
        assert!(n < 8);
        self.0.get() as u64 + 64 * n as u64
    }

    /// The counter at the start of the n-th line.
    pub fn value(&self, n: usize) -> &std::sync::atomic::AtomicU64 {
        // SAFETY: aligned, alive for ever, and accessed atomically where it races.
        unsafe { std::sync::atomic::AtomicU64::from_ptr(self.at(n) as *mut u64) }
    }
}

pub fn no_error() -> *mut abi::Error {
    null_mut()
}
