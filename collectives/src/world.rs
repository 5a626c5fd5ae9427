//! One rank of the job: its control channel, its plugins and device, the frozen link graph, and the
//! communicators that it is in.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use unisono_bootstrap::{Bootstrap, Control, Directory, Event, Options, Prover, Report};
use unisono_graph::{
    DeviceClass, DeviceId, DeviceReport, LinkGraph, LinkReport, LinkType, NodeReport, PluginReport,
    Scope, Way,
};
use unisono_hal::{Device, DeviceInfo, DeviceKind, Memory, MemoryKind, MemoryRequest};

use crate::communicator::Shared;
use crate::early::Early;
use crate::error::{Error, Result};
use crate::ground::{self, Ground};
use crate::options::{Between, InitOptions};
use crate::progress::Service;
use crate::runtime::{self, LeftOut, Loaded, Plugins};
use crate::transfer::Transfer;
use crate::tune::Calibration;

/// How soon a control channel that has failed is let go.
const FAILED: Duration = Duration::from_millis(100);

pub(crate) struct World {
    pub rank: u32,
    pub control: Control,
    pub prover: Prover,
    pub table: Directory,
    pub bootstrap: Report,
    pub graph: LinkGraph,
    /// What was measured on this cluster, as rank 0 says.
    pub calibration: Calibration,
    pub plugins: Vec<Loaded>,
    /// Those that it does without, as their drivers are not here.
    pub left_out: Vec<LeftOut>,
    pub device: Device,
    /// Host memory through which it meets others that do not reach its device's.
    pub ground: Option<Ground>,
    /// By rank of the job: what each has of that.
    pub grounds: Vec<ground::Told>,
    /// Copies between slices and the device's memory, where the CPU does not see that.
    pub transfer: Option<Arc<Transfer>>,
    /// What peers ring when they signal this process, if the device has such a thing.
    pub bell: Option<Memory>,
    /// What stands for this process, for peers that read its memory.
    pub process: Option<Memory>,
    pub options: InitOptions,
    communicators: Mutex<Known>,
    /// What was said already, and is said once.
    said: Mutex<BTreeSet<String>>,
    /// Communicators that the program holds; the world is left with the last one.
    handles: AtomicUsize,
    left: AtomicBool,
}

/// The communicators of this rank, formed and to come.
#[derive(Default)]
struct Known {
    all: Vec<Weak<Shared>>,
    early: Early,
}

/// How long leaving may take: what is queued for the others is still sent.
const LEAVE: Duration = Duration::from_secs(2);

impl World {
    fn device_of(&self, rank: u32) -> Option<&unisono_graph::Device> {
        let vertex = self.graph.rank(rank)?;
        self.graph.vertex(vertex).device()
    }

    /// Whether a rank's device is the CPU.
    pub(crate) fn is_cpu(&self, rank: u32) -> bool {
        let device = self.device_of(rank);
        device.is_some_and(|device| device.class == DeviceClass::Cpu)
    }

    /// Between which devices the slots of these ranks lie: the same on all of them.
    pub(crate) fn between(&self, ranks: &[u32]) -> Between {
        match self.smallest_accelerator(ranks) {
            Some(memory) => Between::Accelerators { memory },
            None if ranks.len() > 1 && self.are_apart(ranks) => Between::CpusApart,
            None => Between::Cpus,
        }
    }

    /// Whether no two of these ranks share memory: each sends to all others over posted links.
    fn are_apart(&self, ranks: &[u32]) -> bool {
        let is_posted = |ways: &[Way]| {
            let way = ways.first();
            way.is_some_and(|way| way.link_type == LinkType::Posted)
        };
        ranks.iter().all(|from| {
            let ways = self.graph.ways_to_each(*from, ranks);
            let mut others = ranks.iter().zip(&ways).filter(|(to, _)| *to != from);
            others.all(|(_, ways)| is_posted(ways))
        })
    }

    /// The memory of the smallest accelerator among the devices of some ranks, 0 if nobody knows it; none if all are CPUs.
    fn smallest_accelerator(&self, ranks: &[u32]) -> Option<u64> {
        let devices = ranks.iter().filter_map(|rank| self.device_of(*rank));
        let accelerators = devices.filter(|device| device.class != DeviceClass::Cpu);
        let known = |bytes: u64| if bytes == 0 { u64::MAX } else { bytes };
        let least = accelerators.map(|device| known(device.memory_bytes)).min();
        least.map(|bytes| if bytes == u64::MAX { 0 } else { bytes })
    }

    /// Loads the plugins, meets the other ranks and freezes the link graph.
    pub(crate) fn join(options: InitOptions) -> Result<Arc<Self>> {
        let mut join = Options::new(options.rank, options.size, options.root.clone());
        join.local_size = options.local_size;
        join.secret = options.secret.clone();
        join.interfaces = options.interfaces.clone();
        let interfaces = if join.is_local()? {
            "lo*".to_owned()
        } else {
            options.interfaces.to_string()
        };
        let found = runtime::plugins(&options, &interfaces)?;
        let (device_plugin, device) = choose_device(&options, &found)?;
        let Plugins {
            loaded: plugins,
            left_out,
        } = found;
        let environment = |name: &str| std::env::var(name).ok();
        let node = options
            .node_id
            .unwrap_or_else(|| unisono_bootstrap::NodeId::discover(&environment));
        let report = node_report(&options, &plugins, &device_plugin, &device, node)?;
        join.node_id = Some(node);
        join.job = options.job.clone();
        join.heartbeat = options.heartbeat;
        join.wait = unisono_bootstrap::Wait::at_most(options.timeouts.init);
        join.version = format!(
            "unisono {}, plugin ABI {}.{}",
            env!("CARGO_PKG_VERSION"),
            unisono_abi::ABI_MAJOR,
            unisono_abi::ABI_MINOR
        );
        let ground = Ground::find(&options, &plugins, (&device_plugin, &device))?;
        let meets = Ground::told(ground.as_ref());
        join.payload = payload(&report, &meets, &plugins, &options)?;
        let joined = Bootstrap::join(join)?;
        let told = (joined.table.entries().iter())
            .map(|entry| split_payload(&entry.payload))
            .collect::<Result<Vec<_>>>()?;
        let (reports, grounds): (Vec<_>, Vec<_>) =
            (told.into_iter().map(|told| (told.report, told.ground))).unzip();
        let unusable = |error: unisono_graph::GraphError| Error::Graph(error.to_string());
        let graph = unisono_graph::merge(&reports).map_err(unusable)?;
        let graph = ground::link(graph, &grounds)?;
        let graph = crate::overlays::apply(&graph, &options.overlays).map_err(unusable)?;
        let calibration = match joined.table.get(0) {
            Some(entry) => calibration(&split_payload(&entry.payload)?)?,
            None => Calibration::default(),
        };
        let bell = match device.alloc(&MemoryRequest::new(MemoryKind::Bell, 64).exportable()) {
            Err(error) if error.status == unisono_hal::Status::Unsupported => None,
            bell => Some(bell?),
        };
        let process = crate::communicator::own_process(&device, &options);
        let world = Arc::new(Self {
            rank: options.rank,
            control: joined.control,
            prover: joined.prover,
            table: joined.table,
            bootstrap: joined.report,
            graph,
            calibration,
            plugins,
            left_out,
            ground,
            grounds,
            transfer: Transfer::new(&device)?,
            device,
            bell,
            process,
            options,
            communicators: Mutex::default(),
            said: Mutex::default(),
            handles: AtomicUsize::new(0),
            left: AtomicBool::new(false),
        });
        if world.options.size > 1 {
            crate::progress::progress().add_service(Arc::new(Turning(
                Arc::downgrade(&world),
                world.control.clone(),
            )));
        }
        Ok(world)
    }

    /// A request for memory that peers map, where the device has such memory; elsewhere they reach
    /// it by posted links alone.
    pub(crate) fn shared(&self, request: MemoryRequest) -> MemoryRequest {
        use unisono_abi::reach::{DMABUF, PROCESS};
        let info = self.device.info();
        if info.reaches(PROCESS) || info.reaches(DMABUF) {
            request.exportable()
        } else {
            request
        }
    }

    /// Whether something was said already in this job.
    pub(crate) fn has_said(&self, what: &str) -> bool {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.contains(what)
    }

    /// Whether something is said for the first time in this job.
    pub(crate) fn says_first(&self, what: &str) -> bool {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.insert(what.to_owned())
    }

    /// Where rank `rank`'s instance of `plugin` listens, if it does.
    pub(crate) fn plugin_address(&self, rank: u32, plugin: &str) -> Option<Vec<u8>> {
        let entry = self.table.get(rank)?;
        let told = split_payload(&entry.payload).ok()?;
        told.addresses
            .into_iter()
            .find(|(name, _)| name == plugin)
            .map(|(_, address)| address)
    }

    pub(crate) fn plugin(&self, name: &str) -> Option<&Loaded> {
        self.plugins.iter().find(|plugin| plugin.name == name)
    }

    /// Whether a rank that waits keeps others of this job from their cores.
    pub(crate) fn is_crowded(&self) -> bool {
        let share = std::thread::available_parallelism().map_or(1, usize::from);
        self.table.is_crowded(self.rank, share)
    }

    pub(crate) fn add(&self, communicator: &Arc<Shared>) {
        let early = {
            let mut known = self.lock();
            known.all.retain(|c| c.strong_count() > 0);
            known.all.push(Arc::downgrade(communicator));
            known.early.take(communicator.id)
        };
        for event in &early {
            communicator.handle(event);
        }
        communicator.check_dead(&self.control.dead());
    }

    /// A communicator is gone, or could not be formed: no news is kept for it.
    pub(crate) fn forget(&self, communicator: u64) {
        self.lock().early.forget(communicator);
    }

    /// One more handle of a communicator in this world.
    pub(crate) fn enter(&self) {
        self.handles.fetch_add(1, Ordering::AcqRel);
    }

    /// One handle less; with the last one this rank leaves the job. Blocks, at most for
    /// [`LEAVE`], so it is done on the caller's thread and never by the progress thread.
    pub(crate) fn leave(&self) {
        if self.handles.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        // What cannot be told within the time the others find out.
        let wait = unisono_bootstrap::Wait::at_most(LEAVE);
        if let Err(error) = self.control.leave(&wait) {
            log::debug!("leaving the job: {error}");
        }
        self.left.store(true, Ordering::Release);
        crate::progress::progress().kick();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.communicators
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The communicators, with early news kept for those to come.
    fn communicators(&self, events: &[Event]) -> Vec<Arc<Shared>> {
        let mut known = self.lock();
        let all: Vec<_> = known.all.iter().filter_map(Weak::upgrade).collect();
        for event in events {
            known.early.keep(event, |id| all.iter().any(|c| c.id == id));
        }
        all
    }

    fn turn(&self, now: Instant) -> Duration {
        let events = match self.control.turn(now) {
            Ok(events) => events,
            Err(error) => {
                let error = Error::from(error);
                for communicator in self.communicators(&[]) {
                    communicator.lane.fail(error.clone());
                }
                // It will not get better; the thread must not turn it for ever.
                self.left.store(true, Ordering::Release);
                return FAILED;
            }
        };
        let communicators = self.communicators(&events);
        for event in &events {
            for communicator in &communicators {
                communicator.handle(event);
            }
        }
        let mut idle = self.control.idle_time(now);
        for communicator in &communicators {
            if let Some(soon) = communicator.look(now) {
                idle = idle.min(soon);
            }
        }
        idle
    }
}

/// The progress thread's hold on a world: it must not keep the world alive.
struct Turning(Weak<World>, Control);

impl Service for Turning {
    fn fd(&self) -> BorrowedFd<'_> {
        self.1.as_fd()
    }

    fn turn(&self, now: Instant) -> Option<Duration> {
        let world = self.0.upgrade()?;
        (!world.left.load(Ordering::Acquire)).then(|| world.turn(now))
    }
}

/// No device can be chosen, perhaps since a plugin's driver is missing.
fn no_device(left_out: &[LeftOut]) -> Error {
    let what = "no plugin in use has a device; name one that has";
    let why: String = left_out
        .iter()
        .map(|one| format!("; {}", one.why))
        .collect();
    Error::invalid("init", format!("{what}{why}"))
}

fn choose_device(options: &InitOptions, found: &Plugins) -> Result<(String, Device)> {
    let plugins = &found.loaded;
    let (loaded, index) = match &options.device {
        Some((name, index)) => {
            let loaded = plugins.iter().find(|p| p.name == *name).ok_or_else(|| {
                let known: Vec<_> = plugins.iter().map(|p| p.name.as_str()).collect();
                Error::invalid(
                    "init",
                    format!(
                        "device `{name}:{index}` was asked for, but plugin `{name}` is not in use; in use: {}",
                        known.join(", ")
                    ),
                )
            })?;
            (loaded, *index)
        }
        None => {
            let mut first = None;
            for (at, plugin) in plugins.iter().enumerate() {
                if first.is_none() && !plugin.instance.devices()?.is_empty() {
                    first = Some((at, plugin));
                }
            }
            let (at, loaded) = first.ok_or_else(|| no_device(&found.left_out))?;
            // A driver that is broken must not make a rank compute on the CPU without a word.
            let is_cpu = |device: &DeviceInfo| device.kind == DeviceKind::Cpu;
            let preferred = found.left_out.iter().find(|one| one.before <= at);
            if let Some(one) = preferred
                && loaded.instance.devices()?.iter().all(is_cpu)
            {
                return Err(Error::invalid(
                    "init",
                    format!(
                        "plugin `{}` comes first and cannot be used ({}); name this rank's device if it shall \
                         be the CPU, such as `{}:0`",
                        one.name, one.why, loaded.name
                    ),
                ));
            }
            // Ranks of a node share its devices out among them.
            let devices = loaded.instance.devices()?.len() as u32;
            (loaded, options.local_rank.unwrap_or(0) % devices.max(1))
        }
    };
    let devices = loaded.instance.devices()?.len();
    if index as usize >= devices {
        return Err(Error::invalid(
            "init",
            format!(
                "device `{}:{index}` was asked for, but plugin `{}` has {devices}",
                loaded.name, loaded.name
            ),
        ));
    }
    Ok((loaded.name.clone(), loaded.instance.open(index)?))
}

fn node_report(
    options: &InitOptions,
    plugins: &[Loaded],
    device_plugin: &str,
    device: &Device,
    node: unisono_bootstrap::NodeId,
) -> Result<NodeReport> {
    let mut report = NodeReport {
        rank: options.rank,
        node: unisono_graph::NodeId(node.0),
        host: hostname(),
        uses: Some((device_plugin.to_owned(), DeviceId(device.info().id))),
        plugins: Vec::new(),
        system: Some(unisono_graph::system::discover()),
    };
    for plugin in plugins {
        let links = plugin.instance.link_report()?;
        report.plugins.push(PluginReport {
            plugin: plugin.name.clone(),
            devices: plugin
                .instance
                .devices()?
                .iter()
                .map(device_report)
                .collect(),
            links: links
                .iter()
                .filter(|link| !options.without_links.contains(&link.kind))
                .map(link_report)
                .collect(),
        });
    }
    Ok(report)
}

fn device_report(info: &unisono_hal::DeviceInfo) -> DeviceReport {
    use unisono_hal::DeviceKind;
    DeviceReport {
        id: DeviceId(info.id),
        class: match info.kind {
            DeviceKind::Cpu => DeviceClass::Cpu,
            DeviceKind::Gpu => DeviceClass::Gpu,
            DeviceKind::Npu => DeviceClass::Npu,
            DeviceKind::Nic | DeviceKind::Other => DeviceClass::Other,
        },
        name: info.name.clone(),
        pci: info.pci.clone(),
        numa: info.numa,
        memory_bytes: info.memory_bytes,
    }
}

fn link_report(link: &unisono_hal::LinkInfo) -> LinkReport {
    LinkReport {
        kind: link.kind.clone(),
        link_type: match link.link_type {
            unisono_hal::LinkType::Mapped => LinkType::Mapped,
            unisono_hal::LinkType::Posted => LinkType::Posted,
        },
        scope: match link.scope {
            unisono_hal::Scope::Node => Scope::Node,
            unisono_hal::Scope::Network => Scope::Network,
            unisono_hal::Scope::Pair => Scope::Pair,
        },
        from: DeviceId(link.from),
        to: DeviceId(link.to),
        bytes_per_second: link.bytes_per_second,
        read_bytes_per_second: link.read_bytes_per_second,
        latency_ns: link.latency_ns,
        shared: link.shared,
        rail: link.rail,
    }
}

fn hostname() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

/// What a rank tells the others when they meet.
struct Told {
    report: NodeReport,
    ground: ground::Told,
    /// The calibration's JSON; empty if the rank has none, and from all but rank 0.
    calibration: Vec<u8>,
    /// Each plugin's name and address.
    addresses: Vec<(String, Vec<u8>)>,
}

/// The report, the ground, the calibration, then each plugin's name and address.
fn payload(
    report: &NodeReport,
    ground: &ground::Told,
    plugins: &[Loaded],
    options: &InitOptions,
) -> Result<Vec<u8>> {
    let graph_error = |e: unisono_graph::ReportError| Error::Graph(e.to_string());
    let calibration = match &options.calibration {
        Some(calibration) if options.rank == 0 => calibration.for_ranks(options.size).to_json(),
        _ => String::new(),
    };
    let mut out = Vec::new();
    crate::communicator::put_bytes(&mut out, &report.to_bytes().map_err(graph_error)?);
    ground.put(&mut out);
    crate::communicator::put_bytes(&mut out, calibration.as_bytes());
    for plugin in plugins {
        if let Some(address) = plugin.instance.address()? {
            crate::communicator::put_bytes(&mut out, plugin.name.as_bytes());
            crate::communicator::put_bytes(&mut out, &address);
        }
    }
    Ok(out)
}

fn split_payload(payload: &[u8]) -> Result<Told> {
    let bad = || Error::Graph("a rank's report is cut short".to_owned());
    let mut reader = crate::communicator::Reader(payload);
    let report = reader.bytes().ok_or_else(bad)?;
    let report = NodeReport::from_bytes(report).map_err(|e| Error::Graph(e.to_string()))?;
    let ground = ground::Told::parse(&mut reader).ok_or_else(bad)?;
    let calibration = reader.bytes().ok_or_else(bad)?.to_vec();
    let mut addresses = Vec::new();
    while !reader.is_empty() {
        let name = reader.bytes().ok_or_else(bad)?;
        let address = reader.bytes().ok_or_else(bad)?;
        addresses.push((String::from_utf8_lossy(name).into_owned(), address.to_vec()));
    }
    Ok(Told {
        report,
        ground,
        calibration,
        addresses,
    })
}

/// The calibration that rank 0 told.
fn calibration(told: &Told) -> Result<Calibration> {
    match std::str::from_utf8(&told.calibration) {
        Ok("") => Ok(Calibration::default()),
        Ok(text) => Calibration::from_json(text),
        Err(_) => Err(Error::Graph("rank 0's calibration is no text".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unisono_graph::NodeId;

    use super::*;
    use crate::communicator::put_bytes;

    fn report() -> Vec<u8> {
        let report = NodeReport {
            rank: 0,
            node: NodeId([1; 16]),
            host: "here".to_owned(),
            uses: None,
            plugins: Vec::new(),
            system: None,
        };
        report.to_bytes().expect("it is small")
    }

    proptest! {
        #[test]
        fn no_bytes_break_what_a_rank_tells(
            head in any::<bool>(),
            runs in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..8),
            rest in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            // With a report in front, all that is behind it is reached.
            let mut bytes = Vec::new();
            if head {
                put_bytes(&mut bytes, &report());
            }
            runs.iter().for_each(|run| put_bytes(&mut bytes, run));
            bytes.extend(rest);
            if let Ok(told) = split_payload(&bytes) {
                let addresses = told.addresses.iter().map(|(_, address)| address.len());
                prop_assert!(addresses.sum::<usize>() < bytes.len());
                let _ = calibration(&told);
            }
        }
    }
}
