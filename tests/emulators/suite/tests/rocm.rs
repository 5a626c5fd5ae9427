//! The rocm plugin on emulated boxes: collectives, links, and machines without a device.
#![allow(unsafe_code, reason = "calls the runtime")]

use std::collections::BTreeSet;

use libloading::Library;
use unisono::ReduceOp;
use unisono_emulated_tests::{
    Emulated, a_few, all_done, all_reduce, answer, every_collective, every_type, fp8_and_scaled,
    own_device,
};
use unisono_emulator::Place;
use unisono_tests::threads;

#[test]
fn every_type_between_two_processes() {
    let test = "every_type_between_two_processes";
    let Some(machine) = Emulated::new(test, "mi300x8", |text| text) else {
        return;
    };
    let ranks = machine.job(test, 2).start(|rank| {
        let world = rank.init(own_device("rocm"));
        every_type(&world, 1000);
        fp8_and_scaled(&world, 1000);
        rank.say("done");
    });
    all_done(&ranks.finish());
}

#[test]
fn every_collective_on_eight_mi300x() {
    let test = "every_collective_on_eight_mi300x";
    let Some(machine) = Emulated::new(test, "mi300x8", |text| text) else {
        return;
    };
    let ranks = machine.job(test, 8).start(|rank| {
        let world = rank.init(own_device("rocm"));
        for len in [1, 1000, 20_011] {
            every_collective::<f32>(&world, len, len as u64);
        }
        rank.say("done");
    });
    all_done(&ranks.finish());
}

/// Devices that have no link of their own between them, a runtime of ROCm 5, ranks as threads.
#[test]
fn four_threads_on_an_mi250() {
    let test = "four_threads_on_an_mi250";
    let late = |text: String| text + "delays: {one_in: 8, longest_us: 100}\n";
    let Some(machine) = Emulated::new(test, "mi250x4", late) else {
        return;
    };
    let ranks = machine.job(test, 1).start(|rank| {
        threads(4, own_device("rocm"), |world| a_few(&world, 5));
        rank.say("done");
    });
    all_done(&ranks.finish());
}

/// Between devices bytes go over their own links: the host's memory sees only what the test itself
/// fills and reads.
#[test]
fn no_byte_passes_the_hosts_memory_between_mi300x() {
    const LEN: usize = 1 << 18;
    let test = "no_byte_passes_the_hosts_memory_between_mi300x";
    let Some(machine) = Emulated::new(test, "mi300x8", |text| text) else {
        return;
    };
    let ranks = machine.job(test, 4).start(|rank| {
        let world = rank.init(own_device("rocm"));
        all_reduce::<f32>(&world, LEN, ReduceOp::Sum, 1);
        rank.say("done");
    });
    all_done(&ranks.finish());
    let (traffic, bytes) = (machine.traffic(), (LEN * 4) as u64);
    // Beside the values, each has written a few proofs of 64 bytes, and read some.
    let once = bytes..bytes + (64 << 10);
    for device in (0..4).map(Place::Device) {
        let host = [
            traffic.data(Place::Host, device),
            traffic.data(device, Place::Host),
        ];
        assert!(
            host.iter().all(|bytes| once.contains(bytes)),
            "{host:?} of {device:?}"
        );
        let others = (0..4).map(Place::Device).filter(|other| *other != device);
        let out: u64 = others.map(|other| traffic.data(device, other)).sum();
        assert!(out >= bytes * 3 / 2, "{out} bytes leave {device:?}");
    }
}

/// What a device's links to others are: kind and rate, each once.
fn reported(machine: &Emulated, test: &str) -> Vec<String> {
    let ranks = machine.job(test, 1).start(move |rank| {
        let world = rank.init(own_device("rocm"));
        let own = world.device().info().id;
        let links = world.device().instance().link_report().expect("links");
        let others = links
            .iter()
            .filter(|link| link.from == own && link.to != own);
        for link in others {
            rank.say(&format!("{} {}", link.kind, link.bytes_per_second));
        }
    });
    let exits = ranks.finish();
    let lines: Vec<String> = exits.into_iter().flat_map(|exit| exit.lines).collect();
    assert_eq!(lines.len(), 7, "{lines:?}");
    let kinds: BTreeSet<_> = lines.into_iter().collect();
    kinds.into_iter().collect()
}

#[test]
fn eight_mi300x_are_a_mesh() {
    let test = "eight_mi300x_are_a_mesh";
    let Some(machine) = Emulated::new(test, "mi300x8", |text| text) else {
        return;
    };
    assert_eq!(reported(&machine, test), ["xgmi 64000000000"]);
}

/// One dead link: its pair goes another way, of two hops.
#[test]
fn a_dead_xgmi_link_is_a_longer_way() {
    let test = "a_dead_xgmi_link_is_a_longer_way";
    let dead = |text: String| text + "  dead: [[0, 6]]\n";
    let Some(machine) = Emulated::new(test, "mi300x8", dead) else {
        return;
    };
    assert_eq!(
        reported(&machine, test),
        ["xgmi 25000000000", "xgmi 64000000000"]
    );
}

/// Four links on the board, two and one between boards, two hops to the rest.
#[test]
fn an_mi250_knows_its_board() {
    let test = "an_mi250_knows_its_board";
    let Some(machine) = Emulated::new(test, "mi250x4", |text| text) else {
        return;
    };
    let expected = [
        "xgmi 100000000000",
        "xgmi 200000000000",
        "xgmi 25000000000",
        "xgmi 50000000000",
    ];
    assert_eq!(reported(&machine, test), expected);
}

/// The runtime knows what the links are, but no rates.
#[test]
fn without_rocm_smi_the_runtime_is_asked() {
    let test = "without_rocm_smi_the_runtime_is_asked";
    let lacking = |text: String| text + "lacks: [management]\n";
    let Some(machine) = Emulated::new(test, "mi300x8", lacking) else {
        return;
    };
    assert_eq!(reported(&machine, test), ["xgmi 50000000000"]);
}

/// Newer releases leave rocm-smi out. The libraries' own versions are of three kinds.
#[test]
fn without_rocm_smi_amd_smi_is_asked() {
    let test = "without_rocm_smi_amd_smi_is_asked";
    let release = |number: &'static str| move |text: String| text.replace("driver: 6", number);
    for (number, expected) in [
        ("driver: 6", "xgmi 64000000000"),
        ("driver: 7", "xgmi 64000000000"),
        // A release whose numbers nobody knows is not believed: the runtime knows no rates.
        ("driver: 8", "xgmi 50000000000"),
    ] {
        let Some(machine) = Emulated::new(test, "mi300x8", release(number)) else {
            return;
        };
        let machine = machine.only(&["hip", "amdsmi"]);
        assert_eq!(reported(&machine, test), [expected], "{number}");
    }
}

/// Its weights, its rates of several lanes, its devices in an order of their own.
#[test]
fn amd_smi_knows_a_board() {
    let test = "amd_smi_knows_a_board";
    let Some(machine) = Emulated::new(test, "mi250x4", |text| text) else {
        return;
    };
    let expected = [
        "xgmi 100000000000",
        "xgmi 200000000000",
        "xgmi 25000000000",
        "xgmi 50000000000",
    ];
    let machine = machine.only(&["hip", "amdsmi"]);
    assert_eq!(reported(&machine, test), expected);
}

/// A library that does not say how devices are joined is no reason to take them for unjoined.
#[test]
fn what_rocm_smi_does_not_say_the_runtime_is_asked() {
    let test = "what_rocm_smi_does_not_say_the_runtime_is_asked";
    let lacking = |text: String| text + "lacks: [link_types]\n";
    let Some(machine) = Emulated::new(test, "mi300x8", lacking) else {
        return;
    };
    assert_eq!(reported(&machine, test), ["xgmi 50000000000"]);
}

/// A program looks for its own errors behind its own calls: what the plugin tries in vain is none of them.
#[test]
fn the_last_error_is_the_programs_own() {
    let test = "the_last_error_is_the_programs_own";
    // A runtime of ROCm 5 refuses what is tried first.
    let Some(machine) = Emulated::new(test, "mi250x4", |text| text) else {
        return;
    };
    let ranks = machine.job(test, 2).start(|rank| {
        let world = rank.init(own_device("rocm"));
        a_few(&world, 5);
        let here = 0_u64;
        let found = world.device().query(&raw const here as u64);
        assert!(found.expect("an answer").is_none());
        let hip = Hip::open();
        assert_eq!(hip.last_error(), 0);
        // Its own it keeps.
        assert_eq!(hip.set_device(1000), 101);
        a_few(&world, 6);
        assert_eq!(hip.last_error(), 101);
        rank.say("done");
    });
    all_done(&ranks.finish());
}

/// The runtime, as a program has it.
struct Hip(Library);

impl Hip {
    fn open() -> Self {
        // SAFETY: the plugin has opened it already.
        Self(unsafe { Library::new("libamdhip64.so.6") }.expect("the runtime"))
    }

    /// The thread's last error, which is then forgotten.
    fn last_error(&self) -> u32 {
        // SAFETY: it takes nothing and gives a code, by HIP's manual.
        unsafe {
            let function = self
                .0
                .get::<unsafe extern "C" fn() -> u32>(b"hipGetLastError\0");
            function.expect("hipGetLastError")()
        }
    }

    fn set_device(&self, device: i32) -> u32 {
        // SAFETY: it takes a number and gives a code, by HIP's manual.
        unsafe {
            let function = self
                .0
                .get::<unsafe extern "C" fn(i32) -> u32>(b"hipSetDevice\0");
            function.expect("hipSetDevice")(device)
        }
    }
}

#[test]
fn a_box_of_others_has_no_device() {
    let test = "a_box_of_others_has_no_device";
    let Some(machine) = Emulated::new(test, "h100x8", |text| text) else {
        return;
    };
    let said = answer("rocm", &machine.environment(), None);
    assert!(
        said.contains("finds no device: hipInit: hipErrorNoDevice"),
        "{said}"
    );
}

/// The real runtime, from the system's packages, on a machine without a device.
#[test]
fn the_real_runtime_finds_no_device() {
    let test = "the_real_runtime_finds_no_device";
    if std::path::Path::new("/dev/kfd").exists() {
        unisono_tests::skip(
            test,
            "this machine has a device: silicon answers for itself",
        );
        return;
    }
    let Some(machine) = Emulated::new(test, "mi300x8", |text| text) else {
        return;
    };
    let said = answer("rocm", &machine.environment(), Some("LD_LIBRARY_PATH"));
    assert!(!said.contains("signal"), "the process lives: {said}");
    if said.contains("no driver: none of libamdhip64.so") {
        unisono_tests::skip(test, "the package libamdhip64-5 is not installed");
        return;
    }
    assert!(said.contains("libamdhip64.so"), "{said}");
    assert!(
        said.contains("finds no device: hipInit: hipError"),
        "{said}"
    );
}
