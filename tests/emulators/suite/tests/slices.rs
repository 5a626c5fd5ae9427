//! Slices of ordinary memory, buffers and windows on devices whose memory the CPU does not see.

use std::time::Duration;

use unisono::plan::OpKind;
use unisono::{Communicator, InitOptions, PluginRequest, ReduceOp, TuneOptions, group};
use unisono_emulated_tests::Emulated;

/// Elements of more than one staged piece, and no whole number of them.
const LONG: usize = 700_001;

fn own_device(options: &mut InitOptions) {
    options.plugins = vec![PluginRequest::named("cuda")];
    options.device = Some(("cuda".to_owned(), options.rank));
}

fn given(rank: u32, at: usize) -> i32 {
    (rank as i32 + 1) * (at as i32 % 1000)
}

fn mine(world: &Communicator, len: usize) -> Vec<i32> {
    (0..len).map(|at| given(world.rank(), at)).collect()
}

fn sum(ranks: u32, at: usize) -> i32 {
    (0..ranks).map(|rank| given(rank, at)).sum()
}

fn long_slices(world: &Communicator) {
    let send = mine(world, LONG);
    let mut recv = vec![0; LONG];
    world
        .all_reduce(&send, &mut recv, ReduceOp::Sum)
        .expect("apart");
    assert_eq!(send, mine(world, LONG), "what is sent is only read");
    let mut data = send;
    world
        .all_reduce_in_place(&mut data, ReduceOp::Sum)
        .expect("in place");
    assert_eq!(data, recv);
    assert!((0..LONG).all(|at| recv[at] == sum(world.size(), at)));
    // Nothing at all.
    world
        .all_reduce_in_place::<i32>(&mut [], ReduceOp::Sum)
        .expect("nothing");
    world.all_gather::<i32>(&[], &mut []).expect("nothing");
}

/// Blocks of one slice that calls in place leave alone stay as they were.
fn blocks_in_place(world: &Communicator) {
    let (rank, ranks) = (world.rank() as usize, world.size());
    let len = 1000;
    let mut data = mine(world, len * ranks as usize);
    world
        .reduce_scatter_in_place(&mut data, ReduceOp::Sum)
        .expect("reduce_scatter");
    let own = rank * len..(rank + 1) * len;
    assert!(own.clone().all(|at| data[at] == sum(ranks, at)));
    world.all_gather_in_place(&mut data).expect("all_gather");
    assert!((0..data.len()).all(|at| data[at] == sum(ranks, at)));
}

fn messages_in_a_group(world: &Communicator) {
    let (rank, ranks) = (world.rank(), world.size());
    let send = mine(world, LONG);
    let (mut from, mut sums) = (vec![0; LONG], mine(world, 10));
    let before = (rank + ranks - 1) % ranks;
    group(|group| {
        group.on(world).send(&send, (rank + 1) % ranks)?;
        group.on(world).recv(&mut from, before)?;
        group
            .on(world)
            .all_reduce_in_place(&mut sums, ReduceOp::Sum)
    })
    .expect("a group");
    assert!((0..LONG).all(|at| from[at] == given(before, at)));
    assert!((0..10).all(|at| sums[at] == sum(ranks, at)));
    // What can't be made starts nothing, and harms nothing.
    let error = group(|group| {
        group.on(world).send(&send, (rank + 1) % ranks)?;
        group.on(world).recv(&mut from, ranks)
    });
    assert!(error.expect_err("no such rank").is_harmless());
}

fn buffers(world: &Communicator) {
    let mut buffer = world.buffer::<i32>(LONG).expect("a buffer");
    let error = buffer.write(&[1, 2]).expect_err("too few");
    assert!(error.is_harmless(), "{error}");
    buffer.write(&mine(world, LONG)).expect("written");
    let pending = world
        .start_all_reduce(buffer, ReduceOp::Sum)
        .expect("started");
    let buffer = pending.wait().expect("done");
    let mut found = vec![0; LONG];
    buffer.read(&mut found).expect("read");
    assert!((0..LONG).all(|at| found[at] == sum(world.size(), at)));
}

fn windows(world: &Communicator) {
    let mut window = world.alloc::<i32>(LONG).expect("a window");
    let mut found = vec![1; LONG];
    window.read(&mut found).expect("read");
    assert!(
        found.iter().all(|value| *value == 0),
        "a window begins as zeros"
    );
    window.write(&mine(world, LONG)).expect("written");
    window.read(&mut found).expect("read");
    assert_eq!(found, mine(world, LONG));
    // Nobody lets go of a window that others may still read.
    world.barrier().expect("a barrier");
}

#[test]
fn what_the_cpu_has_reaches_devices_and_comes_back() {
    let test = "what_the_cpu_has_reaches_devices_and_comes_back";
    let delays = |text: String| text + "delays: {one_in: 8, longest_us: 100}\n";
    let Some(machine) = Emulated::new(test, "h100x8", delays) else {
        return;
    };
    let ranks = machine.job(test, 3).start(|rank| {
        let world = rank.init(own_device);
        long_slices(&world);
        blocks_in_place(&world);
        messages_in_a_group(&world);
        buffers(&world);
        windows(&world);
        world.finalize().expect("finalize");
        rank.say("done");
    });
    for exit in ranks.finish() {
        assert!(exit.said("done"), "{exit:?}");
    }
}

/// What is tuned are calls on the device's own memory, in windows and not.
#[test]
fn tuning_runs_on_devices() {
    let test = "tuning_runs_on_devices";
    let Some(machine) = Emulated::new(test, "h100x8", |text| text) else {
        return;
    };
    let ranks = machine.job(test, 2).start(|rank| {
        let world = rank.init(own_device);
        let options = TuneOptions {
            ops: vec![OpKind::AllReduce, OpKind::Broadcast],
            min_bytes: 64,
            max_bytes: 64 << 10,
            factor: 1024,
            figure: Duration::from_millis(1),
            rounds: 1,
            windows: true,
        };
        let calibration = world.tune(&options, &mut |_| {}).expect("measured");
        assert_eq!(calibration.fabrics.len(), 1);
        assert!(!calibration.links.is_empty());
        world.finalize().expect("finalize");
        rank.say("done");
    });
    for exit in ranks.finish() {
        assert!(exit.said("done"), "{exit:?}");
    }
}
