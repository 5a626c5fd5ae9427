//! The functions of the C library.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::time::{SystemTime, UNIX_EPOCH};

use unisono_plugin_roce::sys::abi::{
    AsyncEvent, CompChannel, Context, ContextOps, Cq, Device, DeviceAttr, Mr, Pd, PortAttr, QPT_RC,
    Qp, QpAttr, QpInitAttr, RecvWr, SendWr, Wc, link_layer, qp_mask, qp_state, send_flag, wr,
};

use crate::broken;
use crate::device::{self, Folder};
use crate::engine::{Engine, Weather, flush, request};
use crate::packet::{Socket, address};
use crate::queue::{Bell, Queue};
use crate::state::{
    Mapped, Pair, Receive, Region, Requester, Responder, Source, State, Work, print, state,
};

/// Pieces of work that a queue pair takes at most.
const DEPTH_MAX: u32 = 8192;

#[repr(C)]
struct OwnDevice {
    raw: Device,
    folder: Folder,
}

#[repr(C)]
struct OwnContext {
    raw: Context,
    folder: Folder,
    engine: Option<Engine>,
    news: Bell,
    uses: u32,
}

#[repr(C)]
struct OwnPd {
    raw: Pd,
    uses: u32,
}

#[repr(C)]
struct OwnChannel {
    raw: CompChannel,
    bell: Bell,
    queue: *mut Cq,
}

fn fail(code: c_int) {
    // SAFETY: the thread's own errno.
    unsafe { *libc::__errno_location() = code };
}

#[unsafe(no_mangle)]
extern "C" fn ibv_fork_init() -> c_int {
    0
}

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

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_alloc_pd(context: *mut Context) -> *mut Pd {
    // SAFETY: the caller's.
    unsafe { (*context.cast::<OwnContext>()).uses += 1 };
    Box::into_raw(Box::new(OwnPd {
        raw: Pd { context, handle: 0 },
        uses: 0,
    }))
    .cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_dealloc_pd(pd: *mut Pd) -> c_int {
    // SAFETY: it was made above.
    let pd = unsafe { Box::from_raw(pd.cast::<OwnPd>()) };
    let _state = state();
    if pd.uses > 0 {
        broken("a protection domain is freed while something of it is in use");
    }
    // SAFETY: a context outlives its domains.
    unsafe { (*pd.raw.context.cast::<OwnContext>()).uses -= 1 };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_reg_mr(
    pd: *mut Pd,
    at: *mut c_void,
    bytes: usize,
    access: c_int,
) -> *mut Mr {
    if access & 2 != 0 && access & 1 == 0 {
        fail(libc::EINVAL);
        return null_mut();
    }
    // Pages that are not there cannot be pinned.
    let page = 4096;
    let from = at as usize / page * page;
    let length = at as usize + bytes - from;
    let mut seen = vec![0_u8; length.div_ceil(page)];
    // SAFETY: the kernel looks at the range and writes a byte for each page.
    let there = unsafe { libc::mincore(from as *mut c_void, length, seen.as_mut_ptr()) } == 0;
    // Nor can those of a device, of which the CPU has addresses alone.
    if !there
        || bytes == 0
        || ![0, bytes - 1]
            .iter()
            .all(|byte| is_readable(at as usize + byte))
    {
        fail(libc::EFAULT);
        return null_mut();
    }
    region(pd, at as u64, bytes as u64, access, None)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_reg_dmabuf_mr(
    pd: *mut Pd,
    offset: u64,
    bytes: usize,
    iova: u64,
    fd: c_int,
    access: c_int,
) -> *mut Mr {
    // SAFETY: the caller's.
    let folder = unsafe { &(*(*pd).context.cast::<OwnContext>()).folder };
    if !folder.takes_dmabufs() {
        fail(libc::EOPNOTSUPP);
        return null_mut();
    }
    let Some(mapped) = Mapped::new(fd, offset, bytes as u64) else {
        fail(libc::EINVAL);
        return null_mut();
    };
    region(pd, iova, bytes as u64, access, Some(mapped))
}

/// Whether the CPU can reach a byte.
fn is_readable(at: usize) -> bool {
    let mut byte = 0_u8;
    let to = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    let from = libc::iovec {
        iov_base: at as *mut c_void,
        iov_len: 1,
    };
    // SAFETY: the kernel reads the byte if it can, and writes it to this frame.
    unsafe { libc::process_vm_readv(libc::getpid(), &raw const to, 1, &raw const from, 1, 0) == 1 }
}

fn region(pd: *mut Pd, at: u64, bytes: u64, access: c_int, mapped: Option<Mapped>) -> *mut Mr {
    let mut state = state();
    state.last_key = state.last_key.wrapping_add(1);
    let key = state.last_key;
    state.regions.insert(
        key,
        Region {
            address: at,
            bytes,
            access,
            domain: pd as usize,
            mapped,
        },
    );
    // SAFETY: the caller's domain, under the lock.
    unsafe { (*pd.cast::<OwnPd>()).uses += 1 };
    Box::into_raw(Box::new(Mr {
        // SAFETY: as above.
        context: unsafe { (*pd).context },
        pd,
        addr: at as *mut c_void,
        length: bytes as usize,
        handle: key,
        lkey: key,
        rkey: key,
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_dereg_mr(mr: *mut Mr) -> c_int {
    // SAFETY: it was made above.
    let mr = unsafe { Box::from_raw(mr) };
    let mut state = state();
    state.regions.remove(&mr.lkey);
    // SAFETY: a domain outlives its regions; under the lock.
    unsafe { (*mr.pd.cast::<OwnPd>()).uses -= 1 };
    0
}

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

unsafe extern "C" fn req_notify_cq(cq: *mut Cq, _: c_int) -> c_int {
    match state().queues.get_mut(&(cq as usize)) {
        Some(queue) => {
            queue.armed = true;
            0
        }
        None => libc::EINVAL,
    }
}

unsafe extern "C" fn poll_cq(cq: *mut Cq, room: c_int, out: *mut Wc) -> c_int {
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

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_create_qp(pd: *mut Pd, init: *mut QpInitAttr) -> *mut Qp {
    // SAFETY: the caller's.
    let (context, init) = unsafe { ((*pd).context, &mut *init) };
    // SAFETY: as above.
    let own = unsafe { &mut *context.cast::<OwnContext>() };
    let cap = &mut init.cap;
    let too_much = cap.max_send_wr > DEPTH_MAX
        || cap.max_recv_wr > DEPTH_MAX
        || cap.max_inline_data > own.folder.inline_max()
        || cap.max_send_sge > 1;
    if too_much || init.qp_type != QPT_RC || init.send_cq.is_null() || init.send_cq != init.recv_cq
    {
        fail(libc::EINVAL);
        return null_mut();
    }
    cap.max_inline_data = own.folder.inline_max();
    let Some((number, socket)) = bind(&own.folder) else {
        fail(libc::ENOMEM);
        return null_mut();
    };
    let mut state = state();
    if let Some(queue) = state.queues.get_mut(&(init.send_cq as usize)) {
        queue.pairs += 1;
    }
    state.pairs.insert(
        number,
        Pair {
            context: context as usize,
            domain: pd as usize,
            queue: init.send_cq as usize,
            folder: own.folder.clone(),
            socket,
            state: qp_state::RESET,
            access: 0,
            sends_max: cap.max_send_wr,
            receives_max: cap.max_recv_wr,
            inline_max: cap.max_inline_data,
            sends: 0,
            receives: 0,
            unsignalled: 0,
            peer: None,
            timeout: 0,
            retries_max: 0,
            receiver_retries_max: 0,
            requester: Requester::default(),
            responder: Responder::default(),
        },
    );
    // SAFETY: under the lock.
    unsafe { (*pd.cast::<OwnPd>()).uses += 1 };
    drop(state);
    own.engine
        .get_or_insert_with(|| Engine::start(context as usize))
        .wake();
    Box::into_raw(Box::new(Qp {
        context,
        qp_context: init.qp_context,
        pd,
        send_cq: init.send_cq,
        recv_cq: init.recv_cq,
        srq: null_mut(),
        handle: number,
        qp_num: number,
        state: qp_state::RESET,
        qp_type: QPT_RC,
    }))
}

/// A number that no other process's queue pair has on this device.
fn bind(folder: &Folder) -> Option<(u32, Socket)> {
    let seed = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(1, |time| time.subsec_nanos());
    let mut number = seed ^ std::process::id().wrapping_mul(0x9e37_79b9);
    for _ in 0..100 {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let short = (number >> 8).max(2);
        if let Ok(socket) = Socket::bind(&folder.0, short) {
            return Some((short, socket));
        }
    }
    None
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_destroy_qp(qp: *mut Qp) -> c_int {
    // SAFETY: it was made above.
    let qp = unsafe { Box::from_raw(qp) };
    let mut state = state();
    let Some(pair) = state.pairs.remove(&qp.qp_num) else {
        broken("a queue pair that is none is destroyed");
    };
    if let Some(queue) = state.queues.get_mut(&pair.queue) {
        queue.pairs -= 1;
        queue.entries.retain(|entry| entry.pair != qp.qp_num);
    }
    // SAFETY: a domain outlives its pairs; under the lock.
    unsafe { (*qp.pd.cast::<OwnPd>()).uses -= 1 };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_modify_qp(qp: *mut Qp, attr: *mut QpAttr, mask: c_int) -> c_int {
    // SAFETY: the caller's.
    let (number, attr) = unsafe { ((*qp).qp_num, &*attr) };
    if attr.qp_state == qp_state::RTR && look_in_vain(number) {
        return libc::ETIMEDOUT;
    }
    let mut state = state();
    let Some(mut pair) = state.pairs.remove(&number) else {
        return libc::EINVAL;
    };
    let code = modify(&mut pair, number, attr, mask, &mut state);
    state.pairs.insert(number, pair);
    code
}

/// On a path that is cut a driver looks for its neighbour for a while, if the device says how long.
fn look_in_vain(number: u32) -> bool {
    let folder = state().pairs.get(&number).map(|pair| pair.folder.clone());
    let Some(patience) = folder
        .filter(device::Folder::is_cut)
        .and_then(|cut| cut.patience())
    else {
        return false;
    };
    std::thread::sleep(patience);
    true
}

fn modify(pair: &mut Pair, number: u32, attr: &QpAttr, mask: c_int, state: &mut State) -> c_int {
    let wanted = match (pair.state, attr.qp_state) {
        (_, qp_state::ERR) => qp_mask::STATE,
        (qp_state::RESET, qp_state::INIT) => {
            qp_mask::STATE | qp_mask::PKEY_INDEX | qp_mask::PORT | qp_mask::ACCESS_FLAGS
        }
        (qp_state::INIT, qp_state::RTR) => {
            qp_mask::STATE
                | qp_mask::AV
                | qp_mask::PATH_MTU
                | qp_mask::DEST_QPN
                | qp_mask::RQ_PSN
                | qp_mask::MAX_DEST_RD_ATOMIC
                | qp_mask::MIN_RNR_TIMER
        }
        (qp_state::RTR, qp_state::RTS) => {
            qp_mask::STATE
                | qp_mask::TIMEOUT
                | qp_mask::RETRY_CNT
                | qp_mask::RNR_RETRY
                | qp_mask::SQ_PSN
                | qp_mask::MAX_QP_RD_ATOMIC
        }
        _ => return libc::EINVAL,
    };
    if mask != wanted {
        return libc::EINVAL;
    }
    match attr.qp_state {
        qp_state::ERR => {
            flush(pair, number, state);
            return 0;
        }
        qp_state::INIT => {
            if attr.port_num != 1 {
                return libc::EINVAL;
            }
            pair.access = attr.qp_access_flags as i32;
        }
        qp_state::RTR => {
            let address_vector = &attr.ah_attr;
            let global = address_vector.is_global != 0;
            if global == pair.folder.is_infiniband() {
                return libc::EINVAL; // always on Ethernet, never needed here on InfiniBand
            }
            let grh = &address_vector.grh;
            if global && pair.folder.gid(grh.sgid_index).is_none() {
                return libc::EINVAL;
            }
            let gid = global.then_some(&grh.dgid.0);
            let Some(peer) = device::find(gid, address_vector.dlid) else {
                return libc::ENETUNREACH;
            };
            let Ok(to) = address(&peer.0, attr.dest_qp_num) else {
                return libc::EINVAL;
            };
            pair.peer = Some((to, peer));
            pair.responder.expected = attr.rq_psn;
            pair.folder.note(&format!(
                "path qp={number} mtu={} sl={} traffic_class={} hop_limit={} gid_index={} to={}",
                attr.path_mtu,
                address_vector.sl,
                grh.traffic_class,
                grh.hop_limit,
                grh.sgid_index,
                std::net::Ipv6Addr::from(grh.dgid.0),
            ));
        }
        _ => {
            if attr.retry_cnt >= 7 || attr.rnr_retry >= 7 || attr.timeout == 0 {
                broken("a queue pair would retry for ever");
            }
            pair.timeout = attr.timeout;
            pair.retries_max = attr.retry_cnt;
            pair.receiver_retries_max = attr.rnr_retry;
            pair.requester.next = attr.sq_psn;
            pair.requester.oldest = attr.sq_psn;
            pair.folder.note(&format!(
                "patience qp={number} timeout={} retries={} receiver_retries={}",
                attr.timeout, attr.retry_cnt, attr.rnr_retry,
            ));
        }
    }
    pair.state = attr.qp_state;
    0
}

unsafe extern "C" fn post_recv(qp: *mut Qp, first: *mut RecvWr, bad: *mut *mut RecvWr) -> c_int {
    // SAFETY: the caller's.
    let number = unsafe { (*qp).qp_num };
    let mut state = state();
    let Some(mut pair) = state.pairs.remove(&number) else {
        return libc::EINVAL;
    };
    let mut at = first;
    let mut code = 0;
    while !at.is_null() {
        // SAFETY: the caller's list.
        let request = unsafe { &*at };
        if pair.state == qp_state::RESET {
            code = libc::EINVAL;
        } else if pair.receives >= pair.receives_max {
            code = libc::ENOMEM;
        }
        if code != 0 {
            // SAFETY: the caller's.
            unsafe { *bad = at };
            break;
        }
        // SAFETY: as above.
        let piece = (request.num_sge > 0).then(|| unsafe { *request.sg_list });
        let piece = piece.unwrap_or_default();
        pair.receives += 1;
        pair.responder.receives.push_back(Receive {
            id: request.wr_id,
            address: piece.addr,
            bytes: piece.length,
            key: piece.lkey,
        });
        if pair.state == qp_state::ERR {
            flush(&mut pair, number, &mut state);
        }
        at = request.next;
    }
    state.pairs.insert(number, pair);
    code
}

unsafe extern "C" fn post_send(qp: *mut Qp, first: *mut SendWr, bad: *mut *mut SendWr) -> c_int {
    // SAFETY: the caller's.
    let (number, context) = unsafe { ((*qp).qp_num, (*qp).context) };
    let mut state = state();
    let Some(mut pair) = state.pairs.remove(&number) else {
        return libc::EINVAL;
    };
    let mut at = first;
    let mut code = 0;
    while !at.is_null() {
        // SAFETY: the caller's list.
        let work = unsafe { &*at };
        match take(&pair, work, &state) {
            Ok(taken) => {
                pair.sends += 1;
                pair.requester.work.push_back(taken);
            }
            Err(error) => {
                code = error;
                // SAFETY: the caller's.
                unsafe { *bad = at };
                break;
            }
        }
        at = work.next;
    }
    if pair.state == qp_state::ERR {
        flush(&mut pair, number, &mut state);
    } else {
        request(&mut pair, number, &mut state, &mut Weather::default());
    }
    state.pairs.insert(number, pair);
    drop(state);
    // SAFETY: a context outlives its pairs.
    if let Some(engine) = unsafe { &(*context.cast::<OwnContext>()).engine } {
        engine.wake();
    }
    code
}

/// Checks a piece of work and takes what is inline.
fn take(pair: &Pair, work: &SendWr, state: &State) -> Result<Work, c_int> {
    if pair.state != qp_state::RTS && pair.state != qp_state::ERR {
        return Err(libc::EINVAL);
    }
    if pair.sends >= pair.sends_max {
        return Err(libc::ENOMEM);
    }
    if ![wr::RDMA_WRITE, wr::RDMA_WRITE_WITH_IMM, wr::SEND].contains(&work.opcode) {
        return Err(libc::EINVAL);
    }
    // SAFETY: the caller's list.
    let piece = (work.num_sge > 0).then(|| unsafe { *work.sg_list });
    let piece = piece.unwrap_or_default();
    let source = if piece.length == 0 {
        Source::Inline(Vec::new())
    } else if work.send_flags & send_flag::INLINE != 0 {
        if piece.length > pair.inline_max {
            return Err(libc::EINVAL);
        }
        let from = piece.addr as *const u8;
        // SAFETY: inline bytes are readable now.
        Source::Inline(unsafe { std::slice::from_raw_parts(from, piece.length as usize) }.to_vec())
    } else {
        Source::Memory {
            address: piece.addr,
            bytes: piece.length,
            key: piece.lkey,
            // Of what is not registered nothing is sent.
            print: state
                .find(
                    piece.lkey,
                    pair.domain,
                    piece.addr,
                    u64::from(piece.length),
                    0,
                )
                .map_or(0, |source| print(source, piece.length)),
        }
    };
    Ok(Work {
        id: work.wr_id,
        opcode: work.opcode,
        signalled: work.send_flags & send_flag::SIGNALED != 0,
        immediate: (work.opcode == wr::RDMA_WRITE_WITH_IMM).then_some(work.imm_data),
        remote: work.remote_addr,
        key: work.rkey,
        source,
        first: 0,
        end: 0,
    })
}

#[unsafe(no_mangle)]
extern "C" fn ibv_wc_status_str(status: c_int) -> *const c_char {
    let text = match status {
        0 => c"success",
        4 => c"local protection error",
        5 => c"Work Request Flushed Error",
        9 => c"remote invalid request error",
        10 => c"remote access error",
        12 => c"transport retry counter exceeded",
        13 => c"RNR retry counter exceeded",
        _ => c"unknown",
    };
    text.as_ptr()
}
