//! Graphs: what a stream records, made ready to run.
#![allow(unsafe_code, reason = "calls the driver")]

use std::ffi::{c_uint, c_void};
use std::ptr;
use std::time::{Duration, Instant};

use cudarc::driver::sys::CUstream;
use unisono_plugin::{Error, Recording, Result, Status};

use crate::api::{Api, Code};
use crate::error::{check, error};

/// `CU_STREAM_CAPTURE_MODE_RELAXED`: other threads may call what they like meanwhile.
const RELAXED: c_uint = 2;
/// `CU_STREAM_CAPTURE_STATUS_ACTIVE`.
const ACTIVE: c_uint = 1;

/// How long a graph may take to reach the device. Nothing is given to any device meanwhile.
const PATIENCE: Duration = Duration::from_secs(2);

/// A graph or an executable one.
pub(crate) type Handle = *mut c_void;

/// The driver's functions for graphs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Functions {
    begin: unsafe extern "C" fn(CUstream, c_uint) -> Code,
    end: unsafe extern "C" fn(CUstream, *mut Handle) -> Code,
    instantiate: unsafe extern "C" fn(*mut Handle, Handle, u64) -> Code,
    launch: unsafe extern "C" fn(Handle, CUstream) -> Code,
    /// Newer than the others.
    upload: Option<unsafe extern "C" fn(Handle, CUstream) -> Code>,
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
    check(api, "cuThreadExchangeStreamCaptureMode", code)?;
    Ok(Some(Mode(exchange, mode)))
}

/// The recording that a stream takes part in. One that is spoilt, or whose driver tells no numbers, is not known
/// from others.
pub(crate) fn capturing(api: &Api, stream: CUstream) -> Result<Option<Recording>> {
    let (mut status, mut id) = (0, 0);
    match api.capture_info {
        Some(info) => {
            let (graph, nodes, count) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
            let (to, id) = (&raw mut status, &raw mut id);
            // SAFETY: writes two numbers; what is NULL is not asked for.
            let code = unsafe { info(stream, to, id, graph, nodes, count) };
            check(api, "cuStreamGetCaptureInfo", code)?;
        }
        None => {
            // SAFETY: writes a number.
            let code = unsafe { (api.stream_capturing)(stream, &raw mut status) };
            check(api, "cuStreamIsCapturing", code)?;
        }
    }
    Ok(match status {
        0 => None,
        ACTIVE if api.capture_info.is_some() => Some(Recording::of(id)),
        _ => Some(Recording::UNKNOWN),
    })
}

impl Functions {
    /// All of them, if this driver has them.
    pub(crate) fn of(api: &Api) -> Option<Self> {
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
        stream: CUstream,
        record: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Handle> {
        let _mode = relaxed(api)?;
        // SAFETY: a stream of the current context, which nothing is under way on.
        let code = unsafe { (self.begin)(stream, RELAXED) };
        check(api, "cuStreamBeginCapture", code)?;
        let recorded = record();
        let (mut graph, mut executable) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: ends what was begun; writes a handle.
        let code = unsafe { (self.end)(stream, &raw mut graph) };
        // What went wrong first says more.
        let ended = recorded.and(check(api, "cuStreamEndCapture", code));
        let made = ended.and_then(|()| {
            // SAFETY: the graph that was recorded; writes a handle.
            let code = unsafe { (self.instantiate)(&raw mut executable, graph, 0) };
            check(api, "cuGraphInstantiateWithFlags", code)
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
    fn upload(&self, api: &Api, graph: Handle, stream: CUstream) -> Result<()> {
        let Some(upload) = self.upload else {
            return Ok(());
        };
        // SAFETY: living handles.
        let code = unsafe { upload(graph, stream) };
        check(api, "cuGraphUpload", code)
    }

    /// Runs a graph.
    ///
    /// # Safety
    /// Made by [`capture`](Self::capture); the addresses in it are good.
    pub(crate) unsafe fn launch(&self, api: &Api, graph: Handle, stream: CUstream) -> Result<()> {
        // SAFETY: the caller's promise.
        check(api, "cuGraphLaunch", unsafe {
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
        check(api, "cuGraphExecDestroy", code)
    }
}

/// Waits until a stream has done all that it was given.
fn settle(api: &Api, stream: CUstream) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        // SAFETY: a living stream, which records nothing.
        match unsafe { (api.stream_query)(stream) } {
            0 => return Ok(()),
            600 if Instant::now() < end => std::thread::sleep(Duration::from_micros(20)),
            600 => {
                let what = format!("a graph did not reach the device within {PATIENCE:?}");
                return Err(Error::new(Status::Timeout, what));
            }
            code => return Err(error(api, "cuStreamQuery", code)),
        }
    }
}

/// There are none.
pub(crate) fn none() -> Error {
    Error::unsupported("this driver makes no graphs")
}
