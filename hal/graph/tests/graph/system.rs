//! What the system says of its machine, on machines made of files.

use std::fs;
use std::path::Path;

use unisono_graph::NicClass;
use unisono_graph::system::{NicReport, NumaReport, SystemReport, discover, discover_at};

fn write(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }
}

fn cpus(root: &Path, cpus: &[(u32, u32, u32)]) {
    for (cpu, package, core) in cpus {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}/topology");
        write(
            root,
            &[
                (
                    &format!("{folder}/physical_package_id"),
                    &package.to_string(),
                ),
                (&format!("{folder}/core_id"), &core.to_string()),
            ],
        );
    }
}

#[test]
fn two_sockets_with_two_threads_a_core() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    cpus(
        root,
        &[
            (0, 0, 0),
            (1, 0, 1),
            (2, 1, 0),
            (3, 1, 1),
            (4, 0, 0),
            (5, 0, 1),
            (6, 1, 0),
            (7, 1, 1),
        ],
    );
    write(
        root,
        &[
            ("proc/meminfo", "MemTotal:       1000 kB\nMemFree: 5 kB"),
            ("sys/devices/system/node/possible", "0-1"),
            ("sys/devices/system/node/node0/cpulist", "0-1,4-5"),
            (
                "sys/devices/system/node/node0/meminfo",
                "Node 0 MemTotal:  600 kB\nNode 0 MemFree: 5 kB",
            ),
            ("sys/devices/system/node/node10/cpulist", ""),
            ("sys/devices/system/node/node2/cpulist", "2-3,6-7"),
            (
                "sys/devices/system/node/node2/meminfo",
                "Node 2 MemTotal:  400 kB",
            ),
        ],
    );
    let numa = |index, socket, cores, threads, kib: u64| NumaReport {
        index,
        socket,
        cores,
        threads,
        memory_bytes: kib * 1024,
    };
    let found = discover_at(root);
    assert_eq!(found.memory_bytes, 1_024_000);
    assert_eq!(
        found.numa,
        [
            numa(0, Some(0), 2, 4, 600),
            numa(2, Some(1), 2, 4, 400),
            numa(10, None, 0, 0, 0)
        ]
    );
}

#[test]
fn a_machine_that_shows_no_numa_is_one() {
    let root = tempfile::tempdir().unwrap();
    write(
        root.path(),
        &[
            ("proc/meminfo", "MemTotal: 2 kB"),
            ("sys/devices/system/cpu/online", "0-2"),
        ],
    );
    let whole = NumaReport {
        index: 0,
        socket: None,
        cores: 3,
        threads: 3,
        memory_bytes: 2048,
    };
    assert_eq!(discover_at(root.path()).numa, [whole]);
}

#[test]
fn network_interfaces_of_all_kinds() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let net = |name: &str, files: &[(&str, &str)]| {
        for (file, text) in files {
            write(root, &[(&format!("sys/class/net/{name}/{file}"), text)]);
        }
    };
    net(
        "lo",
        &[("type", "772"), ("operstate", "unknown"), ("carrier", "1")],
    );
    net(
        "eth1",
        &[
            ("type", "1"),
            ("operstate", "up"),
            ("speed", "100000"),
            ("device/numa_node", "1"),
        ],
    );
    net(
        "eth0",
        &[
            ("type", "1"),
            ("operstate", "down"),
            ("speed", "-1"),
            ("device/numa_node", "-1"),
        ],
    );
    net(
        "veth9",
        &[("type", "1"), ("operstate", "up"), ("speed", "4294967295")],
    );
    net("bonding_masters", &[("x", "not an interface")]);
    let nic = |name: &str, class, bytes_per_second, numa, up| NicReport {
        name: name.into(),
        class,
        bytes_per_second,
        numa,
        up,
    };
    let expected = [
        nic("eth0", NicClass::Physical, None, None, false),
        nic(
            "eth1",
            NicClass::Physical,
            Some(12_500_000_000),
            Some(1),
            true,
        ),
        nic("lo", NicClass::Loopback, None, None, true),
        nic("veth9", NicClass::Virtual, None, None, true),
    ];
    assert_eq!(discover_at(root).nics, expected);
}

#[test]
fn rubbish_and_nothing_are_unknown() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(discover_at(root.path()), SystemReport::default());
    write(
        root.path(),
        &[
            ("proc/meminfo", "MemTotal: 99999999999999999999 kB"),
            ("sys/devices/system/node/node0/cpulist", "5-1"),
            ("sys/devices/system/node/nodeX/cpulist", "0"),
            ("sys/devices/system/cpu/online", "0-4000000000"),
        ],
    );
    assert_eq!(discover_at(root.path()), SystemReport::default());
}

#[test]
fn this_machine_can_be_looked_at() {
    let found = discover();
    assert!(
        found
            .numa
            .windows(2)
            .all(|pair| pair[0].index < pair[1].index)
    );
    assert!(found.numa.iter().all(|numa| numa.cores <= numa.threads));
    assert!(
        found
            .nics
            .windows(2)
            .all(|pair| pair[0].name < pair[1].name)
    );
}
