//! Work that is posted to a queue pair.

use std::ffi::c_int;

use unisono_plugin_roce::sys::abi::{Qp, RecvWr, SendWr, qp_state, send_flag, wr};

use super::OwnContext;
use crate::engine::{Weather, flush, request};
use crate::state::{Pair, Receive, Source, State, Work, print, state};

pub(super) unsafe extern "C" fn post_recv(
    qp: *mut Qp,
    first: *mut RecvWr,
    bad: *mut *mut RecvWr,
) -> c_int {
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

pub(super) unsafe extern "C" fn post_send(
    qp: *mut Qp,
    first: *mut SendWr,
    bad: *mut *mut SendWr,
) -> c_int {
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
