//! Reports of imagined machines, for several test files.

use unisono_graph::system::{NicReport, NumaReport, SystemReport};
use unisono_graph::{
    DeviceClass, DeviceId, DeviceReport, LinkGraph, LinkReport, LinkType, NicClass, NodeId,
    NodeReport, PluginReport, Scope, merge,
};

/// A machine: its number, its name, and what its devices are.
pub struct Machine {
    pub number: u8,
    pub name: &'static str,
    pub plugin: &'static str,
    pub device: &'static str,
    pub devices: u8,
    pub numa: u32,
    /// Kind and bandwidth of the links between its devices.
    pub mesh: (&'static str, u64),
}

pub fn device(machine: u8, index: u8) -> DeviceId {
    let mut id = [0; 16];
    (id[0], id[15]) = (machine + 1, index + 1);
    DeviceId(id)
}

pub fn node(machine: u8) -> NodeId {
    NodeId([machine + 1; 16])
}

pub fn link(kind: &str, scope: Scope, bytes_per_second: u64, latency_ns: u64) -> LinkReport {
    LinkReport {
        kind: kind.into(),
        link_type: if scope == Scope::Network {
            LinkType::Posted
        } else {
            LinkType::Mapped
        },
        scope,
        from: DeviceId::default(),
        to: DeviceId::default(),
        bytes_per_second,
        read_bytes_per_second: 0,
        latency_ns,
        shared: u32::from(scope == Scope::Network),
        rail: 0,
    }
}

fn system(machine: &Machine) -> SystemReport {
    let numa = |index| NumaReport {
        index,
        socket: Some(index * 2 / machine.numa.max(2)),
        cores: 32,
        threads: 64,
        memory_bytes: (512 << 30) / u64::from(machine.numa),
    };
    let nic = |name: &str, class, gigabits: Option<u64>, numa, up| NicReport {
        name: name.into(),
        class,
        bytes_per_second: gigabits.map(|gigabits| gigabits * 125_000_000),
        numa,
        up,
    };
    SystemReport {
        memory_bytes: 512 << 30,
        numa: (0..machine.numa).map(numa).collect(),
        nics: vec![
            nic("docker0", NicClass::Virtual, None, None, false),
            nic("eth0", NicClass::Physical, Some(100), Some(0), true),
            nic("lo", NicClass::Loopback, None, None, true),
        ],
    }
}

/// The reports of a job that uses every device of these machines.
pub fn reports(machines: &[Machine]) -> Vec<NodeReport> {
    let mut reports = Vec::new();
    for machine in machines {
        for index in 0..machine.devices {
            let devices = (0..machine.devices).map(|index| DeviceReport {
                id: device(machine.number, index),
                class: DeviceClass::Gpu,
                name: machine.device.into(),
                pci: format!("0000:{:02x}:00.0", 16 + index),
                numa: Some(u32::from(index) * machine.numa / u32::from(machine.devices)),
                memory_bytes: 80 << 30,
            });
            reports.push(NodeReport {
                rank: u32::try_from(reports.len()).unwrap(),
                node: node(machine.number),
                host: machine.name.into(),
                uses: Some((machine.plugin.into(), device(machine.number, index))),
                plugins: vec![
                    PluginReport {
                        plugin: machine.plugin.into(),
                        devices: devices.collect(),
                        links: vec![link(machine.mesh.0, Scope::Node, machine.mesh.1, 700)],
                    },
                    PluginReport {
                        plugin: "tcp".into(),
                        devices: vec![],
                        links: vec![link("tcp", Scope::Network, 12_500_000_000, 15_000)],
                    },
                ],
                system: (index == 0).then(|| system(machine)),
            });
        }
    }
    reports
}

/// Several ranks on the processor cores of one machine, as the demonstration has them.
pub fn cores(ranks: u32) -> LinkGraph {
    let report = |rank| NodeReport {
        rank,
        node: node(0),
        host: "laptop".into(),
        uses: Some(("host".into(), device(0, 0))),
        plugins: vec![
            PluginReport {
                plugin: "host".into(),
                devices: vec![DeviceReport {
                    id: device(0, 0),
                    class: DeviceClass::Cpu,
                    name: "CPU cores".into(),
                    pci: String::new(),
                    numa: None,
                    memory_bytes: 16 << 30,
                }],
                links: vec![link("shm", Scope::Node, 9_300_000_000, 200)],
            },
            PluginReport {
                plugin: "tcp".into(),
                devices: vec![],
                links: vec![link("tcp", Scope::Network, 2_100_000_000, 9_000)],
            },
        ],
        system: Some(system(&Machine { numa: 1, ..BOX })),
    };
    merge(&(0..ranks).map(report).collect::<Vec<_>>()).unwrap()
}

/// Eight devices, all linked to all.
pub const BOX: Machine = Machine {
    number: 0,
    name: "alpha",
    plugin: "accel",
    device: "Model X",
    devices: 8,
    numa: 2,
    mesh: ("fabric", 64_000_000_000),
};

/// Three machines of three makes.
pub fn fleet() -> Vec<NodeReport> {
    reports(&[
        BOX,
        Machine {
            number: 1,
            name: "beta",
            plugin: "npu",
            device: "Series 9 with a long name",
            devices: 4,
            numa: 4,
            mesh: ("ring", 28_000_000_000),
        },
        Machine {
            number: 2,
            name: "gamma",
            plugin: "host",
            device: "CPU cores",
            devices: 2,
            numa: 1,
            mesh: ("shm", 12_000_000_000),
        },
    ])
}

/// The planning graphs that stand beside the workspace, if they do.
pub fn known_answers() -> Option<serde_json::Value> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/fixtures/known_answers.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: the planning graphs are not at {}", path.display());
        return None;
    };
    Some(serde_json::from_str(&text).unwrap())
}
