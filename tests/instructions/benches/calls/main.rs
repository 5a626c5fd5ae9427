//! The fixed cost of a call, in instructions: `cargo xtask instructions`.
//!
//! Counted are the instructions of the calling thread, from the call to its return, once the communicator is
//! warm: valgrind's callgrind counts while the benchmark function runs, for each thread by itself. What other
//! threads do meanwhile is not in it, nor what the kernel does.
//!
//! Ranks are threads. How long a rank waits is no matter of the call, so nobody may wait in what is counted:
//! the other ranks always come first, and keep polling until the counted one comes. What this one needs
//! of them is there by then. So all calls can be counted, also those that no rank can leave alone, and each run
//! gives the same count.
//!
//! A count holds for a compiler, a C library and a CPU: the kernels of the host plugin and `memcpy` are chosen by
//! what the CPU can, and valgrind's CPU has AVX2 at most, never AVX-512. It says nothing of cache misses, which
//! is where the time of a short message goes: `unisono bench` measures that.
//!
//! A rank gives credits back once for four messages that it got. That call is counted, as it takes most: the
//! three others take up to some 100 instructions less. Over TCP two runs differed by 428 of 4,971
//! in one of the calls: every sixteenth poll of a link looks at what is not awaited, too, and takes more.
#![allow(
    missing_docs,
    reason = "the macros write modules and functions of their own"
)]

mod call;
mod turn;

use gungraun::prelude::*;
use gungraun::{Callgrind, EventKind};
use unisono_instructions::budget;

use call::*;
use turn::Turn;

#[library_benchmark(setup = Turn::come, teardown = Turn::end)]
#[bench::send_4(args = (SEND, 4), config = within(SEND, 4))]
#[bench::send_1024(args = (SEND, 1024), config = within(SEND, 1024))]
#[bench::recv_4(args = (RECV, 4), config = within(RECV, 4))]
#[bench::recv_1024(args = (RECV, 1024), config = within(RECV, 1024))]
#[bench::broadcast_root_4(args = (BROADCAST_ROOT, 4), config = within(BROADCAST_ROOT, 4))]
#[bench::broadcast_root_1024(args = (BROADCAST_ROOT, 1024), config = within(BROADCAST_ROOT, 1024))]
#[bench::broadcast_leaf_4(args = (BROADCAST_LEAF, 4), config = within(BROADCAST_LEAF, 4))]
#[bench::broadcast_leaf_1024(args = (BROADCAST_LEAF, 1024), config = within(BROADCAST_LEAF, 1024))]
#[bench::reduce_root_4(args = (REDUCE_ROOT, 4), config = within(REDUCE_ROOT, 4))]
#[bench::reduce_root_1024(args = (REDUCE_ROOT, 1024), config = within(REDUCE_ROOT, 1024))]
#[bench::reduce_leaf_4(args = (REDUCE_LEAF, 4), config = within(REDUCE_LEAF, 4))]
#[bench::reduce_leaf_1024(args = (REDUCE_LEAF, 1024), config = within(REDUCE_LEAF, 1024))]
#[bench::gather_root_4(args = (GATHER_ROOT, 4), config = within(GATHER_ROOT, 4))]
#[bench::gather_leaf_4(args = (GATHER_LEAF, 4), config = within(GATHER_LEAF, 4))]
#[bench::scatter_root_4(args = (SCATTER_ROOT, 4), config = within(SCATTER_ROOT, 4))]
#[bench::scatter_leaf_4(args = (SCATTER_LEAF, 4), config = within(SCATTER_LEAF, 4))]
#[bench::all_reduce_4(args = (ALL_REDUCE, 4), config = within(ALL_REDUCE, 4))]
#[bench::all_reduce_1024(args = (ALL_REDUCE, 1024), config = within(ALL_REDUCE, 1024))]
#[bench::all_gather_4(args = (ALL_GATHER, 4), config = within(ALL_GATHER, 4))]
#[bench::all_gather_1024(args = (ALL_GATHER, 1024), config = within(ALL_GATHER, 1024))]
#[bench::reduce_scatter_4(args = (REDUCE_SCATTER, 4), config = within(REDUCE_SCATTER, 4))]
#[bench::reduce_scatter_1024(args = (REDUCE_SCATTER, 1024), config = within(REDUCE_SCATTER, 1024))]
#[bench::barrier_0(args = (BARRIER, 0), config = within(BARRIER, 0))]
#[bench::send_tcp_64(args = (SEND_TCP, 64), config = within(SEND_TCP, 64))]
#[bench::recv_tcp_64(args = (RECV_TCP, 64), config = within(RECV_TCP, 64))]
#[bench::all_reduce_tcp_64(args = (ALL_REDUCE_TCP, 64), config = within(ALL_REDUCE_TCP, 64))]
#[bench::barrier_tcp_0(args = (BARRIER_TCP, 0), config = within(BARRIER_TCP, 0))]
#[bench::all_reduce_of_four_4(args = (ALL_REDUCE_OF_FOUR, 4), config = within(ALL_REDUCE_OF_FOUR, 4))]
#[bench::all_gather_of_four_4(args = (ALL_GATHER_OF_FOUR, 4), config = within(ALL_GATHER_OF_FOUR, 4))]
#[bench::reduce_scatter_of_four_4(args = (REDUCE_SCATTER_OF_FOUR, 4), config = within(REDUCE_SCATTER_OF_FOUR, 4))]
#[bench::all_to_all_of_four_4(args = (ALL_TO_ALL_OF_FOUR, 4), config = within(ALL_TO_ALL_OF_FOUR, 4))]
#[bench::barrier_of_four_0(args = (BARRIER_OF_FOUR, 0), config = within(BARRIER_OF_FOUR, 0))]
#[bench::all_reduce_alone_4(args = (ALL_REDUCE_ALONE, 4), config = within(ALL_REDUCE_ALONE, 4))]
fn counted(mut turn: Box<Turn>) -> Box<Turn> {
    turn.make();
    turn
}

/// The benchmark fails where the call takes more than its budget.
fn within(call: Call, bytes: usize) -> LibraryBenchmarkConfig {
    let budget = budget(call.name, bytes).unwrap_or_else(|| {
        panic!(
            "{} of {bytes} bytes has no budget in tests/instructions/src/lib.rs",
            call.name
        )
    });
    // The peer polls all the time: a fair lock lets the counted rank come to its turn.
    let mut callgrind = Callgrind::with_args(["--cache-sim=no", "--fair-sched=try"]);
    callgrind.hard_limits([(EventKind::Ir, budget.instructions)]);
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(callgrind);
    config
}

library_benchmark_group!(name = calls, benchmarks = [counted]);
main!(library_benchmark_groups = calls);
