//! Collectives between ranks on emulated devices.
#![allow(unsafe_code, reason = "calls take addresses of device memory")]

use unisono::plan::Op;
use unisono::{
    Communicator, Element, InitOptions, PluginRequest, RawCall, ReduceOp, Reduction, Sizes,
};
use unisono_emulated_tests::{Emulated, Values};
use unisono_emulator::Place;
use unisono_tests::{Count, Fold, Value, input, reduced, threads};

const OPS: [ReduceOp; 5] = [
    ReduceOp::Sum,
    ReduceOp::Prod,
    ReduceOp::Min,
    ReduceOp::Max,
    ReduceOp::Avg,
];

/// A device of its own for each rank.
fn own_device(options: &mut InitOptions) {
    options.plugins = vec![PluginRequest::named("cuda")];
    options.device = Some(("cuda".to_owned(), options.rank));
}

fn call<T: Element>(
    world: &Communicator,
    op: Op,
    (input, output): (&Values<T>, &Values<T>),
    count: usize,
    how: Option<ReduceOp>,
) {
    let call = RawCall {
        op,
        input: input.address(),
        output: output.address(),
        sizes: Sizes::Equal(count as u64),
        dtype: T::TYPE,
        reduction: how.map(Reduction::from),
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

fn all_reduce<T: Value>(world: &Communicator, len: usize, op: ReduceOp, salt: u64) {
    let (rank, ranks) = (world.rank(), world.size());
    let data = Values::<T>::new(world.device(), len);
    let mine: Vec<T> = (0..len)
        .map(|i| input(ranks, rank, i, salt, Some(Fold::Op(op))))
        .collect();
    data.write(&mine);
    call(world, Op::AllReduce, (&data, &data), len, Some(op));
    same("all_reduce", &data.read(), |i| {
        reduced(ranks, i, salt, Fold::Op(op))
    });
}

/// Of `len` elements a rank.
fn others<T: Value>(world: &Communicator, len: usize, salt: u64) {
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
    call(world, Op::ReduceScatter, (&all, &part), whole, Some(op));
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

fn every_type(world: &Communicator, len: usize) {
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

/// A few of everything, short and long.
fn a_few(world: &Communicator, salt: u64) {
    for len in [1, 7, 1000, 70_001] {
        all_reduce::<f32>(world, len, ReduceOp::Sum, salt);
        others::<i32>(world, len, salt);
    }
    world.barrier().expect("a barrier");
}

fn all_done(exits: &[unisono_tests::Exit]) {
    assert!(exits.iter().all(|exit| exit.said("done")), "{exits:?}");
}

#[test]
fn every_type_and_reduction_between_two_processes() {
    let test = "every_type_and_reduction_between_two_processes";
    let Some(machine) = Emulated::new(test, "h100x8", |text| text) else {
        return;
    };
    let ranks = machine.job(test, 2).start(|rank| {
        let world = rank.init(own_device);
        every_type(&world, 1000);
        a_few(&world, 3);
        rank.say("done");
    });
    all_done(&ranks.finish());
}

/// Between devices bytes go over their own links: the host's memory sees only what the test itself
/// fills and reads.
#[test]
fn no_byte_passes_the_hosts_memory() {
    const LEN: usize = 1 << 18;
    let test = "no_byte_passes_the_hosts_memory";
    let Some(machine) = Emulated::new(test, "h100x8", |text| text) else {
        return;
    };
    let ranks = machine.job(test, 4).start(|rank| {
        let world = rank.init(own_device);
        all_reduce::<f32>(&world, LEN, ReduceOp::Sum, 1);
        rank.say("done");
    });
    all_done(&ranks.finish());
    let (traffic, bytes) = (machine.traffic(), (LEN * 4) as u64);
    let host = |device| {
        let device = Place::Device(device);
        (
            traffic.data(Place::Host, device),
            traffic.data(device, Place::Host),
        )
    };
    // Beside the values, each has written a few proofs of 64 bytes, and read some.
    let slack = 64 << 10;
    for device in 0..4 {
        let (down, up) = host(device);
        assert!(
            (bytes..bytes + slack).contains(&down),
            "{down} bytes to device {device}"
        );
        assert!(
            (bytes..bytes + slack).contains(&up),
            "{up} bytes from device {device}"
        );
        let out: u64 = (0..4)
            .filter(|other| *other != device)
            .map(|other| traffic.data(Place::Device(device), Place::Device(other)))
            .sum();
        assert!(out >= bytes * 3 / 2, "{out} bytes leave device {device}");
    }
}

#[test]
fn four_threads_of_one_process() {
    let test = "four_threads_of_one_process";
    let Some(machine) = Emulated::new(test, "h100x8", |text| text) else {
        return;
    };
    let ranks = machine.job(test, 1).start(|rank| {
        threads(4, own_device, |world| a_few(&world, 5));
        rank.say("done");
    });
    all_done(&ranks.finish());
}

/// Other orders and delays each time, also of a driver that knows only the older ways.
#[test]
fn three_processes_under_many_seeds() {
    let test = "three_processes_under_many_seeds";
    let count = Count::new(4, 100);
    for seed in 0..count.get() {
        let adjust = move |text: String| {
            let text = text + "delays: {one_in: 8, longest_us: 100}\n";
            if seed % 2 == 0 {
                text
            } else {
                text + "lacks: [virtual_memory, pools, host_pointer]\n"
            }
        };
        let Some(machine) = Emulated::new(test, "h100x8", adjust) else {
            return;
        };
        let machine = machine.seeded(seed);
        let ranks = machine.job(test, 3).env("TEST_SALT", seed).start(|rank| {
            let salt = std::env::var("TEST_SALT")
                .ok()
                .and_then(|text| text.parse().ok());
            let world = rank.init(own_device);
            a_few(&world, salt.unwrap_or(0));
            rank.say("done");
        });
        all_done(&ranks.finish());
    }
}
