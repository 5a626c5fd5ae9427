//! Graphs: what a stream records, made ready to run.
#![allow(unsafe_code, reason = "calls the runtime")]

use std::ffi::{c_char, c_uint};
use std::ptr;
use std::time::{Duration, Instant};

use unisono_plugin::{Error, Recording, Result, Status};

use crate::api::{Api, Code, Handle, NOT_READY, SUCCESS};
use crate::error::{check, error};

/// `hipStreamCaptureModeRelaxed`: other threads may call what they like meanwhile.
const RELAXED: c_uint = 2;
/// `hipStreamCaptureStatusActive`.
const ACTIVE: c_uint = 1;
/// The first release whose graphs are used. Earlier ones have the functions too, but the releases of ROCm 5
/// still mended what graphs did.
const SINCE: i32 = 6;

/// How long a graph may take to reach the device. Nothing is given to any device meanwhile.
const PATIENCE: Duration = Duration::from_secs(2);

/// `hipErrorNotSupported`.
const NOT_SUPPORTED: Code = 801;

/// The runtime's functions for graphs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Functions {
    begin: unsafe extern "C" fn(Handle, c_uint) -> Code,
    end: unsafe extern "C" fn(Handle, *mut Handle) -> Code,
    instantiate: unsafe extern "C" fn(*mut Handle, Handle, *mut Handle, *mut c_char, usize) -> Code,
    launch: unsafe extern "C" fn(Handle, Handle) -> Code,
    /// Newer than the others.
    upload: Option<unsafe extern "C" fn(Handle, Handle) -> Code>,
    destroy: unsafe extern "C" fn(Handle) -> Code,
    destroy_executable: unsafe extern "C" fn(Handle) -> Code,
}

/// Reads and writes the thread's mode of capture.
type Exchange = unsafe extern "C" fn(*mut c_uint) -> Code;

/// The thread's mode of capture as it was, on every path.
#[derive(Debug)]
pub(crate) struct Mode(Exchange, c_uint);

impl Drop for Mode {
    fn drop(&mut self) {
        // SAFETY: reads and writes a number.
        let _ = unsafe { (self.0)(&raw mut self.1) };
    }
}

/// Lets this thread call what a program's own recording, on this thread or another, would forbid it, and
/// what would else spoil that recording. `None` where nothing records.
pub(crate) fn relaxed(api: &Api) -> Result<Option<Mode>> {
    let Some(exchange) = api.exchange_capture_mode else {
        return Ok(None);
    };
    let mut mode = RELAXED;
    // SAFETY: reads and writes a number.
    let code = unsafe { exchange(&raw mut mode) };
    check(api, "hipThreadExchangeStreamCaptureMode", code)?;
    Ok(Some(Mode(exchange, mode)))
}

/// The recording that a stream takes part in. One that is spoilt, or whose runtime tells no numbers, is not known
/// from others.
pub(crate) fn capturing(api: &Api, stream: Handle) -> Result<Option<Recording>> {
    let (mut status, mut id) = (0, 0);
    match api.capture_info {
        Some(info) => {
            // SAFETY: writes two numbers.
            let code = unsafe { info(stream, &raw mut status, &raw mut id) };
            check(api, "hipStreamGetCaptureInfo", code)?;
        }
        None => {
            // SAFETY: writes a number.
            let code = unsafe { (api.stream_capturing)(stream, &raw mut status) };
            check(api, "hipStreamIsCapturing", code)?;
        }
    }
    Ok(match status {
        0 => None,
        ACTIVE if api.capture_info.is_some() => Some(Recording::of(id)),
        _ => Some(Recording::UNKNOWN),
    })
}

impl Functions {
    /// All of them, if this runtime has them and is new enough.
    pub(crate) fn of(api: &Api) -> Option<Self> {
        let mut version = 0;
        // SAFETY: writes a number.
        let code = unsafe { (api.runtime_version)(&raw mut version) };
        if check(api, "hipRuntimeGetVersion", code).is_err() || version / 10_000_000 < SINCE {
            return None;
        }
        Some(Self {
            begin: api.begin_capture?,
            end: api.end_capture?,
            instantiate: api.instantiate_graph?,
            launch: api.launch_graph?,
            upload: api.upload_graph,
            destroy: api.destroy_graph?,
            destroy_executable: api.destroy_executable_graph?,
        })
    }

    /// What `record` puts on a stream, ready to run. Nobody else uses the stream meanwhile, and nothing is under
    /// way on it.
    pub(crate) fn capture(
        &self,
        api: &Api,
        stream: Handle,
        record: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Handle> {
        let _mode = relaxed(api)?;
        // SAFETY: a stream of the current device, which nothing is under way on.
        let code = unsafe { (self.begin)(stream, RELAXED) };
        check(api, "hipStreamBeginCapture", code)?;
        let recorded = record();
        let (mut graph, mut executable) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: ends what was begun; writes a handle.
        let code = unsafe { (self.end)(stream, &raw mut graph) };
        // What went wrong first says more.
        let ended = recorded.and(check(api, "hipStreamEndCapture", code));
        let made = ended.and_then(|()| {
            let (node, log) = (ptr::null_mut(), ptr::null_mut());
            // SAFETY: the graph that was recorded; writes a handle, and no log into no room.
            let code = unsafe { (self.instantiate)(&raw mut executable, graph, node, log, 0) };
            check(api, "hipGraphInstantiate", code)
        });
        if !graph.is_null() {
            // SAFETY: recorded here; what was made of it lives on.
            let _ = unsafe { (self.destroy)(graph) };
        }
        let sent = made.and_then(|()| self.upload(api, executable, stream));
        if sent.is_err() && !executable.is_null() {
            // SAFETY: made here, and never launched.
            let _ = unsafe { (self.destroy_executable)(executable) };
        }
        sent?;
        // One that the device does not take in time is left to it: it may still read it.
        settle(api, stream)?;
        Ok(executable)
    }

    /// Sends a graph to the device ahead of its first launch, which would else do that, and may wait.
    fn upload(&self, api: &Api, graph: Handle, stream: Handle) -> Result<()> {
        let Some(upload) = self.upload else {
            return Ok(());
        };
        // SAFETY: living handles.
        let code = unsafe { upload(graph, stream) };
        match code {
            // Then the first launch does it.
            NOT_SUPPORTED => Ok(()),
            code => check(api, "hipGraphUpload", code),
        }
    }

    /// Runs a graph.
    ///
    /// # Safety
    /// Made by [`capture`](Self::capture); the addresses in it are good.
    pub(crate) unsafe fn launch(&self, api: &Api, graph: Handle, stream: Handle) -> Result<()> {
        // SAFETY: the caller's promise.
        check(api, "hipGraphLaunch", unsafe {
            (self.launch)(graph, stream)
        })
    }

    /// Ends a graph that is not under way.
    ///
    /// # Safety
    /// Made by [`capture`](Self::capture), and used by nobody any more.
    pub(crate) unsafe fn destroy(&self, api: &Api, graph: Handle) -> Result<()> {
        let _mode = relaxed(api)?;
        // SAFETY: the caller's promise.
        let code = unsafe { (self.destroy_executable)(graph) };
        check(api, "hipGraphExecDestroy", code)
    }
}

/// Waits until a stream has done all that it was given.
fn settle(api: &Api, stream: Handle) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        // SAFETY: a living stream, which records nothing.
        match unsafe { (api.stream_query)(stream) } {
            SUCCESS => return Ok(()),
            NOT_READY if Instant::now() < end => std::thread::sleep(Duration::from_micros(20)),
            NOT_READY => {
                let what = format!("a graph did not reach the device within {PATIENCE:?}");
                return Err(Error::new(Status::Timeout, what));
            }
            code => return Err(error(api, "hipStreamQuery", code)),
        }
    }
}

/// There are none.
pub(crate) fn none() -> Error {
    Error::unsupported("this runtime makes no graphs")
}
