//! Completion queues, and the channels that tell of them.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;

use unisono_plugin_roce::sys::abi::{CompChannel, Context, Cq, Wc};

use super::OwnChannel;
use crate::broken;
use crate::queue::{Bell, Queue};
use crate::state::state;

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_create_comp_channel(context: *mut Context) -> *mut CompChannel {
    let bell = Bell::new();
    Box::into_raw(Box::new(OwnChannel {
        raw: CompChannel {
            context,
            fd: bell.fd(),
            refcnt: 0,
        },
        bell,
        queue: null_mut(),
    }))
    .cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_destroy_comp_channel(channel: *mut CompChannel) -> c_int {
    // SAFETY: it was made above.
    let channel = unsafe { Box::from_raw(channel.cast::<OwnChannel>()) };
    if channel.raw.refcnt > 0 {
        broken("a completion channel is destroyed before its queue");
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_create_cq(
    context: *mut Context,
    entries: c_int,
    cq_context: *mut c_void,
    channel: *mut CompChannel,
    _: c_int,
) -> *mut Cq {
    let cq = Box::into_raw(Box::new(Cq {
        context,
        channel,
        cq_context,
        handle: 0,
        cqe: entries,
    }));
    let mut bell: *const Bell = std::ptr::null();
    if !channel.is_null() {
        // SAFETY: the caller's channel.
        unsafe {
            let channel = channel.cast::<OwnChannel>();
            (*channel).raw.refcnt += 1;
            (*channel).queue = cq;
            bell = &raw const (*channel).bell;
        }
    }
    state().queues.insert(
        cq as usize,
        Queue {
            entries: Default::default(),
            depth: entries as usize,
            armed: false,
            bell,
            taken: 0,
            pairs: 0,
        },
    );
    cq
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_destroy_cq(cq: *mut Cq) -> c_int {
    match state().queues.remove(&(cq as usize)) {
        None => broken("a completion queue that is none is destroyed"),
        Some(queue) if queue.pairs > 0 => {
            broken("a completion queue is destroyed before its queue pair")
        }
        Some(queue) if queue.taken > 0 => {
            broken("a completion queue is destroyed with events that were not acknowledged")
        }
        Some(_) => {}
    }
    // SAFETY: it was made above, and its channel outlives it.
    unsafe {
        let cq = Box::from_raw(cq);
        if !cq.channel.is_null() {
            (*cq.channel).refcnt -= 1;
        }
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_cq_event(
    channel: *mut CompChannel,
    cq: *mut *mut Cq,
    context: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        let channel = channel.cast::<OwnChannel>();
        if !(*channel).bell.hear() {
            return -1;
        }
        *cq = (*channel).queue;
        *context = null_mut();
        if let Some(queue) = state().queues.get_mut(&((*channel).queue as usize)) {
            queue.taken += 1;
        }
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_ack_cq_events(cq: *mut Cq, count: c_uint) {
    if let Some(queue) = state().queues.get_mut(&(cq as usize)) {
        match queue.taken.checked_sub(count) {
            Some(rest) => queue.taken = rest,
            None => broken("more events are acknowledged than were taken"),
        }
    }
}

pub(super) unsafe extern "C" fn req_notify_cq(cq: *mut Cq, _: c_int) -> c_int {
    match state().queues.get_mut(&(cq as usize)) {
        Some(queue) => {
            queue.armed = true;
            0
        }
        None => libc::EINVAL,
    }
}

pub(super) unsafe extern "C" fn poll_cq(cq: *mut Cq, room: c_int, out: *mut Wc) -> c_int {
    let mut state = state();
    let mut count = 0;
    while count < room {
        let Some(queue) = state.queues.get_mut(&(cq as usize)) else {
            return -1;
        };
        let Some(entry) = queue.entries.pop_front() else {
            break;
        };
        // SAFETY: the caller has room for so many.
        unsafe { *out.add(count as usize) = entry.wc };
        count += 1;
        if let Some(pair) = state.pairs.get_mut(&entry.pair) {
            pair.sends -= entry.sends;
            pair.receives -= entry.receives;
        }
    }
    count
}
