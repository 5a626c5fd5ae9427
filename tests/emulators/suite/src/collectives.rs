//! Collectives on device memory, whose results are looked at element by element.
#![allow(unsafe_code, reason = "calls take addresses of device memory")]

use unisono::plan::Op;
use unisono::{
    Communicator, Element, F8E4M3, F8E5M2, InitOptions, PluginRequest, RawCall, ReduceOp,
    Reduction, Sizes,
};
use unisono_tests::{Exit, Fold, Value, input, reduced};

use crate::Values;

const OPS: [ReduceOp; 5] = [
    ReduceOp::Sum,
    ReduceOp::Prod,
    ReduceOp::Min,
    ReduceOp::Max,
    ReduceOp::Avg,
];

/// A device of its own for each rank, of this plugin's.
pub fn own_device(plugin: &str) -> impl Fn(&mut InitOptions) + Copy + Send + Sync + '_ {
    move |options| {
        options.plugins = vec![PluginRequest::named(plugin)];
        options.device = Some((plugin.to_owned(), options.rank));
    }
}

/// Calls, and waits.
///
/// # Panics
/// If the call fails, or gives a wrong element; so for all here.
pub fn call<T: Element>(
    world: &Communicator,
    op: Op,
    (input, output): (&Values<T>, &Values<T>),
    count: usize,
    reduction: Option<Reduction>,
) {
    let call = RawCall {
        op,
        input: input.address(),
        output: output.address(),
        sizes: Sizes::Equal(count as u64),
        dtype: T::TYPE,
        reduction,
    };
    // SAFETY: device memory that lives until the call is complete, and nobody else uses.
    let done = unsafe { world.call_raw(call) };
    done.unwrap_or_else(|error| panic!("{op:?} of {count} {:?}: {error}", T::TYPE));
}

fn same<T: Value>(what: &str, found: &[T], expected: impl Fn(usize) -> T) {
    for (at, found) in found.iter().enumerate() {
        assert_eq!(
            *found,
            expected(at),
            "{what}: element {at} of {:?}",
            T::TYPE
        );
    }
}

/// An all_reduce of `len` elements in place.
pub fn all_reduce<T: Value>(world: &Communicator, len: usize, fold: impl Into<Fold>, salt: u64) {
    let fold = fold.into();
    let (rank, ranks) = (world.rank(), world.size());
    let data = Values::<T>::new(world.device(), len);
    let mine: Vec<T> = (0..len)
        .map(|i| input(ranks, rank, i, salt, Some(fold)))
        .collect();
    data.write(&mine);
    call(
        world,
        Op::AllReduce,
        (&data, &data),
        len,
        Some(fold.reduction::<T>(rank)),
    );
    same("all_reduce", &data.read(), |i| {
        reduced(ranks, i, salt, fold)
    });
}

/// An all_gather, a reduce_scatter and a broadcast of `len` elements a rank.
pub fn others<T: Value>(world: &Communicator, len: usize, salt: u64) {
    let (rank, ranks) = (world.rank(), world.size());
    let whole = len * ranks as usize;
    let (part, all) = (
        Values::<T>::new(world.device(), len),
        Values::<T>::new(world.device(), whole),
    );
    let mine: Vec<T> = (0..len)
        .map(|i| input(ranks, rank, i, salt, None))
        .collect();
    part.write(&mine);
    call(world, Op::AllGather, (&part, &all), whole, None);
    same("all_gather", &all.read(), |i| {
        input(ranks, (i / len) as u32, i % len, salt, None)
    });
    let op = ReduceOp::Sum;
    let mine: Vec<T> = (0..whole)
        .map(|i| input(ranks, rank, i, salt, Some(Fold::Op(op))))
        .collect();
    all.write(&mine);
    call(
        world,
        Op::ReduceScatter,
        (&all, &part),
        whole,
        Some(op.into()),
    );
    same("reduce_scatter", &part.read(), |i| {
        reduced(ranks, rank as usize * len + i, salt, Fold::Op(op))
    });
    let root = salt as u32 % ranks;
    let mine: Vec<T> = (0..len)
        .map(|i| input(ranks, rank, i, salt, None))
        .collect();
    part.write(&mine);
    call(world, Op::Broadcast { root }, (&part, &part), len, None);
    same("broadcast", &part.read(), |i| {
        input(ranks, root, i, salt, None)
    });
}

/// An all_reduce of every type and reduction.
pub fn every_type(world: &Communicator, len: usize) {
    for (salt, op) in (0..).zip(OPS) {
        all_reduce::<i8>(world, len, op, salt);
        all_reduce::<u8>(world, len, op, salt);
        all_reduce::<i16>(world, len, op, salt);
        all_reduce::<u16>(world, len, op, salt);
        all_reduce::<i32>(world, len, op, salt);
        all_reduce::<u32>(world, len, op, salt);
        all_reduce::<i64>(world, len, op, salt);
        all_reduce::<u64>(world, len, op, salt);
        all_reduce::<half::f16>(world, len, op, salt);
        all_reduce::<half::bf16>(world, len, op, salt);
        all_reduce::<f32>(world, len, op, salt);
        all_reduce::<f64>(world, len, op, salt);
    }
}

/// all_reduces of 8-bit floats, and of contributions that are scaled.
pub fn fp8_and_scaled(world: &Communicator, len: usize) {
    for (salt, op) in (0..).zip(OPS) {
        all_reduce::<F8E4M3>(world, len, op, salt);
        all_reduce::<F8E5M2>(world, len, op, salt);
    }
    all_reduce::<f32>(world, len, Fold::Scaled, 1);
    all_reduce::<half::f16>(world, len, Fold::Scaled, 2);
    all_reduce::<half::bf16>(world, len, Fold::Scaled, 3);
    all_reduce::<f64>(world, len, Fold::Scaled, 4);
    all_reduce::<i32>(world, len, Fold::Scaled, 5);
    all_reduce::<F8E4M3>(world, len, Fold::Scaled, 6);
}

/// A few of the usual ones, short and long, and a barrier.
pub fn a_few(world: &Communicator, salt: u64) {
    for len in [1, 7, 1000, 70_001] {
        all_reduce::<f32>(world, len, ReduceOp::Sum, salt);
        others::<i32>(world, len, salt);
    }
    world.barrier().expect("a barrier");
}

/// Every collective, of `len` elements a rank.
pub fn every_collective<T: Value>(world: &Communicator, len: usize, salt: u64) {
    let (rank, ranks) = (world.rank(), world.size());
    let whole = len * ranks as usize;
    let root = salt as u32 % ranks;
    let (part, all, out) = (
        Values::<T>::new(world.device(), len),
        Values::<T>::new(world.device(), whole),
        Values::<T>::new(world.device(), whole),
    );
    let plain = |rank, index| input::<T>(ranks, rank, index, salt, None);
    all_reduce::<T>(world, len, ReduceOp::Sum, salt);
    others::<T>(world, len, salt);
    let fold = Fold::Op(ReduceOp::Sum);
    let mine: Vec<T> = (0..len)
        .map(|i| input(ranks, rank, i, salt, Some(fold)))
        .collect();
    part.write(&mine);
    let sum = Some(ReduceOp::Sum.into());
    call(world, Op::Reduce { root }, (&part, &part), len, sum);
    if rank == root {
        same("reduce", &part.read(), |i| reduced(ranks, i, salt, fold));
    }
    let mine: Vec<T> = (0..len).map(|i| plain(rank, i)).collect();
    part.write(&mine);
    call(world, Op::Gather { root }, (&part, &all), whole, None);
    if rank == root {
        same("gather", &all.read(), |i| plain((i / len) as u32, i % len));
    }
    let mine: Vec<T> = (0..whole).map(|i| plain(rank, i)).collect();
    all.write(&mine);
    call(world, Op::Scatter { root }, (&all, &part), whole, None);
    let first = rank as usize * len;
    same("scatter", &part.read(), |i| plain(root, first + i));
    call(world, Op::AllToAll, (&all, &out), whole, None);
    same("all_to_all", &out.read(), |i| {
        plain((i / len) as u32, first + i % len)
    });
    world.barrier().expect("a barrier");
}

/// All ranks have said that they are done.
pub fn all_done(exits: &[Exit]) {
    assert!(exits.iter().all(|exit| exit.said("done")), "{exits:?}");
}
