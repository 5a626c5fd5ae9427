//! The exported collectives: each in a form that blocks, one that returns at once, and one that is
//! ordered on a stream.

#![allow(unsafe_code, reason = "exported functions that take pointers")]

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use unisono_collectives::{Op, Stream, Work};

use super::call::Call;
use super::comm::Comm;

/// The forms of a collective.
macro_rules! collective {
    ($run:ident, $start:ident, $on:ident, ($($name:ident: $ty:ty),*), $call:expr) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $run($($name: $ty,)* comm: *const Comm) -> i32 {
            // SAFETY: the caller keeps to `unisono.h`.
            unsafe { $call.run(comm) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $start($($name: $ty,)* comm: *const Comm, work: *mut *mut Work) -> i32 {
            // SAFETY: the caller keeps to `unisono.h`.
            unsafe { $call.start(comm, work) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $on($($name: $ty,)* comm: *const Comm, stream: *const Stream) -> i32 {
            // SAFETY: the caller keeps to `unisono.h`.
            unsafe { $call.on(comm, stream) }
        }
    };
}

collective!(
    unisono_all_reduce,
    unisono_all_reduce_start,
    unisono_all_reduce_on,
    (send: *const c_void, recv: *mut c_void, count: usize, datatype: i32, op: i32),
    Call::new(Op::AllReduce, send, recv, count, datatype).reducing(op)
);
collective!(
    unisono_reduce,
    unisono_reduce_start,
    unisono_reduce_on,
    (send: *const c_void, recv: *mut c_void, count: usize, datatype: i32, op: i32, root: u32),
    Call::new(Op::Reduce { root }, send, recv, count, datatype).reducing(op)
);
collective!(
    unisono_reduce_scatter,
    unisono_reduce_scatter_start,
    unisono_reduce_scatter_on,
    (send: *const c_void, recv: *mut c_void, count: usize, datatype: i32, op: i32),
    Call::new(Op::ReduceScatter, send, recv, count, datatype).reducing(op)
);
collective!(
    unisono_reduce_scatter_v,
    unisono_reduce_scatter_v_start,
    unisono_reduce_scatter_v_on,
    (send: *const c_void, recv: *mut c_void, counts: *const usize, datatype: i32, op: i32),
    Call::new(Op::ReduceScatter, send, recv, 0, datatype).blocks(counts).reducing(op)
);
collective!(
    unisono_all_gather,
    unisono_all_gather_start,
    unisono_all_gather_on,
    (send: *const c_void, recv: *mut c_void, count: usize, datatype: i32),
    Call::new(Op::AllGather, send, recv, count, datatype)
);
collective!(
    unisono_all_gather_v,
    unisono_all_gather_v_start,
    unisono_all_gather_v_on,
    (send: *const c_void, recv: *mut c_void, counts: *const usize, datatype: i32),
    Call::new(Op::AllGather, send, recv, 0, datatype).blocks(counts)
);
collective!(
    unisono_broadcast,
    unisono_broadcast_start,
    unisono_broadcast_on,
    (send: *const c_void, recv: *mut c_void, count: usize, datatype: i32, root: u32),
    Call::new(Op::Broadcast { root }, send, recv, count, datatype)
);
collective!(
    unisono_gather,
    unisono_gather_start,
    unisono_gather_on,
    (send: *const c_void, recv: *mut c_void, count: usize, datatype: i32, root: u32),
    Call::new(Op::Gather { root }, send, recv, count, datatype)
);
collective!(
    unisono_scatter,
    unisono_scatter_start,
    unisono_scatter_on,
    (send: *const c_void, recv: *mut c_void, count: usize, datatype: i32, root: u32),
    Call::new(Op::Scatter { root }, send, recv, count, datatype)
);
collective!(
    unisono_all_to_all,
    unisono_all_to_all_start,
    unisono_all_to_all_on,
    (send: *const c_void, recv: *mut c_void, count: usize, datatype: i32),
    Call::new(Op::AllToAll, send, recv, count, datatype)
);
collective!(
    unisono_all_to_all_v,
    unisono_all_to_all_v_start,
    unisono_all_to_all_v_on,
    (
        send: *const c_void,
        send_counts: *const usize,
        recv: *mut c_void,
        recv_counts: *const usize,
        datatype: i32
    ),
    Call::new(Op::AllToAll, send, recv, 0, datatype).pairs(send_counts, recv_counts)
);
collective!(
    unisono_barrier,
    unisono_barrier_start,
    unisono_barrier_on,
    (),
    Call::barrier()
);
collective!(
    unisono_send,
    unisono_send_start,
    unisono_send_on,
    (send: *const c_void, count: usize, datatype: i32, peer: u32),
    Call::new(Op::Send { to: peer }, send, null_mut(), count, datatype)
);
collective!(
    unisono_recv,
    unisono_recv_start,
    unisono_recv_on,
    (recv: *mut c_void, count: usize, datatype: i32, peer: u32),
    Call::new(Op::Recv { from: peer }, null(), recv, count, datatype)
);
