//! Forming a communicator: every rank makes its arena, tells the others how to reach it, and maps
//! or connects to theirs.
//!
//! Three rounds of O(log n) each: exports and what is expected of all; who could map whom; tokens
//! of windows, if any link is posted.

use std::cell::Cell;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use unisono_bootstrap::Wait;
use unisono_graph::LinkType;
use unisono_hal::{Device, ExportKind, LinkRequest, Memory, MemoryKind, MemoryRequest};

use super::channel::ControlChannel;
use super::fabric::RankSpeed;
use super::shared::{Shared, first_exchange};
use super::wire::{Reader, put_bytes};
use crate::arena::Arena;
use crate::error::{Error, Result};
use crate::execute::{Lane, Own, Peer, Posted, SIGNAL_WINDOW, SLOTS_WINDOW, Way};
use crate::progress::Policy;
use crate::world::World;

/// Exchanges that forming uses up.
const ROUNDS: u64 = 3;

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
    let forming = Forming::new(world, id, members)?;
    let peers = if forming.members.len() > 1 {
        forming.connect()?
    } else {
        Connected {
            peers: vec![Peer::new(0, Way::Own)],
            memories: Vec::new(),
            own: Own {
                rank: 0,
                arena: forming.arena,
                signal: 0,
                slots: 0,
                signal_host: 0,
            },
            speeds: vec![forming.speed()],
        }
    };
    let mapped = peers
        .peers
        .iter()
        .map(|peer| !matches!(peer.way, Way::Posted(_)))
        .collect();
    let stream = world.device.stream(0)?;
    let lane = Arc::new(Lane::new(
        peers.own,
        peers.peers,
        world.device.clone(),
        stream,
        peers.memories,
    ));
    let ranks_here = world.ranks_here();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(Shared::new(
        id,
        name,
        forming.members.clone(),
        world.clone(),
        lane,
        super::fabric::fabric(world, &forming.members, &peers.speeds),
        Policy::new(ranks_here, cores, &world.options),
        forming.arena.slot_bytes,
        ROUNDS,
        mapped,
    ))
}

struct Connected {
    peers: Vec<Peer>,
    memories: Vec<Memory>,
    own: Own,
    speeds: Vec<RankSpeed>,
}

struct Forming<'a> {
    world: &'a Arc<World>,
    id: u64,
    members: Vec<u32>,
    rank: u32,
    arena: Arena,
    wait: Wait,
}

/// What a rank tells the others in the first round.
struct Offer {
    slots: u32,
    slot_bytes: u64,
    /// Whether it puts what is small into the lines of flags.
    is_plain: bool,
    speed: RankSpeed,
    signal: Vec<u8>,
    slots_memory: Vec<u8>,
    bell: Vec<u8>,
}

impl<'a> Forming<'a> {
    fn new(world: &'a Arc<World>, id: u64, members: Vec<u32>) -> Result<Self> {
        let size = members.len() as u32;
        let memory = world.options.memory;
        let slot_bytes = memory.slot_for(size).ok_or_else(|| {
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

    /// Whether small puts may lie in the lines of their flags: the device reads and writes signal
    /// memory like any other.
    fn is_plain(&self) -> bool {
        self.world.options.direct && self.world.device.info().reaches(unisono_abi::reach::HOST)
    }

    fn connect(&self) -> Result<Connected> {
        let device = &self.world.device;
        let request = |kind, bytes| {
            let request = MemoryRequest::new(kind, bytes).lazy().align(4096);
            self.world.shared(request)
        };
        let signal = device.alloc(&request(MemoryKind::Signal, self.arena.signal_bytes()))?;
        if signal.host_ptr().is_none() {
            return Err(Error::Unsupported {
                call: "init",
                why: "the device's signal memory cannot be seen by the CPU, so an abort could not \
                      release its waits"
                    .to_owned(),
            });
        }
        let slots = device.alloc(&request(MemoryKind::Data, self.arena.slots_bytes()))?;
        let own = Own {
            rank: self.rank,
            arena: self.arena,
            signal: signal.base(),
            slots: slots.base(),
            signal_host: signal.host_ptr().map_or(0, |p| p as u64),
        };
        let offers = self.offer(&signal, &slots)?;
        let mut memories = Vec::new();
        let mut ways = self.map(device, &offers, &mut memories)?;
        self.confirm(&mut ways)?;
        let mut peers = Vec::with_capacity(ways.len());
        for (rank, way) in (0..).zip(self.post(ways, &signal, &slots)?) {
            peers.push(Peer::new(rank, way));
        }
        // Imports go before the own arena: dropping goes in order.
        memories.extend([signal, slots]);
        Ok(Connected {
            peers,
            memories,
            own,
            speeds: offers.iter().map(|offer| offer.speed).collect(),
        })
    }

    fn round(&self, number: u64, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let tag = first_exchange(self.id, number);
        Ok(self
            .world
            .control
            .all_gather(&self.members, tag, bytes, &self.wait)?)
    }

    /// First round: how each rank's memory is reached, and that all cut it alike.
    fn offer(&self, signal: &Memory, slots: &Memory) -> Result<Vec<Offer>> {
        let mut mine = Vec::new();
        mine.extend_from_slice(&self.arena.depth.to_le_bytes());
        mine.extend_from_slice(&self.arena.slot_bytes.to_le_bytes());
        mine.push(u8::from(self.is_plain()));
        let speed = self.speed();
        mine.extend_from_slice(&speed.reduce.to_le_bytes());
        mine.extend_from_slice(&speed.cores.to_le_bytes());
        for memory in [Some(signal), Some(slots), self.world.bell.as_ref()] {
            // Memory that cannot be exported is reached by posted links alone.
            let export = memory.and_then(|m| m.export(ExportKind::Process).ok());
            let export = export.unwrap_or_default();
            put_bytes(&mut mine, &export);
        }
        let all = self.round(0, &mine)?;
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

    /// Maps the arenas of peers that the graph says can be mapped.
    fn map(
        &self,
        device: &Device,
        offers: &[Offer],
        memories: &mut Vec<Memory>,
    ) -> Result<Vec<Plan>> {
        let mut plans = Vec::with_capacity(offers.len());
        for (rank, offer) in offers.iter().enumerate() {
            if rank as u32 == self.rank {
                plans.push(Plan::Own);
                continue;
            }
            let ways = self.world.graph.ways(self.world.rank, self.members[rank]);
            let Some(way) = ways.first() else {
                return Err(Error::Graph(format!(
                    "no link joins rank {} to rank {rank} (ranks {} and {} of the job); see `unisono \
                     topo`, and which plugins and links the cluster file allows",
                    self.rank, self.world.rank, self.members[rank]
                )));
            };
            plans.push(match way.link_type {
                LinkType::Posted => Plan::Post {
                    plugin: way.plugin.clone(),
                },
                LinkType::Mapped => {
                    let plain = Cell::new(self.is_plain() && offer.is_plain);
                    let mut import = |bytes: &[u8]| -> Result<u64, unisono_hal::Error> {
                        let memory = device.import(bytes)?;
                        let base = memory.base();
                        let is_plain = memory.host_ptr().map(|p| p as u64) == Some(base);
                        plain.set(plain.get() && is_plain);
                        memories.push(memory);
                        Ok(base)
                    };
                    let mapped = import(&offer.signal).and_then(|signal| {
                        let slots = import(&offer.slots_memory)?;
                        let bell = match offer.bell.as_slice() {
                            [] => 0, // a peer whose streams no one needs to wake
                            bell => import(bell)?,
                        };
                        Ok(Way::Mapped {
                            signal,
                            slots,
                            bell,
                            inline: plain.get(),
                        })
                    });
                    match mapped {
                        Ok(way) => Plan::Mapped(way),
                        Err(error) => Plan::Failed(error),
                    }
                }
            });
        }
        Ok(plans)
    }

    /// Second round: a mapping is used only if both ends could make it.
    fn confirm(&self, plans: &mut [Plan]) -> Result<()> {
        let mine: Vec<u8> = plans
            .iter()
            .map(|plan| u8::from(!matches!(plan, Plan::Failed(_))))
            .collect();
        let all = self.round(1, &mine)?;
        for (rank, plan) in plans.iter().enumerate() {
            let theirs = all[rank].get(self.rank as usize) == Some(&1);
            match plan {
                Plan::Failed(error) => {
                    return Err(Error::Plugin {
                        source: Arc::new(error.clone()),
                        peer: Some(rank as u32),
                        call: None,
                    });
                }
                _ if !theirs => {
                    return Err(Error::Graph(format!(
                        "rank {rank} could not map the memory of rank {}; its own error says why. To go \
                         by the network instead, exclude the link's kind in the cluster file",
                        self.rank
                    )));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Third round: windows of posted links.
    fn post(&self, plans: Vec<Plan>, signal: &Memory, slots: &Memory) -> Result<Vec<Way>> {
        let mut tokens = Vec::new();
        let mut ways = Vec::with_capacity(plans.len());
        for (rank, plan) in (0..).zip(plans) {
            let way = match plan {
                Plan::Own => Way::Own,
                Plan::Mapped(way) => way,
                Plan::Failed(error) => return Err(error.into()),
                Plan::Post { plugin } => {
                    let mut posted = self.open(rank, &plugin)?;
                    tokens.extend_from_slice(&rank.to_le_bytes());
                    for (id, memory) in [(SIGNAL_WINDOW, signal), (SLOTS_WINDOW, slots)] {
                        let token = export_window(&mut posted, id, memory)?;
                        put_bytes(&mut tokens, &token);
                    }
                    Way::Posted(Box::new(posted))
                }
            };
            ways.push(way);
        }
        let all = self.round(2, &tokens)?;
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

    fn open(&self, rank: u32, plugin: &str) -> Result<Posted> {
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
        Ok(Posted::new(link))
    }
}

/// How a peer will be reached.
enum Plan {
    Own,
    Mapped(Way),
    Failed(unisono_hal::Error),
    Post { plugin: String },
}

impl Offer {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        Some(Self {
            slots: reader.u32()?,
            slot_bytes: reader.u64()?,
            is_plain: reader.u8()? != 0,
            speed: RankSpeed {
                reduce: reader.u64()?,
                cores: reader.u32()?,
            },
            signal: reader.bytes()?.to_vec(),
            slots_memory: reader.bytes()?.to_vec(),
            bell: reader.bytes()?.to_vec(),
        })
    }
}

#[allow(unsafe_code, reason = "the peer's link writes plain addresses")]
fn export_window(posted: &mut Posted, id: u32, memory: &Memory) -> Result<Vec<u8>> {
    let address = memory.host_ptr().map_or(memory.base(), |p| p as u64);
    // SAFETY: the lane keeps the memory until its links are destroyed, and uses it as the arena's
    // layout says: the peer writes only its own slots and flags.
    Ok(unsafe { posted.link.export_window(id, address, memory.len()) }?)
}

/// The two tokens that a peer made for `rank`.
fn find_tokens(bytes: &[u8], rank: u32) -> Option<(&[u8], &[u8])> {
    let mut reader = Reader(bytes);
    loop {
        let (to, signal, slots) = (reader.u32()?, reader.bytes()?, reader.bytes()?);
        if to == rank {
            return Some((signal, slots));
        }
    }
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
