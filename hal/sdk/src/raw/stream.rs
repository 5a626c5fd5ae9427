//! `unisono_stream_table`, and what it shares with links.

use std::ffi::c_void;

use unisono_abi::{self as abi, Status, status};

use super::guard::{OK, guard, guard_release, guard_value, null};
use super::handle::{DeviceHandle, QueueHandle, borrow, give, take};
use super::structs::{read, slice, write};
use crate::{
    Batch, Device, Error, Event, Kinds, QueueControl, QueuePhase, QueueState, Recording, Result,
    Sleep, SleepWays, Stream, Waker,
};

pub const fn table<D: Device>() -> abi::StreamTable {
    abi::StreamTable {
        struct_size: size_of::<abi::StreamTable>() as u32,
        reserved: 0,
        create: Some(create::<D>),
        wrap: Some(wrap::<D>),
        destroy: Some(destroy::<D::Stream>),
        native: Some(native::<D::Stream>),
        submit: Some(submit::<D::Stream>),
        poll: Some(poll::<D::Stream>),
        arm: Some(arm::<D::Stream>),
        disarm: Some(disarm::<D::Stream>),
        query: Some(query::<D::Stream>),
        abort: Some(abort::<D::Stream>),
        capturing: Some(capturing::<D::Stream>),
    }
}

type Handle<S> = QueueHandle<S, <S as Stream>::Control>;

/// # Safety
/// The host keeps the contract, as in `instance`.
unsafe fn make<D: Device>(
    device: abi::Device,
    out: *mut abi::Stream,
    error: *mut abi::Error,
    call: impl FnOnce(&D) -> Result<D::Stream>,
) -> Status {
    // SAFETY: as above.
    unsafe {
        let Some(handle) = borrow::<DeviceHandle<D>>(device.0) else {
            return null(error, "stream: device");
        };
        if out.is_null() {
            return null(error, "stream: out");
        }
        out.write(abi::Stream::NULL);
        guard(&handle.poison, error, || {
            let queue = call(&handle.device)?;
            out.write(abi::Stream(give(Handle::<D::Stream> {
                poison: handle.poison.clone(),
                control: queue.control(),
                queue: queue.into(),
            })));
            Ok(OK)
        })
    }
}

unsafe extern "C" fn create<D: Device>(
    device: abi::Device,
    request: *const abi::StreamRequest,
    out: *mut abi::Stream,
    error: *mut abi::Error,
) -> Status {
    // SAFETY: as in `instance`: the host keeps the contract.
    unsafe {
        make(device, out, error, |device: &D| {
            device.create_stream(read(request, "stream.create: request")?.priority)
        })
    }
}

unsafe extern "C" fn wrap<D: Device>(
    device: abi::Device,
    native: u64,
    out: *mut abi::Stream,
    error: *mut abi::Error,
) -> Status {
    // SAFETY: as in `instance`.
    unsafe { make(device, out, error, |device: &D| device.wrap_stream(native)) }
}

unsafe extern "C" fn destroy<S: Stream>(stream: abi::Stream) {
    // SAFETY: as in `instance`; the host gives the handle back.
    if let Some(handle) = unsafe { take::<Handle<S>>(stream.0) } {
        let poison = handle.poison.clone();
        guard_release(&poison, || drop(handle));
    }
}

unsafe extern "C" fn native<S: Stream>(stream: abi::Stream) -> u64 {
    // SAFETY: as in `instance`.
    unsafe {
        borrow::<Handle<S>>(stream.0).map_or(0, |handle| {
            guard_value(&handle.poison, 0, || handle.queue().native())
        })
    }
}

unsafe extern "C" fn submit<S: Stream>(
    stream: abi::Stream,
    commands: *const c_void,
    bytes: u64,
    count: u32,
    accepted: *mut u32,
    error: *mut abi::Error,
) -> Status {
    // SAFETY: as in `instance`.
    unsafe {
        let Some(handle) = borrow::<Handle<S>>(stream.0) else {
            return null(error, "stream.submit: stream");
        };
        if accepted.is_null() {
            return null(error, "stream.submit: accepted");
        }
        accepted.write(0);
        guard(&handle.poison, error, || {
            let batch = batch::<S::Event>(commands, bytes, count, S::KINDS)?;
            accepted.write(handle.queue().submit(&batch)?.min(count));
            Ok(OK)
        })
    }
}

unsafe extern "C" fn poll<S: Stream>(
    stream: abi::Stream,
    budget: u64,
    state: *mut abi::QueueState,
    error: *mut abi::Error,
) -> Status {
    // SAFETY: as in `instance`.
    unsafe {
        let Some(handle) = borrow::<Handle<S>>(stream.0) else {
            return null(error, "stream.poll: stream");
        };
        guard(&handle.poison, error, || {
            report(state, handle.queue().poll(budget), &handle.control)
        })
    }
}

unsafe extern "C" fn arm<S: Stream>(
    stream: abi::Stream,
    allowed: u32,
    waker: *const abi::Waker,
    sleep: *mut abi::Sleep,
    error: *mut abi::Error,
) -> Status {
    // SAFETY: as in `instance`.
    unsafe {
        let Some(handle) = borrow::<Handle<S>>(stream.0) else {
            return null(error, "stream.arm: stream");
        };
        guard(&handle.poison, error, || {
            armed(allowed, waker, sleep, |ways, waker| {
                handle.queue().arm(ways, waker)
            })
        })
    }
}

unsafe extern "C" fn disarm<S: Stream>(stream: abi::Stream) {
    // SAFETY: as in `instance`.
    unsafe {
        if let Some(handle) = borrow::<Handle<S>>(stream.0) {
            guard_release(&handle.poison, || handle.queue().disarm());
        }
    }
}

unsafe extern "C" fn query<S: Stream>(stream: abi::Stream, state: *mut abi::QueueState) -> Status {
    // SAFETY: as in `instance`.
    unsafe {
        let Some(handle) = borrow::<Handle<S>>(stream.0) else {
            return status::INVALID;
        };
        guard(&handle.poison, std::ptr::null_mut(), || {
            report(state, Ok(handle.control.query()), &handle.control)
        })
    }
}

unsafe extern "C" fn abort<S: Stream>(stream: abi::Stream) {
    // SAFETY: as in `instance`.
    unsafe {
        if let Some(handle) = borrow::<Handle<S>>(stream.0) {
            guard_release(&handle.poison, || handle.control.abort());
        }
    }
}

unsafe extern "C" fn capturing<S: Stream>(stream: abi::Stream) -> u32 {
    // SAFETY: as in `instance`.
    unsafe {
        borrow::<Handle<S>>(stream.0).map_or(0, |handle| {
            guard_value(&handle.poison, 0, || {
                handle.queue().capturing().map_or(0, Recording::number)
            })
        })
    }
}

/// Checks the batch of a `submit`.
///
/// # Safety
/// `commands` points to `bytes` readable bytes, unchanged as long as `'a`; its events as for
/// [`Batch::parse`].
#[inline]
pub unsafe fn batch<'a, E: Event>(
    commands: *const c_void,
    bytes: u64,
    count: u32,
    kinds: Kinds,
) -> Result<Batch<'a, E>> {
    if !commands.cast::<u64>().is_aligned() || !bytes.is_multiple_of(8) {
        return Err(Error::invalid(
            "a batch is aligned to 8 bytes, and its length a multiple of 8",
        ));
    }
    if commands.is_null() && bytes != 0 {
        return Err(Error::invalid("the batch is NULL"));
    }
    // SAFETY: aligned, and the rest by the caller's promise.
    unsafe { Batch::parse(slice(commands.cast(), bytes / 8), count, kinds) }
}

/// Writes a queue's state; a failed queue's counts come from its control.
///
/// # Safety
/// `out` is NULL or as for [`write`].
#[inline]
pub unsafe fn report(
    out: *mut abi::QueueState,
    result: Result<QueueState>,
    control: &impl QueueControl,
) -> Result<Status> {
    let (state, answer) = match result {
        Ok(state) => (state, Ok(OK)),
        Err(error) => (
            QueueState {
                phase: QueuePhase::Failed,
                ..control.query()
            },
            Err(error),
        ),
    };
    if !out.is_null() {
        let raw = abi::QueueState {
            struct_size: 0,
            state: state.phase as u32,
            accepted: state.accepted,
            completed: state.completed,
            moved: u32::from(state.moved),
            reserved: 0,
        };
        // SAFETY: the caller's promise.
        unsafe { write(out, &raw) };
    }
    answer
}

/// Arms a queue and writes how to sleep.
///
/// # Safety
/// `waker` is NULL or the host's waker, `sleep` NULL or as for [`write`].
pub unsafe fn armed(
    allowed: u32,
    waker: *const abi::Waker,
    sleep: *mut abi::Sleep,
    arm: impl FnOnce(SleepWays, Option<Waker>) -> Result<Sleep>,
) -> Result<Status> {
    if sleep.is_null() {
        return Err(Error::invalid("arm: sleep is NULL"));
    }
    // SAFETY: the caller's promise; the contract keeps a waker good until `disarm`.
    let waker = unsafe { waker.as_ref().and_then(|raw| Waker::from_raw(raw)) };
    let mut ways = SleepWays::from_bits(allowed);
    if waker.is_none() {
        ways.0 &= !abi::sleep::WAKER;
    }
    let mut raw = abi::Sleep::zeroed();
    raw.fd = -1;
    raw.how = match arm(ways, waker)? {
        Sleep::Ready => abi::sleep::READY,
        Sleep::Futex { address, value } => {
            raw.futex = address;
            raw.futex_value = value;
            abi::sleep::FUTEX
        }
        Sleep::Fd { fd, events } => {
            raw.fd = fd;
            raw.fd_events = events;
            abi::sleep::FD
        }
        Sleep::Waker => abi::sleep::WAKER,
    };
    if raw.how & !ways.0 != 0 {
        return Err(Error::new(
            crate::Status::Internal,
            format!(
                "the plugin would sleep in way {}, which the host did not allow",
                raw.how
            ),
        ));
    }
    // SAFETY: not NULL, and the caller's promise.
    unsafe { write(sleep, &raw) };
    Ok(OK)
}
