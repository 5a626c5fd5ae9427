//! A rank that waits for another one's device sleeps: the library's threads do, and the plugin's, but for a
//! look now and then. What the emulated devices take themselves is none of theirs.
#![allow(unsafe_code, reason = "calls take addresses of device memory")]

use std::time::Duration;

use unisono::plan::Op;
use unisono::{Communicator, DataType, RawCall, ReduceOp, Sizes};
use unisono_emulated_tests::{Emulated, Share, Values, own_device};
use unisono_tests::{Job, watchdog};

const LEN: usize = 1000;
const LATE: Duration = Duration::from_secs(2);
/// Of a core: a thread that looks 250 times a second takes less than one, or what a virtual machine that is
/// busy makes of that. One that polls takes all of it.
const MOST: f64 = 10.0;
/// Tells a rank's process whose devices it has.
const PLUGIN: &str = "TEST_PLUGIN";

/// Boxes, and the plugins for them. The last one's streams wait by the help of a thread.
const MACHINES: [(&str, &str); 4] = [
    ("h100x8", "cuda"),
    ("mi300x8", "rocm"),
    ("ascend910bx8", "ascend"),
    ("ascend910ax8", "ascend"),
];

fn all_reduce(world: &Communicator, data: &Values<f32>) {
    let call = RawCall {
        op: Op::AllReduce,
        input: data.address(),
        output: data.address(),
        sizes: Sizes::Equal(LEN as u64),
        dtype: DataType::F32,
        reduction: Some(ReduceOp::Sum.into()),
    };
    // SAFETY: device memory that lives until the call is complete, and nobody else uses.
    unsafe { world.call_raw(call) }.expect("all_reduce");
}

/// Rank 1 comes late; what rank 0 takes meanwhile.
fn waits(job: Job) -> f64 {
    let ranks = job.start(|rank| {
        let plugin = std::env::var(PLUGIN).expect("a plugin");
        let world = rank.init(own_device(&plugin));
        let data = Values::<f32>::new(world.device(), LEN);
        all_reduce(&world, &data);
        world.barrier().expect("a barrier");
        if rank.rank == 1 {
            std::thread::sleep(LATE);
        }
        let share = Share::begin();
        all_reduce(&world, &data);
        rank.say(&format!("percent {:.3}", share.percent()));
        world.finalize().expect("finalize");
    });
    let ranks = ranks.succeed();
    ranks[0].answer("percent").parse().expect("a number")
}

#[test]
fn a_rank_that_waits_sleeps() {
    let test = "a_rank_that_waits_sleeps";
    let _limit = watchdog(test, Duration::from_secs(120));
    for (name, plugin) in MACHINES {
        let Some(machine) = Emulated::new(test, name, |text| text) else {
            return;
        };
        let percent = waits(machine.job(test, 2).env(PLUGIN, plugin));
        println!("soak: waiting {LATE:?} for a device of {name} takes {percent:.2} % of a core");
        assert!(percent < MOST, "{name}: {percent} %");
    }
}
