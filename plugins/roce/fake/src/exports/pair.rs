//! Queue pairs, and the states that they are taken through.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::time::{SystemTime, UNIX_EPOCH};

use unisono_plugin_roce::sys::abi::{Pd, QPT_RC, Qp, QpAttr, QpInitAttr, qp_mask, qp_state};

use super::{DEPTH_MAX, OwnContext, OwnPd, fail};
use crate::broken;
use crate::device::{self, Folder};
use crate::engine::{Engine, flush};
use crate::packet::{Socket, address};
use crate::state::{Pair, Requester, Responder, State, state};

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
