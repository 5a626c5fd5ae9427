//! Common ground: host memory through which ranks of one node meet whose devices do not reach each
//! other.
//!
//! It is memory of the CPU's own plugin, which knows how processes share it and proves that they do.
//! Every other device makes it reachable for itself by registering it. So a pair of any two devices has
//! a way, *staged*: the sender's device writes slots in the receiver's host memory, and the receiver's
//! device reads them there. Flags lie there too, and are raised by the devices.

use unisono_graph::{CapacityGroup, LinkGraph, LinkType, NewLink, Source};
use unisono_hal::{Device, DeviceKind};

use crate::communicator::{Reader, put_bytes};
use crate::error::{Error, Result};
use crate::options::InitOptions;
use crate::runtime::Loaded;

/// Who drives staged links: no plugin.
pub(crate) const PLUGIN: &str = "unisono";
/// Their kind, as in the cluster file.
pub(crate) const KIND: &str = "staged";

/// What is assumed of a device's way to the host's memory until it is measured or said: half of what a
/// slot of PCIe 4 carries, since a message crosses the host's memory twice.
pub(crate) const BYTES_PER_SECOND: u64 = 12_000_000_000;
/// Two crossings of the bus, and the look of a device at a flag in the host's memory.
pub(crate) const LATENCY_NS: u64 = 5_000;

/// The device whose memory is common ground.
pub(crate) struct Ground {
    /// Its plugin's name.
    pub plugin: String,
    pub device: Device,
    /// Whether it is the rank's own device, which needs no other's memory.
    pub own: bool,
}

/// What a rank tells the others of its ground.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// The plugin, empty if there is none.
    plugin: String,
    own: bool,
}

impl Ground {
    /// The rank's own device, if its memory is such; else the first that a plugin in use has.
    pub(crate) fn find(
        options: &InitOptions,
        plugins: &[Loaded],
        own: (&str, &Device),
    ) -> Result<Option<Self>> {
        if options.without_links.iter().any(|kind| kind == KIND) {
            return Ok(None);
        }
        if serves(own.1.info()) {
            return Ok(Some(Self {
                plugin: own.0.to_owned(),
                device: own.1.clone(),
                own: true,
            }));
        }
        for plugin in plugins {
            let devices = plugin.instance.devices()?;
            if let Some(info) = devices.iter().find(|info| serves(info)) {
                return Ok(Some(Self {
                    plugin: plugin.name.clone(),
                    device: plugin.instance.open(info.index)?,
                    own: false,
                }));
            }
        }
        Ok(None)
    }

    /// What the others must know of it.
    pub(crate) fn told(this: Option<&Self>) -> Told {
        this.map_or_else(Told::default, |ground| Told {
            plugin: ground.plugin.clone(),
            own: ground.own,
        })
    }
}

fn serves(info: &unisono_hal::DeviceInfo) -> bool {
    use unisono_abi::reach::{HOST, PROCESS};
    info.kind == DeviceKind::Cpu && info.reaches(HOST | PROCESS)
}

impl Told {
    /// Whether two ranks of a node have common ground, and need it: one of them is not the CPU itself.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        !self.plugin.is_empty() && self.plugin == other.plugin && !(self.own && other.own)
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_bytes(out, self.plugin.as_bytes());
        put_bytes(out, &[u8::from(self.own)]);
    }

    pub(crate) fn parse(reader: &mut Reader<'_>) -> Option<Self> {
        let plugin = String::from_utf8_lossy(reader.bytes()?).into_owned();
        let own = *reader.bytes()?.first()? != 0;
        Some(Self { plugin, own })
    }
}

/// The graph with staged links between the ranks of a node that no mapped link joins, where both have
/// common ground and one of them is not the CPU itself. `told` is by rank.
pub(crate) fn link(graph: LinkGraph, told: &[Told]) -> Result<LinkGraph> {
    let mut pairs = Vec::new();
    let others = |rank: &u32| told.get(*rank as usize).is_some_and(|of| !of.own);
    for a in graph.ranks().filter(others) {
        for b in graph.ranks() {
            // Each pair once: of two that are not the CPU, from the lower one.
            let other = &told[b as usize];
            let meets = told[a as usize].meets(other);
            let once = b != a && (other.own || a < b);
            let near = graph.node_of_rank(a) == graph.node_of_rank(b);
            if meets && once && near && !(is_mapped(&graph, a, b) && is_mapped(&graph, b, a)) {
                pairs.push((a, b));
            }
        }
    }
    if pairs.is_empty() {
        return Ok(graph);
    }
    with_links(&graph, &pairs).map_err(|error| Error::Graph(error.to_string()))
}

fn is_mapped(graph: &LinkGraph, from: u32, to: u32) -> bool {
    let ways = graph.ways(from, to);
    (ways.first()).is_some_and(|way| way.link_type == LinkType::Mapped)
}

fn with_links(
    graph: &LinkGraph,
    pairs: &[(u32, u32)],
) -> std::result::Result<LinkGraph, unisono_graph::GraphError> {
    let mut builder = unisono_graph::Builder::from(graph);
    let mut groups = std::collections::BTreeMap::new();
    for &(a, b) in pairs {
        for (from, to) in [(a, b), (b, a)] {
            // What a rank sends to all others leaves by its one way to the host's memory.
            let shared = *groups.entry(from).or_insert_with(|| {
                builder.capacity_group(CapacityGroup {
                    name: format!("{KIND}/{from}"),
                    bytes_per_second: BYTES_PER_SECOND,
                })
            });
            let (Some(start), Some(end)) = (graph.rank(from), graph.rank(to)) else {
                continue;
            };
            builder.link(NewLink {
                from: start,
                to: end,
                plugin: PLUGIN.to_owned(),
                kind: KIND.to_owned(),
                link_type: LinkType::Mapped,
                bytes_per_second: BYTES_PER_SECOND,
                written_bytes_per_second: None,
                latency_ns: LATENCY_NS,
                shared: Some(shared),
                rail: 0,
                source: Source::Plugin,
            });
        }
    }
    builder.build()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use unisono_graph::{DeviceClass, DeviceId, DeviceReport, NodeId, NodeReport, PluginReport};

    /// Three ranks with a device each: two on one machine, which nothing joins.
    fn graph() -> LinkGraph {
        let report = |rank: u32| {
            let id = DeviceId([rank as u8 + 1; 16]);
            let device = DeviceReport {
                id,
                class: DeviceClass::Other,
                name: "device".to_owned(),
                pci: String::new(),
                numa: None,
                memory_bytes: 0,
            };
            NodeReport {
                rank,
                node: NodeId(u128::from(rank / 2 + 1).to_le_bytes()),
                host: String::new(),
                uses: Some(("some".to_owned(), id)),
                plugins: vec![PluginReport {
                    plugin: "some".to_owned(),
                    devices: vec![device],
                    links: Vec::new(),
                }],
                system: None,
            }
        };
        unisono_graph::merge(&[report(0), report(1), report(2)]).unwrap()
    }

    fn of(plugin: &str, own: bool) -> Told {
        Told {
            plugin: plugin.to_owned(),
            own,
        }
    }

    fn staged(told: &[Told]) -> usize {
        let all = [told, &[of("cpu", false)]].concat();
        let graph = link(graph(), &all).unwrap();
        let links = graph.links().iter();
        links.filter(|link| link.kind == KIND).count()
    }

    #[test]
    fn only_where_both_meet_and_one_is_no_cpu() {
        let (cpu, far) = (of("cpu", true), of("cpu", false));
        assert_eq!(staged(&[far.clone(), cpu.clone()]), 2);
        assert_eq!(staged(&[cpu.clone(), far.clone()]), 2);
        assert_eq!(staged(&[far.clone(), far.clone()]), 2);
        assert_eq!(staged(&[cpu.clone(), cpu]), 0, "they are plain");
        assert_eq!(staged(&[far.clone(), of("other", true)]), 0);
        assert_eq!(staged(&[far, Told::default()]), 0);
    }

    #[test]
    fn it_travels() {
        let mut bytes = Vec::new();
        of("cpu", true).put(&mut bytes);
        let parsed = Told::parse(&mut Reader(&bytes));
        assert_eq!(parsed, Some(of("cpu", true)));
        assert_eq!(Told::parse(&mut Reader(&bytes[..3])), None);
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Some(told) = Told::parse(&mut Reader(&bytes)) {
                prop_assert!(!told.meets(&Told::default()));
                let mut again = Vec::new();
                told.put(&mut again);
                prop_assert_eq!(Told::parse(&mut Reader(&again)), Some(told));
            }
        }

        #[test]
        fn a_changed_bit_breaks_nothing(own: bool, at: prop::sample::Index, bit in 0..8_u32) {
            let mut bytes = Vec::new();
            of("cpu", own).put(&mut bytes);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            let _ = Told::parse(&mut Reader(&bytes));
        }
    }
}
