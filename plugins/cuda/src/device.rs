//! An opened device: its context, and the stream of its memory pool.
#![allow(unsafe_code, reason = "calls the driver")]

use std::ptr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use cudarc::driver::sys::CUstream;
use unisono_plugin::{DeviceId, Error, Result, Status};

use crate::api::Api;
use crate::context::Context;
use crate::error::{check, error};
use crate::facts::Facts;

/// `CU_STREAM_NON_BLOCKING`: ordered with no other stream.
const NON_BLOCKING: u32 = 1;
/// How long a call that may block waits for the device.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// How long freeing waits for the pool: longer only costs that the address is known a little more.
pub(crate) const BRIEFLY: Duration = Duration::from_millis(200);

/// What a device's memory and runtime share.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) api: &'static Api,
    pub(crate) facts: Facts,
    pub(crate) context: Context,
    /// Share memory by descriptors.
    pub(crate) descriptors: bool,
    /// Identities of all devices, by the driver's number.
    pub(crate) ids: Vec<DeviceId>,
    pool: OnceLock<Handle>,
}

/// A stream as a number.
#[derive(Clone, Copy, Debug)]
struct Handle(usize);

impl Opened {
    pub(crate) fn new(
        api: &'static Api,
        facts: Facts,
        ids: Vec<DeviceId>,
        descriptors: bool,
    ) -> Result<Self> {
        let this = Self {
            api,
            context: Context::retain(api, facts.device)?,
            descriptors: descriptors && facts.descriptors,
            facts,
            ids,
            pool: OnceLock::new(),
        };
        if this.facts.pools {
            let stream = this.create_stream(0)?;
            let _ = this.pool.set(Handle(stream as usize));
        }
        Ok(this)
    }

    pub(crate) fn create_stream(&self, priority: i64) -> Result<CUstream> {
        self.context.with(|api| {
            let (mut least, mut greatest, mut stream) = (0, 0, ptr::null_mut());
            // SAFETY: writes numbers and a handle. The driver's priorities are the sooner the lower.
            let code = unsafe {
                let _ = (api.priority_range)(&raw mut least, &raw mut greatest);
                let wanted = i32::try_from(-priority).unwrap_or(0);
                let wanted = wanted.clamp(greatest.min(least), least.max(greatest));
                (api.stream_create)(&raw mut stream, NON_BLOCKING, wanted)
            };
            check(api, "cuStreamCreateWithPriority", code)?;
            Ok(stream)
        })
    }

    /// The stream that orders the pool's memory.
    pub(crate) fn pool_stream(&self) -> CUstream {
        self.pool
            .get()
            .map_or(ptr::null_mut(), |Handle(stream)| *stream as CUstream)
    }

    /// Waits until the pool has done what it was asked: memory may be used on any stream, or is gone.
    pub(crate) fn settle_pool(&self, limit: Duration) -> Result<()> {
        let end = Instant::now() + limit;
        while !self.is_idle(self.pool_stream())? {
            if Instant::now() > end {
                let what = format!("the pool of device memory was not done within {limit:?}");
                return Err(Error::new(Status::Timeout, what));
            }
            std::thread::sleep(Duration::from_micros(20));
        }
        Ok(())
    }

    /// Whether a stream has done all that it was given.
    pub(crate) fn is_idle(&self, stream: CUstream) -> Result<bool> {
        self.context.with(|api| {
            // SAFETY: a stream of this context.
            match unsafe { (api.stream_query)(stream) } {
                0 => Ok(true),
                600 => Ok(false),
                code => Err(error(api, "cuStreamQuery", code)),
            }
        })
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let stream = self.pool_stream();
        if !stream.is_null() {
            let _ = self.context.with(|api| {
                // SAFETY: created by this, and used by nobody any more.
                check(api, "cuStreamDestroy", unsafe {
                    (api.stream_destroy)(stream)
                })
            });
        }
    }
}
