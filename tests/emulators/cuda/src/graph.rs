//! Recording streams, and running what was recorded.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use unisono_emulator::{Capability, Capturing, Graph, HostCall, Op, Refused};

use crate::answer::{Answer, driver, give};
use crate::code;
use crate::context::{machine, synchronise, synchronise_all};
use crate::handle::Table;
use crate::stream::{self, STREAMS};

static GRAPHS: Table<Graph> = Table::new();
static RUNNABLE: Table<Graph> = Table::new();

thread_local! {
    /// Global, local or relaxed.
    static MODE: Cell<u32> = const { Cell::new(GLOBAL) };
}

const GLOBAL: u32 = 0;
const RELAXED: u32 = 2;

/// Streams whose recording forbids every thread of the process what is unsafe, by their handles.
static STRICT: Mutex<Vec<u64>> = Mutex::new(Vec::new());

fn strict() -> MutexGuard<'static, Vec<u64>> {
    STRICT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What may wait for streams, or make any: while a stream of the process records in global mode it fails and
/// spoils that recording, unless the thread that calls is relaxed.
pub(crate) fn unsafe_call() -> Answer {
    if MODE.get() == RELAXED {
        return Ok(());
    }
    let all = strict();
    for stream in all.iter().filter_map(|handle| STREAMS.get(*handle).ok()) {
        stream.spoil_capture();
    }
    if all.is_empty() {
        Ok(())
    } else {
        Err(code::STREAM_CAPTURE_UNSUPPORTED)
    }
}

/// Whether a stream records, and what the recording's number is.
fn status_of(handle: u64) -> Answer<(u32, Option<u64>)> {
    machine()?;
    if handle == 0 {
        return Ok((0, None));
    }
    Ok(match STREAMS.get(handle)?.capturing() {
        Capturing::No => (0, None),
        Capturing::Active(id) => (1, Some(id)),
        Capturing::Invalid => (2, None),
    })
}

unsafe extern "C" fn nothing(_: *mut c_void) {}

driver! {
    fn cuThreadExchangeStreamCaptureMode(mode: *mut u32) {
        // SAFETY: the caller's.
        let wanted = unsafe { mode.as_mut() }.ok_or(code::INVALID_VALUE)?;
        if *wanted > RELAXED {
            return Err(code::INVALID_VALUE);
        }
        *wanted = MODE.replace(*wanted);
        Ok(())
    }

    fn cuStreamBeginCapture_v2(handle: u64, mode: u32) {
        // The default stream cannot be captured.
        if handle == 0 || mode > RELAXED {
            return Err(code::STREAM_CAPTURE_UNSUPPORTED);
        }
        let stream = stream::of(handle)?;
        stream.begin_capture(machine()?.next_id()).map_err(code::of_refused)?;
        if mode == GLOBAL {
            strict().push(handle);
        }
        Ok(())
    }

    fn cuStreamEndCapture(handle: u64, graph: *mut u64) {
        let stream = stream::of(handle)?;
        let ended = stream.end_capture();
        if !matches!(ended, Err(Refused::Unmatched)) {
            strict().retain(|of| *of != handle);
        }
        let nodes = ended.map_err(code::of_refused)?;
        let made = GRAPHS.add(Arc::new(Graph::new(machine()?, nodes)))?;
        // SAFETY: the caller's.
        unsafe { give(graph, made) }
    }

    fn cuStreamIsCapturing(handle: u64, status: *mut u32) {
        let (found, _) = status_of(handle)?;
        // SAFETY: the caller's.
        unsafe { give(status, found) }
    }

    /// As it was before it told of nodes.
    fn cuStreamGetCaptureInfo(handle: u64, status: *mut u32, id: *mut u64) {
        let (found, number) = status_of(handle)?;
        // SAFETY: the caller's.
        unsafe {
            give(status, found)?;
            match number {
                Some(number) if !id.is_null() => give(id, number),
                _ => Ok(()),
            }
        }
    }

    /// It tells of no nodes: nobody here asks for them.
    fn cuStreamGetCaptureInfo_v2(
        handle: u64,
        status: *mut u32,
        id: *mut u64,
        graph: *mut u64,
        nodes: *mut *const u64,
        count: *mut usize,
    ) {
        if !(graph.is_null() && nodes.is_null() && count.is_null()) {
            return Err(code::NOT_SUPPORTED);
        }
        // SAFETY: the caller's.
        match unsafe { cuStreamGetCaptureInfo(handle, status, id) } {
            code::SUCCESS => Ok(()),
            code => Err(code),
        }
    }

    /// No manual says that it does not wait for what is under way, on any device: here it does.
    fn cuGraphInstantiateWithFlags(runnable: *mut u64, graph: u64, flags: u64) {
        if flags != 0 {
            return Err(code::INVALID_VALUE);
        }
        if !machine()?.facts.has(Capability::Graphs) {
            return Err(code::NOT_SUPPORTED);
        }
        unsafe_call()?;
        synchronise_all("cuGraphInstantiateWithFlags")?;
        let made = RUNNABLE.add(Arc::new(Graph::clone(&*GRAPHS.get(graph)?)))?;
        // SAFETY: the caller's.
        unsafe { give(runnable, made) }
    }

    /// There is nowhere to bring it to; it takes its turn on the stream, as there.
    fn cuGraphUpload(runnable: u64, handle: u64) {
        let stream = stream::of(handle)?;
        RUNNABLE.get(runnable)?;
        stream::not_recording(&stream)?;
        stream::submit(&stream, Op::Call(HostCall { call: nothing, data: std::ptr::null_mut() }))
    }

    fn cuGraphLaunch(runnable: u64, handle: u64) {
        let (graph, stream) = (RUNNABLE.get(runnable)?, stream::of(handle)?);
        // A graph in a graph: nobody here has one.
        stream::not_recording(&stream)?;
        stream.launch(machine()?, &graph).map_err(code::of)
    }

    fn cuGraphDestroy(graph: u64) {
        GRAPHS.remove(graph).map(|_| ())
    }

    /// As for making one.
    fn cuGraphExecDestroy(runnable: u64) {
        unsafe_call()?;
        synchronise("cuGraphExecDestroy")?;
        RUNNABLE.remove(runnable).map(|_| ())
    }
}
