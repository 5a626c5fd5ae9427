//! Forming a communicator: every rank makes its arena, tells the others how to reach it, and maps
//! or connects to theirs.
//!
//! Three rounds of O(log n) each: exports and what is expected of all; who could map whom; tokens
//! of windows, if any link is posted. The first two come again if a mapping was refused, with the pairs
//! that it was to join going through host memory.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use unisono_bootstrap::Wait;
use unisono_graph::LinkType;
use unisono_hal::{Cpu, ExportKind, LinkRequest, Memory};
use unisono_plan::cost::Reads;

use super::channel::ControlChannel;
use super::fabric::RankSpeed;
use super::fetched::Fetches;
use super::home::{self, Home, Homes, Kind};
use super::linked::Told;
use super::offer::{Offer, find_tokens, put_tokens};
use super::reads;
use super::recording::Records;
use super::refused::{Refused, put_reasons};
use super::shared::{Shared, first_exchange};
use super::support::Support;
use super::wire::{Reader, put_bytes};
use crate::arena::Arena;
use crate::error::{Error, Result};
use crate::execute::{
    Bells, Fetch, Holdings, Kept, Lane, Near, Own, Peer, Posted, SIGNAL_WINDOW, SLOTS_WINDOW, Way,
};
use crate::ground;
use crate::progress::Policy;
use crate::world::World;

/// Exchanges that forming uses up: two for each try, and the last.
const ROUNDS: u64 = 2 * TRIES + 1;
const TRIES: u64 = 2;

/// Forms the communicator `id` of `members`, all of which must call this.
pub(super) fn form(
    world: &Arc<World>,
    id: u64,
    name: String,
    members: Vec<u32>,
) -> Result<Arc<Shared>> {
    let formed = form_all(world, id, name, members);
    if formed.is_err() {
        world.forget(id);
    }
    formed
}

fn form_all(world: &Arc<World>, id: u64, name: String, members: Vec<u32>) -> Result<Arc<Shared>> {
    crate::execute::sweep();
    let forming = Forming::new(world, id, members)?;
    let peers = if forming.members.len() > 1 {
        forming.connect()?
    } else {
        Connected {
            peers: vec![Peer::new(0, Way::Own, Near::default())],
            holdings: Holdings::default(),
            mapped: vec![true],
            speeds: vec![forming.speed()],
            supports: vec![Support::of(&world.device)],
            refused: Refused::default(),
            records: vec![Records::of(&world.device, &[])],
            fetches: Fetches::of(&[]),
            linked: vec![Told::default()],
            reads: reads::of_all(&[None]),
            shares: Ok(()),
            core_cache: 0,
            swaps: false,
            plain: true,
        }
    };
    let shows = peers.shares.is_ok();
    let fabric = super::fabric::fabric(
        world,
        &forming.members,
        &peers.speeds,
        &peers.refused,
        peers.fetches,
        peers.reads,
        peers.shares,
    )
    .with_core_cache(peers.core_cache)
    .that_hands_lines_on(peers.swaps)
    .with_cores(&super::fabric::bound_to(world, &forming.members));
    let stream = world.device.stream(0)?;
    let supports = peers.supports;
    let lane = Arc::new(Lane::new(
        Own::new(forming.rank, forming.arena)
            .that_shows(shows, peers.plain)
            .with_core_cache(peers.core_cache)
            .that_swaps(peers.swaps)
            .that_takes_turns(fabric.shares_cores()),
        peers.peers,
        world.device.clone(),
        stream,
        peers.holdings,
    ));
    Ok(Shared::new(
        id,
        name,
        forming.members.clone(),
        world.clone(),
        lane,
        fabric,
        Policy::new(world.is_crowded(), &world.options),
        forming.arena.slot_bytes,
        ROUNDS,
        peers.mapped,
        supports,
        peers.refused,
        Records::refusal(&peers.records),
        peers.fetches,
        peers.linked,
    ))
}

struct Connected {
    peers: Vec<Peer>,
    holdings: Holdings,
    /// By rank: whether its device's memory is mapped here, so that windows can be.
    mapped: Vec<bool>,
    speeds: Vec<RankSpeed>,
    supports: Vec<Support>,
    refused: Refused,
    /// By rank: whether its calls can be recorded.
    records: Vec<Records>,
    fetches: Fetches,
    /// By rank: the ends of its links.
    linked: Vec<Told>,
    /// How ranks read each other's memory, or why they do not.
    reads: std::result::Result<Reads, String>,
    /// Nothing if all ranks' cores work in memory that all map, or why not.
    shares: std::result::Result<(), String>,
    /// Bytes of the cache that each core has for itself, the least of all ranks'; 0 if one does not know.
    core_cache: u64,
    /// Whether slots change hands on all ranks.
    swaps: bool,
    /// Whether no rank needs slots for small puts.
    plain: bool,
}

struct Forming<'a> {
    world: &'a Arc<World>,
    id: u64,
    members: Vec<u32>,
    rank: u32,
    arena: Arena,
    wait: Wait,
}

impl<'a> Forming<'a> {
    fn new(world: &'a Arc<World>, id: u64, members: Vec<u32>) -> Result<Self> {
        let size = members.len() as u32;
        let memory = world.options.memory;
        let slot_bytes = memory.slot_for(size, world.between(&members)).ok_or_else(|| {
            Error::invalid(
                "init",
                format!(
                    "{size} ranks with {} slots each do not work with a memory budget of {} bytes: give \
                     at least 2 slots, and raise memory.budget or lower memory.slots",
                    memory.slots, memory.budget
                ),
            )
        })?;
        let rank = members.iter().position(|m| *m == world.rank);
        Ok(Self {
            world,
            id,
            rank: rank.unwrap_or(0) as u32,
            arena: Arena {
                ranks: size,
                depth: memory.slots,
                slot_bytes,
            },
            members,
            wait: Wait::at_most(world.options.timeouts.init),
        })
    }

    /// What this rank can do.
    fn speed(&self) -> RankSpeed {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        RankSpeed {
            reduce: self.world.device.info().reduce_bytes_per_second,
            cores: cores as u32,
        }
    }

    /// Whether small puts need no slots: the device reads and writes signal memory like any other, and
    /// the places of small puts are not those of recorded calls.
    fn is_plain(&self) -> bool {
        let device = self.world.device.info();
        let records = device.streams_can(unisono_abi::stream_can::CAPTURE);
        self.world.options.direct && device.reaches(unisono_abi::reach::HOST) && !records
    }

    fn connect(&self) -> Result<Connected> {
        let mut refused = Refused::default();
        let mut first = 0;
        let Mapped {
            kinds,
            homes,
            offers,
            plans,
            mut memories,
            bells,
            fetches,
            processes,
            reads,
            shares,
        } = loop {
            let mut mapped = self.map_all(&refused, first)?;
            let told = self.confirm(&mapped, first + 1)?;
            let told = told.ok_or_else(|| {
                Error::Graph("what a rank tells of its mappings is cut short".to_owned())
            })?;
            let Confirmed {
                failed,
                unread,
                unshared,
            } = told;
            if failed.is_empty() {
                mapped.reads = reads::of_all(&unread);
                mapped.shares = unshared.into_iter().flatten().next().map_or(Ok(()), Err);
                break mapped;
            }
            first += 2;
            if first == 2 * TRIES || !self.can_stage(&failed) {
                return Err(self.refusal(mapped.plans, &failed));
            }
            refused = failed;
            for line in refused.lines() {
                log::warn!("{line}");
            }
        };
        let mut peers = Vec::with_capacity(plans.len());
        let ways = self.post(plans, &homes, &kinds)?;
        for ((rank, way), kind) in (0..).zip(ways).zip(&kinds) {
            let mut peer = Peer::new(rank, way, homes.near(kind));
            if let (Ok(_), Some(process)) = (&reads, processes.get(rank as usize)) {
                peer.process = process.as_ref().map_or(0, Memory::base);
            }
            peers.push(peer);
        }
        memories.extend(processes.into_iter().flatten());
        let ground = self.world.ground.as_ref();
        let bells = Bells::new(ground.and_then(|ground| Cpu::of(&ground.device)), &bells)
            .inspect(|_| memories.extend(bells));
        let arena_bytes = homes.bytes();
        // Imports go before the own arenas: dropping goes in order.
        let (linked, own) = homes.into_memories();
        memories.extend(own);
        Ok(Connected {
            peers,
            holdings: Holdings {
                kept: Kept { linked, memories },
                arena_bytes,
                bells,
            },
            mapped: kinds
                .iter()
                .map(|kind| matches!(kind, Kind::Own | Kind::Direct))
                .collect(),
            core_cache: offers
                .iter()
                .map(|offer| offer.core_cache)
                .min()
                .unwrap_or(0),
            swaps: offers.iter().all(|offer| offer.swaps),
            plain: offers.iter().all(|offer| offer.is_plain),
            speeds: offers.iter().map(|offer| offer.speed).collect(),
            records: offers.iter().map(|offer| offer.records).collect(),
            fetches,
            linked: offers.iter().map(|offer| offer.linked.clone()).collect(),
            supports: offers.into_iter().map(|offer| offer.support).collect(),
            refused,
            reads,
            shares,
        })
    }

    /// Maps what peers reach each other by; `first` is the number of the exchange that it needs.
    fn map_all(&self, refused: &Refused, first: u64) -> Result<Mapped> {
        let kinds = self.kinds(refused)?;
        let homes = Homes::new(self.world, self.arena, &kinds)?;
        let offers = self.offer(&homes, &kinds, first)?;
        let mut memories = Vec::new();
        let mut bells = Vec::new();
        let mut plans = Vec::with_capacity(kinds.len());
        let records: Vec<Records> = offers.iter().map(|offer| offer.records).collect();
        let fetches = Fetches::of(&records);
        for ((kind, offer), member) in kinds.iter().zip(&offers).zip(&self.members) {
            plans.push(match kind {
                Kind::Own => Plan::Own,
                Kind::Direct => {
                    let fetch = self.fetch(fetches, *member);
                    Plan::of(self.map(offer, fetch, &mut memories))
                }
                Kind::Staged => Plan::of(self.map_staged(offer, &mut memories, &mut bells)),
                Kind::Posted(plugin) => Plan::Post {
                    plugin: plugin.clone(),
                    plain: self.is_plain() && offer.is_plain,
                },
            });
        }
        let (processes, unread) = self.reach(&kinds, &offers);
        let shares = self.shares(&kinds, &plans, &offers);
        Ok(Mapped {
            kinds,
            homes,
            offers,
            plans,
            memories,
            bells,
            fetches,
            processes,
            reads: Err(unread.unwrap_or_default()),
            shares,
        })
    }

    /// What stands for the processes of the other ranks, and why one of them cannot be read, if so.
    fn reach(&self, kinds: &[Kind], offers: &[Offer]) -> (Vec<Option<Memory>>, Option<String>) {
        let rank = self.rank;
        let reach = |(peer, (kind, offer)): (usize, (&Kind, &Offer))| match kind {
            Kind::Own => Ok(None),
            _ if self.world.process.is_none() => Err(format!(
                "rank {rank} reads nobody's memory: its device does not, or memory.single_copy is off"
            )),
            Kind::Direct if !offer.process.is_empty() => {
                let process = self.world.device.import(&offer.process);
                let unread = |error| format!("rank {rank} cannot read rank {peer}: {error}");
                process.map(Some).map_err(unread)
            }
            Kind::Direct => Err(format!(
                "nobody may read the memory of rank {peer}: its device does not let them, or \
                 memory.single_copy is off there"
            )),
            Kind::Staged | Kind::Posted(_) => {
                Err(format!("ranks {rank} and {peer} do not share memory"))
            }
        };
        let all: std::result::Result<Vec<_>, String> =
            kinds.iter().zip(offers).enumerate().map(reach).collect();
        match all {
            Ok(all) => (all, None),
            Err(why) => (Vec::new(), Some(why)),
        }
    }

    /// Whether this rank's core works in memory that it and all others map, or why not.
    fn shares(
        &self,
        kinds: &[Kind],
        plans: &[Plan],
        offers: &[Offer],
    ) -> std::result::Result<(), String> {
        let (rank, info) = (self.rank, self.world.device.info());
        let records = info.streams_can(unisono_abi::stream_can::CAPTURE);
        let is_cpu =
            info.kind == unisono_hal::DeviceKind::Cpu && info.reaches(unisono_abi::reach::HOST);
        if !is_cpu || records {
            return Err(format!(
                "no core works for rank {rank} in memory that others map"
            ));
        }
        // Both ends must know from what all have told whether the other's core takes it for plain memory.
        let is_plain = |offer: &Offer| self.is_plain() && offer.is_plain;
        let is_shared = |((kind, plan), offer): ((&Kind, &Plan), &Offer)| match (kind, plan) {
            (Kind::Own, _) => true,
            (Kind::Direct, Plan::Mapped(Way::Mapped { fetch, inline, .. })) => {
                *fetch == Fetch::default() && *inline == is_plain(offer)
            }
            _ => false,
        };
        let all = kinds.iter().zip(plans).zip(offers);
        match all.into_iter().position(|pair| !is_shared(pair)) {
            None => Ok(()),
            Some(peer) => Err(format!("ranks {rank} and {peer} do not share memory")),
        }
    }

    /// Whether all these pairs can go through host memory in place of a mapping.
    fn can_stage(&self, failed: &Refused) -> bool {
        let told = |rank: u32| {
            let member = self.members[rank as usize];
            let told = self.world.grounds.get(member as usize);
            told.map(|told| (told, self.world.graph.node_of_rank(member)))
        };
        failed.pairs().all(|(a, b)| match (told(a), told(b)) {
            (Some((a, near)), Some((b, far))) => a.meets(b) && near == far,
            _ => false,
        })
    }

    /// Why there is no way: this rank's own reason, if it has one.
    fn refusal(&self, plans: Vec<Plan>, failed: &Refused) -> Error {
        for (rank, plan) in (0..).zip(plans) {
            match plan {
                Plan::Failed(Error::Plugin { source, .. }) => {
                    let mut source = Arc::unwrap_or_clone(source);
                    source.message = format!("{}. {}", source.message, self.advice());
                    return Error::Plugin {
                        source: Arc::new(source),
                        peer: Some(rank),
                        call: None,
                    };
                }
                Plan::Failed(error) => return error,
                _ => {}
            }
        }
        Error::Graph(format!(
            "{}. {}",
            failed.reasons().join("; "),
            self.advice()
        ))
    }

    /// What helps where memory cannot be mapped.
    fn advice(&self) -> &'static str {
        if self.world.ground.is_none() {
            "With a plugin for the CPU among the job's plugins such ranks meet in the host's memory"
        } else {
            "To go by the network instead, exclude the link's kind in the cluster file"
        }
    }

    /// How each peer is reached, as the graph says, but for what was refused.
    fn kinds(&self, refused: &Refused) -> Result<Vec<Kind>> {
        let kind = |rank: usize, member: u32| {
            if rank as u32 == self.rank {
                return Ok(Kind::Own);
            }
            if refused.has(rank as u32, self.rank) {
                return Ok(Kind::Staged);
            }
            let ways = self.world.graph.ways(self.world.rank, member);
            let Some(way) = ways.first() else {
                return Err(Error::Graph(format!(
                    "no link joins rank {} to rank {rank} (ranks {} and {member} of the job); see `unisono \
                     topo`, and which plugins and links the cluster file allows",
                    self.rank, self.world.rank
                )));
            };
            Ok(match way.link_type {
                LinkType::Posted => Kind::Posted(way.plugin.clone()),
                LinkType::Mapped if way.plugin == ground::PLUGIN => Kind::Staged,
                LinkType::Mapped => Kind::Direct,
            })
        };
        let members = self.members.iter().enumerate();
        members.map(|(rank, member)| kind(rank, *member)).collect()
    }

    fn round(&self, number: u64, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let tag = first_exchange(self.id, number);
        Ok(self
            .world
            .control
            .all_gather(&self.members, tag, bytes, &self.wait)?)
    }

    /// First round: how each rank's memory is reached, and that all cut it alike.
    fn offer(&self, homes: &Homes, kinds: &[Kind], number: u64) -> Result<Vec<Offer>> {
        let bell = self.world.bell.as_ref();
        let bell = bell.and_then(|memory| memory.export(ExportKind::Process).ok());
        let exports = |kind| homes.of(&kind).map(Home::exports).unwrap_or_default();
        let mine = Offer {
            slots: self.arena.depth,
            slot_bytes: self.arena.slot_bytes,
            is_plain: self.is_plain(),
            core_cache: unisono_copy::core_cache(),
            swaps: (self.world.options.memory.swap_slots)
                .unwrap_or_else(unisono_copy::hands_lines_on),
            speed: self.speed(),
            support: Support::of(&self.world.device),
            records: Records::of(&self.world.device, kinds),
            linked: homes.told(kinds),
            direct: exports(Kind::Direct),
            staged: exports(Kind::Staged),
            bell: bell.unwrap_or_default(),
            process: reads::token(self.world.process.as_ref()),
        }
        .encode();
        let all = self.round(number, &mine)?;
        let offers: Option<Vec<Offer>> = all.iter().map(|bytes| Offer::parse(bytes)).collect();
        let offers =
            offers.ok_or_else(|| Error::Graph("a rank's offer is cut short".to_owned()))?;
        for (rank, offer) in offers.iter().enumerate() {
            if (offer.slots, offer.slot_bytes) != (self.arena.depth, self.arena.slot_bytes) {
                return Err(Error::invalid(
                    "init",
                    format!(
                        "rank {rank} has {} slots of {} bytes and rank {} has {} of {}: give all ranks \
                         the same memory options",
                        offer.slots,
                        offer.slot_bytes,
                        self.rank,
                        self.arena.depth,
                        self.arena.slot_bytes
                    ),
                ));
            }
        }
        Ok(offers)
    }

    /// Which way puts are fetched between this rank and another, by the best way there and back.
    fn fetch(&self, fetches: Fetches, member: u32) -> Fetch {
        let graph = &self.world.graph;
        let has = |from, to| {
            let ways = graph.ways(from, to);
            let way = ways.first();
            way.is_some_and(|way| fetches.has(graph, from, to, way))
        };
        Fetch {
            sent: has(self.world.rank, member),
            received: has(member, self.world.rank),
        }
    }

    /// Maps the arena of a peer whose device's memory is mapped.
    fn map(
        &self,
        offer: &Offer,
        fetch: Fetch,
        memories: &mut Vec<Memory>,
    ) -> unisono_hal::Result<Way> {
        let mut plain = self.is_plain() && offer.is_plain;
        let mut import = |bytes: &[u8]| -> unisono_hal::Result<u64> {
            let memory = self.world.device.import(bytes)?;
            let base = memory.base();
            plain &= memory.host_ptr().map(|p| p as u64) == Some(base);
            memories.push(memory);
            Ok(base)
        };
        let [signal, slots] = &offer.direct;
        let (signal, slots) = (import(signal)?, import(slots)?);
        let bell = match offer.bell.as_slice() {
            [] => 0, // a peer whose streams no one needs to wake
            bell => import(bell)?,
        };
        Ok(Way::Mapped {
            signal,
            slots,
            bell,
            // What is fetched lies in slots.
            inline: plain && fetch == Fetch::default(),
            fetch,
        })
    }

    /// Maps the arena that a peer has in host memory, and its bell, which this rank's stream does not ring.
    fn map_staged(
        &self,
        offer: &Offer,
        memories: &mut Vec<Memory>,
        bells: &mut Vec<Memory>,
    ) -> Result<Way> {
        let mut import = |bytes: &[u8]| -> Result<u64> {
            let (memory, under) = home::import_staged(self.world, bytes)?;
            let base = memory.base();
            memories.push(memory);
            memories.extend(under);
            Ok(base)
        };
        let [signal, slots] = &offer.staged;
        let way = Way::Mapped {
            signal: import(signal)?,
            slots: import(slots)?,
            bell: 0,
            inline: false,
            fetch: Fetch::default(),
        };
        if let (bell @ [_, ..], Some(ground)) = (offer.bell.as_slice(), &self.world.ground)
            && !ground.own
        {
            bells.push(ground.device.import(bell)?);
        }
        Ok(way)
    }

    /// Second round: a mapping is used only if both ends could make it, and memory is read or shown only if all can. `None`
    /// if something is cut short.
    fn confirm(&self, mapped: &Mapped, number: u64) -> Result<Option<Confirmed>> {
        let reasons: Vec<_> = (mapped.plans.iter())
            .map(|plan| match plan {
                Plan::Failed(error) => Some(error.to_string()),
                _ => None,
            })
            .collect();
        let mut mine = Vec::new();
        put_bytes(
            &mut mine,
            &put_reasons(reasons.iter().map(Option::as_deref)),
        );
        for why in [mapped.reads.as_ref().err(), mapped.shares.as_ref().err()] {
            put_bytes(&mut mine, why.map_or("", String::as_str).as_bytes());
        }
        let all = self.round(number, &mine)?;
        let parts = |bytes: &Vec<u8>| {
            let mut reader = Reader(bytes);
            let refused = reader.bytes()?.to_vec();
            let mut why = || {
                let why = String::from_utf8_lossy(reader.bytes()?).into_owned();
                Some((!why.is_empty()).then_some(why))
            };
            Some((refused, (why()?, why()?)))
        };
        let all: Option<(Vec<_>, (Vec<_>, Vec<_>))> = all.iter().map(parts).collect();
        Ok(all.and_then(|(refused, (unread, unshared))| {
            Some(Confirmed {
                failed: Refused::of(&refused)?,
                unread,
                unshared,
            })
        }))
    }

    /// Last round: windows of posted links.
    fn post(&self, plans: Vec<Plan>, homes: &Homes, kinds: &[Kind]) -> Result<Vec<Way>> {
        let mut tokens = Vec::new();
        let mut ways = Vec::with_capacity(plans.len());
        for (rank, plan) in (0..).zip(plans) {
            let way = match plan {
                Plan::Own => Way::Own,
                Plan::Mapped(way) => way,
                Plan::Failed(error) => return Err(error),
                Plan::Post { plugin, plain } => {
                    let mut posted = Posted::new(self.open(rank, &plugin)?, plain);
                    let home = homes.of(&kinds[rank as usize]).ok_or_else(|| {
                        Error::Graph(format!("no memory was made for the link to rank {rank}"))
                    })?;
                    let windows = [(SIGNAL_WINDOW, &home.signal), (SLOTS_WINDOW, &home.slots)];
                    let [signal, slots] =
                        windows.map(|(id, memory)| export_window(&mut posted, id, memory));
                    put_tokens(&mut tokens, rank, &signal?, &slots?);
                    Way::Posted(Box::new(posted))
                }
            };
            ways.push(way);
        }
        let all = self.round(2 * TRIES, &tokens)?;
        for (way, bytes) in ways.iter_mut().zip(&all) {
            let Way::Posted(posted) = way else {
                continue;
            };
            let (signal, slots) = find_tokens(bytes, self.rank)
                .ok_or_else(|| Error::Graph("a peer's windows are cut short".to_owned()))?;
            posted.link.import_window(SIGNAL_WINDOW, signal)?;
            posted.link.import_window(SLOTS_WINDOW, slots)?;
        }
        Ok(ways)
    }

    fn open(&self, rank: u32, plugin: &str) -> Result<unisono_hal::Link> {
        let member = self.members[rank as usize];
        let loaded = self.world.plugin(plugin).ok_or_else(|| {
            Error::Graph(format!(
                "the link to rank {rank} needs plugin `{plugin}`, which is not in use"
            ))
        })?;
        let address = self.world.plugin_address(member, plugin).ok_or_else(|| {
            Error::Graph(format!(
                "rank {rank} gave no address for plugin `{plugin}`: use the same plugins on all ranks"
            ))
        })?;
        let link = loaded.instance.connect(LinkRequest {
            peer: rank,
            device: self.world.device.info().id,
            channel: Arc::new(ControlChannel {
                control: self.world.control.clone(),
                prover: self.world.prover.clone(),
                table: self.world.table.clone(),
                id: self.id,
                rank: self.rank,
                members: self.members.clone(),
                kept: Mutex::default(),
            }),
            peer_address: &address,
        })?;
        Ok(link)
    }
}

/// What one try to map the peers gave.
struct Mapped {
    kinds: Vec<Kind>,
    offers: Vec<Offer>,
    plans: Vec<Plan>,
    // In the order in which they are let go: what registrations and imports are of comes last.
    memories: Vec<Memory>,
    bells: Vec<Memory>,
    homes: Homes,
    fetches: Fetches,
    /// By rank; empty if some cannot be read.
    processes: Vec<Option<Memory>>,
    /// At first why this rank cannot read another, or nothing; then what came of it on all ranks.
    reads: std::result::Result<Reads, String>,
    /// The same of what it shows.
    shares: std::result::Result<(), String>,
}

/// What the ranks told each other of their mappings.
struct Confirmed {
    /// The pairs that are not mapped.
    failed: Refused,
    /// Of each rank why it cannot read another.
    unread: Vec<Option<String>>,
    /// Of each rank why it cannot show others what it puts.
    unshared: Vec<Option<String>>,
}

/// How a peer will be reached.
enum Plan {
    Own,
    Mapped(Way),
    Failed(Error),
    Post { plugin: String, plain: bool },
}

impl Plan {
    fn of<E: Into<Error>>(mapped: std::result::Result<Way, E>) -> Self {
        match mapped {
            Ok(way) => Self::Mapped(way),
            Err(error) => Self::Failed(error.into()),
        }
    }
}

#[allow(unsafe_code, reason = "the peer's link writes plain addresses")]
fn export_window(posted: &mut Posted, id: u32, memory: &Memory) -> Result<Vec<u8>> {
    let address = memory.host_ptr().map_or(memory.base(), |p| p as u64);
    // SAFETY: the lane keeps the memory until its links are destroyed, and uses it as the arena's
    // layout says: the peer writes only its own slots and flags.
    Ok(unsafe { posted.link.export_window(id, address, memory.len()) }?)
}

/// How long forming took, for the log.
pub(super) fn log_formed(shared: &Shared, since: Instant) {
    log::debug!(
        "communicator {} of {} ranks formed in {:?}",
        shared.name,
        shared.size(),
        since.elapsed()
    );
}
