//! Collectives between ranks on emulated devices.
#![allow(unsafe_code, reason = "calls take addresses of device memory")]

use unisono::plan::Op;
use unisono::{Communicator, Element, PluginRequest, ReduceOp};
use unisono_emulated_tests::{Emulated, Values};
use unisono_emulator::Place;
use unisono_tests::{Value, input, reduced};

fn all_reduce<T: Value + Element>(world: &Communicator, len: usize, op: ReduceOp, salt: u64) {
    let (rank, ranks) = (world.rank(), world.size());
    let data = Values::<T>::new(world.device(), len);
    let mine: Vec<T> = (0..len).map(|i| input(rank, i, salt, Some(op))).collect();
    data.write(&mine);
    // SAFETY: device memory that lives until the call is complete, and nobody else uses.
    let done = unsafe {
        let (at, count) = (data.address(), len as u64);
        world.call_raw(Op::AllReduce, at, at, count, T::TYPE, Some(op))
    };
    done.unwrap_or_else(|error| panic!("all_reduce of {len} {:?} {op:?}: {error}", T::TYPE));
    let expected: Vec<T> = (0..len).map(|i| reduced(ranks, i, salt, op)).collect();
    let found = data.read();
    let wrong = found.iter().zip(&expected).position(|(a, b)| a != b);
    assert_eq!(
        wrong,
        None,
        "{len} {:?} {op:?}: {:?}",
        T::TYPE,
        wrong.map(|at| (found[at], expected[at]))
    );
}

fn every_type(world: &Communicator, len: usize) {
    for (salt, op) in (0..).zip([
        ReduceOp::Sum,
        ReduceOp::Prod,
        ReduceOp::Min,
        ReduceOp::Max,
        ReduceOp::Avg,
    ]) {
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

#[test]
fn two_processes_on_eight_h100() {
    let test = "two_processes_on_eight_h100";
    let Some(machine) = Emulated::new(test, "h100x8", |text| text) else {
        return;
    };
    let ranks = machine.job(test, 2).start(|rank| {
        let world = rank.init(|options| {
            options.plugins = vec![PluginRequest::named("cuda")];
            options.device = Some(("cuda".to_owned(), options.rank));
        });
        every_type(&world, 1000);
        for len in [1, 7, 100_000, 1 << 20] {
            all_reduce::<f32>(&world, len, ReduceOp::Sum, 3);
        }
        world.barrier().expect("a barrier");
        rank.say("done");
    });
    let ranks = ranks.finish();
    assert!(ranks.iter().all(|rank| rank.said("done")), "{ranks:?}");
    let traffic = machine.traffic();
    let (a, b) = (Place::Device(0), Place::Device(1));
    assert!(
        traffic.data(a, b) > 4 << 20,
        "bytes go from device to device"
    );
    assert!(traffic.data(b, a) > 4 << 20, "and back");
}
