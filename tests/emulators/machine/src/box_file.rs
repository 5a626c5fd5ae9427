//! The file that says what machine is emulated.

use std::path::Path;

use serde::Deserialize;

/// A machine with devices of one vendor.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct BoxFile {
    /// What the devices are called.
    pub model: String,
    /// How many there are, 64 at most.
    pub devices: u32,
    /// Bytes of memory of each.
    pub memory_bytes: u64,
    /// The generation of the devices, as the vendor numbers it: `[9, 0]`.
    pub generation: [u32; 2],
    /// The name of the devices' instruction set, where the vendor has names: `gfx942`.
    #[serde(default)]
    pub architecture: Option<String>,
    /// The driver's version, as its library numbers it.
    pub driver: u32,
    /// The driver's version, as people write it.
    pub driver_name: String,
    /// NUMA node of each device; missing ones are on node 0.
    #[serde(default)]
    pub numa: Vec<u32>,
    /// How devices hang on the host.
    pub pcie: Pcie,
    /// The devices' own links.
    #[serde(default)]
    pub fabric: Fabric,
    /// Which devices reach each other's memory.
    #[serde(default)]
    pub peers: Peers,
    /// Independent hardware queues of a device and process.
    #[serde(default = "eight")]
    pub queues: u32,
    /// Notifies of a device.
    #[serde(default = "plenty")]
    pub notifies: usize,
    /// Operations that a hardware queue holds; one more blocks whoever submits it.
    #[serde(default = "deep")]
    pub depth: usize,
    /// The runtime's copies are begun in the order in which they were handed over, whatever their streams: one whose
    /// stream has not come to it holds up all that come after it. Drivers may do so now and then with streams that nothing
    /// of theirs orders; a device that always does is for tests. Not those of a graph that has branches.
    #[serde(default)]
    pub copies_queue_up: bool,
    /// How scheduling is disturbed.
    #[serde(default)]
    pub delays: Delays,
    /// Two operations that touch the same bytes at once, one of them writing, break the device of the
    /// second: nothing orders them. `false` is for tests of aborts: what stands behind a wait that an abort
    /// released runs in whatever order it comes.
    #[serde(default = "yes")]
    pub finds_races: bool,
    /// The time that a copy from one device to another takes, by what a link carries a second: copies over
    /// different links take it at once, and a kernel that of the link that it uses most. 0: as long as it
    /// takes.
    #[serde(default)]
    pub copy_bytes_per_second: u64,
    /// The same of copies that the receiving device makes, if they are not as fast as the sender's.
    #[serde(default)]
    pub read_bytes_per_second: Option<u64>,
    /// What the driver or the devices lack.
    #[serde(default)]
    pub lacks: Vec<Capability>,
    /// What breaks, and when.
    #[serde(default)]
    pub faults: Vec<Fault>,
}

const fn yes() -> bool {
    true
}

const fn eight() -> u32 {
    8
}

const fn deep() -> usize {
    1024
}

const fn plenty() -> usize {
    8192
}

/// The way to the host.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Pcie {
    /// 3, 4, 5, 6.
    pub generation: u32,
    /// Lanes of a device.
    pub lanes: u32,
}

/// Links between devices that are the vendor's own: lanes to switches that join all, or lanes between
/// pairs.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Fabric {
    /// Switches; 0 if devices are joined directly.
    #[serde(default)]
    pub switches: u32,
    /// Lanes of each device to the switches.
    #[serde(default)]
    pub lanes: u32,
    /// The vendor's number of the links' generation.
    #[serde(default)]
    pub version: u32,
    /// What one lane carries each way.
    #[serde(default)]
    pub lane_bytes_per_second: u64,
    /// Lanes between two devices: first, second, how many.
    #[serde(default)]
    pub pairs: Vec<[u32; 3]>,
    /// Lanes that are down: device, lane number of that device.
    #[serde(default)]
    pub dead: Vec<[u32; 2]>,
}

/// Which devices reach each other's memory.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Peers {
    /// Any two.
    #[default]
    All,
    /// Those that a lane joins, or that hang on the same NUMA node: what is beyond a processor's own
    /// slots is reached through the host alone.
    Near,
}

/// How the order of things is disturbed.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Delays {
    /// One operation in so many is delayed; 0: none.
    pub one_in: u32,
    /// By this many microseconds at most.
    pub longest_us: u64,
}

impl Default for Delays {
    fn default() -> Self {
        Self {
            one_in: 64,
            longest_us: 200,
        }
    }
}

/// What a driver or a device can lack.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Memory made apart from its addresses, exported as a descriptor.
    VirtualMemory,
    /// Stream-ordered pools.
    Pools,
    /// Memory exported by handle.
    Ipc,
    /// A host address is the device's address of registered memory.
    HostPointer,
    /// Host memory of the program's own that devices reach.
    HostRegister,
    /// dma-buf export.
    Dmabuf,
    /// A call that makes visible what others wrote to a device's memory.
    Flush,
    /// 64-bit writes and waits in streams.
    StreamMemory,
    /// What streams record can be run.
    Graphs,
    /// Devices reach each other's memory.
    Peer,
    /// The management library.
    Management,
    /// What that library knows of the kinds of links.
    LinkTypes,
}

/// One thing that breaks.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// The device that it happens to.
    pub device: u32,
    /// Of a link: the other end.
    #[serde(default)]
    pub peer: u32,
    /// After so many operations (a device) or bytes (a link) of a process.
    #[serde(default)]
    pub after: u64,
}

/// What can break.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The device is lost.
    Lost,
    /// The link to the peer fails.
    Link,
    /// The device cannot map the peer's memory, nor the peer the device's, whatever the driver says of
    /// the two: at once, and nothing else breaks.
    Mapping,
}

impl BoxFile {
    /// Reads a file.
    ///
    /// # Errors
    /// What is wrong with it, as a sentence.
    pub fn read(path: &Path) -> Result<Self, String> {
        let at = |what: &dyn std::fmt::Display| format!("{}: {what}", path.display());
        let text = std::fs::read_to_string(path).map_err(|e| at(&e))?;
        Self::parse(&text).map_err(|e| at(&e))
    }

    /// Reads a file's text.
    ///
    /// # Errors
    /// As [`BoxFile::read`].
    pub fn parse(text: &str) -> Result<Self, String> {
        let this: Self = serde_saphyr::from_str(text).map_err(|e| e.to_string())?;
        let devices = this.devices;
        if devices > 64 || this.queues == 0 || this.depth == 0 {
            return Err("at most 64 devices, at least one queue of depth 1".to_owned());
        }
        let pairs = this.fabric.pairs.iter().flat_map(|p| [p[0], p[1]]);
        let dead = this.fabric.dead.iter().map(|d| d[0]);
        let faults = this.faults.iter().flat_map(|f| [f.device, f.peer]);
        if let Some(none) = pairs.chain(dead).chain(faults).find(|d| *d >= devices) {
            return Err(format!("there is no device {none}: there are {devices}"));
        }
        Ok(this)
    }

    /// Whether it has something.
    #[must_use]
    pub fn has(&self, capability: Capability) -> bool {
        !self.lacks.contains(&capability)
    }

    /// Whether the driver lets a device reach another's memory.
    #[must_use]
    pub fn reaches(&self, from: u32, to: u32) -> bool {
        let joined = |lane: &Lane| match lane.end {
            End::Switch(_) => lane.up,
            End::Device(other) => lane.up && other == to,
        };
        let near =
            || self.numa_of(from) == self.numa_of(to) || self.lanes_of(from).iter().any(joined);
        from != to && self.has(Capability::Peer) && (self.peers == Peers::All || near())
    }

    /// The NUMA node of a device.
    #[must_use]
    pub fn numa_of(&self, device: u32) -> u32 {
        self.numa.get(device as usize).copied().unwrap_or(0)
    }

    /// Where a device hangs on the bus: domain, bus. Its device and function numbers are 0.
    #[must_use]
    pub const fn bus_of(&self, device: u32) -> (u32, u32) {
        (0, 0x1b + device * 0x10)
    }

    /// Devices at the ends of a device's lanes that are up, one for each lane.
    fn ends_of(&self, device: u32) -> Vec<u32> {
        let lanes = self.lanes_of(device).into_iter().filter(|lane| lane.up);
        let ends = lanes.filter_map(|lane| match lane.end {
            End::Device(other) => Some(other),
            End::Switch(_) => None,
        });
        ends.collect()
    }

    /// Lanes between two devices that are up.
    #[must_use]
    pub fn lanes_between(&self, from: u32, to: u32) -> u64 {
        let ends = self.ends_of(from).into_iter();
        ends.filter(|end| *end == to).count() as u64
    }

    /// Whether there is a way over lanes at all: a device that has any reaches all that have.
    #[must_use]
    pub fn is_joined(&self, from: u32, to: u32) -> bool {
        from != to && !self.ends_of(from).is_empty() && !self.ends_of(to).is_empty()
    }

    /// The ends of a device's lanes, in their order: the other device, or none for a switch.
    #[must_use]
    pub fn lanes_of(&self, device: u32) -> Vec<Lane> {
        let fabric = &self.fabric;
        let mut lanes = Vec::new();
        for lane in 0..if fabric.switches > 0 { fabric.lanes } else { 0 } {
            let end = End::Switch(lane % fabric.switches);
            lanes.push(Lane { end, up: true });
        }
        for &[a, b, count] in &fabric.pairs {
            let other = match (a == device, b == device) {
                (true, _) => b,
                (_, true) => a,
                _ => continue,
            };
            let end = End::Device(other);
            lanes.extend((0..count).map(|_| Lane { end, up: true }));
        }
        for &[of, lane] in &fabric.dead {
            if of == device
                && let Some(lane) = lanes.get_mut(lane as usize)
            {
                lane.up = false;
            }
        }
        lanes
    }
}

/// A lane, seen from one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Where it ends.
    pub end: End,
    /// Whether it carries anything.
    pub up: bool,
}

/// What a lane ends at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Another device.
    Device(u32),
    /// A switch.
    Switch(u32),
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "
model: Small
devices: 3
memory_bytes: 1048576
generation: [7, 0]
driver: 12080
driver_name: '570.1'
pcie: {generation: 4, lanes: 16}
fabric:
  lane_bytes_per_second: 25000000000
  pairs: [[0, 1, 2], [1, 2, 1]]
  dead: [[1, 2]]
";

    #[test]
    fn lanes_are_numbered_by_pairs() {
        let this = BoxFile::parse(SMALL).unwrap();
        let ends: Vec<_> = this
            .lanes_of(1)
            .iter()
            .map(|lane| (lane.end, lane.up))
            .collect();
        let expected = [
            (End::Device(0), true),
            (End::Device(0), true),
            (End::Device(2), false),
        ];
        assert_eq!(ends, expected);
        assert_eq!([1, 2, 0].map(|to| this.lanes_between(1, to)), [0, 0, 2]);
        assert!(this.is_joined(0, 1) && !this.is_joined(0, 0));
    }

    #[test]
    fn a_lane_or_a_node_joins_those_that_are_near() {
        let text = SMALL.replace("pcie:", "peers: near\nnuma: [0, 1, 1]\npcie:");
        let this = BoxFile::parse(&text).unwrap();
        assert!(this.reaches(0, 1) && this.reaches(1, 0), "by a lane");
        assert!(this.reaches(1, 2), "by their node: the lane is dead");
        assert!(!this.reaches(0, 2) && !this.reaches(2, 0) && !this.reaches(0, 0));
        let all = BoxFile::parse(SMALL).unwrap();
        assert!(all.reaches(0, 2));
    }

    #[test]
    fn devices_that_are_not_there_are_refused() {
        let text = SMALL.replace("[1, 2, 1]", "[1, 3, 1]");
        let error = BoxFile::parse(&text).unwrap_err();
        assert!(error.contains("no device 3"), "{error}");
        let error = BoxFile::parse(&SMALL.replace("model", "modell")).unwrap_err();
        assert!(error.contains("modell"), "{error}");
    }
}
