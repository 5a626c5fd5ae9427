//! An opened device: its context, and what its memory and its streams share.
#![allow(unsafe_code, reason = "calls the runtime")]

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use unisono_plugin::{Error, Result, Status};

use crate::api::{Api, Handle, code};
use crate::attendant::Attendant;
use crate::context::Context;
use crate::error::{check, error};
use crate::facts::Facts;
use crate::params::Options;

/// Streams that a device has, for all processes.
const STREAMS: u32 = 1984;
/// `ACL_HOST_REGISTER_MAPPED`.
const MAPPED: i32 = 0;
/// What registered memory begins and ends at.
const PAGE: u64 = 4096;
/// How long the trial of numbers in host memory may take.
const TRIAL: Duration = Duration::from_secs(2);

/// An opened device.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) api: &'static Api,
    pub(crate) facts: Facts,
    pub(crate) options: Options,
    pub(crate) context: Arc<Context>,
    /// Streams write and wait for numbers in registered host memory.
    pub(crate) values: bool,
    pub(crate) attendant: Arc<Attendant>,
    streams: AtomicU32,
}

/// A page of host memory for the trial.
#[repr(C, align(4096))]
struct Page([AtomicU64; 512]);

impl Opened {
    pub(crate) fn new(api: &'static Api, facts: Facts, options: Options) -> Result<Self> {
        let context = Arc::new(Context::of(api, facts.device)?);
        let attendant = Attendant::start(api, Arc::clone(&context), facts.device)?;
        let mut this = Self {
            api,
            facts,
            options,
            context,
            values: false,
            attendant,
            streams: AtomicU32::new(0),
        };
        this.values = options.values && this.try_values()?;
        Ok(this)
    }

    /// Its number in this process.
    pub(crate) fn number(&self) -> i32 {
        self.facts.device
    }

    /// Calls with the device's context.
    pub(crate) fn with<T>(&self, call: impl FnOnce(&Api) -> Result<T>) -> Result<T> {
        self.context.with(call)
    }

    /// A new stream. The runtime's priorities are the sooner the lower, and 0 is the soonest.
    pub(crate) fn create_stream(&self, priority: i64) -> Result<Handle> {
        let taken = self.streams.fetch_add(1, Ordering::Relaxed);
        let made = if taken < STREAMS {
            self.make_stream(priority)
        } else {
            let what = format!(
                "a device has {STREAMS} streams, and this process holds all of them: share streams"
            );
            Err(Error::new(Status::OutOfMemory, what))
        };
        if made.is_err() {
            self.streams.fetch_sub(1, Ordering::Relaxed);
        }
        made
    }

    fn make_stream(&self, priority: i64) -> Result<Handle> {
        self.with(|api| {
            let mut stream: Handle = ptr::null_mut();
            let priority = (-priority).clamp(0, 7) as u32;
            // SAFETY: writes a handle.
            let code = unsafe { (api.stream_create)(&raw mut stream, priority, 0) };
            check("aclrtCreateStreamWithConfig", code)?;
            Ok(stream)
        })
    }

    pub(crate) fn destroy_stream(&self, stream: Handle) {
        self.attendant.forget(stream);
        let destroyed = self.with(|api| {
            // SAFETY: created by this, and used by nobody any more.
            check("aclrtDestroyStream", unsafe {
                (api.stream_destroy)(stream)
            })
        });
        self.streams.fetch_sub(1, Ordering::Relaxed);
        drop(destroyed);
    }

    /// Whether a stream has done all that it was given.
    pub(crate) fn is_idle(&self, stream: Handle) -> Result<bool> {
        self.attendant.health()?;
        let mut status = 0;
        self.with(|api| {
            // SAFETY: a stream of this context; writes a number, 0 if all is done.
            check("aclrtStreamQuery", unsafe {
                (api.stream_query)(stream, &raw mut status)
            })
        })?;
        Ok(status == 0 && self.attendant.is_idle(stream))
    }

    /// The device's address of host memory, if it reaches host memory. May block.
    pub(crate) fn register(&self, host: u64, bytes: u64) -> Option<u64> {
        let register = self.api.register?;
        let base = host & !(PAGE - 1);
        let whole = (host + bytes).next_multiple_of(PAGE) - base;
        let mut address: Handle = ptr::null_mut();
        let registered = self.with(|_| {
            // SAFETY: whole pages around a range that the caller keeps mapped; writes an address.
            let code = unsafe { register(base as Handle, whole, MAPPED, &raw mut address) };
            check("aclrtHostRegister", code)
        });
        registered.ok()?;
        Some(address as u64 + (host - base))
    }

    /// Ends a registration. May block.
    pub(crate) fn unregister(&self, host: u64) {
        let Some(unregister) = self.api.unregister else {
            return;
        };
        let base = (host & !(PAGE - 1)) as Handle;
        let ended = self.with(|_| {
            // SAFETY: registered by this, and used by nobody any more.
            check("aclrtHostUnregister", unsafe { unregister(base) })
        });
        // A device that is lost has ended it already.
        drop(ended);
    }

    /// Whether a stream can write a number to host memory, and wait for one there. The manual promises
    /// it of the device's memory alone, so it is tried.
    fn try_values(&self) -> Result<bool> {
        let (Some(write), Some(wait)) = (self.api.value_write, self.api.value_wait) else {
            return Ok(false);
        };
        let page = Box::new(Page([const { AtomicU64::new(0) }; 512]));
        let host = &raw const *page as u64;
        let Some(address) = self.register(host, PAGE) else {
            return Ok(false);
        };
        let stream = self.create_stream(0)?;
        let tried = self.with(|_| {
            let at = |word: u64| (address + word * 8) as Handle;
            // SAFETY: words of the page, which is kept until the stream is done, or for ever.
            unsafe {
                check("aclrtValueWrite", write(at(0), 7, 0, stream))?;
                check("aclrtValueWait", wait(at(0), 7, 0, stream))?;
                check("aclrtValueWrite", write(at(8), 8, 0, stream))
            }
        });
        let end = Instant::now() + TRIAL;
        let seen = |word: usize| page.0[word].load(Ordering::Acquire);
        while tried.is_ok() && seen(8) != 8 && Instant::now() < end {
            std::thread::sleep(Duration::from_micros(50));
        }
        if tried.is_ok() && seen(8) != 8 {
            // It may write there yet: nobody else gets the page or the stream.
            std::mem::forget(page);
            return Ok(false);
        }
        while !self.is_idle(stream)? && Instant::now() < end {
            std::thread::sleep(Duration::from_micros(50));
        }
        self.destroy_stream(stream);
        self.unregister(host);
        match tried {
            Ok(()) => Ok(true),
            Err(error) if error.vendor_code() == i64::from(code::NOT_SUPPORTED) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Lets this device access all memory of another device of this process.
    pub(crate) fn reach_device(&self, other: i32) -> Result<()> {
        self.with(|api| {
            let mut can = 0;
            // SAFETY: writes a number.
            let code = unsafe { (api.can_access_peer)(&raw mut can, self.number(), other) };
            check("aclrtDeviceCanAccessPeer", code)?;
            if can == 0 {
                let what = format!(
                    "device {} reaches no memory of device {other}",
                    self.number()
                );
                return Err(Error::unsupported(what));
            }
            // SAFETY: plain numbers. Once more is no error.
            match unsafe { (api.enable_peer)(other, 0) } {
                0 => Ok(()),
                code => Err(error("aclrtDeviceEnablePeerAccess", code)),
            }
        })
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.attendant.stop();
    }
}
