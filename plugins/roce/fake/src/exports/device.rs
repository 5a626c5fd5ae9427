//! A list of devices, and a device that is open.

use std::ffi::{c_char, c_int};
use std::ptr::null_mut;

use unisono_plugin_roce::sys::abi::{
    AsyncEvent, Context, ContextOps, Device, DeviceAttr, PortAttr, link_layer,
};

use super::completion::{poll_cq, req_notify_cq};
use super::post::{post_recv, post_send};
use super::{DEPTH_MAX, OwnContext, OwnDevice};
use crate::broken;
use crate::device::{self, Folder};
use crate::queue::Bell;

/// # Safety
/// As in verbs.h; so for all of these.
#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_device_list(count: *mut c_int) -> *mut *mut Device {
    let all = device::all();
    let mut list: Vec<*mut Device> = all
        .iter()
        .map(|(name, folder)| {
            // SAFETY: a plain C struct, valid when zero.
            let mut raw: Device = unsafe { std::mem::zeroed() };
            raw.node_type = 1;
            copy_text(&mut raw.name, name);
            copy_text(&mut raw.dev_name, name);
            copy_text(&mut raw.ibdev_path, &folder.0.to_string_lossy());
            Box::into_raw(Box::new(OwnDevice {
                raw,
                folder: folder.clone(),
            }))
            .cast()
        })
        .collect();
    // SAFETY: the caller's.
    unsafe {
        if !count.is_null() {
            *count = list.len() as c_int;
        }
    }
    list.push(null_mut());
    Box::into_raw(list.into_boxed_slice()).cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_free_device_list(list: *mut *mut Device) {
    // SAFETY: the list was made above, with a NULL at its end; devices that are open are copies.
    unsafe {
        let mut count = 0;
        while !(*list.add(count)).is_null() {
            drop(Box::from_raw((*list.add(count)).cast::<OwnDevice>()));
            count += 1;
        }
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(
            list,
            count + 1,
        )));
    }
}

fn copy_text(to: &mut [c_char], text: &str) {
    for (to, from) in to.iter_mut().zip(text.bytes()) {
        *to = from as c_char;
    }
    if let Some(last) = to.last_mut() {
        *last = 0;
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_open_device(device: *mut Device) -> *mut Context {
    // SAFETY: a device of the list's; a plain C struct is valid when zero.
    let (folder, mut raw): (Folder, Context) = unsafe {
        (
            (*device.cast::<OwnDevice>()).folder.clone(),
            std::mem::zeroed(),
        )
    };
    let news = Bell::new();
    raw.async_fd = news.fd();
    raw.cmd_fd = -1;
    raw.num_comp_vectors = 1;
    raw.ops = ContextOps {
        poll_cq: Some(poll_cq),
        req_notify_cq: Some(req_notify_cq),
        post_send: Some(post_send),
        post_recv: Some(post_recv),
        ..raw.ops
    };
    Box::into_raw(Box::new(OwnContext {
        raw,
        folder,
        engine: None,
        news,
        uses: 0,
    }))
    .cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_close_device(context: *mut Context) -> c_int {
    // SAFETY: it was made above.
    let context = unsafe { Box::from_raw(context.cast::<OwnContext>()) };
    if context.uses > 0 {
        broken("a context is closed while something of it is in use");
    }
    drop(context);
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_device(_: *mut Context, attr: *mut DeviceAttr) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        (*attr).max_qp_wr = DEPTH_MAX as c_int;
        (*attr).max_sge = 1;
        (*attr).max_cqe = 1 << 20;
        (*attr).phys_port_cnt = 1;
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_port(context: *mut Context, port: u8, attr: *mut PortAttr) -> c_int {
    if port != 1 {
        return libc::EINVAL;
    }
    // SAFETY: the caller's.
    unsafe {
        let folder = &(*context.cast::<OwnContext>()).folder;
        (*attr).state = if folder.is_active() { 4 } else { 1 };
        (*attr).max_mtu = 5;
        (*attr).active_mtu = 5;
        (*attr).max_msg_sz = 1 << 30;
        (*attr).lid = folder.lid();
        (*attr).link_layer = if folder.is_infiniband() {
            link_layer::INFINIBAND
        } else {
            link_layer::ETHERNET
        };
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_async_event(context: *mut Context, _: *mut AsyncEvent) -> c_int {
    // SAFETY: the caller's.
    unsafe { (*context.cast::<OwnContext>()).news.hear() };
    -1
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_ack_async_event(_: *mut AsyncEvent) {}
