//! Collectives between ranks on emulated devices.

use unisono::{Communicator, PluginRequest, ReduceOp};
use unisono_emulated_tests::{
    Emulated, a_few, all_done, all_reduce, every_type, fp8_and_scaled, own_device,
};
use unisono_emulator::Place;
use unisono_tests::{Count, threads};

#[test]
fn every_type_and_reduction_between_two_processes() {
    let test = "every_type_and_reduction_between_two_processes";
    let Some(machine) = Emulated::new(test, "h100x8", |text| text) else {
        return;
    };
    let ranks = machine.job(test, 2).start(|rank| {
        let world = rank.init(own_device("cuda"));
        every_type(&world, 1000);
        fp8_and_scaled(&world, 1000);
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
        let world = rank.init(own_device("cuda"));
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
        threads(4, own_device("cuda"), |world| a_few(&world, 5));
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
            let world = rank.init(own_device("cuda"));
            a_few(&world, salt.unwrap_or(0));
            rank.say("done");
        });
        all_done(&ranks.finish());
    }
}

/// Each device maps for itself what another process made, though threads of one process import it.
#[test]
fn threads_of_two_processes() {
    const EACH: u32 = 2;
    let test = "threads_of_two_processes";
    let machines = [
        ("cuda", "h100x8", ""),
        ("cuda", "h100x8", "lacks: [virtual_memory]\n"),
        ("rocm", "mi300x8", ""),
        ("ascend", "ascend910bx8", ""),
    ];
    for (plugin, name, lacks) in machines {
        let Some(machine) = Emulated::new(test, name, |text| text + lacks) else {
            return;
        };
        let job = machine.job(test, 2).env("TEST_PLUGIN", plugin);
        let ranks = job.start(|rank| {
            let plugin = std::env::var("TEST_PLUGIN").expect("a plugin");
            std::thread::scope(|scope| {
                for thread in 0..EACH {
                    let mut options = rank.options();
                    options.rank = rank.rank * EACH + thread;
                    options.size = rank.size * EACH;
                    own_device(&plugin)(&mut options);
                    // Ascend's runtime takes each key once a process: the second device of one meets its
                    // peers in the memory of this plugin.
                    options.plugins.push(PluginRequest::named("host"));
                    scope.spawn(move || {
                        let world = Communicator::init(options).expect("init");
                        a_few(&world, 9);
                    });
                }
            });
            rank.say("done");
        });
        all_done(&ranks.finish());
    }
}
