//! Where there is no RDMA the plugin says what is missing, and where there is some it says which it
//! does not use and why.

mod common;

use common::*;
use unisono_plugin::{Instance, Status};

#[test]
fn what_is_missing_is_said() {
    let error = instance(&[("library", "libibverbs-nobody-has.so.1".into())]).unwrap_err();
    assert_eq!(error.status(), Status::NoDriver);
    let start = "no RDMA: libibverbs-nobody-has.so.1 was not found; install rdma-core";
    assert!(error.message().starts_with(start), "{error}");

    let devices = Devices::none();
    let error = instance(&[]).unwrap_err();
    assert_eq!(error.status(), Status::NoDriver);
    assert!(error.message().starts_with("no RDMA device"), "{error}");

    devices.add(devices::Facts {
        name: "fake0",
        layer: "Ethernet",
        rate: "100 Gb/sec (4X EDR)",
        host: 1,
    });
    devices.add(devices::Facts {
        name: "fake1",
        layer: "Ethernet",
        rate: "400 Gb/sec (4X NDR)",
        host: 2,
    });
    devices.set("fake0", "ports/1/state", "1: DOWN");
    for (set, why) in [
        (vec![("devices", "fake0".into())], "fake0: its link is down"),
        (
            vec![("devices", "!fake1".into())],
            "fake1: not in `devices`",
        ),
        (
            vec![("address_family", "ipv6".into())],
            "fake1: it has no RoCE v2 address",
        ),
        (
            vec![("gid_index", 3.into())],
            "fake1: its address table has no entry 3",
        ),
    ] {
        let error = instance(&set).unwrap_err();
        assert_eq!(error.status(), Status::NoDriver, "{error}");
        assert!(error.message().contains(why), "{error}");
    }
    for (name, value) in [
        ("devices", Value::from("a b")),
        ("address_family", "ipx".into()),
        ("mtu", 1500.into()),
    ] {
        let error = instance(&[(name, value)]).unwrap_err();
        assert_eq!(error.status(), Status::Invalid, "{error}");
        assert!(error.message().contains(name), "{error}");
    }
    // Rails in the order of their speed, or as they are listed.
    devices.set("fake0", "ports/1/state", "4: ACTIVE");
    let rates = |set: &[(&str, Value)]| -> Vec<(u32, u64)> {
        let links = instance(set).unwrap().links().unwrap();
        links
            .iter()
            .map(|link| (link.rail, link.bytes_per_second))
            .collect()
    };
    assert_eq!(rates(&[]), [(1, 50_000_000_000), (2, 12_500_000_000)]);
    let listed = rates(&[("devices", "fake0,fake1".into())]);
    assert_eq!(listed, [(1, 12_500_000_000), (2, 50_000_000_000)]);
    assert_eq!(rates(&[("devices", "fake0".into())]), [(0, 12_500_000_000)]);
}
