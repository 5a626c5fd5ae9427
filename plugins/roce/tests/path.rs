//! What the parameters say of a path, as the queue pairs are told it.

mod common;

use std::collections::BTreeSet;

use common::*;
use unisono_plugin::Status;

/// What the queue pairs of a device were told since, without their numbers.
fn told(devices: &Devices, device: &str) -> BTreeSet<String> {
    let file = devices.path(device).join("told");
    let text = std::fs::read_to_string(&file).expect("a device that was used");
    std::fs::remove_file(&file).expect("it is there");
    let words = |line: &str| -> Vec<String> {
        let words = line.split(' ').filter(|word| !word.starts_with("qp="));
        words.map(str::to_owned).collect()
    };
    text.lines().map(|line| words(line).join(" ")).collect()
}

/// Both lines that every queue pair of a device must have been told.
fn both(path: &str, patience: &str) -> BTreeSet<String> {
    [format!("path {path}"), format!("patience {patience}")].into()
}

#[test]
fn a_path_is_set_up_as_it_is_wanted() {
    let devices = Devices::ethernet(2);
    for (device, host) in [("fake0", 1), ("fake1", 2)] {
        // Another network's address, in a row of its own, and one that is not of RoCE v2.
        let gid = |net: u32| format!("0000:0000:0000:0000:0000:ffff:0a{net:02x}:{host:04x}");
        for (index, kind) in [(1, "IB/RoCE v1"), (3, "RoCE v2")] {
            devices.set(device, &format!("ports/1/gids/{index}"), &gid(7 + index));
            let types = format!("ports/1/gid_attrs/types/{index}");
            devices.set(device, &types, kind);
        }
    }
    what_nobody_sets(&devices);
    all_that_can_be_set(&devices);
    each_end_has_its_own(&devices);
    an_address_that_is_not_there();
}

/// One end has the one device, the other the other.
fn ends(first: &[(&str, Value)], second: &[(&str, Value)]) -> [End; 2] {
    let first = [&[("devices", "fake0".into())], first].concat();
    let second = [&[("devices", "fake1".into())], second].concat();
    pair_of([&first, &second], 1 << 16)
}

fn what_nobody_sets(devices: &Devices) {
    let _ends = ends(&[], &[]);
    let patience = "timeout=11 retries=6 receiver_retries=6";
    let path =
        |to| format!("mtu=5 sl=0 traffic_class=0 hop_limit=64 gid_index=0 to=::ffff:10.7.0.{to}");
    assert_eq!(told(devices, "fake0"), both(&path(2), patience));
    assert_eq!(told(devices, "fake1"), both(&path(1), patience));
}

fn all_that_can_be_set(devices: &Devices) {
    let set: &[(&str, Value)] = &[
        ("mtu", 1024.into()),
        ("service_level", 5.into()),
        ("traffic_class", 106.into()),
        ("hop_limit", 17.into()),
        ("gid_index", 3.into()),
        ("ack_timeout", ms(67).into()),
        ("retries", 2.into()),
    ];
    let _ends = ends(set, set);
    let patience = "timeout=14 retries=2 receiver_retries=6";
    let path = |to| {
        format!("mtu=3 sl=5 traffic_class=106 hop_limit=17 gid_index=3 to=::ffff:10.10.0.{to}")
    };
    assert_eq!(told(devices, "fake0"), both(&path(2), patience));
    assert_eq!(told(devices, "fake1"), both(&path(1), patience));
}

/// The smaller packet is both ends'; all else is each end's own affair. Who may choose an address takes
/// the one that is nearest to the peer's.
fn each_end_has_its_own(devices: &Devices) {
    let _ends = ends(
        &[("mtu", 2048.into()), ("traffic_class", 8.into())],
        &[("mtu", 512.into()), ("gid_index", 3.into())],
    );
    let patience = "timeout=11 retries=6 receiver_retries=6";
    let first = "mtu=2 sl=0 traffic_class=8 hop_limit=64 gid_index=3 to=::ffff:10.10.0.2";
    let second = "mtu=2 sl=0 traffic_class=0 hop_limit=64 gid_index=3 to=::ffff:10.10.0.1";
    assert_eq!(told(devices, "fake0"), both(first, patience));
    assert_eq!(told(devices, "fake1"), both(second, patience));
}

fn an_address_that_is_not_there() {
    let error = instance(&[("gid_index", 9.into())]).expect_err("no such entry");
    assert_eq!(error.status(), Status::NoDriver, "{error}");
    assert!(error.message().contains("no entry 9"), "{error}");
}
